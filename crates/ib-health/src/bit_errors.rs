//! Bit error ratios (BER): which share of the bits that a port receives is wrong.
//!
//! A ratio is measured over windows. The shortest one with enough evidence decides: a link that is grossly
//! bad shows it within a minute, one at its limit once it had time for an error or two. The time of a window is that in
//! which errors were counted: while a tool clears the counters, that is less than has passed (`clears`).

use std::time::Duration;

use ib_mad::Moment;

use super::incoming::Incoming;
use super::limits::Confidence;
use super::window::{Growth, SlidingWindow, Tick};

display_text::labeled_enum! {
    /// A window over which errors are counted, the shortest first.
    pub enum BerWindow {
        Quick, "75s", "Finds grossly bad links.";
        Short, "12m", "One of the windows of UFM.";
        Long, "125m", "One of the windows of UFM.";
    }
}

/// The errors of a window.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Measurement {
    /// The number of errors.
    pub errors: u32,
    /// The time in which they were counted, in seconds.
    pub seconds: f32,
}

impl Measurement {
    /// The time in which they were counted.
    pub fn span(&self) -> Duration {
        Duration::from_secs_f32(self.seconds.max(0.0))
    }
}

/// The errors that a level is decided by.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Deciding {
    /// What was counted.
    pub counted: Measurement,
    /// How many of the errors are compared with the limit: those without bursts.
    pub steady: u32,
}

display_text::labeled_enum! {
    /// How the errors of one direction of a link compare with its limit.
    #[derive(Default, PartialOrd, Ord)]
    pub enum BitErrorLevel {
        #[default]
        Unknown, "unknown", "The time was too short, or the counter is saturated.";
        Fine, "fine", "Below half of the limit.";
        Raised, "raised", "Above half of the limit, or lately so and not clearly below it since then.";
        Over, "over", "Above the limit, or above half of it since then.";
    }
}

/// The errors among the bits that a port receives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BitErrors {
    /// How they compare with the limit.
    pub level: BitErrorLevel,
    /// The errors that decided: of a window, or of its latest part.
    pub decided_by: Option<Deciding>,
    /// By window; zero where there is no measurement yet.
    pub windows: [Measurement; BerWindow::ALL.len()],
    /// Bits received per second.
    pub bits_per_second: f32,
    /// The highest allowed ratio.
    pub limit: f32,
    /// How long ago they were last above half of the limit, if the level is [`Raised`](BitErrorLevel::Raised) only by that.
    pub raised_before: Option<Duration>,
    /// The ratio before error correction, if it is known.
    pub pre_fec: Option<PreFecBer>,
}

/// The bit error ratio before error correction, over 2 to 4 minutes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreFecBer {
    /// The measured ratio.
    pub ratio: f32,
    /// The highest allowed ratio.
    pub limit: f32,
    /// When it was measured: now, or when the counter was last below its maximum.
    pub at: Moment,
    /// The counter is saturated: this is the last known ratio, not the current one.
    pub stale: bool,
    /// The lane that has more of the errors than all others together, and its share, if the device reports lanes.
    pub lane: Option<(u8, f32)>,
    /// When it was last above its limit, by more than chance explains, unless it is clearly below it since then.
    pub over_at: Option<Moment>,
}

/// The expected number of errors at the limit from which on a window is evidence. With none seen where 2.5
/// are expected, the link is below its limit with 92% confidence (e^-2.5), and one at a tenth of the limit
/// would have had a quarter of an error. At NDR, 1e-14 takes 625 s.
pub const ENOUGH: f32 = 2.5;

/// The number of errors that a link with so many expected errors does not exceed by chance, except in one of so many
/// windows, whose natural logarithm is `odds`: Bernstein's inequality for a Poisson distribution.
fn exceptional(expected: f32, odds: f32) -> f32 {
    expected + odds / 3.0 + (odds * odds / 9.0 + 2.0 * odds * expected).sqrt()
}

/// The number of errors that a link with so many expected errors exceeds by chance in at most one of 200 windows.
pub fn chance_limit(expected: f32) -> f32 {
    let [_, watch] = Confidence::High.odds();
    exceptional(expected, watch)
}

impl BitErrors {
    /// The measured ratio over a window; `None` while a link at its limit had fewer than 2.5 errors in it.
    pub fn ratio(&self, window: BerWindow) -> Option<f64> {
        self.ratio_of(self.windows[window as usize])
    }

    /// The same of these errors.
    pub fn ratio_of(&self, measured: Measurement) -> Option<f64> {
        let Measurement { errors, seconds } = measured;
        let expected = seconds * self.bits_per_second * self.limit;
        let is_evidence = expected >= ENOUGH || errors as f32 > chance_limit(ENOUGH);
        (is_evidence && self.level != BitErrorLevel::Unknown)
            .then(|| f64::from(errors) / (f64::from(self.bits_per_second) * f64::from(seconds)))
    }
}

/// The window [`BerWindow::Long`]. A bad cable shows in three parts of a window at the earliest: it has more of them.
pub(crate) type LongWindow = SlidingWindow<{ 125 * 60 }, 16>;

/// The windows of one port.
#[derive(Clone, Copy, Debug, Default)]
pub struct BerWindows {
    quick: SlidingWindow<75, 6>,
    short: SlidingWindow<{ 12 * 60 }, 6>,
    long: LongWindow,
    /// Errors since the start, modulo 2^32: windows store only differences.
    counted: u32,
    /// It was above the limit, and has been above half of it since.
    is_over: bool,
    /// When it was last above half of the limit, unless it has been clearly below it since.
    raised: Option<Tick>,
}

