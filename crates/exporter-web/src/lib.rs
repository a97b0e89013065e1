#![doc = include_str!("../README.md")]

pub mod error_response;
mod http_server;
mod limits;
pub mod listen;
mod login;
mod security;
mod tls;
mod web_config;

pub use http_server::{Classify, RequestClass, Server};
pub use limits::Limits;
pub use security::{ReloadStatus, Security};
pub use tls::CertificateInfo;
pub use web_config::{Sources, TlsSettings, WebConfig};
