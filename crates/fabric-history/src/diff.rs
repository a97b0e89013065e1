//! What changed on every cable between two times.

use ib_mad::PortKey;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use display_text::plural;
use ib_fabric::topology::LinkId;
use ib_health::Verdict;

use super::EventKind;
use super::model::{Cable, ErrorDelta, FabricState, Port, Sum, Window};
use super::source::{Answer, EventFilter, Source};

/// What changed on a cable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkDiff {
    /// Its ends; only one if the other is not known.
    pub ends: Vec<Port>,
    /// The cable at the first time, and at the second; `None` if it was absent or not known.
    pub cable: [Option<Cable>; 2],
    /// Whether the fabric was known at each time: otherwise an absent cable says nothing.
    pub known: [bool; 2],
    /// The number of events by kind; of flaps, how often the link went down.
    pub events: BTreeMap<String, usize>,
    /// The increases of each end's error counters, in the order of the ends.
    pub errors: Vec<Vec<Sum>>,
}

impl LinkDiff {
    /// The state of a cable about which nothing is known yet.
    fn of(ends: Vec<Port>) -> Self {
        let (cable, known, errors) = ([None, None], [false; 2], vec![Vec::new(); ends.len()]);
        LinkDiff { ends, cable, known, events: BTreeMap::new(), errors }
    }

    /// The labels of its ends.
    pub fn label(&self) -> String {
        self.ends.iter().map(Port::label).collect::<Vec<_>>().join(" – ")
    }

    /// All errors of both ends.
    pub fn sum(&self) -> u128 {
        self.errors.iter().flatten().map(|sum| u128::from(sum.by)).sum()
    }

    /// The changes as text.
    pub fn changes(&self) -> Vec<String> {
        let mut changes = Vec::new();
        match &self.cable {
            [Some(was), Some(is)] => {
                let [from, to] = [was, is].map(|cable| Verdict::word(cable.verdict.label()));
                if from != to {
                    changes.push(format!("verdict {from} -> {to}"));
                } else if is.verdict >= Verdict::Watch {
                    changes.push(format!("verdict unchanged: {to}"));
                }
                if let (Some(was), Some(is)) = (&was.rate, &is.rate)
                    && was != is
                {
                    changes.push(format!("rate {was} -> {is}"));
                }
                match (was.up, is.up) {
                    (Some(true), Some(false)) => changes.push("link down".into()),
                    (Some(false), Some(true)) => changes.push("link up".into()),
                    (_, Some(false)) => changes.push("link still down".into()),
                    _ => {}
                }
            }
            [Some(_), None] if self.known[1] => changes.push("removed".into()),
            [None, Some(_)] if self.known[0] => changes.push("new".into()),
            [Some(cable), None] | [None, Some(cable)] if cable.verdict >= Verdict::Watch => {
                let verdict = Verdict::word(cable.verdict.label());
                let other = if self.cable[0].is_some() { "later" } else { "before" };
                changes.push(format!("verdict {verdict} ({other}: not recorded)"));
            }
            _ => {}
        }
        let has_verdict = changes.iter().any(|change| change.starts_with("verdict"));
        for (kind, count) in &self.events {
            if kind == EventKind::Flap.label() {
                changes.push(plural(*count, kind));
            } else if kind != EventKind::VerdictChanged.label() || !has_verdict {
                changes.push(plural(*count, &format!("{kind} event")));
            }
        }
        changes
    }

    /// The verdict at the second time, the number of events, and the number of errors.
    fn rank(&self) -> (Verdict, usize, u128) {
        let [was, is] = &self.cable;
        let now = is.as_ref().map_or(Verdict::Ok, |cable| cable.verdict);
        // Unknown ranks as ok.
        let now = if now == Verdict::Unknown { Verdict::Ok } else { now };
        let gone = usize::from(self.known == [true; 2] && was.is_some() != is.is_some());
        (now, self.events.values().fold(gone, |sum, count| sum.saturating_add(*count)), self.sum())
    }
}

