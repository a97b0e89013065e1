//! Whether a device lets its counters be read.
//!
//! The functions of a ConnectX-7 that manage the NVSwitches of HGX and DGX B200 look like those of a network adapter,
//! but each read of a counter fails with EINVAL and writes an error to the kernel's log (ACCESS_REG 0x805, syndrome
//! 0x9a6171; prometheus/node_exporter issues 3434 and 3823). Their VPD says what they are, but only root can read it;
//! for others the first counters of a device decide.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// How many counters a device may refuse before any was read.
const MAX_REFUSED: u8 = 3;
/// The same, after it was logged.
const LOGGED: u8 = MAX_REFUSED + 1;
/// A counter was read, or failed for another reason.
const GRANTED: u8 = u8::MAX;

/// What is known of a device for as long as it exists.
#[derive(Debug, Default)]
pub(super) struct CounterAccess {
    /// The number of counters that were refused, or [`GRANTED`].
    refused: AtomicU8,
    is_bridge: OnceLock<bool>,
}

impl CounterAccess {
    /// Of counters that the kernel has itself.
    pub fn granted() -> Self {
        CounterAccess { refused: AtomicU8::new(GRANTED), is_bridge: OnceLock::new() }
    }

    /// Adds the outcome of a read of a counter.
    pub fn add<T>(&self, outcome: &io::Result<Option<T>>) {
        let refused = self.refused.load(Relaxed);
        if refused >= MAX_REFUSED {
            return;
        }
        let refused = match outcome {
            Ok(_) => GRANTED,
            Err(error) => match error.raw_os_error() {
                // EISDIR is that of a tree of files with a folder in place of a counter.
                Some(libc::EINVAL | libc::EISDIR) => refused + 1,
                // It was not read.
                Some(libc::ECANCELED) | None => return,
                Some(_) => GRANTED,
            },
        };
        self.refused.store(refused, Relaxed);
    }

    /// Whether the device refused its first counters.
    pub fn was_refused(&self) -> bool {
        matches!(self.refused.load(Relaxed), MAX_REFUSED | LOGGED)
    }

    /// Whether that is to be logged: once.
    pub fn must_log_refusal(&self) -> bool {
        self.refused.compare_exchange(MAX_REFUSED, LOGGED, Relaxed, Relaxed).is_ok()
    }

    /// Whether the device manages NVSwitches; `check` is called once.
    pub fn is_bridge(&self, check: impl FnOnce() -> bool) -> bool {
        *self.is_bridge.get_or_init(check)
    }

    /// Whether no counter must be read.
    pub fn is_refused(&self) -> bool {
        self.was_refused() || self.is_bridge.get().is_some_and(|is| *is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(error: i32) -> io::Result<Option<u64>> {
        Err(io::Error::from_raw_os_error(error))
    }

    #[test]
    fn three_refusals_decide_unless_another_outcome_does() {
        let refused = |outcomes: &[io::Result<Option<u64>>]| {
            let access = CounterAccess::default();
            for outcome in outcomes {
                access.add(outcome);
            }
            access.is_refused()
        };
        let no = || failed(libc::EINVAL);
        assert!(!refused(&[no(), no()]));
        assert!(refused(&[no(), failed(libc::EISDIR), no()]));
        assert!(refused(&[no(), failed(libc::ECANCELED), no(), no(), Ok(Some(1))]));
        for other in [Ok(Some(7)), Ok(None), failed(libc::EIO)] {
            assert!(!refused(&[no(), no(), other, no(), no(), no()]));
        }
    }

    #[test]
    fn bridge_is_checked_once() {
        let access = CounterAccess::default();
        assert!(!access.is_refused());
        assert!(access.is_bridge(|| true) && access.is_bridge(|| false) && access.is_refused());
        assert!(!access.was_refused());
    }
}
