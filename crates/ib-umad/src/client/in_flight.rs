//! Requests in flight, by transaction id.

use std::time::Duration;

use ib_mad::{Lid, Moment};

use crate::request::{QueuePair, Request};

/// The low 12 bits of a transaction id are the slot, the others distinguish its uses, except for the highest one: it
/// distinguishes the two clients of a port.
const SLOT_BITS: u32 = 12;

/// Maximum number of requests in flight on both queue pairs.
pub const MAX_IN_FLIGHT: usize = 1 << SLOT_BITS;

/// After this time no response is expected any more: fabrics respond in 10 to 100 µs. A slow or lost
/// request does not load the fabric, so it no longer counts in the window of its queue pair, and many
/// dead hosts are waited for in parallel. (It still counts in the window of its LID.)
const SLOW: Duration = Duration::from_millis(50);

/// Which of the two clients of a port: both send through one descriptor, from which either may read what the other one
/// no longer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }

    /// A transaction id of this side.
    fn id(self, generation: u32, slot: u32) -> u32 {
        let id = generation << SLOT_BITS | slot;
        match self {
            Side::First => id & !(1 << 31),
            Side::Second => id | 1 << 31,
        }
    }
}

/// A destination with its own window, by its index in [`Destinations`](super::destinations::Destinations), and its
/// queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub queue_pair: QueuePair,
    pub index: u32,
}

#[derive(Debug)]
pub(super) struct Pending {
    pub request: Request,
    pub tag: u64,
    pub tries: u8,
    pub redirects: u8,
}

#[derive(Debug)]
pub(super) struct InFlight {
    pub pending: Pending,
    pub key: Key,
    /// The LID that was asked, which is that of the redirect, if there is one; `None` where the response may come from
    /// any.
    pub asked: Option<Lid>,
    pub sent: Moment,
    /// Whether it no longer counts in the window of its queue pair.
    pub slow: bool,
    transaction_id: u32,
    deadline: Moment,
}

/// What [`Slots::check`] noticed.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Transaction ids of the requests past their deadline.
    pub expired: Vec<u32>,
    /// How many requests became slow, by queue pair.
    pub slow: [u16; 2],
}

#[derive(Debug)]
pub(super) struct Slots {
    requests: Vec<Option<InFlight>>,
    free: Vec<u32>,
    /// Upper bits of the last transaction id, apart from the highest one.
    pub generation: u32,
    pub side: Side,
    /// When [`Slots::check`] must be called next: no request expires or becomes slow before this.
    pub next_check: Moment,
}

impl Slots {
    /// No requests; the next one is of the next generation.
    pub fn new(side: Side, generation: u32) -> Self {
        let next_check = Moment::NEVER;
        Slots { requests: Vec::new(), free: Vec::new(), generation, side, next_check }
    }

    /// Whether there is a transaction id for one more request.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.requests.len() < MAX_IN_FLIGHT
    }

    /// Inserts a request. Returns its transaction id, which no other request in flight has.
    pub fn insert(
        &mut self,
        pending: Pending,
        key: Key,
        asked: Option<Lid>,
        sent: Moment,
        deadline: Moment,
    ) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() as u32 - 1
        });
        self.generation = self.generation.wrapping_add(1);
        let transaction_id = self.side.id(self.generation, slot);
        self.next_check = self.next_check.min(deadline).min(sent + SLOW);
        self.requests[slot as usize] =
            Some(InFlight { pending, key, asked, sent, slow: false, transaction_id, deadline });
        transaction_id
    }

    pub fn get(&self, transaction_id: u32) -> Option<&InFlight> {
        let slot = (transaction_id % (1 << SLOT_BITS)) as usize;
        self.requests.get(slot)?.as_ref().filter(|request| request.transaction_id == transaction_id)
    }

    pub fn remove(&mut self, transaction_id: u32) -> Option<InFlight> {
        let slot = transaction_id % (1 << SLOT_BITS);
        let request = self.requests.get_mut(slot as usize)?;
        let request = request.take_if(|request| request.transaction_id == transaction_id)?;
        self.free.push(slot);
        Some(request)
    }

    /// The requests past their deadline, and those that became slow since the last call.
    pub fn check(&mut self, now: Moment) -> Due {
        let mut due = Due::default();
        if now < self.next_check {
            return due;
        }
        self.next_check = Moment::NEVER;
        // A few hundred slots, scanned when something is due and not with each MAD.
        for request in self.requests.iter_mut().flatten() {
            if !request.slow && request.sent + SLOW <= now {
                request.slow = true;
                due.slow[request.key.queue_pair as usize] += 1;
            }
            if request.deadline <= now {
                due.expired.push(request.transaction_id);
            } else {
                let next = if request.slow { request.deadline } else { request.sent + SLOW };
                self.next_check = self.next_check.min(next.min(request.deadline));
            }
        }
        due
    }
}
