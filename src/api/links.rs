//! `/api/v1/links`: each link with its verdict and the evidence, built from the latest snapshots.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use fabric_observation::Observation;
use ib_fabric::topology::Link as Cable;
use ib_health::{LinkAssessment, Verdict};

use super::model::{FabricLinks, Link, Links, Verdicts};
use super::view::FabricView;
use super::{Filter, selected};

/// The links that a filter selects. A fabric name that no fabric has selects nothing.
pub fn links(fabrics: &[Arc<Observation>], filter: &Filter) -> Links {
    build(fabrics, filter, |list| list.iter().collect())
}

/// The same as JSON, written link by link: all models at once would take more memory than the text.
pub fn json(fabrics: &[Arc<Observation>], filter: &Filter) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&build(fabrics, filter, |list| list))
}

fn build<'a, L>(
    fabrics: &'a [Arc<Observation>],
    filter: &Filter,
    collect: impl Fn(LinkList<'a>) -> L,
) -> Links<L> {
    let fabrics = selected(fabrics, filter.fabric.as_deref()).map(|observation| {
        let mut verdicts = Verdicts::default();
        for (_, assessment) in with_findings(observation) {
            verdicts.add(assessment.map_or(Verdict::Unknown, |link| link.verdict));
        }
        FabricLinks {
            fabric: observation.fabric.clone(),
            swept_at: FabricView::new(observation).and_then(FabricView::swept_at),
            verdicts,
            links: collect(LinkList { observation, suspect: filter.suspect }),
        }
    });
    Links { fabrics: fabrics.collect() }
}

/// All links of a fabric with their assessment. While the device is away nothing is evaluated: the links are
/// there without assessment.
pub(super) fn with_findings(
    observation: &Observation,
) -> impl Iterator<Item = (Cable, Option<&LinkAssessment>)> {
    let cables = observation.snapshot.iter().flat_map(|snapshot| snapshot.fabric.links());
    let assessment = observation.assessment.links.iter().map(Some);
    cables.zip(assessment.chain(std::iter::repeat(None)))
}

/// The links of a fabric, or the suspect ones among them.
struct LinkList<'a> {
    observation: &'a Observation,
    suspect: bool,
}

impl<'a> LinkList<'a> {
    fn iter(&self) -> impl Iterator<Item = Link> + use<'a> {
        let (view, suspect) = (FabricView::new(self.observation), self.suspect);
        with_findings(self.observation).filter_map(move |(cable, assessment)| {
            let link = view.as_ref()?.link(cable, assessment);
            (!suspect || link.is_suspect()).then_some(link)
        })
    }
}

impl Serialize for LinkList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use ib_health::congestion::Wait;
    use ib_health::testing::{count, fine, over, port, saturated, snapshot};
    use ib_health::verdict::Repair;
    use ib_health::{Assessment, Reason};
    use ib_mad::Counter;
    use ib_mad::Moment;

    /// A small fabric; its first link is bad.
    fn observation() -> Observation {
        let mut snapshot = snapshot();
        let leaf = port(&snapshot, 1, 1);
        count(&mut snapshot, leaf, Counter::SymbolErrors, 65_535);
        count(&mut snapshot, leaf, Counter::LinkDowned, 0);
        count(&mut snapshot, leaf, Counter::XmitData, 7);
        let mut assessment = fine(&snapshot);
        let of_leaf = &mut assessment.ports[leaf.0 as usize];
        of_leaf.bit_errors = over(432);
        of_leaf.wait = Some(Wait { share: 0.5, tick_told: true });
        of_leaf.counters = saturated(Counter::SymbolErrors, false);
        let link = &mut assessment.links[0];
        link.verdict = Verdict::Bad;
        link.reasons.add(Reason::TooShort, Verdict::Unknown);
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
        assert_eq!(reasons[0], ("flapping", "went down 3 times"), "the heaviest first");
        assert_eq!(reasons[1].0, "too_short");
        assert_eq!(bad.repair.as_ref().unwrap().repair, "reseat");
        assert_eq!(bad.upstream.as_deref(), Some("leaf port 2"));
        assert_eq!((bad.speed.as_deref(), bad.width.as_deref()), (Some("EDR"), Some("4x")));
        assert_eq!((bad.rate, bad.up, bad.flaps), (Some(12_500_000_000), Some(true), 3));
        let leaf = &bad.ends[0];
        assert_eq!((leaf.label().as_str(), &*leaf.node_type), ("leaf port 1", "switch"));
        assert_eq!(leaf.counters.iter().collect::<Vec<_>>(), [(&"symbol_errors".into(), &65_535)]);
        assert_eq!(leaf.saturated, ["symbol_errors"]);
        assert_eq!((&*leaf.bit_errors.judgement, leaf.wait_ratio), ("over", Some(0.5)));
        let windows: Vec<_> = leaf.bit_errors.windows.iter().map(|it| &*it.window).collect();
        assert_eq!(windows, ["12m"]);
        assert_eq!(bad.ends[1].label(), "host-a port 1");
        let json = json(&observations, &Filter::default()).unwrap();
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
        let of_leaf = &mut observation.assessment.ports[leaf.0 as usize];
        of_leaf.wait = Some(Wait { share: f32::NAN, tick_told: true });
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
}
