//! What happens on a listener: connections come in, are spoken with, and have to go.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::connections::{Connections, Place};
use super::limits::Limits;
use super::refusal::busy;
use super::security::Security;
use super::throttle::Throttle;
use super::tls;
use super::watched::{Answer, Watched};

/// How long nobody is taken in when there are no descriptors left: some are closed meanwhile.
const BREATH: Duration = Duration::from_millis(200);

/// How often it is logged at most that there are too many connections, or no descriptors.
const CROWDED_EVERY: Duration = Duration::from_secs(60);

/// How often it is logged at most, for each reason, that a handshake failed.
const REFUSED_EVERY: Duration = Duration::from_secs(10);

/// The first byte of a TLS handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;

/// A server on any number of listeners, which share its limits.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

#[derive(Debug)]
struct Shared {
    security: Arc<Security>,
    connections: Arc<Connections>,
    /// Places of what is made for who asks.
    made: Arc<Semaphore>,
    /// What clients can cause to be logged.
    log: Throttle,
    limits: Limits,
}

impl Server {
    /// One that listens nowhere yet. It has to be made on the runtime that it runs on.
    pub fn new(security: Arc<Security>, limits: Limits) -> Self {
        let connections = Arc::new(Connections::new(limits));
        let made = Arc::new(Semaphore::new(limits.made));
        let shared =
            Arc::new(Shared { security, connections, made, log: Throttle::default(), limits });
        let (stopper, mut stop) = watch::channel(false);
        let watched = Arc::clone(&shared);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    // Who is still there will be cut off anyway.
                    () = stopped(&mut stop) => return,
                    () = tokio::time::sleep(watched.limits.look_every) => {
                        watched.connections.look(Instant::now());
                    }
                }
            }
        });
        Server { shared, stop: stopper }
    }

    /// Serves at a listener from now on.
    pub fn serve(&self, listener: TcpListener, router: Router) {
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.subscribe());
        tokio::spawn(accept(listener, router, shared, stop));
    }

    /// Takes nobody in any more, and waits until those who are being answered are, but not for long.
    pub async fn end(self, limit: Duration) {
        self.stop.send_replace(true);
        let gone = async {
            while !self.shared.connections.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // Who takes longer is cut off.
        let _ = tokio::time::timeout(limit, gone).await;
    }
}

