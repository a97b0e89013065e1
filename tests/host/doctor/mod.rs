//! `doctor`: on hosts that lack one thing each, it finds that thing, and says what mends it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod documented;
mod fabric;
mod hostile;
mod links;
mod own;
mod patient;
mod rights;
mod setup;

use test_rig as rig;
