//! The transport to a simulated fabric: requests are executed at once, and the responses arrive later.
//!
//! A multi-plane HCA has a local port for each plane. A directed route leaves by the port of its plane; a GMP reaches
//! its LID by whichever plane leads there; a LID-routed SMP gets lost beyond the first switch.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ib_mad::moment::Anchor;
use ib_mad::{Lid, Moment};
use ib_mad::{Mad, status};
use ib_umad::{
    LocalPort, MadTransport, OutgoingMad, PlaneSet, Received, SendError, TransportError,
};
use process_clock::Clock;

use super::agents;
use super::net::{Net, PortId};
use super::rng::Rng;
use super::simulation::{HopCounts, Simulation, follow_route};
use crate::change::AgentBehavior;

/// The clock of a transport and its simulation.
#[derive(Clone, Copy, Debug)]
pub enum SimClock {
    /// Real time.
    Real(Clock),
    /// Time that advances at once when a caller waits: hours in milliseconds.
    Virtual {
        /// The time of day at the start.
        began: SystemTime,
    },
}

/// A simulation with several users: the transports of its planes, and a test.
pub type SharedSimulation = Arc<Mutex<Simulation>>;

/// Shares a simulation.
pub fn share(simulation: Simulation) -> SharedSimulation {
    Arc::new(Mutex::new(simulation))
}

/// Locks a simulation. Nothing panics while it is locked; if so, its state is still valid.
pub fn lock(simulation: &SharedSimulation) -> MutexGuard<'_, Simulation> {
    simulation.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transport of one port of a simulated fabric, or of the ports of all planes of a multi-plane HCA.
#[derive(Debug)]
pub struct SimTransport {
    simulation: SharedSimulation,
    /// Of a multi-plane HCA the first port, whose LID all have.
    port: PortId,
    clock: SimClock,
    now: Moment,
    /// What will arrive, by its time and the number of the request.
    arrivals: BTreeMap<(Moment, u64), Received>,
    sent: u64,
    /// The hop counts at a generation of the fabric: over trained links, which is enough for subnet
    /// management, and over active ones.
    hop_counts: Option<(u64, [HopCounts; 2])>,
}

/// A shorter wait is a busy wait: a thread that sleeps wakes up some 50 µs late.
const BUSY_WAIT: Duration = Duration::from_micros(200);

impl SimTransport {
    /// The transport of a port. The simulation starts when its clock does.
    pub fn new(simulation: SharedSimulation, port: PortId, clock: SimClock) -> Self {
        let port = lock(&simulation).net().sm_port(port);
        SimTransport {
            simulation,
            port,
            clock,
            now: Moment::default(),
            arrivals: BTreeMap::new(),
            sent: 0,
            hop_counts: None,
        }
    }

    /// Lets virtual time begin at a later moment.
    #[must_use]
    pub fn beginning_at(self, now: Moment) -> Self {
        SimTransport { now, ..self }
    }

    /// The response to a request and its delay; `None` if either gets lost.
    fn respond(&mut self, request: &OutgoingMad) -> Option<(Mad, Duration)> {
        let now = self.now();
        let mut simulation = lock(&self.simulation);
        simulation.advance(now);
        let mut rng = Rng::keyed(simulation.seed, &[u64::from(self.port.0), self.sent]);
        let (at, hops) = destination(&mut self.hop_counts, &simulation, self.port, request)?;
        let delivery = simulation.delivery;
        let mut delay = Duration::ZERO;
        // A request to the own port does not leave it.
        if hops > 0 {
            if rng.next_f64() < delivery.loss {
                return None;
            }
            let jitter = delivery.jitter.mul_f64(rng.next_f64());
            delay = delivery.round_trip + delivery.per_hop * u32::from(hops - 1) + jitter;
        }
        // Two limited members of a partition cannot communicate (IBTA 1.4, 10.9.1.1).
        let net = simulation.net();
        let is_limited = |port: PortId| simulation.node(net.port(port).node).limited;
        if hops > 0 && !request.class.is_smp() && is_limited(self.port) && is_limited(at) {
            simulation.refusals.p_key += 1;
            return None;
        }
        delay += agents::delay(&simulation, at, &request.mad)?;
        let mut is_busy = false;
        match simulation.node(net.port(at).node).behavior {
            AgentBehavior::Silent => return None,
            AgentBehavior::Delayed(by) => delay += by,
            AgentBehavior::Lossy(fraction) if rng.next_f64() < fraction => return None,
            AgentBehavior::Normal | AgentBehavior::Lossy(_) => {}
            AgentBehavior::Busy(fraction) => is_busy = rng.next_f64() < fraction,
        }
        // A busy agent does not execute the request.
        let mad = if is_busy {
            let mut mad = agents::response(&simulation, at, &request.mad)?;
            mad.set_status(status::BUSY);
            mad
        } else {
            agents::execute(&mut simulation, at, &request.mad)?
        };
        Some((mad, delay))
    }
}

