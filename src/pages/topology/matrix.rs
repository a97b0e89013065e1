//! Which switch has a cable to which: a matrix for each part of two levels that cables join. Readable where
//! lines are not: thousands of cables are a few squares of dots, and a hole or a fault in one is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use maud::{Markup, html};

use crate::api::model::topology::{Bundle, Topology};
use crate::pages::address;
use ib_health::Verdict;
use ib_mad::Guid;
use ib_mad::label::abbreviate;

use super::picture;

/// A matrix: which of the lower switches (rows) leads to which of the upper ones (columns).
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    pub(super) rows: Vec<usize>,
    pub(super) columns: Vec<usize>,
    /// Row and column, and what is there; between switches of one level, each pair is there twice.
    pub(super) cells: Vec<(usize, usize, &'a Bundle)>,
}

/// How wide a column's or a row's letters are, at a size of 9.
const LETTER: f64 = 5.4;

/// The longest name beside a matrix.
const LONGEST: usize = 18;

/// The matrices of two levels: each of those that no cable joins.
type OfLevels<'a> = ((Option<u8>, Option<u8>), Vec<Matrix<'a>>);

/// All matrices, those of the lowest levels first.
pub(super) fn of(topology: &Topology) -> Vec<OfLevels<'_>> {
    let level = |place: usize| topology.switches.get(place).map(|switch| switch.level);
    let mut by_levels: BTreeMap<(u8, u8), Vec<&Bundle>> = BTreeMap::new();
    // What has no level stands above all others.
    let rank = |level: Option<u8>| level.unwrap_or(u8::MAX);
    for bundle in &topology.bundles {
        if let (Some(low), Some(high)) = (level(bundle.a), level(bundle.b)) {
            by_levels.entry((rank(low), rank(high))).or_default().push(bundle);
        }
    }
    let named = |rank: u8| (rank != u8::MAX).then_some(rank);
    let parts = by_levels
        .into_iter()
        .map(|((low, high), bundles)| ((named(low), named(high)), parts(&bundles, low == high)));
    parts.collect()
}

/// Parts of two levels that no cable joins, each as a matrix.
fn parts<'a>(bundles: &[&'a Bundle], is_one_level: bool) -> Vec<Matrix<'a>> {
    let mut neighbours: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, bundle) in bundles.iter().enumerate() {
        neighbours.entry(bundle.a).or_default().push(place);
        neighbours.entry(bundle.b).or_default().push(place);
    }
    let mut seen = BTreeSet::new();
    let mut matrices = Vec::new();
    for &start in neighbours.keys() {
        if !seen.insert(start) {
            continue;
        }
        let (mut queue, mut of_part) = (vec![start], BTreeSet::new());
        while let Some(switch) = queue.pop() {
            for &place in neighbours.get(&switch).into_iter().flatten() {
                of_part.insert(place);
                for next in [bundles[place].a, bundles[place].b] {
                    if seen.insert(next) {
                        queue.push(next);
                    }
                }
            }
        }
        let of_part: Vec<&'a Bundle> = of_part.into_iter().map(|place| bundles[place]).collect();
        matrices.push(matrix(&of_part, is_one_level));
    }
    matrices
}

fn matrix<'a>(bundles: &[&'a Bundle], is_one_level: bool) -> Matrix<'a> {
    let mut rows: BTreeSet<usize> = bundles.iter().map(|bundle| bundle.a).collect();
    let mut columns: BTreeSet<usize> = bundles.iter().map(|bundle| bundle.b).collect();
    if is_one_level {
        rows.append(&mut columns);
        columns.clone_from(&rows);
    }
    let places = |of: &BTreeSet<usize>| -> BTreeMap<usize, usize> {
        of.iter().enumerate().map(|(place, switch)| (*switch, place)).collect()
    };
    let (row_of, column_of) = (places(&rows), places(&columns));
    let mut cells = Vec::new();
    for bundle in bundles {
        let both = [(bundle.a, bundle.b), (bundle.b, bundle.a)];
        for (a, b) in both.into_iter().take(if is_one_level { 2 } else { 1 }) {
            if let (Some(&row), Some(&column)) = (row_of.get(&a), column_of.get(&b)) {
                cells.push((row, column, *bundle));
            }
        }
    }
    Matrix { rows: rows.into_iter().collect(), columns: columns.into_iter().collect(), cells }
}

