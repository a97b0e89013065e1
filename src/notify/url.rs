//! The address of a receiver.

use std::str::FromStr;

use ureq::http::Uri;
use ureq::http::uri::{Authority, PathAndQuery};

use crate::remote::parse_uri;

/// The address of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl(Uri);

impl FromStr for WebhookUrl {
    type Err = String;

    /// The error does not repeat the address: its path may be a secret.
    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            "not a URL such as https://alerts.example/fabric: http or https, and a host without user; for a login use \
             --notify.token-file"
                .to_owned()
        };
        let uri = parse_uri(url).ok_or_else(wrong)?;
        let host = uri.authority().filter(|it| !it.as_str().contains('@')).map(Authority::host);
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        if !is_web || host.is_none_or(str::is_empty) || url.contains('#') {
            return Err(wrong());
        }
        Ok(WebhookUrl(uri))
    }
}

impl WebhookUrl {
    pub(super) fn uri(&self) -> &Uri {
        &self.0
    }

    /// Whether it is one of https.
    pub(super) fn is_secure(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(if self.is_secure() { 443 } else { 80 })
    }

    /// What follows scheme, host and port, as a whole and in parts: it may be a secret.
    pub(super) fn secrets(&self) -> [&str; 3] {
        let whole = self.0.path_and_query().map(PathAndQuery::as_str);
        [whole.unwrap_or_default(), self.0.path(), self.0.query().unwrap_or_default()]
    }

    /// Scheme, host and port: the rest may be a secret.
    pub fn name(&self) -> String {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let host = self.0.authority().map(Authority::as_str).unwrap_or_default();
        format!("{scheme}://{host}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_needs_scheme_and_host_and_has_no_user() {
        for (url, name, port) in [
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000", 9000),
            ("https://hooks.example/T0/B0/secret?x=y", "https://hooks.example", 443),
            ("http://[::1]/", "http://[::1]", 80),
            ("http://[::1]:9000", "http://[::1]:9000", 9000),
        ] {
            let url: WebhookUrl = url.parse().unwrap();
            assert_eq!((&*url.name(), url.port()), (name, port));
        }
        for url in [
            "",
            "hooks.example",
            "/fabric",
            "ftp://hooks.example",
            "https://",
            "https:///x",
            "https://me:secret@hooks.example",
            "https://a b",
            "https://hooks.example/#a",
            "http://h:99999/",
            "http://h:x/",
            "http://[::1]:99999/",
        ] {
            let problem = url.parse::<WebhookUrl>().unwrap_err();
            assert!(problem.starts_with("not a URL such as "), "{url}");
            assert!(!problem.contains("secret"));
        }
    }
}
