//! What is kept of a port from sweep to sweep, and what a reading adds to it.

use std::time::Duration;

use ib_fabric::hardware::PortHardware;
use ib_mad::reading::Raw;
use ib_mad::{Counter, Moment, Reading};

use super::bit_errors::{self, BerWindows, BitErrorLevel, BitErrors, PreFecBer, RAISED_FOR};
use super::clears::Clears;
use super::congestion::{GRACE, HeldWait, SATURATED_HOLD};
use super::counter_status::CounterStatus;
use super::incoming::Incoming;
use super::lost_data::{LOST_DATA, lost_data};
use super::reported::{RawErrors, Reported};
use super::totals::{Growth, PortTotals};
use super::window::{Busiest, LoadCorrelation, Recent, Tick};

/// The period of [`ReceivedSums`]: the shorter window that UFM has, of 12 and 125 minutes.
pub const PERIOD: Duration = Duration::from_secs(12 * 60);

/// The period of pre-FEC sums. So many bits are corrected that minutes suffice, and a bad link has to be
/// reported before its counter saturates: at twice the limit, the 32 bits of an XDR link do so in 4.5 minutes.
pub const PRE_FEC_PERIOD: Duration = Duration::from_secs(2 * 60);

/// Errors in the first seconds of a link do not count: its ends still adapt to each other.
pub const TRAINING: Duration = Duration::from_secs(30);

/// What was received in a [`PERIOD`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivedSums {
    /// Packets that this link corrupted: received corrupt, and sent intact by the other end. Until the details of
    /// receive errors are read, it includes others.
    pub corrupted: f32,
    /// The same, once it is certain.
    certain: u32,
    /// The readings that showed most of these.
    busiest: Busiest,
    /// Packets that were received marked bad.
    pub marked: f32,
    /// Words of four bytes that were received.
    pub received: f32,
    /// Times that local errors exceeded the port's threshold.
    pub link_integrity: f32,
}

/// What error correction corrected in a [`PRE_FEC_PERIOD`].
#[derive(Clone, Copy, Debug, Default)]
struct CorrectedSums {
    symbols: f32,
    seconds: f32,
}

/// The pre-FEC bit error ratio as it was last known.
#[derive(Clone, Copy, Debug)]
struct PreFec {
    ratio: f32,
    at: u32,
    /// The second in which it last exceeded the limit, by more than chance explains, unless it has been clearly below
    /// it since.
    over_at: Option<u32>,
    /// The link trained since then: it may have another cable.
    outdated: bool,
    /// See [`PreFecBer::lane`].
    lane: Option<(u8, f32)>,
}

impl PreFec {
    fn new(found: &RawErrors, limit: f32, before: Option<PreFec>) -> Self {
        let (ratio, at) = (found.errors / found.bits, found.at.whole_seconds());
        let is_over = found.errors > bit_errors::chance_limit(found.bits * limit);
        // One near its limit would be above it and below it in turn.
        let is_near = |over: &u32| {
            u64::from(at.saturating_sub(*over)) <= RAISED_FOR.as_secs() && ratio > limit / 2.0
        };
        let before = before.filter(|it| !it.outdated).and_then(|it| it.over_at).filter(is_near);
        let over_at = if is_over { Some(at) } else { before };
        PreFec { ratio, at, over_at, outdated: false, lane: found.lane }
    }
}

#[derive(Clone, Debug, Default)]
pub struct PortTracker {
    pub totals: PortTotals,
    ber: BerWindows,
    pub load_correlation: LoadCorrelation,
    pub recent: Recent<ReceivedSums>,
    corrected: Recent<CorrectedSums>,
    /// What the device itself reports.
    pub reported: Reported,
    /// The ratio that the device reports, or of the corrected symbols when the counter was last below its maximum.
    pre_fec: Option<PreFec>,
    /// Consecutive sweeps that did not read the port.
    pub missed: u8,
    pub level: BitErrorLevel,
    /// What it receives, while its link is up.
    pub incoming: Option<Incoming>,
    /// Errors before this second are due to training.
    quiet_until: u32,
    /// When another tool cleared its counters.
    pub clears: Clears,
    /// The time that clears hid so far: the windows of bit errors advance without it.
    unobserved: Duration,
    /// The share of time that it waited when that was last known, and the second of that.
    waited: Option<(f32, u32)>,
    /// The same of the share of its bandwidth that it sent.
    used: Option<(f32, u32)>,
}

