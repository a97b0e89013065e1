//! How long a port waits, and how much of its bandwidth it sends.

use std::time::Duration;

use ib_mad::Moment;
use ib_mad::rate::{Speed, Width, bytes_per_second};

/// How long the last known wait of a port stands for the present one while PortXmitWait is saturated. Jobs communicate in
/// bursts, but a counter that fills does so while its port waits; the alert needs 5 minutes.
pub const SATURATED_HOLD: Duration = Duration::from_secs(15 * 60);

/// The time that a port had data to send but sent none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Its share of the time between the two latest readings, 0 to 1.
    pub share: f32,
    /// Whether the device reports the length of its tick; otherwise 8 bytes at the link's rate are assumed.
    pub tick_reported: bool,
}

/// The wait of a port when it was last known: PortXmitWait is saturated, was cleared since the reading before, or was not
/// read, or the link went down since then. The port is not taken for one that does not wait, or those that wait for it
/// would be roots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldWait {
    /// The share of time.
    pub share: f32,
    /// When it was measured.
    pub at: Moment,
}

/// The tick of a device that does not report it: 8 bytes, as newer devices have it. No figure for adapters was found.
const DEFAULT_TICK: u8 = 7;

/// The share of time that a port had data to send but sent none, from the growth of PortXmitWait in some
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
    Some(Wait { share: share(waited, seconds)?, tick_reported: tick.is_some() })
}

/// The share of its bandwidth that a port sent, 0 to 1; `None` if no time has passed.
///
/// Up to QDR, except for FDR10, two of ten bits are line code (8b/10b), which the nominal rate includes; the
/// codes of faster links take less than [`FULL`](super::role::FULL) leaves.
pub fn used(bytes: u64, width: Width, speed: Speed, seconds: f64) -> Option<f32> {
    let for_data = if speed <= Speed::Qdr { 0.8 } else { 1.0 };
    share(bytes as f64 / (bytes_per_second(width, speed) as f64 * for_data), seconds)
}

fn share(part: f64, all: f64) -> Option<f32> {
    (all > 0.0).then(|| (part / all).clamp(0.0, 1.0) as f32)
}
