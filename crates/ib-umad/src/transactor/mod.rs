//! Many requests in flight at once, each with a deadline of its own.
//!
//! A state machine: it is told what came in and what time it is, and tells what to send now and
//! when to be woken. It never waits for anything that has no deadline, and a request ends exactly
//! once, whatever the fabric does.

mod slots;

pub use slots::MOST_IN_FLIGHT;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::Ipv6Addr;
use std::time::Duration;

use ib_mad::class_port_info::Redirect;
use ib_mad::{Class, Mad, Path, status};
use ib_mad::{Lid, Moment};

use super::pace::{Destination, Pace, Window};
use super::stats::{Outcome, Stats};
use super::{Address, Failure, Lane, Parcel, Received, Request};
use slots::{Flight, Slots};

/// The carrier (kernel, driver) gets this much less time than we wait ourselves: it then has
/// forgotten a request before a retry of it goes out, and tells of most time-outs by itself.
const GRACE: Duration = Duration::from_millis(100);

/// A wire without room is tried again after this,
const ROOM_PAUSE: Duration = Duration::from_millis(1);
/// and for so long.
const MOST_ROOM_WAIT: Duration = Duration::from_secs(2);

/// A redirected request may be redirected once more, not for ever.
const MOST_REDIRECTS: u8 = 2;

/// Whom a window is for: a LID on a lane, a GID, or the end of a directed route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Directed(Path),
    Smp(Lid),
    Gmp(Lid),
    Global(Ipv6Addr),
}

impl Key {
    fn of(request: &Request) -> Self {
        match (&request.to, request.query.subnet) {
            (Address::Directed(path), _) => Key::Directed(*path),
            (Address::Lid(lid), true) => Key::Smp(*lid),
            (Address::Lid(lid), false) => Key::Gmp(*lid),
            (Address::Global(route), _) => Key::Global(route.gid),
        }
    }

    fn lane(self) -> Lane {
        match self {
            Key::Directed(_) | Key::Smp(_) => Lane::Smp,
            Key::Gmp(_) | Key::Global(_) => Lane::Gmp,
        }
    }
}

#[derive(Debug)]
struct Pending {
    request: Request,
    tag: u64,
    tries: u8,
    redirects: u8,
}

/// Keeps requests in flight; see the module.
#[derive(Debug)]
pub struct Transactor {
    pace: Pace,
    stats: Stats,
    slots: Slots,
    destinations: HashMap<Key, Destination<Pending>>,
    /// Destinations that may have room, each lane's in the order of their turn.
    ready: [VecDeque<Key>; 2],
    /// Destinations that said they are busy, by the end of their pause.
    resting: BinaryHeap<Reverse<(Moment, Key)>>,
    in_flight: [u16; 2],
    /// How many of those are slow.
    slow: [u16; 2],
    /// What each lane has room for. SMPs ride virtual lane 15, which drops what it has no room for:
    /// a miss may be our own doing, and halves that window. GMPs are flow-controlled; theirs stays.
    windows: [Window; 2],
    queued: usize,
    finished: VecDeque<(u64, Result<Mad, Failure>)>,
    redirects: HashMap<Lid, Redirect>,
    /// Since when the wire has had no room, and until when it is left alone.
    full_since: Option<Moment>,
    full_until: Moment,
}

impl Transactor {
    /// One that keeps to a pace.
    pub fn new(pace: Pace) -> Self {
        let slots =
            (usize::from(pace.smp_window) + usize::from(pace.gmp_window)).min(MOST_IN_FLIGHT);
        Transactor {
            pace,
            stats: Stats::default(),
            slots: Slots::new(slots, 0),
            destinations: HashMap::new(),
            ready: [VecDeque::new(), VecDeque::new()],
            resting: BinaryHeap::new(),
            in_flight: [0; 2],
            slow: [0; 2],
            windows: [Window::new(pace.smp_window), Window::new(pace.gmp_window)],
            queued: 0,
            finished: VecDeque::new(),
            redirects: HashMap::new(),
            full_since: None,
            full_until: Moment::default(),
        }
    }

