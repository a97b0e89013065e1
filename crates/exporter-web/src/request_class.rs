//! Classes of requests.

/// How a request is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// The response is ready, or nearly so.
    Ready,
    /// The response is a page or a list that is built for the request; at most
    /// [`Limits::concurrent_builds`](crate::Limits::concurrent_builds) at a time.
    Page,
    /// The same for programs, with permits of their own: neither waits for the other.
    Api,
    /// As `Api`, with a response of the size of a file: it may take longer to begin, and has a minimum rate in place
    /// of a read deadline.
    Download,
}

impl RequestClass {
    /// Its label in metrics and in the log.
    pub fn label(self) -> &'static str {
        match self {
            RequestClass::Ready => "ready",
            RequestClass::Page => "page",
            RequestClass::Api => "api",
            RequestClass::Download => "download",
        }
    }
}