impl Matrix<'_> {
    /// How wide a cell is: names fit beside it, up to some dozens.
    fn cell(&self) -> f64 {
        match self.rows.len().max(self.columns.len()) {
            0..=80 => 12.0,
            81..=160 => 8.0,
            _ => 4.0,
        }
    }

    /// It as a picture.
    pub(super) fn drawn(&self, topology: &Topology) -> Markup {
        let cell = self.cell();
        let name = |switch: usize| {
            let node = topology.switches.get(switch).map_or("", |switch| &switch.node);
            abbreviate(node, LONGEST)
        };
        let longest = |of: &[usize]| {
            let letters = of.iter().map(|&switch| name(switch).chars().count()).max();
            letters.unwrap_or(0) as f64 * LETTER + 6.0
        };
        let (left, top) = (longest(&self.rows), longest(&self.columns));
        let (wide, high) = (self.columns.len() as f64 * cell, self.rows.len() as f64 * cell);
        // Where there is no room, only those are named that have a fault.
        let is_named = |switch: usize| {
            let worst = topology.switches.get(switch).and_then(|switch| switch.worst.as_deref());
            cell >= 8.0 || matches!(worst, Some("bad" | "watch"))
        };
        let at = |nth: usize| (nth as f64 + 0.5) * cell;
        let (full_wide, full_high) = (left + wide + 2.0, top + high + 2.0);
        html! {
            svg .matrix width=(full_wide) height=(full_high) viewBox={ "0 0 " (full_wide) " " (full_high) } role="group"
                aria-label={ (self.rows.len()) " switches and " (self.columns.len()) " that they lead to" } {
                @for (nth, &switch) in self.columns.iter().enumerate().filter(|(_, switch)| is_named(**switch)) {
                    @let x = left + at(nth) + 3.0;
                    (way(topology, switch, html! {
                        text x=(x) y=(top - 4.0) transform={ "rotate(-90 " (x) " " (top - 4.0) ")" } { (name(switch)) }
                    }))
                }
                @for (nth, &switch) in self.rows.iter().enumerate() {
                    @let y = top + nth as f64 * cell;
                    g .row {
                        rect x="0" y=(y) width=(full_wide) height=(cell) {}
                        @if is_named(switch) {
                            (way(topology, switch, html! { text x=(left - 4.0) y=(y + cell / 2.0 + 3.0) text-anchor="end" { (name(switch)) } }))
                        }
                    }
                }
                rect .frame x=(left) y=(top) width=(wide) height=(high) {}
                @for verdict in [Verdict::Ok, Verdict::Unknown] {
                    @let path = self.dots(verdict, left, top);
                    @if !path.is_empty() { path class=(verdict.label()) d=(path) {} }
                }
                @for &(row, column, bundle) in &self.cells {
                    @if let Some(worst) = bundle.verdicts.worst().filter(|worst| *worst >= Verdict::Watch) {
                        (fault(topology, bundle, worst, (left + column as f64 * cell, top + row as f64 * cell), cell))
                    }
                }
            }
        }
    }

    /// All cells that want no look, as one path: a rect each would be ten times as long.
    fn dots(&self, verdict: Verdict, left: f64, top: f64) -> String {
        let cell = self.cell();
        let size = if verdict == Verdict::Ok { (cell / 2.0).floor() } else { (cell / 3.0).ceil() };
        let inset = (cell - size) / 2.0;
        let mut path = String::new();
        for (row, column, bundle) in &self.cells {
            if bundle.verdicts.worst() == Some(verdict) {
                let x = left + *column as f64 * cell + inset;
                let y = top + *row as f64 * cell + inset;
                // Writing to a string does not fail.
                let _ = write!(path, "M{x:.1} {y:.1}h{size}v{size}h-{size}z");
            }
        }
        path
    }
}

