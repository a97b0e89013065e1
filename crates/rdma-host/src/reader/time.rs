//! The time of reads.

use ib_mad::Moment;
use process_clock::Clock;

/// A clock; in tests one that only the test advances, so that their outcome does not depend on the load.
#[derive(Clone, Debug)]
pub(super) enum Time {
    Clock(Clock),
    #[cfg(test)]
    Manual(std::sync::Arc<std::sync::atomic::AtomicU64>),
}

impl Time {
    pub fn now(&self) -> Moment {
        match self {
            Time::Clock(clock) => clock.now(),
            #[cfg(test)]
            Time::Manual(nanos) => Moment(nanos.load(std::sync::atomic::Ordering::SeqCst)),
        }
    }

    /// How long to wait, in real time, until `limit` may be over.
    pub fn real(&self, limit: std::time::Duration) -> std::time::Duration {
        match self {
            Time::Clock(clock) => clock.real(limit),
            #[cfg(test)]
            Time::Manual(_) => std::time::Duration::from_millis(1),
        }
    }
}

#[cfg(test)]
impl Time {
    pub fn manual() -> Self {
        Time::Manual(std::sync::Arc::default())
    }

    pub fn advance(&self, by: std::time::Duration) {
        let Time::Manual(nanos) = self else { panic!("a clock advances by itself") };
        nanos.fetch_add(by.as_nanos() as u64, std::sync::atomic::Ordering::SeqCst);
    }
}
