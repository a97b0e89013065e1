//! What changed between two moments: `/api/v1/changes`, and the page and the map of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use display_text::natural_key;
use fabric_history::EventKind;
use fabric_history::model::{Event, time};
use ib_fabric::NodeIndex;
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_mad::{Guid, PortKey};

use crate::filter::selected;
use crate::link_row::{LinkRow, error_rows};
use crate::live::LiveState;
use crate::model::{Changes, FabricChanges, Label, LinkChange, NodeChange};
use crate::view::FabricView;

/// The path of the comparison.
pub const CHANGES: &str = "/api/v1/changes";

/// The kinds of events that say more of a cable than the states at the moments do.
pub const CABLE_EVENTS: [EventKind; 2] = [EventKind::CableMoved, EventKind::CableChanged];

display_text::labeled_enum! {
    /// How a link changed, the most important first.
    #[derive(PartialOrd, Ord)]
    pub enum LinkChangeKind {
        Removed, "removed", "The link is gone.";
        Down, "down", "The link went down.";
        Worse, "worse", "The verdict is worse.";
        Moved, "moved", "A port has another link than before.";
        Rate, "rate", "The width or speed is another one.";
        Added, "added", "The link is new.";
        Up, "up", "The link came up.";
        Better, "better", "The verdict is better.";
        Errors, "errors", "Error counters increased.";
    }
}

display_text::labeled_enum! {
    /// How a node changed, the most important first.
    #[derive(PartialOrd, Ord)]
    pub enum NodeChangeKind {
        Removed, "removed", "The node is gone.";
        Down, "down", "The node stopped responding.";
        Added, "added", "The node is new.";
        Up, "up", "The node responds again.";
        Renamed, "renamed", "The node has another name.";
    }
}

/// The events of [these kinds](CABLE_EVENTS) between two moments.
#[derive(Clone, Debug, Default)]
pub struct CableEvents {
    /// The events, the latest first.
    pub events: Vec<Event>,
    /// There were more of them, earlier ones.
    pub is_more: bool,
}

/// Compares two states, with the events of cables between them.
pub fn changes(
    before: &LiveState,
    after: &LiveState,
    fabric: Option<&str>,
    cables: &CableEvents,
) -> Changes {
    let mut names: Vec<&str> = Vec::new();
    for state in [after, before] {
        for observation in selected(&state.state.fabrics, fabric) {
            if !names.contains(&&*observation.fabric) {
                names.push(&observation.fabric);
            }
        }
    }
    let fabrics = names.into_iter().map(|name| {
        let views = [before, after].map(|state| {
            let observation = selected(&state.state.fabrics, Some(name)).next();
            observation.and_then(|it| FabricView::new(it))
        });
        match views {
            [Some(before), Some(after)] => {
                Comparison { before, after, events: &cables.events }.fabric()
            }
            views => FabricChanges {
                fabric: name.to_owned(),
                swept_at: views.map(|view| view.and_then(FabricView::swept_at)),
                ..FabricChanges::default()
            },
        }
    });
    let moment = |state: &LiveState| time::text(state.now());
    Changes {
        from: moment(before),
        from_first_sweep: false,
        to: moment(after),
        cables_complete: !cables.is_more,
        fabrics: fabrics.collect(),
    }
}

struct Comparison<'a> {
    before: FabricView<'a>,
    after: FabricView<'a>,
    events: &'a [Event],
}

impl<'a> Comparison<'a> {
    fn fabric(&self) -> FabricChanges {
        let views = [self.before, self.after];
        FabricChanges {
            fabric: self.after.name.to_owned(),
            known: true,
            swept_at: views.map(FabricView::swept_at),
            nodes_at: views.map(|view| view.snapshot.fabric.nodes.len()),
            links_at: views.map(|view| view.snapshot.fabric.whole_links().count()),
            nodes: self.nodes(),
            links: self.links(),
        }
    }