    /// What became of all MADs so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Begins a new walk: who was silent gets one more chance.
    pub fn begin(&mut self) {
        // A route may lead to another node in another walk; a LID rarely does.
        self.destinations.retain(|key, _| !matches!(key, Key::Directed(_)));
        self.resting.clear();
        self.destinations.values_mut().for_each(Destination::begin);
    }

    /// Forgets who asked to be asked elsewhere: LIDs may belong to others now.
    pub fn forget_redirects(&mut self) {
        self.redirects.clear();
    }

    /// Whether another request for this lane would be sent at once, if its own LID has room.
    pub fn has_room(&self, lane: Lane) -> bool {
        self.is_open(lane) && self.ready[lane as usize].is_empty()
    }

    /// Whether a lane's window has room. Slow requests do not count, up to one more window: 16 SMPs
    /// and 256 GMPs in flight in all by default. A switch's SMA answers slowly when its CPU is busy, and
    /// virtual lane 15 has no flow control, so slow answers must not let ever more requests out.
    fn is_open(&self, lane: Lane) -> bool {
        let window = self.windows[lane as usize];
        let slow = self.slow[lane as usize].min(window.limit());
        self.in_flight[lane as usize] - slow < window.size() && self.slots.has_room()
    }

    /// Takes a request on. Its outcome comes with the tag, exactly once.
    pub fn submit(&mut self, request: Request, tag: u64) {
        let pending = Pending { request, tag, tries: 0, redirects: 0 };
        let key = Key::of(&request);
        if let Some(failure) = self.destination(key).given_up() {
            self.finished.push_back((tag, Err(failure)));
        } else {
            self.destination(key).queue.push_back(pending);
            self.queued += 1;
            self.enlist(key);
        }
    }

    /// Whether nothing is in flight, waits to be sent or has an outcome to be taken.
    pub fn is_idle(&self) -> bool {
        self.in_flight == [0; 2] && self.queued == 0 && self.finished.is_empty()
    }

    /// The next MAD to send now, if the windows have room for one.
    pub fn next_parcel(&mut self, now: Moment) -> Option<Parcel> {
        if now < self.full_until {
            return None;
        }
        while let Some(&Reverse((until, key))) = self.resting.peek()
            && until <= now
        {
            self.resting.pop();
            self.enlist(key);
        }
        [Lane::Smp, Lane::Gmp].into_iter().find_map(|lane| self.next_of_lane(lane, now))
    }

    fn next_of_lane(&mut self, lane: Lane, now: Moment) -> Option<Parcel> {
        while self.is_open(lane) {
            let key = self.ready[lane as usize].pop_front()?;
            let destination = self.destinations.get_mut(&key)?;
            destination.enlisted = false;
            if destination.not_before > now {
                self.resting.push(Reverse((destination.not_before, key)));
                continue;
            }
            if !destination.has_room() {
                continue;
            }
            let pending = destination.queue.pop_front()?;
            destination.in_flight += 1;
            self.queued -= 1;
            // To the end of the line, so that every destination gets its turn.
            self.enlist(key);
            return Some(self.launch(pending, key, now));
        }
        None
    }

    fn launch(&mut self, mut pending: Pending, key: Key, now: Moment) -> Parcel {
        pending.tries += 1;
        self.in_flight[key.lane() as usize] += 1;
        let request = pending.request;
        let redirect = match key {
            Key::Gmp(lid) => self.redirects.get(&lid),
            _ => None,
        };
        let deadline = now + (self.pace.timeout + GRACE);
        let transaction = self.slots.launch(pending, key, now, deadline);
        Parcel::new(&request, redirect, transaction, self.pace.timeout)
    }

    /// Takes in what the wire received.
    pub fn received(&mut self, received: Received, now: Moment) {
        match received {
            Received::Mad { from: _, mad } => self.answered(mad, now),
            Received::Expired { transaction } => {
                // One that is not known any more is counted already: our own deadline was first.
                // The kernel's timers are coarse: at 250 Hz up to 32 ms late after half a second, and
                // 256 ms after more than two (kernel/time/timer.c).
                if let Some(flight) = self.land(transaction) {
                    self.missed(flight, now);
                }
            }
            Received::Malformed { bytes } => {
                tracing::debug!(bytes, "not a whole MAD");
                // Which class it was meant for cannot be told.
                self.stats.count(Class::Performance, Outcome::Malformed);
            }
        }
    }