impl PortTracker {
    /// Adds a reading of a port that never carries more than `fastest` bytes per second, and what its device reports of
    /// it: replaces its values by totals, and returns their growth, and the errors among the bits received since the reading before.
    #[inline] // or the growth of 300 bytes is copied twice
    pub fn update(
        &mut self,
        reading: &mut Reading<Raw>,
        hardware: Option<&PortHardware>,
        incoming: Option<Incoming>,
        fastest: u64,
    ) -> (Growth, BitErrors) {
        let was_full = self.is_full(Counter::FecCorrectedSymbols);
        let growth = self.totals.update_in_place(reading, fastest);
        self.missed = 0;
        self.clears.record(&growth, |counter| self.totals.before(&growth, counter));
        self.advance_periods(growth.at);
        let rate = |it: Incoming| (it.bits_per_second, it.lanes);
        if incoming.map(rate) != self.incoming.map(rate) {
            // The link trained at another rate, or its rate was changed.
            self.restart(None);
        } else if incoming != self.incoming {
            // Its error correction became known, which of 25,000 ports takes up to 25 minutes after a start.
            self.ber.on_other_limit();
        }
        self.incoming = incoming;
        let Some(incoming) = incoming.filter(|_| growth.at.whole_seconds() >= self.quiet_until)
        else {
            self.level = BitErrorLevel::Unknown;
            return (growth, BitErrors::default());
        };
        let status = self.totals.status();
        let grown = |counter| growth.get(counter).unwrap_or(0) as f32;
        let corrupted = local_physical_errors(&growth, status);
        let certain = self.certainly_corrupted(&growth, corrupted);
        let sums = &mut self.recent.current;
        sums.corrupted += corrupted as f32;
        if let Some(certain) = certain {
            let certain = u32::try_from(certain).unwrap_or(u32::MAX);
            sums.certain = sums.certain.saturating_add(certain);
            sums.busiest.add(certain);
        }
        sums.marked += grown(Counter::RcvRemotePhysicalErrors);
        sums.received += grown(Counter::RcvData);
        sums.link_integrity += grown(Counter::LocalLinkIntegrityErrors);
        let timed = |counter| growth.timed(counter).unwrap_or(0) as f32;
        self.load_correlation.record(
            timed(Counter::RcvPkts),
            timed(Counter::RcvErrors),
            growth.seconds as f32,
        );
        let Incoming { bits_per_second, lanes, limits, .. } = incoming;
        let from = self.quiet_until;
        let reported =
            self.reported.update(hardware, bits_per_second, lanes.into(), from, growth.at);
        if let Some((errors, limit)) = reported.zip(limits.pre_fec) {
            self.pre_fec = Some(PreFec::new(&errors, limit, self.pre_fec));
        }
        if !self.reported.is_measured {
            self.record_pre_fec(&growth, incoming, was_full);
        }
        let bit_errors =
            BitErrors { pre_fec: self.pre_fec(), ..self.bit_errors(&growth, incoming) };
        self.level = bit_errors.level;
        (growth, bit_errors)
    }

    fn bit_errors(&mut self, growth: &Growth, incoming: Incoming) -> BitErrors {
        let Incoming { bits_per_second, limits, .. } = incoming;
        let unknown = BitErrors { bits_per_second, limit: limits.symbol, ..BitErrors::default() };
        // Of a device that does not count them nothing is known.
        if self.totals.total(Counter::SymbolErrors).is_none() {
            return unknown;
        }
        if self.has_no_count_of_lost_data() {
            self.ber = BerWindows::default();
            return unknown;
        }
        // The better of the two counts decides, and how long it counted.
        let counts = LOST_DATA.into_iter().filter(|counter| growth.get(*counter).is_some());
        let observed = counts.map(|counter| self.clears.observed(growth, counter));
        let hidden = 1.0 - observed.reduce(f32::max).unwrap_or(1.0);
        let hidden = Duration::try_from_secs_f64(growth.seconds * f64::from(hidden));
        self.unobserved += hidden.unwrap_or_default();
        let errors = lost_data(|counter| growth.get(counter));
        if errors.is_none() && growth.rejected.contains(Counter::SymbolErrors) {
            // The errors since the latest accepted value are in the growth of the next one.
            return unknown;
        }
        let errors = errors.unwrap_or(0);
        let at = Tick::from(growth.at).before(self.unobserved);
        self.ber.add(at, errors, incoming, self.clears.doubt())
    }

