//! What is kept of a port from sweep to sweep, and what a reading adds to it.

use std::time::Duration;

use ib_mad::{Counter, Moment, Reading};

use super::bit_errors::{self, BitErrors, Judgement, Limits, Mended, Watch};
use super::corruption::Corruption;
use super::findings::Counting;
use super::totals::{Growth, PortTotals};
use super::window::Recent;

/// How long a period of what is only known as recent is. It is the shorter of the windows that
/// others judge links by, too (UFM: 12 and 125 minutes).
pub const PERIOD: Duration = Duration::from_secs(12 * 60);

/// The same for what error correction corrects: so much is corrected that minutes are enough to tell, and
/// it has to be told before the counter is full. At twice the limit 32 bits of an XDR link are full in
/// 4.5 minutes.
pub const PRE_FEC_PERIOD: Duration = Duration::from_secs(2 * 60);

/// A link that has just come up makes errors while its ends adapt to each other: those of the first
/// seconds say nothing.
pub const TRAINING: Duration = Duration::from_secs(30);

macro_rules! recent {
    ($($name:ident $counter:ident $about:literal;)+) => {
        /// What is remembered of the latest minutes, by the counter that it comes from.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Lately { $(#[doc = $about] $name),+ }

        /// The counters, in the same order.
        const LATELY: &[Counter] = &[$(Counter::$counter),+];
    };
}

recent! {
    Spoilt RcvErrors "Packets that came in broken, and were whole at the other end.";
    Marked RcvRemotePhysicalErrors "Packets that came in marked bad.";
    Received RcvData "Words of four bytes that came in.";
    Integrity LocalLinkIntegrityErrors "Times that local errors passed the port's threshold.";
}

/// What bits come in at a port, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Incoming {
    /// Bits a second at the link's rate.
    pub bits_a_second: f32,
    /// How many may be wrong.
    pub limits: Limits,
}

/// What error correction had to correct, as it was last known.
#[derive(Clone, Copy, Debug)]
struct PreFec {
    ratio: f32,
    /// In whole seconds.
    at: u32,
    /// It was more than the limit, and more than chance brings.
    over: bool,
    /// The link trained since: it may be another cable.
    outdated: bool,
}

/// The state of a port.
#[derive(Clone, Debug, Default)]
pub struct PortState {
    /// What it counted.
    pub totals: PortTotals,
    watch: Watch,
    corruption: Corruption,
    lately: [Recent; LATELY.len()],
    /// Symbols that error correction corrected, and for how long that was watched.
    mended: Recent,
    watched: Recent,
    /// What these came to when the counter was last below its highest value.
    pre_fec: Option<PreFec>,
    /// The periods that the recent is of.
    period: u16,
    pre_fec_period: u16,
    /// Sweeps in a row that did not read it.
    pub missed: u8,
    /// What its bits came to when they were last judged.
    pub judged: Judgement,
    /// What comes in, as it was last known.
    incoming: Option<Incoming>,
    /// Errors before this second are the training's.
    quiet_until: u32,
}

impl PortState {
    /// Takes a reading in: puts totals in the place of its raw values, and judges what came in
    /// since the one before. The port never carries more than `fastest`, in bytes a second.
    pub fn read(
        &mut self,
        reading: &mut Reading,
        incoming: Option<Incoming>,
        fastest: u64,
    ) -> (Growth, BitErrors) {
        let was_full = self.is_full(Counter::FecCorrectedSymbols);
        let growth = self.totals.take(reading, fastest);
        self.missed = 0;
        self.turn(growth.at);
        if incoming != self.incoming {
            // Another rate is another link: it trained anew, or somebody changed it.
            self.restart(None);
            self.incoming = incoming;
        }
        let Some(incoming) = incoming.filter(|_| growth.at.whole_seconds() >= self.quiet_until)
        else {
            self.judged = Judgement::Unknown;
            return (growth, BitErrors::default());
        };
        let counting = self.totals.counting();
        for (lately, counter) in self.lately.iter_mut().zip(LATELY) {
            let more = match counter {
                Counter::RcvErrors => spoilt(&growth, counting),
                counter => growth.of(*counter).unwrap_or(0),
            };
            lately.add(more as f32);
        }
        let of = |counter| growth.timed(counter).unwrap_or(0);
        self.corruption.note(
            of(Counter::RcvPkts) as f32,
            of(Counter::RcvErrors) as f32,
            growth.seconds as f32,
        );
        self.note_pre_fec(&growth, incoming, was_full);
        let bit_errors = BitErrors { mended: self.mended(), ..self.judge(&growth, incoming) };
        self.judged = bit_errors.judgement;
        (growth, bit_errors)
    }

