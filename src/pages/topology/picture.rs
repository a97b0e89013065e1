//! The topology picture (SVG): levels as rows of boxes, and all links between two boxes as one line.

use maud::{Markup, html};

use crate::api::model::Verdicts;
use crate::api::model::topology::{CongestionCounts, Suspect, Switch, Topology};
use crate::pages::{address, components};
use ib_health::Verdict;
use ib_mad::label::abbreviate;

use super::layout::{Layout, Line, SwitchBox};

/// The width of the picture in its units, which are pixels on a page of full width.
const WIDTH: f64 = 1180.0;
/// The width of the level names, left of the rows.
const LEFT: f64 = 80.0;
/// The maximum width of a box, and its height.
const BOX: (f64, f64) = (130.0, 46.0);
/// The space between two rows, in which lines remain distinguishable.
const GAP: f64 = 110.0;
/// The space for arcs above a row.
const ARCS: f64 = 90.0;
/// The width of a letter in a box.
const LETTER: f64 = 6.4;

/// Draws the picture.
pub(super) fn draw(topology: &Topology, layout: &Layout<'_>) -> Markup {
    let tops = tops(layout);
    let bottom = tops.last().map_or(0.0, |top| top + BOX.1 + 26.0);
    let about = format!(
        "How {} is wired: {} switches on {} levels. The table below says the same.",
        topology.fabric,
        topology.switches.len(),
        layout.rows.len()
    );
    let picture = Picture { topology, layout, tops };
    html! {
        svg .wiring viewBox={ "0 0 " (WIDTH) " " (bottom) } role="group" aria-label=(about) {
            @for line in &layout.lines { (picture.line(line)) }
            @for (row, of_row) in layout.rows.iter().enumerate() {
                text .level x="0" y=(picture.tops[row] + BOX.1 / 2.0 + 4.0) { (level_name(of_row.level, top_level(topology))) }
                @for place in 0..of_row.boxes.len() { (picture.switch_box(row, place)) }
            }
        }
    }
}

/// The highest level of a fabric.
pub(super) fn top_level(topology: &Topology) -> Option<u8> {
    topology.switches.iter().filter_map(|switch| switch.level).max()
}

/// The name of a level in a fabric with this top level.
pub(super) fn level_name(level: Option<u8>, top: Option<u8>) -> &'static str {
    match (level, top) {
        (None, _) => "Apart",
        (Some(1), Some(1)) => "Switches",
        (Some(1), _) => "Leaves",
        (Some(2), _) => "Spines",
        (Some(3), Some(3)) => "Cores",
        (Some(_), _) => "Above",
    }
}

/// The upper edge of each row.
fn tops(layout: &Layout<'_>) -> Vec<f64> {
    // Space for the congestion counts above the boxes.
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

struct Picture<'a> {
    topology: &'a Topology,
    layout: &'a Layout<'a>,
    tops: Vec<f64>,
}

