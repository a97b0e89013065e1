//! A sans-I/O client for many requests in flight, each with its own deadline.
//!
//! A state machine: it takes received MADs and the time, and returns MADs to send and the time of the next
//! wake-up. All that it waits for has a deadline, and each request ends exactly once.

mod adaptive_window;
mod config;
mod destination;
mod in_flight;
mod queue;

pub use config::SendConfig;
pub use in_flight::MAX_IN_FLIGHT;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use ib_mad::class_port_info::Redirect;
use ib_mad::{Class, Mad, Moment, status};

use crate::heartbeat::Heartbeat;
use crate::request::{Address, QueuePair, Request, RequestError};
use crate::stats::{MadOutcome, MadStats};
use crate::transport::{OutgoingMad, Received, SendError, TransportError};
use destination::Destination;
use in_flight::{InFlight, Key, Pending, Slots};
use queue::QueueState;

/// The kernel's time-out is this much shorter than ours: it has dropped a request before the retry is sent.
const GRACE: Duration = Duration::from_millis(100);

const FULL_RETRY: Duration = Duration::from_millis(1);
/// After this time with a full transport requests fail.
const MAX_FULL: Duration = Duration::from_secs(2);

const MAX_REDIRECTS: u8 = 2;

/// The client; see the [module](self).
#[derive(Debug)]
pub struct MadClient {
    config: SendConfig,
    /// The heartbeat of the loops that use this client.
    pub heartbeat: Heartbeat,
    stats: MadStats,
    slots: Slots,
    destinations: HashMap<Key, Destination>,
    /// By queue pair.
    queues: [QueueState; 2],
    /// Busy destinations, by the end of their back-off.
    backing_off: BinaryHeap<Reverse<(Moment, Key)>>,
    queued: usize,
    /// The run ends: what times out is not sent again.
    is_stopping: bool,
    finished: VecDeque<(u64, Result<Mad, RequestError>)>,
    /// Since when the transport is full, and when it is retried.
    full_since: Option<Moment>,
    full_until: Moment,
}

impl MadClient {
    /// Creates a client with these limits.
    pub fn new(config: SendConfig) -> Self {
        MadClient {
            config,
            heartbeat: Heartbeat::default(),
            stats: MadStats::default(),
            slots: Slots::new(0),
            destinations: HashMap::new(),
            queues: [config.smp_window, config.gmp_window].map(QueueState::new),
            backing_off: BinaryHeap::new(),
            queued: 0,
            is_stopping: false,
            finished: VecDeque::new(),
            full_since: None,
            full_until: Moment::default(),
        }
    }

    /// Statistics of all MADs so far.
    pub fn stats(&self) -> &MadStats {
        &self.stats
    }

    /// Begins a new run: unresponsive destinations are probed again.
    pub fn begin_run(&mut self) {
        // A route may lead to another node in another run; a LID rarely does.
        self.destinations.retain(|key, _| !matches!(key.to, Address::Directed(_)));
        self.destinations.shrink_to(2 * self.destinations.len());
        self.backing_off.clear();
        self.is_stopping = false;
        self.destinations.values_mut().for_each(Destination::begin_run);
    }

    /// Forgets redirects: LIDs may belong to other nodes now.
    pub fn clear_redirects(&mut self) {
        self.destinations.values_mut().for_each(|destination| destination.redirect = None);
    }

    /// Whether another request for this queue pair would be sent at once, if its LID has room.
    pub fn has_room(&self, qp: QueuePair) -> bool {
        self.is_open(qp) && self.queues[qp as usize].ready.is_empty()
    }

    fn is_open(&self, qp: QueuePair) -> bool {
        self.queues[qp as usize].has_room() && self.slots.has_room()
    }

    /// Number of retries after a time-out.
    fn retries(&self) -> u8 {
        if self.is_stopping { 0 } else { self.config.retries }
    }