/// Whether a port is one of a multi-plane HCA.
fn is_multi_plane(net: &Net, port: PortId) -> bool {
    net.plane_ports(port).nth(1).is_some()
}

fn is_active(simulation: &Simulation, port: PortId) -> bool {
    let is_on = simulation.node(simulation.net().port(port).node).on;
    is_on && simulation.port(port).state.is_active()
}

/// The planes of a multi-plane HCA whose ports are Active.
fn active_planes(simulation: &Simulation, port: PortId) -> PlaneSet {
    let net = simulation.net();
    if !is_multi_plane(net, port) {
        return PlaneSet::EMPTY;
    }
    let active = net.plane_ports(port).filter(|port| is_active(simulation, *port));
    active.fold(PlaneSet::EMPTY, |set, port| set.with(net.port(port).number))
}

/// The port that SMPs of a plane leave by; plane 0 is any, and the only one of another HCA.
fn smp_port(simulation: &Simulation, port: PortId, plane: u8) -> Option<PortId> {
    let mut ports = simulation.net().plane_ports(port);
    match plane {
        0 => Some(ports.find(|port| is_active(simulation, *port)).unwrap_or(port)),
        _ => ports.find(|port| simulation.net().port(*port).number == plane),
    }
}

/// The port that a request comes in by, and the number of hops to it; `None` if it gets lost.
fn destination(
    hop_counts: &mut Option<(u64, [HopCounts; 2])>,
    simulation: &Simulation,
    from: PortId,
    request: &OutgoingMad,
) -> Option<(PortId, u8)> {
    let net = simulation.net();
    if request.mad.is_directed() {
        let from = smp_port(simulation, from, request.plane)?;
        let route = request.mad.route_ports();
        return Some((follow_route(simulation, from, route)?, route.len() as u8));
    }
    hop_counts.take_if(|(generation, _)| *generation != simulation.generation);
    let (_, [trained, active]) = hop_counts.get_or_insert_with(|| {
        let found = [false, true].map(|active| HopCounts::new(simulation, from, active));
        (simulation.generation, found)
    });
    let port = simulation.port_of_lid(from, request.lid)?;
    let hop_counts = if request.class.is_smp() { trained } else { active };
    let hops = hop_counts.to(port)?;
    if request.class.is_smp() && hops > 0 && is_multi_plane(net, from) {
        let from = smp_port(simulation, from, 0)?;
        simulation.port(from).trained?;
        simulation.port(from).cable.filter(|first| net.sm_port(*first) == port)?;
    }
    Some((port, hops))
}

impl MadTransport for SimTransport {
    fn now(&self) -> Moment {
        match self.clock {
            SimClock::Real(clock) => clock.now(),
            SimClock::Virtual { .. } => self.now,
        }
    }

    fn anchor(&self) -> Anchor {
        match self.clock {
            SimClock::Real(clock) => clock.anchor(),
            SimClock::Virtual { began } => {
                Anchor { moment: self.now, wall: began + self.now.since(Moment::default()) }
            }
        }
    }

    fn local_port(&self) -> LocalPort {
        let simulation = lock(&self.simulation);
        let guid = simulation.net().port(self.port).guid;
        let lid = Some(simulation.port(self.port).lid).filter(|lid| lid.is_unicast());
        let planes = active_planes(&simulation, self.port);
        LocalPort { guid: Some(guid), lid, planes, ..LocalPort::UNKNOWN }
    }

    fn refresh(&mut self) {}

    fn send(&mut self, request: &OutgoingMad) -> Result<(), SendError> {
        let now = self.now();
        if request.plane > 0 && !self.local_port().planes.iter().any(|it| it == request.plane) {
            return Err(SendError::Refused(io::Error::other("the plane is not Active")));
        }
        self.sent += 1;
        // The kernel reports the timeout of a request, and drops a later response.
        let in_time = self.respond(request).filter(|(_, delay)| *delay <= request.timeout);
        let (delay, arrival) = if let Some((mad, delay)) = in_time {
            let from = if request.mad.is_directed() { Lid::PERMISSIVE } else { request.lid };
            (delay, Received::Mad { from, mad })
        } else {
            let (class, transaction_id) = (request.mad.class(), request.mad.transaction_id());
            (request.timeout, Received::Expired { class, transaction_id })
        };
        self.arrivals.insert((now + delay, self.sent), arrival);
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        loop {
            let next = self.arrivals.first_key_value().map_or(Moment::NEVER, |((at, _), _)| *at);
            match self.clock {
                SimClock::Virtual { .. } => self.now = self.now.max(next.min(until)),
                SimClock::Real(clock) => {
                    let wait = next.min(until).since(self.now());
                    // The end of a wait is a busy wait.
                    if wait > BUSY_WAIT {
                        clock.sleep(wait.saturating_sub(BUSY_WAIT / 2));
                    }
                }
            }
            let now = self.now();
            if next <= now {
                return Ok(self.arrivals.pop_first().map(|(_, arrival)| arrival));
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
