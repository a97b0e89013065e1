//! `/api/v1/links`: each link with its verdict and the evidence, or the worst of them, found without building all
//! models: of 30,000 links a page shows a hundred.

use serde::{Serialize, Serializer};

use ib_fabric::{Node, NodeMap, Snapshot};

use crate::condition::condition;
use crate::filter::{Fabrics, Filter, is_called, selected};
use crate::model::{FabricLinks, Links, Severity, Verdicts};

use crate::link_row::LinkRow;
use crate::view::FabricView;

/// The links that a filter selects; with a limit, of each fabric as many, the worst first. A fabric name that no fabric
/// has selects nothing.
pub fn links(fabrics: &Fabrics, filter: &Filter) -> Links {
    build(fabrics, filter, |rows| rows.iter().map(LinkRow::link).collect())
}

/// The same, to be written link by link: all models at once would take more memory than the text.
pub fn rows<'a>(fabrics: &'a Fabrics, filter: &Filter) -> Links<LinkList<'a>> {
    build(fabrics, filter, LinkList)
}

fn build<'a, L>(
    fabrics: &'a Fabrics,
    filter: &Filter,
    collect: impl Fn(Vec<LinkRow<'a>>) -> L,
) -> Links<L> {
    let fabrics = selected(fabrics, filter.fabric.as_deref()).map(|observation| {
        let (view, one) = (FabricView::new(observation), std::slice::from_ref(observation));
        let mut verdicts = Verdicts::default();
        for row in view.into_iter().flat_map(FabricView::links) {
            verdicts.add_link(&row);
        }
        let rows = match filter.limit {
            Some(limit) => ranked(one, filter, 0, limit).1,
            None => select(one, filter),
        };
        FabricLinks {
            fabric: observation.fabric.clone(),
            swept_at: view.and_then(FabricView::swept_at),
            condition: condition(observation),
            verdicts,
            links: collect(rows),
        }
    });
    Links { fabrics: fabrics.collect() }
}

/// Links whose models are built while they are written.
pub struct LinkList<'a>(Vec<LinkRow<'a>>);

impl Serialize for LinkList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(LinkRow::link))
    }
}

/// For each node whether a filter selects its links; `None` if it selects those of all nodes.
pub(crate) fn selected_nodes(snapshot: &Snapshot, filter: &Filter) -> Option<NodeMap<bool>> {
    let text = filter.name.trim().to_lowercase();
    if text.is_empty() && filter.node.is_none() {
        return None;
    }
    let is_called = filter.node.as_deref().map(|name| is_called(&snapshot.fabric, name));
    let is_selected = |node: &Node| {
        (text.is_empty() || node.name.to_lowercase().contains(&text))
            && is_called.as_ref().is_none_or(|is_called| is_called(node))
    };
    Some(snapshot.fabric.nodes.iter().map(is_selected).collect())
}

/// The links that a filter selects.
pub fn select<'a>(fabrics: &'a Fabrics, filter: &Filter) -> Vec<LinkRow<'a>> {
    let mut rows = Vec::new();
    for observation in selected(fabrics, filter.fabric.as_deref()) {
        let Some(view) = FabricView::new(observation) else { continue };
        let nodes = selected_nodes(view.snapshot, filter);
        rows.extend(view.links().filter(|row| row.is_selected(filter, nodes.as_ref())));
    }
    rows
}

