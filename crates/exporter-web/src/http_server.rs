//! The HTTP/1.1 server: accepts connections, terminates TLS if the web config enables it, enforces limits and
//! deadlines, and shuts down without truncating responses.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::body::Body;
use axum::http::{HeaderValue, Request, header};
use axum::response::Response;
use axum::{BoxError, Router};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tracing::Instrument;

use super::connections::{Connections, Slot};
use super::deadlines::{DeadlineBody, DeadlineStream, Deadlines};
use super::limits::Limits;
use super::metrics::WebMetrics;
use super::refusals::{LogThrottle, Refusal, Refusals};
use super::request_class::RequestClass;
use super::request_permits::RequestPermits;
use super::security::Security;
use super::tls;

/// How long to wait after a failed accept: without free file descriptors it would fail again at once.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(200);
/// The client has gone before it was accepted.
const GONE: [ErrorKind; 3] =
    [ErrorKind::ConnectionAborted, ErrorKind::ConnectionRefused, ErrorKind::ConnectionReset];
/// Minimum interval of the log lines about failed accepts.
const LOG_ACCEPT_EVERY: Duration = Duration::from_secs(60);
/// Minimum interval of the log lines about failed handshakes, for each reason.
const LOG_REFUSED_EVERY: Duration = Duration::from_secs(10);
/// The first byte of a TLS handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;

type Classify = Box<dyn Fn(&str) -> RequestClass + Send + Sync>;

/// A server on any number of listeners, which share its limits.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

struct Shared {
    security: Arc<Security>,
    router: TowerToHyperService<Router>,
    connections: Arc<Connections>,
    requests: RequestPermits,
    refusals: Arc<Refusals>,
    metrics: WebMetrics,
    log: LogThrottle,
    classify: Classify,
    limits: Limits,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Server {
    /// A server without listeners. `classify` tells the class of a request by its path.
    pub fn new(
        security: Arc<Security>,
        router: Router,
        limits: Limits,
        metrics: WebMetrics,
        classify: impl Fn(&str) -> RequestClass + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            router: TowerToHyperService::new(router),
            connections: Arc::default(),
            requests: RequestPermits::new(limits, security.refusals()),
            refusals: security.refusals(),
            security,
            metrics,
            log: LogThrottle::default(),
            classify: Box::new(classify),
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
    let answer = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\
        X-Content-Type-Options: nosniff\r\n\r\nthis port requires HTTPS: use https://\n";
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
                Ok((stream, peer)) => {
                    if let Some(slot) = self.admit(peer) {
                        tokio::spawn(Arc::clone(&self).handle(stream, peer, slot, stop.clone()));
                    }
                }
                Err(error) if GONE.contains(&error.kind()) => {}
                Err(error) => {
                    if self.log.due("accept", LOG_ACCEPT_EVERY, Instant::now()).is_some() {
                        tracing::warn!(%error, "accept failed");
                    }
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }

    /// The place of a new connection. While there are too many, another one is closed for it, or it is refused.
    fn admit(&self, peer: SocketAddr) -> Option<Slot> {
        let admitted = self.connections.insert(peer.ip(), &self.limits, Instant::now());
        let Ok((slot, displaced)) = admitted else {
            self.refusals.record(Refusal::ConnectionLimit, peer.ip());
            return None;
        };
        if let Some(network) = displaced {
            self.refusals.record(Refusal::ConnectionDisplaced, network);
        }
        Some(slot)
    }

    /// Handles a connection until one side closes it or a deadline is over.
    async fn handle(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, slot: Slot, stop: Stop) {
        // Responses are written in few large pieces; without this the last piece could be delayed by 40 ms.
        let _ = stream.set_nodelay(true);
        let deadlines = Arc::new(Deadlines::new(slot, self.limits));
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
            reason = deadlines.expired() => {
                if reason.is_slow_client() {
                    self.refusals.record(Refusal::SlowClient, peer.ip());
                }
                tracing::debug!(%peer, reason = reason.label(), "connection closed");
            }
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
            let began = Instant::now();
            let responding = shared.requests.begin(class, deadlines, began);
            let deadlines = Arc::clone(deadlines);
            // At level error, since a span is only there where its level is logged.
            let span = tracing::error_span!("request", class = class.label());
            let respond = async move {
                let mut response = shared.respond(request, class, peer.ip(), &deadlines).await;
                shared.metrics.count(class, response.status(), began.elapsed());
                response
                    .headers_mut()
                    .entry(header::X_CONTENT_TYPE_OPTIONS)
                    .or_insert(HeaderValue::from_static("nosniff"));
                shared.requests.hold(&response, class, &deadlines);
                Ok::<_, Infallible>(response.map(|body| DeadlineBody::new(body, responding)))
            };
            respond.instrument(span)
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

    async fn respond(
        &self,
        request: Request<Incoming>,
        class: RequestClass,
        peer: IpAddr,
        deadlines: &Arc<Deadlines>,
    ) -> Response {
        if let Some(refusal) = self.requests.refusal(&request, peer, deadlines) {
            return refusal;
        }
        let left = deadlines.half_closed();
        let answered = self.security.answer(request, peer, left, async |request: Request<_>| {
            let handler = async {
                let Ok(response) = self.router.call(request.map(Body::new)).await;
                response
            };
            self.requests.with_permit(class, peer, deadlines, handler).await
        });
        self.requests.in_time(class, peer, answered).await
    }

    /// Logs that a client failed before its first request; rate-limited.
    fn log_refused(&self, peer: SocketAddr, reason: &'static str, error: Option<&io::Error>) {
        self.refusals.record(Refusal::Handshake, peer.ip());
        if let Some(suppressed) = self.log.due(reason, LOG_REFUSED_EVERY, Instant::now()) {
            let error = error.map(tracing::field::display);
            tracing::info!(%peer, reason, error, suppressed, "client refused");
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
    fn no_date_is_sent_by_a_clock_beyond_the_year_9999_or_before_1970() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(has_http_date(SystemTime::now()) && has_http_date(at(0)));
        assert!(has_http_date(at(253_402_200_000)) && !has_http_date(at(253_402_300_700)));
        assert!(!has_http_date(at(1 << 40)));
        assert!(!has_http_date(at(0).checked_sub(Duration::from_secs(1)).unwrap()));
    }
}
