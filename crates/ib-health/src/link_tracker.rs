//! What is remembered of a link from sweep to sweep.

use std::time::Duration;

use ib_fabric::hardware::ReadAt;
use ib_fabric::topology::Link;
use ib_mad::Moment;
use ib_mad::rate::LinkRate;
use ib_mad::register::Module;

use super::assessment::LinkAssessment;
use super::judge::{Allowed, Case, EndInput, LinkInput, add_errors};
use super::link_history::LinkHistory;
use super::peers::{RateReference, bandwidth};
use super::port::PERIOD;
use super::replacement::Replacement;
use super::verdict::{Reason, Reasons, Repair, Verdict, VerdictHysteresis};
use super::window::Recent;

/// A technician takes at least this long to unplug a cable and plug it in again. Most flaps are shorter.
const REPLUGGED: Duration = Duration::from_secs(5);

/// For this long a replacement is shown: until somebody asks the next day.
const REPLACED: Duration = Duration::from_secs(24 * 3600);

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
    /// Since when its ends report different rates.
    differs_since: Option<Moment>,
    replacement: Replacement,
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
        let Some(rate) = input.rate.filter(|_| input.allowed.is_some()) else { return };
        // Until it retrains it may have a rate that is no longer enabled.
        let is_allowed = input.best.is_none_or(|best| rate.0 <= best.0 && rate.1 <= best.1);
        let is_more = self.best_rate.is_none_or(|before| bandwidth(rate) > bandwidth(before));
        if self.is_settled(input) && is_allowed && is_more {
            self.best_rate = Some(rate);
        }
    }

    /// Whether its rate is final, or it may still train.
    pub fn is_settled(&self, input: &LinkInput<'_>) -> bool {
        let (up, since) = self.history.up();
        up == Some(true) && input.at.since(since) >= input.training
    }

    /// Records whether its ends report different rates. They are read at different moments: it may train in between.
    fn record_difference(&mut self, input: &LinkInput<'_>) {
        let differs = input.trained && input.other_rate.is_some();
        self.differs_since = differs.then(|| self.differs_since.unwrap_or(input.at));
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
            self.repair = self.case(input).repair(&reasons);
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
            planes: Box::default(),
        }
    }

    /// The rate that it should or could have, where that is more than it has.
    fn reference(&self, input: &LinkInput<'_>) -> Option<RateReference> {
        let rate = bandwidth(input.rate?);
        if !self.is_settled(input) {
            return None;
        }
        let is_more = |other: &LinkRate| bandwidth(*other) > rate;
        let past = self.best_rate.filter(is_more).map(RateReference::Past);
        let capability = input.best.filter(is_more).map(RateReference::Capability);
        let usual = past.or(input.expected);
        let differs = self.differs_since.is_some_and(|it| input.at.since(it) >= input.training);
        // The contradiction is named unless there are more lanes that the other end does not have either.
        let contradiction = input
            .other_rate
            .filter(|other| differs && usual.is_none_or(|usual| usual.rate().0 <= other.0));
        contradiction.map(RateReference::OtherEnd).or(usual).or(capability)
    }

    fn case<'a>(&'a self, input: &'a LinkInput<'a>) -> Case<'a> {
        Case {
            input,
            history: &self.history,
            recoveries: self.recent_recoveries.sum(|it| *it),
            is_replaced: self.replaced(input.at).is_some(),
            reference: self.reference(input),
            guilty: self.guilty,
            retrained: self.retrained,
            replugged: self.replugged,
        }
    }

    fn evaluate(&mut self, input: &LinkInput<'_>) -> Reasons {
        self.record_rate(input);
        self.record_difference(input);
        let case = self.case(input);
        let mut reasons = match input.not_judged {
            Some(why) => case.unjudged_reasons(why),
            None => case.reasons(),
        };
        if input.maintenance && input.not_judged.is_none() {
            // Errors and losses during maintenance are no evidence against the cable.
            reasons = reasons.capped(Verdict::Unknown);
            reasons.add(Reason::Maintenance, Verdict::Unknown);
        }
        let mut hidden = false;
        let counts = |end: &EndInput<'_>| !end.uncounted && input.not_judged.is_none();
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
}