impl Picture<'_> {
    /// The middle of a box, and half its width.
    fn middle(&self, row: usize, place: usize) -> (f64, f64) {
        let each = (WIDTH - LEFT) / self.layout.rows[row].boxes.len().max(1) as f64;
        (LEFT + each * (place as f64 + 0.5), ((each - 6.0) / 2.0).min(BOX.0 / 2.0))
    }

    fn switch_box(&self, row: usize, place: usize) -> Markup {
        let it = &self.layout.rows[row].boxes[place];
        let (middle, half) = self.middle(row, place);
        let top = self.tops[row];
        let of = &self.topology.switches[it.members.clone()];
        let name = name(of);
        let class = it.worst.map_or("unknown", Verdict::label);
        #[expect(clippy::cast_sign_loss, reason = "a box has a width")]
        let letters = (half * 2.0 / LETTER) as usize;
        let hosts = components::counted(it.hosts, "host", "hosts");
        let text: Vec<String> = match of {
            [first, .., last] => {
                let count = if it.hosts > 0 { hosts } else { format!("{} switches", of.len()) };
                vec![first.node.clone(), format!("to {}", last.node), count]
            }
            _ if it.hosts > 0 => vec![name.clone(), hosts],
            _ => vec![name.clone()],
        };
        // The text is centered, with any number of lines.
        let first_line = top + BOX.1 / 2.0 + 4.0 - (text.len() as f64 - 1.0) * 7.0;
        let about = about(of, it, &name);
        html! {
            // Screen readers read the title, then the text.
            a href=(self.target(of)) {
                title { (about) }
                rect class={ "box " (class) } x=(tenth(middle - half)) y=(top) width=(tenth(half * 2.0)) height=(BOX.1) rx="4" {}
                @for (place, line) in text.iter().enumerate() {
                    text .unit[place > 0] x=(tenth(middle)) y=(first_line + place as f64 * 14.0) { (abbreviate(line, if place > 0 { letters * 6 / 5 } else { letters })) }
                }
            }
            (congestion_counts(of, middle + half, top - 4.0))
            (host_suspects(&self.topology.fabric, of, it, middle, half, top + BOX.1 + 12.0))
        }
    }

    /// The page of a switch; of several, the first of them in the table.
    fn target(&self, of: &[Switch]) -> String {
        match of {
            [] => String::new(),
            [one] => address::node(&self.topology.fabric, &one.guid),
            [first, ..] => format!("#{}", first.guid),
        }
    }

    fn line(&self, line: &Line<'_>) -> Markup {
        let [(row_a, a), (row_b, b)] = line.ends;
        let ((from, _), (to, _)) = (self.middle(row_a, a), self.middle(row_b, b));
        let path = if row_a == row_b {
            let top = self.tops[row_a];
            let rise = ARCS * (0.35 + 0.65 * (to - from).abs() / WIDTH) * 2.0;
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
        let mut about = format!("{above} to {below}: {}", links(&line.verdicts));
        if line.congestion.is_any() {
            about += "; congestion: ";
            about += &congestion(&line.congestion);
        }
        let drawn = html! {
            @if line.congestion.is_any() { path .congested d=(path) {} }
            path class={ "cable " (worst.label()) } d=(path) { title { (about) } }
        };
        match line.suspects.first().filter(|_| worst >= Verdict::Watch) {
            Some(suspect) => html! {
                a href=(address::link(&self.topology.fabric, &suspect.link)) aria-label=(about) { (drawn) }
            },
            None => drawn,
        }
    }
}

/// The counts of congested links above a box; they include links to hosts, which have no line.
fn congestion_counts(of: &[Switch], right: f64, y: f64) -> Markup {
    let all =
        of.iter().fold(CongestionCounts::default(), |sum, switch| sum.and(&switch.congestion));
    html! {
        @if all.is_any() {
            text .congestion x=(tenth(right)) y=(tenth(y)) {
                title { "Congestion: " (congestion(&all)) }
                @if all.roots > 0 { "◆" (all.roots) } @if all.victims > 0 { "◇" (all.victims) }
            }
        }
    }
}

/// The congestion of some links as text: `1 root, 3 victims, waits up to 32 % of the time`.
pub(super) fn congestion(of: &CongestionCounts) -> String {
    let counts = [(of.roots, "root", "roots"), (of.victims, "victim", "victims")];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let mut parts: Vec<String> =
        counts.map(|(count, one, many)| components::counted(count, one, many)).collect();
    if let Some(share) = of.most_wait {
        parts.push(format!("waits up to {} of the time", components::percent(share)));
    }
    parts.join(", ")
}

