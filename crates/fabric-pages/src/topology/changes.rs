//! The mask of what changed since another moment.

use std::collections::HashMap;

use fabric_api::FabricView;
use fabric_api::changes::{ChangeMap, LinkChangeKind, NodeChangeKind};
use fabric_api::model::{Changes, FabricChanges, LinkChange};
use fabric_history::local_clock::LocalClock;

use super::coloring::{Class, Coloring, Look, Scale, Step};
use crate::changes::NOT_COMPARED;
use crate::components::plural;

/// What the map shows of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    map: ChangeMap,
    /// The fabric is recorded at both moments.
    is_known: bool,
    /// The moments, and what the map cannot show.
    notes: Vec<String>,
}

impl Compared {
    /// That of a fabric.
    pub fn of(found: &Changes, fabric: &str, clock: &LocalClock) -> Self {
        let Some(of) = found.fabrics.iter().find(|it| it.fabric == fabric) else {
            return Compared::default();
        };
        let local = |time: &str| {
            humantime::parse_rfc3339(time).map_or_else(|_| time.into(), |time| clock.format(time))
        };
        let mut notes = vec![format!("From {} to {}.", local(&found.from), local(&found.to))];
        if !of.known {
            notes.push(NOT_COMPARED.into());
        }
        notes.extend(gone(of));
        Compared { map: ChangeMap::of(of), is_known: of.known, notes }
    }
}

/// The links that a map of the later moment does not have.
fn gone(fabric: &FabricChanges) -> Option<String> {
    let is_gone = |link: &&LinkChange| link.verdicts[1].is_none();
    let count = fabric.links.iter().filter(is_gone).count();
    (count > 0).then(|| format!("Not on the map: {}.", plural(count, "removed link")))
}

/// The steps, the least important first, each with what it shows.
const STEPS: [(Look, &str, &str); 9] = [
    (Look::Step0, "", "unchanged"),
    (Look::Learning, "name", "renamed"),
    (Look::Learning, "+", "better, or up again"),
    (Look::Step1, "err", "new errors"),
    (Look::Step2, "new", "new"),
    (Look::Step3, "rate", "rate changed"),
    (Look::Step3, "mov", "moved"),
    (Look::Watch, "!", "worse"),
    (Look::Bad, "✕", "down"),
];

fn of_link(kind: LinkChangeKind) -> Class {
    Class(match kind {
        LinkChangeKind::Up | LinkChangeKind::Better => 2,
        LinkChangeKind::Errors => 3,
        LinkChangeKind::Added => 4,
        LinkChangeKind::Rate => 5,
        LinkChangeKind::Moved => 6,
        LinkChangeKind::Worse => 7,
        LinkChangeKind::Down | LinkChangeKind::Removed => 8,
    })
}

fn of_node(kind: NodeChangeKind) -> Class {
    Class(match kind {
        NodeChangeKind::Renamed => 1,
        NodeChangeKind::Up => 2,
        NodeChangeKind::Added => 4,
        NodeChangeKind::Down | NodeChangeKind::Removed => 8,
    })
}

/// The classes of the links and nodes of the later moment.
pub fn coloring(view: FabricView<'_>, compared: &Compared) -> Coloring {
    let step =
        |(look, sign, label): (Look, &'static str, &str)| Step { look, sign, label: label.into() };
    let scale = Scale {
        steps: STEPS.map(step).to_vec(),
        harmless: 2,
        unknown: "not compared",
        notes: compared.notes.clone(),
    };
    let map = &compared.map;
    let links = Coloring::of_links(scale, view, |link| {
        let id = view.snapshot.fabric.link_id(link.cable.low)?;
        let unchanged = compared.is_known.then_some(Class(0));
        map.links.get(&id).map(|kind| of_link(*kind)).or(unchanged)
    });
    let nodes: HashMap<_, _> =
        map.nodes.iter().map(|(guid, kind)| (*guid, of_node(*kind))).collect();
    links.with_nodes(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_api::model::{Label, NodeChange};
    use ib_fabric::topology::LinkId;
    use ib_health::testing::{fine, snapshot};
    use ib_mad::{Guid, PortKey};

    /// Every kind has a step, and the more important one the later step.
    #[test]
    fn changed_links_and_nodes_have_their_classes_and_others_are_unchanged() {
        let snapshot = snapshot();
        let assessment = fine(&snapshot);
        let view = FabricView { name: "f", snapshot: &snapshot, assessment: &assessment };
        let id = LinkId::between(PortKey::new(Guid(1), 1), PortKey::new(Guid(2), 1));
        let link = |id: String, change: &'static str, is_gone: bool| LinkChange {
            link: id,
            changes: vec![change.into()],
            verdicts: [Some("ok".into()), (!is_gone).then_some(Label::Borrowed("ok"))],
            ..LinkChange::default()
        };
        let node = NodeChange {
            guid: Guid(3).to_string(),
            change: "down".into(),
            ..NodeChange::default()
        };
        let fabric = FabricChanges {
            fabric: "f".into(),
            known: true,
            links: vec![link(id.to_string(), "worse", false), link(String::new(), "removed", true)],
            nodes: vec![node],
            ..FabricChanges::default()
        };
        let times = ["2026-11-27T03:12:00Z", "2026-11-27T05:00:00Z"].map(str::to_owned);
        let [from, to] = times;
        let new = FabricChanges { fabric: "new".into(), known: false, ..FabricChanges::default() };
        let found = Changes {
            from,
            to,
            cables_complete: true,
            fabrics: vec![fabric, new],
            ..Changes::default()
        };
        let compared = Compared::of(&found, "f", &LocalClock::now());
        let coloring = coloring(view, &compared);
        let mut looks = view.links().map(|link| coloring.look(coloring.link(&link)));
        assert_eq!((looks.next(), looks.next()), (Some(Look::Watch), Some(Look::Step0)));
        assert_eq!(coloring.look(coloring.node(Guid(3))), Look::Bad);
        let notes = coloring.scale.notes.join(" ");
        assert!(notes.contains("Not on the map: 1 removed link."), "{notes}");
        // One that was not recorded at the first time, and one that is not compared at all.
        for other in ["new", "g"] {
            let nothing = Compared::of(&found, other, &LocalClock::now());
            let coloring = super::coloring(view, &nothing);
            assert!(view.links().all(|link| coloring.link(&link).is_none()), "{other}");
        }
        for kind in LinkChangeKind::ALL {
            assert!(of_link(kind).0 < STEPS.len());
        }
    }
}
