//! How counters grow: errors by the bit error ratio and the bits, traffic, corrections, waiting. And what devices report
//! of the physical layer of their ports and of modules.

use std::sync::Arc;

use ib_fabric::hardware::ReadAt;
use ib_health::congestion;
use ib_mad::Counter;
use ib_mad::register::{LANES, Module, PhysicalStatistics, monitor};
use ib_sim::rng::Rng;

use crate::cell::{Cell, between, exponential};
use crate::time::moment;
use crate::world::World;

/// From this mean on the number of errors is drawn at once.
const MANY: f64 = 20.0;

/// Words of a packet: 2 KiB and headers.
const WORDS_OF_PACKET: u64 = 520;

/// How many packets a full receive buffer drops in a busy second.
const OVERRUNS: f64 = 0.5;

/// The exporter reads the physical layer and modules at these intervals by default.
const PHYSICAL: f64 = 60.0;
const MODULES: f64 = 600.0;

/// A number from a normal distribution, by the number of ones among 64 random bits.
fn normal(rng: &mut Rng) -> f64 {
    (f64::from(rng.next_u64().count_ones()) - 32.0) / 4.0
}

impl Cell {
    #[expect(clippy::cast_sign_loss, reason = "no growth is below zero")]
    /// Lets the counters at both ends of a cable grow until a moment.
    pub fn grow(&mut self, cable: usize, until: f64, rng: &mut Rng) {
        let from = self.cables[cable].grown;
        self.cables[cable].grown = until;
        let seconds = until - from;
        if seconds <= 0.0 || !self.cables[cable].up || !self.has_both_nodes(cable) {
            return;
        }
        let bytes = self.bytes_per_second(cable);
        let is_active = until >= self.cables[cable].active_at;
        for side in 0..2 {
            let known = &mut self.cables[cable];
            if rng.next_u64().is_multiple_of(32) {
                // A job begins or ends.
                known.load[side] = [0.0, 0.02, 0.3, 0.7, 0.9][rng.below(5) as usize];
            }
            let (receiver, sender) = (known.ends[side], known.ends[1 - side]);
            let ratio = known.ratio(side, until);
            let bits = bytes * 8.0 * seconds;
            let load = if is_active { known.load[side] } else { 0.0 };
            let waits = known.congestion.filter(|_| side == 1);
            let pre_fec = known.pre_fec_ratio(side);
            let errors = self.errors(receiver, bits * f64::from(self.limits.symbol) * ratio, rng);
            if errors > 0 {
                self.corrupt(receiver, errors, load, rng);
            }
            if let Some(limit) = self.limits.pre_fec {
                let mean = bits * f64::from(limit) * pre_fec;
                let corrected = (mean + mean.sqrt() * normal(rng)).max(0.0) as u64;
                self.add(receiver, Counter::FecCorrectedSymbols, corrected);
                self.add(receiver, Counter::FecCorrectedBlocks, corrected);
            }
            let share = waits.map_or(0.001 * load, |(share, _)| share);
            self.wait(sender, cable, share * seconds);
            let load = load * (1.0 - waits.map_or(0.0, |(share, _)| share));
            let words = (bytes / 4.0 * load * seconds * (1.0 + 0.05 * normal(rng))).max(0.0) as u64;
            let packets = words / WORDS_OF_PACKET;
            for (port, data, all, unicast) in [
                (sender, Counter::XmitData, Counter::XmitPkts, Counter::UnicastXmitPkts),
                (receiver, Counter::RcvData, Counter::RcvPkts, Counter::UnicastRcvPkts),
            ] {
                self.add(port, data, words);
                self.add(port, all, packets);
                self.add(port, unicast, packets);
            }
            if waits.is_some_and(|(_, overruns)| overruns) && load > 0.3 {
                let dropped = rng.poisson(OVERRUNS * seconds);
                self.add(receiver, Counter::RcvErrors, dropped);
                self.add(receiver, Counter::RcvBufferOverrunErrors, dropped);
                self.add(sender, Counter::XmitDiscards, dropped);
            }
        }
    }

    /// How many of the expected errors a port receives.
    fn errors(&mut self, port: usize, mean: f64, rng: &mut Rng) -> u64 {
        if mean > MANY {
            return rng.poisson(mean);
        }
        let until = &mut self.ports[port].until_error;
        *until -= mean;
        let mut errors = 0;
        while *until <= 0.0 {
            errors += 1;
            *until += exponential(rng);
        }
        errors
    }

