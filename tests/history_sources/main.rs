//! An exporter answers queries on its history like its file, and a client reports other responses as errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api;
mod hostile;
