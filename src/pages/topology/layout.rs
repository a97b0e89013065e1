//! The layout of the topology picture: a row of boxes for each level, and lines between them. In a row that would
//! be too wide to read, several switches share a box.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::api::model::topology::{CongestionCounts, Suspect, Switch, Topology};
use crate::api::model::{Verdicts, verdict_from};
use ib_health::Verdict;

/// The most boxes in a row: their names can still be read.
pub(super) const MAX_BOXES: usize = 20;

/// The rows, the highest level first, and the lines between their boxes.
#[derive(Debug, Default)]
pub(super) struct Layout<'a> {
    pub(super) rows: Vec<BoxRow>,
    pub(super) lines: Vec<Line<'a>>,
}

/// The boxes of a level.
#[derive(Debug)]
pub(super) struct BoxRow {
    pub(super) level: Option<u8>,
    pub(super) boxes: Vec<SwitchBox>,
}

/// One switch or several.
#[derive(Debug)]
pub(super) struct SwitchBox {
    /// Their places in the list of switches.
    pub(super) members: Range<usize>,
    /// The number of their hosts.
    pub(super) hosts: usize,
    /// The verdicts of the links to these.
    pub(super) to_hosts: Verdicts,
    /// The worst verdict of all their links.
    pub(super) worst: Option<Verdict>,
}

/// The links between two boxes.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// The row of each box and its place in the row; the first is in the higher row, or left of the other.
    pub(super) ends: [(usize, usize); 2],
    pub(super) verdicts: Verdicts,
    /// Some of the links that are watch or bad, the worst first.
    pub(super) suspects: Vec<&'a Suspect>,
    pub(super) congestion: CongestionCounts,
}

impl<'a> Layout<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        let switches = &topology.switches;
        // The switches are in the order of levels.
        let levels = runs(0..switches.len(), |place| switches[place].level).into_iter().rev();
        let rows: Vec<BoxRow> = levels
            .map(|members| BoxRow {
                level: switches[members.start].level,
                boxes: boxes(switches, members),
            })
            .collect();
        let mut box_of = vec![(0, 0); switches.len()];
        for (row, of_row) in rows.iter().enumerate() {
            for (place, it) in of_row.boxes.iter().enumerate() {
                box_of[it.members.clone()].fill((row, place));
            }
        }
        let mut lines: BTreeMap<[(usize, usize); 2], Line<'a>> = BTreeMap::new();
        for bundle in &topology.bundles {
            let (Some(&a), Some(&b)) = (box_of.get(bundle.a), box_of.get(bundle.b)) else {
                continue;
            };
            // The color of a box shows the links within it.
            if a == b {
                continue;
            }
            let ends = [a.min(b), a.max(b)];
            let line = lines.entry(ends).or_insert_with(|| Line {
                ends,
                verdicts: Verdicts::default(),
                suspects: Vec::new(),
                congestion: CongestionCounts::default(),
            });
            line.congestion = line.congestion.and(&bundle.congestion);
            line.verdicts = line.verdicts.and(bundle.verdicts);
            line.suspects.extend(&bundle.suspects);
        }
        let mut lines: Vec<Line<'a>> = lines.into_values().collect();
        for line in &mut lines {
            line.suspects.sort_by_key(|suspect| std::cmp::Reverse(verdict_from(&suspect.verdict)));
        }
        // The worst are drawn last, above the others.
        lines.sort_by_key(|line| line.verdicts.worst());
        Layout { rows, lines }
    }

    /// Whether a line leads from a row to itself.
    pub(super) fn has_arcs(&self, row: usize) -> bool {
        self.lines.iter().any(|line| line.ends.iter().all(|end| end.0 == row))
    }
}

/// Splits a range into runs of neighbors with the same key.
fn runs<K: PartialEq>(all: Range<usize>, key: impl Fn(usize) -> K) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for place in all {
        match runs.last_mut() {
            Some(run) if key(run.start) == key(place) => run.end = place + 1,
            _ => runs.push(place..place + 1),
        }
    }
    runs
}

