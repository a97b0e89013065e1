//! What a counter can have counted: a bound on its growth in a time.
//!
//! One ConnectX-7 of a public dump reports 2^64 - 40 receive errors. Such a value is a mistake of the
//! device and no reading, and so is a jump that the link cannot have carried. The bounds here are generous: they reject what no link can do, and never what
//! a busy link does.

use ib_mad::counter::CounterKind;
use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width, bytes_per_second};
use ib_mad::{Counter, PortNumber};

/// Measured growth may be so many times what the nominal rate allows: rates are rounded, NDR's nominal
/// 100 Gb/s are 106.25 on the lane, and some adapters count loopback traffic.
const SLACK: f64 = 4.0;

/// A port's attributes are read one after the other, and a retry takes up to 2 s: so much longer than
/// the time between two readings may the time be in which a counter grew.
const JITTER: f64 = 2.0;

/// LRH, BTH, ICRC and VCRC: there is no shorter packet of a transport (IBTA 1.4, 5.2).
const SHORTEST_PACKET: f64 = 26.0;

/// To retrain a link takes milliseconds, and so does to pass a threshold of local errors.
const EVENTS_A_SECOND: f64 = 1000.0;

/// The time in which a counter grew that was not read before in this watch: when that was is not kept,
/// and no exporter is stopped for longer.
pub const UNKNOWN_TIME: f64 = 366.0 * 24.0 * 3600.0;

/// The rate of a port whose rate is not bounded: see [`fastest`].
pub const UNBOUNDED: u64 = u64::MAX;

/// The most that a port ever carries, in bytes a second: it may have run faster since the latest
/// reading than it does now. Where the port does not say what it supports, the fastest link that exists.
pub fn fastest(number: PortNumber, status: Option<&PortStatus>) -> u64 {
    let known = status.filter(|_| number != 0).and_then(|status| {
        let width = Width::widest(status.widths_supported)?;
        let speed = status.speeds_supported.fastest()?;
        Some(bytes_per_second(width, speed).max(status.rate().unwrap_or(0)))
    });
    // Port 0 of a switch leads into the chip, and what it says of its speed means nothing.
    known.unwrap_or_else(|| bytes_per_second(Width::X12, Speed::Xdr))
}

/// The most that a counter grows by in a time, at a rate in bytes a second.
#[expect(clippy::cast_sign_loss, reason = "no rate and no time is below zero")]
pub fn most(counter: Counter, bytes_a_second: u64, seconds: f64) -> u64 {
    let time = (seconds + JITTER) * SLACK;
    // A cast of what is too large saturates.
    (a_second(counter, bytes_a_second as f64) * time) as u64
}

fn a_second(counter: Counter, bytes: f64) -> f64 {
    use Counter::{
        ExcessiveBufferOverrunErrors, FecCorrectedSymbols, LocalLinkIntegrityErrors, RcvData,
        SymbolErrors, XmitData, XmitWait,
    };
    match (counter.row().kind, counter) {
        (_, XmitData | RcvData) => bytes / 4.0,
        // A symbol has eight bits, with Reed-Solomon ten.
        (_, SymbolErrors | FecCorrectedSymbols) => bytes,
        // A tick is the time of a byte or of several, and each of 16 virtual lanes may wait.
        (_, XmitWait) => bytes * 16.0,
        (CounterKind::Link, _) | (_, LocalLinkIntegrityErrors | ExcessiveBufferOverrunErrors) => {
            EVENTS_A_SECOND
        }
        // All others count packets, or blocks, which are longer.
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
    fn a_full_link_is_possible_and_ten_times_that_is_not() {
        // 4x NDR for 15 s: 50 GB/s.
        let rate = 50_000_000_000;
        for (counter, a_second) in [
            (Counter::XmitData, rate / 4),
            (Counter::RcvPkts, rate / 64),
            (Counter::SymbolErrors, rate * 8 / 10),
            (Counter::FecCorrectedSymbols, rate * 8 / 10),
            (Counter::RcvErrors, rate / 64),
            (Counter::XmitWait, rate / 8),
            (Counter::LinkDowned, 100),
        ] {
            let most = most(counter, rate, 15.0);
            assert!(most >= a_second * 15, "{counter:?}: {most}");
            assert!(most < a_second * 15 * 1000, "{counter:?}: {most}");
        }
        assert_eq!(most(Counter::XmitData, UNBOUNDED, UNKNOWN_TIME), u64::MAX);
    }

    #[test]
    fn the_bound_follows_what_a_port_supports_and_not_what_it_runs_at() {
        let slow = PortStatus { speed: Some(Speed::Sdr), width: Some(Width::X1), ..up(1) };
        assert_eq!(fastest(1, Some(&slow)), 12_500_000_000, "4x EDR");
        let most = bytes_per_second(Width::X12, Speed::Xdr);
        assert_eq!(fastest(0, Some(&slow)), most);
        assert_eq!(fastest(1, None), most);
        assert_eq!(fastest(1, Some(&PortStatus { widths_supported: 0, ..up(1) })), most);
    }
}
