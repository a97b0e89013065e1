//! Some of the cables, the worst first, found without telling all: of 30,000 a hundred are shown.

use std::sync::Arc;

use fabric_observation::Observation;
use ib_fabric::topology::Link as Cable;
use ib_fabric::{Node, NodeIndex, PortIndex, Snapshot};
use ib_health::bit_errors::BerWindow;
use ib_health::{Assessment, LinkAssessment, Verdict};
use ib_mad::Reading;

use super::links::{Of, all};
use super::model::{Link, Rank};

/// Which cables are wanted. What is empty wants all.
#[derive(Clone, Debug, Default)]
pub struct Wanted<'a> {
    /// Those of this fabric.
    pub fabric: &'a str,
    /// Those with one of these verdicts.
    pub verdicts: &'a [Verdict],
    /// Those at whose ends a node has this in its name, in whatever case.
    pub text: &'a str,
}

/// Some of the cables that are wanted.
#[derive(Clone, Debug, Default)]
pub struct Ranked {
    /// How many are wanted.
    pub found: usize,
    /// Those of them that were asked for, the worst first.
    pub links: Vec<Link>,
}

/// Those of the wanted cables that come after so many, and no more than some.
pub fn ranked(
    fabrics: &[Arc<Observation>],
    wanted: &Wanted<'_>,
    after: usize,
    most: usize,
) -> Ranked {
    let mut standing = Vec::new();
    for observation in fabrics {
        let Some(snapshot) = &observation.snapshot else { continue };
        if !wanted.fabric.is_empty() && wanted.fabric != observation.fabric {
            continue;
        }
        let named = named(snapshot, wanted.text);
        for (cable, judged) in all(observation) {
            let verdict = judged.map_or(Verdict::Unknown, |link| link.verdict);
            let is_named = |port: PortIndex| {
                let NodeIndex(node) = snapshot.fabric.port(port).node;
                named.as_ref().is_none_or(|named| named[node as usize])
            };
            let is_wanted = wanted.verdicts.is_empty() || wanted.verdicts.contains(&verdict);
            if is_wanted && (is_named(cable.0) || is_named(cable.1)) {
                let rank = rank(verdict, cable, snapshot, &observation.assessment);
                standing.push(Standing { rank, observation, snapshot, cable, judged });
            }
        }
    }
    let found = standing.len();
    let end = after.saturating_add(most).min(found);
    // Nobody asks in what order the rest is.
    if end < found {
        standing.select_nth_unstable_by(end, Standing::order);
    }
    standing.truncate(end);
    standing.sort_by(Standing::order);
    let links = standing.iter().skip(after).filter_map(Standing::told).collect();
    Ranked { found, links }
}

/// A cable among others.
struct Standing<'a> {
    rank: Rank,
    observation: &'a Observation,
    snapshot: &'a Snapshot,
    cable: Cable,
    judged: Option<&'a LinkAssessment>,
}

impl Standing<'_> {
    /// The worse first; among equals by name, as `links` does.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let ends = || (self.end(self.cable.0), self.end(self.cable.1));
        let others = || (other.end(other.cable.0), other.end(other.cable.1));
        let fabrics = || self.observation.fabric.cmp(&other.observation.fabric);
        other.rank.cmp(&self.rank).then_with(fabrics).then_with(|| ends().cmp(&others()))
    }

    fn end(&self, port: PortIndex) -> (&str, u8) {
        let fabric = &self.snapshot.fabric;
        (&fabric.node_of(port).name, fabric.port(port).number)
    }

    fn told(&self) -> Option<Link> {
        Some(Of::new(self.observation)?.link(self.cable, self.judged))
    }
}

/// By node, whether its name has a text in it; nothing if there is no text.
fn named(snapshot: &Snapshot, text: &str) -> Option<Vec<bool>> {
    let text = text.trim().to_lowercase();
    let has = |node: &Node| node.name.to_lowercase().contains(&text);
    (!text.is_empty()).then(|| snapshot.fabric.nodes.iter().map(has).collect())
}

/// The same as [`Link::rank`], from what the API's link would be made from.
fn rank(verdict: Verdict, cable: Cable, of: &Snapshot, assessment: &Assessment) -> Rank {
    let Cable(near, far) = cable;
    let ratio = |port: PortIndex| {
        let errors = assessment.ports.get(port.0 as usize).map(|port| &port.bit_errors);
        let windows = errors.into_iter().flat_map(|errors| {
            let watched = |window: &BerWindow| !errors.windows[*window as usize].span().is_zero();
            let watched = BerWindow::ALL.into_iter().filter(watched);
            watched.filter_map(|window| errors.ratio(window))
        });
        windows.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max)
    };
    let errors = |port| of.reading(port).map_or(0, Reading::link_errors);
    Rank::new(verdict, ratio(near).max(ratio(far)), errors(near).saturating_add(errors(far)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::links::{Ask, links};
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

    /// What is shown in a part is in the order of what is told as a whole.
    #[test]
    fn a_rank_is_the_same_from_the_board_and_from_what_is_told() {
        let board = board();
        let snapshot = board[0].snapshot.as_ref().unwrap();
        let told = &links(&board, &Ask::default()).fabrics[0].links;
        let mut ranks = Vec::new();
        for ((cable, judged), link) in all(&board[0]).zip(told) {
            let verdict = judged.unwrap().verdict;
            let rank = rank(verdict, cable, snapshot, &board[0].assessment);
            assert_eq!(rank, link.rank());
            ranks.push(rank);
        }
        assert_eq!((ranks[0].suspicion.0, ranks[0].errors), (Verdict::Watch, 17));
        assert!(ranks[0].ratio > 0.0 && ranks[0] > ranks[1]);
    }

    #[test]
    fn what_is_wanted_is_counted_and_told_in_parts() {
        let board = board();
        let told = |wanted: &Wanted<'_>, after, most| {
            let ranked = ranked(&board, wanted, after, most);
            let names = ranked.links.iter().map(|link| link.ends[1].node.clone());
            (ranked.found, names.collect::<Vec<_>>())
        };
        let all = Wanted::default();
        let names = told(&all, 0, 9).1;
        assert_eq!(told(&all, 0, 9).0, names.len());
        assert_eq!(told(&all, 0, 1), (2, names[..1].to_vec()));
        assert_eq!(told(&all, 1, 1), (2, names[1..].to_vec()));
        assert_eq!(told(&all, 7, 1), (2, vec![]));
        assert_eq!(told(&Wanted { verdicts: &[Verdict::Watch], ..all.clone() }, 0, 9).0, 1);
        assert_eq!(told(&Wanted { text: "HOST-A", ..all.clone() }, 0, 9).0, 1);
        assert_eq!(told(&Wanted { text: "nobody", ..all.clone() }, 0, 9).0, 0);
        assert_eq!(told(&Wanted { fabric: "g", ..all }, 0, 9).0, 0);
    }
}
