//! How long a sender waits after requests that failed.

use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

/// The longest wait that a receiver can demand: events are of use for some time only.
const MOST_DEMANDED: Duration = Duration::from_secs(600);

/// Waits that double with each failure, up to a limit.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
    random: SystemRandom,
}

impl Backoff {
    pub fn new(first: Duration, most: Duration) -> Self {
        Backoff { first, most, next: first, random: SystemRandom::new() }
    }

    /// A request succeeded.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// The wait after a failure: at random between the half and all of the time that doubles, so that exporters do not
    /// send at one time to a receiver that is up again; but what the receiver demands, if that is longer.
    pub fn wait(&mut self, demanded: Option<Duration>) -> Duration {
        let longest = self.next;
        self.next = longest.saturating_mul(2).min(self.most);
        let mut random = [0; 2];
        // Without it all of the time.
        let share = match self.random.fill(&mut random) {
            Ok(()) => f64::from(u16::from_be_bytes(random)) / f64::from(u16::MAX),
            Err(_) => 1.0,
        };
        let wait = longest.mul_f64(f64::midpoint(1.0, share));
        wait.max(demanded.unwrap_or_default().min(MOST_DEMANDED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_begin_anew() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(1), seconds(60));
        for longest in [1, 2, 4, 8, 16, 32, 60, 60] {
            let wait = backoff.wait(None);
            assert!(
                wait >= seconds(longest) / 2 && wait <= seconds(longest),
                "{longest}: {wait:?}"
            );
        }
        backoff.reset();
        assert!(backoff.wait(None) <= seconds(1));
        assert_eq!(backoff.wait(Some(seconds(120))), seconds(120));
        assert_eq!(backoff.wait(Some(Duration::MAX)), MOST_DEMANDED);
        assert!(backoff.wait(Some(Duration::ZERO)) >= seconds(4));
    }

    #[test]
    fn two_senders_do_not_wait_alike() {
        let wait = || {
            let mut backoff = Backoff::new(Duration::from_secs(60), Duration::from_secs(60));
            [(); 4].map(|()| backoff.wait(None))
        };
        assert_ne!(wait(), wait());
    }
}
