//! Errors in one line of plain text, for programs and for people who use curl.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use exposition::unseen;

use super::blocking::BuildError;

/// A response with this status and the problem in one line. Parts of the request may be in it, and whoever reads it may do
/// so on a terminal.
pub fn error_response(status: StatusCode, problem: &str) -> Response {
    (status, one_line(problem)).into_response()
}

fn one_line(problem: &str) -> String {
    let shown = |char| if char == '\n' { ' ' } else { unseen::printable(char) };
    problem.chars().map(shown).chain(['\n']).collect()
}

/// 400: the request is wrong.
pub fn bad_request(problem: &str) -> Response {
    error_response(StatusCode::BAD_REQUEST, problem)
}

/// 503: the client may try again after a second.
pub fn unavailable(problem: &str) -> Response {
    let response = error_response(StatusCode::SERVICE_UNAVAILABLE, problem);
    ([(header::RETRY_AFTER, "1")], response).into_response()
}

/// The problem of a 500.
pub const INTERNAL_ERROR: &str = "internal error: see the log of the exporter";

/// 500: a fault of the exporter.
pub fn internal_error() -> Response {
    error_response(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR)
}

/// The response where one could not be built.
pub fn unbuilt(error: BuildError) -> Response {
    match error {
        BuildError::Busy => unavailable("too many concurrent requests: try again"),
        BuildError::Panicked => internal_error(),
    }
}

/// Middleware that refuses requests whose Host header is missing or wrong: HTTP/1.1 requires exactly one
/// (RFC 9112, 3.2).
pub async fn require_host(request: Request, next: Next) -> Response {
    match host_problem(request.version(), request.headers()) {
        Some(problem) => bad_request(problem),
        None => next.run(request).await,
    }
}

/// What is wrong with the Host header. HTTP/1.0 needs none.
fn host_problem(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_11 => Some("the Host header is missing"),
        (None, _) => None,
        (Some(_), Some(_)) => Some("more than one Host header"),
        (Some(host), None) if is_host(host.as_bytes()) => None,
        (Some(_), None) => Some("the Host header must be a host, or a host and a port"),
    }
}

/// `uri-host [ ":" port ]`, in which the host may be empty (RFC 3986, 3.2.2).
fn is_host(value: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(value) else { return value.is_empty() };
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    // With a user part the authority does not begin with the host.
    authority.as_str().starts_with(authority.host())
        && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_without_characters_that_a_terminal_obeys() {
        let problem = "no node \u{1b}[2J\u{9b}31m\u{202e}\r\nä";
        let line = "no node \u{fffd}[2J\u{fffd}31m\u{fffd}\u{fffd} ä\n";
        assert_eq!(one_line(problem), line);
    }

    #[test]
    fn exactly_one_valid_host_header() {
        for (version, hosts, is_valid) in [
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
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, host.parse().unwrap());
            }
            assert_eq!(
                host_problem(version, &headers).is_none(),
                is_valid,
                "{version:?} {hosts:?}"
            );
        }
    }
}
