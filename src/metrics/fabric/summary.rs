//! Families of a fabric in a few numbers: links by verdict and nodes by state, for dashboards and alerts
//! that must not read 60,000 series to show one figure.
//!
//! Counted once a sweep and written at each scrape, and only while the latest sweep is recent and has
//! results. A zero that was not counted would look like a healthy fabric.

use std::time::{Duration, SystemTime};

use exposition::{Families, Family, Labeled, MetricType, Part, Parts, Samples};
use fabric_observation::{Collector, Observation};
use ib_fabric::fabric_kind::FabricKind;
use ib_health::Verdict;
use ib_mad::node::NodeKind;

use crate::metrics::family_table::grouped;
use crate::metrics::family_table::{families, family};
use crate::metrics::selection::Group;

/// The states of nodes: responding, and not; the order is that of the counts.
const STATES: [&str; 2] = ["up", "down"];

families! {
    SUMMARIES: &Summary;
    "infiniband_fabric_info" Gauge ["fabric", "kind"]
        "Kind of the fabric as label, always 1: infiniband or nvlink. Links of an NVLink fabric are not judged. Absent until a switch that announces HierarchyInfo has told, and under the same conditions as infiniband_fabric_links."
        => |summary, samples| if let Some(kind) = summary.kind {
            samples.label("kind", kind.label()).value(1);
        };
    "infiniband_fabric_links" Gauge ["fabric", "verdict"]
        "Links by verdict: ok, unknown, watch (degraded), bad. 0 means that no link has this verdict. Absent before the first evaluation, after a sweep without results, and when the latest sweep is older than 60 s plus 4 intervals, or 4 times the time that discovery and sweep take if that is longer."
        => |summary, samples| {
            for (verdict, count) in Verdict::ALL.iter().zip(summary.links) {
                samples.label("verdict", verdict.label()).value(count);
            }
        };
    "infiniband_fabric_nodes" Gauge ["fabric", "node_type", "state"]
        "Nodes by type (ca, switch, router, aggregation_node) and state (up, down; see infiniband_node_up). Absent under the same conditions as infiniband_fabric_links."
        => |summary, samples| {
            for (kind, counts) in NodeKind::ALL.iter().zip(summary.nodes) {
                for (state, count) in STATES.iter().zip(counts) {
                    samples.label("node_type", kind.label());
                    samples.label("state", state).value(count);
                }
            }
        };
}

/// The families of counts with their group.
pub fn families() -> impl Iterator<Item = (Family, Group)> {
    grouped(SUMMARIES, Group::Fabric)
}

/// The counts of one fabric.
#[derive(Debug)]
pub(in crate::metrics) struct Summary {
    fabric: String,
    kind: Option<FabricKind>,
    /// When the sweep ended, and for how long it is recent.
    ended: SystemTime,
    limit: Duration,
    /// In the order of [`Verdict::ALL`].
    links: [u64; Verdict::ALL.len()],
    /// In the order of [`NodeKind::ALL`] and [`STATES`].
    nodes: [[u64; STATES.len()]; NodeKind::ALL.len()],
}

impl Summary {
    /// Counts links and nodes; `None` if nothing was evaluated, or the latest sweep has no results.
    pub fn new(observation: &Observation) -> Option<Self> {
        let snapshot = observation.snapshot.as_ref()?;
        let needed = [Collector::Discovery, Collector::Perfmgt];
        let judged = !observation.assessment.ports.is_empty();
        if !judged || !needed.iter().all(|&it| observation.stats.success(it)) {
            return None;
        }
        let mut summary = Summary {
            fabric: observation.fabric.clone(),
            kind: snapshot.fabric.kind,
            ended: snapshot.anchor.wall_of(snapshot.ended),
            limit: observation.stale_after(),
            links: Default::default(),
            nodes: Default::default(),
        };
        for link in &observation.assessment.links {
            summary.links[link.verdict as usize] += 1;
        }
        let fabric = &snapshot.fabric;
        for node in fabric.node_indexes() {
            let kind = fabric.node(node).identity.kind;
            summary.nodes[kind as usize][usize::from(!snapshot.is_up(node))] += 1;
        }
        Some(summary)
    }

    /// A sweep that ended in the future is recent: the clock has been set back since.
    fn is_recent(&self, now: SystemTime) -> bool {
        !now.duration_since(self.ended).is_ok_and(|age| age > self.limit)
    }
}

