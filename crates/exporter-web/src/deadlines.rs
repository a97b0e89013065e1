//! The deadlines of a connection.
//!
//! [`Deadlines`] knows what the connection is doing, and until when it may. [`DeadlineStream`] reports
//! reads and writes to it, [`DeadlineBody`] the end of a response. [`Deadlines::expired`] completes when
//! the connection has to be closed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::{Activity, CloseReason, Phase, Progress};
use super::connections::Slot;
use super::limits::Limits;
use super::locked::locked;

#[derive(Debug)]
pub(super) struct Deadlines {
    pub slot: Slot,
    limits: Limits,
    /// Reads on once the response is written, if the client sends no more.
    reader: Mutex<Option<Waker>>,
}

impl Deadlines {
    /// The deadlines of a new connection, which has to send its first request within the header timeout.
    pub fn new(slot: Slot, limits: Limits) -> Self {
        Deadlines { slot, limits, reader: Mutex::default() }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        locked(&self.slot.connection.activity)
    }

    fn on_read(&self, now: Instant) {
        let mut activity = self.activity();
        if activity.phase == Phase::Idle {
            (activity.phase, activity.since) = (Phase::ReadingHead, now);
        }
    }

    /// The client sends no more. Whether it waits for a response: then the connection is not at its end.
    fn on_end(&self, reader: &Waker) -> bool {
        let mut activity = self.activity();
        let waits = matches!(activity.phase, Phase::Responding(_));
        if waits {
            activity.half_closed.get_or_insert_with(Instant::now);
            *locked(&self.reader) = Some(reader.clone());
            self.slot.connection.changed.notify_waiters();
        }
        waits
    }

    /// Whether the client sends no more and waits for a response.
    fn is_half_closed(&self) -> bool {
        let activity = self.activity();
        activity.half_closed.is_some() && matches!(activity.phase, Phase::Responding(_))
    }

    /// Waits until the client sends no more: it may have left, or only closed its side.
    pub async fn half_closed(&self) {
        loop {
            let changed = self.slot.connection.changed.notified();
            if self.is_half_closed() {
                return;
            }
            changed.await;
        }
    }

    fn on_written(&self, bytes: usize, now: Instant) {
        let mut activity = self.activity();
        if let Some(read) = &mut activity.stalled {
            read.add(bytes);
            if read.bytes >= self.limits.write_stall_bytes {
                activity.stalled = None;
            }
        }
        if activity.is_download {
            activity.window.get_or_insert(Progress::new(now)).add(bytes);
        }
    }

    fn on_write_blocked(&self, now: Instant) {
        self.activity().stalled.get_or_insert(Progress::new(now));
    }

    fn on_flushed(&self) {
        self.activity().stalled = None;
    }

    /// Begins a response, which has to be written within the timeout.
    pub fn begin_response(self: &Arc<Self>, now: Instant, timeout: Duration) -> Responding {
        let mut activity = self.activity();
        (activity.phase, activity.since) = (Phase::Responding(timeout), now);
        (activity.unsent, activity.window, activity.is_download) = (None, None, false);
        // It may have sent several requests at once.
        activity.half_closed = activity.half_closed.map(|_| now);
        drop(activity);
        Responding { deadlines: Arc::clone(self) }
    }

    /// From now on, what is written is a download, which has a rate.
    pub fn begin_download(&self) {
        self.activity().is_download = true;
    }

    fn overdue(&self, now: Instant) -> Option<CloseReason> {
        let limits = &self.limits;
        let (phase, since) = {
            let mut activity = self.activity();
            if activity.closing.is_some() {
                return activity.closing;
            }
            let is_over = |since, timeout| now.duration_since(since) > timeout;
            if activity.stalled.is_some_and(|read| is_over(read.since, limits.write_stall_timeout))
            {
                return Some(CloseReason::WriteStalled);
            }
            // Once something is sent, a client that has left resets the connection.
            let has_left = |since| is_over(since, limits.half_closed_timeout);
            if activity.unsent.is_none()
                && activity.half_closed.is_some_and(has_left)
                && matches!(activity.phase, Phase::Responding(_))
            {
                return Some(CloseReason::ClientLeft);
            }
            if let Some(written) = activity.window {
                let elapsed = now.duration_since(written.since);
                if elapsed >= limits.download_window {
                    let min_bytes = limits.download_rate as f64 * elapsed.as_secs_f64();
                    if (written.bytes as f64) < min_bytes {
                        return Some(CloseReason::DownloadTooSlow);
                    }
                    activity.window = Some(Progress::new(now));
                }
            }
            (activity.phase, activity.since)
        };
        let (timeout, reason) = match phase {
            Phase::ReadingHead => (limits.header_timeout, CloseReason::RequestTimeout),
            Phase::Responding(timeout) => (timeout, CloseReason::ResponseTimeout),
            Phase::Idle if self.slot.is_crowded(limits) => {
                (limits.header_timeout, CloseReason::IdleTimeout)
            }
            Phase::Idle => (limits.idle_timeout, CloseReason::IdleTimeout),
        };
        (now.duration_since(since) > timeout).then_some(reason)
    }

