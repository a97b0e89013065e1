//! Heartbeat of the loop that drives a transport.
//!
//! Every loop over a transport calls [`MadTransport::receive`] at least every 100 ms, however dead the fabric
//! is, to check whether it must stop. So a thread that hangs can be told from a discovery that takes long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ib_mad::moment::Anchor;
use ib_mad::{Guid, Moment};

use super::{MadTransport, OutgoingMad, Received, SendError, TransportError};

/// A counter of loop iterations; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// Counts one iteration.
    pub fn tick(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of iterations so far.
    pub fn ticks(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A transport that ticks a heartbeat with each receive.
#[derive(Debug)]
pub struct Instrumented<T> {
    inner: T,
    heartbeat: Heartbeat,
}

impl<T> Instrumented<T> {
    /// Wraps a transport.
    pub fn new(inner: T, heartbeat: Heartbeat) -> Self {
        Instrumented { inner, heartbeat }
    }
}

impl<T: MadTransport> MadTransport for Instrumented<T> {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn anchor(&self) -> Anchor {
        self.inner.anchor()
    }

    fn refresh(&mut self) {
        self.inner.refresh();
    }

    fn port_guid(&self) -> Option<Guid> {
        self.inner.port_guid()
    }

    fn has_p_key(&self) -> bool {
        self.inner.has_p_key()
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        self.inner.send(outgoing)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        self.heartbeat.tick();
        self.inner.receive(until)
    }
}
