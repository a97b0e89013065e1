//! Histories that are asked by HTTP.

mod api;
mod http;

pub use api::Api;
