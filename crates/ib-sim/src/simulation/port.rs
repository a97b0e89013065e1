//! The state of a port: its link, its counters, what its receiver counts before and after error correction, and what is
//! wrong with its module and its cable.

use crate::change::{Dirt, ModuleReport};
use crate::load::PortLoad;
use crate::net::{Port, PortId};
use ib_mad::counter::{COUNT, Counter};
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width, bytes_per_second};
use ib_mad::register::LinkDown;
use ib_mad::{Lid, Moment};

/// The present state of a port.
#[derive(Clone, Debug)]
pub struct SimulatedPort {
    /// The peer of its cable.
    pub cable: Option<PortId>,
    /// Whether the cable carries a signal, seen from either end.
    pub signal: bool,
    /// PortState. Unless it is active, the port carries only subnet management.
    pub state: PortState,
    /// The width and speed of the link, while there is one.
    pub trained: Option<(Width, Speed)>,
    /// When it last trained; `None` for a link from the start.
    pub trained_at: Option<Moment>,
    /// The limits of its width and speed, the same at both ends.
    pub limit: (Option<Width>, Option<Speed>),
    /// The bit error ratio of the received bits.
    pub bit_errors: f64,
    /// A dirty connector before its receiver.
    pub dirt: Option<Dirt>,
    /// The temperature of its module in degrees Celsius, if it is not the usual one.
    pub module_temperature: Option<u8>,
    /// What its module reports of itself.
    pub module_report: ModuleReport,
    /// An administrator has disabled it.
    pub disabled: bool,
    /// What its receiver counted since the link trained.
    pub physical: PhysicalCounts,
    /// The number in the serial number of its cable, the same at both ends.
    pub serial: u32,
    /// Why its link last went down.
    pub last_down: LinkDown,
    /// The fraction of its link's rate that an adapter receives.
    pub intake: f64,
    /// Its LID; that of a switch is on port 0.
    pub lid: Lid,
    /// Its counters.
    pub counts: PortCounts,
}

impl SimulatedPort {
    /// A port as built, before its link trains, with the number of its cable.
    pub fn new(built: &Port, serial: u32, counts: PortCounts) -> Self {
        SimulatedPort {
            cable: built.cable,
            signal: true,
            state: PortState::Down,
            trained: None,
            trained_at: None,
            limit: (None, None),
            bit_errors: 0.0,
            dirt: None,
            module_temperature: None,
            module_report: ModuleReport::default(),
            disabled: false,
            physical: PhysicalCounts::default(),
            serial,
            last_down: LinkDown::default(),
            intake: 1.0,
            lid: Lid(0),
            counts,
        }
    }

    /// PortPhysicalState. A switch's port 0 never trains, and is up.
    pub fn physical_state(&self) -> PhysicalState {
        match self.state {
            _ if self.disabled => PhysicalState::Disabled,
            PortState::Down => PhysicalState::Polling,
            _ => PhysicalState::LinkUp,
        }
    }

    /// The rate of its link, in bytes a second each way.
    pub fn bytes_per_second(&self) -> u64 {
        self.trained.map_or(0, |(width, speed)| bytes_per_second(width, speed))
    }

    /// The lanes of its link; 1 without a link.
    pub fn lanes(&self) -> usize {
        self.trained.map_or(1, |(width, _)| width.lanes().into())
    }

    /// Whether its link runs with Reed-Solomon forward error correction.
    pub fn has_fec(&self) -> bool {
        self.trained.is_some_and(|(_, speed)| speed >= Speed::Hdr)
    }

    /// The ticks of PortXmitWait for a second of waiting. A tick N is N + 1 bytes: at the port's rate where it
    /// is 7 (Quantum and newer), at the rate of one lane where it is 31 (Switch-IB and older).
    pub fn ticks_per_second(&self, tick: u8) -> f64 {
        let Some((width, speed)) = self.trained else { return 0.0 };
        let width = if tick > 7 { Width::X1 } else { width };
        bytes_per_second(width, speed) as f64 / (f64::from(tick) + 1.0)
    }
}

/// Why a link went down: the signal is lost (block lock lost).
pub const SIGNAL_LOST: LinkDown =
    LinkDown { blame: 1, intent: 2, local_reason: 3, remote_reason: 0, recovery_reason: 0 };
/// Why a link went down: the device at the other end is reset.
pub const PEER_RESET: LinkDown =
    LinkDown { blame: 2, intent: 2, local_reason: 32, remote_reason: 38, recovery_reason: 0 };

/// What a receiver counts per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhysicalRates {
    pub bits: f64,
    /// Errors before correction, equally on all lanes.
    pub raw: f64,
    /// Further ones on the dirty lane.
    pub dirty: f64,
    /// Errors after correction.
    pub lost: f64,
}

/// What a receiver counted since its link trained. A port of 100,000 costs nothing while nothing changes: what the
/// rates add is computed when it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhysicalCounts {
    /// Since when the rates hold.
    changed: Moment,
    /// When the link trained.
    pub since: Moment,
    rates: PhysicalRates,
    /// Counted until the rates changed.
    counted: PhysicalRates,
}

impl PhysicalCounts {
    /// The counts at a moment.
    pub fn at(&self, now: Moment) -> PhysicalRates {
        let seconds = now.since(self.changed).as_secs_f64();
        let sum = |counted: f64, rate: f64| counted + rate * seconds;
        let (counted, rates) = (&self.counted, &self.rates);
        PhysicalRates {
            bits: sum(counted.bits, rates.bits),
            raw: sum(counted.raw, rates.raw),
            dirty: sum(counted.dirty, rates.dirty),
            lost: sum(counted.lost, rates.lost),
        }
    }