    fn nodes(&self) -> Vec<NodeChange> {
        let mut changed: Vec<(NodeChangeKind, NodeChange)> = Vec::new();
        let mut add = |kind: NodeChangeKind, view: FabricView<'_>, index, before: Option<&str>| {
            let node = view.snapshot.fabric.node(index);
            changed.push((
                kind,
                NodeChange {
                    guid: node.identity.guid.to_string(),
                    node: node.name.clone(),
                    node_type: node.identity.kind.label().into(),
                    change: kind.label().into(),
                    name_before: before.map(str::to_owned),
                },
            ));
        };
        let [old, new] = [self.before, self.after].map(|view| &*view.snapshot.fabric);
        for index in new.node_indexes() {
            let node = new.node(index);
            let Some(was) = old.node_by_guid(node.identity.guid) else {
                add(NodeChangeKind::Added, self.after, index, None);
                continue;
            };
            match (self.before.snapshot.is_up(was), self.after.snapshot.is_up(index)) {
                (true, false) => add(NodeChangeKind::Down, self.after, index, None),
                (false, true) => add(NodeChangeKind::Up, self.after, index, None),
                _ => {}
            }
            let name = &*old.node(was).name;
            if name != node.name {
                add(NodeChangeKind::Renamed, self.after, index, Some(name));
            }
        }
        let is_gone =
            |index: &NodeIndex| new.node_by_guid(old.node(*index).identity.guid).is_none();
        for index in old.node_indexes().filter(is_gone) {
            add(NodeChangeKind::Removed, self.before, index, None);
        }
        let key = |(kind, node): &(NodeChangeKind, NodeChange)| (*kind, node.node_type != "switch");
        changed.sort_by(|a, b| {
            let by_name = || natural_key(&a.1.node).cmp(&natural_key(&b.1.node));
            key(a).cmp(&key(b)).then_with(by_name)
        });
        changed.into_iter().map(|(_, node)| node).collect()
    }

    fn links(&self) -> Vec<LinkChange> {
        let by_id = |view: FabricView<'a>| -> HashMap<LinkId, LinkRow<'a>> {
            let id = |row: &LinkRow<'_>| view.snapshot.fabric.link_id(row.cable.low);
            view.links().filter_map(|row| Some((id(&row)?, row))).collect()
        };
        let [old, new] = [self.before, self.after].map(by_id);
        let mut old_of_port: HashMap<PortKey, &LinkRow<'a>> = HashMap::new();
        for (id, row) in &old {
            old_of_port.extend(id.ends().map(|end| (end, row)));
        }
        let ports_now: HashSet<PortKey> = new.keys().flat_map(|id| id.ends()).collect();
        let cables = self.cable_events();
        let mut changed = Vec::new();
        for (id, row) in &new {
            let was = old.get(id);
            let mut change = Changed::new(*id, [was, Some(row)]);
            if was.is_none() {
                // The port that had another cable says most; of two, the first.
                let before = id.ends().into_iter().find_map(|end| old_of_port.get(&end).copied());
                match before {
                    Some(before) => {
                        change.add(LinkChangeKind::Moved);
                        change.model.moved_from = Some(name(before));
                    }
                    None => change.add(LinkChangeKind::Added),
                }
            }
            change.compare();
            let texts = id.ends().into_iter().filter_map(|end| cables.get(&end)).flatten();
            for text in texts {
                // The events of both ends name the cable.
                if !change.model.cable.iter().any(|known| known == text) {
                    change.model.cable.push((*text).to_owned());
                }
            }
            changed.push(change);
        }
        for (id, row) in old.iter().filter(|(id, _)| !new.contains_key(id)) {
            // One whose cable was moved is told by the link that its port has now.
            if id.ends().iter().any(|end| ports_now.contains(end)) {
                continue;
            }
            let mut change = Changed::new(*id, [Some(row), None]);
            change.add(LinkChangeKind::Removed);
            changed.push(change);
        }
        changed.retain(|change| !change.kinds.is_empty() || !change.model.cable.is_empty());
        let errors = |change: &Changed<'_>| -> u128 {
            change.model.errors.values().map(|by| u128::from(*by)).sum()
        };
        changed.sort_by(|a, b| {
            let by_name = || natural_key(&a.model.name).cmp(&natural_key(&b.model.name));
            let by_errors = || errors(b).cmp(&errors(a)).then_with(by_name);
            a.rank().cmp(&b.rank()).then_with(by_errors)
        });
        changed.into_iter().map(Changed::finish).collect()
    }

    /// What was recorded of cables, by port.
    fn cable_events(&self) -> HashMap<PortKey, Vec<&str>> {
        let mut texts: HashMap<PortKey, Vec<&str>> = HashMap::new();
        for event in self.events.iter().filter(|event| event.fabric == self.after.name) {
            let is_of_cable =
                EventKind::from_label(&event.kind).is_some_and(|it| CABLE_EVENTS.contains(&it));
            if let Some(end) = event.port_key().filter(|_| is_of_cable) {
                texts.entry(end).or_default().push(&event.text);
            }
        }
        texts
    }
}