    fn answered(&mut self, mad: Mad, now: Moment) {
        let transaction = mad.transaction();
        let known = self.slots.find(transaction).is_some_and(|flight| {
            let directed = matches!(flight.key, Key::Directed(_));
            flight.pending.request.query.is_answered_by(&mad, directed)
        });
        let Some(mut flight) = known.then(|| self.land(transaction)).flatten() else {
            return self.stray(&mad);
        };
        let class = flight.pending.request.class();
        self.stats.round_trip(class, now.since(flight.sent));
        self.windows[flight.key.lane() as usize].heard();
        let told = mad.status();
        if told & status::BUSY != 0 {
            self.stats.count(class, Outcome::Busy);
            self.destination(flight.key).busy(now);
            // It answered: patience has a limit of its own, and tries are for silence.
            flight.pending.tries -= 1;
            return self.again(flight, Failure::Busy);
        }
        self.destination(flight.key).heard();
        if told & status::REDIRECT != 0 {
            self.stats.count(class, Outcome::Redirected);
            return self.redirected(flight, &mad);
        }
        self.enlist(flight.key);
        let outcome = if told == 0 { Outcome::Answered } else { Outcome::Refused };
        self.stats.count(class, outcome);
        let result = if told == 0 { Ok(mad) } else { Err(Failure::Status(told)) };
        self.finished.push_back((flight.pending.tag, result));
    }

    fn redirected(&mut self, mut flight: Flight, mad: &Mad) {
        match (flight.key, Redirect::decode(mad)) {
            (Key::Gmp(lid), Some(redirect)) if flight.pending.redirects < MOST_REDIRECTS => {
                self.redirects.insert(lid, redirect);
                flight.pending.redirects += 1;
                flight.pending.tries -= 1;
                self.put_back(flight);
            }
            (key, _) => {
                self.enlist(key);
                self.finished.push_back((flight.pending.tag, Err(Failure::Status(mad.status()))));
            }
        }
    }

    /// A request was not answered in time.
    fn missed(&mut self, flight: Flight, now: Moment) {
        self.stats.count(flight.pending.request.class(), Outcome::TimedOut);
        if flight.pending.request.query.may_go_unanswered() {
            self.enlist(flight.key);
            self.finished.push_back((flight.pending.tag, Err(Failure::TimedOut)));
            return;
        }
        let retries = self.pace.retries;
        self.destination(flight.key).missed(flight.sent, now, retries);
        if flight.key.lane() == Lane::Smp {
            self.windows[Lane::Smp as usize].missed();
        }
        if let Key::Gmp(lid) = flight.key {
            // Where it was sent may be what failed: ask the node itself again.
            self.redirects.remove(&lid);
        }
        self.again(flight, Failure::TimedOut);
    }

    /// Sends a request again, or ends it if it was sent often enough.
    fn again(&mut self, flight: Flight, failure: Failure) {
        let (key, retries) = (flight.key, self.pace.retries);
        let destination = self.destination(key);
        if let Some(why) = destination.given_up() {
            // All that waits for it ends with it.
            let waiting = std::mem::take(&mut destination.queue);
            self.queued -= waiting.len();
            self.finished.push_back((flight.pending.tag, Err(failure)));
            self.finished.extend(waiting.into_iter().map(|pending| (pending.tag, Err(why))));
        } else if flight.pending.tries >= destination.tries(retries) {
            self.finished.push_back((flight.pending.tag, Err(failure)));
            self.enlist(key);
        } else {
            // Behind what else waits, which may be what the node does answer.
            destination.queue.push_back(flight.pending);
            self.queued += 1;
            self.enlist(key);
        }
    }