/// The boxes of a level: one for each switch, or for each group, or for as many neighbors as needed.
fn boxes(switches: &[Switch], of_level: Range<usize>) -> Vec<SwitchBox> {
    let single: Vec<_> = of_level.clone().map(|place| place..place + 1).collect();
    let groups = runs(of_level, |place| switches[place].group);
    let units = if single.len() > MAX_BOXES && groups.len() > 1 { groups } else { single };
    let per_box = units.len().div_ceil(MAX_BOXES).max(1);
    let boxes = units.chunks(per_box).filter_map(|units| {
        let members = units.first()?.start..units.last()?.end;
        let of = &switches[members.clone()];
        Some(SwitchBox {
            members,
            hosts: of.iter().map(|switch| switch.hosts).sum(),
            to_hosts: of.iter().fold(Verdicts::default(), |sum, it| sum.and(it.to_hosts)),
            worst: of.iter().filter_map(|it| verdict_from(it.worst.as_deref()?)).max(),
        })
    });
    boxes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::topology::Bundle;

    fn switches(levels: &[(u8, usize, usize)]) -> Vec<Switch> {
        let of_level = |&(level, count, a_group): &(u8, usize, usize)| {
            (0..count).map(move |place| Switch {
                level: Some(level),
                group: place / a_group,
                hosts: if level == 1 { 4 } else { 0 },
                worst: Some("ok".into()),
                ..Switch::default()
            })
        };
        levels.iter().flat_map(of_level).collect()
    }

    #[test]
    fn wide_rows_put_several_switches_in_a_box() {
        for (levels, rows, shares) in [
            (&[(1, 4, 9), (2, 2, 9)][..], &[2, 4][..], false),
            (&[(1, 20, 99), (2, 20, 99)], &[20, 20], false),
            // No groups: neighbors share a box.
            (&[(1, 200, 999), (2, 16, 99)], &[16, 20], true),
            // Pods of 32, planes of 3: two planes share a box.
            (&[(1, 224, 32), (2, 224, 32), (3, 96, 3)], &[16, 7, 7], true),
            (&[(1, 500, 999)], &[20], true),
            (&[], &[], false),
        ] {
            let topology = Topology { switches: switches(levels), ..Topology::default() };
            let layout = Layout::new(&topology);
            let wide: Vec<usize> = layout.rows.iter().map(|row| row.boxes.len()).collect();
            let boxes = layout.rows.iter().flat_map(|row| &row.boxes);
            let members: Vec<usize> = boxes.map(|it| it.members.len()).collect();
            let is_shared = members.iter().any(|members| *members > 1);
            assert_eq!((wide.as_slice(), is_shared), (rows, shares), "{levels:?}");
            assert_eq!(members.iter().sum::<usize>(), topology.switches.len());
        }
    }

    #[test]
    fn links_between_two_boxes_are_one_line() {
        let suspect = Suspect { verdict: "bad".into(), ..Suspect::default() };
        let bundle = |a, b, bad| Bundle {
            a,
            b,
            verdicts: Verdicts { ok: 2, bad, ..Verdicts::default() },
            suspects: vec![suspect.clone(); bad],
            ..Bundle::default()
        };
        let topology = Topology {
            switches: switches(&[(1, 40, 20), (2, 2, 9)]),
            bundles: vec![bundle(0, 40, 0), bundle(1, 40, 1), bundle(0, 1, 0), bundle(0, 25, 0)],
            ..Topology::default()
        };
        let layout = Layout::new(&topology);
        let lines: Vec<_> = layout
            .lines
            .iter()
            .map(|line| (line.ends, line.verdicts.count(), line.suspects.len()))
            .collect();
        // No line within the box of the first 20; the worst line comes last.
        assert_eq!(lines, [([(1, 0), (1, 1)], 2, 0), ([(0, 0), (1, 0)], 5, 1)]);
        assert!(layout.has_arcs(1) && !layout.has_arcs(0));
    }
}
