//! Does what goes wrong follow the load? Corruption of a link is the same share of packets whether
//! many or few are sent; losses by congestion come when there are many (Zhuo et al., SIGCOMM 2017).

/// How a new rate moves the mean: one of eight looks.
const MOVES: f32 = 1.0 / 8.0;

/// A time is busy when it has so much more than the mean, and quiet when it has so much less: what is
/// in between tells nothing.
const BUSY: f32 = 1.25;
const QUIET: f32 = 0.8;

/// So many errors must be due in quiet times, were they steady, before their absence tells.
const ENOUGH: f32 = 5.0;

/// Errors and packets of a port in busy and in quiet times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Corruption {
    /// Packets a second, on the whole.
    mean: f32,
    busy: Times,
    quiet: Times,
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    packets: f32,
    errors: f32,
}

impl Corruption {
    /// Takes what came in between two readings.
    pub fn note(&mut self, packets: f32, errors: f32, seconds: f32) {
        if seconds <= 0.0 {
            return;
        }
        let rate = packets / seconds;
        // The first is the mean of what there was.
        let mean = if self.mean > 0.0 { self.mean } else { rate };
        let times = match rate {
            rate if rate > mean * BUSY => Some(&mut self.busy),
            rate if rate < mean * QUIET => Some(&mut self.quiet),
            _ => None,
        };
        if let Some(times) = times {
            times.packets += packets;
            times.errors += errors;
        }
        self.mean = mean + (rate - mean) * MOVES;
    }

    /// Lets what is past count half.
    pub fn fade(&mut self) {
        for times in [&mut self.busy, &mut self.quiet] {
            times.packets /= 2.0;
            times.errors /= 2.0;
        }
    }

    /// Whether the errors come when there is much to carry, and not when there is little.
    pub fn follows_load(&self) -> bool {
        if self.busy.packets <= 0.0 {
            return false;
        }
        let due = self.busy.errors * self.quiet.packets / self.busy.packets;
        due >= ENOUGH && self.quiet.errors < due / 4.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour in which a link is busy every other minute.
    fn hour(errors: impl Fn(bool, f32) -> f32) -> Corruption {
        let mut corruption = Corruption::default();
        for look in 0..240 {
            let busy = look / 4 % 2 == 0;
            let packets = if busy { 1e6 } else { 2e5 };
            corruption.note(packets, errors(busy, packets), 15.0);
        }
        corruption
    }

    #[test]
    fn corruption_is_steady_and_congestion_follows_the_load() {
        assert!(!hour(|_, packets| packets * 1e-5).follows_load());
        assert!(hour(|busy, _| if busy { 10.0 } else { 0.0 }).follows_load());
        assert!(!hour(|_, _| 0.0).follows_load());
        assert!(!Corruption::default().follows_load());
        // Too few to tell.
        assert!(!hour(|busy, _| if busy { 0.05 } else { 0.0 }).follows_load());
    }

    #[test]
    fn steady_traffic_tells_nothing() {
        let mut corruption = Corruption::default();
        for look in 0..1000 {
            // They end all at once, as where a counter is full.
            corruption.note(1e6, if look < 500 { 10.0 } else { 0.0 }, 15.0);
        }
        assert!(!corruption.follows_load());
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut corruption = hour(|busy, _| if busy { 10.0 } else { 0.0 });
        for _ in 0..20 {
            corruption.fade();
        }
        assert!(!corruption.follows_load());
    }
}
