//! `http_server_config`: HTTP/2, and headers that go with each answer.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::at;

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
    pub fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let mut headers = Vec::new();
        for (name, value) in self.headers.iter().flatten() {
            let wrong = |problem: String| {
                Err(at(value, &format!("http_server_config.headers.{name}"), problem))
            };
            let Some((_, allowed)) = HEADERS.iter().find(|(known, _)| known == name) else {
                let known = HEADERS.map(|(known, _)| known).join(", ");
                return wrong(format!("cannot be set; these can: {known}"));
            };
            if value.value.is_empty() {
                continue;
            }
            if !allowed.is_empty() && !allowed.contains(&value.value.as_str()) {
                return wrong(format!("{:?} is none of: {}", value.value, allowed.join(", ")));
            }
            let parsed = (HeaderName::try_from(name), HeaderValue::try_from(&value.value));
            let (Ok(name), Ok(sent)) = parsed else {
                return wrong(format!("{:?} cannot be sent in a header", value.value));
            };
            headers.push((name, sent));
        }
        Ok(headers)
    }
}
