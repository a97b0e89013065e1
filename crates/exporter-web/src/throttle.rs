//! Log lines that clients can cause: one of a kind in a while, with the number of those suppressed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When each kind of line was logged, and how many were suppressed since.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    kinds: Mutex<HashMap<&'static str, (Instant, u64)>>,
}

impl Throttle {
    /// Whether a line of this kind is due, that is whether the last one is at least so long ago. If so,
    /// the number of those suppressed since then; if not, this one is suppressed.
    pub fn due(&self, kind: &'static str, every: Duration, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        match kinds.get_mut(kind) {
            Some((last, suppressed)) if now.saturating_duration_since(*last) < every => {
                *suppressed = suppressed.saturating_add(1);
                None
            }
            known => {
                let suppressed = known.map_or(0, |(_, suppressed)| *suppressed);
                kinds.insert(kind, (now, 0));
                Some(suppressed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_kind_in_a_while_with_the_number_of_those_suppressed() {
        let throttle = Throttle::default();
        let began = Instant::now();
        let due = |kind, seconds| {
            let now = began + Duration::from_secs(seconds);
            throttle.due(kind, Duration::from_secs(10), now)
        };
        assert_eq!([due("a", 0), due("a", 1), due("a", 9)], [Some(0), None, None]);
        assert_eq!([due("b", 9), due("b", 18)], [Some(0), None], "kinds are apart");
        assert_eq!(
            [due("a", 10), due("a", 11), due("a", 20), due("a", 90)],
            [Some(2), None, Some(1), Some(0)]
        );
    }
}
