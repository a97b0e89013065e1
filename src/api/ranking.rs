//! The worst links, found without building all models: of 30,000 links a page shows a hundred.

use std::sync::Arc;

use fabric_observation::Observation;
use ib_fabric::topology::Link as Cable;
use ib_fabric::{Node, NodeIndex, PortIndex, Snapshot};
use ib_health::bit_errors::BerWindow;
use ib_health::{LinkAssessment, Verdict};
use ib_mad::Reading;

use super::links::with_findings;
use super::model::{Link, Rank};
use super::selected;
use super::view::FabricView;

/// Which links to list. An empty field selects all.
#[derive(Clone, Debug, Default)]
pub struct ListFilter<'a> {
    /// Only the fabric of this name.
    pub fabric: &'a str,
    /// Only links with one of these verdicts.
    pub verdicts: &'a [Verdict],
    /// Only links with this text in the name of a node at an end, in any case.
    pub text: &'a str,
}

/// A page of a list of links.
#[derive(Clone, Debug, Default)]
pub struct RankedLinks {
    /// The length of the whole list.
    pub found: usize,
    /// The links of the page, the worst first.
    pub links: Vec<Link>,
}

/// Up to `count` of the selected links, the worst first, without the first `skip` of them.
pub fn ranked(
    fabrics: &[Arc<Observation>],
    filter: &ListFilter<'_>,
    skip: usize,
    count: usize,
) -> RankedLinks {
    let mut ranked = Vec::new();
    for observation in selected(fabrics, Some(filter.fabric).filter(|name| !name.is_empty())) {
        let Some(view) = FabricView::new(observation) else { continue };
        let named = nodes_named(view.snapshot, filter.text);
        for (cable, assessment) in with_findings(observation) {
            let verdict = assessment.map_or(Verdict::Unknown, |link| link.verdict);
            let is_named = |port: PortIndex| {
                let NodeIndex(node) = view.snapshot.fabric.port(port).node;
                named.as_ref().is_none_or(|named| named[node as usize])
            };
            let is_selected = filter.verdicts.is_empty() || filter.verdicts.contains(&verdict);
            if is_selected && (is_named(cable.0) || is_named(cable.1)) {
                ranked.push((rank(view, cable, assessment), view, cable, assessment));
            }
        }
    }
    let found = ranked.len();
    let end = skip.saturating_add(count).min(found);
    // The order of the rest does not matter.
    if end < found {
        ranked.select_nth_unstable_by(end, |a, b| a.0.cmp(&b.0));
    }
    ranked.truncate(end);
    ranked.sort_by(|a, b| a.0.cmp(&b.0));
    let page = ranked.into_iter().skip(skip);
    let links = page.map(|(_, view, cable, assessment)| view.link(cable, assessment)).collect();
    RankedLinks { found, links }
}

/// For each node whether a text is in its name; `None` without a text.
fn nodes_named(snapshot: &Snapshot, text: &str) -> Option<Vec<bool>> {
    let text = text.trim().to_lowercase();
    let has = |node: &Node| node.name.to_lowercase().contains(&text);
    (!text.is_empty()).then(|| snapshot.fabric.nodes.iter().map(has).collect())
}

/// The rank of the model that would be built from this link.
fn rank<'a>(view: FabricView<'a>, cable: Cable, assessment: Option<&LinkAssessment>) -> Rank<'a> {
    let (snapshot, fabric) = (view.snapshot, &view.snapshot.fabric);
    let ends = [cable.0, cable.1];
    let ratios = ends.iter().flat_map(|port| {
        let errors = view.assessment.ports.get(port.0 as usize).map(|port| &port.bit_errors);
        errors.into_iter().flat_map(|errors| {
            let watched = |window: &BerWindow| !errors.windows[*window as usize].span().is_zero();
            let watched = BerWindow::ALL.into_iter().filter(watched);
            watched.filter_map(|window| errors.ratio(window))
        })
    });
    let errors = ends.map(|port| snapshot.reading(port).map_or(0, Reading::link_errors));
    Rank {
        verdict: assessment.map_or(Verdict::Unknown, |link| link.verdict),
        ratio: ratios.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max),
        errors: errors[0].saturating_add(errors[1]),
        fabric: view.name,
        ends: ends.map(|port| (&*fabric.node_of(port).name, fabric.port(port).number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Filter;
    use crate::api::links::links;
    use ib_health::testing::{count, fine, over, port, snapshot};
    use ib_mad::Counter;

    fn board() -> [Arc<Observation>; 1] {
        let mut snapshot = snapshot();
        let leaf = port(&snapshot, 1, 1);
        count(&mut snapshot, leaf, Counter::SymbolErrors, 12);
        count(&mut snapshot, leaf, Counter::RcvErrors, 9);
        count(&mut snapshot, leaf, Counter::RcvRemotePhysicalErrors, 4);
        let mut assessment = fine(&snapshot);
        assessment.ports[leaf.0 as usize].bit_errors = over(432);
        assessment.links[0].verdict = Verdict::Watch;
        let fabric = "f".into();
        let snapshot = Some(snapshot.into());
        [Arc::new(Observation { fabric, snapshot, assessment, ..Observation::default() })]
    }

    /// Pages rank the snapshot, clients rank the models.
    #[test]
    fn rank_from_snapshot_equals_rank_of_model() {
        let board = board();
        let view = FabricView::new(&board[0]).unwrap();
        let models = &links(&board, &Filter::default()).fabrics[0].links;
        let mut ranks = Vec::new();
        for ((cable, assessment), model) in with_findings(&board[0]).zip(models) {
            let rank = rank(view, cable, assessment);
            assert_eq!(rank, model.rank());
            ranks.push(rank);
        }
        assert_eq!((ranks[0].verdict, ranks[0].errors), (Verdict::Watch, 17));
        assert!(ranks[0].ratio > 0.0 && ranks[0] < ranks[1]);
    }

    #[test]
    fn selected_links_are_counted_and_paged() {
        let board = board();
        let page = |filter: &ListFilter<'_>, skip, count| {
            let ranked = ranked(&board, filter, skip, count);
            let names = ranked.links.iter().map(|link| link.ends[1].node.clone());
            (ranked.found, names.collect::<Vec<_>>())
        };
        let all = ListFilter::default();
        let names = page(&all, 0, 9).1;
        assert_eq!(page(&all, 0, 9).0, names.len());
        assert_eq!(page(&all, 0, 1), (2, names[..1].to_vec()));
        assert_eq!(page(&all, 1, 1), (2, names[1..].to_vec()));
        assert_eq!(page(&all, 7, 1), (2, vec![]));
        assert_eq!(page(&ListFilter { verdicts: &[Verdict::Watch], ..all.clone() }, 0, 9).0, 1);
        assert_eq!(page(&ListFilter { text: "HOST-A", ..all.clone() }, 0, 9).0, 1);
        assert_eq!(page(&ListFilter { text: "nobody", ..all.clone() }, 0, 9).0, 0);
        assert_eq!(page(&ListFilter { fabric: "g", ..all }, 0, 9).0, 0);
    }
}