    /// A port receives errors: with traffic some hit a packet, and a switch marks what it has begun to forward.
    pub fn corrupt(&mut self, port: usize, errors: u64, load: f64, rng: &mut Rng) {
        self.add(port, Counter::SymbolErrors, errors);
        self.add(port, Counter::FecUncorrectableBlocks, errors);
        let packets = rng.poisson(errors as f64 * load).min(errors);
        self.add(port, Counter::RcvErrors, packets);
        self.add(port, Counter::RcvLocalPhysicalErrors, packets);
        let node = self.ports[port].node;
        if packets > 0 && self.nodes[node].is_switch {
            let number = 1 + rng.below(u64::from(self.nodes[node].ports)) as usize;
            let egress = self.port(node, number);
            let Some((cable, side)) = self.ports[egress].cable.filter(|_| egress != port) else {
                return;
            };
            if self.cables[cable].up && self.has_both_nodes(cable) {
                let far = self.cables[cable].ends[1 - side];
                self.add(far, Counter::RcvErrors, packets);
                self.add(far, Counter::RcvRemotePhysicalErrors, packets);
            }
        }
    }

    #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
    /// A port waits for so many seconds.
    fn wait(&mut self, port: usize, cable: usize, seconds: f64) {
        const SOME: u64 = 1 << 40;
        let (tick, width) = (self.ticks[self.model(port)], self.cables[cable].width);
        // As many ticks as the evaluator takes for a second.
        let waited = congestion::wait(SOME, tick, width, self.generation.speed, 1e9);
        let per_second = waited.map_or(0.0, |some| SOME as f64 / (f64::from(some.share) * 1e9));
        self.add(port, Counter::XmitWait, (per_second * seconds) as u64);
    }
}

impl World {
    /// Reads registers where devices have them.
    #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
    pub(crate) fn read_hardware(&mut self, now: f64) {
        if !self.cell.generation.reports || now - self.physical_read < PHYSICAL - 1.0 {
            return;
        }
        let since = now - self.physical_read.max(0.0);
        self.physical_read = now;
        let reads_modules = now - self.modules_read >= MODULES - 1.0;
        if reads_modules {
            self.modules_read = now;
        }
        let limit = f64::from(self.cell.limits.pre_fec.unwrap_or_default());
        let hardware = Arc::make_mut(&mut self.hardware);
        for port in 0..self.cell.ports.len() {
            let Some((cable, side)) = self.cell.ports[port].cable else { continue };
            let link = &self.cell.cables[cable];
            if !link.up
                || !self.cell.has_both_nodes(cable)
                || self.cell.nodes[self.cell.ports[port].node].silent_until > now
            {
                continue;
            }
            let bits = self.cell.bytes_per_second(cable) * 8.0;
            let mean = bits * since * limit * link.pre_fec_ratio(side);
            self.lane_errors[port] += self.rng.poisson(mean) / 4;
            let at = moment(now + 0.5);
            let known = hardware.port_mut(self.cell.end(port));
            let mut lane_errors = [0; LANES];
            lane_errors[..4].fill(self.lane_errors[port]);
            known.physical = Some(Arc::new(ReadAt {
                value: PhysicalStatistics {
                    since_clear: (now * 1000.0) as u64,
                    received_bits: (now * bits) as u64,
                    lane_errors,
                    ..PhysicalStatistics::default()
                },
                at,
            }));
            if reads_modules {
                let warm = between(&mut self.rng, 45.0, 62.0);
                let degrees = if link.hot[side] { 76.0 } else { warm };
                let usual = if link.dark[side] { 40 } else { 600 + self.rng.below(500) };
                let received = usual as f64 * 10_f64.powf(link.optics.loss[side] / -10.0);
                let sent = if link.optics.weak[side] { 50 } else { 1000 };
                let mut value = module(degrees, received as u16, sent);
                if link.optics.unreported {
                    value.monitors = monitor::TEMPERATURE;
                }
                known.module = Some(Arc::new(ReadAt { value, at }));
            }
        }
    }
}

/// An optical module with alarm thresholds of 75 °C and 0.1 mW; powers in microwatts.
#[expect(clippy::cast_sign_loss, reason = "no module is below zero")]
fn module(degrees: f64, received: u16, sent: u16) -> Module {
    Module {
        kind: 2,
        temperature: (degrees * 256.0) as u16,
        temperature_high: 75 * 256,
        temperature_low: 0,
        rx_power: [received; LANES],
        tx_power: [sent; LANES],
        rx_power_high: 3000,
        rx_power_low: 100,
        tx_power_high: 3000,
        tx_power_low: 100,
        monitors: monitor::TEMPERATURE | monitor::RX_POWER | monitor::TX_POWER,
        ..Module::default()
    }
}
