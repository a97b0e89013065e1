#![doc = include_str!("../README.md")]

mod activity;
mod allowed_hosts;
mod connections;
mod deadlines;
pub mod error_response;
mod http_server;
mod lane;
mod limits;
pub mod listen;
mod locked;
mod login;
mod metrics;
mod packed_text;
mod rate_limit;
mod refusals;
mod reload_status;
mod request_class;
mod request_limits;
mod security;
mod tls;
mod turns;
mod users;
mod web_config;
pub mod work;

pub use allowed_hosts::AllowedHosts;
pub use http_server::Server;
pub use limits::Limits;
pub use metrics::WebMetrics;
pub use packed_text::PackedText;
pub use refusals::{Refusal, Refusals};
pub use reload_status::ReloadStatus;
pub use request_class::RequestClass;
pub use request_limits::Held;
pub use security::Security;
pub use tls::CertificateInfo;
pub use web_config::{Sources, TlsSettings, WebConfig};
