//! fabric-exporter: which cable is going bad, told to Prometheus, to a browser, to a terminal.
//!
//! The way of the data is one direction: bytes at [`transport`] → [`mad`] → what was found, by
//! [`collect`] → [`fabric::Snapshot`] → [`monitor`] → [`web`] and [`history`]. A room imports only rooms below it.
//! `docs/architecture.md` has the whole picture.

pub mod cli;
pub mod collect;
pub mod config;
pub mod doctor;
pub mod fabric;
pub mod health;
pub mod history;
pub mod mad;
pub mod metric;
pub mod monitor;
pub mod query;
pub mod remote;
pub mod service;
pub mod sim;
pub mod transport;
pub mod web;
