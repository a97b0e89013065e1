//! The counters of a port: the exact totals of a perfect device. The agents cut them to fields of 4
//! to 64 bits that saturate.

use crate::load::PortLoad;
use ib_mad::Moment;
use ib_mad::counter::{COUNT, Counter};
use ib_mad::rate::{Speed, Width, bytes_per_second};

/// The counters of one port.
///
/// What traffic adds is not stored but computed when a counter is read: a port of 100,000 costs
/// nothing while nothing changes.
#[derive(Clone, Debug)]
pub struct PortCounts {
    totals: [u64; COUNT],
    /// The start of the load that is not added yet.
    since: Moment,
    load: PortLoad,
    /// Ticks of PortXmitWait for a second of waiting.
    ticks: f64,
    /// Symbols that forward error correction corrected.
    fec_corrected: u64,
    fec_corrected_per_second: f64,
}

impl PortCounts {
    /// All at zero.
    pub fn new(since: Moment) -> Self {
        PortCounts {
            totals: [0; COUNT],
            since,
            load: PortLoad::default(),
            ticks: 0.0,
            fec_corrected: 0,
            fec_corrected_per_second: 0.0,
        }
    }

    /// A counter's value, in its own units (words of four bytes for data).
    pub fn get(&self, counter: Counter, now: Moment) -> u64 {
        if is_fec_corrected(counter) {
            return self.fec_corrected(now);
        }
        let total = self.totals[counter as usize];
        let rate = self.rate(counter);
        if rate == 0.0 {
            return total;
        }
        total.saturating_add(truncate(rate * now.since(self.since).as_secs_f64()))
    }

    /// What the load adds to a counter, per second.
    fn rate(&self, counter: Counter) -> f64 {
        let load = &self.load;
        match counter {
            Counter::XmitData => load.xmit_bytes / 4.0,
            Counter::RcvData => load.rcv_bytes / 4.0,
            Counter::XmitPkts | Counter::UnicastXmitPkts => load.xmit_packets,
            Counter::RcvPkts | Counter::UnicastRcvPkts => load.rcv_packets,
            Counter::XmitWait => load.waiting * self.ticks,
            _ => 0.0,
        }
    }

    /// The present load of the port.
    pub fn load(&self) -> &PortLoad {
        &self.load
    }

    /// Symbols that forward error correction corrected.
    pub fn fec_corrected(&self, now: Moment) -> u64 {
        let since = now.since(self.since).as_secs_f64();
        self.fec_corrected.saturating_add(truncate(self.fec_corrected_per_second * since))
    }

    /// Sets the load from now on.
    pub fn set_load(&mut self, now: Moment, load: PortLoad, ticks: f64) {
        self.accrue(now);
        (self.load, self.ticks) = (load, ticks);
    }

    /// Sets the rate of corrected symbols from now on, per second.
    pub fn set_fec_rate(&mut self, now: Moment, per_second: f64) {
        self.accrue(now);
        self.fec_corrected_per_second = per_second;
    }

    /// Adds the load so far.
    fn accrue(&mut self, now: Moment) {
        self.fec_corrected = self.fec_corrected(now);
        if self.load != PortLoad::default() {
            for counter in Counter::all() {
                self.totals[counter as usize] = self.get(counter, now);
            }
        }
        self.since = now;
    }

    /// Adds to a counter.
    pub fn add(&mut self, counter: Counter, count: u64) {
        let total = &mut self.totals[counter as usize];
        *total = total.saturating_add(count);
    }

    /// Sets a counter.
    pub fn set(&mut self, now: Moment, counter: Counter, value: u64) {
        self.accrue(now);
        if is_fec_corrected(counter) {
            self.fec_corrected = value;
        } else {
            self.totals[counter as usize] = value;
        }
    }

    /// Sets all counters to zero; the load continues.
    pub fn clear(&mut self, now: Moment) {
        self.totals = [0; COUNT];
        self.fec_corrected = 0;
        self.since = now;
    }
}

/// Whether a counter is of corrected blocks or symbols. At the error ratios of a working link these
/// are the same.
fn is_fec_corrected(counter: Counter) -> bool {
    matches!(counter, Counter::FecCorrectedBlocks | Counter::FecCorrectedSymbols)
}

/// An amount as a count: a packet that is sent in part does not count.
#[expect(clippy::cast_sign_loss, reason = "loads and times are not negative")]
fn truncate(amount: f64) -> u64 {
    amount as u64
}

/// The ticks of PortXmitWait for a second of waiting on a link. A tick N is N + 1 bytes: at the
/// port's rate where it is 7 (Quantum and newer), at the rate of one lane where it is 31 (Switch-IB
/// and older).
pub fn ticks_per_second(link: Option<(Width, Speed)>, tick: u8) -> f64 {
    let Some((width, speed)) = link else { return 0.0 };
    let width = if tick > 7 { Width::X1 } else { width };
    bytes_per_second(width, speed) as f64 / (f64::from(tick) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1_000_000_000)
    }

    #[test]
    fn load_advances_traffic_counters_only() {
        let mut counts = PortCounts::new(at(0));
        let load =
            PortLoad { xmit_bytes: 4000.0, xmit_packets: 2.5, waiting: 0.5, ..PortLoad::default() };
        counts.set_load(at(10), load, 100.0);
        counts.add(Counter::SymbolErrors, 3);
        for (counter, after, value) in [
            (Counter::XmitData, 10, 0),
            (Counter::XmitData, 12, 2000),
            (Counter::XmitPkts, 13, 7),
            (Counter::UnicastXmitPkts, 13, 7),
            (Counter::XmitWait, 14, 200),
            (Counter::RcvData, 14, 0),
            (Counter::SymbolErrors, 14, 3),
        ] {
            assert_eq!(counts.get(counter, at(after)), value, "{counter:?} at {after}");
        }
        counts.set_load(at(14), PortLoad::default(), 0.0);
        assert_eq!(counts.get(Counter::XmitData, at(99)), 4000);
        counts.clear(at(100));
        assert_eq!(counts.get(Counter::XmitData, at(101)), 0);
    }

    #[test]
    fn tick_is_of_the_port_or_of_a_lane() {
        for (link, tick, ticks) in [
            (Some((Width::X4, Speed::Ndr)), 7, 6.25e9),
            (Some((Width::X2, Speed::Ndr)), 7, 3.125e9),
            (Some((Width::X4, Speed::Edr)), 31, 97_656_250.0),
            (None, 7, 0.0),
        ] {
            let found = ticks_per_second(link, tick);
            assert!((found - ticks).abs() < 1.0, "{link:?} {tick}: {found}");
        }
    }

    #[test]
    fn set_counter_advances_and_saturates() {
        let mut counts = PortCounts::new(at(0));
        counts.set_load(at(0), PortLoad { rcv_packets: 1.0, ..PortLoad::default() }, 0.0);
        counts.set(at(5), Counter::RcvPkts, 100);
        assert_eq!(counts.get(Counter::RcvPkts, at(8)), 103);
        assert_eq!(counts.get(Counter::UnicastRcvPkts, at(8)), 8, "not set");
        counts.set(at(8), Counter::RcvPkts, u64::MAX);
        assert_eq!(counts.get(Counter::RcvPkts, at(9)), u64::MAX, "does not wrap");
    }
}
