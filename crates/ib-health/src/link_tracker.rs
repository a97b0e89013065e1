//! One link: the reasons for its verdict, and the repair to try first.

use std::time::Duration;

use ib_fabric::hardware::ReadAt;
use ib_fabric::topology::Link;
use ib_mad::rate::SpeedSet;
use ib_mad::register::Module;
use ib_mad::{Counter, Moment};

use super::assessment::LinkAssessment;
use super::bit_errors::BitErrorLevel;
use super::congestion::Role;
use super::flap_days::FlapDayLimit;
use super::link_history::LinkHistory;
use super::peers::{LinkRate, RateReference, bandwidth};
use super::port::{PERIOD, PortTracker, TRAINING};
use super::replacement::Replacement;
use super::verdict::{Reason, Reasons, Repair, Verdict, VerdictHysteresis};
use super::window::Recent;

/// After this time a link that is down outside maintenance is bad: it does not come up by itself.
const DOWN_FOR_GOOD: Duration = Duration::from_secs(5 * 60);

/// So many flaps in this time make a link bad (gpud: three returns in 12 h; Azure: five losses in 24 h).
const FLAPS: (usize, Duration) = (3, Duration::from_secs(12 * 3600));
/// One flap in this time makes it degraded.
const ONE_FLAP: Duration = Duration::from_secs(3600);

/// A technician takes at least this long to unplug a cable and plug it in again. Most flaps are shorter.
const REPLUGGED: Duration = Duration::from_secs(5);

/// For this long a replacement is shown: until somebody asks the next day.
const REPLACED: Duration = Duration::from_secs(24 * 3600);

/// Retrainings in 12 to 24 minutes from which on a link is degraded: a good link may retrain once.
const RECOVERIES: f32 = 3.0;

/// Link integrity errors in 12 to 24 minutes from which on a link is degraded: one is no evidence.
const INTEGRITY: f32 = 2.0;

/// Consecutive sweeps that miss a port before its state is unknown: single MADs get lost.
const MAX_MISSED: u8 = 3;

/// The counters that decide a verdict: while one of them is saturated, the verdict is unknown at best.
pub const DECISIVE: [Counter; 6] = [
    Counter::SymbolErrors,
    Counter::LinkErrorRecoveries,
    Counter::LinkDowned,
    Counter::RcvErrors,
    Counter::LocalLinkIntegrityErrors,
    Counter::FecUncorrectableBlocks,
];

/// Counters of 32 bits that fill up by design: 4,000 corrections per second of a good NDR link take 12 days.
const FILLING: [Counter; 2] = [Counter::FecCorrectedBlocks, Counter::FecCorrectedSymbols];

#[derive(Clone, Debug, Default)]
pub struct LinkTracker {
    pub history: LinkHistory,
    pub verdict: VerdictHysteresis,
    /// LinkErrorRecovery of both ends when it was first seen.
    recoveries: [Option<u32>; 2],
    recent_recoveries: Recent<f32>,
    /// The ends whose errors degraded it, until it is better: it must be measured there that they stopped.
    guilty: [bool; 2],
    /// It retrained since it was found bad, and that did not help yet.
    retrained: bool,
    /// It was down for long enough meanwhile that somebody may have reseated it.
    replugged: bool,
    /// How long it has been seen down.
    down_for: Duration,
    /// What to try first, while it is degraded or bad.
    repair: Option<Repair>,
    /// The highest rate that it had while its ends enabled what they enable now.
    best_rate: Option<LinkRate>,
    allowed: Option<[Allowed; 2]>,
    replacement: Replacement,
}

pub type Allowed = (u8, SpeedSet);

