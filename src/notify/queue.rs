//! The events that are to be sent. The queue is bounded: the oldest are dropped, counted, and told to the receiver.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ring::rand::{SecureRandom, SystemRandom};

use super::payload::PayloadEvent;

/// How much is held, and sent at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub events: usize,
    /// Of all events, as JSON.
    pub bytes: usize,
    pub batch: usize,
}

impl Default for Limits {
    /// An event is 0.5 kB of JSON, and some 1 kB of memory. A switch of 64 ports that fails has 200 events.
    fn default() -> Self {
        Limits { events: 10_000, bytes: 16 << 20, batch: 100 }
    }
}

display_text::labeled_enum! {
    /// Why an event is not sent.
    pub enum DropReason {
        QueueFull, "queue_full", "The receiver accepted nothing for so long that later events needed the space.";
        Rejected, "rejected", "The receiver answered that it does not want the request.";
    }
}

/// What became of events.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueStats {
    /// Events that a receiver has accepted.
    pub sent: u64,
    /// Events that were dropped, by [`DropReason`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Requests that failed and are repeated.
    pub failed_attempts: u64,
    /// Events that are not sent yet.
    pub length: usize,
    /// When a receiver has accepted events for the last time.
    pub last_success: Option<SystemTime>,
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    limits: Limits,
    /// Of this process: the ids of events begin with it.
    instance: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Queued>,
    /// Of all events.
    bytes: usize,
    /// The number of events that were ever added.
    added: u64,
    /// So many events at the front are being sent.
    in_flight: usize,
    /// Events that were dropped, which the receiver was not told.
    untold: u64,
    /// No events are added any more.
    is_closed: bool,
    /// Nothing is sent any more.
    is_over: bool,
    stats: QueueStats,
}

#[derive(Debug)]
struct Queued {
    event: Arc<PayloadEvent>,
    bytes: usize,
}

/// Events that are sent in one request.
#[derive(Debug)]
pub(super) struct Batch {
    pub events: Vec<Arc<PayloadEvent>>,
    /// How many were dropped before.
    pub dropped: u64,
}

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        let mut random = [0; 8];
        // Without it ids are those of this time: two processes do not start in one nanosecond.
        if SystemRandom::new().fill(&mut random).is_err() {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            random = (now.as_nanos() as u64).to_be_bytes();
        }
        let instance = format!("{:016x}", u64::from_be_bytes(random));
        Queue { limits, instance, state: Mutex::default(), changed: Condvar::new() }
    }

    pub(super) fn instance(&self) -> &str {
        &self.instance
    }

    /// The present numbers.
    pub fn stats(&self) -> QueueStats {
        let state = self.lock();
        QueueStats { length: state.events.len(), ..state.stats }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event that is made with its id. The oldest ones that are not being sent make room for it.
    fn push(&self, make: impl FnOnce(String) -> PayloadEvent) {
        let mut state = self.lock();
        state.added += 1;
        let event = make(format!("{}-{}", self.instance, state.added));
        let bytes = serde_json::to_vec(&event).map_or(0, |json| json.len());
        state.events.push_back(Queued { event: Arc::new(event), bytes });
        state.bytes += bytes;
        let mut dropped = 0;
        while state.events.len() > self.limits.events || state.bytes > self.limits.bytes {
            let oldest = state.in_flight;
            let Some(removed) = state.events.remove(oldest) else { break };
            state.bytes -= removed.bytes;
            dropped += 1;
        }
        if dropped > 0 {
            if state.untold == 0 {
                tracing::warn!(
                    queued = state.events.len(),
                    "notifications are dropped, the oldest first: the receiver of --notify.webhook is unreachable or slow, or refuses the token"
                );
            }
            state.untold += dropped;
            state.stats.dropped[DropReason::QueueFull as usize] += dropped;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ends it: no events are added any more.
    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits for events, and then so long for others of the same sweep. They stay in the queue until it is told what
    /// became of them. `None` once it is closed and empty.
    pub(super) fn next(&self, gather: Duration) -> Option<Batch> {
        let mut state = self.lock();
        while state.events.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_waiting = |state: &State| !state.is_closed && state.events.len() < self.limits.batch;
        state = self.wait_while(state, gather, is_waiting);
        state.in_flight = state.events.len().min(self.limits.batch);
        let events = state.events.iter().take(state.in_flight);
        let events = events.map(|queued| Arc::clone(&queued.event)).collect();
        Some(Batch { events, dropped: state.untold })
    }

    /// Waits while this holds, but no longer than so long.
    fn wait_while<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit: Duration,
        is_waiting: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let began = Instant::now();
        while is_waiting(&state) {
            let Some(rest) = limit.checked_sub(began.elapsed()).filter(|it| !it.is_zero()) else {
                break;
            };
            let waited = self.changed.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    /// The batch has arrived.
    pub(super) fn sent(&self, batch: &Batch) {
        let mut state = self.lock();
        state.stats.sent += state.take_sent();
        state.stats.last_success = Some(SystemTime::now());
        state.untold = state.untold.saturating_sub(batch.dropped);
        self.changed.notify_all();
    }

    /// The batch is not wanted.
    pub(super) fn rejected(&self) {
        let mut state = self.lock();
        let count = state.take_sent();
        state.stats.dropped[DropReason::Rejected as usize] += count;
        state.untold += count;
        self.changed.notify_all();
    }

    /// The batch did not arrive, as far as is known: it is to be sent again.
    pub(super) fn failed(&self) {
        let mut state = self.lock();
        state.in_flight = 0;
        state.stats.failed_attempts += 1;
    }

    /// Waits so long, or until the queue is closed.
    pub(super) fn pause(&self, time: Duration) {
        drop(self.wait_while(self.lock(), time, |state| !state.is_closed));
    }

    /// Nothing is sent any more.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Closes the queue, waits at most so long until all is sent, and returns how many events are left.
    pub fn finish(&self, limit: Duration) -> usize {
        self.close();
        let is_busy = |state: &State| !state.is_over && !state.events.is_empty();
        self.wait_while(self.lock(), limit, is_busy).events.len()
    }
}

impl State {
    /// Removes the events that were sent, and returns how many they were.
    fn take_sent(&mut self) -> u64 {
        let count = std::mem::take(&mut self.in_flight);
        for queued in self.events.drain(..count) {
            self.bytes -= queued.bytes;
        }
        count as u64
    }
}

/// What adds events to a queue. The queue is closed when it is dropped.
#[derive(Debug)]
pub(super) struct QueueInput(Arc<Queue>);

impl QueueInput {
    pub fn new(queue: &Arc<Queue>) -> Self {
        QueueInput(Arc::clone(queue))
    }

    pub fn push(&self, make: impl FnOnce(String) -> PayloadEvent) {
        self.0.push(make);
    }
}

impl Drop for QueueInput {
    fn drop(&mut self) {
        self.0.close();
    }
}
