//! The judgment of a link: the reasons for its verdict, and the repair to try first.

use std::time::Duration;

use ib_mad::rate::{LinkRate, SpeedSet};
use ib_mad::{Counter, Moment};

use super::bit_errors::BitErrorLevel;
use super::congestion::Role;
use super::flap_limits::{FLAPS, FlapDayLimit, ONE_FLAP};
use super::link_history::LinkHistory;
use super::peers::RateReference;
use super::port::PortTracker;
use super::verdict::{Reason, Reasons, Repair, Verdict};

/// After this time a link that is down outside maintenance is bad: it does not come up by itself.
const DOWN_FOR_GOOD: Duration = Duration::from_secs(5 * 60);

/// After this time a broken ring is reported: a node of a switch reboots within it.
const RING_BROKEN: Duration = Duration::from_secs(15 * 60);

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

/// The widths and speeds that a port supports and enables.
pub type Allowed = (u8, SpeedSet);

/// What a sweep knows of an end of a link.
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

/// What a sweep knows of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkInput<'a> {
    pub ends: [EndInput<'a>; 2],
    pub at: Moment,
    pub rate: Option<LinkRate>,
    /// The rate that the other end reports, where the ends contradict each other.
    pub other_rate: Option<LinkRate>,
    /// The highest width and speed that both ends support and enable.
    pub best: Option<LinkRate>,
    /// What each end supports and enables, if both report it.
    pub allowed: Option<[Allowed; 2]>,
    /// The rate of links between such devices, if that is more than its own.
    pub expected: Option<RateReference>,
    /// For how long it must be up before its rate is final.
    pub training: Duration,
    /// Its lanes are trained: if it is not up, it waits for its subnet manager.
    pub trained: bool,
    pub maintenance: bool,
    pub flap_days: FlapDayLimit,
    /// Why it is not judged, if it is not: see [`ib_mad::node::PortRole`] and [`ib_fabric::fabric_kind`].
    pub not_judged: Option<Reason>,
    /// It is a part of the ring between the nodes of a switch.
    pub ring: Option<Ring>,
}

/// What is known of the ring that an internal link is a part of.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    /// Since when a link of it is missing, if that is reported at this link.
    pub gap_since: Option<Moment>,
}

impl EndInput<'_> {
    /// Whether errors may be hidden. Of a device that does not count symbol errors, packets suffice.
    pub fn is_hidden(&self) -> bool {
        let counts = self.port.totals.total(Counter::SymbolErrors).is_some();
        let unknown = counts && self.port.level == BitErrorLevel::Unknown;
        self.away || self.port.missed >= MAX_MISSED || unknown
    }
}

/// A link in one sweep, and what is remembered of it.
pub struct Case<'a> {
    pub input: &'a LinkInput<'a>,
    pub history: &'a LinkHistory,
    /// How often it retrained without a link down in the last 12 to 24 minutes.
    pub recoveries: f32,
    pub is_replaced: bool,
    /// The rate that it should or could have, where that is more than it has.
    pub reference: Option<RateReference>,
    /// The ends whose errors degraded it.
    pub guilty: [bool; 2],
    /// It retrained since it was found bad, and that did not help yet.
    pub retrained: bool,
    /// It was down for long enough meanwhile that somebody may have reseated it.
    pub replugged: bool,
}