/// The cables on which anything changed in a window, the worst first.
pub fn diff_links(source: &dyn Source, window: Window) -> Answer<Vec<LinkDiff>> {
    let events = source.events(&EventFilter::all(window))?;
    let (before, after) = (source.fabrics(window.from)?, source.fabrics(window.to)?);
    let mut links: BTreeMap<Key, LinkDiff> = BTreeMap::new();
    let mut loose: Vec<LinkDiff> = Vec::new();
    for ErrorDelta { port, peer, sums } in source.error_deltas(window)? {
        let Some(peer) = peer else {
            loose.push(LinkDiff { errors: vec![sums], ..LinkDiff::of(vec![port]) });
            continue;
        };
        let diff = entry(&mut links, [port.clone(), peer]);
        let end = diff.ends.iter().position(|end| end.is_same(&port)).unwrap_or_default();
        if let Some(errors) = diff.errors.get_mut(end) {
            *errors = sums;
        }
    }
    let mut cables: [BTreeMap<Key, Cable>; 2] = [by_link(&before), by_link(&after)];
    for event in &events {
        let Some(link) = event.link else { continue };
        let key = (event.fabric.clone(), link);
        let known = || cables.iter().rev().find_map(|cables| cables.get(&key));
        let ends = known().map_or_else(|| ends_of(&event.fabric, link), |cable| cable.ends.clone());
        let count =
            event.detail["losses"].as_u64().filter(|_| event.kind == EventKind::Flap.label());
        let count = usize::try_from(count.unwrap_or(1)).unwrap_or(usize::MAX);
        let counted = entry(&mut links, ends).events.entry(event.kind.clone()).or_default();
        *counted = counted.saturating_add(count);
    }
    // A fabric that was not known at one of the times says nothing about which cables came and went.
    let knows =
        |fabrics: &[FabricState], name: &str| fabrics.iter().any(|then| then.fabric == name);
    let ids: BTreeSet<Key> = cables.iter().flat_map(BTreeMap::keys).cloned().collect();
    for id in ids {
        let [was, is] = cables.each_mut().map(|cables| cables.remove(&id));
        let Some(either) = was.as_ref().or(is.as_ref()) else { continue };
        let fabric = &either.ends[0].fabric;
        let was_known = [knows(&before, fabric), knows(&after, fabric)];
        let moved = was != is && was_known == [true; 2];
        let is_bad = is.as_ref().is_some_and(|cable| cable.verdict >= Verdict::Watch);
        if moved || is_bad || links.contains_key(&id) {
            let ends = either.ends.clone();
            let diff = entry(&mut links, ends);
            (diff.cable, diff.known) = ([was, is], was_known);
        }
    }
    let mut all: Vec<LinkDiff> = links.into_values().chain(loose).collect();
    all.sort_by(|a, b| b.rank().cmp(&a.rank()).then_with(|| a.ends.cmp(&b.ends)));
    Ok(all)
}

/// A cable, and the fabric that contains it: a subnet that is monitored by two devices is two fabrics.
type Key = (String, LinkId);

fn entry(links: &mut BTreeMap<Key, LinkDiff>, mut ends: [Port; 2]) -> &mut LinkDiff {
    ends.sort_by_key(Port::end);
    let id = LinkId::between(ends[0].end(), ends[1].end());
    links.entry((ends[0].fabric.clone(), id)).or_insert_with(|| LinkDiff::of(ends.into()))
}

fn by_link(fabrics: &[FabricState]) -> BTreeMap<Key, Cable> {
    let cables = fabrics.iter().flat_map(|then| &then.cables);
    cables.map(|cable| ((cable.ends[0].fabric.clone(), cable.link()), cable.clone())).collect()
}

/// The ends of a cable of which only the id is known.
fn ends_of(fabric: &str, link: LinkId) -> [Port; 2] {
    link.ends().map(|PortKey { guid, number }| Port {
        fabric: fabric.into(),
        guid,
        port: number,
        node: guid.to_string(),
        host: None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::testing::Canned;

    /// One event has all losses of a sweep.
    #[test]
    fn flaps_are_counted_and_not_their_events() {
        let [a, b] = ["aaaa", "bbbb"].map(|node| Canned::port("fab", node, 1));
        let id = LinkId::between(a.end(), b.end());
        let mut source = Canned::default();
        for losses in [2, 3] {
            let mut flap = Canned::event(EventKind::Flap, Some(id), &a);
            flap.detail = serde_json::json!({ "losses": losses });
            source.events.push(flap);
        }
        source.events.push(Canned::event(EventKind::LinkDown, Some(id), &a));
        let window = Window { from: SystemTime::UNIX_EPOCH, to: SystemTime::UNIX_EPOCH };
        let diffs = diff_links(&source, window).unwrap();
        assert_eq!(diffs[0].changes(), ["5 flaps", "1 link_down event"]);
    }

    /// A subnet that is monitored by two devices has each of its cables in two fabrics.
    #[test]
    fn same_guids_in_two_fabrics_are_kept_apart() {
        let mut source = Canned::default();
        for (fabric, by) in [("one", 3), ("two", 5)] {
            let [a, b] = ["aaaa", "bbbb"].map(|node| Canned::port(fabric, node, 1));
            let id = LinkId::between(a.end(), b.end());
            source.events.push(Canned::event(EventKind::Flap, Some(id), &a));
            source.moved.push(Canned::counted(&a, Some(&b), by));
            source.moved.push(Canned::counted(&b, Some(&a), 10 * by));
        }
        let window = Window { from: SystemTime::UNIX_EPOCH, to: SystemTime::UNIX_EPOCH };
        let diffs = diff_links(&source, window).unwrap();
        assert_eq!(diffs.len(), 2, "{diffs:?}");
        for (diff, fabric, by) in [(&diffs[0], "two", 5), (&diffs[1], "one", 3)] {
            assert!(diff.ends.iter().all(|end| end.fabric == fabric), "{diff:?}");
            assert_eq!(diff.events["flap"], 1, "{diff:?}");
            let errors: Vec<u64> = diff.errors.iter().map(|sums| sums[0].by).collect();
            assert_eq!(errors, [by, 10 * by], "{diff:?}");
        }
    }
}
