//! Whether receive errors follow the load. A bad link corrupts the same share of packets at any load;
//! losses by congestion occur at high load (Zhuo et al., SIGCOMM 2017).

/// The weight of a new rate in the mean.
const SMOOTHING: f32 = 1.0 / 8.0;

/// An interval is busy above this multiple of the mean rate, and quiet below the other; in between it is not
/// used.
const BUSY: f32 = 1.25;
const QUIET: f32 = 0.8;

/// The number of errors that quiet intervals would have at a steady ratio, before their absence is
/// evidence.
const ENOUGH: f32 = 5.0;

/// Errors and packets of a port in busy and in quiet intervals.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadCorrelation {
    /// Packets per second, smoothed.
    mean: f32,
    busy: Counts,
    quiet: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: f32,
    errors: f32,
}

impl LoadCorrelation {
    /// Adds what was received between two readings.
    pub fn record(&mut self, packets: f32, errors: f32, seconds: f32) {
        if seconds <= 0.0 {
            return;
        }
        let rate = packets / seconds;
        let mean = if self.mean > 0.0 { self.mean } else { rate };
        let counts = match rate {
            rate if rate > mean * BUSY => Some(&mut self.busy),
            rate if rate < mean * QUIET => Some(&mut self.quiet),
            _ => None,
        };
        if let Some(counts) = counts {
            counts.packets += packets;
            counts.errors += errors;
        }
        self.mean = mean + (rate - mean) * SMOOTHING;
    }

    /// Halves the weight of the past.
    pub fn decay(&mut self) {
        for counts in [&mut self.busy, &mut self.quiet] {
            counts.packets /= 2.0;
            counts.errors /= 2.0;
        }
    }

    /// Whether errors occur at high load and not at low load.
    pub fn errors_follow_load(&self) -> bool {
        if self.busy.packets <= 0.0 {
            return false;
        }
        let expected = self.busy.errors * self.quiet.packets / self.busy.packets;
        expected >= ENOUGH && self.quiet.errors < expected / 4.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour in which a link is busy every other minute, with errors by (busy, packets).
    fn hour(errors: impl Fn(bool, f32) -> f32) -> LoadCorrelation {
        let mut load = LoadCorrelation::default();
        for look in 0..240 {
            let busy = look / 4 % 2 == 0;
            let packets = if busy { 1e6 } else { 2e5 };
            load.record(packets, errors(busy, packets), 15.0);
        }
        load
    }

    #[test]
    fn only_congestion_errors_follow_the_load() {
        assert!(!hour(|_, packets| packets * 1e-5).errors_follow_load());
        assert!(hour(|busy, _| if busy { 10.0 } else { 0.0 }).errors_follow_load());
        assert!(!hour(|_, _| 0.0).errors_follow_load());
        assert!(!LoadCorrelation::default().errors_follow_load());
        // Too few errors.
        assert!(!hour(|busy, _| if busy { 0.05 } else { 0.0 }).errors_follow_load());
    }

    #[test]
    fn steady_traffic_is_no_evidence() {
        let mut load = LoadCorrelation::default();
        for look in 0..1000 {
            // They stop at once, as when a counter is full.
            load.record(1e6, if look < 500 { 10.0 } else { 0.0 }, 15.0);
        }
        assert!(!load.errors_follow_load());
    }

    #[test]
    fn past_intervals_decay() {
        let mut load = hour(|busy, _| if busy { 10.0 } else { 0.0 });
        for _ in 0..20 {
            load.decay();
        }
        assert!(!load.errors_follow_load());
    }
}