/// The links to hosts that are watch or bad, as signs below a box that lead to them.
fn host_suspects(
    fabric: &str,
    of: &[Switch],
    it: &SwitchBox,
    middle: f64,
    half: f64,
    y: f64,
) -> Markup {
    let suspects: Vec<&Suspect> = of.iter().flat_map(|switch| &switch.host_suspects).collect();
    let all = it.to_hosts.bad + it.to_hosts.watch;
    #[expect(clippy::cast_sign_loss, reason = "a box has a width")]
    let fits = ((half * 2.0 / 13.0) as usize).max(1);
    let more = all > fits;
    let shown = if more { fits.saturating_sub(1) } else { suspects.len() };
    let from =
        middle - (shown.min(suspects.len()) as f64 - 1.0) * 6.5 - if more { 6.5 } else { 0.0 };
    html! {
        @for (place, suspect) in suspects.iter().take(shown).enumerate() {
            a href=(address::link(fabric, &suspect.link)) aria-label={ (suspect.place) ": " (suspect.verdict) } {
                text class={ "host " (suspect.verdict) } x=(tenth(from + place as f64 * 13.0)) y=(y) {
                    title { (suspect.place) ": " (suspect.verdict) }
                    // Verdicts must not differ by color alone.
                    @if suspect.verdict == "bad" { "✕" } @else { "!" }
                }
            }
        }
        @if more { text .unit x=(tenth(from + shown as f64 * 13.0 + 3.0)) y=(y) { "+" (all - shown) } }
    }
}

/// The number of links and their verdicts: `4 cables (1 bad, 3 ok)`.
pub(super) fn links(verdicts: &Verdicts) -> String {
    let links = components::counted(verdicts.count(), "cable", "cables");
    format!("{links} ({})", components::verdict_counts(verdicts))
}

/// The title of a box.
fn about(of: &[Switch], it: &SwitchBox, name: &str) -> String {
    let mut about = name.to_owned();
    if of.len() > 1 {
        about = format!("{} switches, {about}", of.len());
    } else if of.first().is_some_and(|switch| !switch.up) {
        about += ", does not answer";
    }
    if it.hosts > 0 {
        about = format!("{about}; to hosts: {}", links(&it.to_hosts));
    }
    let all =
        of.iter().fold(CongestionCounts::default(), |sum, switch| sum.and(&switch.congestion));
    if all.is_any() {
        about = format!("{about}; congestion: {}", congestion(&all));
    }
    match it.worst {
        Some(worst) => format!("{about}; worst link: {}", worst.label()),
        None => about,
    }
}

/// The name of a box: its switch, or its first and last switch.
fn name(of: &[Switch]) -> String {
    match of {
        [] => String::new(),
        [one] => one.node.clone(),
        [first, .., last] => format!("{} … {}", first.node, last.node),
    }
}

/// Rounds to a tenth. More digits would not be visible and make the page larger.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::topology::Bundle;
    use ib_mad::Guid;

    #[test]
    fn boxes_have_names_and_bad_links_lead_to_their_pages() {
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
        let page = draw(&topology, &Layout::new(&topology)).into_string();
        assert_eq!(page.matches(&format!("href=\"/link/{link}\"")).count(), 2, "{page}");
        assert!(page.contains("4 cables (1 bad, 3 ok)") && page.contains("Leaves"), "{page}");
        assert!(!page.contains("<script>"), "{page}");
    }

    #[test]
    fn congestion_shows_on_boxes_and_lines_that_are_ok() {
        let waiting = CongestionCounts { roots: 1, victims: 2, most_wait: Some(0.32) };
        let switch = |guid: u64, level, congestion: &CongestionCounts| Switch {
            guid: Guid(guid).to_string(),
            level: Some(level),
            congestion: congestion.clone(),
            ..Switch::default()
        };
        let verdicts = Verdicts { ok: 3, ..Verdicts::default() };
        let topology = |congestion: CongestionCounts| Topology {
            switches: vec![switch(1, 1, &congestion), switch(2, 2, &CongestionCounts::default())],
            bundles: vec![Bundle { b: 1, verdicts, congestion, ..Bundle::default() }],
            ..Topology::default()
        };
        let page = |topology: &Topology| draw(topology, &Layout::new(topology)).into_string();
        let busy = page(&topology(waiting));
        let about = "congestion: 1 root, 2 victims, waits up to 32 % of the time";
        assert_eq!(busy.matches(about).count(), 2, "a box and a line: {busy}");
        assert!(busy.contains("◆1◇2") && busy.contains("class=\"congested\""), "{busy}");
        let quiet = page(&topology(CongestionCounts::default()));
        assert!(!quiet.contains("ongest") && !quiet.contains('◆'), "{quiet}");
    }
}
