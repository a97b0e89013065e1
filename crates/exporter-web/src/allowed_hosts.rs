//! The names under which a server may be reached, against DNS rebinding: a page of a foreign site whose name is suddenly
//! resolved to an address of this network is of the same origin for the browser, and could read everything. Its requests
//! still have the foreign name as Host.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderValue, Request, header};

/// The names, and the paths that everybody may request.
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    names: Vec<String>,
    open: &'static [&'static str],
}

/// A name as it is compared: without a dot at the end, in lower case.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

impl AllowedHosts {
    /// Allows these names, and any name for the paths in `open`.
    pub fn new(names: &[String], open: &'static [&'static str]) -> Self {
        AllowedHosts { names: names.iter().map(|name| plain(name)).collect(), open }
    }

    /// Why a text is no name of a host; `None` if it is one.
    pub fn problem(name: &str) -> Option<String> {
        let is_name = !name.is_empty()
            && name.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char));
        (!is_name).then(|| {
            format!("{name:?} is not a host name such as ib.example: without scheme, port and path")
        })
    }

    /// Whether a request may be answered. One without a Host is of a program: browsers always send it.
    pub(crate) fn allows<B>(&self, request: &Request<B>) -> bool {
        let headers = request.headers().get_all(header::HOST);
        let is_allowed = |host: &HeaderValue| host.to_str().is_ok_and(|host| self.has(host));
        self.open.contains(&request.uri().path())
            || match request.uri().authority() {
                // It takes precedence (RFC 9112, 3.2.2).
                Some(authority) => self.has(authority.as_str()),
                None => headers.iter().all(is_allowed),
            }
    }

    /// Whether a host with or without a port is allowed. An address or `localhost` is no name that somebody else could
    /// have resolved to this server.
    fn has(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = plain(authority.host());
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || address.parse::<IpAddr>().is_ok() || self.names.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_names_and_addresses_pass() {
        let names = ["IB.example".to_owned(), "ib2.example.".to_owned()];
        let hosts = AllowedHosts::new(&names, &["/-/healthy"]);
        for (uri, host, is_allowed) in [
            ("/", Some("ib.example"), true),
            ("/metrics?a=b", Some("Ib.Example:10315"), true),
            ("/", Some("ib2.example"), true),
            ("/", Some("ib.example."), true),
            ("/", Some("192.0.2.7:10315"), true),
            ("/", Some("[2001:db8::7]:10315"), true),
            ("/", Some("localhost:10315"), true),
            ("/", None, true),
            ("/", Some("evil.example"), false),
            ("/", Some("ib.example.evil.example"), false),
            ("/", Some("xib.example"), false),
            ("/", Some("192.0.2.7.evil.example"), false),
            ("/", Some(""), false),
            ("/", Some("a b"), false),
            ("/-/healthy", Some("evil.example"), true),
            ("/-/healthy/", Some("evil.example"), false),
            ("http://evil.example/", Some("ib.example"), false),
            ("http://ib.example/", Some("evil.example"), true),
        ] {
            let mut request = Request::builder().uri(uri);
            if let Some(host) = host {
                request = request.header(header::HOST, host);
            }
            assert_eq!(hosts.allows(&request.body(()).unwrap()), is_allowed, "{uri} {host:?}");
        }
        for name in ["", "ib.example:10315", "https://ib.example", "*", "a/b"] {
            assert!(AllowedHosts::problem(name).is_some(), "{name:?}");
        }
        assert_eq!(AllowedHosts::problem("ib-1.example"), None);
    }
}
