//! The web config file: how clients come in, and what they are told besides.
//!
//! Its keys are those of the Prometheus exporter toolkit (docs/web-configuration.md there), so that a
//! site has one file for all its exporters; docs/security.md says where we differ. What is read here is
//! checked whole: certificates are there and their keys fit, hashes are hashes.

mod http;
mod rate;
mod sources;
mod tls;
mod users;

use std::path::Path;

use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_saphyr::Spanned;
use thiserror::Error;

use crate::config::yaml;

use tls::Validate as _;

pub use rate::Rate;
pub use sources::Sources;
pub use tls::{ClientAuth, TlsSettings};
pub use users::{Checked, Users};

/// What a web config file says.
#[derive(Debug)]
pub struct WebConfig {
    /// How TLS is spoken, if it is.
    pub tls: Option<TlsSettings>,
    /// Whether HTTP/2 is spoken over TLS.
    pub http2: bool,
    /// What goes with each answer.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Who may log in; if there is none, nobody has to.
    pub users: Users,
    /// How many requests are answered.
    pub rate: Option<Rate>,
    /// What is not wrong and yet not as somebody may expect it, a line each.
    pub warnings: Vec<String>,
}

/// What is wrong with a web config file: one line, with its place.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("web config file {path}: {problem}")]
pub struct WebConfigError {
    path: String,
    problem: String,
}

impl WebConfigError {
    /// A problem of the file at this path.
    pub fn new(path: &Path, problem: impl AsRef<str>) -> Self {
        let path = in_a_line(&path.display().to_string());
        WebConfigError { path, problem: in_a_line(problem.as_ref()) }
    }
}

/// A text that repeats what stands in a file, in one line: what would end it, or hide what was before, is
/// shown as an escape.
fn in_a_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    line
}

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    tls_server_config: Option<Spanned<tls::Section>>,
    http_server_config: Option<http::Section>,
    basic_auth_users: Option<users::Section>,
    rate_limit: Option<rate::Section>,
}

impl WebConfig {
    /// Reads a file and those that it names. They are told even where something is wrong with them:
    /// they may change for the better.
    pub fn load(path: &Path) -> (Sources, Result<WebConfig, WebConfigError>) {
        let mut sources = Sources::of(path);
        let config = parse(path, &mut sources);
        (sources, config.map_err(|problem| WebConfigError::new(path, problem)))
    }
}

fn parse(path: &Path, sources: &mut Sources) -> Result<WebConfig, String> {
    let bytes = sources.read(path)?;
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    let file: File = yaml::read(&text).map_err(|problem| with_key(&text, problem))?;
    let mut warnings = Vec::new();
    let tls = file.tls_server_config.map(|section| section.validate(sources, &mut warnings));
    let http = file.http_server_config.unwrap_or_default();
    let users = file.basic_auth_users.map(|section| users::validate(section, &mut warnings));
    let warnings = warnings.iter().map(|warning| in_a_line(warning)).collect();
    Ok(WebConfig {
        tls: tls.transpose()?.flatten(),
        http2: http.http2.unwrap_or(true),
        headers: http.headers()?,
        users: users.transpose()?.unwrap_or_default(),
        rate: file.rate_limit.map_or(Ok(None), rate::Section::validate)?,
        warnings,
    })
}

/// What YAML has to say, with the key of the line if it does not name it itself: "invalid boolean".
fn with_key(text: &str, problem: String) -> String {
    let number = problem.strip_prefix("line ").and_then(|rest| rest.split(' ').next());
    let line =
        number.and_then(|number| text.lines().nth(number.parse::<usize>().ok()?.checked_sub(1)?));
    match line.and_then(|line| line.split_once(':')).map(|(key, _)| key.trim()) {
        Some(key) if !problem.contains(key) => format!("{problem} ({key})"),
        _ => problem,
    }
}

/// A problem at a value: the line that it is in, and its key.
fn at<T>(value: &Spanned<T>, key: &str, problem: impl std::fmt::Display) -> String {
    format!("{}: {problem}", place(value, key))
}

/// Where a value is.
fn place<T>(value: &Spanned<T>, key: &str) -> String {
    format!("line {}: {key}", value.referenced.line())
}
