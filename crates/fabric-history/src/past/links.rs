//! The assessments of the links of a past sweep.

use std::collections::HashMap;
use std::sync::Arc;

use super::events::{LastEvents, LinkEvents};
use super::fabric::PastTopology;
use super::sweep::Sweep;
use crate::file::record_kind::{MainReason, State};
use crate::file::timeline::Timeline;
use ib_fabric::topology::Link;
use ib_health::{Assessment, LinkAssessment, PlaneAssessment, Reason, RecordedEvidence, Verdict};
use ib_mad::rate::LinkRate;

/// Adds the links, and the nodes that are down or in maintenance.
pub(super) fn assess(
    past: &PastTopology,
    timeline: &Timeline,
    sweep: Sweep,
    events: &LastEvents,
    assessment: &mut Assessment,
) {
    let fabric = &past.fabric;
    let links: HashMap<[u32; 2], i64> =
        timeline.cables.iter().map(|cable| (cable.ends, cable.link)).collect();
    let mut evidence = RecordedEvidence::default();
    let none = LinkEvents::default();
    for link in fabric.whole_links() {
        let ids = link.ports().map(|port| past.ports[port]);
        let id = match ids {
            [Some(low), Some(high)] => links.get(&[low, high]).or_else(|| links.get(&[high, low])),
            _ => None,
        };
        let events = id.and_then(|id| events.links.get(id)).unwrap_or(&none);
        let builder = LinkBuilder { past, timeline, sweep, events };
        let mut found = builder.build(link, &mut evidence);
        if let Some(whole) = fabric.aggregated_link(link.low) {
            let plane = |plane: &ib_fabric::aggregated_links::PlaneLink| {
                let id = fabric.link_id(plane.link.low)?;
                let state = builder.state(plane.link);
                let rate: Option<LinkRate> = state.runs();
                let link = builder.blank(plane.link, state);
                Some(PlaneAssessment { plane: plane.plane, id, link, rate })
            };
            found.planes = whole.planes.iter().filter_map(plane).collect();
        }
        assessment.links.push(found);
    }
    assessment.recorded = Some(Arc::new(evidence));
    for (&id, &node) in &past.nodes {
        let state = timeline.node(id, sweep.began);
        if state.in_maintenance() {
            assessment.in_maintenance.insert(node);
        }
        if state.up() == Some(false)
            && let Some(since) = events.nodes_down.get(&id)
        {
            assessment.nodes_down.insert(node, sweep.moment(*since));
        }
    }
}

/// The worst verdict that a reason alone causes: a verdict that is held for some minutes may be worse.
fn heaviest(reason: Reason) -> Verdict {
    use Reason::{
        BelowCapability, Congested, CounterSaturated, Disabled, ImpossibleValue, InsufficientData,
        Internal, Maintenance, NvLink, Replaced, Unresponsive, UpstreamErrors, Victim,
    };
    match reason {
        UpstreamErrors | Congested | Victim | BelowCapability | Replaced => Verdict::Ok,
        CounterSaturated | ImpossibleValue | InsufficientData | Unresponsive | Disabled
        | Internal | NvLink | Maintenance => Verdict::Unknown,
        _ => Verdict::Bad,
    }
}

struct LinkBuilder<'a> {
    past: &'a PastTopology,
    timeline: &'a Timeline,
    sweep: Sweep,
    events: &'a LinkEvents,
}

impl LinkBuilder<'_> {
    /// The state of a link: both ends have its verdict.
    fn state(&self, link: Link) -> State {
        let state = |port| self.past.ports[port].map(|id| self.timeline.port(id, self.sweep.began));
        let [low, high] = link.ports().map(|port| state(port).unwrap_or_default());
        if low.is_judged() { low } else { high }
    }

    /// A link of which only its state is known.
    fn blank(&self, link: Link, state: State) -> LinkAssessment {
        LinkAssessment {
            verdict: state.verdict(),
            up: state.up(),
            outages: self.events.outages,
            // `since` is before 1970 then: not known.
            ..LinkAssessment::unknown(link)
        }
    }

    fn build(&self, link: Link, evidence: &mut RecordedEvidence) -> LinkAssessment {
        let state = self.state(link);
        let mut found = self.blank(link, state);
        found.outages.last_change = self.events.last_change.map(|at| self.sweep.moment(at));
        // An event of another verdict is not of this one: the file may lack the latest.
        let recorded = self.events.verdict.as_ref().filter(|it| it.verdict == found.verdict);
        if let Some(recorded) = recorded {
            if let Some(since) = self.events.since {
                found.since = self.sweep.moment(since);
            }
            // Another repair is recorded at once, another reason ten minutes later at most.
            found.repair = recorded.repair;
            // A verdict that is held for some minutes has other reasons than at first, or none.
            let is_of_it = |reason| recorded.reasons.iter().any(|(it, ..)| *it == reason);
            let is_current = match state.reason() {
                MainReason::NotRecorded => true,
                MainReason::None => false,
                MainReason::Some(main) => is_of_it(main),
            };
            for (reason, weight, text) in recorded.reasons.iter().filter(|_| is_current) {
                found.reasons.add(*reason, *weight);
                evidence.insert(link.low, *reason, text.clone());
            }
        }
        if let MainReason::Some(main) = state.reason()
            && found.reasons.weight(main).is_none()
        {
            found.reasons.add(main, heaviest(main).min(found.verdict));
        }
        found
    }
}
