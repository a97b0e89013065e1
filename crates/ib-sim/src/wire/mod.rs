//! The wire to a fabric that is not there: requests are answered on the spot, and the answers come
//! in when their time has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ib_mad::clock::Clock;
use ib_mad::moment::Anchor;
use ib_mad::{Guid, Lid, Moment};
use ib_mad::{Mad, status};
use ib_umad::{MadTransport, OutgoingMad, Received, SendError, TransportError};

use super::agents;
use super::chance::Chance;
use super::net::PortId;
use super::scenario::Manner;
use super::world::{Reach, World, follow};

/// The clock that a wire and its world live by.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// Time goes by as it does outside.
    Real(Clock),
    /// Time goes by when somebody waits, at once: hours in milliseconds.
    Virtual {
        /// The time of day at the beginning.
        began: SystemTime,
    },
}

/// A world that several may ask: the wires of its planes, and a test.
pub type Shared = Arc<Mutex<World>>;

/// Shares a world.
pub fn share(world: World) -> Shared {
    Arc::new(Mutex::new(world))
}

/// The world, for a moment. Nobody panics while holding it, and if so it is as good as it was.
pub fn look(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wire of one port of a simulated fabric.
#[derive(Debug)]
pub struct SimWire {
    world: Shared,
    seat: PortId,
    time: Time,
    now: Moment,
    /// What is under way to us, the next first.
    arrivals: BinaryHeap<Reverse<Arrival>>,
    sent: u64,
    reach: Ways,
}

/// What is on its way to us.
#[derive(Debug)]
struct Arrival {
    at: Moment,
    /// Of two at one moment, the one that was asked for first.
    number: u64,
    what: Received,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The ways from a seat, found out once for each shape of the fabric.
#[derive(Debug, Default)]
struct Ways {
    shape: Option<u64>,
    /// For subnet management, which needs a trained link and no more.
    trained: Reach,
    active: Reach,
}

/// A wait shorter than this is spent looking at the clock: a thread that sleeps wakes up some 50 µs
/// late.
const SHORT_WAIT: Duration = Duration::from_micros(200);

impl SimWire {
    /// The wire of a port. The world begins when its clock does.
    pub fn new(world: Shared, seat: PortId, time: Time) -> Self {
        SimWire {
            world,
            seat,
            time,
            now: Moment::default(),
            arrivals: BinaryHeap::new(),
            sent: 0,
            reach: Ways::default(),
        }
    }

    fn deliver(&mut self, at: Moment, what: Received) {
        self.arrivals.push(Reverse(Arrival { at, number: self.sent, what }));
    }

    /// The answer to a request and how long it takes to come; `None` where either gets lost.
    fn answer(&mut self, parcel: &OutgoingMad) -> Option<(Mad, Duration)> {
        let now = self.now();
        let mut world = look(&self.world);
        world.advance(now);
        let mut chance = Chance::at(world.seed(), &[u64::from(self.seat.0), self.sent]);
        let (at, hops) = destination(&mut self.reach, &world, self.seat, parcel)?;
        let way = *world.way();
        let mut after = Duration::ZERO;
        // A request to our own port does not go out.
        if hops > 0 {
            if chance.share() < way.loss {
                return None;
            }
            let jitter = way.jitter.mul_f64(chance.share());
            after = way.round_trip + way.per_hop * u32::from(hops - 1) + jitter;
        }
        // Of two limited members of a partition neither hears the other (IBTA 1.4, 10.9.1.1).
        let net = world.net();
        let is_limited = |port: PortId| world.is_limited(net.port(port).node);
        if hops > 0 && !parcel.class.is_smp() && is_limited(self.seat) && is_limited(at) {
            return None;
        }
        let mut busy = false;
        match world.manner(world.net().port(at).node) {
            Manner::Well => {}
            Manner::Silent => return None,
            Manner::Late(by) => after += by,
            Manner::Lossy(share) => {
                if chance.share() < share {
                    return None;
                }
            }
            Manner::Busy(share) => busy = chance.share() < share,
        }
        // Who is busy does nothing.
        let mad = if busy {
            let mut mad = agents::answer(&world, at, &parcel.mad)?;
            mad.set_status(status::BUSY);
            mad
        } else {
            agents::obey(&mut world, at, &parcel.mad)?
        };
        Some((mad, after))
    }
}

/// Which port a request comes in by, and how many hops away that is; `None` where it gets lost.
fn destination(
    ways: &mut Ways,
    world: &World,
    seat: PortId,
    parcel: &OutgoingMad,
) -> Option<(PortId, u8)> {
    if parcel.mad.is_directed() {
        let route = parcel.mad.route_ports();
        return Some((follow(world, seat, route)?, route.len() as u8));
    }
    if ways.shape != Some(world.shape()) {
        *ways = Ways {
            shape: Some(world.shape()),
            trained: Reach::from(world, seat, false),
            active: Reach::from(world, seat, true),
        };
    }
    let holder = world.holder(seat, parcel.lid)?;
    let reach = if parcel.class.is_smp() { &ways.trained } else { &ways.active };
    Some((holder, reach.hops(holder)?))
}

impl MadTransport for SimWire {
    fn now(&self) -> Moment {
        match self.time {
            Time::Real(clock) => clock.now(),
            Time::Virtual { .. } => self.now,
        }
    }

    fn anchor(&self) -> Anchor {
        match self.time {
            Time::Real(clock) => clock.anchor(),
            Time::Virtual { began } => {
                Anchor { moment: self.now, wall: began + self.now.since(Moment::default()) }
            }
        }
    }

    fn port_guid(&self) -> Option<Guid> {
        Some(look(&self.world).net().port(self.seat).guid)
    }

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        self.sent += 1;
        let now = self.now();
        // When the time that it was given is over the kernel says so, and what comes after that it
        // throws away.
        let in_time = self.answer(parcel).filter(|(_, after)| *after <= parcel.timeout);
        if let Some((mad, after)) = in_time {
            let from = if parcel.mad.is_directed() { Lid::PERMISSIVE } else { parcel.lid };
            self.deliver(now + after, Received::Mad { from, mad });
        } else {
            let transaction = parcel.mad.transaction_id();
            self.deliver(now + parcel.timeout, Received::Expired { transaction_id: transaction });
        }
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        loop {
            let next = self.arrivals.peek().map_or(Moment::NEVER, |Reverse(next)| next.at);
            match self.time {
                Time::Virtual { .. } => self.now = self.now.max(next.min(until)),
                Time::Real(clock) => {
                    let wait = next.min(until).since(self.now());
                    // Half of a short wait is left for looking at the clock.
                    if wait > SHORT_WAIT {
                        clock.sleep(wait.saturating_sub(SHORT_WAIT / 2));
                    }
                }
            }
            let now = self.now();
            if next <= now {
                return Ok(self.arrivals.pop().map(|Reverse(arrival)| arrival.what));
            }
            if until <= now {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests;
