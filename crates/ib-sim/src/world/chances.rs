//! Chance and load: what is reckoned anew when something has changed, and what is drawn each second.

use std::time::Duration;

use crate::chance::Chance;
use crate::load::{Conditions, Flow, PortLoad, Routed};
use crate::net::PortId;
use ib_mad::Moment;
use ib_mad::counter::Counter;
use ib_mad::rate::Speed;

use super::counts::ticks_a_second;
use super::{PortState, Stale, World};

/// Errors are drawn for so long at a time, and whenever something changes.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// LocalPhyErrors, PortInfo's threshold: with more symbol errors than this at a time a
/// LocalLinkIntegrityError is counted. 8 is what devices come with; "at a time" is a second here.
const LOCAL_PHYSICAL_ERRORS: u64 = 8;

/// The bit error ratio before correction that a sound link of four-level signals (HDR and newer)
/// has, and a bad one whose ratio after correction is 1e-13 (the limit for most).
const RAW_SOUND: f64 = 1e-8;
const RAW_AT_LIMIT: f64 = 1e-5;
const LIMIT: f64 = 1e-13;
/// RS(544,514) mends 15 symbols of a block: what it cannot mend goes with the 16th power.
const FEC_POWER: f64 = 16.0;

/// What a tick of PortXmitWait is where a device does not tell.
const USUAL_TICK: u8 = 7;

/// Whether a link of this speed runs with Reed-Solomon forward error correction.
pub fn has_fec(state: &PortState) -> bool {
    state.trained.is_some_and(|(_, speed)| speed >= Speed::Hdr)
}

impl World {
    /// Works out anew what traffic does, if something has changed that it depends on.
    pub(super) fn reckon(&mut self) {
        if self.stale == Stale::Nothing {
            return;
        }
        let links: Vec<Option<PortId>> = self
            .ports
            .iter()
            .map(|port| port.cable.filter(|_| port.trained.is_some() && port.is_active()))
            .collect();
        if self.stale == Stale::Routes {
            let flows: Vec<Flow> = self.traffic.values().flatten().copied().collect();
            self.routed = (!flows.is_empty()).then(|| Routed::new(&self.net, &links, &flows));
        }
        self.stale = Stale::Nothing;
        let capacity: Vec<f64> =
            self.ports.iter().map(|port| port.bytes_a_second() as f64).collect();
        let intake: Vec<f64> = self
            .ports
            .iter()
            .zip(&capacity)
            .map(|(port, most)| if port.intake < 1.0 { port.intake * most } else { f64::INFINITY })
            .collect();
        let bit_errors: Vec<f64> = self.ports.iter().map(|port| port.bit_errors).collect();
        let conditions = Conditions {
            net: &self.net,
            links: &links,
            capacity: &capacity,
            intake: &intake,
            bit_errors: &bit_errors,
        };
        let loads = self.routed.as_ref().map(|routed| routed.load(&conditions));
        self.dicey.clear();
        for port in self.net.port_ids() {
            let load = loads.as_ref().map_or(PortLoad::default(), |loads| loads[port.0 as usize]);
            let tick = self.net.node_of(port).model.tick.unwrap_or(USUAL_TICK);
            let now = self.now;
            let state = &mut self.ports[port.0 as usize];
            let bits = bits_a_second(state);
            state.counts.carry(now, load, ticks_a_second(state.trained, tick));
            state.counts.mend(now, if has_fec(state) { bits * raw(state.bit_errors) } else { 0.0 });
            let dicey = [
                state.bit_errors * bits,
                load.rcv_errors,
                load.rcv_remote_physical_errors,
                load.hoq_discards,
                load.inactive_discards,
            ];
            if dicey.iter().any(|&rate| rate > 0.0) {
                self.dicey.push(port);
            }
        }
        // Time in which chance had nothing to say is not made up for.
        self.drawn = self.now;
    }

    /// What chance has brought since the last draw. Each draw is named by its port, its moment and
    /// what it is for, so it is the same whatever else happens.
    pub(super) fn draw(&mut self) {
        let seconds = self.now.since(self.drawn).as_secs_f64();
        self.drawn = self.now;
        for index in 0..self.dicey.len() {
            let port = self.dicey[index];
            let state = &mut self.ports[port.0 as usize];
            let load = *state.counts.load();
            let fec = has_fec(state);
            let symbols = state.bit_errors * bits_a_second(state);
            let drawn = |what: Counter, mean: f64| {
                let name = [u64::from(port.0), self.now.0, what as u64];
                let mean = mean * seconds;
                if mean > 0.0 { Chance::at(self.seed, &name).poisson(mean) } else { 0 }
            };
            let symbols = drawn(Counter::SymbolErrors, symbols);
            let errors = drawn(Counter::RcvErrors, load.rcv_errors);
            let remote = drawn(Counter::RcvRemotePhysicalErrors, load.rcv_remote_physical_errors);
            let late = drawn(Counter::XmitHoqLimitDiscards, load.hoq_discards);
            let inactive = drawn(Counter::XmitInactiveDiscards, load.inactive_discards);
            for (counter, count) in [
                (Counter::SymbolErrors, symbols),
                // What is left behind error correction is what it could not mend.
                (Counter::FecUncorrectableBlocks, if fec { symbols } else { 0 }),
                (Counter::LocalLinkIntegrityErrors, u64::from(symbols > LOCAL_PHYSICAL_ERRORS)),
                (Counter::RcvErrors, errors),
                (Counter::RcvLocalPhysicalErrors, errors),
                (Counter::RcvRemotePhysicalErrors, remote),
                (Counter::XmitDiscards, late + inactive),
                (Counter::XmitHoqLimitDiscards, late),
                (Counter::XmitInactiveDiscards, inactive),
            ] {
                state.counts.add(counter, count);
            }
        }
    }
}

/// When the next draw is due, on the whole second, after one at this moment.
pub fn next_after(drawn: Moment) -> Moment {
    let interval = INTERVAL.as_nanos() as u64;
    Moment((drawn.0 / interval + 1).saturating_mul(interval))
}

fn bits_a_second(state: &PortState) -> f64 {
    state.bytes_a_second() as f64 * 8.0
}

/// The bit error ratio before forward error correction, from the one behind it.
fn raw(ratio: f64) -> f64 {
    if ratio > 0.0 {
        (RAW_AT_LIMIT * (ratio / LIMIT).powf(1.0 / FEC_POWER)).max(RAW_SOUND)
    } else {
        RAW_SOUND
    }
}