    /// Replaces the windows, and the errors found in them. Returns these with what else is known.
    pub fn set_windows(&mut self, ber: BerWindows, found: BitErrors) -> Option<BitErrors> {
        // Of a saturated counter the last reading has found that nothing is known.
        if self.has_no_count_of_lost_data() {
            return None;
        }
        (self.ber, self.level) = (ber, found.level);
        Some(BitErrors { pre_fec: self.pre_fec(), ..found })
    }

    /// Whether SymbolErrorCounter is saturated, and there is no other count of lost data: on 5 of 256 ConnectX-7 of a
    /// public dump its 16 bits are, while 32 bits count uncorrectable blocks.
    pub fn has_no_count_of_lost_data(&self) -> bool {
        let blocks = Counter::FecUncorrectableBlocks;
        self.is_full(Counter::SymbolErrors)
            && (self.totals.total(blocks).is_none() || self.is_full(blocks))
    }

    /// How many of the packets that this link seems to have corrupted it certainly did: `None` until the details of
    /// receive errors are read, by which a packet that found no buffer is told from one that the link corrupted.
    /// Without details, as many as the errors on the link can have corrupted, if these are counted.
    fn certainly_corrupted(&self, growth: &Growth, corrupted: u64) -> Option<u64> {
        let local = Counter::RcvLocalPhysicalErrors;
        if self.totals.total(local).is_some() && !self.is_full(local) {
            return growth.get(local);
        }
        let is_counted =
            self.totals.total(Counter::SymbolErrors).is_some() && !self.has_no_count_of_lost_data();
        let errors =
            lost_data(|counter| growth.get(counter)).unwrap_or(0).saturating_mul(PACKETS_PER_ERROR);
        Some(if is_counted && self.totals.total(local).is_none() {
            corrupted.min(errors)
        } else {
            corrupted
        })
    }

    fn is_full(&self, counter: Counter) -> bool {
        self.totals.status().saturated_now.contains(counter)
    }

    /// Records what was corrected since the reading before. The counter has 32 bits and sticks: a bad NDR link fills
    /// it in minutes, a good one in days. From then on nothing is measured, and the last known ratio stays.
    fn record_pre_fec(&mut self, growth: &Growth, incoming: Incoming, was_full: bool) {
        let Some(corrected) = growth.timed(Counter::FecCorrectedSymbols).filter(|_| !was_full)
        else {
            return;
        };
        self.corrected.current.symbols += corrected as f32;
        let observed = self.clears.observed(growth, Counter::FecCorrectedSymbols);
        self.corrected.current.seconds += growth.seconds as f32 * observed;
        let symbols = self.corrected.sum(|it| it.symbols);
        let bits = incoming.bits_per_second * self.corrected.sum(|it| it.seconds);
        let Some(limit) = incoming.limits.pre_fec.filter(|_| bits > 0.0) else { return };
        let corrected = RawErrors { errors: symbols, bits, at: growth.at, lane: None };
        let now = PreFec::new(&corrected, limit, self.pre_fec);
        // The reading that filled the field shows a lower bound.
        let known = self.pre_fec.filter(|it| !it.outdated && it.ratio > now.ratio);
        if known.is_none() || !self.is_full(Counter::FecCorrectedSymbols) {
            self.pre_fec = Some(now);
        }
    }

    /// Whether the pre-FEC ratio is the last one before the counter of corrected symbols saturated.
    fn is_pre_fec_stale(&self) -> bool {
        self.is_full(Counter::FecCorrectedSymbols) && !self.reported.is_measured
    }

    /// The port has another link, or its link has just trained: errors until `training_until` do not count.
    pub fn restart(&mut self, training_until: Option<Moment>) {
        self.ber = BerWindows::default();
        self.load_correlation = LoadCorrelation::default();
        self.recent.clear();
        self.corrected.clear();
        self.pre_fec = self.pre_fec.filter(|_| self.is_pre_fec_stale());
        self.reported.restart();
        if let Some(known) = &mut self.pre_fec {
            known.outdated = true;
        }
        self.level = BitErrorLevel::Unknown;
        if let Some(until) = training_until {
            (self.waited, self.used) = (None, None);
            self.quiet_until = until.whole_seconds();
        }
    }

    /// Whether a counter grew by what was counted since the reading before: it was not cleared, and has not filled.
    pub fn is_measured(&self, growth: &Growth, counter: Counter) -> bool {
        !self.is_full(counter) && self.clears.observed(growth, counter) >= 1.0
    }

