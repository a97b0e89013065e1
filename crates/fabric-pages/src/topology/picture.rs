//! The topology picture (SVG): levels as rows of boxes, and all links between two boxes as one line. In a row that would
//! be too wide to read, several switches share a box.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::components;
use display_text::abbreviate;
use fabric_api::address;
use fabric_api::model::{
    Bundle, CUT_OFF, CongestionCounts, DOWN, Suspect, Switch, Topology, Verdicts,
};
use ib_health::Verdict;

/// The most boxes in a row: their names can still be read.
const MAX_BOXES: usize = 20;

/// The rows, the highest level first, with their boxes, and the lines between these.
#[derive(Debug)]
struct Layout<'a> {
    topology: &'a Topology,
    /// The level of each row, and its upper edge.
    rows: Vec<(Option<u8>, f64)>,
    /// Row by row, from the left.
    boxes: Vec<SwitchBox<'a>>,
    /// All links between two boxes; `a` is in the higher row, or left of `b`.
    lines: Vec<Bundle>,
}

#[derive(Debug)]
struct SwitchBox<'a> {
    switches: &'a [Switch],
    row: usize,
    /// Its middle, and half its width.
    middle: f64,
    half: f64,
    /// The name of its switch, or of the first and last one.
    name: String,
    hosts: usize,
    to_hosts: Verdicts,
    /// Its worst verdict as it is shown, or that a switch is down or cut off.
    shown: &'static str,
    /// Switches that are down by themselves, and those behind others.
    down: usize,
    cut_off: usize,
    congestion: CongestionCounts,
}

impl<'a> Layout<'a> {
    fn new(topology: &'a Topology) -> Self {
        // The switches are in the order of levels, the lowest first.
        let levels = topology.switches.chunk_by(|a, b| a.level == b.level).rev();
        let mut rows: Vec<_> = levels.clone().map(|of| (of[0].level, 0.0)).collect();
        let boxes: Vec<_> = levels.enumerate().flat_map(|(row, of)| boxes(row, of)).collect();
        let mut lowest_first: Vec<usize> = (0..boxes.len()).collect();
        lowest_first.sort_by_key(|&it| Reverse(boxes[it].row));
        let box_of = lowest_first.iter().flat_map(|&it| boxes[it].switches.iter().map(move |_| it));
        let box_of: Vec<usize> = box_of.collect();
        let mut lines: BTreeMap<(usize, usize), Bundle> = BTreeMap::new();
        for bundle in &topology.bundles {
            let (Some(&a), Some(&b)) = (box_of.get(bundle.a), box_of.get(bundle.b)) else {
                continue;
            };
            // The color of a box shows the links within it.
            if a == b {
                continue;
            }
            let (a, b) = (a.min(b), a.max(b));
            let line = lines.entry((a, b)).or_insert_with(|| Bundle { a, b, ..Bundle::default() });
            line.congestion = line.congestion.and(&bundle.congestion);
            line.verdicts = line.verdicts.and(bundle.verdicts);
            line.suspects.extend_from_slice(&bundle.suspects);
        }
        let mut lines: Vec<Bundle> = lines.into_values().collect();
        for line in &mut lines {
            line.suspects.sort_by_key(|suspect| Reverse(Verdict::from_label(&suspect.verdict)));
        }
        // The worst are drawn last, above the others.
        lines.sort_by_key(|line| line.verdicts.worst());
        let mut layout = Layout { topology, rows: Vec::new(), boxes, lines };
        // Space for the congestion counts above the boxes.
        let mut top = 16.0;
        for (row, (_, edge)) in rows.iter_mut().enumerate() {
            top += if layout.has_arcs(row) { ARCS } else { 0.0 };
            *edge = top;
            top += BOX.1 + GAP;
        }
        layout.rows = rows;
        layout
    }