#[derive(Clone, Copy, Debug)]
pub struct EndInput<'a> {
    pub port: &'a PortTracker,
    pub role: Option<Role>,
    /// The node is gone, or does not respond.
    pub away: bool,
    pub disabled: bool,
    /// It is not expected to count: an aggregation node.
    pub uncounted: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct LinkInput<'a> {
    pub ends: [EndInput<'a>; 2],
    pub at: Moment,
    pub rate: Option<LinkRate>,
    /// The highest width and speed that both ends support and enable.
    pub best: Option<LinkRate>,
    /// What each end supports and enables, if both report it.
    pub allowed: Option<[Allowed; 2]>,
    /// The rate of links between such devices, if that is more than its own.
    pub expected: Option<RateReference>,
    /// Its lanes are trained: if it is not up, it waits for its subnet manager.
    pub trained: bool,
    pub maintenance: bool,
    pub flap_days: FlapDayLimit,
    /// It is inside a switch: see [`ib_mad::node::PortRole`].
    pub internal: bool,
}

impl EndInput<'_> {
    /// Whether errors may be hidden. Of a device that does not count symbol errors, packets suffice.
    fn is_hidden(&self) -> bool {
        let counts = self.port.totals.total(Counter::SymbolErrors).is_some();
        let unknown = counts && self.port.level == BitErrorLevel::Unknown;
        self.away || self.port.missed >= MAX_MISSED || unknown
    }
}

impl LinkTracker {
    pub fn new(at: Moment) -> Self {
        LinkTracker { verdict: VerdictHysteresis::new(at), ..LinkTracker::default() }
    }

    /// Records how often both ends counted that it retrained without a link down. The same event counts at both,
    /// read at different moments: the end that counted more decides.
    pub fn update_recoveries(&mut self, totals: [Option<u32>; 2], at: Moment) {
        self.recent_recoveries.advance(at, PERIOD);
        let since = |(first, now): (&mut Option<u32>, Option<u32>)| {
            let now = now?;
            Some(now.wrapping_sub(*first.get_or_insert(now)))
        };
        let times = self.recoveries.iter_mut().zip(totals).filter_map(since).max().unwrap_or(0);
        let known = &mut self.history.outages.recoveries;
        self.recent_recoveries.current += times.saturating_sub(*known) as f32;
        *known = times.max(*known);
    }

    pub fn on_trained(&mut self) {
        let is_bad = self.verdict.verdict == Verdict::Bad;
        self.retrained |= is_bad;
        self.replugged |= is_bad && self.down_for >= REPLUGGED;
    }

    /// Records the modules at its ends. The suspicion was of the cable that was replaced: it ends with that.
    pub fn update_modules(&mut self, modules: [Option<&ReadAt<Module>>; 2], at: Moment) {
        let (up, since) = self.history.up();
        if up == Some(true) && self.replacement.update(modules, since) {
            self.history.forgive_until(since);
            self.verdict = VerdictHysteresis::new(at);
            (self.guilty, self.retrained, self.replugged) = ([false; 2], false, false);
            self.repair = None;
        }
    }

    /// When its cable or a transceiver was replaced, for as long as that is a reason.
    fn replaced(&self, at: Moment) -> Option<Moment> {
        self.replacement.at().filter(|replaced| at.since(*replaced) < REPLACED)
    }

    /// Records its highest rate, to detect a loss of lanes or of speed. The earlier rate no longer counts once a
    /// port enables other widths or speeds, nor after maintenance, in which a slower cable may have been
    /// plugged in on purpose.
    fn record_rate(&mut self, input: &LinkInput<'_>) {
        if input.maintenance {
            self.best_rate = None;
            return;
        }
        if input.allowed.is_some() && input.allowed != self.allowed {
            (self.best_rate, self.allowed) = (None, input.allowed);
        }
        let Some((rate, best)) = input.rate.zip(input.best) else { return };
        // Until it retrains it may have a rate that is no longer enabled.
        let is_allowed = rate.0 <= best.0 && rate.1 <= best.1;
        let is_more = self.best_rate.is_none_or(|before| bandwidth(rate) > bandwidth(before));
        if self.is_settled(input.at) && is_allowed && is_more {
            self.best_rate = Some(rate);
        }
    }