    /// Puts a request that was not really tried back to where it was.
    fn put_back(&mut self, flight: Flight) {
        self.destination(flight.key).queue.push_front(flight.pending);
        self.queued += 1;
        self.enlist(flight.key);
    }

    /// Takes a flight out of its slot and its windows.
    fn land(&mut self, transaction: u32) -> Option<Flight> {
        let flight = self.slots.land(transaction)?;
        self.in_flight[flight.key.lane() as usize] -= 1;
        self.slow[flight.key.lane() as usize] -= u16::from(flight.slow);
        self.destination(flight.key).in_flight -= 1;
        Some(flight)
    }

    fn stray(&mut self, mad: &Mad) {
        tracing::debug!(?mad, "an answer to nothing that is waited for");
        let class = Class::ALL
            .into_iter()
            .find(|class| mad.class() == *class as u8)
            .unwrap_or(Class::Performance);
        self.stats.count(class, Outcome::Stray);
    }

    /// The wire would not take the MAD with this transaction id, now or ever.
    pub fn unsent(&mut self, transaction: u32) {
        if let Some(flight) = self.land(transaction) {
            self.stats.count(flight.pending.request.class(), Outcome::Unsent);
            self.enlist(flight.key);
            self.finished.push_back((flight.pending.tag, Err(Failure::Unsent)));
        }
    }

    /// The wire took a MAD.
    pub fn taken(&mut self) {
        self.full_since = None;
    }

    /// The wire had no room for the MAD with this transaction id just now. Tells whether others may
    /// be tried at once: they are, and end like this one, when there was no room for long.
    pub fn no_room(&mut self, transaction: u32, now: Moment) -> bool {
        let since = *self.full_since.get_or_insert(now);
        if now.since(since) > MOST_ROOM_WAIT {
            self.unsent(transaction);
            return true;
        }
        if let Some(mut flight) = self.land(transaction) {
            flight.pending.tries -= 1;
            self.put_back(flight);
        }
        self.full_until = now + ROOM_PAUSE;
        false
    }

    /// Ends what is past its deadline, and makes room for others where answers are slow.
    pub fn expire(&mut self, now: Moment) {
        for (slow, more) in self.slow.iter_mut().zip(self.slots.newly_slow(now)) {
            *slow += more;
        }
        for transaction in self.slots.late(now) {
            if let Some(flight) = self.land(transaction) {
                self.missed(flight, now);
            }
        }
    }

    /// When something is to be done even if nothing comes in.
    pub fn wake_up(&self, now: Moment) -> Moment {
        // Without room nothing is sent, whoever's pause is over.
        let next_send = if self.full_until > now {
            self.full_until
        } else {
            self.resting.peek().map_or(Moment::NEVER, |Reverse((until, _))| *until)
        };
        self.slots.wake_up().min(next_send)
    }

    /// The next outcome.
    pub fn next_finished(&mut self) -> Option<(u64, Result<Mad, Failure>)> {
        self.finished.pop_front()
    }

    /// Drops what was not sent yet, without an outcome: the walk ends here.
    pub fn abandon_unsent(&mut self) {
        self.destinations.values_mut().for_each(|destination| destination.queue.clear());
        self.queued = 0;
        self.pace.retries = 0;
    }

    /// Forgets every request, for their wire is gone.
    pub fn forget_all(&mut self) {
        let fresh = Transactor::new(self.pace);
        let count = self.slots.count();
        *self = Transactor {
            stats: std::mem::take(&mut self.stats),
            slots: Slots::new(count, self.slots.generation()),
            ..fresh
        };
    }

    fn destination(&mut self, key: Key) -> &mut Destination<Pending> {
        let window = self.pace.lid_window(key.lane());
        self.destinations.entry(key).or_insert_with(|| Destination::new(window))
    }

    /// Puts a destination in line, if something waits for it and its window has room.
    fn enlist(&mut self, key: Key) {
        let destination = self.destination(key);
        if destination.has_room() && !destination.enlisted {
            destination.enlisted = true;
            self.ready[key.lane() as usize].push_back(key);
        }
    }
}

#[cfg(test)]
mod tests;
