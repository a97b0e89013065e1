//! The assessment of a link of several planes, which combines those of its planes: one cable has one verdict.

use std::sync::Arc;

use ib_fabric::aggregated_links::AggregatedLink;
use ib_fabric::topology::{Link, LinkId};
use ib_mad::Moment;
use ib_mad::rate::LinkRate;

use super::assessment::{LinkAssessment, PlaneAssessment};
use super::outage::{Loss, Outages};
use super::verdict::{Reason, Reasons, Repair, Verdict, VerdictHysteresis};

/// What is remembered of a link of several planes from sweep to sweep. The verdict of a plane is held by the plane;
/// here are the reasons that no plane has by itself.
#[derive(Clone, Debug)]
pub struct AggregatedLinkTracker {
    own: VerdictHysteresis,
    /// The verdict, and since when the link has it.
    verdict: Verdict,
    since: Moment,
    /// The number of the latest loss of each plane that is counted here.
    counted: Vec<(LinkId, u32)>,
    /// A loss of several planes at once counts once.
    outages: Outages,
    losses: Option<Arc<[Loss]>>,
}

impl AggregatedLinkTracker {
    /// One of a link with these planes. Losses of planes that were links by themselves before were counted there.
    pub fn new(planes: &[PlaneAssessment], at: Moment) -> Self {
        let latest = |plane: &PlaneAssessment| {
            Some((plane.id, plane.link.losses.as_deref()?.last()?.number))
        };
        AggregatedLinkTracker {
            own: VerdictHysteresis::new(at),
            verdict: Verdict::default(),
            since: at,
            counted: planes.iter().filter_map(latest).collect(),
            outages: Outages::default(),
            losses: None,
        }
    }

    /// Combines the assessments of the planes.
    pub fn assess(
        &mut self,
        link: &AggregatedLink,
        planes: Vec<PlaneAssessment>,
        at: Moment,
    ) -> LinkAssessment {
        let mut own = own_reasons(link, &planes);
        let is_maintained =
            |it: &PlaneAssessment| it.link.reasons.weight(Reason::Maintenance).is_some();
        if planes.iter().any(is_maintained) {
            own = own.capped(Verdict::Unknown);
        }
        self.own.update(&own, false, at);
        let worst = planes.iter().rev().max_by_key(|plane| plane.link.verdict);
        let of_planes = worst.map_or(Verdict::Unknown, |plane| plane.link.verdict);
        let verdict = of_planes.max(self.own.verdict);
        if verdict != self.verdict {
            (self.verdict, self.since) = (verdict, at);
        }
        let repair = if own.weight(Reason::PlanesSwapped) > Some(of_planes) {
            Some(Repair::CheckCabling)
        } else {
            worst.and_then(|plane| plane.link.repair)
        };
        self.add_losses(&planes);
        let changes = planes.iter().filter_map(|plane| plane.link.outages.last_change);
        let recoveries = planes.iter().map(|plane| plane.link.outages.recoveries);
        let outages = Outages {
            last_change: changes.max(),
            recoveries: recoveries.fold(0, u32::saturating_add),
            ..self.outages
        };
        let all = || planes.iter().map(|plane| &plane.link);
        LinkAssessment {
            link: link.lead(),
            verdict,
            since: self.since,
            reasons: combined(&planes, own),
            repair,
            up: up(all().map(|plane| plane.up)),
            outages,
            losses: self.losses.clone(),
            upstream: all().find_map(|plane| plane.upstream),
            reference: all().find_map(|plane| plane.reference),
            replaced: all().filter_map(|plane| plane.replaced).max(),
            repeated_flaps: all().filter_map(|plane| plane.repeated_flaps).max_by_key(|it| it.days),
            planes: planes.into(),
        }
    }

    /// Adds the new losses of planes. Those that overlap are one loss of the link.
    fn add_losses(&mut self, planes: &[PlaneAssessment]) {
        for PlaneAssessment { id, link, .. } in planes {
            let Some(latest) = link.losses.as_deref().and_then(<[Loss]>::last) else { continue };
            let place = self.counted.iter().position(|(known, _)| known == id);
            let place = place.unwrap_or_else(|| {
                self.counted.push((*id, 0));
                self.counted.len() - 1
            });
            // The losses of a link that was forgotten meanwhile are counted from 1 again.
            let known = self.counted[place].1;
            let known = if latest.number < known { 0 } else { known };
            self.counted[place].1 = latest.number;
            let losses = link.losses.iter().flat_map(|losses| losses.iter());
            for loss in losses.filter(|loss| loss.number > known) {
                self.add_loss(loss);
            }
        }
    }