async fn accept(
    listener: TcpListener,
    router: Router,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
) {
    let mut stopping = stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stopping) => return,
        };
        match accepted {
            Ok((stream, peer)) => match shared.connections.open(Instant::now()) {
                Some(place) => {
                    let (shared, router) = (Arc::clone(&shared), router.clone());
                    tokio::spawn(converse(stream, peer, router, shared, place, stop.clone()));
                }
                None => {
                    if let Some(suppressed) = shared.log.due("crowd", CROWDED_EVERY, Instant::now())
                    {
                        let most = shared.limits.connections;
                        tracing::warn!(%peer, most, suppressed, "too many connections: one is turned away");
                    }
                }
            },
            // The client has gone before it came in.
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if shared.log.due("accept", CROWDED_EVERY, Instant::now()).is_some() {
                    tracing::warn!(%error, "nobody can be taken in for the moment");
                }
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Speaks with a client until one of both has enough.
async fn converse(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    shared: Arc<Shared>,
    place: Place,
    stop: watch::Receiver<bool>,
) {
    // Answers go out in few large pieces; without this the last of each could wait for 40 ms.
    let _ = stream.set_nodelay(true);
    let connection = Arc::clone(&place.connection);
    let talk = async {
        let Some(tls) = shared.security.tls() else {
            return talk(stream, (peer, false), router, &shared, &place, stop).await;
        };
        if speaks_plainly(&stream).await {
            shared.log_refused(peer, "HTTP where HTTPS is spoken", None);
            return refuse_plain(stream).await;
        }
        let accepted = TlsAcceptor::from(tls).accept(stream).await;
        let stream = accepted.inspect_err(|error| {
            if let Some(reason) = tls::refusal(error) {
                shared.log_refused(peer, reason, Some(error));
            }
        })?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        talk(stream, (peer, http2), router, &shared, &place, stop).await
    };
    tokio::select! {
        result = talk => if let Err(error) = result {
            tracing::debug!(%peer, %error, "a connection ends early");
        },
        () = connection.gone() => {}
    }
}

/// Whether a client speaks HTTP where TLS is spoken.
async fn speaks_plainly(stream: &TcpStream) -> bool {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await;
    matches!(peeked, Ok(1)) && first[0] != HANDSHAKE && first[0].is_ascii_alphabetic()
}

/// Says so to whoever typed http:// for https://, as the toolkit does.
async fn refuse_plain(mut stream: TcpStream) -> Result<(), Broken> {
    // What was said is taken, most of the time all of it: a close would drop the answer with it.
    let _ = stream.try_read(&mut [0; 4096]);
    let says = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\nhttps:// is spoken here, not http://\n";
    stream.write_all(says).await?;
    stream.shutdown().await?;
    Ok(())
}

/// Until the server ends.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error says that the server is gone without a word.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

/// Why a connection ended early.
type Broken = Box<dyn std::error::Error + Send + Sync>;

async fn talk<S>(
    stream: S,
    (peer, is_http2): (SocketAddr, bool),
    router: Router,
    shared: &Arc<Shared>,
    place: &Place,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Broken>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let stream = Watched::new(stream, Arc::clone(&place.connection), !is_http2);
    let router = TowerToHyperService::new(router);
    let limits = shared.limits;
    let service = service_fn(|request: Request<Incoming>| {
        let (router, shared) = (router.clone(), Arc::clone(shared));
        let whole = if limits.slow_paths.contains(&request.uri().path()) {
            Duration::MAX
        } else {
            limits.whole
        };
        let begun = shared.connections.begin(&place.connection, Instant::now(), whole);
        async move {
            let (response, made) = match &begun {
                Some(_) => answer(request, peer, &router, &shared).await,
                None => (busy("too many requests are being answered: try again"), None),
            };
            Ok::<_, Infallible>(response.map(|body| Answer::new(body, begun, made)))
        }
    });
    macro_rules! until_stopped {
        ($connection:expr) => {{
            let connection = $connection;
            tokio::pin!(connection);
            tokio::select! {
                ended = connection.as_mut() => ended?,
                () = stopped(&mut stop) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await?;
                }
            }
        }};
    }
    if is_http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .max_send_buf_size(limits.least_taken)
            .max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX));
        until_stopped!(builder.serve_connection(TokioIo::new(stream), service));
    } else {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            // It would hold for connections that rest, too: connections are looked at by ourselves.
            .header_read_timeout(None)
            .max_header_size(limits.head)
            // The first is looked at when all is there; so much is read until it is.
            .max_buf_size(2 * limits.head);
        until_stopped!(builder.serve_connection(TokioIo::new(stream), service));
    }
    Ok(())
}

/// Answers a request, in time, with what has to be kept until the answer is taken.
async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    router: &TowerToHyperService<Router>,
    shared: &Shared,
) -> (Response, Option<OwnedSemaphorePermit>) {
    let limits = &shared.limits;
    if request.body().size_hint().upper().is_none_or(|bytes| bytes > limits.body) {
        // What comes next by this connection would be that body.
        let close = [(header::CONNECTION, HeaderValue::from_static("close"))];
        let problem = "no request has a body here\n";
        return ((StatusCode::PAYLOAD_TOO_LARGE, close, problem).into_response(), None);
    }
    let limit = if limits.slow_paths.contains(&request.uri().path()) {
        limits.copying
    } else {
        limits.answering
    };
    let mut made = None;
    let security = &shared.security;
    let answered = security.answer(request, peer.ip(), async |request: Request<Incoming>| {
        if request.uri().path().starts_with("/api/") {
            made = shared.place_to_make().await;
        }
        match router.call(request.map(Body::new)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    });
    match tokio::time::timeout(limit, answered).await {
        Ok(response) => (response, made),
        Err(_) => (busy("this takes too long"), None),
    }
}

impl Shared {
    /// Logs now and then that a client did not come as far as a request.
    fn log_refused(&self, peer: SocketAddr, reason: &'static str, error: Option<&io::Error>) {
        if let Some(suppressed) = self.log.due(reason, REFUSED_EVERY, Instant::now()) {
            let error = error.map(tracing::field::display);
            tracing::info!(%peer, reason, error, suppressed, "client refused");
        }
    }

    /// A place of what is made for who asks, once there is one.
    async fn place_to_make(&self) -> Option<OwnedSemaphorePermit> {
        let made = &self.made;
        if let Ok(place) = Arc::clone(made).try_acquire_owned() {
            return Some(place);
        }
        self.connections.hurry(Instant::now());
        Arc::clone(made).acquire_owned().await.ok()
    }
}