/// A link that may have changed.
struct Changed<'a> {
    rows: [Option<&'a LinkRow<'a>>; 2],
    kinds: Vec<LinkChangeKind>,
    model: LinkChange,
}

impl<'a> Changed<'a> {
    fn new(id: LinkId, rows: [Option<&'a LinkRow<'a>>; 2]) -> Self {
        let rate = |row: &LinkRow<'_>| {
            let rate = row.rate();
            Some(format!("{} {}", rate.width_label()?, rate.speed?.label()))
        };
        let model = LinkChange {
            link: id.to_string(),
            name: rows[1].or(rows[0]).map(name).unwrap_or_default(),
            verdicts: rows.map(|row| row.map(|row| Label::Borrowed(row.verdict().label()))),
            rates: rows.map(|row| row.and_then(rate)),
            ..LinkChange::default()
        };
        Changed { rows, kinds: Vec::new(), model }
    }

    fn add(&mut self, kind: LinkChangeKind) {
        self.kinds.push(kind);
    }

    /// Compares the link with itself at the first moment; a new one, with nothing.
    fn compare(&mut self) {
        let [was, Some(now)] = self.rows else { return };
        let verdict = |row: &LinkRow<'_>| row.verdict();
        let up = |row: &LinkRow<'_>| row.assessment.and_then(|link| link.up);
        match (was.map(verdict), verdict(now)) {
            // Unknown is neither better nor worse than ok.
            (Some(was), now) if now > was && now >= Verdict::Watch => {
                self.add(LinkChangeKind::Worse);
            }
            (Some(was), now) if now < was && was >= Verdict::Watch => {
                self.add(LinkChangeKind::Better);
            }
            (None, now) if now >= Verdict::Watch => self.add(LinkChangeKind::Worse),
            _ => {}
        }
        match (was.and_then(up), up(now)) {
            (Some(true), Some(false)) => self.add(LinkChangeKind::Down),
            (Some(false), Some(true)) => self.add(LinkChangeKind::Up),
            _ => {}
        }
        let [before, after] = &self.model.rates;
        if before.is_some() && after.is_some() && before != after {
            self.add(LinkChangeKind::Rate);
        }
        if let Some(was) = was {
            self.model.errors = errors(was, now);
            if !self.model.errors.is_empty() {
                self.add(LinkChangeKind::Errors);
            }
        }
    }

    /// The most important change; the worse verdict of two equal ones first.
    fn rank(&self) -> (usize, std::cmp::Reverse<Verdict>) {
        let kind = self.kinds.iter().min();
        let place = kind.map_or(usize::MAX, |kind| *kind as usize);
        let now = self.rows[1].map_or(Verdict::Ok, LinkRow::verdict);
        (place, std::cmp::Reverse(now))
    }

    fn finish(mut self) -> LinkChange {
        self.kinds.sort_unstable();
        self.model.changes = self.kinds.into_iter().map(|kind| kind.label().into()).collect();
        self.model
    }
}

