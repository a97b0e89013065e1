//! The HTTP/1.1 server: accepts connections, terminates TLS if the web config enables it, enforces limits and
//! deadlines, and shuts down without truncating responses.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Router};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::error_response::unavailable;
use super::limits::{
    Connections, DeadlineBody, DeadlineStream, Deadlines, Limits, Permits, Slot, locked,
};
use super::security::Security;
use super::tls;

/// How long to wait after a failed accept: without free file descriptors it would fail again at once.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(200);
/// The client has gone before it was accepted.
const GONE: [ErrorKind; 3] =
    [ErrorKind::ConnectionAborted, ErrorKind::ConnectionRefused, ErrorKind::ConnectionReset];
/// Minimum interval of the log lines about too many connections, and about failed accepts.
const LOG_FULL_EVERY: Duration = Duration::from_secs(60);
/// Minimum interval of the log lines about failed handshakes, for each reason.
const LOG_REFUSED_EVERY: Duration = Duration::from_secs(10);
/// The first byte of a TLS handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;

/// How a request is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// The response is ready.
    Ready,
    /// The response is built for the request; at most [`Limits::concurrent_api`] at a time.
    Api,
    /// As `Api`, with a response of the size of a file: it may take longer to begin, and has no read deadline.
    Download,
}

/// The class of a request by its path.
pub type Classify = fn(path: &str) -> RequestClass;

/// A server on any number of listeners, which share its limits.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

#[derive(Debug)]
struct Shared {
    security: Arc<Security>,
    router: TowerToHyperService<Router>,
    connections: Arc<Connections>,
    requests: Arc<Semaphore>,
    api: Arc<Semaphore>,
    log: LogThrottle,
    classify: Classify,
    limits: Limits,
}

impl Server {
    /// A server without listeners.
    pub fn new(
        security: Arc<Security>,
        router: Router,
        limits: Limits,
        classify: Classify,
    ) -> Self {
        let shared = Arc::new(Shared {
            security,
            router: TowerToHyperService::new(router),
            connections: Arc::default(),
            requests: Semaphore::new(limits.concurrent_requests).into(),
            api: Semaphore::new(limits.concurrent_api).into(),
            log: LogThrottle::default(),
            classify,
            limits,
        });
        Server { shared, stop: watch::Sender::new(false) }
    }

    /// Serves on a listener, on the current runtime.
    pub fn serve(&self, listener: TcpListener) {
        tokio::spawn(Arc::clone(&self.shared).accept(listener, self.stop.subscribe()));
    }

    /// Stops accepting, and waits for the responses in progress; connections that exceed the limit are closed.
    pub async fn shutdown(self, limit: Duration) {
        self.stop.send_replace(true);
        // Each task has a receiver until it ends.
        let _ = tokio::time::timeout(limit, self.stop.closed()).await;
    }
}

/// Becomes true when the server stops.
type Stop = watch::Receiver<bool>;

async fn stopped(stop: &mut Stop) {
    // An error means that the server was dropped.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn is_plain_http(stream: &TcpStream) -> bool {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await;
    matches!(peeked, Ok(1)) && first[0] != HANDSHAKE && first[0].is_ascii_alphabetic()
}

/// Responds to HTTP requests on a TLS port, as the exporter toolkit does.
async fn refuse_plain_http(mut stream: TcpStream) -> Result<(), BoxError> {
    // The request is read, usually all of it: a close with unread bytes is a reset and drops the response.
    let _ = stream.try_read(&mut [0; 4096]);
    let answer = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\nthis port requires HTTPS: use https://\n";
    stream.write_all(answer).await?;
    stream.shutdown().await?;
    Ok(())
}

