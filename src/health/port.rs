//! What is kept of a port from sweep to sweep, and what a reading adds to it.

use std::time::Duration;

use crate::fabric::{Counter, Moment, Reading};

use super::bit_errors::{self, BitErrors, Judgement, Limits, Mended, Watch};
use super::corruption::Corruption;
use super::totals::{Growth, PortTotals};
use super::window::Recent;

/// How long a period of what is only known as recent is. It is the shorter of the windows that
/// others judge links by, too (UFM: 12 and 125 minutes).
pub const PERIOD: Duration = Duration::from_secs(12 * 60);

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

/// The state of a port.
#[derive(Clone, Debug, Default)]
pub struct PortState {
    /// What it counted.
    pub totals: PortTotals,
    watch: Watch,
    corruption: Corruption,
    lately: [Recent; LATELY.len()],
    /// Symbols that error correction mended, and for how long that was watched.
    mended: Recent,
    watched: Recent,
    /// The period that the recent is of.
    period: u16,
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
    /// since the one before.
    pub fn read(
        &mut self,
        reading: &mut Reading,
        incoming: Option<Incoming>,
    ) -> (Growth, BitErrors) {
        let growth = self.totals.take(reading);
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
        for (lately, counter) in self.lately.iter_mut().zip(LATELY) {
            let more = match counter {
                Counter::RcvErrors => spoilt(&growth),
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
        let bit_errors = BitErrors { mended: self.mended(), ..self.judge(&growth, incoming) };
        self.judged = bit_errors.judgement;
        (growth, bit_errors)
    }

    fn judge(&mut self, growth: &Growth, incoming: Incoming) -> BitErrors {
        let Incoming { bits_a_second, limits } = incoming;
        let unknown = BitErrors { bits_a_second, limit: limits.symbol, ..BitErrors::default() };
        if self.totals.counting().is_stuck(Counter::SymbolErrors) {
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
        if let Some(mended) = growth.timed(Counter::FecCorrectedSymbols) {
            self.mended.add(mended as f32);
            self.watched.add(growth.seconds as f32);
        }
        self.watch.follow(growth.at, errors.unwrap_or(0), bits_a_second, limits.symbol)
    }

    /// Begins to watch anew: the link is another one, or has just trained; what comes in while it
    /// does, until a moment, says nothing.
    pub fn restart(&mut self, training_until: Option<Moment>) {
        self.watch = Watch::default();
        self.corruption = Corruption::default();
        self.lately = Default::default();
        (self.mended, self.watched) = Default::default();
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
            for lately in self.lately.iter_mut().chain([&mut self.mended, &mut self.watched]) {
                lately.turn(gone);
            }
            self.corruption.fade();
            self.period = period;
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
        !self.totals.counting().is_stuck(Counter::RcvData)
            && self.lately(Lately::Spoilt) > bit_errors::most(expected)
    }

    /// Whether error correction had to mend more than its limit, and more than chance brings.
    pub fn mends_too_much(&self) -> bool {
        let Some(Mended { limit, .. }) = self.mended() else { return false };
        let bits = self.incoming.map_or(0.0, |it| it.bits_a_second) * self.watched.sum();
        self.mended.sum() > bit_errors::most(bits * limit)
    }

    /// Whether its packets come in broken when there is much to carry, and not at other times.
    pub fn follows_load(&self) -> bool {
        self.corruption.follows_load()
    }

    /// The share of bits that error correction had to mend, and its limit, if both are known.
    pub fn mended(&self) -> Option<Mended> {
        let incoming = self.incoming?;
        let bits = incoming.bits_a_second * self.watched.sum();
        // A full counter grows no more, and tells too little.
        let stuck = self.totals.counting().is_stuck(Counter::FecCorrectedSymbols);
        let limit = incoming.limits.pre_fec.filter(|_| bits > 0.0 && !stuck)?;
        Some(Mended { ratio: self.mended.sum() / bits, limit })
    }
}

/// How many packets were spoilt on the way in from the other end. Many devices count those that were
/// marked further upstream as received with an error, too; where the causes are read, the local
/// physical ones are these.
fn spoilt(growth: &Growth) -> u64 {
    let of = |counter| growth.of(counter).unwrap_or(0);
    let less_marked =
        || of(Counter::RcvErrors).saturating_sub(of(Counter::RcvRemotePhysicalErrors));
    growth.of(Counter::RcvLocalPhysicalErrors).unwrap_or_else(less_marked)
}
