//! Deadlines of one HTTP/1 connection.
//!
//! [`Deadlines`] knows what the connection is doing, and until when it may. [`DeadlineStream`] reports
//! reads and writes to it, [`DeadlineBody`] the end of a response. [`Deadlines::expired`] completes when
//! the connection has to be closed.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

use super::limits::{Connections, Limits};

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The head of a request is read: the first one from the start, each further one from its first byte.
    ReadingHead,
    /// A response is made or written.
    Responding,
    /// Nothing, after a response.
    Idle,
}

#[derive(Debug)]
struct ConnectionState {
    phase: Phase,
    since: Instant,
    /// How long the phase may last.
    timeout: Duration,
    /// Since when the client reads too little, and how many bytes it has read since.
    stalled: Option<(Instant, usize)>,
}

/// Deadlines of a connection.
#[derive(Debug)]
pub(super) struct Deadlines {
    state: Mutex<ConnectionState>,
    connections: Arc<Connections>,
    peer: IpAddr,
    limits: Limits,
}

impl Deadlines {
    /// Those of a connection whose first request has to be there within the header timeout.
    pub fn new(now: Instant, connections: Arc<Connections>, peer: IpAddr, limits: Limits) -> Self {
        let (phase, timeout) = (Phase::ReadingHead, limits.header_timeout);
        let state = ConnectionState { phase, since: now, timeout, stalled: None };
        Deadlines { state: Mutex::new(state), connections, peer, limits }
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase, now: Instant, timeout: Duration) {
        let mut state = self.state();
        (state.phase, state.since, state.timeout) = (phase, now, timeout);
    }

    fn on_read(&self, now: Instant) {
        if self.state().phase == Phase::Idle {
            self.enter(Phase::ReadingHead, now, self.limits.header_timeout);
        }
    }

    fn on_written(&self, bytes: usize) {
        let mut state = self.state();
        if let Some((_, read)) = &mut state.stalled {
            *read = read.saturating_add(bytes);
            if *read >= self.limits.write_stall_bytes {
                state.stalled = None;
            }
        }
    }

    fn on_write_blocked(&self, now: Instant) {
        self.state().stalled.get_or_insert((now, 0));
    }

    fn on_flushed(&self) {
        self.state().stalled = None;
    }

    /// Begins a response that has to be written within a time.
    pub fn begin_response(self: &Arc<Self>, now: Instant, timeout: Duration) -> Responding {
        self.enter(Phase::Responding, now, timeout);
        Responding { deadlines: Arc::clone(self) }
    }

    /// Why the connection has to be closed, if it has to.
    fn overdue(&self, now: Instant) -> Option<&'static str> {
        let state = self.state();
        let is_stalled = |(since, _)| now.duration_since(since) > self.limits.write_stall_timeout;
        if state.stalled.is_some_and(is_stalled) {
            return Some("does not take its answer");
        }
        let timeout = match state.phase {
            Phase::Idle if self.connections.is_crowded(self.peer, &self.limits) => {
                self.limits.header_timeout
            }
            _ => state.timeout,
        };
        (now.duration_since(state.since) > timeout).then_some(match state.phase {
            Phase::ReadingHead => "asks too slowly",
            Phase::Responding => "takes its answer too slowly",
            Phase::Idle => "rests",
        })
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
        let idle_timeout = self.deadlines.limits.idle_timeout;
        self.deadlines.enter(Phase::Idle, Instant::now(), idle_timeout);
    }
}

/// A stream that reports reads and writes.
pub(super) struct DeadlineStream<S> {
    inner: S,
    deadlines: Arc<Deadlines>,
}

impl<S> DeadlineStream<S> {
    pub fn new(inner: S, deadlines: Arc<Deadlines>) -> Self {
        DeadlineStream { inner, deadlines }
    }

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
            // TLS has taken the bytes, and the client has not.
            Poll::Pending => self.deadlines.on_write_blocked(Instant::now()),
            Poll::Ready(_) => self.deadlines.on_flushed(),
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// The most bytes that are handed to hyper at a time. It counts a body as written once it has all of it,
/// and holds what it was given until that is written.
const PIECE: usize = 64 << 10;

/// A response's body, which ends the response when it is dropped.
pub(super) struct DeadlineBody {
    body: Body,
    rest: Bytes,
    _responding: Responding,
    _permits: Permits,
}

/// What a response occupies of the server's limits until it is written.
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
        let deadlines = Arc::new(Deadlines::new(
            began,
            Arc::default(),
            std::net::Ipv4Addr::LOCALHOST.into(),
            limits,
        ));
        let overdue = |seconds| deadlines.overdue(at(seconds));
        assert_eq!([overdue(9.0), overdue(11.0)], [None, Some("asks too slowly")]);
        let response = deadlines.begin_response(at(5.0), limits.response_timeout);
        assert_eq!([overdue(304.0), overdue(306.0)], [None, Some("takes its answer too slowly")]);
        // A stall ends only once enough was read.
        deadlines.on_write_blocked(at(10.0));
        deadlines.on_written(100);
        deadlines.on_write_blocked(at(39.0));
        assert_eq!([overdue(39.0), overdue(41.0)], [None, Some("does not take its answer")]);
        deadlines.on_written(limits.write_stall_bytes);
        assert_eq!(overdue(41.0), None);
        // The end of a response is taken from the clock: a moment after `began`.
        drop(response);
        assert_eq!([overdue(299.0), overdue(302.0)], [None, Some("rests")]);
        deadlines.on_read(at(60.0));
        deadlines.on_read(at(69.0));
        assert_eq!([overdue(69.0), overdue(71.0)], [None, Some("asks too slowly")]);
        // A download may take as long as it does.
        let _download = deadlines.begin_response(at(70.0), Duration::MAX);
        assert_eq!(overdue(1e6), None);
    }
}
