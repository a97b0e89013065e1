//! The shares of time that a port waited and that it sent, from its counters.

use ib_mad::rate::{Speed, Width, bytes_per_second};

/// The time that a port had data and no credit to send it with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Its share of the time between the two latest readings, 0 to 1.
    pub share: f32,
    /// Whether the device reports the length of its tick; otherwise 8 bytes at the link's rate are assumed.
    pub tick_told: bool,
}

/// The tick of a device that does not report it: 8 bytes, as newer devices have it. No figure for adapters was
/// found.
const DEFAULT_TICK: u8 = 7;

/// The share of time that a port had data to send and no credit for it, from the growth of PortXmitWait in some
/// seconds; `None` if no time has passed.
///
/// A tick N (PortSamplesControl) is N + 1 bytes: at the port's own rate up to 7 (Quantum and newer),
/// else at one lane's (31: Switch-IB, SwitchX and older; NVIDIA counts 32 bytes a lane there).
pub fn wait(
    ticks: u64,
    tick: Option<u8>,
    width: Width,
    speed: Speed,
    seconds: f64,
) -> Option<Wait> {
    let bytes = f64::from(tick.unwrap_or(DEFAULT_TICK)) + 1.0;
    let width = if tick.is_some_and(|tick| tick > DEFAULT_TICK) { Width::X1 } else { width };
    let waited = ticks as f64 * bytes / bytes_per_second(width, speed) as f64;
    Some(Wait { share: share(waited, seconds)?, tick_told: tick.is_some() })
}

/// The share of its bandwidth that a port sent, 0 to 1; `None` if no time has passed.
///
/// Up to QDR, except for FDR10, two of ten bits are line code (8b/10b), which the nominal rate includes; the
/// codes of faster links take less than [`FULL`](super::FULL) leaves.
pub fn used(bytes: u64, width: Width, speed: Speed, seconds: f64) -> Option<f32> {
    let for_data = if speed <= Speed::Qdr { 0.8 } else { 1.0 };
    share(bytes as f64 / (bytes_per_second(width, speed) as f64 * for_data), seconds)
}

fn share(part: f64, all: f64) -> Option<f32> {
    (all > 0.0).then(|| (part / all).clamp(0.0, 1.0) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_convert_to_time() {
        for (ticks, tick, width, speed, seconds, share) in [
            // 4x NDR: 50 GB/s, 6.25e9 ticks of 8 bytes a second.
            (6_250_000_000, Some(7), Width::X4, Speed::Ndr, 2.0, 0.5),
            (3_125_000_000, Some(7), Width::X2, Speed::Ndr, 1.0, 1.0),
            (25_000_000_000, Some(0), Width::X4, Speed::Ndr, 1.0, 0.5),
            // A lane of EDR: 3.125 GB/s, 97,656,250 ticks of 32 bytes.
            (97_656_250, Some(31), Width::X4, Speed::Edr, 10.0, 0.1),
            (97_656_250, Some(31), Width::X1, Speed::Edr, 10.0, 0.1),
            (1_562_500_000, None, Width::X4, Speed::Edr, 4.0, 0.25),
            (0, None, Width::X4, Speed::Edr, 15.0, 0.0),
            (u64::MAX, Some(255), Width::X1, Speed::Sdr, 1e-9, 1.0),
        ] {
            let wait = wait(ticks, tick, width, speed, seconds).unwrap();
            assert!((wait.share - share).abs() < 1e-6, "{ticks} {tick:?} {width:?}: {wait:?}");
            assert_eq!(wait.tick_told, tick.is_some());
        }
    }

    #[test]
    fn no_time_has_no_share() {
        for seconds in [0.0, -1.0, f64::NAN] {
            assert_eq!(wait(1, None, Width::X4, Speed::Hdr, seconds), None);
            assert_eq!(used(1, Width::X4, Speed::Hdr, seconds), None);
        }
    }

    #[test]
    fn full_link_excludes_line_code() {
        for (bytes, speed, share) in [
            (4_000_000_000, Speed::Qdr, 1.0),
            (5_000_000_000, Speed::Fdr10, 1.0),
            (2_500_000_000, Speed::Fdr10, 0.5),
            (25_000_000_000, Speed::Ndr, 0.5),
            (u64::MAX, Speed::Ndr, 1.0),
        ] {
            let used = used(bytes, Width::X4, speed, 1.0).unwrap();
            assert!((used - share).abs() < 1e-6, "{bytes} {speed:?}: {used}");
        }
    }
}