    /// Waits until the connection has to be closed, and returns why.
    pub async fn expired(&self) -> CloseReason {
        loop {
            let changed = self.slot.connection.changed.notified();
            if let Some(reason) = self.overdue(Instant::now()) {
                return reason;
            }
            tokio::select! {
                () = tokio::time::sleep(self.limits.check_interval) => {}
                () = changed => {}
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
        let mut activity = self.deadlines.activity();
        (activity.phase, activity.since) = (Phase::Idle, Instant::now());
        (activity.unsent, activity.window) = (None, None);
        drop(activity);
        if let Some(reader) = locked(&self.deadlines.reader).take() {
            reader.wake();
        }
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
            Poll::Ready(Ok(bytes)) => self.deadlines.on_written(*bytes, Instant::now()),
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
        let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        if buffer.filled().len() > before {
            self.deadlines.on_read(Instant::now());
        } else if has_room && read.is_ok() && self.deadlines.on_end(cx.waker()) {
            // hyper would give up a response that nobody seems to wait for. Who closes only its own side, as `nc -N`
            // does, reads it; who has left makes the write fail.
            return Poll::Pending;
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
}

impl DeadlineBody {
    pub fn new(body: Body, responding: Responding) -> Self {
        DeadlineBody { body, rest: Bytes::new(), _responding: responding }
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
    use crate::connections::Connections;

    fn deadlines(began: Instant, limits: Limits) -> Arc<Deadlines> {
        let connections = Arc::new(Connections::default());
        let peer = std::net::Ipv4Addr::LOCALHOST.into();
        let (slot, _) = connections.insert(peer, &limits, began).unwrap();
        Arc::new(Deadlines::new(slot, limits))
    }

    #[test]
    fn each_phase_has_its_own_deadline() {
        let limits = Limits::default();
        let began = Instant::now();
        let at = |seconds: f64| began + Duration::from_secs_f64(seconds);
        let deadlines = deadlines(began, limits);
        let overdue = |seconds| deadlines.overdue(at(seconds));
        assert_eq!([overdue(9.0), overdue(11.0)], [None, Some(CloseReason::RequestTimeout)]);
        let response = deadlines.begin_response(at(5.0), limits.response_timeout);
        assert_eq!([overdue(304.0), overdue(306.0)], [None, Some(CloseReason::ResponseTimeout)]);
        // A stall ends only once enough was read.
        deadlines.on_write_blocked(at(10.0));
        deadlines.on_written(100, at(12.0));
        deadlines.on_write_blocked(at(39.0));
        assert_eq!([overdue(39.0), overdue(41.0)], [None, Some(CloseReason::WriteStalled)]);
        deadlines.on_written(limits.write_stall_bytes, at(41.0));
        assert_eq!(overdue(41.0), None);
        // The end of a response is taken from the clock: a moment after `began`.
        drop(response);
        assert_eq!([overdue(299.0), overdue(302.0)], [None, Some(CloseReason::IdleTimeout)]);
        deadlines.on_read(at(60.0));
        deadlines.on_read(at(69.0));
        assert_eq!([overdue(69.0), overdue(71.0)], [None, Some(CloseReason::RequestTimeout)]);
        // A download may take as long as it does, if it has its rate.
        let _download = deadlines.begin_response(at(70.0), Duration::MAX);
        assert_eq!(overdue(1e6), None);
    }

    #[test]
    fn client_that_closed_its_side_is_taken_for_gone_after_a_while() {
        let limits = Limits::default();
        let began = Instant::now();
        let deadlines = deadlines(began, limits);
        let after = |seconds| Instant::now() + Duration::from_secs(seconds);
        assert!(!deadlines.on_end(Waker::noop()), "it asked nothing");
        let _response = deadlines.begin_response(began, limits.response_timeout);
        assert!(deadlines.on_end(Waker::noop()));
        assert_eq!(
            [deadlines.overdue(after(8)), deadlines.overdue(after(12))],
            [None, Some(CloseReason::ClientLeft)]
        );
        // What is being sent may take longer.
        deadlines.slot.hold_memory(1, &limits);
        assert_eq!(deadlines.overdue(after(12)), None);
    }

    #[test]
    fn download_needs_a_minimum_rate_over_each_window() {
        let limits = Limits::default();
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let deadlines = deadlines(began, limits);
        let response = deadlines.begin_response(began, Duration::MAX);
        // It may take long to begin.
        deadlines.begin_download();
        assert_eq!(deadlines.overdue(at(900)), None);
        let minute = limits.download_rate * 60;
        for second in 900..960 {
            deadlines.on_written(limits.download_rate, at(second));
        }
        assert_eq!(deadlines.overdue(at(960)), None);
        // A pause within a window is made up for.
        deadlines.on_written(minute, at(1_019));
        assert_eq!(deadlines.overdue(at(1_020)), None);
        // 8 kB/s.
        for second in 1_020..1_080 {
            deadlines.on_written(8_000, at(second));
            assert_eq!(deadlines.overdue(at(second)), None);
        }
        assert_eq!(deadlines.overdue(at(1_080)), Some(CloseReason::DownloadTooSlow));
        // A page may be read as slowly as that.
        drop(response);
        let _page = deadlines.begin_response(at(2_000), limits.response_timeout);
        deadlines.on_written(8_000, at(2_000));
        assert_eq!(deadlines.overdue(at(2_100)), None);
    }
}
