//! What a port counts: the exact totals that a perfect device would have. What a real one tells of
//! them, in fields of 4 to 64 bits that stick, is its agent's business.

use crate::load::PortLoad;
use ib_mad::Moment;
use ib_mad::counter::{COUNT, Counter};
use ib_mad::rate::{Speed, Width, bytes_per_second};

/// The counters of one port.
///
/// Traffic moves them all the time, so what it adds is not written down but worked out when
/// somebody looks: a port of 100,000 costs nothing while nothing changes.
#[derive(Clone, Debug)]
pub struct Counts {
    totals: [u64; COUNT],
    /// From when on the load below has not been added yet.
    since: Moment,
    load: PortLoad,
    /// Ticks of PortXmitWait a second of waiting.
    ticks: f64,
    /// Symbols that forward error correction mended; no IBTA counter of the table.
    mended: u64,
    mended_a_second: f64,
}

impl Counts {
    /// All at zero.
    pub fn new(since: Moment) -> Self {
        Counts {
            totals: [0; COUNT],
            since,
            load: PortLoad::default(),
            ticks: 0.0,
            mended: 0,
            mended_a_second: 0.0,
        }
    }

    /// A counter's value, in its own units (words of four bytes for data).
    pub fn get(&self, counter: Counter, now: Moment) -> u64 {
        if is_corrected(counter) {
            return self.mended(now);
        }
        let total = self.totals[counter as usize];
        let a_second = self.a_second(counter);
        if a_second == 0.0 {
            return total;
        }
        total.saturating_add(whole(a_second * now.since(self.since).as_secs_f64()))
    }

    fn a_second(&self, counter: Counter) -> f64 {
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

    /// What goes on at the port now.
    pub fn load(&self) -> &PortLoad {
        &self.load
    }

    /// Symbols that forward error correction mended.
    pub fn mended(&self, now: Moment) -> u64 {
        let since = now.since(self.since).as_secs_f64();
        self.mended.saturating_add(whole(self.mended_a_second * since))
    }

    /// From now on this goes on at the port.
    pub fn carry(&mut self, now: Moment, load: PortLoad, ticks: f64) {
        self.settle(now);
        (self.load, self.ticks) = (load, ticks);
    }

    /// From now on forward error correction mends so many symbols a second.
    pub fn mend(&mut self, now: Moment, a_second: f64) {
        self.settle(now);
        self.mended_a_second = a_second;
    }

    /// Adds what has gone on so far.
    fn settle(&mut self, now: Moment) {
        self.mended = self.mended(now);
        if self.load != PortLoad::default() {
            for counter in Counter::all() {
                self.totals[counter as usize] = self.get(counter, now);
            }
        }
        self.since = now;
    }

    /// Counts so many more of something.
    pub fn add(&mut self, counter: Counter, count: u64) {
        let total = &mut self.totals[counter as usize];
        *total = total.saturating_add(count);
    }

    /// Sets a counter, as a tool or a test does.
    pub fn set(&mut self, now: Moment, counter: Counter, value: u64) {
        self.settle(now);
        if is_corrected(counter) {
            self.mended = value;
        } else {
            self.totals[counter as usize] = value;
        }
    }

    /// Sets all to zero, as another tool or a reset does; what goes on goes on.
    pub fn clear(&mut self, now: Moment) {
        self.totals = [0; COUNT];
        self.mended = 0;
        self.since = now;
    }
}

/// Whether a counter is what error correction corrected, in blocks or symbols: at the ratios of a link
/// that works these are the same.
fn is_corrected(counter: Counter) -> bool {
    matches!(counter, Counter::FecCorrectedBlocks | Counter::FecCorrectedSymbols)
}

/// What of an amount is counted: a packet that is half sent is not.
#[expect(clippy::cast_sign_loss, reason = "no load and no time is below zero")]
fn whole(amount: f64) -> u64 {
    amount as u64
}

/// How many ticks of PortXmitWait a second of waiting is worth on a link. A tick N is N + 1 bytes:
/// of the port's own rate where it is 7 (Quantum and newer), of one lane's where it is 31 (Switch-IB
/// and older).
pub fn ticks_a_second(link: Option<(Width, Speed)>, tick: u8) -> f64 {
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
    fn traffic_counts_by_itself_and_others_by_hand() {
        let mut counts = Counts::new(at(0));
        let load =
            PortLoad { xmit_bytes: 4000.0, xmit_packets: 2.5, waiting: 0.5, ..PortLoad::default() };
        counts.carry(at(10), load, 100.0);
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
        counts.carry(at(14), PortLoad::default(), 0.0);
        assert_eq!(counts.get(Counter::XmitData, at(99)), 4000);
        counts.clear(at(100));
        assert_eq!(counts.get(Counter::XmitData, at(101)), 0);
    }

    #[test]
    fn a_tick_is_the_port_s_or_a_lane_s() {
        for (link, tick, ticks) in [
            (Some((Width::X4, Speed::Ndr)), 7, 6.25e9),
            (Some((Width::X2, Speed::Ndr)), 7, 3.125e9),
            (Some((Width::X4, Speed::Edr)), 31, 97_656_250.0),
            (None, 7, 0.0),
        ] {
            let told = ticks_a_second(link, tick);
            assert!((told - ticks).abs() < 1.0, "{link:?} {tick}: {told}");
        }
    }

    #[test]
    fn what_is_set_goes_on_from_there() {
        let mut counts = Counts::new(at(0));
        counts.carry(at(0), PortLoad { rcv_packets: 1.0, ..PortLoad::default() }, 0.0);
        counts.set(at(5), Counter::RcvPkts, 100);
        assert_eq!(counts.get(Counter::RcvPkts, at(8)), 103);
        assert_eq!(counts.get(Counter::UnicastRcvPkts, at(8)), 8, "not set");
        counts.set(at(8), Counter::RcvPkts, u64::MAX);
        assert_eq!(counts.get(Counter::RcvPkts, at(9)), u64::MAX, "does not wrap");
    }
}
