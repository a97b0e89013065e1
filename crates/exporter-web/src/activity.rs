//! What a connection does, and why it is closed.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Reading the head of a request: the first one from the start, each further one from its first byte.
    ReadingHead,
    /// Building or writing a response, for so long at most.
    Responding(Duration),
    /// Waiting for the next request.
    Idle,
}

/// Bytes since a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub since: Instant,
    pub bytes: usize,
}

impl Progress {
    pub fn new(since: Instant) -> Self {
        Progress { since, bytes: 0 }
    }

    pub fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Why a connection is closed by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    RequestTimeout,
    ResponseTimeout,
    IdleTimeout,
    WriteStalled,
    DownloadTooSlow,
    ClientLeft,
    /// Something is scarce: another connection got its place.
    Displaced(Scarce),
}

impl CloseReason {
    /// The text in the log.
    pub fn label(self) -> &'static str {
        match self {
            CloseReason::RequestTimeout => "request timeout",
            CloseReason::ResponseTimeout => "response timeout",
            CloseReason::IdleTimeout => "idle timeout",
            CloseReason::WriteStalled => "write stalled",
            CloseReason::DownloadTooSlow => "download too slow",
            CloseReason::ClientLeft => "client left",
            CloseReason::Displaced(Scarce::Connections) => "made room for another connection",
            CloseReason::Displaced(Scarce::Requests) => "made room for another request",
            CloseReason::Displaced(Scarce::Memory) => "made room for another response",
        }
    }

    /// Whether the client sent or read too slowly.
    pub fn is_slow_client(self) -> bool {
        match self {
            CloseReason::RequestTimeout
            | CloseReason::ResponseTimeout
            | CloseReason::WriteStalled
            | CloseReason::DownloadTooSlow => true,
            CloseReason::IdleTimeout | CloseReason::ClientLeft | CloseReason::Displaced(_) => false,
        }
    }
}

/// What a connection does.
#[derive(Debug)]
pub(super) struct Activity {
    pub phase: Phase,
    pub since: Instant,
    /// What the client has read since it reads too little.
    pub stalled: Option<Progress>,
    /// The memory that the response takes until it is written; `None` while it is built.
    pub unsent: Option<usize>,
    /// What was written in the current window of a download.
    pub window: Option<Progress>,
    pub is_download: bool,
    /// Since when the client sends no more, while it may still read.
    pub half_closed: Option<Instant>,
    /// Why it is being closed: it counts no longer.
    pub closing: Option<CloseReason>,
}

impl Activity {
    pub fn new(now: Instant) -> Self {
        Activity {
            phase: Phase::ReadingHead,
            since: now,
            stalled: None,
            unsent: None,
            window: None,
            is_download: false,
            half_closed: None,
            closing: None,
        }
    }

    pub fn is_responding(&self) -> bool {
        matches!(self.phase, Phase::Responding(_))
    }
}

/// What is scarce, and so is taken from the network that has the most of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scarce {
    /// Those that are idle or read a head can be closed.
    Connections,
    /// Those whose response is being written can be closed.
    Requests,
    /// The same.
    Memory,
}

impl Scarce {
    pub fn of(self, activity: &Activity) -> usize {
        match self {
            Scarce::Connections => 1,
            Scarce::Requests => activity.is_responding().into(),
            Scarce::Memory => activity.unsent.unwrap_or(0),
        }
    }

    pub fn may_close(self, activity: &Activity) -> bool {
        match self {
            Scarce::Connections => !activity.is_responding(),
            Scarce::Requests => activity.unsent.is_some(),
            Scarce::Memory => activity.unsent.is_some_and(|bytes| bytes > 0),
        }
    }
}