    /// Whether its rate is final: until [`TRAINING`] has passed it may still train.
    fn is_settled(&self, at: Moment) -> bool {
        let (up, since) = self.history.up();
        up == Some(true) && at.since(since) >= TRAINING
    }

    /// Updates the verdict, and returns the assessment.
    pub fn assess(
        &mut self,
        link: Link,
        input: &LinkInput<'_>,
        up: Option<bool>,
    ) -> LinkAssessment {
        let reasons = self.evaluate(input);
        let VerdictHysteresis { verdict, since, .. } = self.verdict;
        // It stays while the reasons are gone and the verdict is held.
        if verdict < Verdict::Watch || reasons.verdict() >= Verdict::Watch {
            self.repair = self.choose_repair(&reasons, input);
        }
        LinkAssessment {
            link,
            verdict,
            since,
            reasons,
            repair: self.repair,
            up,
            outages: self.history.outages,
            losses: self.history.losses.clone(),
            upstream: None,
            reference: self.reference(input),
            replaced: self.replaced(input.at),
            repeated_flaps: self.history.flap_days.repeated(input.flap_days, input.at),
        }
    }

    /// The rate that it should or could have, where that is more than it has.
    fn reference(&self, input: &LinkInput<'_>) -> Option<RateReference> {
        let rate = bandwidth(input.rate?);
        if !self.is_settled(input.at) {
            return None;
        }
        let is_more = |other: &LinkRate| bandwidth(*other) > rate;
        let past = self.best_rate.filter(is_more).map(RateReference::Past);
        let capability = input.best.filter(is_more).map(RateReference::Capability);
        past.or(input.expected).or(capability)
    }

    fn evaluate(&mut self, input: &LinkInput<'_>) -> Reasons {
        self.record_rate(input);
        let mut reasons = self.reasons(input);
        if input.internal {
            // It cannot be replaced, and the meaning of its counters is not documented.
            reasons = Reasons::default();
            reasons.add(Reason::Internal, Verdict::Unknown);
        } else if input.maintenance {
            // Errors and losses during maintenance are no evidence against the cable.
            reasons = reasons.capped(Verdict::Unknown);
            reasons.add(Reason::Maintenance, Verdict::Unknown);
        }
        let mut hidden = false;
        let counts = |end: &EndInput<'_>| !end.uncounted && !input.internal;
        for (guilty, end) in self.guilty.iter_mut().zip(&input.ends).filter(|(_, end)| counts(end))
        {
            let mut errors = Reasons::default();
            add_errors(end, &mut errors);
            *guilty |= errors.verdict() >= Verdict::Watch;
            hidden |= *guilty && end.is_hidden();
        }
        self.verdict.update(&reasons, hidden, input.at);
        if self.verdict.verdict < Verdict::Watch {
            self.guilty = [false; 2];
        }
        self.retrained &= self.verdict.verdict > Verdict::Unknown;
        self.replugged &= self.retrained;
        self.down_for = match self.history.up() {
            (Some(false), since) => input.at.since(since),
            _ => Duration::ZERO,
        };
        reasons
    }

