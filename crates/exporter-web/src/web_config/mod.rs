//! The web config file: TLS, logins, rate limit and response headers.
//!
//! Its keys are those of the Prometheus exporter toolkit (docs/web-configuration.md there), so that a
//! site has one file for all its exporters; docs/security.md lists the differences. Files that are named
//! are read and checked, too: certificates and their keys fit, hashes are bcrypt hashes.

mod headers;
mod problems;
mod protection;
mod rate_limit;
mod sources;
mod tls;
mod users;

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;
use yaml_config::ConfigError;
use yaml_config::yaml;

use crate::rate_limit::{Rate, RateLimiter};
use crate::users::Users;
use problems::Problems;
pub use sources::Sources;
pub use tls::TlsSettings;

/// A web config file without diagnostics.
#[derive(Debug, Default)]
pub struct WebConfig {
    /// TLS, if it is enabled.
    pub tls: Option<TlsSettings>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) users: Users,
    pub(crate) limiter: Option<Arc<RateLimiter>>,
    /// Warnings: valid settings that may be unintended, a line each.
    pub warnings: Vec<String>,
}

/// A summary of the settings: `TLS, NoClientCert; 2 users`.
impl Display for WebConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: usize, what: &str| match count {
            1 => format!("; 1 {what}"),
            _ => format!("; {count} {what}s"),
        };
        match &self.tls {
            None => f.write_str("no TLS")?,
            Some(tls) => write!(f, "TLS, {:?}", tls.client_auth)?,
        }
        match self.users.count() {
            0 => f.write_str("; no login")?,
            users => f.write_str(&count(users, "user"))?,
        }
        if !self.headers.is_empty() {
            f.write_str(&count(self.headers.len(), "header"))?;
        }
        let Some(Rate { interval, burst }) = self.limiter.as_ref().map(|limiter| limiter.rate)
        else {
            return Ok(());
        };
        write!(f, "; rate limit 1 request per {interval:?}, burst {burst}")
    }
}

/// The error for problems of a web config file: a line each.
pub(crate) fn error<P: Display>(path: &Path, problems: impl IntoIterator<Item = P>) -> ConfigError {
    ConfigError::in_file("web config file", path, problems)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    tls_server_config: tls::TlsSection,
    http_server_config: headers::HttpSection,
    basic_auth_users: users::UsersSection,
    rate_limit: rate_limit::RateLimitSection,
}

impl WebConfig {
    /// Reads a file and those that it names. The files are returned also where they have diagnostics: they
    /// may be corrected.
    pub fn load(path: &Path) -> (Sources, Result<WebConfig, ConfigError>) {
        let mut sources = Sources::new(path);
        let config = parse(path, &mut sources);
        (sources, config.map_err(|problems| error(path, problems)))
    }

    pub(crate) fn log_warnings(&self, path: &Path) {
        for warning in &self.warnings {
            tracing::warn!(file = %path.display(), "{warning}");
        }
    }
}

fn parse(path: &Path, sources: &mut Sources) -> Result<WebConfig, Vec<String>> {
    let bytes = sources.read(path).map_err(|problem| vec![problem])?;
    let text = String::from_utf8(bytes).map_err(|error| vec![yaml::not_utf8(&error)])?;
    let yaml::Parsed { value: file, diagnostics, document } = yaml::parse::<File>(&text);
    let mut problems = Problems::new(&document);
    let tls = tls::validate(file.tls_server_config, sources, &mut problems);
    let headers = file.http_server_config.validate(&mut problems);
    let users = users::validate(file.basic_auth_users, &mut problems);
    let rate = problems.keep(file.rate_limit.validate(&document)).flatten();
    let warnings = problems.finish(&diagnostics)?;
    let limiter = rate.map(|rate| Arc::new(RateLimiter::new(rate, Instant::now())));
    Ok(WebConfig { tls, headers, users, limiter, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_key_does_not_hide_a_missing_one() {
        let mistakes = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("web.yml");
            std::fs::write(&path, text).unwrap();
            WebConfig::load(&path).1.unwrap_err().to_string()
        };
        let missing = "tls_server_config: key_file is missing";
        let text = mistakes("tls_server_config: {cert: a, colour: red}\n");
        assert!(text.contains("colour: unknown key") && text.contains(missing), "{text}");
        // These are one mistake: the key is there.
        for key in ["key_fil: b", "key_file: [b]"] {
            let text = mistakes(&format!("tls_server_config: {{cert: a, {key}}}\n"));
            assert!(!text.contains(missing), "{text}");
        }
        // A name that is a part of the section's is of another one.
        let text = mistakes("rate: 5\nrate_limit: {interval: 1s}\n");
        assert!(text.contains("rate: unknown key") && text.contains("burst is missing"), "{text}");
    }

    #[test]
    fn each_problem_has_the_position_of_its_value() {
        for (text, expected) in [
            (
                "tls_server_config:\n  cert_file: nowhere.pem\n  min_version: TLS99\n  client_auth_type: x\n  \
                 cipher_suites: [TLS_AES_128_GCM_SHA256, x]\n",
                &[
                    "line 3, column 16: tls_server_config.min_version: \"TLS99\" is not one of: TLS12, TLS13",
                    "line 5, column 43: tls_server_config.cipher_suites: \"x\" is not one of: TLS_AES_128",
                    "line 2, column 14: tls_server_config.cert_file: cannot read ",
                    "line 2, column 3: tls_server_config: key_file is missing (or key with inline PEM)",
                    "line 4, column 21: tls_server_config.client_auth_type: \"x\" is not one of: NoClientCert, ",
                ][..],
            ),
            (
                "tls_server_config: {cert: a, cert_file: b, max_version: TLS10}\n",
                &[
                    "line 1, column 57: tls_server_config.max_version: no supported version is left: ",
                    "line 1, column 41: tls_server_config.cert_file: tls_server_config.cert is set, too: ",
                    "line 1, column 20: tls_server_config: key_file is missing ",
                ],
            ),
            (
                "basic_auth_users: {a: b, a.b: c, \"d[1]\": e, \"[x]\": f}\nrate_limit: {interval: 1s}\n",
                &[
                    "line 1, column 52: basic_auth_users.[x]: is not a bcrypt hash",
                    "line 1, column 23: basic_auth_users.a: is not a bcrypt hash",
                    "line 1, column 31: basic_auth_users.a.b: is not a bcrypt hash",
                    "line 1, column 42: basic_auth_users.d[1]: is not a bcrypt hash",
                    "line 2, column 24: rate_limit: burst is missing; for example 20",
                ],
            ),
            (
                "rate_limit: {burst: 2}\nhttp_server_config: {headers: {X-Frame-Options: foo, Server: a}}\n",
                &[
                    "line 2, column 62: http_server_config.headers.Server: header cannot be set; allowed: ",
                    "line 2, column 49: http_server_config.headers.X-Frame-Options: \"foo\" is not one of: ",
                    "line 1, column 21: rate_limit.burst: rate_limit.interval is missing",
                ],
            ),
            (
                "rate_limit: {interval: 1s, burst: 0}\n",
                &[
                    "line 1, column 35: rate_limit.burst: must be more than 0: 0 rejects every request",
                ],
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("web.yml");
            std::fs::write(&path, text).unwrap();
            let error = WebConfig::load(&path).1.unwrap_err();
            assert_eq!(error.lines().len(), expected.len(), "{error}");
            for (line, says) in error.lines().iter().zip(expected) {
                assert!(line.contains(&format!("web.yml: {says}")), "{says}\n{error}");
            }
        }
    }
}