/// How long a ratio counts as raised that is not any more, but is not clearly below either: it is near the threshold,
/// and would be above it and below it in turn. With the time of one window, one in ten links near it would still change
/// its verdict three times in 7 hours; with two, one in a thousand.
pub const RAISED_FOR: Duration = Duration::from_secs(2 * LongWindow::LONGEST as u64);

/// Clearly below half of the limit is half of that.
const CLEARLY_BELOW: f32 = 0.25;

impl BerWindows {
    /// The errors will be compared with another limit: whether they were above the last one does not matter any more.
    pub fn on_other_limit(&mut self) {
        (self.is_over, self.raised) = (false, None);
    }

    /// Drops what a window without a gap would not contain any more.
    pub fn keep_latest(&mut self, at: Tick) {
        self.quick.keep_latest(at);
        self.short.keep_latest(at);
        self.long.keep_latest(at);
    }

    /// Adds the errors since the last reading, and compares with the limit. `at` is in observed time; the ratio may be too
    /// low by a factor of `doubt`.
    pub fn add(&mut self, at: Tick, errors: u64, incoming: Incoming, doubt: f32) -> BitErrors {
        let Incoming { bits_per_second, confidence, .. } = incoming;
        let limit = incoming.limits.symbol;
        let mut found = BitErrors { bits_per_second, limit, ..BitErrors::default() };
        let errors = u32::try_from(errors).unwrap_or(u32::MAX);
        self.counted = self.counted.wrapping_add(errors);
        let rate = bits_per_second * limit;
        let now = Now { at, counted: self.counted, rate, confidence, doubt };
        let judged =
            [now.judge(&mut self.quick), now.judge(&mut self.short), now.judge(&mut self.long)];
        found.windows = judged.map(|(all, ..)| all);
        for (_, level, decided_by) in judged {
            // The worst; among equals the shortest window.
            if level > found.level {
                (found.level, found.decided_by) = (level, Some(decided_by));
            }
        }
        // A ratio near the threshold would make a bad link degraded and bad in turn.
        self.is_over &= found.level >= BitErrorLevel::Raised;
        if self.is_over {
            found.level = BitErrorLevel::Over;
        }
        self.is_over = found.level == BitErrorLevel::Over;
        let [.., (_, _, long)] = judged;
        // Without bursts, as far as they can be told apart.
        let errors = if self.long.tells_bursts() { long.steady } else { long.counted.errors };
        let is_low = errors as f32 <= long.counted.seconds * rate * CLEARLY_BELOW;
        if found.level >= BitErrorLevel::Raised {
            self.raised = Some(at);
        } else if let Some(before) = self.raised.map(|last| at.seconds_since(last)) {
            if is_low || before > RAISED_FOR.as_secs_f32() {
                self.raised = None;
            } else {
                (found.level, found.decided_by) = (BitErrorLevel::Raised, Some(long));
                found.raised_before = Some(Duration::from_secs_f32(before.max(0.0)));
            }
        }
        found
    }
}

/// The errors until now, and what they are compared with.
struct Now {
    at: Tick,
    counted: u32,
    /// Errors per second at the limit.
    rate: f32,
    confidence: Confidence,
    /// By how much a ratio may be too low.
    doubt: f32,
}

impl Now {
    /// Records it in a window, and compares the errors in the window with the limit. Returns those in all of the
    /// window, the level, and what decided it.
    fn judge<const LENGTH: u32, const POINTS: usize>(
        &self,
        kept: &mut SlidingWindow<LENGTH, POINTS>,
    ) -> (Measurement, BitErrorLevel, Deciding) {
        let Now { at, counted, rate, confidence, doubt } = *self;
        let (errors, seconds) = kept.growth(at, counted).unwrap_or_default();
        let all = Measurement { errors, seconds };
        let expected = seconds * rate;
        let [bad, watch] = confidence.odds();
        // If a burst cannot be told apart it may be one: that is not certain.
        let (is_sparse, tells_bursts) = (kept.is_sparse(at), kept.tells_bursts());
        kept.record(at, counted);
        let is_enough = expected / doubt >= ENOUGH;
        let fine = if is_enough { BitErrorLevel::Fine } else { BitErrorLevel::Unknown };
        // Most windows have so few errors that they are no evidence, however short the time.
        if errors as f32 <= exceptional(0.0, watch) && (doubt <= 1.0 || errors == 0) {
            return (all, fine, Deciding { counted: all, steady: errors });
        }
        // A bad cable has errors all the time. A burst may be read in two intervals, if a sweep falls into it, and
        // there may be two: without them, the errors must still be too many.
        let mut steady = 0;
        // A fault is found soonest in the time since it began (a sequential test), so all parts that end now are
        // compared, too: each of them more strictly, so that together they err no more often than the window.
        let part = bad + (POINTS as f32 - 1.0).ln();
        for Growth { all: since, steady: steadily, seconds } in kept.growth_by_part(at, counted) {
            if steadily as f32 > exceptional(seconds * rate, part) {
                let counted = Measurement { errors: since, seconds };
                return (all, BitErrorLevel::Over, Deciding { counted, steady: steadily });
            }
            steady = steadily;
        }
        let deciding = Deciding { counted: all, steady };
        if steady as f32 > exceptional(expected, bad) {
            return (all, BitErrorLevel::Over, deciding);
        }
        let may_exceed = is_sparse && errors as f32 > exceptional(expected, bad);
        let raised = exceptional(expected / 2.0, watch);
        let level = if may_exceed || steady as f32 > raised {
            BitErrorLevel::Raised
        } else if !tells_bursts && errors as f32 > raised
            || doubt > 1.0 && errors as f32 > exceptional(expected / doubt / 2.0, watch)
        {
            // All of them may be bursts, or none; or there were many more.
            BitErrorLevel::Unknown
        } else {
            fine
        };
        (all, level, deciding)
    }
}

#[cfg(test)]
mod tests;
