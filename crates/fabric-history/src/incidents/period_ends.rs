//! What the states of a fabric at both ends of a period add to its events: what was down or bad before the first event,
//! and what is over although no event says so.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use crate::incidents::describe::describe;
use crate::incidents::group::{Group, GroupKind, LinkFacts, NodeOutage};
use crate::incidents::grouper::Grouper;
use crate::incidents::incident::Incident;
use crate::model::{FabricState, Window};
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_mad::Guid;

/// The incidents that lasted in a window, given the states of the fabric at its beginning and at its end.
pub fn finish(
    mut grouper: Grouper,
    fabric: &str,
    window: Window,
    before: Option<&FabricState>,
    after: Option<&FabricState>,
) -> Vec<Incident> {
    if let Some(before) = before {
        grouper.add_earlier(before, window.from);
    }
    if let Some(after) = after {
        grouper.end_by(after, window.to);
    }
    grouper.merge_cages();
    let is_in = |group: &&Group| {
        let has_any = !group.events.is_empty() || group.began_earlier;
        has_any && group.ended().is_none_or(|end| end >= window.from)
    };
    let groups = grouper.groups.iter().flatten().filter(is_in);
    groups.map(|group| describe(group, &grouper.places, fabric, window)).collect()
}

impl Grouper {
    /// Nodes that were down and links that were bad at the beginning, without an event that says since when.
    fn add_earlier(&mut self, before: &FabricState, from: SystemTime) {
        let is_known = |guid: Guid| {
            let group = self.of_node.get(&guid).and_then(|index| self.group(*index));
            group.is_some_and(|group| group.nodes.contains_key(&guid))
        };
        let down = before.nodes.iter().filter(|node| !node.up).map(|node| node.guid);
        let (switches, hcas): (Vec<Guid>, Vec<Guid>) =
            down.filter(|guid| !is_known(*guid)).partition(|guid| self.places.is_switch(*guid));
        // HCAs behind a switch that is down are part of its outage.
        let absent: HashSet<Guid> = switches.iter().copied().collect();
        let (behind, alone): (Vec<Guid>, Vec<Guid>) = (hcas.into_iter())
            .partition(|guid| self.places.is_behind(*guid, |of| absent.contains(&of)));
        for cable in before.cables.iter().filter(|cable| cable.verdict >= Verdict::Watch) {
            let group = self.of_link.get(&cable.link()).and_then(|index| self.group(*index));
            if !group.is_some_and(Group::has_verdict) {
                let mut group = begun_earlier(GroupKind::Link, from);
                group.links.insert(cable.link(), LinkFacts::judged_before(cable));
                self.groups.push(Some(group));
            }
        }
        let with_switches = (!switches.is_empty()).then(|| [switches, behind].concat());
        for nodes in with_switches.into_iter().chain(alone.into_iter().map(|guid| vec![guid])) {
            let mut group = begun_earlier(GroupKind::Outage, from);
            group.nodes.extend(nodes.into_iter().map(|guid| (guid, NodeOutage::default())));
            self.groups.push(Some(group));
        }
    }

    /// Ends what lasts although it is over: it ended while the exporter did not run, or is gone from the fabric.
    fn end_by(&mut self, after: &FabricState, to: SystemTime) {
        let up: HashMap<Guid, bool> = after.nodes.iter().map(|node| (node.guid, node.up)).collect();
        let cables: HashMap<LinkId, (Option<bool>, Verdict)> =
            after.cables.iter().map(|cable| (cable.link(), (cable.up, cable.verdict))).collect();
        for group in self.groups.iter_mut().flatten().filter(|group| group.ended().is_none()) {
            let over = group.interrupted.unwrap_or(to).max(group.last);
            let is_over = match group.kind {
                GroupKind::Outage => {
                    for (guid, outage) in &mut group.nodes {
                        // A node that the fabric does not contain any more is forgotten, or was removed.
                        if outage.up.is_none() && up.get(guid) != Some(&false) {
                            outage.up = Some(over);
                        }
                    }
                    false
                }
                GroupKind::Link => group.links.keys().all(|link| {
                    cables
                        .get(link)
                        .is_none_or(|(up, verdict)| *up == Some(true) && *verdict < Verdict::Watch)
                }),
                GroupKind::Congestion | GroupKind::Monitoring => group.interrupted.is_some(),
                GroupKind::Recabling
                | GroupKind::Clear
                | GroupKind::Saturation
                | GroupKind::Master
                | GroupKind::Growth => false,
            };
            if is_over {
                group.found_over = Some(over);
            }
        }
    }
}

fn begun_earlier(kind: GroupKind, from: SystemTime) -> Group {
    let mut group = Group::new(kind, from);
    group.began_earlier = true;
    group
}
