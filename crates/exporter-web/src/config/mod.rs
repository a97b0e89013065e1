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
use thiserror::Error;

use site_config::ConfigError;
use site_config::yaml;
use site_config::yaml::{Mistake, Spanned};

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

/// What is wrong with a web config file: a line each, with its place.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(transparent)]
pub struct WebConfigError(ConfigError);

impl WebConfigError {
    /// A problem of the file at this path.
    pub fn new(path: &Path, problem: impl AsRef<str>) -> Self {
        WebConfigError::all(path, [problem.as_ref()])
    }

    fn all<P: std::fmt::Display>(path: &Path, problems: impl IntoIterator<Item = P>) -> Self {
        WebConfigError(ConfigError::in_file("web config file", path, problems))
    }

    /// The lines.
    pub fn lines(&self) -> &[String] {
        self.0.lines()
    }
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
        (sources, config.map_err(|problems| WebConfigError::all(path, problems)))
    }
}

fn parse(path: &Path, sources: &mut Sources) -> Result<WebConfig, Vec<String>> {
    let bytes = sources.read(path).map_err(|problem| vec![problem])?;
    let text = String::from_utf8(bytes).map_err(|error| vec![yaml::not_utf8(&error)])?;
    let yaml::Reading { value: file, mistakes, .. } = yaml::read::<File>(&text);
    let (mut warnings, mut wrong) = (Vec::new(), Vec::new());
    let tls = file.tls_server_config.map(|section| section.validate(sources, &mut warnings));
    let tls = tls.transpose().map_err(|problems| wrong.extend(problems));
    let http = file.http_server_config.unwrap_or_default();
    let headers = http.headers().map_err(|problems| wrong.extend(problems));
    let users = file.basic_auth_users.map(|section| users::validate(section, &mut warnings));
    let users = users.transpose().map_err(|problems| wrong.extend(problems));
    let rate = file.rate_limit.map_or(Ok(None), rate::Section::validate);
    let rate = rate.map_err(|problem| wrong.push(problem));
    let warnings = warnings.iter().map(|warning| yaml::in_a_line(warning)).collect();
    match (tls, headers, users, rate) {
        (Ok(tls), Ok(headers), Ok(users), Ok(rate)) if mistakes.is_empty() => Ok(WebConfig {
            tls: tls.flatten(),
            http2: http.http2.unwrap_or(true),
            headers,
            users: users.unwrap_or_default(),
            rate,
            warnings,
        }),
        _ => {
            // A key that is misspelt or has no usable value is not missing, too.
            let section = |mistake: &Mistake| mistake.key.split('.').next().map(str::to_owned);
            let sections: Vec<String> = mistakes.iter().filter_map(section).collect();
            wrong.retain(|problem| {
                !problem.contains(" is missing")
                    || !sections.iter().any(|section| problem.contains(section.as_str()))
            });
            Err(mistakes.iter().map(ToString::to_string).chain(wrong).collect())
        }
    }
}

/// A problem at a value: its line, its column and its key.
fn at<T>(value: &Spanned<T>, key: &str, problem: impl std::fmt::Display) -> String {
    format!("{}: {problem}", place(value, key))
}

/// Where a value is.
fn place<T>(value: &Spanned<T>, key: &str) -> String {
    format!("line {}, column {}: {key}", value.line, value.column)
}
