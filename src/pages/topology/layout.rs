//! Where the switches of a picture stand: in rows by their level, and where they are too many, several in
//! one box.

use std::collections::BTreeMap;

use crate::api::model::Verdicts;
use crate::api::model::topology::{Congested, Suspect, Switch, Topology};
use ib_health::Verdict;

/// How many boxes a row has at the most: names beneath one another's neighbours can be read so.
pub(super) const WIDEST: usize = 20;

/// The rows, the highest level first, and what is between their boxes.
#[derive(Debug, Default)]
pub(super) struct Layout<'a> {
    pub(super) rows: Vec<Row>,
    pub(super) lines: Vec<Line<'a>>,
    /// Whether a box stands for several switches.
    pub(super) is_shrunk: bool,
}

/// A level's boxes.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) level: Option<u8>,
    pub(super) boxes: Vec<Cell>,
}

/// A switch, or several.
#[derive(Debug)]
pub(super) struct Cell {
    /// Their places in the list of switches.
    pub(super) members: std::ops::Range<usize>,
    /// How many hosts they have.
    pub(super) hosts: usize,
    /// What the cables to those come to.
    pub(super) to_hosts: Verdicts,
    /// The worst of all their cables.
    pub(super) worst: Option<Verdict>,
}

/// The cables between two boxes.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Row and place in it of each box; the first is in the higher row, or left of the other.
    pub(super) ends: [(usize, usize); 2],
    pub(super) verdicts: Verdicts,
    /// Some of those that want a look, the worst first.
    pub(super) suspects: Vec<&'a Suspect>,
    pub(super) congestion: Congested,
}

/// The worst of a switch's cables, read back.
pub(super) fn worst(label: Option<&str>) -> Option<Verdict> {
    Verdict::ALL.into_iter().find(|verdict| Some(verdict.label()) == label)
}

impl<'a> Layout<'a> {
    pub(super) fn of(topology: &'a Topology) -> Self {
        let switches = &topology.switches;
        let mut rows = Vec::new();
        // They are in the order of levels.
        for of_level in runs(0..switches.len(), |place| switches[place].level) {
            let level = switches[of_level.start].level;
            let boxes = boxes(switches, of_level);
            rows.push(Row { level, boxes });
        }
        rows.reverse();
        let mut box_of = vec![(0, 0); switches.len()];
        for (row, of_row) in rows.iter().enumerate() {
            for (place, cell) in of_row.boxes.iter().enumerate() {
                box_of[cell.members.clone()].fill((row, place));
            }
        }
        let mut lines: BTreeMap<[(usize, usize); 2], Line<'a>> = BTreeMap::new();
        for bundle in &topology.bundles {
            let (Some(&a), Some(&b)) = (box_of.get(bundle.a), box_of.get(bundle.b)) else {
                continue;
            };
            let ends = [a.min(b), a.max(b)];
            // What is within a box is told by its colour.
            if a == b {
                continue;
            }
            let line = lines.entry(ends).or_insert_with(|| Line {
                ends,
                verdicts: Verdicts::default(),
                suspects: Vec::new(),
                congestion: Congested::default(),
            });
            line.congestion = line.congestion.and(&bundle.congestion);
            line.verdicts = line.verdicts.and(bundle.verdicts);
            line.suspects.extend(&bundle.suspects);
        }
        let mut lines: Vec<Line<'a>> = lines.into_values().collect();
        for line in &mut lines {
            line.suspects.sort_by_key(|suspect| std::cmp::Reverse(worst(Some(&suspect.verdict))));
        }
        // The worst are drawn last, above the others.
        lines.sort_by_key(|line| line.verdicts.worst());
        let is_shrunk = rows.iter().flat_map(|row| &row.boxes).any(|cell| cell.members.len() > 1);
        Layout { rows, lines, is_shrunk }
    }

    /// Whether any cable leads from a row to itself.
    pub(super) fn has_arcs(&self, row: usize) -> bool {
        self.lines.iter().any(|line| line.ends.iter().all(|end| end.0 == row))
    }
}

/// Spans of neighbours that have something in common.
fn runs<K: PartialEq>(
    all: std::ops::Range<usize>,
    key: impl Fn(usize) -> K,
) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for place in all {
        match runs.last_mut() {
            Some(run) if key(run.start) == key(place) => run.end = place + 1,
            _ => runs.push(place..place + 1),
        }
    }
    runs
}

/// A level's switches: each by itself, else group by group, else so many neighbours together as must be.
fn boxes(switches: &[Switch], of_level: std::ops::Range<usize>) -> Vec<Cell> {
    let single: Vec<_> = of_level.clone().map(|place| place..place + 1).collect();
    let groups = runs(of_level, |place| switches[place].group);
    let units = if single.len() > WIDEST && groups.len() > 1 { groups } else { single };
    let together = units.len().div_ceil(WIDEST).max(1);
    let cells = units.chunks(together).filter_map(|units| {
        let members = units.first()?.start..units.last()?.end;
        let of = &switches[members.clone()];
        let to_hosts = of.iter().fold(Verdicts::default(), |sum, it| sum.and(it.to_hosts));
        Some(Cell {
            members,
            hosts: of.iter().map(|switch| switch.hosts).sum(),
            to_hosts,
            worst: of.iter().filter_map(|switch| worst(switch.worst.as_deref())).max(),
        })
    });
    cells.collect()
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
    fn a_row_is_never_wider_than_can_be_read() {
        for (levels, rows, shrunk) in [
            (&[(1, 4, 9), (2, 2, 9)][..], &[2, 4][..], false),
            (&[(1, 20, 99), (2, 20, 99)], &[20, 20], false),
            // No groups: neighbours stand together.
            (&[(1, 200, 999), (2, 16, 99)], &[16, 20], true),
            // Pods of 32, planes of 3: of the planes, two stand together.
            (&[(1, 224, 32), (2, 224, 32), (3, 96, 3)], &[16, 7, 7], true),
            (&[(1, 500, 999)], &[20], true),
            (&[], &[], false),
        ] {
            let topology = Topology { switches: switches(levels), ..Topology::default() };
            let layout = Layout::of(&topology);
            let wide: Vec<usize> = layout.rows.iter().map(|row| row.boxes.len()).collect();
            assert_eq!((wide.as_slice(), layout.is_shrunk), (rows, shrunk), "{levels:?}");
            let all: usize =
                layout.rows.iter().flat_map(|row| &row.boxes).map(|cell| cell.members.len()).sum();
            assert_eq!(all, topology.switches.len());
        }
    }

    #[test]
    fn cables_between_boxes_are_one_line_with_the_worst_of_them() {
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
        let layout = Layout::of(&topology);
        let told: Vec<_> = layout
            .lines
            .iter()
            .map(|line| (line.ends, line.verdicts.count(), line.suspects.len()))
            .collect();
        // Within the group of the first 20 nothing is drawn; the worst comes last.
        assert_eq!(told, [([(1, 0), (1, 1)], 2, 0), ([(0, 0), (1, 0)], 5, 1)]);
        assert!(layout.has_arcs(1) && !layout.has_arcs(0));
    }
}
