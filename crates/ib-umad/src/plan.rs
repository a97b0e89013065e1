//! Query plans, and the loop that runs them over a transport.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ib_mad::{Mad, Moment};
use thiserror::Error;

use crate::client::MadClient;
use crate::request::{QueuePair, Request, RequestError};
use crate::transport::{MadTransport, TransportError};

/// A state machine that generates requests, the next ones from the responses to earlier ones.
pub trait QueryPlan {
    /// The next request for this queue pair, with a tag that its outcome returns; `None` if there is
    /// none now. Further responses may raise more requests.
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)>;

    /// Handles the outcome of a request, at the moment at which it was known.
    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment);

    /// Whether the run must end: requests that were not sent yet are dropped, and have no outcome.
    fn is_over(&self) -> bool {
        false
    }
}

/// Why a query plan was not completed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The process shuts down.
    #[error("stopped")]
    Stopped,
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Interval at which a waiting thread checks the stop flag.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// How long a stopped run waits for open requests: with the default time-out, for all of them.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval of deadline checks while responses arrive without a pause: one in the queue is not late.
const DEADLINE_CHECK: Duration = Duration::from_millis(20);

/// Runs a query plan until it has no more requests and none is open.
///
/// When `stop` is set no more requests are sent, and open ones are waited for, at most for a second.
pub fn run(
    plan: &mut impl QueryPlan,
    client: &mut MadClient,
    transport: &mut impl MadTransport,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    client.begin_run();
    let mut stop_by = None;
    // Read after each MAD that was sent or received, and not more often: a MAD takes a few microseconds.
    let mut now = transport.now();
    let mut checked_at = now;
    loop {
        let stopping = stop.load(Ordering::Relaxed);
        if stopping {
            client.cancel_queued();
            if now > *stop_by.get_or_insert(now + SHUTDOWN_TIMEOUT) {
                client.reset();
                return Err(RunError::Stopped);
            }
        }
        loop {
            let mut outgoing = client.poll_transmit(now);
            while outgoing.is_none() && !stopping && submit_next(plan, client) {
                outgoing = client.poll_transmit(now);
            }
            let Some(outgoing) = outgoing else { break };
            let is_free = client.handle_sent(&outgoing, transport.send(&outgoing), now)?;
            // A burst of 128 takes longer than a round trip.
            now = transport.now();
            if !is_free {
                break;
            }
        }
        while let Some((tag, outcome)) = client.poll_finished() {
            plan.handle_outcome(tag, outcome.as_ref().map_err(|error| *error), now);
        }
        if plan.is_over() {
            client.cancel_queued();
        }
        if client.is_idle() {
            if stopping {
                return Err(RunError::Stopped);
            }
            // The last outcomes may have raised new requests.
            if !submit_next(plan, client) {
                return Ok(());
            }
            continue;
        }
        let until = client.poll_timeout(now).min(now + STOP_CHECK);
        client.heartbeat.tick();
        let received = transport.receive(until).inspect_err(|_| client.reset())?;
        now = transport.now();
        let is_quiet = received.is_none();
        if let Some(received) = received {
            client.handle_response(received, now);
        }
        if is_quiet || now.since(checked_at) >= DEADLINE_CHECK {
            client.handle_timeout(now);
            checked_at = now;
        }
    }
}

/// Submits one more request, if the plan has one and its queue pair has room.
fn submit_next(plan: &mut impl QueryPlan, client: &mut MadClient) -> bool {
    let mut open = [QueuePair::Qp0, QueuePair::Qp1].into_iter().filter(|qp| client.has_room(*qp));
    let Some((request, tag)) = open.find_map(|qp| plan.next_request(qp)) else { return false };
    client.submit(request, tag);
    true
}

/// Waits until a moment and receives late responses meanwhile, so that they do not pile up.
pub fn drain_until(
    until: Moment,
    client: &mut MadClient,
    transport: &mut impl MadTransport,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped);
        }
        let now = transport.now();
        if now >= until {
            return Ok(());
        }
        client.heartbeat.tick();
        if let Some(received) = transport.receive(until.min(now + STOP_CHECK))? {
            client.handle_response(received, transport.now());
        }
    }
}