    /// Sets the rates from now on.
    pub fn set_rates(&mut self, now: Moment, rates: PhysicalRates) {
        (self.counted, self.changed, self.rates) = (self.at(now), now, rates);
    }

    /// The link has trained: the device counts from zero.
    pub fn restart(&mut self, now: Moment) {
        *self = PhysicalCounts { changed: now, since: now, rates: self.rates, ..Self::default() };
    }
}

/// The counters of one port: the exact totals of a perfect device. The agents cut them to fields of 4 to 64
/// bits that saturate.
///
/// What traffic adds is not stored but computed when a counter is read: a port of 100,000 costs
/// nothing while nothing changes.
#[derive(Clone, Debug)]
pub struct PortCounts {
    totals: [u64; COUNT],
    /// The start of the load that is not added yet.
    since: Moment,
    load: PortLoad,
    /// What the load and error correction add to counters, per second.
    rates: [(Counter, f64); 8],
}

impl PortCounts {
    pub fn new(since: Moment) -> Self {
        let rates = rates(&PortLoad::default(), 0.0, 0.0);
        PortCounts { totals: [0; COUNT], since, load: PortLoad::default(), rates }
    }

    /// A counter's value, in its own units (words of four bytes for data).
    pub fn get(&self, counter: Counter, now: Moment) -> u64 {
        let slot = slot(counter);
        let total = self.totals[slot];
        let Some((_, rate)) = self.rates.iter().find(|(of, _)| *of as usize == slot) else {
            return total;
        };
        // A packet that is sent in part does not count.
        #[expect(clippy::cast_sign_loss, reason = "loads and times are not negative")]
        let added = (rate * now.since(self.since).as_secs_f64()) as u64;
        total.saturating_add(added)
    }

    pub fn load(&self) -> &PortLoad {
        &self.load
    }

    /// Sets the load from now on, the ticks of PortXmitWait for a second of waiting, and the symbols
    /// that forward error correction corrects per second.
    pub fn set_load(&mut self, now: Moment, load: PortLoad, ticks: f64, corrected: f64) {
        self.accrue(now);
        (self.load, self.rates) = (load, rates(&load, ticks, corrected));
    }

    /// Adds the load so far.
    fn accrue(&mut self, now: Moment) {
        for (counter, _) in self.rates {
            self.totals[slot(counter)] = self.get(counter, now);
        }
        self.since = now;
    }

    pub fn add(&mut self, counter: Counter, count: u64) {
        let total = &mut self.totals[slot(counter)];
        *total = total.saturating_add(count);
    }

    pub fn set(&mut self, now: Moment, counter: Counter, value: u64) {
        self.accrue(now);
        self.totals[slot(counter)] = value;
    }

    /// Sets all counters to zero; the load continues.
    pub fn clear(&mut self, now: Moment) {
        self.totals = [0; COUNT];
        self.since = now;
    }
}

fn rates(load: &PortLoad, ticks: f64, corrected: f64) -> [(Counter, f64); 8] {
    [
        (Counter::XmitData, load.xmit_bytes / 4.0),
        (Counter::RcvData, load.rcv_bytes / 4.0),
        (Counter::XmitPkts, load.xmit_packets),
        (Counter::UnicastXmitPkts, load.xmit_packets),
        (Counter::RcvPkts, load.rcv_packets),
        (Counter::UnicastRcvPkts, load.rcv_packets),
        (Counter::XmitWait, load.waiting * ticks),
        (Counter::FecCorrectedSymbols, corrected),
    ]
}

/// The place of a counter's total. Corrected blocks have that of corrected symbols: at the error ratios of a
/// working link these are the same.
fn slot(counter: Counter) -> usize {
    match counter {
        Counter::FecCorrectedBlocks => Counter::FecCorrectedSymbols as usize,
        counter => counter as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::shapes::BackToBack;

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1_000_000_000)
    }

    #[test]
    fn load_advances_traffic_counters_only() {
        let mut counts = PortCounts::new(at(0));
        let load =
            PortLoad { xmit_bytes: 4000.0, xmit_packets: 2.5, waiting: 0.5, ..PortLoad::default() };
        counts.set_load(at(10), load, 100.0, 0.0);
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
        counts.set_load(at(14), PortLoad::default(), 0.0, 0.0);
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
            let net = BackToBack::default().build().unwrap();
            let mut state = SimulatedPort::new(&net.ports[1], 1, PortCounts::new(at(0)));
            state.trained = link;
            let found = state.ticks_per_second(tick);
            assert!((found - ticks).abs() < 1.0, "{link:?} {tick}: {found}");
        }
    }

    #[test]
    fn set_counter_advances_and_saturates() {
        let mut counts = PortCounts::new(at(0));
        counts.set_load(at(0), PortLoad { rcv_packets: 1.0, ..PortLoad::default() }, 0.0, 0.0);
        counts.set(at(5), Counter::RcvPkts, 100);
        assert_eq!(counts.get(Counter::RcvPkts, at(8)), 103);
        assert_eq!(counts.get(Counter::UnicastRcvPkts, at(8)), 8, "not set");
        counts.set(at(8), Counter::RcvPkts, u64::MAX);
        assert_eq!(counts.get(Counter::RcvPkts, at(9)), u64::MAX, "does not wrap");
    }
}
