//! The picture of a fabric: its levels as rows, cables between two boxes as one line.

use maud::{Markup, html};

use crate::api::model::Verdicts;
use crate::api::model::topology::{Congested, Suspect, Switch, Topology};
use crate::pages::{address, words};
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_mad::Guid;
use ib_mad::label::abbreviate;

use super::layout::{Cell, Layout, Line, Row};

/// How wide it is, in its units: those of a page that is as wide as it gets.
const WIDE: f64 = 1180.0;
/// What stands left of the rows: their names.
const LEFT: f64 = 80.0;
/// The widest and the highest that a box gets.
const BOX: (f64, f64) = (130.0, 46.0);
/// What lies between two rows, for lines to be told apart in.
const GAP: f64 = 110.0;
/// How far arcs rise above a row.
const ARCS: f64 = 90.0;
/// What a letter of a box takes.
const LETTER: f64 = 6.4;

/// The picture.
pub(super) fn drawn(topology: &Topology, layout: &Layout<'_>) -> Markup {
    let tops = tops(layout);
    let bottom = tops.last().map_or(0.0, |top| top + BOX.1 + 26.0);
    let about = format!(
        "How {} is wired: {} switches on {} levels. The table below says the same.",
        topology.fabric,
        topology.switches.len(),
        layout.rows.len()
    );
    let of = Drawing { topology, layout, tops };
    html! {
        svg .wiring viewBox={ "0 0 " (WIDE) " " (bottom) } role="group" aria-label=(about) {
            @for line in &layout.lines { (of.line(line)) }
            @for (row, of_row) in layout.rows.iter().enumerate() {
                text .level x="0" y=(of.tops[row] + BOX.1 / 2.0 + 4.0) { (level_name(topology, of_row)) }
                @for place in 0..of_row.boxes.len() { (of.cell(row, place)) }
            }
        }
    }
}

/// What a level is called.
pub(super) fn level_name(topology: &Topology, row: &Row) -> &'static str {
    called(row.level, topology.switches.iter().filter_map(|switch| switch.level).max())
}

/// What a level is called, in a fabric whose highest is the other.
pub(super) fn called(level: Option<u8>, top: Option<u8>) -> &'static str {
    match (level, top) {
        (None, _) => "Apart",
        (Some(1), Some(1)) => "Switches",
        (Some(1), _) => "Leaves",
        (Some(2), _) => "Spines",
        (Some(3), Some(3)) => "Cores",
        (Some(_), _) => "Above",
    }
}

/// Where each row begins.
fn tops(layout: &Layout<'_>) -> Vec<f64> {
    // Signs of congestion stand above a box.
    let mut top = 16.0;
    let mut tops = Vec::new();
    for row in 0..layout.rows.len() {
        if layout.has_arcs(row) {
            top += ARCS;
        }
        tops.push(top);
        top += BOX.1 + GAP;
    }
    tops
}

struct Drawing<'a> {
    topology: &'a Topology,
    layout: &'a Layout<'a>,
    tops: Vec<f64>,
}