    /// Submits a request. [`MadClient::poll_finished`] returns its outcome with the tag, exactly once.
    pub fn submit(&mut self, request: Request, tag: u64) {
        let pending = Pending { request, tag, tries: 0, redirects: 0 };
        let key = Key { queue_pair: request.queue_pair(), to: request.to };
        match self.destination(key).given_up {
            Some(error) => self.finished.push_back((tag, Err(error))),
            None => self.enqueue(key, pending),
        }
    }

    fn enqueue(&mut self, key: Key, pending: Pending) {
        let queue = &mut self.destination(key).queue;
        if queue.is_empty() {
            // Of hundreds of bytes each: by default a queue allocates four, of each of 10,000 LIDs.
            queue.reserve_exact(1);
        }
        queue.push_back(pending);
        self.queued += 1;
        self.mark_ready(key);
    }

    /// Whether no request is in flight, queued or finished.
    pub fn is_idle(&self) -> bool {
        let is_quiet = |queue: &QueueState| queue.in_flight == 0;
        self.queues.iter().all(is_quiet) && self.queued == 0 && self.finished.is_empty()
    }

    /// The next MAD to send, if the windows have room.
    pub fn poll_transmit(&mut self, now: Moment) -> Option<OutgoingMad> {
        if now < self.full_until {
            return None;
        }
        while let Some(&Reverse((until, key))) = self.backing_off.peek()
            && until <= now
        {
            self.backing_off.pop();
            self.mark_ready(key);
        }
        [QueuePair::Qp0, QueuePair::Qp1].into_iter().find_map(|qp| self.transmit_on(qp, now))
    }

    fn transmit_on(&mut self, qp: QueuePair, now: Moment) -> Option<OutgoingMad> {
        while self.is_open(qp) {
            let key = self.queues[qp as usize].ready.pop_front()?;
            let destination = self.destinations.get_mut(&key)?;
            destination.is_ready = false;
            if destination.not_before > now {
                self.backing_off.push(Reverse((destination.not_before, key)));
                continue;
            }
            if !destination.has_room() {
                continue;
            }
            let mut pending = destination.queue.pop_front()?;
            if destination.queue.is_empty() {
                destination.queue = VecDeque::new();
            }
            pending.tries += 1;
            destination.in_flight += 1;
            let redirect = destination.redirect;
            self.queues[qp as usize].in_flight += 1;
            self.queued -= 1;
            // To the end of the queue: round robin over destinations.
            self.mark_ready(key);
            let (request, timeout) = (pending.request, self.config.timeout);
            let transaction_id = self.slots.insert(pending, key, now, now + (timeout + GRACE));
            return Some(OutgoingMad::new(&request, redirect, transaction_id, timeout));
        }
        None
    }

    /// Handles what the transport received.
    pub fn handle_response(&mut self, received: Received, now: Moment) {
        match received {
            Received::Mad { from: _, mad } => self.handle_mad(mad, now),
            Received::Expired { transaction_id } => {
                // An unknown id is already counted: our own deadline was first. Kernel timers are coarse: at 250 Hz
                // up to 32 ms late after half a second, and 256 ms after more than two (kernel/time/timer.c).
                if let Some(request) = self.remove(transaction_id) {
                    self.on_timeout(request, now);
                }
            }
            Received::Malformed { bytes } => {
                tracing::debug!(bytes, "malformed MAD received");
                self.stats.record(None, MadOutcome::Malformed);
            }
        }
    }

