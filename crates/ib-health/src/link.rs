//! One cable: what speaks for and against it, and what to do about it.

use std::time::Duration;

use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::{Counter, Moment};

use super::bit_errors::Judgement;
use super::congestion::Role;
use super::outage::Life;
use super::peers::{Reference, Run, rate};
use super::port::{Lately, PERIOD, PortState, TRAINING};
use super::verdict::{Reason, Reasons, Repair, Standing, Verdict};
use super::window::Recent;

/// A link that is down for so long, and nobody said that it would be, does not come back by itself.
const DOWN_FOR_GOOD: Duration = Duration::from_secs(5 * 60);

/// Three flaps in so long make a link bad (gpud: three returns in 12 h; Azure: five losses in 24 h),
/// one in the shorter time makes it watched.
const FLAPS: (usize, Duration) = (3, Duration::from_secs(12 * 3600));
const ONE_FLAP: Duration = Duration::from_secs(3600);

/// So often in the latest minutes a link may retrain by itself before it is watched: once is what a
/// sound one may do in a bad moment.
const RECOVERIES: f32 = 3.0;

/// A port's threshold for local errors may be passed once without meaning.
const INTEGRITY: f32 = 2.0;

/// So many sweeps in a row a port may be missed before nothing is said to be known of it: single
/// MADs get lost.
const MISSED: u8 = 3;

/// The counters by which a cable is judged: none of them may be full.
pub const JUDGED_BY: [Counter; 6] = [
    Counter::SymbolErrors,
    Counter::LinkErrorRecoveries,
    Counter::LinkDowned,
    Counter::RcvErrors,
    Counter::LocalLinkIntegrityErrors,
    Counter::FecUncorrectableBlocks,
];

/// Counters of 32 bits that fill up by design: 4,000 corrections a second, as a sound NDR link has, take
/// 12 days.
const FILLING: [Counter; 2] = [Counter::FecCorrectedBlocks, Counter::FecCorrectedSymbols];

/// What is kept of a link from sweep to sweep.
#[derive(Clone, Debug)]
pub struct LinkState {
    /// What it went through.
    pub life: Life,
    /// What it comes to.
    pub standing: Standing,
    /// LinkErrorRecovery of both ends when it was first seen.
    recoveries: [Option<u32>; 2],
    lately_recovered: Recent,
    period: u16,
    /// The ends at which errors came in that spoke against it, until it is better: of these it must be
    /// measured that they are over.
    guilty: [bool; 2],
    /// It trained anew since it was found bad, and that did not help yet.
    retrained: bool,
    /// What to try first, while something has to be.
    repair: Option<Repair>,
    /// The most that it ran at, while its ends were allowed what they are now.
    had: Option<Run>,
    allowed: Option<[Allowed; 2]>,
}

/// The widths and speeds that a port can do and is allowed.
pub type Allowed = (u8, SpeedSet);

/// What a sweep knows of one end.
#[derive(Clone, Copy, Debug)]
pub struct EndLook<'a> {
    /// What is kept of the port.
    pub port: &'a PortState,
    /// Its part in a congestion.
    pub role: Option<Role>,
    /// The node is not there, or does not answer.
    pub away: bool,
    /// Somebody switched the port off.
    pub disabled: bool,
    /// Nobody expects it to count: an aggregation node.
    pub mute: bool,
}

/// What a sweep knows of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkLook<'a> {
    /// Its ends.
    pub ends: [EndLook<'a>; 2],
    /// When.
    pub at: Moment,
    /// How wide and fast it is, and how wide and fast it could be.
    pub active: (Option<Width>, Option<Speed>),
    /// The best that both ends can do and are allowed.
    pub best: (Option<Width>, Option<Speed>),
    /// What each end can do and is allowed, if both tell.
    pub allowed: Option<[Allowed; 2]>,
    /// What links between such devices say that it should run at, if that is more than it does.
    pub expected: Option<Reference>,
    /// Its lanes are trained: a link that is not up waits for its subnet manager.
    pub trained: bool,
    /// Somebody works on it.
    pub maintenance: bool,
    /// It is inside a switch: see [`ib_mad::node::PortRole`].
    pub internal: bool,
}

