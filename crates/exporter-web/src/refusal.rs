//! No answer, and why not, in one line of plain text: for programs and for whoever asks by hand.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// No answer, and why not, in one line.
pub fn refused(status: StatusCode, problem: &str) -> Response {
    (status, format!("{}\n", problem.replace('\n', " "))).into_response()
}

/// A request that cannot be meant so, in one line.
pub fn wrong(problem: &str) -> Response {
    refused(StatusCode::BAD_REQUEST, problem)
}

/// No answer now, and perhaps soon.
pub fn busy(problem: &str) -> Response {
    let mut response = refused(StatusCode::SERVICE_UNAVAILABLE, problem);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