    fn handle_mad(&mut self, mad: Mad, now: Moment) {
        let transaction_id = mad.transaction_id();
        let is_known = self.slots.get(transaction_id).is_some_and(|request| {
            let Request { to, query } = &request.pending.request;
            query.matches_response(&mad, matches!(to, Address::Directed(_)))
        });
        let Some(mut request) = is_known.then(|| self.remove(transaction_id)).flatten() else {
            tracing::debug!(?mad, "unexpected response received");
            let class = Class::from_discriminant(mad.class());
            return self.stats.record(class, MadOutcome::Stray);
        };
        let class = request.pending.request.class();
        self.stats.record_round_trip(class, now.since(request.sent));
        self.queue_of(request.key).window.on_response();
        let status = mad.status();
        if status & status::BUSY != 0 {
            self.stats.record(class, MadOutcome::Busy);
            self.destination(request.key).on_busy(now);
            // Busy has its own limit; tries are for time-outs.
            request.pending.tries -= 1;
            return self.retry(request, RequestError::Busy);
        }
        self.destination(request.key).on_response();
        if status & status::REDIRECT != 0 {
            self.stats.record(class, MadOutcome::Redirected);
            return self.follow_redirect(request, &mad);
        }
        let outcome = if status == 0 { MadOutcome::Answered } else { MadOutcome::Refused };
        self.stats.record(class, outcome);
        let result = if status == 0 { Ok(mad) } else { Err(RequestError::Status(status)) };
        self.finish(&request, result);
    }

    /// Ends a request that is no longer in flight; its destination may have room for another one.
    fn finish(&mut self, request: &InFlight, result: Result<Mad, RequestError>) {
        self.mark_ready(request.key);
        self.finished.push_back((request.pending.tag, result));
    }

    fn follow_redirect(&mut self, mut request: InFlight, mad: &Mad) {
        let is_gmp_by_lid =
            matches!(request.key, Key { queue_pair: QueuePair::Qp1, to: Address::Lid(_) });
        match Redirect::decode(mad) {
            Some(redirect) if is_gmp_by_lid && request.pending.redirects < MAX_REDIRECTS => {
                self.destination(request.key).redirect = Some(redirect);
                request.pending.redirects += 1;
                self.put_back(request);
            }
            _ => self.finish(&request, Err(RequestError::Status(mad.status()))),
        }
    }

    /// A request had no response in time.
    fn on_timeout(&mut self, request: InFlight, now: Moment) {
        self.stats.record(request.pending.request.class(), MadOutcome::TimedOut);
        if request.pending.request.query.is_optional {
            return self.finish(&request, Err(RequestError::TimedOut));
        }
        let retries = self.retries();
        let destination = self.destination(request.key);
        destination.on_timeout(request.sent, now, retries);
        // The redirect may be what failed: try the node itself again.
        destination.redirect = None;
        if request.key.queue_pair == QueuePair::Qp0 {
            self.queue_of(request.key).window.on_timeout();
        }
        self.retry(request, RequestError::TimedOut);
    }

    /// Queues a request again, or ends it after its last try.
    fn retry(&mut self, request: InFlight, error: RequestError) {
        let (key, retries) = (request.key, self.retries());
        let destination = self.destination(key);
        if let Some(why) = destination.given_up {
            // All requests queued for it end, too.
            let waiting = std::mem::take(&mut destination.queue);
            self.queued -= waiting.len();
            self.finished.push_back((request.pending.tag, Err(error)));
            self.finished.extend(waiting.into_iter().map(|pending| (pending.tag, Err(why))));
        } else if request.pending.tries >= destination.tries(retries) {
            self.finish(&request, Err(error));
        } else {
            // Behind other queued requests, to which the node may respond.
            self.enqueue(key, request.pending);
        }
    }

    /// Puts a request back to the front of its queue; the try does not count.
    fn put_back(&mut self, mut request: InFlight) {
        request.pending.tries -= 1;
        self.destination(request.key).queue.push_front(request.pending);
        self.queued += 1;
        self.mark_ready(request.key);
    }

    /// Removes a request from its slot and its windows.
    fn remove(&mut self, transaction_id: u32) -> Option<InFlight> {
        let request = self.slots.remove(transaction_id)?;
        let queue = self.queue_of(request.key);
        queue.in_flight -= 1;
        queue.slow -= u16::from(request.slow);
        self.destination(request.key).in_flight -= 1;
        Some(request)
    }

