//! An upper bound on the growth of a counter in a time.
//!
//! One ConnectX-7 of a public dump reports 2^64 - 40 receive errors. Such a value is an error of the device,
//! and so is a jump that the link cannot have carried. The bounds are generous: they reject what no link can
//! do, and never what a busy link does.

use ib_mad::counter::CounterKind;
use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width, bytes_per_second};
use ib_mad::{Counter, PortNumber};

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

/// Seconds in which a counter grew that was last read in an earlier run: when that was is not stored, and no
/// exporter is stopped for longer than a year.
pub const UNKNOWN_TIME: f64 = 366.0 * 24.0 * 3600.0;

/// The rate of a port whose rate is not bounded: see [`fastest`].
pub const UNBOUNDED: u64 = u64::MAX;

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

/// The most that a counter can grow by in some seconds, at a rate in bytes per second.
#[expect(clippy::cast_sign_loss, reason = "no rate and no time is below zero")]
pub fn max_growth(counter: Counter, bytes_per_second: u64, seconds: f64) -> u64 {
    let time = (seconds + JITTER) * SLACK;
    // The cast saturates.
    (per_second(counter, bytes_per_second as f64) * time) as u64
}

/// The most that a counter can grow by in a second, at a rate in bytes per second.
fn per_second(counter: Counter, bytes: f64) -> f64 {
    use Counter::{
        ExcessiveBufferOverrunErrors, FecCorrectedSymbols, LocalLinkIntegrityErrors, RcvData,
        SymbolErrors, XmitData, XmitWait,
    };
    match (counter.row().kind, counter) {
        (_, XmitData | RcvData) => bytes / 4.0,
        // A symbol has eight bits, with Reed-Solomon ten.
        (_, SymbolErrors | FecCorrectedSymbols) => bytes,
        // A tick is the time of one or several bytes, and each of 16 virtual lanes may wait.
        (_, XmitWait) => bytes * 16.0,
        (CounterKind::Link, _) | (_, LocalLinkIntegrityErrors | ExcessiveBufferOverrunErrors) => {
            EVENTS_PER_SECOND
        }
        // All others count packets, or FEC blocks, which are longer.
        (CounterKind::Traffic | CounterKind::Error | CounterKind::Congestion, _) => {
            bytes / SHORTEST_PACKET
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let most = max_growth(counter, rate, 15.0);
            assert!(most >= per_second * 15, "{counter:?}: {most}");
            assert!(most < per_second * 15 * 1000, "{counter:?}: {most}");
        }
        assert_eq!(max_growth(Counter::XmitData, UNBOUNDED, UNKNOWN_TIME), u64::MAX);
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
