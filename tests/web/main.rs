//! The exporter over HTTP: server, API and pages, and what the documentation says about them.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod cables;
mod demo;
mod detail_pages;
mod docs;
mod host_page;
mod jobs;
mod log;
mod openapi;
mod pages;
mod routes;
mod runbooks;
mod web_config;