    /// Whether a line leads from a row to itself.
    fn has_arcs(&self, row: usize) -> bool {
        self.lines.iter().any(|line| [line.a, line.b].map(|it| self.boxes[it].row) == [row, row])
    }
}

/// The boxes of a level: one for each switch, or for each group, or for as many neighbors as needed.
fn boxes(row: usize, of_level: &[Switch]) -> Vec<SwitchBox<'_>> {
    let single: Vec<&[Switch]> = of_level.chunks(1).collect();
    let groups: Vec<&[Switch]> = of_level.chunk_by(|a, b| a.group == b.group).collect();
    let units = if single.len() > MAX_BOXES && groups.len() > 1 { groups } else { single };
    let per_box = units.len().div_ceil(MAX_BOXES).max(1);
    let each = (WIDTH - LEFT) / units.chunks(per_box).len() as f64;
    let mut rest = of_level;
    let boxes = units.chunks(per_box).enumerate().filter_map(|(place, units)| {
        let (of, after) = rest.split_at(units.iter().map(|unit| unit.len()).sum());
        rest = after;
        let (first, last) = (&of.first()?.node, &of.last()?.node);
        let congestion = of.iter().map(|it| &it.congestion);
        let not_up = || of.iter().filter(|it| !it.up);
        let down = not_up().filter(|it| it.behind.is_none()).count();
        let cut_off = not_up().count() - down;
        let verdicts = of.iter().fold(Verdicts::default(), |sum, it| sum.and(it.verdicts));
        Some(SwitchBox {
            switches: of,
            row,
            middle: LEFT + each * (place as f64 + 0.5),
            half: ((each - 6.0) / 2.0).min(BOX.0 / 2.0),
            name: if of.len() > 1 { format!("{first} … {last}") } else { first.clone() },
            congestion: congestion.fold(CongestionCounts::default(), |sum, it| sum.and(it)),
            hosts: of.iter().map(|switch| switch.hosts).sum(),
            to_hosts: of.iter().fold(Verdicts::default(), |sum, it| sum.and(it.host_verdicts)),
            shown: match (down, cut_off) {
                (0, 0) => verdicts.worst_shown(),
                (0, _) => CUT_OFF,
                _ => DOWN,
            },
            down,
            cut_off,
        })
    });
    boxes.collect()
}

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

pub(super) fn draw(topology: &Topology) -> Markup {
    let layout = Layout::new(topology);
    let bottom = layout.rows.last().map_or(0.0, |(_, top)| top + BOX.1 + 26.0);
    let about = format!(
        "Topology of {}: {} switches on {} levels. The table below has the same content.",
        topology.fabric,
        topology.switches.len(),
        layout.rows.len()
    );
    html! {
        svg .wiring viewBox={ "0 0 " (WIDTH) " " (bottom) } role="group" aria-label=(about) {
            @for line in &layout.lines { (layout.line(line)) }
            @for (row, &(level, top)) in layout.rows.iter().enumerate() {
                text .level x="0" y=(top + BOX.1 / 2.0 + 4.0) { (level_name(level, top_level(topology))) }
                @for it in layout.boxes.iter().filter(|it| it.row == row) { (layout.switch_box(it, top)) }
            }
        }
    }
}

pub(super) fn top_level(topology: &Topology) -> Option<u8> {
    topology.switches.iter().filter_map(|switch| switch.level).max()
}

/// The name of a level in a fabric with this top level.
pub(super) fn level_name(level: Option<u8>, top: Option<u8>) -> &'static str {
    match (level, top) {
        (None, _) => "Other",
        (Some(1), Some(1)) => "Switches",
        (Some(1), _) => "Leaves",
        (Some(2), _) => "Spines",
        (Some(3), Some(3)) => "Cores",
        (Some(_), _) => "Higher",
    }
}

