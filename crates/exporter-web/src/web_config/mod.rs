//! The web config file: TLS, logins, rate limit and response headers.
//!
//! Its keys are those of the Prometheus exporter toolkit (docs/web-configuration.md there), so that a
//! site has one file for all its exporters; docs/security.md lists the differences. Files that are named
//! are read and checked, too: certificates and their keys fit, hashes are bcrypt hashes.

mod protection;
mod tls;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;
use yaml_config::ConfigError;
use yaml_config::file::{self, Stamp, stamp};
use yaml_config::suggestion::suggestion;
use yaml_config::yaml::{self, Diagnostic, Document};

use crate::login::{self, Users, UsersSection};
use crate::security::RateLimiter;

pub(crate) use tls::ClientAuth;
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
        let Some(Rate { interval, burst }) = self.limiter.as_ref().map(|it| it.rate) else {
            return Ok(());
        };
        write!(f, "; rate limit 1 request per {interval:?}, burst {burst}")
    }
}

/// The error for problems of a web config file: a line each.
pub(crate) fn error<P: Display>(path: &Path, problems: impl IntoIterator<Item = P>) -> ConfigError {
    ConfigError::in_file("web config file", path, problems)
}

/// What is found about the settings while they are checked.
#[derive(Debug)]
pub(crate) struct Problems<'d> {
    /// Where the values are.
    pub document: &'d Document,
    /// Valid settings that may be unintended.
    pub warnings: Vec<String>,
    /// Why the file cannot be used.
    pub mistakes: Vec<String>,
}

impl Problems<'_> {
    /// The value, or `None` with its mistake added to the others.
    pub fn keep<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|mistake| self.mistakes.push(mistake)).ok()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    tls_server_config: tls::TlsSection,
    http_server_config: HttpSection,
    basic_auth_users: UsersSection,
    rate_limit: RateLimitSection,
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
    let mut found = Problems { document: &document, warnings: Vec::new(), mistakes: Vec::new() };
    let tls = tls::validate(file.tls_server_config, sources, &mut found);
    let headers = file.http_server_config.validate(&mut found);
    let users = login::validate(file.basic_auth_users, &mut found);
    let rate = found.keep(file.rate_limit.validate(&document)).flatten();
    let Problems { warnings, mut mistakes, .. } = found;
    if diagnostics.is_empty() && mistakes.is_empty() {
        let warnings = warnings.iter().map(|warning| yaml::single_line(warning)).collect();
        let limiter = rate.map(|rate| Arc::new(RateLimiter::new(rate, Instant::now())));
        return Ok(WebConfig { tls, headers, users, limiter, warnings });
    }
    // A key that is misspelt or has no usable value is not missing, too.
    mistakes.retain(|problem| {
        let missing =
            problem.split_once(" is missing").and_then(|(text, _)| text.rsplit(' ').next());
        !missing.is_some_and(|missing| diagnostics.iter().any(|it| is_about(it, problem, missing)))
    });
    Err(diagnostics.iter().map(ToString::to_string).chain(mistakes).collect())
}

/// Whether a diagnostic is about the key that is missing according to a problem of the same section, or about all of
/// the section.
fn is_about(diagnostic: &Diagnostic, problem: &str, missing: &str) -> bool {
    let Some((section, key)) = diagnostic.key.split_once('.') else {
        return problem.contains(&*diagnostic.key);
    };
    let name = missing.rsplit('.').next().unwrap_or(missing);
    problem.contains(section) && (key == name || !suggestion(key, [name]).is_empty())
}

/// A problem at the value of a key: its line, its column and the key.
pub(crate) fn at(document: &Document, key: &str, problem: impl Display) -> String {
    format!("{}: {problem}", place(document, key, key))
}

/// The position of the value of a key, and the key that it is about.
fn place(document: &Document, value: &str, key: &str) -> String {
    let found = document.diagnostic(value, "");
    let (line, column) = found.map_or((1, 1), |found| (found.line, found.column));
    format!("line {line}, column {column}: {key}")
}

/// The headers that may be set, and the values that they may have; without one, any. They are the exporter
/// toolkit's: others would be diagnostics for a site's other exporters.
const HEADERS: [(&str, &[&str]); 5] = [
    ("Content-Security-Policy", &[]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-XSS-Protection", &[]),
    ("Strict-Transport-Security", &[]),
];

/// `http_server_config`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    http2: Option<bool>,
    headers: BTreeMap<String, String>,
}