    /// Handles what the transport did with a MAD. Returns whether others may be sent at once.
    pub fn handle_sent(
        &mut self,
        outgoing: &OutgoingMad,
        result: Result<(), SendError>,
        now: Moment,
    ) -> Result<bool, TransportError> {
        let transaction_id = outgoing.mad.transaction_id();
        match result {
            Ok(()) => self.full_since = None,
            Err(SendError::Full) => {
                let since = *self.full_since.get_or_insert(now);
                if now.since(since) <= MAX_FULL {
                    if let Some(request) = self.remove(transaction_id) {
                        self.put_back(request);
                    }
                    self.full_until = now + FULL_RETRY;
                    return Ok(false);
                }
                // Full for long: the others fail like this one.
                self.end_unsent(transaction_id);
            }
            Err(SendError::Refused(error)) => {
                tracing::debug!(lid = %outgoing.lid, class = outgoing.class.label(), %error, "MAD refused");
                self.end_unsent(transaction_id);
            }
            Err(SendError::Transport(error)) => {
                self.reset();
                return Err(error);
            }
        }
        Ok(true)
    }

    fn end_unsent(&mut self, transaction_id: u32) {
        if let Some(request) = self.remove(transaction_id) {
            self.stats.record(request.pending.request.class(), MadOutcome::Unsent);
            self.finish(&request, Err(RequestError::Unsent));
        }
    }

    /// Ends requests past their deadline, and makes room for others while responses are slow.
    pub fn handle_timeout(&mut self, now: Moment) {
        let due = self.slots.check(now);
        for queue_pair in due.slow {
            self.queues[queue_pair as usize].slow += 1;
        }
        for transaction_id in due.expired {
            if let Some(request) = self.remove(transaction_id) {
                self.on_timeout(request, now);
            }
        }
    }

    /// When [`MadClient::handle_timeout`] or [`MadClient::poll_transmit`] must be called next.
    pub fn poll_timeout(&self, now: Moment) -> Moment {
        // A full transport sends nothing, even after a back-off.
        let next_send = if self.full_until > now {
            self.full_until
        } else {
            self.backing_off.peek().map_or(Moment::NEVER, |Reverse((until, _))| *until)
        };
        self.slots.next_check.min(next_send)
    }

    /// The next outcome of a request, with its tag.
    pub fn poll_finished(&mut self) -> Option<(u64, Result<Mad, RequestError>)> {
        self.finished.pop_front()
    }

    /// Drops queued requests without an outcome: the run ends.
    pub fn cancel_queued(&mut self) {
        self.destinations.values_mut().for_each(|destination| destination.queue.clear());
        self.queued = 0;
        self.is_stopping = true;
    }

    /// Forgets every request, because the transport is gone.
    pub fn reset(&mut self) {
        *self = MadClient {
            heartbeat: self.heartbeat.clone(),
            stats: std::mem::take(&mut self.stats),
            // Late responses to requests before this match none after it.
            slots: Slots::new(self.slots.generation),
            ..MadClient::new(self.config)
        };
    }

    fn queue_of(&mut self, key: Key) -> &mut QueueState {
        &mut self.queues[key.queue_pair as usize]
    }

    fn destination(&mut self, key: Key) -> &mut Destination {
        let windows = [self.config.smp_lid_window, self.config.gmp_lid_window];
        self.destinations
            .entry(key)
            .or_insert_with(|| Destination::new(windows[key.queue_pair as usize]))
    }

    /// Puts a destination in the ready queue, if it has a queued request and room in its window.
    fn mark_ready(&mut self, key: Key) {
        let destination = self.destination(key);
        if destination.has_room() && !destination.is_ready {
            destination.is_ready = true;
            self.queue_of(key).ready.push_back(key);
        }
    }
}

#[cfg(test)]
mod tests;