impl Shared {
    async fn accept(self: Arc<Self>, listener: TcpListener, mut stop: Stop) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stopped(&mut stop) => return,
            };
            match accepted {
                Ok((stream, peer)) => match self.connections.insert(peer.ip(), &self.limits) {
                    Ok(slot) => {
                        tokio::spawn(Arc::clone(&self).handle(stream, peer, slot, stop.clone()));
                    }
                    Err((scope, limit)) => {
                        if let Some(suppressed) =
                            self.log.due(scope, LOG_FULL_EVERY, Instant::now())
                        {
                            tracing::warn!(%peer, scope, limit, suppressed, "too many connections");
                        }
                    }
                },
                Err(error) if GONE.contains(&error.kind()) => {}
                Err(error) => {
                    if self.log.due("accept", LOG_FULL_EVERY, Instant::now()).is_some() {
                        tracing::warn!(%error, "accept failed");
                    }
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }

    /// Handles a connection until one side closes it or a deadline is over.
    async fn handle(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, slot: Slot, stop: Stop) {
        // Responses are written in few large pieces; without this the last piece could be delayed by 40 ms.
        let _ = stream.set_nodelay(true);
        let deadlines = Arc::new(Deadlines::new(Instant::now(), slot, self.limits));
        let handled = async {
            let Some(tls) = self.security.tls() else {
                return self.serve_http(stream, peer, &deadlines, stop).await;
            };
            if is_plain_http(&stream).await {
                self.log_refused(peer, "plain HTTP request on an HTTPS port", None);
                return refuse_plain_http(stream).await;
            }
            let accepted = TlsAcceptor::from(tls).accept(stream).await;
            let stream = accepted.inspect_err(|error| {
                if let Some(reason) = tls::refusal(error) {
                    self.log_refused(peer, reason, Some(error));
                }
            })?;
            self.serve_http(stream, peer, &deadlines, stop).await
        };
        tokio::select! {
            result = handled => if let Err(error) = result {
                tracing::debug!(%peer, %error, "connection failed");
            },
            reason = deadlines.expired() => tracing::debug!(%peer, reason, "connection closed"),
        }
    }

    async fn serve_http<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        self: &Arc<Self>,
        stream: S,
        peer: SocketAddr,
        deadlines: &Arc<Deadlines>,
        mut stop: Stop,
    ) -> Result<(), BoxError> {
        let stream = DeadlineStream { inner: stream, deadlines: Arc::clone(deadlines) };
        let limits = self.limits;
        let service = service_fn(|request: Request<Incoming>| {
            let shared = Arc::clone(self);
            let class = (shared.classify)(request.uri().path());
            let timeout = match class {
                RequestClass::Download => Duration::MAX,
                _ => limits.response_timeout,
            };
            let responding = deadlines.begin_response(Instant::now(), timeout);
            async move {
                let (response, permits) = shared.respond(request, class, peer).await;
                let limited = response.map(|body| DeadlineBody::new(body, responding, permits));
                Ok::<_, Infallible>(limited)
            }
        });
        let connection = http1::Builder::new()
            // It would hold for idle connections, too: see `Deadlines`.
            .header_read_timeout(None)
            .max_header_size(limits.head_bytes)
            // The first head is parsed when it is complete; at most this much is read until then.
            .max_buf_size(2 * limits.head_bytes)
            .auto_date_header(has_http_date(SystemTime::now()))
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended?,
            () = stopped(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await?;
            }
        }
        Ok(())
    }

    /// Responds to a request, with what that occupies of the limits until the response is written.
    async fn respond(
        &self,
        request: Request<Incoming>,
        class: RequestClass,
        peer: SocketAddr,
    ) -> (Response, Permits) {
        let limits = &self.limits;
        if request.body().size_hint().upper().is_none_or(|bytes| bytes > limits.body_bytes) {
            // The next bytes of this connection would be that body.
            let close = [(header::CONNECTION, "close")];
            let refused = (StatusCode::PAYLOAD_TOO_LARGE, close, "a request body is not allowed\n");
            return (refused.into_response(), Permits::default());
        }
        let mut permits = Permits::default();
        let answered = self.security.answer(request, peer.ip(), async |request: Request<_>| {
            // Requests that wait for one of few permits must not keep others out.
            let api = match class {
                RequestClass::Ready => None,
                // The semaphore is never closed.
                _ => Arc::clone(&self.api).acquire_owned().await.ok(),
            };
            let Ok(permit) = Arc::clone(&self.requests).try_acquire_owned() else {
                return unavailable("too many concurrent requests: try again");
            };
            permits = [Some(permit), api];
            let Ok(response) = self.router.call(request.map(Body::new)).await;
            response
        });
        let timeout = match class {
            RequestClass::Download => limits.download_handler_timeout,
            RequestClass::Ready | RequestClass::Api => limits.handler_timeout,
        };
        match tokio::time::timeout(timeout, answered).await {
            Ok(response) => (response, permits),
            Err(_) => (unavailable("the request timed out: try again"), Permits::default()),
        }
    }

    /// Logs that a client failed before its first request; rate-limited.
    fn log_refused(&self, peer: SocketAddr, reason: &'static str, error: Option<&io::Error>) {
        if let Some(suppressed) = self.log.due(reason, LOG_REFUSED_EVERY, Instant::now()) {
            let error = error.map(tracing::field::display);
            tracing::info!(%peer, reason, error, suppressed, "client refused");
        }
    }
}

