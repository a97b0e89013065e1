//! A sans-I/O client for many requests in flight, each with its own deadline.
//!
//! A state machine: it takes received MADs and the time, and returns MADs to send and the time of the next
//! wake-up. All that it waits for has a deadline, and each request ends exactly once.

mod adaptive_window;
mod config;
mod destination;
mod destinations;
mod in_flight;
mod pacer;
mod queue;

pub use config::SendConfig;
pub use in_flight::MAX_IN_FLIGHT;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use ib_mad::class_port_info::Redirect;
use ib_mad::ids::MAX_LMC;
use ib_mad::{Class, Lid, Mad, Moment, status};

use crate::heartbeat::Heartbeat;
use crate::request::{Address, QueuePair, Request, RequestError};
use crate::stats::{MadOutcome, MadStats};
use crate::transport::{OutgoingMad, Received, SendError, TransportError};
use destination::Destination;
use destinations::Destinations;
use in_flight::{InFlight, Key, Pending, Side, Slots};
use pacer::Pacer;
use queue::QueueState;

/// The kernel's time-out is this much shorter than ours: it has dropped a request before the retry is sent.
const GRACE: Duration = Duration::from_millis(100);

const FULL_RETRY: Duration = Duration::from_millis(1);
/// After this time with a full transport requests fail.
const MAX_FULL: Duration = Duration::from_secs(2);

const MAX_REDIRECTS: u8 = 2;

/// Spare queues, and their size: of 40 kB in total.
const MAX_SPARE: usize = 64;
const MAX_SPARE_CAPACITY: usize = 4;

