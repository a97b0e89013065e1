//! The limits of clients, the open connections by client network, and the deadlines of a connection.
//!
//! [`Deadlines`] knows what the connection is doing, and until when it may. [`DeadlineStream`] reports
//! reads and writes to it, [`DeadlineBody`] the end of a response. [`Deadlines::expired`] completes when
//! the connection has to be closed.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

/// Declares the limits, each with its default.
macro_rules! limits {
    ($($(#[$about:meta])* $name:ident: $type:ty = $default:expr,)+) => {
        /// The limits of a server. They are no settings, because every usual set-up stays far below them.
        #[derive(Clone, Copy, Debug)]
        pub struct Limits { $($(#[$about])* pub $name: $type,)+ }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($name: $default,)+ }
            }
        }
    };
}

limits! {
    /// Concurrent connections. A site has a few Prometheus servers and some browsers; an idle connection takes
    /// about 20 kB, with TLS 50.
    connections: usize = 512,
    /// Concurrent connections of one client address, so that one client cannot use up all. A browser opens
    /// about six; behind a reverse proxy all clients have its address.
    connections_per_client: usize = 128,
    /// Concurrent requests. One whose client does not read holds 128 kB of plain text and as much again in
    /// write buffers, in addition to shared data.
    concurrent_requests: usize = 256,
    /// Concurrent requests whose response is built for the client: each may hold the JSON of a whole fabric,
    /// about 40 MB for 60,000 ports, until it is written.
    concurrent_api: usize = 4,
    /// Timeout of the handshake with the head of the first request, and of the head of each further request
    /// from its first byte. curl takes milliseconds; over a very long distance it takes a second.
    header_timeout: Duration = Duration::from_secs(10),
    /// Timeout of an idle connection: two of the longest usual scrape intervals. While more than half of the
    /// connections are open it is [`Limits::header_timeout`], so that a full server soon accepts connections again.
    idle_timeout: Duration = Duration::from_secs(300),
    /// Within this time a client has to read [`Limits::write_stall_bytes`] of a response, or all of it.
    write_stall_timeout: Duration = Duration::from_secs(30),
    /// 2 kB/s with 30 s: slower than any network that Prometheus scrapes over.
    write_stall_bytes: usize = 64 << 10,
    /// Within this time a client has to read a whole response, except for downloads: the response is kept in
    /// memory until then. A scrape takes its interval at most.
    response_timeout: Duration = Duration::from_secs(300),
    /// Time until a response has to begin: as long as our own clients wait for one.
    handler_timeout: Duration = Duration::from_secs(150),
    /// The same for a download, which has to be built first.
    download_handler_timeout: Duration = Duration::from_secs(1_800),
    /// Bytes of the head of a request. It may contain cookies of other services of the host; servers usually
    /// accept 8 to 64 kB. A connection buffers at most twice as much.
    head_bytes: usize = 32 << 10,
    /// Bytes of the body of a request. No endpoint needs one.
    body_bytes: u64 = 16 << 10,
    /// How often the deadlines of a connection are checked.
    check_interval: Duration = Duration::from_secs(1),
}

/// The network that a client is counted for: its IPv4 address, or its IPv6 /64, of which a host can choose any
/// address (RFC 4291, 2.5.4).
pub(super) fn client_network(peer: IpAddr) -> IpAddr {
    // On a dual-stack socket an IPv4 client has the address ::ffff:192.0.2.1.
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// The content of a mutex; no thread leaves it half changed when it panics.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a connection is refused: whether the `client` or the `server` has reached its limit, and the limit.
type Full = (&'static str, usize);

/// The open connections by client network.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl Connections {
    /// Counts one more connection until its slot is dropped.
    pub fn insert(self: &Arc<Self>, peer: IpAddr, limits: &Limits) -> Result<Slot, Full> {
        let client = client_network(peer);
        let mut open = locked(&self.open);
        if open.get(&client).is_some_and(|count| *count >= limits.connections_per_client) {
            return Err(("client", limits.connections_per_client));
        }
        if open.values().sum::<usize>() >= limits.connections {
            return Err(("server", limits.connections));
        }
        *open.entry(client).or_default() += 1;
        Ok(Slot { client, connections: Arc::clone(self) })
    }

    /// Whether more than half of all connections, or of this client's, are open.
    pub fn is_crowded(&self, peer: IpAddr, limits: &Limits) -> bool {
        let open = locked(&self.open);
        let of_client = open.get(&client_network(peer)).copied().unwrap_or(0);
        open.values().sum::<usize>() > limits.connections / 2
            || of_client > limits.connections_per_client / 2
    }
}

/// An open connection among all, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    client: IpAddr,
    connections: Arc<Connections>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = locked(&self.connections.open);
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
        }
        open.retain(|_, count| *count > 0);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Reading the head of a request: the first one from the start, each further one from its first byte.
    ReadingHead,
    /// Building or writing a response, for so long at most.
    Responding(Duration),
    /// Waiting for the next request.
    Idle,
}

#[derive(Debug)]
struct ConnectionState {
    phase: Phase,
    since: Instant,
    /// Since when the client reads too little, and how many bytes it has read since.
    stalled: Option<(Instant, usize)>,
}

#[derive(Debug)]
pub(super) struct Deadlines {
    state: Mutex<ConnectionState>,
    slot: Slot,
    limits: Limits,
}

impl Deadlines {
    /// The deadlines of a new connection, which has to send its first request within the header timeout.
    pub fn new(now: Instant, slot: Slot, limits: Limits) -> Self {
        let state = ConnectionState { phase: Phase::ReadingHead, since: now, stalled: None };
        Deadlines { state: state.into(), slot, limits }
    }

    fn enter(&self, phase: Phase, now: Instant) {
        let mut state = locked(&self.state);
        (state.phase, state.since) = (phase, now);
    }

    fn on_read(&self, now: Instant) {
        if locked(&self.state).phase == Phase::Idle {
            self.enter(Phase::ReadingHead, now);
        }
    }

    fn on_written(&self, bytes: usize) {
        let mut state = locked(&self.state);
        if let Some((_, read)) = &mut state.stalled {
            *read = read.saturating_add(bytes);
            if *read >= self.limits.write_stall_bytes {
                state.stalled = None;
            }
        }
    }

    fn on_write_blocked(&self, now: Instant) {
        locked(&self.state).stalled.get_or_insert((now, 0));
    }

    fn on_flushed(&self) {
        locked(&self.state).stalled = None;
    }

    /// Begins a response, which has to be written within the timeout.
    pub fn begin_response(self: &Arc<Self>, now: Instant, timeout: Duration) -> Responding {
        self.enter(Phase::Responding(timeout), now);
        Responding { deadlines: Arc::clone(self) }
    }

    fn overdue(&self, now: Instant) -> Option<&'static str> {
        let (state, limits) = (locked(&self.state), &self.limits);
        let is_stalled = |(since, _)| now.duration_since(since) > limits.write_stall_timeout;
        if state.stalled.is_some_and(is_stalled) {
            return Some("write stalled");
        }
        let Slot { client, connections } = &self.slot;
        let (timeout, reason) = match state.phase {
            Phase::ReadingHead => (limits.header_timeout, "request timeout"),
            Phase::Responding(timeout) => (timeout, "response timeout"),
            Phase::Idle if connections.is_crowded(*client, limits) => {
                (limits.header_timeout, "idle timeout")
            }
            Phase::Idle => (limits.idle_timeout, "idle timeout"),
        };
        (now.duration_since(state.since) > timeout).then_some(reason)
    }

    /// Waits until the connection has to be closed, and returns why.
    pub async fn expired(&self) -> &'static str {
        loop {
            tokio::time::sleep(self.limits.check_interval).await;
            if let Some(reason) = self.overdue(Instant::now()) {
                return reason;
            }
        }
    }
}

