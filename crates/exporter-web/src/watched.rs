//! A stream that tells its connection what goes through it, and an answer that tells when it is over.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

use super::connections::{Connection, Request};

/// A stream that tells its connection what goes through it.
pub(super) struct Watched<S> {
    inner: S,
    connection: Arc<Connection>,
    /// HTTP/2 talks while it rests; what it says is no head of a request.
    heads: bool,
}

impl<S> Watched<S> {
    pub fn new(inner: S, connection: Arc<Connection>, heads: bool) -> Self {
        Watched { inner, connection, heads }
    }

    fn wrote(&self, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &poll {
            Poll::Pending => self.connection.stuck(Instant::now()),
            Poll::Ready(Ok(bytes)) => self.connection.took(*bytes),
            Poll::Ready(Err(_)) => {}
        }
        poll
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        if self.heads && buffer.filled().len() > before {
            self.connection.heard(Instant::now());
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, pieces);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        match &flushed {
            // TLS has taken it, and the client has not.
            Poll::Pending => self.connection.stuck(Instant::now()),
            Poll::Ready(_) => self.connection.taken(),
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// So much of an answer goes out at a time: what is handed over counts as told, and is not let go of
/// before it is.
const PIECE: usize = 64 << 10;

/// An answer that tells when it is over.
pub(super) struct Answer {
    body: Body,
    rest: Bytes,
    request: Option<Request>,
    _made: Option<OwnedSemaphorePermit>,
}

impl Answer {
    /// One that holds, until it is over, its place among requests, and one among what is large.
    pub fn new(body: Body, request: Option<Request>, made: Option<OwnedSemaphorePermit>) -> Self {
        let answer = Answer { body, rest: Bytes::new(), request, _made: made };
        answer.offer(Some(Instant::now()));
        answer
    }

    fn offer(&self, since: Option<Instant>) {
        if let Some(request) = &self.request {
            request.offer(since);
        }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                Poll::Pending => {
                    self.offer(None);
                    return Poll::Pending;
                }
                end @ Poll::Ready(_) => return end,
            }
        }
        // It is asked for more when there is room for that.
        self.offer(Some(Instant::now()));
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