fn way(topology: &Topology, switch: usize, text: Markup) -> Markup {
    let Some(switch) = topology.switches.get(switch) else { return text };
    match switch.guid.parse::<Guid>() {
        Ok(guid) => html! { a href=(address::node(&topology.fabric, guid)) { (text) } },
        Err(_) => text,
    }
}

/// A cell that wants a look: bad ones are a whole square, the others a triangle.
fn fault(
    topology: &Topology,
    bundle: &Bundle,
    worst: Verdict,
    (x, y): (f64, f64),
    cell: f64,
) -> Markup {
    let name = |place: usize| topology.switches.get(place).map_or("", |switch| &*switch.node);
    let about =
        format!("{} to {}: {}", name(bundle.a), name(bundle.b), picture::tally(&bundle.verdicts));
    let shape = if worst == Verdict::Bad {
        format!("M{x:.1} {y:.1}h{cell}v{cell}h-{cell}z")
    } else {
        format!("M{x:.1} {:.1}h{cell}v-{cell}z", y + cell)
    };
    let drawn = html! { path class=(worst.label()) d=(shape) { title { (about) } } };
    match bundle.suspects.first().and_then(picture::link) {
        Some(link) => html! {
            a href=(address::link(&topology.fabric, link)) aria-label=(about) { (drawn) }
        },
        None => drawn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::Verdicts;
    use crate::api::model::topology::{Suspect, Switch};

    fn topology(levels: &[u8], pairs: &[(usize, usize)]) -> Topology {
        let switch =
            |level: &u8| Switch { level: Some(*level), node: "<b>".into(), ..Switch::default() };
        let bundle = |&(a, b): &(usize, usize)| Bundle {
            a,
            b,
            verdicts: Verdicts { ok: 1, ..Verdicts::default() },
            suspects: Vec::new(),
            ..Bundle::default()
        };
        Topology {
            switches: levels.iter().map(switch).collect(),
            bundles: pairs.iter().map(bundle).collect(),
            ..Topology::default()
        }
    }

    #[test]
    fn what_no_cable_joins_is_a_matrix_of_its_own() {
        for (levels, pairs, shapes) in [
            (&[1, 1, 2, 2][..], &[(0, 2), (0, 3), (1, 2), (1, 3)][..], &[(2, 2, 4)][..]),
            (&[1, 1, 2, 2], &[(0, 2), (1, 3)], &[(1, 1, 1), (1, 1, 1)]),
            // A ring: one level, and each pair seen from both.
            (&[1, 1, 1], &[(0, 1), (1, 2), (0, 2)], &[(3, 3, 6)]),
            (&[1, 2, 3], &[(0, 1), (1, 2)], &[(1, 1, 1), (1, 1, 1)]),
            (&[1], &[], &[]),
        ] {
            let topology = topology(levels, pairs);
            let told: Vec<_> = of(&topology)
                .iter()
                .flat_map(|(_, matrices)| matrices)
                .map(|it| (it.rows.len(), it.columns.len(), it.cells.len()))
                .collect();
            assert_eq!(told, shapes, "{levels:?} {pairs:?}");
        }
    }

    #[test]
    fn a_fault_can_be_pointed_at_and_names_stay_text() {
        let mut topology = topology(&[1, 2], &[(0, 1)]);
        let link = "0x0000000000000001:1-0x0000000000000002:1";
        topology.bundles[0].verdicts.bad = 1;
        topology.bundles[0].suspects =
            vec![Suspect { link: link.into(), verdict: "bad".into(), ..Suspect::default() }];
        let page = of(&topology)[0].1[0].drawn(&topology).into_string();
        assert!(page.contains(&format!("href=\"/link/{link}\"")), "{page}");
        assert!(page.contains("2 cables (1 bad, 1 ok)"), "{page}");
        assert!(!page.contains("<b>"), "{page}");
    }
}
