//! Requests in flight, found again by their transaction ids.

use std::time::Duration;

use ib_mad::Moment;

use super::{Key, Pending};

/// Slots are named in the low 12 bits of a transaction id, the others tell one use from the next.
const SLOT_BITS: u32 = 12;

/// The largest window, in all lanes together, that transaction ids have room for.
pub const MOST_IN_FLIGHT: usize = 1 << SLOT_BITS;

/// After so long an answer is not on its way any more: fabrics answer in 10 to 100 µs. What is slow
/// or lost does not load the fabric, so it leaves its place in the lane's window to another, and many
/// dead hosts are waited for at once. (Its own LID's window it keeps.)
const SLOW: Duration = Duration::from_millis(50);

/// A request in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub pending: Pending,
    pub key: Key,
    pub sent: Moment,
    /// Whether it has left its place in the lane's window.
    pub slow: bool,
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
    /// No flight becomes slow before this.
    next_slow: Moment,
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
            next_slow: Moment::NEVER,
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

    /// Whether transaction ids have room for one more.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.flights.len() < MOST_IN_FLIGHT
    }

    /// Takes a request on. Its transaction id is one that none in flight has.
    pub fn launch(&mut self, pending: Pending, key: Key, sent: Moment, deadline: Moment) -> u32 {
        // There are as many slots as the windows are wide together; slow ones come on top.
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() as u32 - 1
        });
        self.generation = self.generation.wrapping_add(1);
        let transaction = self.generation << SLOT_BITS | slot;
        self.next_expiry = self.next_expiry.min(deadline);
        self.next_slow = self.next_slow.min(sent + SLOW);
        self.flights[slot as usize] =
            Some(Flight { pending, key, sent, slow: false, transaction, deadline });
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

    /// How many have become slow since the last call, by lane.
    pub fn newly_slow(&mut self, now: Moment) -> [u16; 2] {
        let mut slow = [0; 2];
        if now < self.next_slow {
            return slow;
        }
        self.next_slow = Moment::NEVER;
        for flight in self.flights.iter_mut().flatten().filter(|flight| !flight.slow) {
            let due = flight.sent + SLOW;
            if due <= now {
                flight.slow = true;
                slow[flight.key.lane() as usize] += 1;
            } else {
                self.next_slow = self.next_slow.min(due);
            }
        }
        slow
    }

    /// When [`Slots::late`] or [`Slots::newly_slow`] is to be called next.
    pub fn wake_up(&self) -> Moment {
        self.next_expiry.min(self.next_slow)
    }
}