    /// Keeps the shares of time that it waited and of its bandwidth that it sent, as far as they are known now.
    pub fn keep_sent(&mut self, waited: Option<f32>, used: Option<f32>, at: Moment) {
        let kept = |share| (share, at.whole_seconds());
        self.waited = waited.map(kept).or(self.waited);
        self.used = used.map(kept).or(self.used);
    }

    /// How long it waited when that was last known, unless that was too long ago.
    pub fn held_wait(&self, now: Moment) -> Option<HeldWait> {
        let most = if self.is_full(Counter::XmitWait) { SATURATED_HOLD } else { GRACE };
        recent(self.waited?, most, now)
    }

    /// The share of its bandwidth that it sent when that was last known, unless that was too long ago.
    pub fn held_use(&self, now: Moment) -> Option<f32> {
        recent(self.used?, GRACE, now).map(|held| held.share)
    }

    fn advance_periods(&mut self, at: Moment) {
        if self.recent.advance(at, PERIOD) {
            self.load_correlation.decay();
        }
        let is_next = self.corrected.advance(at, PRE_FEC_PERIOD);
        let is_read = self.corrected.sum(|it| it.seconds) > 0.0;
        // The attribute is not read any more: the ratio is out of date.
        if is_next
            && !is_read
            && !self.is_full(Counter::FecCorrectedSymbols)
            && !self.reported.is_measured
        {
            self.pre_fec = None;
        }
    }

    /// Whether packets that were marked bad were received lately.
    pub fn has_marked(&self) -> bool {
        self.recent.sum(|it| it.marked) > 0.0
    }

    /// Whether more packets were corrupted than the allowed bit errors explain, and not only in a burst, if the bits
    /// are known.
    pub fn exceeds_packet_error_limit(&self) -> bool {
        let Some(incoming) = self.incoming else { return false };
        let bits = self.recent.sum(|it| it.received) * 32.0;
        let limit = bit_errors::chance_limit(bits * incoming.limits.symbol);
        !self.is_full(Counter::RcvData)
            && self.recent.sum(|it| it.busiest.steady(it.certain) as f32) > limit
    }

    /// Whether the pre-FEC bit error ratio exceeds its limit, by more than chance explains, or lately did and is not
    /// clearly below it, as it was last measured: a saturated counter does not clear the link.
    pub fn exceeds_pre_fec_limit(&self) -> bool {
        self.pre_fec.is_some_and(|known| known.over_at.is_some() && !known.outdated)
    }

    /// Whether the pre-FEC ratio may exceed its limit: it did when its counter filled, before a training.
    pub fn may_exceed_pre_fec_limit(&self) -> bool {
        self.pre_fec.is_some_and(|known| known.over_at.is_some() && known.outdated)
    }

    /// The pre-FEC bit error ratio as it was last measured, if it and its limit are known.
    pub fn pre_fec(&self) -> Option<PreFecBer> {
        let limit = self.incoming?.limits.pre_fec?;
        let PreFec { ratio, at, over_at, lane, .. } = self.pre_fec?;
        let moment = |second: u32| Moment::default() + Duration::from_secs(second.into());
        let (at, over_at) = (moment(at), over_at.map(moment));
        Some(PreFecBer { ratio, limit, at, stale: self.is_pre_fec_stale(), lane, over_at })
    }
}

/// A share that was known at a second, if that is recent.
fn recent((share, at): (f32, u32), most: Duration, now: Moment) -> Option<HeldWait> {
    let at = Moment::default() + Duration::from_secs(at.into());
    (now.since(at) <= most).then_some(HeldWait { share, at })
}

/// The most packets that one counted error on a link corrupts. What corrupts a packet is an error on the link, but
/// with 64b/66b coding only that in the two of 66 bits of the block's header shows as an invalid symbol, and a block
/// of RS-FEC that is not corrected has 660 bytes: at most 25 packets. Other receive errors of an agent that has no
/// PortRcvErrorDetails are packets that found no buffer, or were malformed when they were sent.
const PACKETS_PER_ERROR: u64 = 33;