    fn judge(&mut self, growth: &Growth, incoming: Incoming) -> BitErrors {
        let Incoming { bits_a_second, limits } = incoming;
        let unknown = BitErrors { bits_a_second, limit: limits.symbol, ..BitErrors::default() };
        if self.is_full(Counter::SymbolErrors) {
            self.watch = Watch::default();
            return unknown;
        }
        // A device that does not count them tells nothing about its bits.
        if self.totals.total(Counter::SymbolErrors).is_none() {
            return unknown;
        }
        // With error correction what is lost is counted as symbols, as blocks that could not be
        // mended, or, by most, as both.
        let lost = [Counter::SymbolErrors, Counter::FecUncorrectableBlocks];
        let errors = lost.into_iter().filter_map(|counter| growth.of(counter)).max();
        if errors.is_none() && growth.is_refused(Counter::SymbolErrors) {
            // What came in meanwhile is in the growth of its next reading.
            return unknown;
        }
        self.watch.follow(growth.at, errors.unwrap_or(0), bits_a_second, limits.symbol)
    }

    fn is_full(&self, counter: Counter) -> bool {
        self.totals.counting().is_stuck(counter)
    }

    /// Takes down what was corrected since the reading before. The counter has 32 bits and sticks: a bad
    /// NDR link fills it in minutes, a sound one in days. From then on nothing is measured, and what was
    /// known last stands.
    fn note_pre_fec(&mut self, growth: &Growth, incoming: Incoming, was_full: bool) {
        let Some(corrected) = growth.timed(Counter::FecCorrectedSymbols).filter(|_| !was_full)
        else {
            return;
        };
        self.mended.add(corrected as f32);
        self.watched.add(growth.seconds as f32);
        let bits = incoming.bits_a_second * self.watched.sum();
        let Some(limit) = incoming.limits.pre_fec.filter(|_| bits > 0.0) else { return };
        let now = PreFec {
            ratio: self.mended.sum() / bits,
            at: growth.at.whole_seconds(),
            over: self.mended.sum() > bit_errors::most(bits * limit),
            outdated: false,
        };
        // What filled the field was more than it shows: a lower bound.
        let known = self.pre_fec.filter(|it| !it.outdated && it.ratio > now.ratio);
        if known.is_none() || !self.is_full(Counter::FecCorrectedSymbols) {
            self.pre_fec = Some(now);
        }
    }

    /// Begins to watch anew: the link is another one, or has just trained; what comes in while it
    /// does, until a moment, says nothing.
    pub fn restart(&mut self, training_until: Option<Moment>) {
        self.watch = Watch::default();
        self.corruption = Corruption::default();
        self.lately = Default::default();
        (self.mended, self.watched) = Default::default();
        self.pre_fec = self.pre_fec.filter(|_| self.is_full(Counter::FecCorrectedSymbols));
        if let Some(known) = &mut self.pre_fec {
            known.outdated = true;
        }
        self.judged = Judgement::Unknown;
        if let Some(until) = training_until {
            self.quiet_until = until.whole_seconds();
        }
    }

    /// The sweep did not read it.
    pub fn miss(&mut self) {
        self.missed = self.missed.saturating_add(1);
    }

    /// Lets the time go on to a moment.
    fn turn(&mut self, at: Moment) {
        let period = (at.0 / PERIOD.as_nanos() as u64) as u16;
        let gone = period.wrapping_sub(self.period);
        if gone > 0 {
            self.lately.iter_mut().for_each(|lately| lately.turn(gone));
            self.corruption.fade();
            self.period = period;
        }
        let period = (at.0 / PRE_FEC_PERIOD.as_nanos() as u64) as u16;
        let gone = period.wrapping_sub(self.pre_fec_period);
        if gone > 0 {
            self.mended.turn(gone);
            self.watched.turn(gone);
            self.pre_fec_period = period;
            // The attribute is not read any more: what is known of it is not true of now.
            if self.watched.sum() <= 0.0 && !self.is_full(Counter::FecCorrectedSymbols) {
                self.pre_fec = None;
            }
        }
    }

