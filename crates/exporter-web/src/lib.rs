#![doc = include_str!("../README.md")]

mod allowed_hosts;
mod connections;
mod deadlines;
pub mod error_response;
mod http_server;
mod lane;
mod limits;
pub mod listen;
mod login;
mod metrics;
mod packed_text;
mod refusals;
mod request_class;
mod security;
mod tls;
mod turns;
mod web_config;
pub mod work;

pub use allowed_hosts::AllowedHosts;
pub use http_server::{Held, Server};
pub use limits::Limits;
pub use metrics::WebMetrics;
pub use packed_text::PackedText;
pub use refusals::{Refusal, Refusals};
pub use request_class::RequestClass;
pub use security::{ReloadStatus, Security};
pub use tls::CertificateInfo;
pub use web_config::{Sources, TlsSettings, WebConfig};
