//! A web config file checked as a start would, for `check` and `doctor`.

use std::path::Path;

use super::config::{WebConfig, WebConfigError};
use super::tls;

/// A file without mistakes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What it sets: `TLS, NoClientCert; 2 users`.
    pub about: String,
    /// What is not wrong and may yet not be meant so, a line each.
    pub warnings: Vec<String>,
}

/// Checks a file and those that it names.
pub fn inspect(path: &Path) -> Result<Inspection, WebConfigError> {
    let config = WebConfig::load(path).1?;
    if let Some(settings) = &config.tls {
        tls::server_config(settings)
            .map_err(|error| WebConfigError::new(path, error.to_string()))?;
    }
    Ok(Inspection { about: about(&config), warnings: config.warnings })
}

/// `1 user`, `2 users`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn about(config: &WebConfig) -> String {
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let tls = match &config.tls {
        None => "no TLS".to_owned(),
        Some(tls) => format!("TLS, {:?}", tls.client_auth),
    };
    let logins = match config.users.len() {
        0 => "no login".to_owned(),
        users => count(users, "user"),
    };
    let mut parts = vec![tls, logins];
    if !config.headers.is_empty() {
        parts.push(count(config.headers.len(), "header"));
    }
    if let Some(rate) = config.rate {
        parts.push(format!("a request each {:?}, {} at once", rate.interval, rate.burst));
    }
    parts.join("; ")
}
