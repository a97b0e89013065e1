//! `http_server_config`: headers of each response, and HTTP/2, which is not spoken.

use std::collections::BTreeMap;

use super::at;
use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;
use site_config::yaml::Spanned;

/// The headers that may be set, and the values that they may have; without one, any. They are the exporter
/// toolkit's: others would be mistakes for a site's other exporters.
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
    http2: Option<Spanned<bool>>,
    headers: Option<BTreeMap<String, Spanned<String>>>,
}

impl Section {
    /// The key is accepted, as most exporters speak HTTP/2; a scrape gains nothing by it.
    pub fn http2_warning(&self) -> Option<String> {
        let wanted = self.http2.filter(|http2| http2.value)?;
        Some(at(&wanted, "http_server_config.http2", "HTTP/2 is not spoken: HTTP/1.1 is"))
    }

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
