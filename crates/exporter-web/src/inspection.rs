//! What a web config file comes to: for whoever asks before a start does, or beside one.

use std::path::Path;

use super::config::{WebConfig, WebConfigError};
use super::tls;

/// A file that a start would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What clients will meet: `TLS, NoClientCert; 2 users`.
    pub about: String,
    /// What is not wrong and yet not as somebody may expect it, a line each.
    pub warnings: Vec<String>,
}

/// Looks at a file and at those that it names, as a start would.
pub fn inspect(path: &Path) -> Result<Inspection, WebConfigError> {
    let config = WebConfig::load(path).1?;
    if let Some(settings) = &config.tls {
        tls::server_config(settings, config.http2)
            .map_err(|error| WebConfigError::new(path, error.to_string()))?;
    }
    Ok(Inspection { about: about(&config), warnings: config.warnings })
}

/// `1 user`, `2 users`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn about(config: &WebConfig) -> String {
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