    fn add_loss(&mut self, loss: &Loss) {
        let known = self.losses.as_deref().unwrap_or_default();
        if known.iter().any(|other| is_same_loss(other, loss)) {
            return;
        }
        let all = &mut self.outages;
        match loss.expected {
            Some(cause) => all.add_expected(cause, loss.down),
            None => all.add_flaps(loss.times, loss.down, loss.until.is_some()),
        }
        Loss { flaps: all.flaps, ..*loss }.push_to(&mut self.losses);
    }
}

/// Whether two planes went down together, as far as sweeps show.
fn is_same_loss(one: &Loss, other: &Loss) -> bool {
    let begin = |loss: &Loss| loss.at.before(loss.down.most.saturating_sub(loss.down.least));
    let end = |loss: &Loss| loss.until.unwrap_or(loss.at);
    one.expected == other.expected && begin(one) <= end(other) && begin(other) <= end(one)
}

/// Whether it carries traffic: a plane suffices.
fn up(planes: impl Iterator<Item = Option<bool>> + Clone) -> Option<bool> {
    let is_up = planes.clone().any(|up| up == Some(true));
    let is_down = || planes.into_iter().all(|up| up == Some(false));
    if is_up { Some(true) } else { is_down().then_some(false) }
}

/// The reasons that no plane has by itself.
fn own_reasons(link: &AggregatedLink, planes: &[PlaneAssessment]) -> Reasons {
    let mut reasons = Reasons::default();
    let is_up = planes.iter().any(|plane| plane.link.up == Some(true));
    if link.missing() > 0 && is_up {
        reasons.add(Reason::PlanesDown, Verdict::Watch);
    }
    if link.is_swapped() {
        reasons.add(Reason::PlanesSwapped, Verdict::Watch);
    }
    let mut rates = planes.iter().filter_map(|plane| plane.rate);
    let is_other = |first: LinkRate| rates.any(|rate| rate != first);
    if planes.iter().find_map(|plane| plane.rate).is_some_and(is_other) {
        reasons.add(Reason::PlanesUnequal, Verdict::Watch);
    }
    reasons
}

/// The reasons of all planes and of the whole. Of a link that carries traffic, single planes are down.
fn combined(planes: &[PlaneAssessment], own: Reasons) -> Reasons {
    let is_up = planes.iter().any(|plane| plane.link.up == Some(true));
    let mut reasons = own;
    for (reason, weight) in planes.iter().flat_map(|plane| plane.link.reasons.iter()) {
        let is_partial = reason == Reason::Down && is_up;
        reasons.add(if is_partial { Reason::PlanesDown } else { reason }, weight);
    }
    reasons
}

/// The links of several planes of a fabric while a sweep is evaluated: the planes that were assessed, and where the
/// whole link is among the assessments.
pub struct Gathered {
    links: Vec<(Option<usize>, Vec<PlaneAssessment>)>,
}

impl Gathered {
    pub fn new(count: usize) -> Self {
        Gathered { links: vec![(None, Vec::new()); count] }
    }

    /// Adds a plane of the link of this number; `stands_at` if it is the one in whose place the whole link stands.
    pub fn add(&mut self, number: usize, plane: PlaneAssessment, stands_at: Option<usize>) {
        if let Some((known, planes)) = self.links.get_mut(number) {
            planes.push(plane);
            *known = stands_at.or(*known);
        }
    }

    /// The whole links with their planes: the number of each, and its place.
    pub fn into_links(self) -> impl Iterator<Item = (usize, usize, Vec<PlaneAssessment>)> {
        let links = self.links.into_iter().enumerate();
        links.filter_map(|(number, (place, mut planes))| {
            planes.sort_by_key(|plane| (plane.plane, plane.link.link.low, plane.link.link.high));
            Some((number, place?, planes))
        })
    }
}

/// A link among assessments in the order of their links.
pub fn place_of(links: &[LinkAssessment], link: Link) -> Option<usize> {
    links.binary_search_by_key(&(link.low, link.high), |it| (it.link.low, it.link.high)).ok()
}