fn name(row: &LinkRow<'_>) -> String {
    let fabric = &row.view.snapshot.fabric;
    row.ports().map(|port| fabric.port_label(port)).join(" – ")
}

/// By what the error counters of both ends increased. Totals do not fall: one that is lower was restarted.
fn errors(was: &LinkRow<'_>, now: &LinkRow<'_>) -> BTreeMap<Label, u64> {
    let mut sums = BTreeMap::new();
    for port in now.all_ports() {
        let Some(old) = was.view.snapshot.fabric.find(now.view.snapshot.fabric.port_key(port))
        else {
            continue;
        };
        let readings = (was.view.snapshot.reading(old), now.view.snapshot.reading(port));
        let (Some(before), Some(after)) = readings else { continue };
        for row in error_rows() {
            let (Some(a), Some(b)) = (before.get(row.counter), after.get(row.counter)) else {
                continue;
            };
            if let Some(by) = b.checked_sub(a).filter(|by| *by > 0) {
                let sum: &mut u64 = sums.entry(Label::Borrowed(row.metric)).or_default();
                *sum = sum.saturating_add(by);
            }
        }
    }
    sums
}

/// What a map shows of changes: the most important one of each link and node.
#[derive(Clone, Debug, Default)]
pub struct ChangeMap {
    /// By link.
    pub links: HashMap<LinkId, LinkChangeKind>,
    /// By node.
    pub nodes: HashMap<Guid, NodeChangeKind>,
}

