//! How counters grow: errors by the bit error ratio and the bits, traffic, corrections, waiting.

use ib_health::congestion;
use ib_mad::Counter;
use ib_sim::rng::Rng;

use crate::cell::{Cell, exponential};

/// From this mean on the number of errors is drawn at once.
const MANY: f64 = 20.0;

/// Words of a packet: 2 KiB and headers.
const WORDS_OF_PACKET: u64 = 520;

/// How many packets a full receive buffer drops in a busy second.
const OVERRUNS: f64 = 0.5;

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
