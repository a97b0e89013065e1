//! A walk over a fabric, and the loop that drives it over a wire.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;

use ib_mad::Mad;
use ib_mad::Moment;

use super::transactor::Transactor;
use super::{Failure, Lane, Parcel, Request, SendError, Wire, WireError};

/// A state machine that knows what to ask, and learns from the answers what to ask next.
pub trait Walk {
    /// The next question for this lane, with a tag that comes back with its outcome; `None` when
    /// there is none now. There may be more after another answer.
    fn next(&mut self, lane: Lane) -> Option<(Request, u64)>;

    /// A question's outcome, at the moment at which it was known.
    fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>, at: Moment);
}

/// Why a walk did not come to its end.
#[derive(Debug, Error)]
pub enum Broken {
    /// The process is to end.
    #[error("stopped")]
    Stopped,
    /// The wire is gone.
    #[error(transparent)]
    Wire(#[from] WireError),
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
    walk: &mut impl Walk,
    transactor: &mut Transactor,
    wire: &mut impl Wire,
    stop: &AtomicBool,
) -> Result<(), Broken> {
    transactor.begin();
    let mut stop_by = None;
    let mut expired_at = wire.now();
    loop {
        let stopping = stop.load(Ordering::Relaxed);
        let now = wire.now();
        if stopping {
            transactor.abandon_unsent();
            if now > *stop_by.get_or_insert(now + MOST_FAREWELL) {
                transactor.forget_all();
                return Err(Broken::Stopped);
            }
        }
        // The time is taken anew for each: a burst of 128 takes longer than a round trip.
        while let Some(parcel) = next_parcel(walk, transactor, wire.now(), stopping) {
            if !send(&parcel, transactor, wire)? {
                break;
            }
        }
        while let Some((tag, outcome)) = transactor.next_finished() {
            walk.finished(tag, outcome.as_ref().map_err(|failure| *failure), wire.now());
        }
        if transactor.is_idle() {
            if stopping {
                return Err(Broken::Stopped);
            }
            // The last outcomes may have raised new questions.
            if !pull(walk, transactor) {
                return Ok(());
            }
            continue;
        }
        let until = transactor.wake_up(now).min(now + STOP_CHECK);
        let received = wire.receive(until).inspect_err(|_| transactor.forget_all())?;
        let now = wire.now();
        let quiet = received.is_none();
        if let Some(received) = received {
            transactor.received(received, now);
        }
        if quiet || now.since(expired_at) >= EXPIRY_CHECK {
            transactor.expire(now);
            expired_at = now;
        }
    }
}

/// Takes one more question on, if there is one and a lane has room for it.
fn pull(walk: &mut impl Walk, transactor: &mut Transactor) -> bool {
    let next = [Lane::Smp, Lane::Gmp]
        .into_iter()
        .find_map(|lane| if transactor.has_room(lane) { walk.next(lane) } else { None });
    if let Some((request, tag)) = next {
        transactor.submit(request, tag);
    }
    next.is_some()
}

/// The next MAD to send: of what waits already, else of what the walk asks next.
fn next_parcel(
    walk: &mut impl Walk,
    transactor: &mut Transactor,
    now: Moment,
    stopping: bool,
) -> Option<Parcel> {
    loop {
        let parcel = transactor.next_parcel(now);
        if parcel.is_some() || stopping || !pull(walk, transactor) {
            return parcel;
        }
    }
}

/// Sends one MAD; false when the wire has no room for any just now.
fn send(
    parcel: &Parcel,
    transactor: &mut Transactor,
    wire: &mut impl Wire,
) -> Result<bool, WireError> {
    let transaction = parcel.mad.transaction();
    match wire.send(parcel) {
        Ok(()) => {
            transactor.taken();
            Ok(true)
        }
        Err(SendError::Full) => Ok(transactor.no_room(transaction, wire.now())),
        Err(SendError::Refused(error)) => {
            tracing::debug!(lid = %parcel.lid, class = parcel.class.label(), %error, "MAD refused");
            transactor.unsent(transaction);
            Ok(true)
        }
        Err(SendError::Wire(error)) => {
            transactor.forget_all();
            Err(error)
        }
    }
}

/// Waits until a moment, taking in what still comes in late, so that nothing piles up.
pub fn rest(
    until: Moment,
    transactor: &mut Transactor,
    wire: &mut impl Wire,
    stop: &AtomicBool,
) -> Result<(), Broken> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Broken::Stopped);
        }
        let now = wire.now();
        if now >= until {
            return Ok(());
        }
        if let Some(received) = wire.receive(until.min(now + STOP_CHECK))? {
            transactor.received(received, wire.now());
        }
    }
}
