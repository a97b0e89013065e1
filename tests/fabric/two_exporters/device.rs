//! A port and its counters.

use ib_mad::Counter;
use ib_sim::rng::Rng;

/// The counters, with their maximum and the largest number of events per second.
pub const COUNTERS: [(Counter, u64, u64); 5] = [
    (Counter::XmitData, u64::MAX, 5_000_000_000),
    (Counter::RcvPkts, u64::MAX, 50_000_000),
    (Counter::SymbolErrors, 0xffff, 40),
    (Counter::RcvErrors, 0xffff, 3),
    (Counter::LinkErrorRecoveries, 0xff, 1),
];

/// The counters of a port.
pub struct Device {
    pub raw: [u64; COUNTERS.len()],
    /// What they have counted in all: events at a saturated counter are not counted.
    pub counted: [u64; COUNTERS.len()],
    /// What they had counted when each exporter last read them, as far as it remembers.
    read: [[u64; COUNTERS.len()]; 2],
    /// What they counted between that and a reset: no exporter can know it.
    unseen: [u64; COUNTERS.len()],
    /// The shares of the largest rates.
    rates: [f64; COUNTERS.len()],
    pub reset_at: u64,
    /// It does not respond before this second.
    pub silent_until: u64,
}

impl Device {
    pub fn new(rng: &mut Rng) -> Device {
        let raw = COUNTERS.map(|(_, max, _)| rng.below(max.min(1 << 40)) / 2);
        let rates = COUNTERS.map(|_| rng.next_f64());
        Device {
            raw,
            counted: raw,
            read: [raw; 2],
            unseen: [0; _],
            rates,
            reset_at: 0,
            silent_until: 0,
        }
    }

    #[expect(clippy::cast_sign_loss, reason = "a mean is not negative")]
    pub fn count(&mut self, now: u64, rng: &mut Rng) {
        if now < self.silent_until {
            return;
        }
        for (nth, (_, max, rate)) in COUNTERS.into_iter().enumerate() {
            // Jobs begin and end.
            if rng.below(300) == 0 {
                self.rates[nth] = [0.0, rng.next_f64()][rng.below(2) as usize];
            }
            let mean = self.rates[nth] * rate as f64;
            let events = if rate < 1_000 { rng.poisson(mean) } else { mean as u64 };
            let events = events.min(max - self.raw[nth]);
            self.raw[nth] += events;
            self.counted[nth] += events;
        }
    }

    /// An exporter reads a counter.
    pub fn read(&mut self, exporter: usize, nth: usize) {
        self.read[exporter][nth] = self.counted[nth];
    }

    /// An exporter stops, and has no history.
    pub fn forget(&mut self, exporter: usize) {
        self.read[exporter] = [0; _];
    }

    /// What a counter has counted, without what no exporter can know.
    pub fn visible(&self, nth: usize) -> u64 {
        self.counted[nth] - self.unseen[nth]
    }

    /// When both exporters began to read values after the latest reset.
    pub fn readable_since(&self) -> u64 {
        self.reset_at.max(self.silent_until)
    }

    /// A tool clears all counters or some of them, or the device reboots.
    pub fn reset(&mut self, now: u64, rng: &mut Rng) {
        let kind = rng.below(3);
        for nth in 0..COUNTERS.len() {
            if kind < 2 || rng.below(2) == 0 {
                self.raw[nth] = 0;
                let [one, other] = self.read.map(|read| read[nth]);
                self.unseen[nth] += self.counted[nth] - one.max(other);
                self.read.iter_mut().for_each(|read| read[nth] = self.counted[nth]);
            }
        }
        if kind == 0 {
            self.silent_until = now + 30 + rng.below(90);
        }
        self.reset_at = now;
    }
}
