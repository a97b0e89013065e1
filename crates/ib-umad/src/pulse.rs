//! A pulse: that whoever drives a wire still turns.
//!
//! Every loop over a wire comes back to it within a fraction of a second to look whether it is to
//! stop, however dead the fabric behind it is. So the wire is where a thread that hangs is told from
//! a discovery that takes long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ib_mad::moment::Anchor;
use ib_mad::{Guid, Moment};

use super::{OutgoingMad, Received, SendError, MadTransport, TransportError};

/// Beats with each turn of a loop; its clones are one.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// One more turn.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many turns there were.
    pub fn beats(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A wire whose driver is felt.
#[derive(Debug)]
pub struct Instrumented<W> {
    transport: W,
    pulse: Heartbeat,
}

impl<W> Instrumented<W> {
    /// A wire, and what is to beat while it is driven.
    pub fn new(transport: W, pulse: Heartbeat) -> Self {
        Instrumented { transport, pulse }
    }
}

impl<W: MadTransport> MadTransport for Instrumented<W> {
    fn now(&self) -> Moment {
        self.transport.now()
    }

    fn anchor(&self) -> Anchor {
        self.transport.anchor()
    }

    fn refresh(&mut self) {
        self.transport.refresh();
    }

    fn port_guid(&self) -> Option<Guid> {
        self.transport.port_guid()
    }

    fn has_p_key(&self) -> bool {
        self.transport.has_p_key()
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        self.transport.send(outgoing)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        self.pulse.beat();
        self.transport.receive(until)
    }
}