/// A response that is made or written, until this is dropped.
#[derive(Debug)]
pub(super) struct Responding {
    deadlines: Arc<Deadlines>,
}

impl Drop for Responding {
    fn drop(&mut self) {
        self.deadlines.enter(Phase::Idle, Instant::now());
    }
}

pub(super) struct DeadlineStream<S> {
    pub inner: S,
    pub deadlines: Arc<Deadlines>,
}

impl<S> DeadlineStream<S> {
    fn report(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => self.deadlines.on_write_blocked(Instant::now()),
            Poll::Ready(Ok(bytes)) => self.deadlines.on_written(*bytes),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for DeadlineStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        if buffer.filled().len() > before {
            self.deadlines.on_read(Instant::now());
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for DeadlineStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.report(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, pieces);
        self.report(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        match &flushed {
            // TLS has buffered the bytes; the client has not read them.
            Poll::Pending => self.deadlines.on_write_blocked(Instant::now()),
            Poll::Ready(_) => self.deadlines.on_flushed(),
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Maximum bytes that are given to hyper at a time. hyper counts a body as written once it has all of it,
/// and buffers it until it is written.
const PIECE: usize = 64 << 10;

/// A response's body, which ends the response when it is dropped.
pub(super) struct DeadlineBody {
    body: Body,
    rest: Bytes,
    _responding: Responding,
    _permits: Permits,
}

/// The permits that a response holds until it is written.
pub(super) type Permits = [Option<OwnedSemaphorePermit>; 2];

impl DeadlineBody {
    pub fn new(body: Body, responding: Responding, permits: Permits) -> Self {
        DeadlineBody { body, rest: Bytes::new(), _responding: responding, _permits: permits }
    }
}

impl http_body::Body for DeadlineBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_own_deadline() {
        let limits = Limits::default();
        let began = Instant::now();
        let at = |seconds: f64| began + Duration::from_secs_f64(seconds);
        let connections = Arc::new(Connections::default());
        let slot = connections.insert(std::net::Ipv4Addr::LOCALHOST.into(), &limits).unwrap();
        let deadlines = Arc::new(Deadlines::new(began, slot, limits));
        let overdue = |seconds| deadlines.overdue(at(seconds));
        assert_eq!([overdue(9.0), overdue(11.0)], [None, Some("request timeout")]);
        let response = deadlines.begin_response(at(5.0), limits.response_timeout);
        assert_eq!([overdue(304.0), overdue(306.0)], [None, Some("response timeout")]);
        // A stall ends only once enough was read.
        deadlines.on_write_blocked(at(10.0));
        deadlines.on_written(100);
        deadlines.on_write_blocked(at(39.0));
        assert_eq!([overdue(39.0), overdue(41.0)], [None, Some("write stalled")]);
        deadlines.on_written(limits.write_stall_bytes);
        assert_eq!(overdue(41.0), None);
        // The end of a response is taken from the clock: a moment after `began`.
        drop(response);
        assert_eq!([overdue(299.0), overdue(302.0)], [None, Some("idle timeout")]);
        deadlines.on_read(at(60.0));
        deadlines.on_read(at(69.0));
        assert_eq!([overdue(69.0), overdue(71.0)], [None, Some("request timeout")]);
        // A download may take as long as it does.
        let _download = deadlines.begin_response(at(70.0), Duration::MAX);
        assert_eq!(overdue(1e6), None);
    }

    #[test]
    fn connections_are_limited_in_all_and_per_client() {
        let limits = Limits { connections: 3, connections_per_client: 2, ..Limits::default() };
        let connections = Arc::new(Connections::default());
        let insert = |peer: &str| connections.insert(peer.parse().unwrap(), &limits);
        let first = insert("192.0.2.1").unwrap();
        let (client, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        assert!(!connections.is_crowded(client, &limits));
        let _second = insert("::ffff:192.0.2.1").unwrap();
        let roomy = Limits { connections: 9, ..limits };
        assert!(connections.is_crowded(client, &roomy) && !connections.is_crowded(other, &roomy));
        assert!(connections.is_crowded(other, &limits));
        assert_eq!(insert("192.0.2.1").unwrap_err(), ("client", 2));
        let _other = insert("2001:db8::1").unwrap();
        assert_eq!(insert("2001:db8:0:0:ffff::9").unwrap_err(), ("server", 3));
        drop(first);
        let _third = insert("2001:db8:0:0:ffff::9").unwrap();
        assert_eq!(insert("2001:db8::1").unwrap_err(), ("client", 2));
    }
}