impl Drawing<'_> {
    /// The middle of a box, and half of how wide it is.
    fn middle(&self, row: usize, place: usize) -> (f64, f64) {
        let each = (WIDE - LEFT) / self.layout.rows[row].boxes.len().max(1) as f64;
        (LEFT + each * (place as f64 + 0.5), ((each - 6.0) / 2.0).min(BOX.0 / 2.0))
    }

    fn cell(&self, row: usize, place: usize) -> Markup {
        let cell = &self.layout.rows[row].boxes[place];
        let (middle, half) = self.middle(row, place);
        let top = self.tops[row];
        let of = &self.topology.switches[cell.members.clone()];
        let name = name(of);
        let class = cell.worst.map_or("unknown", Verdict::label);
        #[expect(clippy::cast_sign_loss, reason = "a box has a width")]
        let letters = (half * 2.0 / LETTER) as usize;
        let hosts = words::several(cell.hosts, "host", "hosts");
        let told: Vec<String> = match of {
            [first, .., last] => {
                let count = if cell.hosts > 0 { hosts } else { format!("{} switches", of.len()) };
                vec![first.node.clone(), format!("to {}", last.node), count]
            }
            _ if cell.hosts > 0 => vec![name.clone(), hosts],
            _ => vec![name.clone()],
        };
        // In the middle, however many lines there are.
        let first_line = top + BOX.1 / 2.0 + 4.0 - (told.len() as f64 - 1.0) * 7.0;
        let about = about(of, cell, &name);
        html! {
            // Its title is what it is called; whoever speaks to the browser says what stands there, too.
            a href=(self.way(of)) {
                title { (about) }
                rect class={ "box " (class) } x=(tenth(middle - half)) y=(top) width=(tenth(half * 2.0)) height=(BOX.1) rx="4" {}
                @for (place, line) in told.iter().enumerate() {
                    text .unit[place > 0] x=(tenth(middle)) y=(first_line + place as f64 * 14.0) { (abbreviate(line, if place > 0 { letters * 6 / 5 } else { letters })) }
                }
            }
            (congested(of, middle + half, top - 4.0))
            (troubled(&self.topology.fabric, of, cell, middle, half, top + BOX.1 + 12.0))
        }
    }

    /// A switch's page; of several, where the first of them stands in the table.
    fn way(&self, of: &[Switch]) -> String {
        let Some(first) = of.first() else { return String::new() };
        match first.guid.parse::<Guid>() {
            Ok(guid) if of.len() == 1 => address::node(&self.topology.fabric, guid),
            _ => format!("#{}", first.guid),
        }
    }

    fn line(&self, line: &Line<'_>) -> Markup {
        let [(row_a, a), (row_b, b)] = line.ends;
        let ((from, _), (to, _)) = (self.middle(row_a, a), self.middle(row_b, b));
        let path = if row_a == row_b {
            let top = self.tops[row_a];
            let rise = ARCS * (0.35 + 0.65 * (to - from).abs() / WIDE) * 2.0;
            format!(
                "M{} {top}Q{} {} {} {top}",
                tenth(from),
                tenth(f64::midpoint(from, to)),
                tenth(top - rise),
                tenth(to)
            )
        } else {
            let (start, end) = (self.tops[row_a] + BOX.1, self.tops[row_b]);
            format!("M{} {start}L{} {end}", tenth(from), tenth(to))
        };
        let worst = line.verdicts.worst().unwrap_or(Verdict::Unknown);
        let [above, below] = line.ends.map(|(row, place)| {
            name(&self.topology.switches[self.layout.rows[row].boxes[place].members.clone()])
        });
        let mut about = format!("{above} to {below}: {}", tally(&line.verdicts));
        if line.congestion.is_any() {
            about += "; congestion: ";
            about += &congestion(&line.congestion);
        }
        let drawn = html! {
            @if line.congestion.is_any() { path .congested d=(path) {} }
            path class={ "cable " (worst.label()) } d=(path) { title { (about) } }
        };
        match line.suspects.first().filter(|_| worst >= Verdict::Watch).and_then(|it| link(it)) {
            Some(id) => html! {
                a href=(address::link(&self.topology.fabric, id)) aria-label=(about) { (drawn) }
            },
            None => drawn,
        }
    }
}

/// The signs above a box whose cables are congested, and how many are: of hosts' cables, too, which have no line.
fn congested(of: &[Switch], right: f64, y: f64) -> Markup {
    let all = of.iter().fold(Congested::default(), |sum, switch| sum.and(&switch.congestion));
    html! {
        @if all.is_any() {
            text .congestion x=(tenth(right)) y=(tenth(y)) {
                title { "Congestion: " (congestion(&all)) }
                @if all.roots > 0 { "◆" (all.roots) } @if all.victims > 0 { "◇" (all.victims) }
            }
        }
    }
}

/// How congested some cables are: `1 root, 3 victims, waits up to 32 % of the time`.
pub(super) fn congestion(of: &Congested) -> String {
    let counts = [(of.roots, "root", "roots"), (of.victims, "victim", "victims")];
    let there = counts.into_iter().filter(|(count, ..)| *count > 0);
    let mut parts: Vec<String> =
        there.map(|(count, one, many)| words::several(count, one, many)).collect();
    if let Some(share) = of.most_wait {
        parts.push(format!("waits up to {} of the time", words::share(share)));
    }
    parts.join(", ")
}

/// The cables to hosts that want a look, as signs beneath a box that lead to them.
fn troubled(fabric: &str, of: &[Switch], cell: &Cell, middle: f64, half: f64, y: f64) -> Markup {
    let troubled: Vec<&Suspect> = of.iter().flat_map(|switch| &switch.host_suspects).collect();
    #[expect(clippy::cast_sign_loss, reason = "a box has a width")]
    let fits = ((half * 2.0 / 13.0) as usize).max(1);
    let more = (cell.to_hosts.bad + cell.to_hosts.watch) > fits;
    let shown = if more { fits.saturating_sub(1) } else { troubled.len() };
    let from =
        middle - (shown.min(troubled.len()) as f64 - 1.0) * 6.5 - if more { 6.5 } else { 0.0 };
    html! {
        @for (place, suspect) in troubled.iter().take(shown).enumerate() {
            @if let Some(link) = link(suspect) {
                a href=(address::link(fabric, link)) aria-label={ (suspect.place) ": " (suspect.verdict) } {
                    text class={ "host " (suspect.verdict) } x=(tenth(from + place as f64 * 13.0)) y=(y) {
                        title { (suspect.place) ": " (suspect.verdict) }
                        (words::sign(&suspect.verdict))
                    }
                }
            }
        }
        @if more { text .unit x=(tenth(from + shown as f64 * 13.0 + 3.0)) y=(y) { "+" (cell.to_hosts.bad + cell.to_hosts.watch - shown) } }
    }
}