impl HttpSection {
    fn validate(self, found: &mut Problems<'_>) -> Vec<(HeaderName, HeaderValue)> {
        let document = found.document;
        // The key is accepted, as most exporters speak HTTP/2; a scrape gains nothing by it.
        if self.http2 == Some(true) {
            let problem = "HTTP/2 is not supported; HTTP/1.1 is used";
            found.warnings.push(at(document, "http_server_config.http2", problem));
        }
        let headers = self.headers.iter().filter_map(|(name, value)| {
            let key = format!("http_server_config.headers.{name}");
            let sent = header(name, value).map_err(|problem| at(document, &key, problem));
            found.keep(sent).flatten()
        });
        headers.collect()
    }
}

/// A header as it is sent; `None` if its value is empty.
fn header(name: &str, value: &str) -> Result<Option<(HeaderName, HeaderValue)>, String> {
    let Some((_, allowed)) = HEADERS.iter().find(|(known, _)| *known == name) else {
        let known = HEADERS.map(|(known, _)| known).join(", ");
        return Err(format!("header cannot be set; allowed: {known}"));
    };
    if value.is_empty() {
        return Ok(None);
    }
    if !allowed.is_empty() && !allowed.contains(&value) {
        return Err(format!("{value:?} is not one of: {}", allowed.join(", ")));
    }
    let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
    let (Ok(name), Ok(value)) = parsed else {
        return Err(format!("{value:?} is not a valid header value"));
    };
    Ok(Some((name, value)))
}

/// A token bucket: each request takes a token, and there is one more every `interval` up to `burst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub interval: Duration,
    pub burst: u32,
}

/// `rate_limit`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RateLimitSection {
    interval: Option<String>,
    burst: Option<u32>,
}

impl RateLimitSection {
    /// The limit, if there is one: an interval of 0 is none.
    fn validate(self, document: &Document) -> Result<Option<Rate>, String> {
        const INTERVAL: &str = "rate_limit.interval";
        let wrong_burst = |problem| Err(at(document, "rate_limit.burst", problem));
        let Some(written) = self.interval else {
            let is_limit = self.burst.is_some_and(|burst| burst > 0);
            return if is_limit { wrong_burst("rate_limit.interval is missing") } else { Ok(None) };
        };
        let Some(interval) = duration(&written) else {
            let problem = format!("{written:?} is not a duration such as 1s or 500ms");
            return Err(at(document, INTERVAL, problem));
        };
        match self.burst {
            _ if interval.is_zero() => Ok(None),
            // The exporter toolkit would answer no request.
            Some(0) => wrong_burst("must be more than 0: 0 rejects every request"),
            Some(burst) => Ok(Some(Rate { interval, burst })),
            None => {
                let place = place(document, INTERVAL, "rate_limit");
                Err(format!("{place}: burst is missing; for example 20"))
            }
        }
    }
}

/// A duration as Go writes it: `1m30s`, `1.5h`; a number alone is nanoseconds, as for the exporter toolkit.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(nanos) = text.parse() {
        return Some(Duration::from_nanos(nanos));
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let is_number = |char: char| char.is_ascii_digit() || char == '.';
        let (number, behind) = rest.split_at(rest.find(|char| !is_number(char))?);
        let end = behind.find(is_number).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let worth = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * worth;
        rest = behind;
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

/// The most bytes of a file: a chain of certificates is some 10 kB.
const MAX_BYTES: u64 = 1 << 20;

/// The files that a configuration was read from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The folder of the first one: relative names in it are names of files there.
    folder: PathBuf,
    seen: Vec<(PathBuf, Option<Stamp>)>,
}

impl Sources {
    pub(super) fn new(path: &Path) -> Self {
        Sources { folder: path.parent().unwrap_or(Path::new("")).to_owned(), seen: Vec::new() }
    }

    /// Reads a file. Its stamp is taken before, so that a change during the read is detected later.
    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        let is_main = self.seen.is_empty();
        self.seen.push((path.to_owned(), stamp(path)));
        // A message about the first one begins with its path.
        let what = if is_main { "the file".into() } else { path.to_string_lossy() };
        file::read(path, MAX_BYTES).map_err(|error| format!("cannot read {what}: {error}"))
    }

    /// Their paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.seen.iter().map(|(path, _)| &**path)
    }

    /// Whether any of them has changed since it was read.
    pub fn have_changed(&self) -> bool {
        self.seen.iter().any(|(path, seen)| stamp(path) != *seen)
    }
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

    #[test]
    fn durations_in_go_syntax() {
        for (text, millis) in [
            ("1s", Some(1_000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            ("500ms", Some(500)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("2000000", Some(2)),
            ("", None),
            ("1", Some(0)),
            ("1.5", None),
            ("s", None),
            ("1d", None),
            ("-1s", None),
            ("1s ", None),
            ("99999999999999999999999h", None),
        ] {
            let parsed = duration(text).map(|duration| duration.as_millis());
            assert_eq!(parsed, millis, "{text:?}");
        }
    }
}