impl Case<'_> {
    /// The reasons for its verdict, each with its weight.
    pub fn reasons(&self) -> Reasons {
        let input = self.input;
        let mut reasons = Reasons::default();
        if self.is_replaced {
            reasons.add(Reason::Replaced, Verdict::Ok);
        }
        self.add_losses(&mut reasons);
        let up = self.history.up().0;
        if let Some((rate, reference)) = input.rate.zip(self.reference) {
            add_rate(rate, reference, input.expected == Some(reference), &mut reasons);
        }
        for end in input.ends.iter().filter(|end| !end.uncounted) {
            add_errors(end, &mut reasons);
            let status = end.port.totals.status();
            for counter in DECISIVE.into_iter().filter(|it| status.saturated_now.contains(*it)) {
                // Where another counter has what it counts, nothing is hidden.
                let hides =
                    counter != Counter::SymbolErrors || end.port.has_no_count_of_lost_data();
                let weight = if hides { Verdict::Unknown } else { Verdict::Ok };
                reasons.add(Reason::CounterSaturated, weight);
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

    /// The reasons of a link that is not judged: it cannot be replaced, or the meaning of its counters is not
    /// documented. Of the ring inside a multi-plane switch it is known that its nodes reach each other by it.
    pub fn unjudged_reasons(&self, why: Reason) -> Reasons {
        let input = self.input;
        let mut reasons = Reasons::default();
        reasons.add(why, Verdict::Unknown);
        let Some(ring) = input.ring else { return reasons };
        let (up, since) = self.history.up();
        let is_expected =
            input.maintenance || input.ends.iter().any(|end| end.away || end.disabled);
        // Where the lanes are trained, the link waits for its subnet manager.
        let down_since = (up == Some(false) && !input.trained).then_some(since);
        let broken = down_since.into_iter().chain(ring.gap_since).min().filter(|_| !is_expected);
        if broken.is_some_and(|since| input.at.since(since) >= RING_BROKEN) {
            reasons.add(Reason::RingBroken, Verdict::Watch);
        }
        reasons
    }

    /// Adds what its state and its losses are reasons for.
    fn add_losses(&self, reasons: &mut Reasons) {
        let input = self.input;
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
        if self.recoveries >= RECOVERIES {
            reasons.add(Reason::Recoveries, Verdict::Watch);
        }
    }

    /// What to try first.
    pub fn repair(&self, reasons: &Reasons) -> Option<Repair> {
        let (reason, _) = reasons.worst()?;
        let upstream = reasons.weight(Reason::UpstreamErrors).map(|_| Repair::CheckUpstream);
        match reason {
            Reason::BitErrors
            | Reason::PreFec
            | Reason::ReceiveErrors
            | Reason::LinkIntegrity
            | Reason::Width
            | Reason::RxPower => {
                let is_degraded = reasons.verdict() >= Verdict::Watch;
                if is_degraded { Some(self.repair_of_errors()) } else { upstream }
            }
            Reason::Down if self.input.trained => None,
            // Each flap retrains the link: that alone is no repair that was tried.
            Reason::Flapping | Reason::RepeatedFlaps => {
                Some(if self.replugged { Repair::SwapCable } else { Repair::Reseat })
            }
            Reason::Recoveries | Reason::Speed | Reason::Down => {
                Some(if self.retrained { Repair::SwapCable } else { Repair::Reseat })
            }
            Reason::ModuleTemperature => Some(Repair::CheckCooling),
            Reason::PlanesSwapped => Some(Repair::CheckCabling),
            Reason::NodeFlapping => Some(Repair::CheckHost),
            Reason::Congested | Reason::Victim => upstream.or(Some(Repair::None)),
            // The planes have reasons of their own; a ring has no cable.
            Reason::PlanesDown
            | Reason::PlanesUnequal
            | Reason::RingBroken
            | Reason::UpstreamErrors
            | Reason::BelowCapability
            | Reason::Replaced
            | Reason::CounterSaturated
            | Reason::ImpossibleValue
            | Reason::InsufficientData
            | Reason::Unresponsive
            | Reason::Disabled
            | Reason::Internal
            | Reason::NvLink
            | Reason::Maintenance => upstream,
        }
    }

    /// What to try first against errors (Zhuo et al., SIGCOMM 2017): a weak laser is replaced. Errors or too little
    /// light in both directions are caused by the cable, which they have in common; in one direction by dirt or a
    /// loose transceiver, and if that was not it, by a bad one.
    fn repair_of_errors(&self) -> Repair {
        let ends = &self.input.ends;
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
    let more = reference.rate();
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
pub fn add_errors(end: &EndInput<'_>, reasons: &mut Reasons) {
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