/// Limits log lines that clients can cause: when one of each kind was logged last, and how many were
/// suppressed since.
#[derive(Debug, Default)]
struct LogThrottle {
    kinds: Mutex<HashMap<&'static str, (Instant, u64)>>,
}

impl LogThrottle {
    /// Whether a line of this kind is due: `Some` with the number suppressed since the last one if that was
    /// at least `every` ago; otherwise this one is suppressed.
    fn due(&self, kind: &'static str, every: Duration, now: Instant) -> Option<u64> {
        let mut kinds = locked(&self.kinds);
        match kinds.get_mut(kind) {
            Some((last, suppressed)) if now.saturating_duration_since(*last) < every => {
                *suppressed = suppressed.saturating_add(1);
                None
            }
            known => {
                let suppressed = known.map_or(0, |(_, suppressed)| *suppressed);
                kinds.insert(kind, (now, 0));
                Some(suppressed)
            }
        }
    }
}

/// Whether the header Date can have a time: hyper panics before 1970 and after 9999. Without a usable clock a server
/// sends no Date (RFC 9110, 6.6.1).
fn has_http_date(now: SystemTime) -> bool {
    const YEAR_10000: Duration = Duration::from_secs(253_402_300_800);
    // A connection may last for a day.
    const MARGIN: Duration = Duration::from_secs(24 * 3600);
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    since.is_ok_and(|since| since + MARGIN < YEAR_10000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_a_kind_per_interval() {
        let throttle = LogThrottle::default();
        let began = Instant::now();
        let due = |kind, seconds| {
            let now = began + Duration::from_secs(seconds);
            throttle.due(kind, Duration::from_secs(10), now)
        };
        assert_eq!([due("a", 0), due("a", 1), due("a", 9)], [Some(0), None, None]);
        assert_eq!([due("b", 9), due("b", 18)], [Some(0), None], "kinds are apart");
        assert_eq!(
            [due("a", 10), due("a", 11), due("a", 20), due("a", 90)],
            [Some(2), None, Some(1), Some(0)]
        );
    }

    #[test]
    fn no_date_is_sent_by_a_clock_beyond_the_year_9999_or_before_1970() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(has_http_date(SystemTime::now()) && has_http_date(at(0)));
        assert!(has_http_date(at(253_402_200_000)) && !has_http_date(at(253_402_300_700)));
        assert!(!has_http_date(at(1 << 40)));
        assert!(!has_http_date(at(0).checked_sub(Duration::from_secs(1)).unwrap()));
    }
}