/// The client; see the [module](self).
#[derive(Debug)]
pub struct MadClient {
    config: SendConfig,
    /// The heartbeat of the loops that use this client.
    pub heartbeat: Heartbeat,
    /// After this time with requests in flight in a run a destination that responds is given up for the run: a slow
    /// agent must not delay what is read of the others.
    pub time_limit: Option<Duration>,
    stats: MadStats,
    slots: Slots,
    destinations: Destinations,
    /// By queue pair.
    queues: [QueueState; 2],
    /// Busy destinations, by the end of their back-off.
    backing_off: BinaryHeap<Reverse<(Moment, Key)>>,
    queued: usize,
    /// Queues that got empty, for the next destinations: none keeps one, and few have requests at a time.
    spare: Vec<VecDeque<Pending>>,
    pacer: Pacer,
    /// The run ends: what times out is not sent again.
    is_stopping: bool,
    /// The largest LMC of the fabric's ports.
    lmc: u8,
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
            time_limit: None,
            stats: MadStats::default(),
            slots: Slots::new(Side::First, 0),
            destinations: Destinations::new([config.smp_lid_window, config.gmp_lid_window]),
            queues: [config.smp_window, config.gmp_window].map(QueueState::new),
            backing_off: BinaryHeap::new(),
            queued: 0,
            spare: Vec::new(),
            pacer: Pacer::new(config.max_mads_per_second),
            is_stopping: false,
            lmc: MAX_LMC,
            finished: VecDeque::new(),
            full_since: None,
            full_until: Moment::default(),
        }
    }

    /// Creates another client for the same port, with the same heartbeat and limit of MADs per second. A late response or
    /// time-out of one client's request never ends a request of the other: their transaction ids differ.
    #[must_use]
    pub fn beside(&self, config: SendConfig) -> Self {
        MadClient {
            heartbeat: self.heartbeat.clone(),
            slots: Slots::new(self.slots.side.other(), 0),
            pacer: self.pacer.clone(),
            ..MadClient::new(config)
        }
    }

    /// Statistics of all MADs so far.
    pub fn stats(&self) -> &MadStats {
        &self.stats
    }

    /// Begins a new run: unresponsive destinations are probed again.
    pub fn begin_run(&mut self) {
        self.backing_off.clear();
        self.is_stopping = false;
        self.destinations.iter_mut().for_each(Destination::begin_run);
        if self.is_idle() {
            // No key is kept but those of destinations whose requests were all ended at once.
            self.queues.iter_mut().for_each(|queue| queue.ready.clear());
            self.destinations.forget_routes();
        }
    }

    /// Sets the largest LMC of the fabric's ports: with it, a response may come from any LID of the port that was
    /// asked. Until then it may be 7.
    pub fn set_lmc(&mut self, lmc: u8) {
        self.lmc = lmc;
    }

    /// Forgets redirects: LIDs may belong to other nodes now.
    pub fn clear_redirects(&mut self) {
        self.destinations.iter_mut().for_each(|destination| destination.redirect = None);
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
        let key = self.destinations.key(request.queue_pair(), request.to);
        match self.destination(key).given_up {
            Some(error) if !request.query.is_always_sent => {
                self.finished.push_back((tag, Err(error)));
            }
            _ => self.enqueue(key, pending),
        }
    }

    fn enqueue(&mut self, key: Key, pending: Pending) {
        let destination = self.destinations.get_mut(key);
        if destination.queue.is_empty() {
            // Of hundreds of bytes each: by default a queue allocates four, of each of 10,000 LIDs.
            destination.queue = self.spare.pop().unwrap_or_else(|| VecDeque::with_capacity(1));
        }
        destination.queue.push_back(pending);
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
        if now < self.next_send() {
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
            let destination = self.destinations.get_mut(key);
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
                let empty = std::mem::take(&mut destination.queue);
                if self.spare.len() < MAX_SPARE && empty.capacity() <= MAX_SPARE_CAPACITY {
                    self.spare.push(empty);
                }
            }
            pending.tries += 1;
            destination.on_sent(now);
            // Not for a Set: it is for the port that was read, not for any LID and queue pair.
            let redirect = destination.redirect.filter(|_| pending.request.query.clear.is_none());
            self.queues[qp as usize].in_flight += 1;
            self.queued -= 1;
            // To the end of the queue: round robin over destinations.
            self.mark_ready(key);
            let (request, timeout) = (pending.request, self.config.timeout);
            let asked = match request.to {
                Address::Lid(lid) => Some(redirect.map_or(lid, |redirect| redirect.lid)),
                // A directed route has no LIDs, and from another subnet the last router's comes.
                Address::Directed(_) | Address::Global(_) => None,
            };
            let transaction_id =
                self.slots.insert(pending, key, asked, now, now + (timeout + GRACE));
            let sl = self.config.sl;
            self.pacer.on_sent(now);
            return Some(OutgoingMad::new(&request, redirect, transaction_id, timeout, sl));
        }
        None
    }

    /// Handles what the transport received.
    pub fn handle_response(&mut self, received: Received, now: Moment) {
        match received {
            Received::Mad { from, mad } => self.handle_mad(from, mad, now),
            Received::Expired { class, transaction_id } => {
                // An unknown id is already counted: our own deadline was first. Kernel timers are coarse: at 250 Hz
                // up to 32 ms late after half a second, and 256 ms after more than two (kernel/time/timer.c).
                let is_it = |it: &InFlight| it.pending.request.class() as u8 == class;
                if self.slots.get(transaction_id).is_some_and(is_it)
                    && let Some(request) = self.remove(transaction_id, now)
                {
                    self.on_timeout(request, now);
                }
            }
            Received::Malformed { bytes } => {
                tracing::debug!(bytes, "malformed MAD received");
                self.stats.record(None, MadOutcome::Malformed);
            }
        }
    }

    /// Only the port that was asked can answer: neither the kernel nor the hardware compares the sender of a response,
    /// and each host of the fabric could forge one, whose transaction ids can be guessed.
    fn handle_mad(&mut self, from: Lid, mad: Mad, now: Moment) {
        let transaction_id = mad.transaction_id();
        let lmc = self.lmc;
        let is_known = self.slots.get(transaction_id).is_some_and(|request| {
            let Request { to, query } = &request.pending.request;
            query.matches_response(&mad, matches!(to, Address::Directed(_)))
                && request.asked.is_none_or(|asked| from.is_of_same_port(asked, lmc))
        });
        let Some(mut request) = is_known.then(|| self.remove(transaction_id, now)).flatten() else {
            tracing::debug!(%from, ?mad, "unexpected response received");
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
        let time_limit = self.time_limit;
        self.destination(request.key).on_response(now, time_limit);
        self.end_given_up(request.key);
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
        let is_gmp_by_lid = request.key.queue_pair == QueuePair::Qp1
            && matches!(request.pending.request.to, Address::Lid(_));
        let may_follow = is_gmp_by_lid
            && request.pending.redirects < MAX_REDIRECTS
            && request.pending.request.query.clear.is_none();
        match Redirect::decode(mad).filter(|_| may_follow) {
            Some(redirect) if self.destination(request.key).can_reach(&redirect) => {
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
        if request.pending.request.query.is_sent_once() {
            return self.finish(&request, Err(RequestError::TimedOut));
        }
        let retries = self.retries();
        let destination = self.destination(request.key);
        let given_up = destination.given_up;
        destination.on_timeout(request.sent, now, retries);
        if request.pending.request.query.is_always_sent {
            // It may be all that is dropped.
            destination.given_up = given_up;
        }
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
        if destination.given_up.is_some() {
            self.finished.push_back((request.pending.tag, Err(error)));
            self.end_given_up(key);
        } else if request.pending.tries >= destination.tries(retries) {
            self.finish(&request, Err(error));
        } else {
            // Behind other queued requests, to which the node may respond.
            self.enqueue(key, request.pending);
        }
    }

    /// Ends the requests queued for a destination that is given up, except those that are always sent.
    fn end_given_up(&mut self, key: Key) {
        let destination = self.destination(key);
        let Some(why) = destination.given_up else { return };
        let is_kept = |pending: &Pending| pending.request.query.is_always_sent;
        let (kept, ended): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut destination.queue).into_iter().partition(is_kept);
        destination.queue = kept;
        self.queued -= ended.len();
        let error = |pending: &Pending| match why {
            // It was sent.
            RequestError::Unresponsive if pending.tries > 0 => RequestError::TimedOut,
            why => why,
        };
        self.finished.extend(ended.iter().map(|pending| (pending.tag, Err(error(pending)))));
        self.mark_ready(key);
    }

    /// Puts a request back to the front of its queue; the try does not count.
    fn put_back(&mut self, mut request: InFlight) {
        request.pending.tries -= 1;
        self.destination(request.key).queue.push_front(request.pending);
        self.queued += 1;
        self.mark_ready(request.key);
    }

    /// Removes a request from its slot and its windows.
    fn remove(&mut self, transaction_id: u32, now: Moment) -> Option<InFlight> {
        let request = self.slots.remove(transaction_id)?;
        let queue = self.queue_of(request.key);
        queue.in_flight -= 1;
        queue.slow -= u16::from(request.slow);
        self.destination(request.key).on_end(now);
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
                    if let Some(request) = self.remove(transaction_id, now) {
                        self.put_back(request);
                    }
                    self.full_until = now + FULL_RETRY;
                    return Ok(false);
                }
                // Full for long: the others fail like this one.
                self.end_unsent(transaction_id, now);
            }
            Err(SendError::Refused(error)) => {
                tracing::debug!(lid = %outgoing.lid, class = outgoing.class.label(), %error, "MAD refused");
                self.end_unsent(transaction_id, now);
            }
            Err(SendError::Transport(error)) => {
                self.reset();
                return Err(error);
            }
        }
        Ok(true)
    }

    fn end_unsent(&mut self, transaction_id: u32, now: Moment) {
        if let Some(request) = self.remove(transaction_id, now) {
            self.stats.record(request.pending.request.class(), MadOutcome::Unsent);
            self.finish(&request, Err(RequestError::Unsent));
        }
    }

    /// Ends requests past their deadline, and makes room for others while responses are slow.
    pub fn handle_timeout(&mut self, now: Moment) {
        let due = self.slots.check(now);
        for (queue, slow) in self.queues.iter_mut().zip(due.slow) {
            queue.slow += slow;
        }
        for transaction_id in due.expired {
            if let Some(request) = self.remove(transaction_id, now) {
                self.on_timeout(request, now);
            }
        }
    }

    /// When the transport and the limit of MADs per second have room.
    fn next_send(&self) -> Moment {
        self.full_until.max(self.pacer.next())
    }

    /// When [`MadClient::handle_timeout`] or [`MadClient::poll_transmit`] must be called next.
    pub fn poll_timeout(&self, now: Moment) -> Moment {
        let next_send = self.next_send();
        let backed_off =
            self.backing_off.peek().map_or(Moment::NEVER, |Reverse((until, _))| *until);
        // What is ready now waits for nothing else, or for a response.
        let is_waiting = next_send > now && self.queues.iter().any(|queue| !queue.ready.is_empty());
        let wake_up = if is_waiting { next_send } else { backed_off.max(next_send) };
        self.slots.next_check.min(wake_up)
    }

    /// The next outcome of a request, with its tag.
    pub fn poll_finished(&mut self) -> Option<(u64, Result<Mad, RequestError>)> {
        self.finished.pop_front()
    }

    /// Drops queued requests without an outcome: the run ends.
    pub fn cancel_queued(&mut self) {
        for destination in self.destinations.iter_mut() {
            destination.queue.clear();
            destination.is_ready = false;
        }
        // A key that stays would keep the next run from its first request.
        self.queues.iter_mut().for_each(|queue| queue.ready.clear());
        self.backing_off.clear();
        self.queued = 0;
        self.is_stopping = true;
    }

    /// Forgets every request, because the transport is gone.
    pub fn reset(&mut self) {
        *self = MadClient {
            heartbeat: self.heartbeat.clone(),
            time_limit: self.time_limit,
            stats: std::mem::take(&mut self.stats),
            // Late responses to requests before this match none after it.
            slots: Slots::new(self.slots.side, self.slots.generation),
            lmc: self.lmc,
            pacer: self.pacer.clone(),
            ..MadClient::new(self.config)
        };
    }

    fn queue_of(&mut self, key: Key) -> &mut QueueState {
        &mut self.queues[key.queue_pair as usize]
    }

    fn destination(&mut self, key: Key) -> &mut Destination {
        self.destinations.get_mut(key)
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
