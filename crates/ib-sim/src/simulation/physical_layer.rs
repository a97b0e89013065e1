//! The physical layer of a port: what its receiver counts before and after error correction, and what is wrong with
//! its module and its cable.

use ib_mad::Moment;
use ib_mad::register::LinkDown;

/// A dirty connector: light of one lane gets lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dirt {
    /// The lane, from 0 on.
    pub lane: u8,
    /// The share of its bits that are wrong before error correction.
    pub ratio: f64,
    /// The share of its light that arrives.
    pub light: f64,
}

/// Why a link went down: the signal is lost (block lock lost).
pub const SIGNAL_LOST: LinkDown =
    LinkDown { blame: 1, intent: 2, local_reason: 3, remote_reason: 0, recovery_reason: 0 };
/// Why a link went down: the device at the other end is reset.
pub const PEER_RESET: LinkDown =
    LinkDown { blame: 2, intent: 2, local_reason: 32, remote_reason: 38, recovery_reason: 0 };

/// What a receiver counts per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhysicalRates {
    pub bits: f64,
    /// Errors before correction, equally on all lanes.
    pub raw: f64,
    /// Further ones on the dirty lane.
    pub dirty: f64,
    /// Errors after correction.
    pub lost: f64,
}

/// What a receiver counted since its link trained. A port of 100,000 costs nothing while nothing changes: what the
/// rates add is computed when it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhysicalCounts {
    /// Since when the rates hold.
    changed: Moment,
    /// When the link trained.
    pub since: Moment,
    rates: PhysicalRates,
    /// Counted until the rates changed.
    counted: PhysicalRates,
}

impl PhysicalCounts {
    /// The counts at a moment.
    pub fn at(&self, now: Moment) -> PhysicalRates {
        let seconds = now.since(self.changed).as_secs_f64();
        let sum = |counted: f64, rate: f64| counted + rate * seconds;
        let (counted, rates) = (&self.counted, &self.rates);
        PhysicalRates {
            bits: sum(counted.bits, rates.bits),
            raw: sum(counted.raw, rates.raw),
            dirty: sum(counted.dirty, rates.dirty),
            lost: sum(counted.lost, rates.lost),
        }
    }

    /// Sets the rates from now on.
    pub fn set_rates(&mut self, now: Moment, rates: PhysicalRates) {
        (self.counted, self.changed, self.rates) = (self.at(now), now, rates);
    }

    /// The link has trained: the device counts from zero.
    pub fn restart(&mut self, now: Moment) {
        *self = PhysicalCounts { changed: now, since: now, rates: self.rates, ..Self::default() };
    }
}
