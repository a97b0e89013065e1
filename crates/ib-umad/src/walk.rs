//! A walk over a fabric, and the loop that drives it over a wire.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;

use ib_mad::Mad;
use ib_mad::Moment;

use super::client::MadClient;
use super::{RequestError, QueuePair, OutgoingMad, Request, SendError, MadTransport, TransportError};

/// A state machine that knows what to ask, and learns from the answers what to ask next.
pub trait QueryPlan {
    /// The next question for this lane, with a tag that comes back with its outcome; `None` when
    /// there is none now. There may be more after another answer.
    fn next(&mut self, lane: QueuePair) -> Option<(Request, u64)>;

    /// A question's outcome, at the moment at which it was known.
    fn finished(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment);
}

/// Why a walk did not come to its end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The process is to end.
    #[error("stopped")]
    Stopped,
    /// The wire is gone.
    #[error(transparent)]
    MadTransport(#[from] TransportError),
}

/// How often a waiting thread looks whether it is to stop.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// How long a walk that is to stop waits for what is open: with the usual time-out, all of it.
const MOST_FAREWELL: Duration = Duration::from_secs(1);

/// While answers come in without a pause, deadlines are looked at this often. What has come in is
/// read first: an answer that waits in the queue is not late.
const EXPIRY_CHECK: Duration = Duration::from_millis(20);

/// Drives a walk to its end: until it has no more questions and none is open.
///
/// When `stop` is set nothing new is sent, and what is open is waited for, so that the device is left
/// clean; but not for longer than a second.
pub fn drive(
    walk: &mut impl QueryPlan,
    client: &mut MadClient,
    transport: &mut impl MadTransport,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    client.begin();
    let mut stop_by = None;
    let mut expired_at = transport.now();
    loop {
        let stopping = stop.load(Ordering::Relaxed);
        let now = transport.now();
        if stopping {
            client.cancel_queued();
            if now > *stop_by.get_or_insert(now + MOST_FAREWELL) {
                client.reset();
                return Err(RunError::Stopped);
            }
        }
        // The time is taken anew for each: a burst of 128 takes longer than a round trip.
        while let Some(outgoing) = poll_transmit(walk, client, transport.now(), stopping) {
            if !send(&outgoing, client, transport)? {
                break;
            }
        }
        while let Some((tag, outcome)) = client.poll_finished() {
            walk.finished(tag, outcome.as_ref().map_err(|failure| *failure), transport.now());
        }
        if client.is_idle() {
            if stopping {
                return Err(RunError::Stopped);
            }
            // The last outcomes may have raised new questions.
            if !pull(walk, client) {
                return Ok(());
            }
            continue;
        }
        let until = client.poll_timeout(now).min(now + STOP_CHECK);
        let received = transport.receive(until).inspect_err(|_| client.reset())?;
        let now = transport.now();
        let quiet = received.is_none();
        if let Some(received) = received {
            client.received(received, now);
        }
        if quiet || now.since(expired_at) >= EXPIRY_CHECK {
            client.expire(now);
            expired_at = now;
        }
    }
}

/// Takes one more question on, if there is one and a lane has room for it.
fn pull(walk: &mut impl QueryPlan, client: &mut MadClient) -> bool {
    let next = [QueuePair::Qp0, QueuePair::Qp1]
        .into_iter()
        .find_map(|lane| if client.has_room(lane) { walk.next(lane) } else { None });
    if let Some((request, tag)) = next {
        client.submit(request, tag);
    }
    next.is_some()
}

/// The next MAD to send: of what waits already, else of what the walk asks next.
fn poll_transmit(
    walk: &mut impl QueryPlan,
    client: &mut MadClient,
    now: Moment,
    stopping: bool,
) -> Option<OutgoingMad> {
    loop {
        let outgoing = client.poll_transmit(now);
        if outgoing.is_some() || stopping || !pull(walk, client) {
            return outgoing;
        }
    }
}

/// Sends one MAD; false when the wire has no room for any just now.
fn send(
    outgoing: &OutgoingMad,
    client: &mut MadClient,
    transport: &mut impl MadTransport,
) -> Result<bool, TransportError> {
    let transaction = outgoing.mad.transaction_id();
    match transport.send(outgoing) {
        Ok(()) => {
            client.taken();
            Ok(true)
        }
        Err(SendError::Full) => Ok(client.no_room(transaction, transport.now())),
        Err(SendError::Refused(error)) => {
            tracing::debug!(lid = %outgoing.lid, class = outgoing.class.label(), %error, "MAD refused");
            client.unsent(transaction);
            Ok(true)
        }
        Err(SendError::MadTransport(error)) => {
            client.reset();
            Err(error)
        }
    }
}

/// Waits until a moment, taking in what still comes in late, so that nothing piles up.
pub fn rest(
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
        if let Some(received) = transport.receive(until.min(now + STOP_CHECK))? {
            client.received(received, transport.now());
        }
    }
}
