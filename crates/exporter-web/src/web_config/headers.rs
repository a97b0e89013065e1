//! `http_server_config`: headers of all responses.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;

use super::problems::{Problems, at};

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
pub(super) struct HttpSection {
    http2: Option<bool>,
    headers: BTreeMap<String, String>,
}

impl HttpSection {
    pub fn validate(self, problems: &mut Problems<'_>) -> Vec<(HeaderName, HeaderValue)> {
        let document = problems.document;
        // The key is accepted, as most exporters speak HTTP/2; a scrape gains nothing by it.
        if self.http2 == Some(true) {
            let problem = "HTTP/2 is not supported; HTTP/1.1 is used";
            problems.warn(at(document, "http_server_config.http2", problem));
        }
        let headers = self.headers.iter().filter_map(|(name, value)| {
            let key = format!("http_server_config.headers.{name}");
            let sent = header(name, value).map_err(|problem| at(document, &key, problem));
            problems.keep(sent).flatten()
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
