//! Requests in flight, found again by their transaction ids.

use crate::fabric::Moment;

use super::{Key, Pending};

/// Slots are named in the low 12 bits of a transaction id, the others tell one use from the next.
const SLOT_BITS: u32 = 12;

/// The largest window, in all lanes together, that transaction ids have room for.
pub const MOST_IN_FLIGHT: usize = 1 << SLOT_BITS;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub pending: Pending,
    pub key: Key,
    pub sent: Moment,
    transaction: u32,
    deadline: Moment,
}

/// All requests in flight.
#[derive(Debug)]
pub(super) struct Slots {
    flights: Vec<Option<Flight>>,
    free: Vec<u32>,
    generation: u32,
    /// No flight expires before this.
    next_expiry: Moment,
}

impl Slots {
    /// Room for as many as the windows have together. Transaction ids begin behind `generation`,
    /// so that what answers an earlier user's requests answers none of ours.
    pub fn new(count: usize, generation: u32) -> Self {
        Slots {
            flights: (0..count).map(|_| None).collect(),
            free: (0..count as u32).rev().collect(),
            generation,
            next_expiry: Moment::NEVER,
        }
    }

    /// How many there is room for.
    pub fn count(&self) -> usize {
        self.flights.len()
    }

    /// The generation of the latest transaction id.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Takes a request on. Its transaction id is one that none in flight has.
    pub fn launch(&mut self, pending: Pending, key: Key, sent: Moment, deadline: Moment) -> u32 {
        // There are as many slots as the windows are wide together, so one is free.
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() as u32 - 1
        });
        self.generation = self.generation.wrapping_add(1);
        let transaction = self.generation << SLOT_BITS | slot;
        self.next_expiry = self.next_expiry.min(deadline);
        self.flights[slot as usize] = Some(Flight { pending, key, sent, transaction, deadline });
        transaction
    }

    /// The flight with this transaction id.
    pub fn find(&self, transaction: u32) -> Option<&Flight> {
        let slot = (transaction % (1 << SLOT_BITS)) as usize;
        self.flights.get(slot)?.as_ref().filter(|flight| flight.transaction == transaction)
    }

    /// Takes a flight out.
    pub fn land(&mut self, transaction: u32) -> Option<Flight> {
        let slot = transaction % (1 << SLOT_BITS);
        let flight =
            self.flights.get_mut(slot as usize)?.take_if(|it| it.transaction == transaction)?;
        self.free.push(slot);
        Some(flight)
    }

    /// The transaction ids of all that are past their deadline.
    pub fn late(&mut self, now: Moment) -> Vec<u32> {
        if now < self.next_expiry {
            return Vec::new();
        }
        // Some hundred slots, looked through when something expires and not with each MAD.
        let in_flight = || self.flights.iter().flatten();
        let (late, rest): (Vec<_>, Vec<_>) = in_flight().partition(|flight| flight.deadline <= now);
        self.next_expiry = rest.iter().map(|flight| flight.deadline).min().unwrap_or(Moment::NEVER);
        late.iter().map(|flight| flight.transaction).collect()
    }

    /// When [`Slots::late`] is to be called next.
    pub fn next_expiry(&self) -> Moment {
        self.next_expiry
    }
}