/// The id of a suspect's link.
pub(super) fn link(suspect: &Suspect) -> Option<LinkId> {
    suspect.link.parse().ok()
}

/// How many cables have which verdict.
pub(super) fn tally(verdicts: &Verdicts) -> String {
    let cables = words::several(verdicts.count(), "cable", "cables");
    format!("{cables} ({})", words::tally(verdicts))
}

fn about(of: &[Switch], cell: &Cell, name: &str) -> String {
    let mut told = name.to_owned();
    if of.len() > 1 {
        told = format!("{} switches, {told}", of.len());
    } else if of.first().is_some_and(|switch| !switch.up) {
        told += ", does not answer";
    }
    if cell.hosts > 0 {
        told = format!("{told}; to hosts: {}", tally(&cell.to_hosts));
    }
    let all = of.iter().fold(Congested::default(), |sum, switch| sum.and(&switch.congestion));
    if all.is_any() {
        told = format!("{told}; congestion: {}", congestion(&all));
    }
    match cell.worst {
        Some(worst) => format!("{told}; worst link: {}", worst.label()),
        None => told,
    }
}

/// What a box is called: its switch, or the first and the last.
fn name(of: &[Switch]) -> String {
    match of {
        [] => String::new(),
        [one] => one.node.clone(),
        [first, .., last] => format!("{} … {}", first.node, last.node),
    }
}

/// To a tenth: more cannot be seen, and makes the page longer.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::topology::Bundle;

    #[test]
    fn a_picture_names_its_boxes_and_leads_to_its_faults() {
        let link = "0x0000000000000001:1-0x0000000000000002:1";
        let suspects =
            vec![Suspect { link: link.into(), place: "here".into(), verdict: "bad".into() }];
        let verdicts = Verdicts { ok: 3, bad: 1, ..Verdicts::default() };
        let switch = |guid: u64, level, host_suspects: &[Suspect]| Switch {
            guid: Guid(guid).to_string(),
            node: "</title><script>".into(),
            level: Some(level),
            hosts: 4,
            to_hosts: verdicts,
            worst: Some("bad".into()),
            host_suspects: host_suspects.to_vec(),
            ..Switch::default()
        };
        let topology = Topology {
            switches: vec![switch(1, 1, &suspects), switch(2, 2, &[])],
            bundles: vec![Bundle { b: 1, verdicts, suspects, ..Bundle::default() }],
            ..Topology::default()
        };
        let page = drawn(&topology, &Layout::of(&topology)).into_string();
        assert_eq!(page.matches(&format!("href=\"/link/{link}\"")).count(), 2, "{page}");
        assert!(page.contains("4 cables (1 bad, 3 ok)") && page.contains("Leaves"), "{page}");
        assert!(!page.contains("<script>"), "{page}");
    }

    #[test]
    fn congestion_shows_at_boxes_and_lines_whose_cables_are_ok() {
        let waiting = Congested { roots: 1, victims: 2, most_wait: Some(0.32) };
        let switch = |guid: u64, level, congestion: &Congested| Switch {
            guid: Guid(guid).to_string(),
            level: Some(level),
            congestion: congestion.clone(),
            ..Switch::default()
        };
        let verdicts = Verdicts { ok: 3, ..Verdicts::default() };
        let topology = |congestion: Congested| Topology {
            switches: vec![switch(1, 1, &congestion), switch(2, 2, &Congested::default())],
            bundles: vec![Bundle { b: 1, verdicts, congestion, ..Bundle::default() }],
            ..Topology::default()
        };
        let page = |topology: &Topology| drawn(topology, &Layout::of(topology)).into_string();
        let busy = page(&topology(waiting));
        let told = "congestion: 1 root, 2 victims, waits up to 32 % of the time";
        assert_eq!(busy.matches(told).count(), 2, "a box and a line: {busy}");
        assert!(busy.contains("◆1◇2") && busy.contains("class=\"congested\""), "{busy}");
        let quiet = page(&topology(Congested::default()));
        assert!(!quiet.contains("ongest") && !quiet.contains('◆'), "{quiet}");
    }
}