impl Layout<'_> {
    fn switch_box(&self, it: &SwitchBox<'_>, top: f64) -> Markup {
        let (middle, half) = (it.middle, it.half);
        let class = it.shown;
        #[expect(clippy::cast_sign_loss, reason = "a box has a width")]
        let letters = (half * 2.0 / LETTER) as usize;
        let hosts = components::plural(it.hosts, "HCA");
        let text: Vec<String> = match it.switches {
            [first, .., last] => {
                let count = match it.down + it.cut_off {
                    0 if it.hosts > 0 => hosts,
                    0 => format!("{} switches", it.switches.len()),
                    down => format!("✕ {down} of {} down", it.switches.len()),
                };
                vec![first.node.clone(), format!("to {}", last.node), count]
            }
            // Nothing is said by color alone.
            [one] if !one.up => {
                let word = if it.down > 0 { "✕ down" } else { "✕ cut off" };
                let lost = components::plural(one.hosts_down, "HCA") + " cut off";
                let lost = Some(lost).filter(|_| one.hosts_down > 0);
                [it.name.clone(), word.to_owned()].into_iter().chain(lost).collect()
            }
            _ if it.hosts > 0 => vec![it.name.clone(), hosts],
            _ => vec![it.name.clone()],
        };
        // The text is centered, with any number of lines.
        let first_line = top + BOX.1 / 2.0 + 4.0 - (text.len() as f64 - 1.0) * 7.0;
        html! {
            // Screen readers read the title, then the text.
            a .gone[it.down > 0] href=(self.target(it.switches)) {
                title { (about(it)) }
                rect class={ "box " (class) } x=(tenth(middle - half)) y=(top) width=(tenth(half * 2.0)) height=(BOX.1) rx="4" {}
                @for (place, line) in text.iter().enumerate() {
                    text .unit[place > 0] x=(tenth(middle)) y=(first_line + place as f64 * 14.0) { (abbreviate(line, if place > 0 { letters * 6 / 5 } else { letters })) }
                }
            }
            // The counts include links to hosts, which have no line.
            @if it.congestion.is_any() {
                text .congestion x=(tenth(middle + half)) y=(tenth(top - 4.0)) {
                    title { "Congestion: " (congestion(&it.congestion)) }
                    @if it.congestion.roots > 0 { "◆" (it.congestion.roots) } @if it.congestion.victims > 0 { "◇" (it.congestion.victims) }
                }
            }
            (self.host_suspects(it, top + BOX.1 + 12.0))
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

    fn line(&self, line: &Bundle) -> Markup {
        let (a, b) = (&self.boxes[line.a], &self.boxes[line.b]);
        let [top, end] = [a.row, b.row].map(|row| self.rows[row].1);
        let (from, to) = (a.middle, b.middle);
        let path = if a.row == b.row {
            let rise = ARCS * (0.35 + 0.65 * (to - from).abs() / WIDTH) * 2.0;
            format!(
                "M{} {top}Q{} {} {} {top}",
                tenth(from),
                tenth(f64::midpoint(from, to)),
                tenth(top - rise),
                tenth(to)
            )
        } else {
            format!("M{} {}L{} {end}", tenth(from), top + BOX.1, tenth(to))
        };
        let worst = line.verdicts.worst();
        let is_down = [a, b].iter().any(|it| it.down + it.cut_off == it.switches.len());
        let shown = match line.verdicts.worst_shown() {
            _ if is_down => DOWN,
            shown => shown,
        };
        let mut about = format!("{} to {}: {}", a.name, b.name, links(&line.verdicts));
        if line.congestion.is_any() {
            about += "; congestion: ";
            about += &congestion(&line.congestion);
        }
        let drawn = html! {
            @if line.congestion.is_any() { path .congested d=(path) {} }
            path class={ "cable " (shown) } d=(path) { title { (about) } }
        };
        match line.suspects.first().filter(|_| worst >= Verdict::Watch) {
            Some(suspect) => html! {
                a href=(address::link(&self.topology.fabric, &suspect.link)) aria-label=(about) { (drawn) }
            },
            None => drawn,
        }
    }

    /// The links to hosts that are watch or bad, as signs below a box that lead to them.
    fn host_suspects(&self, it: &SwitchBox<'_>, y: f64) -> Markup {
        let (middle, half) = (it.middle, it.half);
        let suspects: Vec<&Suspect> =
            it.switches.iter().flat_map(|switch| &switch.host_suspects).collect();
        let all = it.to_hosts.bad + it.to_hosts.watch;
        #[expect(clippy::cast_sign_loss, reason = "a box has a width")]
        let fits = ((half * 2.0 / 13.0) as usize).max(1);
        let more = all > fits;
        let shown = if more { fits.saturating_sub(1) } else { suspects.len() };
        let from =
            middle - (shown.min(suspects.len()) as f64 - 1.0) * 6.5 - if more { 6.5 } else { 0.0 };
        html! {
            @for (place, suspect) in suspects.iter().take(shown).enumerate() {
                @let about = format!("{}: {}", suspect.name, Verdict::word(&suspect.verdict));
                a href=(address::link(&self.topology.fabric, &suspect.link)) aria-label=(about) {
                    text class={ "host " (suspect.verdict) } x=(tenth(from + place as f64 * 13.0)) y=(y) {
                        title { (about) }
                        // Verdicts must not differ by color alone.
                        @if suspect.verdict == "bad" { "✕" } @else { "!" }
                    }
                }
            }
            @if more { text .unit x=(tenth(from + shown as f64 * 13.0 + 3.0)) y=(y) { "+" (all - shown) } }
        }
    }
}

/// The congestion of some links as text: `1 root, 3 victims, waiting up to 32% of the time`.
pub(super) fn congestion(of: &CongestionCounts) -> String {
    let counts = [(of.roots, "root"), (of.victims, "victim")].into_iter();
    let mut parts: Vec<String> = counts
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| components::plural(count, noun))
        .collect();
    // Less than half a percent is no news.
    if let Some(share) = of.max_wait_ratio.filter(|share| *share >= 0.005) {
        parts.push(format!("waiting up to {} of the time", components::percent(share)));
    }
    parts.join(", ")
}