    fn reasons(&self, input: &LinkInput<'_>) -> Reasons {
        let mut reasons = Reasons::default();
        if self.replaced(input.at).is_some() {
            reasons.add(Reason::Replaced, Verdict::Ok);
        }
        self.add_losses(input, &mut reasons);
        let up = self.history.up().0;
        if let Some((rate, reference)) = input.rate.zip(self.reference(input)) {
            add_rate(rate, reference, input.expected == Some(reference), &mut reasons);
        }
        for end in input.ends.iter().filter(|end| !end.uncounted) {
            add_errors(end, &mut reasons);
            let status = end.port.totals.status();
            if DECISIVE.iter().any(|&counter| status.saturated_now.contains(counter)) {
                reasons.add(Reason::CounterSaturated, Verdict::Unknown);
            }
            if FILLING.iter().any(|&counter| status.saturated_now.contains(counter)) {
                let may_exceed = end.port.may_exceed_pre_fec_limit();
                let weight = if may_exceed { Verdict::Unknown } else { Verdict::Ok };
                reasons.add(Reason::CounterSaturated, weight);
            }
            let is_unknown = end.port.level == BitErrorLevel::Unknown;
            // Without symbol errors the bit error ratio is unknown; the other counters only add evidence.
            let is_unreadable = is_unknown && status.impossible.contains(Counter::SymbolErrors);
            if DECISIVE.iter().any(|&counter| status.impossible.contains(counter)) {
                let weight = if is_unreadable { Verdict::Unknown } else { Verdict::Ok };
                reasons.add(Reason::ImpossibleValue, weight);
            }
            if end.away || end.port.missed >= MAX_MISSED {
                reasons.add(Reason::Unresponsive, Verdict::Unknown);
            } else if is_unknown && !is_unreadable && up == Some(true) {
                reasons.add(Reason::InsufficientData, Verdict::Unknown);
            }
        }
        reasons
    }

    /// Adds what its state and its losses are reasons for.
    fn add_losses(&self, input: &LinkInput<'_>, reasons: &mut Reasons) {
        let away = input.ends.iter().any(|end| end.away);
        let (up, since) = self.history.up();
        if input.ends.iter().any(|end| end.disabled) {
            reasons.add(Reason::Disabled, Verdict::Unknown);
        } else if up == Some(false) && !away {
            // Where the lanes are trained, the cable works.
            let is_bad = input.at.since(since) >= DOWN_FOR_GOOD && !input.trained;
            reasons.add(Reason::Down, if is_bad { Verdict::Bad } else { Verdict::Watch });
        } else if up.is_none() {
            reasons.add(Reason::Unresponsive, Verdict::Unknown);
        }
        let (flaps, by_node) = self.history.flaps_since(input.at, FLAPS.1);
        let reason = if by_node { Reason::NodeFlapping } else { Reason::Flapping };
        if flaps >= FLAPS.0 {
            reasons.add(reason, if by_node { Verdict::Watch } else { Verdict::Bad });
        } else if self.history.flaps_since(input.at, ONE_FLAP).0 > 0 {
            reasons.add(reason, Verdict::Watch);
        }
        if self.history.flap_days.repeated(input.flap_days, input.at).is_some() {
            reasons.add(Reason::RepeatedFlaps, Verdict::Watch);
        }
        if self.recent_recoveries.sum(|it| *it) >= RECOVERIES {
            reasons.add(Reason::Recoveries, Verdict::Watch);
        }
    }

    /// What to try first.
    fn choose_repair(&self, reasons: &Reasons, input: &LinkInput<'_>) -> Option<Repair> {
        let (reason, _) = reasons.worst()?;
        match reason {
            Reason::BitErrors
            | Reason::PreFec
            | Reason::ReceiveErrors
            | Reason::LinkIntegrity
            | Reason::Width
            | Reason::RxPower
                if reasons.verdict() >= Verdict::Watch =>
            {
                Some(self.repair_of_errors(input))
            }
            Reason::Down if input.trained => None,
            // Each flap retrains the link: that alone is no repair that was tried.
            Reason::Flapping | Reason::RepeatedFlaps => {
                Some(if self.replugged { Repair::SwapCable } else { Repair::Reseat })
            }
            Reason::Recoveries | Reason::Speed | Reason::Down => {
                Some(if self.retrained { Repair::SwapCable } else { Repair::Reseat })
            }
            Reason::ModuleTemperature => Some(Repair::CheckCooling),
            Reason::NodeFlapping => Some(Repair::CheckHost),
            _ if reasons.weight(Reason::UpstreamErrors).is_some() => Some(Repair::CheckUpstream),
            Reason::Congested | Reason::Victim => Some(Repair::None),
            _ => None,
        }
    }

