//! `doctor` on hosts with one problem each: it finds the problem and prints a fix.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod documented;
mod fabric;
mod hostile;
mod kinds;
mod links;
mod own;
mod own_devices;
mod patient;
mod rights;
mod setup;
