//! A transport that counts requests of subnet management.

use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_sim::transport::SimTransport;
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};

/// Counts SMPs by attribute.
pub struct Counting {
    pub transport: SimTransport,
    /// The attributes of those that were sent.
    pub smps: Vec<u16>,
}

impl MadTransport for Counting {
    fn now(&self) -> Moment {
        self.transport.now()
    }

    fn anchor(&self) -> Anchor {
        self.transport.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.transport.local_port()
    }

    fn refresh(&mut self) {
        self.transport.refresh();
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        if outgoing.class.is_smp() {
            self.smps.push(outgoing.mad.attribute());
        }
        self.transport.send(outgoing)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        self.transport.receive(until)
    }
}
