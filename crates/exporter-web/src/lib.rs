#![doc = include_str!("../README.md")]

mod activity;
mod allowed_hosts;
pub mod blocking;
mod connections;
mod deadlines;
pub mod error_response;
mod http_server;
mod limits;
pub mod listen;
mod locked;
mod login;
mod metrics;
mod own_thread;
mod packed_text;
mod permit_queue;
mod rate_limit;
mod refusals;
mod reload_status;
mod request_class;
mod request_permits;
mod security;
mod tls;
mod users;
mod web_config;

pub use allowed_hosts::AllowedHosts;
pub use http_server::Server;
pub use limits::Limits;
pub use metrics::WebMetrics;
pub use packed_text::PackedText;
pub use refusals::{Refusal, Refusals};
pub use reload_status::ReloadStatus;
pub use request_class::RequestClass;
pub use request_permits::Held;
pub use security::Security;
pub use tls::CertificateInfo;
pub use web_config::{Sources, TlsSettings, WebConfig};