impl LinkLook<'_> {
    fn run(&self) -> Option<Run> {
        self.active.0.zip(self.active.1)
    }

    fn best(&self) -> Option<Run> {
        self.best.0.zip(self.best.1)
    }
}

impl EndLook<'_> {
    /// Whether it is not known if errors come in. A device that does not count bits can be told by its
    /// packets alone.
    fn is_hidden(&self) -> bool {
        let counts = self.port.totals.total(Counter::SymbolErrors).is_some();
        let unknown = counts && self.port.judged == Judgement::Unknown;
        self.away || self.port.missed >= MISSED || unknown
    }
}

impl LinkState {
    /// A link that is seen for the first time.
    pub fn new(at: Moment) -> Self {
        LinkState {
            life: Life::default(),
            standing: Standing::new(at),
            recoveries: [None; 2],
            lately_recovered: Recent::default(),
            period: 0,
            guilty: [false; 2],
            retrained: false,
            repair: None,
            had: None,
            allowed: None,
        }
    }

    /// Takes down how often both ends say that it retrained by itself. The same event counts at both
    /// ends, read at different moments: the end that has seen more of them counts.
    pub fn recovered(&mut self, totals: [Option<u32>; 2], at: Moment) {
        let period = (at.0 / PERIOD.as_nanos() as u64) as u16;
        let gone = period.wrapping_sub(self.period);
        if gone > 0 {
            self.lately_recovered.turn(gone);
            self.period = period;
        }
        let since = |(first, now): (&mut Option<u32>, Option<u32>)| {
            let now = now?;
            Some(now.wrapping_sub(*first.get_or_insert(now)))
        };
        let times = self.recoveries.iter_mut().zip(totals).filter_map(since).max().unwrap_or(0);
        let before = self.life.outages().recoveries;
        self.lately_recovered.add(times.saturating_sub(before) as f32);
        self.life.recovered(times);
    }

    /// It trained anew.
    pub fn trained(&mut self) {
        self.retrained |= self.standing.verdict().0 == Verdict::Bad;
    }

    /// Takes down what it runs at, for a loss of lanes or of speed to show. Once a port is allowed
    /// something else, another rate is wanted: what it had before says nothing then. Nor does it after
    /// maintenance, in which a slower cable may have been plugged in on purpose.
    fn note_run(&mut self, look: &LinkLook<'_>) {
        if look.maintenance {
            self.had = None;
            return;
        }
        if look.allowed.is_some() && look.allowed != self.allowed {
            (self.had, self.allowed) = (None, look.allowed);
        }
        let Some((run, best)) = look.run().zip(look.best()) else { return };
        // Until it trains again it may run at what it is not allowed any more.
        let is_allowed = run.0 <= best.0 && run.1 <= best.1;
        let is_more = self.had.is_none_or(|had| rate(run) > rate(had));
        if self.is_settled(look.at) && is_allowed && is_more {
            self.had = Some(run);
        }
    }

    /// Whether it has been up for so long that its rate is final: until then it may still train.
    fn is_settled(&self, at: Moment) -> bool {
        let (up, since) = self.life.up();
        up == Some(true) && at.since(since) >= TRAINING
    }

    /// What it should or could run at, where that is more than it does.
    pub fn reference(&self, look: &LinkLook<'_>) -> Option<Reference> {
        let run = look.run()?;
        if !self.is_settled(look.at) {
            return None;
        }
        let past = self.had.filter(|had| rate(run) < rate(*had)).map(Reference::Past);
        let could = || {
            let best = look.best().filter(|best| rate(run) < rate(*best));
            best.map(Reference::Capability)
        };
        past.or(look.expected).or_else(could)
    }

