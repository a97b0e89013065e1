//! Values that a counter cannot have: which ones they are, and what follows if they persist.
//!
//! One ConnectX-7 of a public dump reports 2^64 - 40 receive errors: such a value is an error of the device, and so is a
//! jump that the link cannot have carried. The bounds are generous: they reject what no link can do, and never what a
//! busy link does.

use std::collections::BTreeMap;

use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width, bytes_per_second};
use ib_mad::{Counter, Moment, PortNumber};

/// This many consecutive values that are impossible after the last accepted one, but consistent with each
/// other, mean that the counter was set to another value: 2 minutes at the default interval.
pub const CONFIRMATIONS: u8 = 8;

/// A counter whose values have been impossible since its last accepted one.
#[derive(Clone, Copy, Debug)]
struct RejectedValue {
    /// No later than the last accepted value; `None` if that was in an earlier run.
    since: Option<Moment>,
    /// The latest impossible value, and when it was read.
    shown: u64,
    at: Moment,
    /// How many consecutive ones are consistent with each other.
    consistent: u8,
}

/// A value that a counter shows after an accepted one.
pub struct NextValue {
    pub counter: Counter,
    pub value: u64,
    pub at: Moment,
    /// By how much the total would grow, and the total before; what they exceed together is impossible.
    pub by: u64,
    pub total: u64,
    /// When the accepted value was read; `None` if that is not known.
    pub since: Option<Moment>,
    /// When the port was first read in this run, if the counter was read in it.
    pub began: Option<Moment>,
}

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The counter can have grown to it.
    Possible,
    /// It is not used.
    Impossible,
    /// The counter was set to it, or to a lower value from which it grew.
    Set,
}

/// The counters of a port whose latest value was impossible: none of most ports.
#[derive(Clone, Debug, Default)]
pub struct RejectedValues(BTreeMap<Counter, RejectedValue>);

impl RejectedValues {
    /// Whether no counter's latest value was impossible.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The counter starts again. Returns whether its latest value was impossible.
    pub fn forget(&mut self, counter: Counter) -> bool {
        self.0.remove(&counter).is_some()
    }

    /// Judges the next value of a counter on a link of at most this many bytes per second.
    #[inline]
    pub fn judge(&mut self, next: &NextValue, bytes_per_second: u64) -> Acceptance {
        let NextValue { counter, value, at, .. } = *next;
        let is_plausible = counter.is_plausible(value);
        // `remove` searches an empty map, too.
        let rejected = if self.0.is_empty() { None } else { self.0.remove(&counter) };
        let since = rejected.map_or(next.since, |rejected| rejected.since);
        // A response was lost, or it is read on a slower interval: it grew in this run at least.
        let since = since.or(next.began);
        let most = |since: Option<Moment>| {
            let seconds = since.map_or(UNKNOWN_TIME, |since| at.since(since).as_secs_f64());
            MaxGrowth { bytes_per_second, seconds }.of(counter)
        };
        let fits = next.total.checked_add(next.by).is_some();
        if is_plausible && fits && next.by <= most(since) {
            return Acceptance::Possible;
        }
        let is_consistent = |last: RejectedValue| {
            let by = value.checked_sub(last.shown)?;
            (by <= most(Some(last.at))).then_some(last.consistent)
        };
        let consistent = match rejected.and_then(is_consistent).filter(|_| is_plausible) {
            Some(consistent) => consistent.saturating_add(1),
            None => u8::from(is_plausible),
        };
        if consistent >= CONFIRMATIONS {
            return Acceptance::Set;
        }
        self.0.insert(counter, RejectedValue { since, shown: value, at, consistent });
        Acceptance::Impossible
    }
}

/// Measured growth may exceed what the nominal rate allows by this factor: rates are rounded, NDR's nominal
/// 100 Gb/s are 106.25 on the lane, and some adapters count loopback traffic.
const SLACK: f64 = 4.0;

/// Seconds by which the time in which a counter grew may exceed the time between two readings: a port's
/// attributes are read one after the other, and a retry takes up to 2 s.
const JITTER: f64 = 2.0;

/// Bytes of LRH, BTH, ICRC and VCRC: no packet of a transport is shorter (IBTA 1.4, 5.2).
const SHORTEST_PACKET: f64 = 26.0;

