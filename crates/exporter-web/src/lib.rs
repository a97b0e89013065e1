//! An HTTP/1.1 server for exporters, with the web config file of Prometheus' exporter toolkit.
//!
//! [`Server`] serves an axum router on any number of listeners. [`Limits`] bound what clients can make it
//! do: connections in all and of each client, requests at once, and deadlines for heads, responses, slow
//! readers and idle connections. [`Security`] is the web config file in force: TLS, client certificates,
//! logins, rate limit and response headers; it is read again when it or a file that it names changes.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use axum::{Router, routing::get};
//! use exporter_web::{Limits, RequestClass, Security, Server};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("web.yml");
//! std::fs::write(&file, "http_server_config: {headers: {X-Frame-Options: deny}}\n")?;
//! let (security, _files) = Security::load(Some(&file))?;
//! let server = Server::new(Arc::new(security), Limits::default(), |_path| RequestClass::Ready);
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! println!("listening on {}", listener.local_addr()?);
//! server.serve(listener, Router::new().route("/metrics", get(|| async { "up 1\n" })));
//!
//! server.shutdown(Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```

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
pub use security::{Inspection, ReloadStatus, Security, inspect};
pub use tls::CertificateInfo;
pub use web_config::{Sources, TlsSettings, WebConfig};
