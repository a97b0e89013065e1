//! The Host header of a request: HTTP/1.1 wants one, and one alone (RFC 9112, 3.2).

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Version, header};
use axum::middleware::Next;
use axum::response::Response;

use super::refusal::wrong;

/// Answers a request, or refuses one whose Host header is missing or wrong.
pub async fn require(request: Request, next: Next) -> Response {
    match problem(request.version(), request.headers()) {
        Some(problem) => wrong(problem),
        None => next.run(request).await,
    }
}

/// What is wrong with the Host header. HTTP/1.0 needs none, and HTTP/2 has `:authority` in its place.
fn problem(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_11 => Some("the Host header is missing"),
        (None, _) => None,
        (Some(_), Some(_)) => Some("the Host header is there twice"),
        (Some(host), None) if is_host(host.as_bytes()) => None,
        (Some(_), None) => Some("the Host header must be a host, or a host and a port"),
    }
}

/// `uri-host [ ":" port ]`, in which the host may be empty (RFC 3986, 3.2.2).
fn is_host(value: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(value) else { return value.is_empty() };
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    // A user stands before the host: then it does not begin with the host.
    authority.as_str().starts_with(authority.host())
        && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_wanted_and_one_alone() {
        for (version, hosts, is_well) in [
            (Version::HTTP_11, &["monitor"][..], true),
            (Version::HTTP_11, &["monitor:10315"], true),
            (Version::HTTP_11, &["192.0.2.7:10315"], true),
            (Version::HTTP_11, &["[::1]:10315"], true),
            (Version::HTTP_11, &["[::1]"], true),
            (Version::HTTP_11, &[""], true),
            (Version::HTTP_11, &[], false),
            (Version::HTTP_11, &["a", "a"], false),
            (Version::HTTP_11, &["a b"], false),
            (Version::HTTP_11, &["a/b"], false),
            (Version::HTTP_11, &["user@a"], false),
            (Version::HTTP_11, &["a:x"], false),
            (Version::HTTP_11, &["a:123456"], false),
            (Version::HTTP_11, &["[::1"], false),
            (Version::HTTP_11, &["a, b"], false),
            (Version::HTTP_10, &[], true),
            (Version::HTTP_10, &["a", "a"], false),
            (Version::HTTP_2, &[], true),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, host.parse().unwrap());
            }
            assert_eq!(problem(version, &headers).is_none(), is_well, "{version:?} {hosts:?}");
        }
    }
}