/// Retraining a link takes milliseconds, and so does reaching a threshold of local errors.
const EVENTS_PER_SECOND: f64 = 1000.0;

/// The seconds since an earlier run, which are not stored: no exporter is stopped for over a year.
const UNKNOWN_TIME: f64 = 366.0 * 24.0 * 3600.0;

/// The most that a port can ever carry, in bytes per second: it may have run faster since the latest reading
/// than it does now. Where the port does not report what it supports, the fastest link that exists.
pub fn fastest(number: PortNumber, status: Option<&PortStatus>) -> u64 {
    let known = status.filter(|_| number != 0).and_then(|status| {
        let width = Width::widest(status.widths_supported)?;
        let speed = status.speeds_supported.fastest()?;
        Some(bytes_per_second(width, speed).max(status.rate().unwrap_or(0)))
    });
    // Port 0 of a switch leads into the chip; the speed that it reports means nothing.
    known.unwrap_or_else(|| bytes_per_second(Width::X12, Speed::Xdr))
}

/// The most that a counter of a port with this rate, in bytes per second, can grow by in some seconds.
#[derive(Clone, Copy)]
pub struct MaxGrowth {
    pub bytes_per_second: u64,
    pub seconds: f64,
}

impl MaxGrowth {
    #[expect(clippy::cast_sign_loss, reason = "no rate and no time is below zero")]
    pub fn of(self, counter: Counter) -> u64 {
        use Counter::{
            ExcessiveBufferOverrunErrors, FecCorrectedSymbols, LinkDowned, LinkErrorRecoveries,
            LocalLinkIntegrityErrors, RcvData, SymbolErrors, XmitData, XmitWait,
        };
        let bytes = self.bytes_per_second as f64;
        let per_second = match counter {
            // Words of four bytes.
            XmitData | RcvData => bytes / 4.0,
            // A symbol has eight bits, with Reed-Solomon ten.
            SymbolErrors | FecCorrectedSymbols => bytes,
            // A tick is the time of one or several bytes, and each of 16 virtual lanes may wait.
            XmitWait => bytes * 16.0,
            LinkDowned
            | LinkErrorRecoveries
            | LocalLinkIntegrityErrors
            | ExcessiveBufferOverrunErrors => EVENTS_PER_SECOND,
            // Packets, or FEC blocks, which are longer.
            _ => bytes / SHORTEST_PACKET,
        };
        // The cast saturates.
        (per_second * ((self.seconds + JITTER) * SLACK)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::UNBOUNDED;
    use ib_mad::port_state::testing::up;

    #[test]
    fn full_link_rate_is_possible_and_far_more_is_not() {
        // 4x NDR for 15 s: 50 GB/s.
        let rate = 50_000_000_000;
        for (counter, per_second) in [
            (Counter::XmitData, rate / 4),
            (Counter::RcvPkts, rate / 64),
            (Counter::SymbolErrors, rate * 8 / 10),
            (Counter::FecCorrectedSymbols, rate * 8 / 10),
            (Counter::RcvErrors, rate / 64),
            (Counter::XmitWait, rate / 8),
            (Counter::LinkDowned, 100),
        ] {
            let most = MaxGrowth { bytes_per_second: rate, seconds: 15.0 }.of(counter);
            assert!(most >= per_second * 15, "{counter:?}: {most}");
            assert!(most < per_second * 15 * 1000, "{counter:?}: {most}");
        }
        let unbounded = MaxGrowth { bytes_per_second: UNBOUNDED, seconds: UNKNOWN_TIME };
        assert_eq!(unbounded.of(Counter::XmitData), u64::MAX);
    }

    #[test]
    fn bound_follows_supported_rate_not_active_rate() {
        let slow = PortStatus { speed: Some(Speed::Sdr), width: Some(Width::X1), ..up(1) };
        assert_eq!(fastest(1, Some(&slow)), 12_500_000_000, "4x EDR");
        let most = bytes_per_second(Width::X12, Speed::Xdr);
        assert_eq!(fastest(0, Some(&slow)), most);
        assert_eq!(fastest(1, None), most);
        assert_eq!(fastest(1, Some(&PortStatus { widths_supported: 0, ..up(1) })), most);
    }
}
