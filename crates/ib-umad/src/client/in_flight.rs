//! Requests in flight, by transaction id.

use std::time::Duration;

use ib_mad::Moment;

use crate::{Address, QueuePair, Request};

/// The low 12 bits of a transaction id are the slot, the others distinguish its uses.
const SLOT_BITS: u32 = 12;

/// Maximum number of requests in flight on both queue pairs.
pub const MAX_IN_FLIGHT: usize = 1 << SLOT_BITS;

/// After this time no response is expected any more: fabrics respond in 10 to 100 µs. A slow or lost
/// request does not load the fabric, so it no longer counts in the window of its queue pair, and many
/// dead hosts are waited for in parallel. (It still counts in the window of its LID.)
const SLOW: Duration = Duration::from_millis(50);

/// A destination with its own window: an address on a queue pair.
pub(super) type Key = (QueuePair, Address);

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
    pub sent: Moment,
    /// Whether it no longer counts in the window of its queue pair.
    pub slow: bool,
    transaction_id: u32,
    deadline: Moment,
}

#[derive(Debug)]
pub(super) struct Slots {
    requests: Vec<Option<InFlight>>,
    free: Vec<u32>,
    generation: u32,
    /// No request expires before this.
    next_expiry: Moment,
    /// No request becomes slow before this.
    next_slow: Moment,
}

impl Slots {
    pub fn new(count: usize) -> Self {
        Slots {
            requests: (0..count).map(|_| None).collect(),
            free: (0..count as u32).rev().collect(),
            generation: 0,
            next_expiry: Moment::NEVER,
            next_slow: Moment::NEVER,
        }
    }

    /// As many empty slots, with further transaction ids: responses to requests of these match none of those.
    pub fn successor(&self) -> Self {
        Slots { generation: self.generation, ..Slots::new(self.requests.len()) }
    }

    /// Whether there is a transaction id for one more request.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.requests.len() < MAX_IN_FLIGHT
    }

    /// Inserts a request. Returns its transaction id, which no other request in flight has.
    pub fn insert(&mut self, pending: Pending, key: Key, sent: Moment, deadline: Moment) -> u32 {
        // There are as many slots as the windows have together; slow requests need additional ones.
        let slot = self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() as u32 - 1
        });
        self.generation = self.generation.wrapping_add(1);
        let transaction_id = self.generation << SLOT_BITS | slot;
        self.next_expiry = self.next_expiry.min(deadline);
        self.next_slow = self.next_slow.min(sent + SLOW);
        self.requests[slot as usize] =
            Some(InFlight { pending, key, sent, slow: false, transaction_id, deadline });
        transaction_id
    }

    pub fn get(&self, transaction_id: u32) -> Option<&InFlight> {
        let slot = (transaction_id % (1 << SLOT_BITS)) as usize;
        self.requests.get(slot)?.as_ref().filter(|request| request.transaction_id == transaction_id)
    }

    pub fn remove(&mut self, transaction_id: u32) -> Option<InFlight> {
        let slot = transaction_id % (1 << SLOT_BITS);
        let request = self.requests.get_mut(slot as usize)?;
        let request = request.take_if(|it| it.transaction_id == transaction_id)?;
        self.free.push(slot);
        Some(request)
    }

    pub fn expired(&mut self, now: Moment) -> Vec<u32> {
        if now < self.next_expiry {
            return Vec::new();
        }
        // A few hundred slots, scanned when something expires and not with each MAD.
        let in_flight = || self.requests.iter().flatten();
        let (expired, open): (Vec<_>, Vec<_>) =
            in_flight().partition(|request| request.deadline <= now);
        let next = open.iter().map(|request| request.deadline).min();
        self.next_expiry = next.unwrap_or(Moment::NEVER);
        expired.iter().map(|request| request.transaction_id).collect()
    }

    /// Number of requests that became slow since the last call, by queue pair.
    pub fn newly_slow(&mut self, now: Moment) -> [u16; 2] {
        let mut slow = [0; 2];
        if now < self.next_slow {
            return slow;
        }
        self.next_slow = Moment::NEVER;
        for request in self.requests.iter_mut().flatten().filter(|request| !request.slow) {
            let due = request.sent + SLOW;
            if due <= now {
                request.slow = true;
                slow[request.key.0 as usize] += 1;
            } else {
                self.next_slow = self.next_slow.min(due);
            }
        }
        slow
    }

    /// When [`Slots::expired`] or [`Slots::newly_slow`] must be called next.
    pub fn poll_timeout(&self) -> Moment {
        self.next_expiry.min(self.next_slow)
    }
}
