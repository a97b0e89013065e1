//! The exporter's transport with a record of its traffic.

use std::collections::HashSet;

use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_umad::umad::Umad;
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};

/// The traffic.
pub struct Watched {
    transport: Umad,
    /// Requests without a response so far, with their send times.
    pub open: HashSet<u32>,
    /// The most of them at any time.
    pub most_open: usize,
    /// The upper halves of the transaction ids that came back. All are sent as 0.
    pub upper: HashSet<u32>,
    /// The number of received MADs.
    pub answers: usize,
    /// The MADs that the kernel returned: those that were sent and open, and others.
    pub expired: usize,
    pub expired_unknown: usize,
    /// When the kernel returned one last.
    pub expired_at: Moment,
}

impl Watched {
    pub fn new(transport: Umad) -> Self {
        Watched {
            transport,
            open: HashSet::new(),
            most_open: 0,
            upper: HashSet::new(),
            answers: 0,
            expired: 0,
            expired_unknown: 0,
            expired_at: Moment::default(),
        }
    }
}

impl MadTransport for Watched {
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

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        self.transport.send(parcel)?;
        self.open.insert(parcel.mad.transaction_id());
        self.most_open = self.most_open.max(self.open.len());
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        let received = self.transport.receive(until)?;
        match &received {
            Some(Received::Mad { mad, .. }) => {
                self.answers += 1;
                self.upper.insert(mad.be(8, 4) as u32);
                self.open.remove(&mad.transaction_id());
            }
            Some(Received::Expired { transaction_id: transaction, .. }) => {
                let known = self.open.remove(transaction);
                self.expired += usize::from(known);
                self.expired_unknown += usize::from(!known);
                self.expired_at = self.transport.now();
            }
            _ => {}
        }
        Ok(received)
    }
}
