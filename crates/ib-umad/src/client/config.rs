//! Limits of requests.

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
        }
    }
}