/// How many packets the link itself corrupted. Many devices count packets that were marked further upstream
/// as receive errors, too. Where PortRcvErrorDetails is read in each sweep, and its 16 bits are not saturated,
/// its local physical errors are the answer.
fn local_physical_errors(growth: &Growth, status: CounterStatus) -> u64 {
    let get = |counter| growth.get(counter).unwrap_or(0);
    if growth.rejected.contains(Counter::RcvRemotePhysicalErrors)
        && growth.get(Counter::RcvLocalPhysicalErrors).is_none()
    {
        return 0;
    }
    let local = Counter::RcvLocalPhysicalErrors;
    growth.timed(local).filter(|_| !status.saturated_now.contains(local)).unwrap_or_else(|| {
        get(Counter::RcvErrors).saturating_sub(get(Counter::RcvRemotePhysicalErrors))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Confidence, Limits};

    #[test]
    fn pre_fec_ratio_near_its_limit_is_held() {
        let limit = 1e-5;
        let minute = |minute: u64| Moment::default() + Duration::from_secs(60 * minute);
        // The minutes in which it exceeds its limit, for these ratios in multiples of the limit by the minute.
        let over = |ratios: &dyn Fn(u64) -> f32, minutes: u64| {
            let mut known = None;
            let is_over = (0..minutes).filter(|&at| {
                let (bits, lane) = (1e14, None);
                let found =
                    RawErrors { errors: bits * limit * ratios(at), bits, at: minute(at), lane };
                known = Some(PreFec::new(&found, limit, known));
                known.is_some_and(|known| known.over_at.is_some())
            });
            is_over.collect::<Vec<u64>>()
        };
        // For 7 hours it is above and below it in turn.
        let hovers = over(&|at| if at / 5 % 2 == 0 { 1.1 } else { 0.9 }, 420);
        assert_eq!(hovers, (0..420).collect::<Vec<_>>());
        // It is clearly below; and not much, but for long.
        assert_eq!(over(&|at| if at < 3 { 1.1 } else { 0.4 }, 60), [0, 1, 2]);
        let held = over(&|at| if at < 3 { 1.1 } else { 0.9 }, 420).len() as u64;
        assert_eq!(held, 2 + RAISED_FOR.as_secs() / 60 + 1);
        assert_eq!(over(&|_| 0.9, 60), []);
    }

    /// Whether a port has too many corrupt packets after readings every 15 s that add so many to RcvErrors.
    fn exceeds(errors: &[u64]) -> bool {
        let mut state = PortTracker::default();
        let limits = Limits { symbol: 1e-13, pre_fec: None };
        let confidence = Confidence::High;
        let incoming = Some(Incoming { bits_per_second: 2e11, lanes: 4, limits, confidence });
        let mut sum = 0;
        for (at, errors) in errors.iter().enumerate() {
            sum += errors;
            let mut reading = Reading::empty(Moment(15_000_000_000 * at as u64));
            reading.set(Counter::RcvErrors, sum);
            reading.set(Counter::RcvData, 1_000_000 * at as u64);
            state.update(&mut reading, None, incoming, 25_000_000_000);
        }
        state.exceeds_packet_error_limit()
    }

    #[test]
    fn burst_of_corrupt_packets_is_no_fault() {
        assert!(!exceeds(&[0, 0, 5_000, 0, 0, 0]));
        // A sweep fell into it.
        assert!(!exceeds(&[0, 0, 3_000, 2_000, 0, 0]));
        // With a few others.
        assert!(!exceeds(&[0, 1, 0, 5_000, 0, 1]));
        assert!(exceeds(&[0, 2, 0, 2, 0, 2]));
        assert!(!exceeds(&[0, 1, 0, 1, 0, 1]), "too few");
    }

    #[test]
    fn packets_without_a_buffer_are_not_corrupt() {
        // Each reading adds 10 to RcvErrors; every eighth reads the details, which explain so many of 80 by the link.
        let exceeds = |local: u64| {
            let mut state = PortTracker::default();
            let limits = Limits { symbol: 1e-13, pre_fec: None };
            let confidence = Confidence::High;
            let incoming = Some(Incoming { bits_per_second: 2e11, lanes: 4, limits, confidence });
            for at in 0..48 {
                let mut reading = Reading::empty(Moment(15_000_000_000 * at));
                reading.set(Counter::RcvErrors, at * 10);
                reading.set(Counter::RcvData, 1_000_000 * at);
                if at % 8 == 0 {
                    reading.set(Counter::RcvLocalPhysicalErrors, at / 8 * local);
                } else {
                    reading.not_due.insert(Counter::RcvLocalPhysicalErrors);
                }
                state.update(&mut reading, None, incoming, 25_000_000_000);
            }
            state.exceeds_packet_error_limit()
        };
        assert!(!exceeds(0));
        assert!(exceeds(80));
    }

    /// Whether a port of an agent without details has too many corrupt packets: with 10 more in each reading, and
    /// symbol errors in these.
    fn exceeds_with(symbols: impl Fn(u64) -> u64) -> bool {
        let mut state = PortTracker::default();
        let limits = Limits { symbol: 1e-13, pre_fec: None };
        let confidence = Confidence::High;
        let incoming = Some(Incoming { bits_per_second: 2e11, lanes: 4, limits, confidence });
        let mut sum = 0;
        for at in 0..48 {
            sum += symbols(at);
            let mut reading = Reading::empty(Moment(15_000_000_000 * at));
            reading.set(Counter::RcvErrors, at * 10);
            reading.set(Counter::SymbolErrors, sum);
            state.update(&mut reading, None, incoming, 25_000_000_000);
        }
        state.exceeds_packet_error_limit()
    }

    #[test]
    fn stray_symbol_errors_do_not_make_overruns_corrupt_packets() {
        assert!(!exceeds_with(|_| 0));
        assert!(!exceeds_with(|at| u64::from(at == 40)));
        assert!(!exceeds_with(|at| 1_000 * u64::from(at == 30 || at == 40)));
        assert!(exceeds_with(|at| u64::from(at % 4 == 0)));
    }

    #[test]
    fn uncorrectable_blocks_replace_a_full_symbol_counter() {
        // Each reading has so many more blocks; the 16 bits of SymbolErrorCounter were full before.
        let level = |blocks: Option<u64>| {
            let mut state = PortTracker::default();
            let limits = Limits { symbol: 1e-14, pre_fec: None };
            let confidence = Confidence::High;
            let incoming = Some(Incoming { bits_per_second: 4e11, lanes: 4, limits, confidence });
            for at in 0..120 {
                let mut reading = Reading::empty(Moment(15_000_000_000 * at));
                reading.set(Counter::SymbolErrors, 65_535);
                reading.saturated.insert(Counter::SymbolErrors);
                if let Some(blocks) = blocks {
                    reading.set(Counter::FecUncorrectableBlocks, blocks * at);
                }
                state.update(&mut reading, None, incoming, 50_000_000_000);
            }
            state.level
        };
        assert_eq!(level(None), BitErrorLevel::Unknown);
        assert_eq!(level(Some(0)), BitErrorLevel::Fine);
        assert_eq!(level(Some(10)), BitErrorLevel::Over);
    }

    /// Recent local physical errors, from readings every 15 s of (RcvErrors, RcvRemotePhysicalErrors,
    /// RcvLocalPhysicalErrors); `None` where the last one is not due.
    fn local_errors(readings: &[(u64, u64, Option<u64>)]) -> f32 {
        let mut state = PortTracker::default();
        let limits = Limits { symbol: 1e-12, pre_fec: None };
        let confidence = Confidence::High;
        let incoming = Some(Incoming { bits_per_second: 1e11, lanes: 4, limits, confidence });
        for (at, &(errors, marked, local)) in readings.iter().enumerate() {
            let mut reading = Reading::empty(Moment(15_000_000_000 * at as u64));
            reading.set(Counter::RcvErrors, errors);
            reading.set(Counter::RcvRemotePhysicalErrors, marked);
            if let Some(local) = local {
                reading.set(Counter::RcvLocalPhysicalErrors, local);
                if local == 65_535 {
                    reading.saturated.insert(Counter::RcvLocalPhysicalErrors);
                }
            } else {
                reading.not_due.insert(Counter::RcvLocalPhysicalErrors);
            }
            state.update(&mut reading, None, incoming, 12_500_000_000);
        }
        state.recent.sum(|it| it.corrupted)
    }

    #[test]
    fn corrupted_packets_count_once_at_any_detail_interval() {
        for (readings, expected) in [
            // Read in each sweep: the rest of the errors were of another kind.
            (&[(0, 0, Some(0)), (10, 2, Some(5)), (20, 2, Some(5))][..], 5.0),
            // Read in every third.
            (
                &[(0, 0, Some(0)), (10, 0, None), (20, 0, None), (30, 0, Some(30)), (40, 0, None)],
                40.0,
            ),
            // Full.
            (&[(0, 0, Some(65_535)), (10, 4, Some(65_535)), (20, 4, Some(65_535))], 16.0),
        ] {
            let found = local_errors(readings);
            assert!((found - expected).abs() < 1e-3, "{readings:?}: {found}");
        }
    }
}