    /// How much of something there was in the latest 12 to 24 minutes.
    pub fn lately(&self, what: Lately) -> f32 {
        self.lately[what as usize].sum()
    }

    /// Whether more packets came in broken than the bits that came in may bring. Where nobody knows how
    /// many did, packets tell nothing.
    pub fn spoils_too_much(&self) -> bool {
        let Some(incoming) = self.incoming else { return false };
        let expected = self.lately(Lately::Received) * 32.0 * incoming.limits.symbol;
        !self.is_full(Counter::RcvData) && self.lately(Lately::Spoilt) > bit_errors::most(expected)
    }

    /// Whether error correction had to correct more than its limit, and more than chance brings, as far
    /// as that was measured: that the counter is full by now says nothing for the link.
    pub fn mends_too_much(&self) -> bool {
        self.pre_fec.is_some_and(|known| known.over && !known.outdated)
    }

    /// Whether it is open if error correction has to correct too much: it had to when its counter became
    /// full, and the link has trained since.
    pub fn may_correct_too_much(&self) -> bool {
        self.pre_fec.is_some_and(|known| known.over && known.outdated)
    }

    /// Whether its packets come in broken when there is much to carry, and not at other times.
    pub fn follows_load(&self) -> bool {
        self.corruption.follows_load()
    }

    /// The share of bits that error correction had to correct, as it was last measured, and its limit, if
    /// both are known.
    pub fn mended(&self) -> Option<Mended> {
        let limit = self.incoming?.limits.pre_fec?;
        let PreFec { ratio, at, .. } = self.pre_fec?;
        let at = Moment::default() + Duration::from_secs(at.into());
        Some(Mended { ratio, limit, at, stale: self.is_full(Counter::FecCorrectedSymbols) })
    }
}

/// How many packets were spoilt on the way in from the other end. Many devices count those that were
/// marked further upstream as received with an error, too; where the causes are read in each sweep,
/// and their 16 bits are not full, the local physical ones are these.
fn spoilt(growth: &Growth, counting: Counting) -> u64 {
    let of = |counter| growth.of(counter).unwrap_or(0);
    if growth.is_refused(Counter::RcvRemotePhysicalErrors)
        && growth.of(Counter::RcvLocalPhysicalErrors).is_none()
    {
        return 0;
    }
    let less_marked =
        || of(Counter::RcvErrors).saturating_sub(of(Counter::RcvRemotePhysicalErrors));
    let local = Counter::RcvLocalPhysicalErrors;
    growth.timed(local).filter(|_| !counting.is_stuck(local)).unwrap_or_else(less_marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken packets of the latest minutes, from readings of 15 s of (RcvErrors, marked ones, local
    /// physical ones), of which a full or absent local count is `None`.
    fn spoilt_by(readings: &[(u64, u64, Option<u64>)]) -> f32 {
        let mut state = PortState::default();
        let limits = Limits { symbol: 1e-12, pre_fec: None };
        let incoming = Some(Incoming { bits_a_second: 1e11, limits });
        for (at, &(errors, marked, local)) in readings.iter().enumerate() {
            let mut reading = Reading::empty(Moment(15_000_000_000 * at as u64));
            reading.set(Counter::RcvErrors, errors);
            reading.set(Counter::RcvRemotePhysicalErrors, marked);
            if let Some(local) = local {
                reading.set(Counter::RcvLocalPhysicalErrors, local);
                if local == 65_535 {
                    reading.set_stuck(Counter::RcvLocalPhysicalErrors);
                }
            } else {
                reading.keep(Counter::RcvLocalPhysicalErrors);
            }
            state.read(&mut reading, incoming, 12_500_000_000);
        }
        state.lately(Lately::Spoilt)
    }

    #[test]
    fn broken_packets_are_counted_once_however_often_their_causes_are_read() {
        for (readings, spoilt) in [
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
            let found = spoilt_by(readings);
            assert!((found - spoilt).abs() < 1e-3, "{readings:?}: {found}");
        }
    }
}
