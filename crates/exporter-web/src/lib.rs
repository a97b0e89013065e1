//! An HTTP server with the web config of Prometheus' exporter toolkit.

pub mod certificate;
pub mod config;
mod connections;
pub mod host;
pub mod inspection;
pub mod limits;
pub mod listen;
pub mod login;
pub mod rate;
pub mod refusal;
pub mod reload;
pub mod security;
pub mod serving;
pub mod throttle;
pub mod tls;
mod turns;
mod watched;