/// Renders the fabrics whose sweep is recent.
pub(in crate::metrics) fn render(summaries: &[Summary], now: SystemTime) -> Vec<Part<Vec<u8>>> {
    let mut recent = Labeled::default();
    for summary in summaries.iter().filter(|it| it.is_recent(now)) {
        recent.push(summary, |labels| {
            labels.push("fabric", &summary.fabric);
        });
    }
    let mut parts = Parts::default();
    parts.each(SUMMARIES, &recent);
    parts.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use exposition::Format;
    use ib_fabric::{NodeIndex, Snapshot};
    use ib_health::Assessment;
    use ib_health::testing::{fine, snapshot};

    /// An evaluated fabric whose sweep was at the beginning of 1970.
    fn swept(change: impl FnOnce(&mut Observation)) -> Observation {
        let snapshot = snapshot();
        let assessment = fine(&snapshot);
        let mut observation = Observation {
            fabric: "f".into(),
            interval: Duration::from_secs(15),
            snapshot: Some(snapshot.into()),
            assessment,
            ..Observation::default()
        };
        for collector in [Collector::Discovery, Collector::Perfmgt] {
            observation.stats.set_success(collector, true);
        }
        change(&mut observation);
        observation
    }

    fn text(summaries: &[Summary], now: SystemTime, format: Format) -> String {
        let mut text = Vec::new();
        for part in &render(summaries, now) {
            part.write(&mut text, format);
        }
        String::from_utf8(text).unwrap()
    }

    /// The samples at this age of the sweep.
    fn after(age: Duration, observation: &Observation) -> Vec<String> {
        let snapshot: &Snapshot = observation.snapshot.as_ref().unwrap();
        let now = snapshot.anchor.wall_of(snapshot.ended) + age;
        let summaries: Vec<Summary> = Summary::new(observation).into_iter().collect();
        let text = text(&summaries, now, Format::Text);
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    fn sum(lines: &[String], name: &str) -> u64 {
        let of_family = lines.iter().filter(|line| line.starts_with(&format!("{name}{{")));
        of_family.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    #[test]
    fn every_verdict_and_every_state_has_a_count() {
        let observation = swept(|it| {
            it.assessment.links[0].verdict = Verdict::Bad;
            std::sync::Arc::make_mut(it.snapshot.as_mut().unwrap()).silent[NodeIndex(1)] = true;
        });
        let served = after(Duration::ZERO, &observation);
        let links =
            [("ok", 1), ("unknown", 0), ("watch", 0), ("bad", 1)].map(|(verdict, count)| {
                format!("infiniband_fabric_links{{fabric=\"f\",verdict=\"{verdict}\"}} {count}")
            });
        assert_eq!(served[..4], links);
        assert_eq!(served.len(), 4 + 8);
        for (kind, up, down) in
            [("ca", 1, 1), ("switch", 1, 0), ("router", 0, 0), ("aggregation_node", 0, 0)]
        {
            for (state, count) in [("up", up), ("down", down)] {
                let line = format!(
                    "infiniband_fabric_nodes{{fabric=\"f\",node_type=\"{kind}\",state=\"{state}\"}} {count}"
                );
                assert!(served.contains(&line), "{line}\n{served:#?}");
            }
        }
    }

    #[test]
    fn counts_add_up_to_judged_links_and_known_nodes() {
        for verdict in Verdict::ALL {
            let observation = swept(|it| {
                it.assessment.links.iter_mut().for_each(|link| link.verdict = verdict);
            });
            let served = after(Duration::ZERO, &observation);
            let links = observation.assessment.links.len() as u64;
            let nodes = observation.snapshot.as_ref().unwrap().fabric.nodes.len() as u64;
            assert_eq!(sum(&served, "infiniband_fabric_links"), links, "{verdict:?}");
            assert_eq!(sum(&served, "infiniband_fabric_nodes"), nodes);
            assert!(links > 1 && nodes > 2);
        }
    }

    #[test]
    fn summary_without_results_is_absent() {
        let blind = |collector| swept(move |it| it.stats.set_success(collector, false));
        for (observation, why) in [
            (swept(|it| it.assessment = Assessment::default()), "nothing was judged"),
            (blind(Collector::Discovery), "the discovery found no link"),
            (blind(Collector::Perfmgt), "no counter was read"),
        ] {
            assert!(after(Duration::ZERO, &observation).is_empty(), "{why}");
        }
        assert!(Summary::new(&Observation::default()).is_none(), "there was no sweep");
        // No subnet manager responds: the results of the sweep are valid nevertheless.
        assert!(!after(Duration::ZERO, &blind(Collector::Subnet)).is_empty());
    }

    #[test]
    fn summary_is_absent_after_four_intervals_and_a_minute() {
        let observation = swept(|_| ());
        assert_eq!(after(Duration::from_secs(120), &observation).len(), 12);
        assert!(after(Duration::from_secs(121), &observation).is_empty());
        // The time is before the sweep only if the clock was set back.
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(3600);
        let summaries = [Summary::new(&observation).unwrap()];
        assert!(!text(&summaries, before, Format::Text).is_empty());
    }

    #[test]
    fn sweeps_that_take_longer_than_the_interval_are_recent_for_longer() {
        let observation = swept(|it| {
            let snapshot = std::sync::Arc::make_mut(it.snapshot.as_mut().unwrap());
            // 40 s of sweep, and 20 s of discovery before.
            snapshot.ended = snapshot.began + Duration::from_secs(40);
            let discovery = Duration::from_secs(20);
            it.stats.discovery = Some((snapshot.anchor, snapshot.anchor.moment + discovery));
        });
        assert_eq!(after(Duration::from_secs(4 * 60 + 60), &observation).len(), 12);
        assert!(after(Duration::from_secs(4 * 60 + 61), &observation).is_empty());
    }

    #[test]
    fn fabrics_share_one_header() {
        let (one, other) = (swept(|_| ()), swept(|it| it.fabric = "g".into()));
        let summaries = [one, other].map(|it| Summary::new(&it).unwrap());
        let text = text(&summaries, SystemTime::UNIX_EPOCH, Format::OpenMetrics);
        assert_eq!(text.matches("# TYPE").count(), 2);
        assert_eq!(text.matches("fabric=\"g\"").count(), 12);
    }
}
