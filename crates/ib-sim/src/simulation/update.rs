//! Updates: the load of all ports after a change, and the random errors of each second.

use std::time::Duration;

use crate::load::{Conditions, Flow, PortLoad, RoutedFlows};
use crate::net::PortId;
use crate::rng::Rng;
use ib_mad::Moment;
use ib_mad::counter::Counter;
use ib_mad::port_state::PortState;

use super::port::{PhysicalRates, SimulatedPort};
use super::state::{Outdated, Simulation};

/// The interval at which errors are drawn. They are also drawn at each change.
const DRAW_INTERVAL: Duration = Duration::from_secs(1);

/// PortInfo:LocalPhyErrors: more symbol errors than this at a time are a LocalLinkIntegrityError. 8
/// is the default of devices; "at a time" is a second here.
const LOCAL_PHY_ERRORS: u64 = 8;

/// The bit error ratio before correction of a good link with four-level signals (HDR and newer),
/// and of a bad one whose ratio after correction is 1e-13 (the limit of most links).
const RAW_GOOD: f64 = 1e-8;
const RAW_AT_LIMIT: f64 = 1e-5;
const LIMIT: f64 = 1e-13;
/// RS(544,514) corrects 15 symbols of a block: what it cannot correct goes with the 16th power.
const FEC_POWER: f64 = 16.0;

/// The tick of PortXmitWait of a device without PortSamplesControl.
const DEFAULT_TICK: u8 = 7;

impl Simulation {
    /// Computes the load of all ports, if something has changed that it depends on.
    pub(super) fn update_load(&mut self) {
        if self.outdated == Outdated::Nothing {
            return;
        }
        // The ring between the ASICs of a switch carries management only.
        let link = |id: PortId| {
            let port = self.port(id);
            let peer = port.cable.filter(|_| port.state == PortState::Active)?;
            (!self.net.is_fnm_link(id, peer)).then_some(peer)
        };
        let links: Vec<Option<PortId>> = self.net.port_ids().map(link).collect();
        if self.outdated == Outdated::Routes {
            let flows: Vec<Flow> = self.traffic.values().flatten().copied().collect();
            self.routed = (!flows.is_empty()).then(|| RoutedFlows::new(&self.net, &links, &flows));
        }
        self.outdated = Outdated::Nothing;
        let of_ports = |value: fn(&SimulatedPort) -> f64| self.ports.iter().map(value).collect();
        let capacity: Vec<f64> = of_ports(|port| port.bytes_per_second() as f64);
        let intake: Vec<f64> = of_ports(|port| match port.intake {
            intake if intake < 1.0 => intake * port.bytes_per_second() as f64,
            _ => f64::INFINITY,
        });
        let bit_errors: Vec<f64> = of_ports(|port| port.bit_errors);
        let conditions =
            Conditions { capacity: &capacity, intake: &intake, bit_errors: &bit_errors };
        let loads = self.routed.as_ref().map(|routed| routed.load(&conditions));
        self.error_ports.clear();
        for port in self.net.port_ids() {
            let load = loads.as_ref().map_or(PortLoad::default(), |loads| loads[port.0 as usize]);
            let tick = self.net.node_of(port).model.tick.unwrap_or(DEFAULT_TICK);
            let now = self.now;
            let state = &mut self.ports[port.0 as usize];
            let bits = bits_per_second(state);
            let dirty = state.dirt.map_or(0.0, |dirt| dirt.ratio * bits / state.lanes() as f64);
            let lost = bits * state.bit_errors;
            let raw = if state.has_fec() { bits * raw(state.bit_errors) } else { lost };
            let corrected = if state.has_fec() { raw + dirty } else { 0.0 };
            state.physical.set_rates(now, PhysicalRates { bits, raw, dirty, lost });
            state.counts.set_load(now, load, state.ticks_per_second(tick), corrected);
            if error_rates(state).iter().any(|(_, rate)| *rate > 0.0) {
                self.error_ports.push(port);
            }
        }
        // No errors are drawn for the time without error ports.
        self.drawn_until = self.now;
    }

    /// The time of the next draw, on the whole second.
    pub(super) fn next_draw(&self) -> Moment {
        let interval = DRAW_INTERVAL.as_nanos() as u64;
        Moment((self.drawn_until.0 / interval + 1).saturating_mul(interval))
    }

    /// Draws the errors since the last draw. The key of a draw is its port, its moment and its
    /// counter, so it does not depend on what else happens.
    pub(super) fn draw_errors(&mut self) {
        let seconds = self.now.since(self.drawn_until).as_secs_f64();
        self.drawn_until = self.now;
        for index in 0..self.error_ports.len() {
            let port = self.error_ports[index];
            let state = &mut self.ports[port.0 as usize];
            let fec = state.has_fec();
            let draw = |(counter, rate): (Counter, f64)| {
                let key = [u64::from(port.0), self.now.0, counter as u64];
                let mean = rate * seconds;
                if mean > 0.0 { Rng::keyed(self.seed, &key).poisson(mean) } else { 0 }
            };
            let [symbols, errors, remote, late] = error_rates(state).map(draw);
            for (counter, count) in [
                (Counter::SymbolErrors, symbols),
                // Errors after the correction are those that it could not correct.
                (Counter::FecUncorrectableBlocks, if fec { symbols } else { 0 }),
                (Counter::LocalLinkIntegrityErrors, u64::from(symbols > LOCAL_PHY_ERRORS)),
                (Counter::RcvErrors, errors),
                (Counter::RcvLocalPhysicalErrors, errors),
                (Counter::RcvRemotePhysicalErrors, remote),
                (Counter::XmitDiscards, late),
                (Counter::XmitHoqLimitDiscards, late),
            ] {
                state.counts.add(counter, count);
            }
        }
    }
}

/// The counters of a port that errors add to at random, with their rates per second.
fn error_rates(state: &SimulatedPort) -> [(Counter, f64); 4] {
    let load = state.counts.load();
    [
        (Counter::SymbolErrors, state.bit_errors * bits_per_second(state)),
        (Counter::RcvErrors, load.rcv_errors),
        (Counter::RcvRemotePhysicalErrors, load.rcv_remote_physical_errors),
        (Counter::XmitHoqLimitDiscards, load.hoq_discards),
    ]
}

fn bits_per_second(state: &SimulatedPort) -> f64 {
    state.bytes_per_second() as f64 * 8.0
}

/// The bit error ratio before forward error correction, from the one after it.
fn raw(ratio: f64) -> f64 {
    if ratio > 0.0 {
        (RAW_AT_LIMIT * (ratio / LIMIT).powf(1.0 / FEC_POWER)).max(RAW_GOOD)
    } else {
        RAW_GOOD
    }
}
