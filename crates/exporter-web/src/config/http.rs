//! `http_server_config`: HTTP/2, and headers that go with each answer.

use std::collections::BTreeMap;

use super::at;
use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;
use site_config::yaml::Spanned;

/// The headers that may be set, and the values that they may have, if not any. They are the toolkit's:
/// what more there could be would not be the same on a site's other exporters.
const HEADERS: [(&str, &[&str]); 5] = [
    ("Content-Security-Policy", &[]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-XSS-Protection", &[]),
    ("Strict-Transport-Security", &[]),
];

/// The section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Section {
    pub http2: Option<bool>,
    headers: Option<BTreeMap<String, Spanned<String>>>,
}

impl Section {
    /// The headers, as they go out.
    pub fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Vec<String>> {
        let (mut headers, mut wrong) = (Vec::new(), Vec::new());
        for (name, value) in self.headers.iter().flatten() {
            match header(name, &value.value) {
                Ok(header) => headers.extend(header),
                Err(problem) => {
                    wrong.push(at(value, &format!("http_server_config.headers.{name}"), problem));
                }
            }
        }
        if wrong.is_empty() { Ok(headers) } else { Err(wrong) }
    }
}

/// A header as it goes out; none if its value is empty.
fn header(name: &str, value: &str) -> Result<Option<(HeaderName, HeaderValue)>, String> {
    let Some((_, allowed)) = HEADERS.iter().find(|(known, _)| *known == name) else {
        let known = HEADERS.map(|(known, _)| known).join(", ");
        return Err(format!("cannot be set; these can: {known}"));
    };
    if value.is_empty() {
        return Ok(None);
    }
    if !allowed.is_empty() && !allowed.contains(&value) {
        return Err(format!("{value:?} is none of: {}", allowed.join(", ")));
    }
    let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
    let (Ok(name), Ok(value)) = parsed else {
        return Err(format!("{value:?} cannot be sent in a header"));
    };
    Ok(Some((name, value)))
}