    /// Weighs what speaks for and against it, and settles its verdict.
    pub fn judge(&mut self, look: &LinkLook<'_>) -> Reasons {
        self.note_run(look);
        let mut reasons = self.weigh(look);
        if look.internal {
            // No technician can replace it, and what its counters mean is not documented.
            reasons = Reasons::default();
            reasons.add(Reason::Internal, Verdict::Unknown);
        } else if look.maintenance {
            // Whatever is seen while somebody works on it says nothing about the cable.
            reasons = reasons.at_most(Verdict::Unknown);
            reasons.add(Reason::Maintenance, Verdict::Unknown);
        }
        let mut hidden = false;
        let judged = |end: &EndLook<'_>| !end.mute && !look.internal;
        for (guilty, end) in self.guilty.iter_mut().zip(&look.ends).filter(|(_, end)| judged(end)) {
            let mut errors = Reasons::default();
            weigh_errors(end, &mut errors);
            *guilty |= errors.verdict() >= Verdict::Watch;
            hidden |= *guilty && end.is_hidden();
        }
        self.standing.follow(&reasons, hidden, look.at);
        if self.standing.verdict().0 < Verdict::Watch {
            self.guilty = [false; 2];
        }
        self.retrained &= self.standing.verdict().0 > Verdict::Unknown;
        reasons
    }

    fn weigh(&self, look: &LinkLook<'_>) -> Reasons {
        let mut reasons = Reasons::default();
        self.weigh_life(look, &mut reasons);
        let up = self.life.up().0;
        if let Some((run, reference)) = look.run().zip(self.reference(look)) {
            weigh_run(run, reference, look.expected == Some(reference), &mut reasons);
        }
        for end in look.ends.iter().filter(|end| !end.mute) {
            weigh_errors(end, &mut reasons);
            let counting = end.port.totals.counting();
            if JUDGED_BY.iter().any(|&counter| counting.is_stuck(counter)) {
                reasons.add(Reason::CounterSaturated, Verdict::Unknown);
            }
            if FILLING.iter().any(|&counter| counting.is_stuck(counter)) {
                let is_open = end.port.may_correct_too_much();
                let weight = if is_open { Verdict::Unknown } else { Verdict::Ok };
                reasons.add(Reason::CounterSaturated, weight);
            }
            let is_unjudged = end.port.judged == Judgement::Unknown;
            // Without a valid count of symbol errors the bits cannot be judged; the other counters only
            // add to what they say.
            let is_unreadable = is_unjudged && counting.is_impossible(Counter::SymbolErrors);
            if JUDGED_BY.iter().any(|&counter| counting.is_impossible(counter)) {
                let weight = if is_unreadable { Verdict::Unknown } else { Verdict::Ok };
                reasons.add(Reason::ImpossibleValue, weight);
            }
            if end.away || end.port.missed >= MISSED {
                reasons.add(Reason::Unanswered, Verdict::Unknown);
            } else if is_unjudged && !is_unreadable && up == Some(true) {
                reasons.add(Reason::TooShort, Verdict::Unknown);
            }
        }
        reasons
    }

    /// Whether it is there, and how often it was not.
    fn weigh_life(&self, look: &LinkLook<'_>, reasons: &mut Reasons) {
        let away = look.ends.iter().any(|end| end.away);
        let (up, since) = self.life.up();
        if look.ends.iter().any(|end| end.disabled) {
            reasons.add(Reason::Disabled, Verdict::Unknown);
        } else if up == Some(false) && !away {
            // The cable does what it can where the lanes are trained.
            let good = look.at.since(since) >= DOWN_FOR_GOOD && !look.trained;
            reasons.add(Reason::Down, if good { Verdict::Bad } else { Verdict::Watch });
        } else if up.is_none() {
            reasons.add(Reason::Unanswered, Verdict::Unknown);
        }
        let (often, by_node) = self.life.flaps_since(look.at, FLAPS.1);
        let weight = if often >= FLAPS.0 {
            Some(if by_node { Verdict::Watch } else { Verdict::Bad })
        } else if self.life.flaps_since(look.at, ONE_FLAP).0 > 0 {
            Some(Verdict::Watch)
        } else {
            None
        };
        if let Some(weight) = weight {
            let reason = if by_node { Reason::NodeFlapping } else { Reason::Flapping };
            reasons.add(reason, weight);
        }
        if self.lately_recovered.sum() >= RECOVERIES {
            reasons.add(Reason::Recoveries, Verdict::Watch);
        }
    }

