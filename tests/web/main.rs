//! The exporter over HTTP: its server, API and pages, and what the documents say of them.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod detail_pages;
mod docs;
mod openapi;
mod pages;
mod web_config;