impl ChangeMap {
    /// The changes of a fabric, for a map.
    pub fn of(changes: &FabricChanges) -> Self {
        let link = |link: &LinkChange| {
            let kind = LinkChangeKind::from_label(link.changes.first()?)?;
            Some((link.link.parse().ok()?, kind))
        };
        let node = |node: &NodeChange| {
            Some((node.guid.parse().ok()?, NodeChangeKind::from_label(&node.change)?))
        };
        ChangeMap {
            links: changes.links.iter().filter_map(link).collect(),
            // The most important one of a node is listed first.
            nodes: changes.nodes.iter().rev().filter_map(node).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use fabric_observation::Observation;
    use ib_fabric::Snapshot;
    use ib_fabric::testing::{end, fabric, found};
    use ib_health::testing::{count, fine, port};
    use ib_mad::moment::Anchor;
    use ib_mad::node::NodeKind;
    use ib_mad::{Counter, Moment, Reading};

    type End = (u64, u8);

    /// Switch 1 with hosts, by GUID, at its ports.
    fn swept(hosts: &[u64], cables: &[(End, End)]) -> Observation {
        let mut nodes = vec![found(1, NodeKind::Switch, 8)];
        nodes.extend(hosts.iter().map(|guid| found(*guid, NodeKind::Ca, 1)));
        let cables: Vec<_> = cables.iter().map(|(a, b)| (end(a.0, a.1), end(b.0, b.1))).collect();
        let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
        let mut snapshot = Snapshot::blank(Arc::new(fabric(nodes, &cables, None)), anchor);
        snapshot.readings.fill(Some(Reading::empty(snapshot.ended)));
        let assessment = fine(&snapshot);
        let snapshot = Some(Arc::new(snapshot));
        Observation { fabric: "f".into(), snapshot, assessment, ..Observation::default() }
    }

    fn snapshot(observation: &mut Observation) -> &mut Snapshot {
        Arc::make_mut(observation.snapshot.as_mut().unwrap())
    }

    /// The changes, each as a line.
    fn told(before: Observation, after: Observation, events: &[Event]) -> Vec<String> {
        let [before, after] = [before, after].map(|it| LiveState::first(vec![Arc::new(it)].into()));
        let cables = CableEvents { events: events.to_vec(), is_more: false };
        let found = changes(&before, &after, None, &cables);
        let [fabric] = &found.fabrics[..] else { panic!("one fabric") };
        assert!(fabric.known);
        let node = |it: &NodeChange| format!("{} {}", it.node, it.change);
        let link = |it: &LinkChange| {
            let errors: u64 = it.errors.values().sum();
            let moved = it.moved_from.as_deref().map(|from| format!(" from {from}"));
            let cable = it.cable.join(" ");
            let text =
                format!("{}: {}{}", it.name, it.changes.join(" "), moved.unwrap_or_default());
            format!("{text} +{errors} {cable}").trim_end().to_owned()
        };
        fabric.nodes.iter().map(node).chain(fabric.links.iter().map(link)).collect()
    }

    const CABLES: [(End, End); 2] = [((1, 1), (2, 1)), ((1, 2), (3, 1))];

    #[test]
    fn nothing_changed_between_equal_states() {
        let states = || swept(&[2, 3], &CABLES);
        assert_eq!(told(states(), states(), &[]), [""; 0]);
    }

    #[test]
    fn nodes_come_go_and_stop_responding() {
        let (before, mut after) = (swept(&[2, 3], &CABLES), swept(&[2, 4], &[CABLES[0]]));
        let index = snapshot(&mut after).fabric.node_by_guid(Guid(2)).unwrap();
        snapshot(&mut after).silent[index] = true;
        let said = told(before, after, &[]);
        let link = "node 1 port 2 – node 3 port 1: removed +0";
        assert_eq!(said, ["node 3 removed", "node 2 down", "node 4 added", link]);
    }

    #[test]
    fn links_are_moved_worse_down_and_have_new_errors() {
        let mut before = swept(&[2, 3], &CABLES);
        let mut after = swept(&[2, 3], &[CABLES[0], ((1, 5), (3, 1))]);
        for (state, errors) in [(&mut before, 5), (&mut after, 12)] {
            let end = port(snapshot(state), 1, 1);
            count(snapshot(state), end, Counter::SymbolErrors, errors);
        }
        after.assessment.links[0].verdict = Verdict::Bad;
        after.assessment.links[0].up = Some(false);
        let event = |kind: EventKind, port: u8, text: &str| Event {
            at: SystemTime::UNIX_EPOCH,
            fabric: "f".into(),
            kind: kind.label().into(),
            node: Some(Guid(1)),
            port: Some(port),
            link: None,
            place: String::new(),
            text: text.into(),
            detail: serde_json::Value::Null,
        };
        let events = [
            event(EventKind::CableChanged, 1, "serial number B instead of A"),
            event(EventKind::CableChanged, 1, "serial number B instead of A"),
            event(EventKind::Flap, 1, "not of a cable"),
        ];
        let said = told(before, after, &events);
        let wanted = [
            "node 1 port 1 – node 2 port 1: down worse errors +7 serial number B instead of A",
            "node 1 port 5 – node 3 port 1: moved from node 1 port 2 – node 3 port 1 +0",
        ];
        assert_eq!(said, wanted);
    }

    #[test]
    fn map_has_the_most_important_change_of_each() {
        let link = |id: &str, changes: &[&'static str]| LinkChange {
            link: id.into(),
            changes: changes.iter().map(|it| Label::Borrowed(it)).collect(),
            ..LinkChange::default()
        };
        let node = |change: &'static str| NodeChange {
            guid: Guid(7).to_string(),
            change: change.into(),
            ..NodeChange::default()
        };
        let id = "0x0000000000000001:1-0x0000000000000002:1";
        let changes = FabricChanges {
            links: vec![link(id, &["down", "errors"]), link("no id", &["down"])],
            nodes: vec![node("down"), node("renamed")],
            ..FabricChanges::default()
        };
        let map = ChangeMap::of(&changes);
        assert_eq!(map.links.get(&id.parse().unwrap()), Some(&LinkChangeKind::Down));
        assert_eq!((map.links.len(), map.nodes[&Guid(7)]), (1, NodeChangeKind::Down));
    }
}