/// The number of the selected links, and up to `count` of them, the worst first, without the first `skip`.
pub fn ranked<'a>(
    fabrics: &'a Fabrics,
    filter: &Filter,
    skip: usize,
    count: usize,
) -> (usize, Vec<LinkRow<'a>>) {
    let rows = select(fabrics, filter).into_iter();
    let mut ranked: Vec<(Severity, LinkRow<'a>)> = rows.map(|row| (row.severity(), row)).collect();
    let found = ranked.len();
    let end = skip.saturating_add(count).min(found);
    // Few have the same severity: the names of most links are never looked up.
    let order = |a: &(Severity, LinkRow<'_>), b: &(Severity, LinkRow<'_>)| {
        let by_name = || a.1.place().cmp(&b.1.place());
        // Nodes may have the same name.
        a.0.cmp(&b.0).then_with(by_name).then_with(|| a.1.cable.low.cmp(&b.1.cable.low))
    };
    // The order of the rest does not matter.
    if end < found {
        ranked.select_nth_unstable_by(end, order);
    }
    ranked.truncate(end);
    ranked.sort_by(order);
    (found, ranked.into_iter().skip(skip).map(|(_, row)| row).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use fabric_observation::Observation;
    use ib_health::Verdict;
    use std::time::{Duration, SystemTime};

    use ib_health::congestion::Wait;
    use ib_health::testing::{count, fine, over, port, saturated, snapshot};
    use ib_health::verdict::Repair;
    use ib_health::{Assessment, Reason};
    use ib_mad::rate::Speed;
    use ib_mad::{Counter, Moment};

    /// A small fabric; its first link is bad.
    fn observation() -> Observation {
        let mut snapshot = snapshot();
        let leaf = port(&snapshot, 1, 1);
        count(&mut snapshot, leaf, Counter::SymbolErrors, 65_535);
        count(&mut snapshot, leaf, Counter::LinkDowned, 0);
        count(&mut snapshot, leaf, Counter::XmitData, 7);
        let mut assessment = fine(&snapshot);
        let of_leaf = &mut assessment.ports[leaf];
        of_leaf.bit_errors = over(432);
        of_leaf.wait = Some(Wait { share: 0.5, tick_reported: true });
        of_leaf.counters = saturated(Counter::SymbolErrors, false);
        let of_host = &mut assessment.ports[port(&snapshot, 2, 1)];
        of_host.counters.saturated_now.insert(Counter::XmitWait);
        let link = &mut assessment.links[0];
        link.verdict = Verdict::Bad;
        link.reasons.add(Reason::InsufficientData, Verdict::Unknown);
        link.reasons.add(Reason::Flapping, Verdict::Bad);
        link.repair = Some(Repair::Reseat);
        link.outages.flaps = 3;
        link.outages.last_change = Some(snapshot.ended);
        link.upstream = Some(port(&snapshot, 1, 2));
        let fabric = "f".into();
        Observation {
            fabric,
            snapshot: Some(snapshot.into()),
            assessment,
            ..Observation::default()
        }
    }

    #[test]
    fn link_has_verdict_reasons_and_both_ends() {
        let observations = [Arc::new(observation())];
        let listed = links(&observations, &Filter::default());
        let [fabric] = &listed.fabrics[..] else { panic!("one fabric") };
        assert_eq!(fabric.swept_at.as_deref(), Some("1970-01-01T00:16:40Z"));
        assert_eq!(fabric.verdicts, Verdicts { ok: 1, bad: 1, ..Verdicts::default() });
        let [bad, fine] = &fabric.links[..] else { panic!("two links") };
        assert_eq!((&*bad.verdict, &*fine.verdict), ("bad", "ok"));
        assert_eq!(bad.link, "0x0000000000000001:1-0x0000000000000002:1");
        assert_eq!(bad.since.as_deref(), Some("1970-01-01T00:01:40Z"));
        assert_eq!(bad.last_change.as_deref(), Some("1970-01-01T00:16:40Z"));
        let reasons: Vec<_> = bad.reasons.iter().map(|it| (&*it.reason, &*it.evidence)).collect();
        assert_eq!(reasons[0].0, "flapping", "the worst first");
        assert!(reasons[0].1.starts_with("went down 3 times"), "{}", reasons[0].1);
        assert_eq!(reasons[1].0, "insufficient_data");
        assert_eq!(bad.repair.as_ref().unwrap().repair, "reseat");
        assert_eq!(bad.upstream.as_deref(), Some("leaf port 2"));
        assert_eq!((bad.speed.as_deref(), bad.width.as_deref()), (Some("EDR"), Some("4x")));
        assert_eq!((bad.rate, bad.up, bad.flaps), (Some(12_500_000_000), Some(true), 3));
        let leaf = &bad.ends[0];
        assert_eq!((leaf.label().as_str(), &*leaf.node_type), ("leaf port 1", "switch"));
        assert_eq!(leaf.counters.iter().collect::<Vec<_>>(), [(&"symbol_errors".into(), &65_535)]);
        assert_eq!(leaf.saturated, ["symbol_errors"]);
        assert_eq!((&*leaf.bit_errors.level, leaf.wait_ratio), ("over", Some(0.5)));
        assert_eq!(bad.ends.each_ref().map(|end| end.wait_saturated), [false, true]);
        let windows: Vec<_> = leaf.bit_errors.windows.iter().map(|it| &*it.window).collect();
        assert_eq!(windows, ["12m"]);
        assert_eq!(bad.ends[1].label(), "host-a port 1");
        let json = serde_json::to_vec(&rows(&observations, &Filter::default())).unwrap();
        assert_eq!(serde_json::from_slice::<Links>(&json).unwrap(), listed);
    }

    #[test]
    fn filter_selects_links_but_verdicts_count_all() {
        let other = Observation { fabric: "g".into(), ..Observation::default() };
        let observations = [Arc::new(observation()), Arc::new(other)];
        let listed = links(&observations, &Filter { suspect: true, ..Filter::default() });
        assert_eq!(listed.fabrics.len(), 2);
        assert_eq!((listed.fabrics[0].links.len(), listed.fabrics[0].verdicts.ok), (1, 1));
        assert_eq!((listed.fabrics[1].links.len(), &listed.fabrics[1].swept_at), (0, &None));
        let listed =
            links(&observations, &Filter { fabric: Some("g".into()), ..Filter::default() });
        assert_eq!(listed.fabrics.len(), 1);
    }

    #[test]
    fn host_selects_all_its_adapters() {
        let mut observation = observation();
        let snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
        let mut fabric = (*snapshot.fabric).clone();
        for node in fabric.nodes.iter_mut().skip(1) {
            node.host = Some("gpu1".into());
        }
        snapshot.fabric = Arc::new(fabric);
        let unswept = Observation { fabric: "g".into(), ..Observation::default() };
        let (state, unswept) = ([Arc::new(observation)], [Arc::new(unswept)]);
        let of = |name: &str| Filter { node: Some(name.into()), ..Filter::default() };
        for (name, count) in [("gpu1", 2), ("leaf", 2), ("host-a", 1), ("0x2", 1), ("gpu", 0)] {
            let filter = of(name);
            let listed = links(&state, &filter);
            let verdicts = listed.fabrics[0].verdicts;
            assert_eq!((listed.fabrics[0].links.len(), verdicts.count()), (count, 2), "{name}");
            assert_eq!(filter.check(&state).is_ok(), count > 0, "{name}");
            assert_eq!(filter.check(&unswept), Ok(()), "it may have that node: {name}");
        }
        let both = Filter { suspect: true, ..of("host-b") };
        assert!(links(&state, &both).fabrics[0].links.is_empty());
        let ends = &links(&state, &of("host-a")).fabrics[0].links[0].ends;
        assert_eq!(ends.each_ref().map(|end| end.host.as_deref()), [None, Some("gpu1")]);
        let nodes = crate::nodes::nodes(&state, &of("gpu1"));
        let names: Vec<&str> = nodes.fabrics[0].nodes.iter().map(|node| &*node.node).collect();
        assert_eq!(names, ["host-a", "host-b"]);
    }

    #[test]
    fn limited_list_has_the_worst_links_of_those_selected() {
        let board = fabrics();
        let listed = |filter: Filter| {
            let limited = links(&board, &Filter { limit: Some(1), ..filter.clone() });
            let all = links(&board, &filter);
            assert_eq!(limited.fabrics[0].verdicts, all.fabrics[0].verdicts);
            let names = |links: &Links| -> Vec<String> {
                links.fabrics[0].links.iter().map(|link| link.ends[1].node.clone()).collect()
            };
            (names(&limited), names(&all).len())
        };
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(listed(Filter::default()), (of(&["host-a"]), 2));
        assert_eq!(listed(Filter { suspect: true, ..Filter::default() }), (of(&["host-a"]), 1));
        let ok = Filter { verdicts: vec![Verdict::Ok], ..Filter::default() };
        assert_eq!(listed(ok), (of(&["host-b"]), 1));
        let named = Filter { name: "ST-B".into(), ..Filter::default() };
        assert_eq!(listed(named), (of(&["host-b"]), 1));
        let other = Filter { name: "x".into(), suspect: true, ..Filter::default() };
        assert_eq!(listed(other), (of(&[]), 0));
    }

    #[test]
    fn rebooted_host_does_not_make_its_link_suspect() {
        for (flaps, symbols, suspects) in [(0, 0, 0), (1, 0, 1), (0, 5, 1)] {
            let mut snapshot = snapshot();
            let leaf = port(&snapshot, 1, 1);
            count(&mut snapshot, leaf, Counter::LinkDowned, 1);
            count(&mut snapshot, leaf, Counter::SymbolErrors, symbols);
            let mut assessment = fine(&snapshot);
            assessment.links[0].verdict = Verdict::Unknown;
            let outages = &mut assessment.links[0].outages;
            (outages.flaps, outages.expected) = (flaps, [1, 0]);
            let snapshot = Some(snapshot.into());
            let observation = Observation { snapshot, assessment, ..Observation::default() };
            let filter = Filter { suspect: true, ..Filter::default() };
            let listed = links(&[Arc::new(observation)], &filter);
            assert_eq!(listed.fabrics[0].links.len(), suspects, "{flaps} {symbols}");
        }
    }

    #[test]
    fn links_without_findings_are_unknown() {
        let observation = Observation { assessment: Assessment::default(), ..observation() };
        let listed = links(&[Arc::new(observation)], &Filter::default());
        let fabric = &listed.fabrics[0];
        assert_eq!((fabric.links.len(), fabric.verdicts.unknown), (2, 2));
        assert!(fabric.links.iter().all(|link| link.verdict == "unknown" && link.since.is_none()));
    }

    #[test]
    fn infinite_numbers_and_impossible_times_are_null() {
        let mut observation = observation();
        let leaf = port(observation.snapshot.as_ref().unwrap(), 1, 1);
        let of_leaf = &mut observation.assessment.ports[leaf];
        of_leaf.wait = Some(Wait { share: f32::NAN, tick_reported: true });
        of_leaf.bit_errors.limit = f32::INFINITY;
        observation.assessment.links[0].since = Moment::NEVER;
        let anchor = &mut Arc::make_mut(observation.snapshot.as_mut().unwrap()).anchor;
        anchor.wall = SystemTime::UNIX_EPOCH - Duration::from_secs(1_000_000_000);
        let listed = links(&[Arc::new(observation)], &Filter::default());
        let text = serde_json::to_string(&listed).unwrap();
        assert_eq!(serde_json::from_str::<Links>(&text).unwrap(), listed);
        let link = &listed.fabrics[0].links[0];
        assert_eq!((link.ends[0].wait_ratio, link.ends[0].bit_errors.limit), (None, None));
        assert_eq!(listed.fabrics[0].swept_at, None);
    }

    fn fabrics() -> [Arc<Observation>; 1] {
        let mut snapshot = snapshot();
        let leaf = port(&snapshot, 1, 1);
        count(&mut snapshot, leaf, Counter::SymbolErrors, 12);
        count(&mut snapshot, leaf, Counter::RcvErrors, 9);
        count(&mut snapshot, leaf, Counter::RcvRemotePhysicalErrors, 4);
        let mut assessment = fine(&snapshot);
        assessment.ports[leaf].bit_errors = over(432);
        assessment.links[0].verdict = Verdict::Watch;
        assessment.links[0].reasons.add(Reason::BitErrors, Verdict::Watch);
        let fabric = "f".into();
        let snapshot = Some(snapshot.into());
        [Arc::new(Observation { fabric, snapshot, assessment, ..Observation::default() })]
    }

    /// Pages rank the snapshot, clients rank the models.
    #[test]
    fn rank_from_snapshot_equals_rank_of_model() {
        let board = fabrics();
        let view = FabricView::new(&board[0]).unwrap();
        let models = &links(&board, &Filter::default()).fabrics[0].links;
        let mut ranks = Vec::new();
        for (row, model) in view.links().zip(models) {
            let rank = (row.severity(), row.place());
            assert_eq!(rank, model.rank());
            ranks.push(rank);
        }
        let (verdict, _, ratio, errors) = ranks[0].0.0;
        assert_eq!((verdict, errors), (Verdict::Watch, 12));
        assert!(f64::from_bits(ratio) > 0.0 && ranks[0] < ranks[1]);
    }

    #[test]
    fn selected_links_are_counted_and_paged() {
        let board = fabrics();
        let page = |filter: &Filter, skip, count| {
            let (found, links) = ranked(&board, filter, skip, count);
            let names = links.iter().map(|row| row.link().ends[1].node.clone());
            (found, names.collect::<Vec<_>>())
        };
        let all = Filter::default();
        let names = page(&all, 0, 9).1;
        assert_eq!(page(&all, 0, 9).0, names.len());
        assert_eq!(page(&all, 0, 1), (2, names[..1].to_vec()));
        assert_eq!(page(&all, 1, 1), (2, names[1..].to_vec()));
        assert_eq!(page(&all, 7, 1), (2, vec![]));
        assert_eq!(page(&Filter { verdicts: vec![Verdict::Watch], ..all.clone() }, 0, 9).0, 1);
        assert_eq!(page(&Filter { name: "HOST-A".into(), ..all.clone() }, 0, 9).0, 1);
        assert_eq!(page(&Filter { speed: Some(Speed::Edr), ..all.clone() }, 0, 9).0, 2);
        assert_eq!(page(&Filter { speed: Some(Speed::Ndr), ..all.clone() }, 0, 9).0, 0);
        assert_eq!(page(&Filter { reason: Some(Reason::BitErrors), ..all.clone() }, 0, 9).0, 1);
        assert_eq!(page(&Filter { name: "no-such-node".into(), ..all.clone() }, 0, 9).0, 0);
        assert_eq!(page(&Filter { fabric: Some("g".into()), ..all }, 0, 9).0, 0);
    }
}