/// The number of links and their verdicts: `4 links (1 bad, 3 ok)`.
pub(super) fn links(verdicts: &Verdicts) -> String {
    let links = components::plural(verdicts.count(), "link");
    format!("{links} ({})", components::verdict_counts(verdicts))
}

fn about(it: &SwitchBox<'_>) -> String {
    let mut about = match it.switches {
        [one] if !one.up => match &one.behind {
            Some(by) => format!("{}, cut off behind {}", it.name, by.node),
            None => format!("{}, down", it.name),
        },
        [_, _, ..] => format!("{} switches, {}", it.switches.len(), it.name),
        _ => it.name.clone(),
    };
    if it.hosts > 0 {
        about = format!("{about}; to hosts: {}", links(&it.to_hosts));
    }
    if it.congestion.is_any() {
        about = format!("{about}; congestion: {}", congestion(&it.congestion));
    }
    match it.shown {
        DOWN | CUT_OFF => about,
        worst => format!("{about}; worst link: {}", Verdict::word(worst)),
    }
}

/// Rounds to a tenth. More digits would not be visible and make the page larger.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_api::model::NodeName;
    use ib_mad::Guid;

    #[test]
    fn boxes_have_names_and_bad_links_lead_to_their_pages() {
        let link = "0x0000000000000001:1-0x0000000000000002:1";
        let suspects =
            vec![Suspect { link: link.into(), name: "here".into(), verdict: "bad".into() }];
        let verdicts = Verdicts { ok: 3, bad: 1, ..Verdicts::default() };
        let switch = |guid: u64, level, host_suspects: &[Suspect]| Switch {
            guid: Guid(guid).to_string(),
            node: "</title><script>".into(),
            level: Some(level),
            hosts: 4,
            host_verdicts: verdicts,
            worst_verdict: Some("bad".into()),
            host_suspects: host_suspects.to_vec(),
            ..Switch::default()
        };
        let topology = Topology {
            switches: vec![switch(1, 1, &suspects), switch(2, 2, &[])],
            bundles: vec![Bundle { b: 1, verdicts, suspects, ..Bundle::default() }],
            ..Topology::default()
        };
        let page = draw(&topology).into_string();
        assert_eq!(page.matches(&format!("href=\"/link/{link}\"")).count(), 2, "{page}");
        assert!(page.contains("4 links (1 bad, 3 ok)") && page.contains("Leaves"), "{page}");
        assert!(!page.contains("<script>"), "{page}");
    }

    #[test]
    fn congestion_shows_on_boxes_and_lines_that_are_ok() {
        let waiting = CongestionCounts { roots: 1, victims: 2, max_wait_ratio: Some(0.32) };
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
        let page = |topology: &Topology| draw(topology).into_string();
        let busy = page(&topology(waiting));
        let about = "congestion: 1 root, 2 victims, waiting up to 32% of the time";
        assert_eq!(busy.matches(about).count(), 2, "a box and a line: {busy}");
        assert!(busy.contains("◆1◇2") && busy.contains("class=\"congested\""), "{busy}");
        let quiet = page(&topology(CongestionCounts::default()));
        assert!(!quiet.contains("ongest") && !quiet.contains('◆'), "{quiet}");
    }

    #[test]
    fn switch_that_is_down_is_drawn_stronger_than_any_link() {
        let switch = |guid: u64, level, up, behind: Option<&str>| Switch {
            guid: Guid(guid).to_string(),
            node: format!("switch-{guid}"),
            level: Some(level),
            hosts: 4,
            up,
            behind: behind.map(|by| NodeName { node: by.into(), ..NodeName::default() }),
            hosts_down: if up { 0 } else { 4 },
            ..Switch::default()
        };
        let verdicts = Verdicts { unknown: 4, ..Verdicts::default() };
        let switches = vec![
            switch(1, 1, false, Some("switch-3")),
            switch(2, 1, true, None),
            switch(3, 2, false, None),
        ];
        let bundles = vec![
            Bundle { a: 0, b: 2, verdicts, ..Bundle::default() },
            Bundle { a: 1, b: 2, verdicts, ..Bundle::default() },
        ];
        let page = draw(&Topology { switches, bundles, ..Topology::default() }).into_string();
        for (text, count) in [
            ("class=\"box down\"", 1),
            ("class=\"box cut_off\"", 1),
            ("class=\"cable down\"", 2),
            ("✕ down", 1),
            ("✕ cut off", 1),
            ("4 HCAs cut off", 2),
            ("switch-1, cut off behind switch-3", 1),
        ] {
            assert_eq!(page.matches(text).count(), count, "{text}: {page}");
        }
    }

    fn switches(levels: &[(u8, usize, usize)]) -> Vec<Switch> {
        let of_level = |&(level, count, a_group): &(u8, usize, usize)| {
            (0..count).map(move |place| Switch {
                level: Some(level),
                group: place / a_group,
                hosts: if level == 1 { 4 } else { 0 },
                worst_verdict: Some("ok".into()),
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
            let of_rows = layout.boxes.chunk_by(|a, b| a.row == b.row);
            let wide: Vec<usize> = of_rows.map(<[_]>::len).collect();
            let members: Vec<usize> = layout.boxes.iter().map(|it| it.switches.len()).collect();
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
            .map(|line| ([line.a, line.b], line.verdicts.count(), line.suspects.len()))
            .collect();
        // No line within the box of the first 20; the worst line comes last.
        assert_eq!(layout.boxes.iter().map(|it| it.row).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!(lines, [([2, 3], 2, 0), ([0, 2], 5, 1)]);
        assert!(layout.has_arcs(1) && !layout.has_arcs(0));
    }
}