    /// What to try first against errors (Zhuo et al., SIGCOMM 2017): a weak laser is replaced. Errors or too little
    /// light in both directions are caused by the cable, which they have in common; in one direction by dirt or a
    /// loose transceiver, and if that was not it, by a bad one.
    fn repair_of_errors(&self, input: &LinkInput<'_>) -> Repair {
        let ends = &input.ends;
        let has_errors = |nth: usize| {
            let is_raised = ends[nth].port.level >= BitErrorLevel::Raised;
            is_raised || self.guilty[nth] && ends[nth].is_hidden()
        };
        let is_dark = |nth: usize| ends[nth].port.reported.is_dark();
        let suffers = |nth: usize| has_errors(nth) || is_dark(nth);
        let is_weak = |nth: usize| suffers(nth) && ends[1 - nth].port.reported.is_weak();
        let is_part_of_cable = ends.iter().any(|end| end.port.reported.is_part_of_cable());
        let swap = if is_part_of_cable { Repair::SwapCable } else { Repair::SwapTransceiver };
        match (suffers(0) && suffers(1), self.retrained) {
            _ if is_weak(0) || is_weak(1) => swap,
            (true, _) => Repair::SwapCable,
            (false, true) => swap,
            (false, false) => Repair::Reseat,
        }
    }
}

/// Adds a rate below a reference. A lost lane is a fault of this link; a lower speed may be all that its cable
/// supports. The capability of both ends is only information, unless it is `expected`: devices that have a
/// lower rate by design report more.
fn add_rate(rate: LinkRate, reference: RateReference, expected: bool, reasons: &mut Reasons) {
    let (RateReference::Past(more) | RateReference::Peers(more) | RateReference::Capability(more)) =
        reference;
    if matches!(reference, RateReference::Capability(_)) && !expected {
        reasons.add(Reason::BelowCapability, Verdict::Ok);
        return;
    }
    if rate.0 < more.0 {
        reasons.add(Reason::Width, Verdict::Bad);
    }
    if rate.1 < more.1 {
        reasons.add(Reason::Speed, Verdict::Watch);
    }
}

/// Adds the errors that an end receives, and its part in a congestion.
fn add_errors(end: &EndInput<'_>, reasons: &mut Reasons) {
    let port = end.port;
    match port.level {
        BitErrorLevel::Over => reasons.add(Reason::BitErrors, Verdict::Bad),
        BitErrorLevel::Raised => reasons.add(Reason::BitErrors, Verdict::Watch),
        BitErrorLevel::Fine | BitErrorLevel::Unknown => {}
    }
    if port.exceeds_pre_fec_limit() {
        reasons.add(Reason::PreFec, Verdict::Watch);
    }
    if port.exceeds_packet_error_limit() {
        // Errors that follow the load are losses of a receiver without free buffers.
        let weight =
            if port.load_correlation.errors_follow_load() { Verdict::Ok } else { Verdict::Watch };
        reasons.add(Reason::ReceiveErrors, weight);
    }
    if port.recent.sum(|it| it.link_integrity) >= INTEGRITY {
        reasons.add(Reason::LinkIntegrity, Verdict::Watch);
    }
    if port.reported.is_hot() {
        reasons.add(Reason::ModuleTemperature, Verdict::Watch);
    }
    if port.reported.is_dark() {
        reasons.add(Reason::RxPower, Verdict::Watch);
    }
    if port.has_marked() {
        reasons.add(Reason::UpstreamErrors, Verdict::Ok);
    }
    match end.role {
        Some(Role::Root(_)) => reasons.add(Reason::Congested, Verdict::Ok),
        Some(Role::Victim { .. }) => reasons.add(Reason::Victim, Verdict::Ok),
        None => {}
    }
}