    /// What to try first. While what speaks against it is not seen any more, but the verdict stands, it
    /// is what it was.
    pub fn repair(&mut self, reasons: &Reasons, look: &LinkLook<'_>) -> Option<Repair> {
        let (verdict, _) = self.standing.verdict();
        if verdict < Verdict::Watch || reasons.verdict() >= Verdict::Watch {
            self.repair = self.remedy(reasons, look);
        }
        self.repair
    }

    fn remedy(&self, reasons: &Reasons, look: &LinkLook<'_>) -> Option<Repair> {
        let both = look.ends.iter().all(|end| end.port.judged as u8 >= Judgement::Raised as u8);
        let (reason, _) = reasons.gravest()?;
        match reason {
            Reason::BitErrors
            | Reason::PreFec
            | Reason::ReceiveErrors
            | Reason::LinkIntegrity
            | Reason::Width
                if reasons.verdict() >= Verdict::Watch =>
            {
                // Errors one way are a bad or loose transceiver, or dirt; both ways have the cable in
                // common (Zhuo et al., SIGCOMM 2017).
                Some(match (both, self.retrained) {
                    (true, _) => Repair::SwapCable,
                    (false, false) => Repair::Reseat,
                    (false, true) => Repair::SwapTransceiver,
                })
            }
            Reason::Down if look.trained => None,
            Reason::Flapping | Reason::Recoveries | Reason::Speed | Reason::Down => {
                Some(if self.retrained { Repair::SwapCable } else { Repair::Reseat })
            }
            Reason::NodeFlapping => Some(Repair::LookAtHost),
            _ if reasons.weight(Reason::Marked).is_some() => Some(Repair::LookUpstream),
            Reason::Congested | Reason::Victim => Some(Repair::Nothing),
            _ => None,
        }
    }
}

/// Weighs a rate below a reference. A lane that is lost is a fault of this link; a slower speed may be
/// all that its cable is made for. What both ends could do is no more than information, unless it is
/// `expected`: devices that run at less by design list more.
fn weigh_run(run: Run, reference: Reference, expected: bool, reasons: &mut Reasons) {
    let (Reference::Past(more) | Reference::Peers(more) | Reference::Capability(more)) = reference;
    if matches!(reference, Reference::Capability(_)) && !expected {
        reasons.add(Reason::BelowCapability, Verdict::Ok);
        return;
    }
    if run.0 < more.0 {
        reasons.add(Reason::Width, Verdict::Bad);
    }
    if run.1 < more.1 {
        reasons.add(Reason::Speed, Verdict::Watch);
    }
}

fn weigh_errors(end: &EndLook<'_>, reasons: &mut Reasons) {
    let port = end.port;
    match port.judged {
        Judgement::Over => reasons.add(Reason::BitErrors, Verdict::Bad),
        Judgement::Raised => reasons.add(Reason::BitErrors, Verdict::Watch),
        Judgement::Fine | Judgement::Unknown => {}
    }
    if port.mends_too_much() {
        reasons.add(Reason::PreFec, Verdict::Watch);
    }
    if port.spoils_too_much() {
        // Losses that come with the load are the receiver's, who had no room.
        let weight = if port.follows_load() { Verdict::Ok } else { Verdict::Watch };
        reasons.add(Reason::ReceiveErrors, weight);
    }
    if port.lately(Lately::Integrity) >= INTEGRITY {
        reasons.add(Reason::LinkIntegrity, Verdict::Watch);
    }
    if port.lately(Lately::Marked) > 0.0 {
        reasons.add(Reason::Marked, Verdict::Ok);
    }
    match end.role {
        Some(Role::Root) => reasons.add(Reason::Congested, Verdict::Ok),
        Some(Role::Victim { .. }) => reasons.add(Reason::Victim, Verdict::Ok),
        None => {}
    }
}
