//! A pulse: that whoever drives a wire still turns.
//!
//! Every loop over a wire comes back to it within a fraction of a second to look whether it is to
//! stop, however dead the fabric behind it is. So the wire is where a thread that hangs is told from
//! a discovery that takes long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ib_mad::moment::Anchor;
use ib_mad::{Guid, Moment};

use super::{Parcel, Received, SendError, Wire, WireError};

/// Beats with each turn of a loop; its clones are one.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
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
pub struct Felt<W> {
    wire: W,
    pulse: Pulse,
}

impl<W> Felt<W> {
    /// A wire, and what is to beat while it is driven.
    pub fn new(wire: W, pulse: Pulse) -> Self {
        Felt { wire, pulse }
    }
}

impl<W: Wire> Wire for Felt<W> {
    fn now(&self) -> Moment {
        self.wire.now()
    }

    fn anchor(&self) -> Anchor {
        self.wire.anchor()
    }

    fn look_again(&mut self) {
        self.wire.look_again();
    }

    fn port_guid(&self) -> Option<Guid> {
        self.wire.port_guid()
    }

    fn in_partition(&self) -> bool {
        self.wire.in_partition()
    }

    fn send(&mut self, parcel: &Parcel) -> Result<(), SendError> {
        self.wire.send(parcel)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, WireError> {
        self.pulse.beat();
        self.wire.receive(until)
    }
}
