//! Limits of requests.

use std::num::NonZeroU32;
use std::time::Duration;

/// Limits of requests in flight, time-out and retries. Command-line options set all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct SendConfig {
    /// SMPs in flight in total. Virtual lane 15 has no flow control: what overflows is dropped.
    pub smp_window: u16,
    /// GMPs in flight in total.
    pub gmp_window: u16,
    /// SMPs in flight to any one LID.
    pub smp_lid_window: u16,
    pub gmp_lid_window: u16,
    pub timeout: Duration,
    /// Number of retries after a time-out.
    pub retries: u8,
    /// The most MADs that are sent in a second, with retries, by all clients of the port; `None` for no limit.
    pub max_mads_per_second: Option<NonZeroU32>,
    /// Service level of GMPs, 0 to 15. SMPs have none.
    pub sl: u8,
}

impl Default for SendConfig {
    /// ibdiagnet keeps 8 SMPs and 128 GMPs in flight, a few to any one switch; OpenSM 4 SMPs. At a loss
    /// of 2 MADs in 1,000 some port of 25,000 has no sample in one of five sweeps with 2 tries, and in
    /// one of 2,500 sweeps with 3 tries.
    fn default() -> Self {
        SendConfig {
            smp_window: 8,
            gmp_window: 128,
            smp_lid_window: 2,
            gmp_lid_window: 4,
            timeout: Duration::from_millis(500),
            retries: 2,
            max_mads_per_second: None,
            sl: 0,
        }
    }
}

impl SendConfig {
    /// How long it takes at least to send so many MADs; zero without a limit of MADs per second.
    pub fn least_time(&self, mads: usize) -> Duration {
        self.max_mads_per_second.map_or(Duration::ZERO, |limit| {
            Duration::from_secs(1).mul_f64(mads as f64 / f64::from(limit.get()))
        })
    }
}
