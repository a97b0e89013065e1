//! Histories that are asked by HTTP.

mod api;
mod http;
pub mod prometheus;

pub use api::Api;
