//! An exporter answers the questions about its history as its file does, and a client that gets something
//! else says so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api;
mod hostile;
