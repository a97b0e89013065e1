//! Where the parts of the picture are. A panel has levels as rows of boxes, and all links between two boxes are one line.
//! The first panel has the whole fabric; in a row with more switches than can be read, a group shares a box. A further
//! panel has what is open: the switches of a group, or the hosts of a switch, and what they are connected to.

use std::collections::{BTreeMap, BTreeSet};

use fabric_api::LinkRow;

use super::choice::Opened;
use super::map::{Map, Members};

/// The width of the picture in its units, which are pixels on a page of full width.
pub const WIDTH: f64 = 1180.0;
/// The width of the level names, left of the rows.
pub const LEFT: f64 = 80.0;
/// The width of a letter of 11 pixels.
pub const LETTER: f64 = 6.4;
/// The most boxes in a row: an upright name fits into each.
const MAX_BOXES: usize = 44;
/// The most boxes in a row, while there are more lines than a page should have.
const BOX_LIMITS: [usize; 3] = [MAX_BOXES, 28, 20];
/// The most lines of a panel: each has a card of 0.6 kB.
const MAX_LINES: usize = 600;
/// The least width of a box whose text is not upright.
const LEAST_WIDE: f64 = 72.0;
/// The maximum width of a box, and its height; and that of an upright one.
const BOX: (f64, f64) = (130.0, 50.0);
const UPRIGHT: (f64, f64) = (44.0, 118.0);
/// The space between two rows, in which lines remain distinguishable.
const GAP: f64 = 116.0;
/// The space for arcs above a row.
const ARCS: f64 = 90.0;
/// The space above the first row, for congestion counts, and for the heading of what is open.
const ABOVE: f64 = 18.0;
const HEADING: f64 = 50.0;
/// The space below the last row, for what is said of hosts.
const BELOW: f64 = 44.0;
/// The least height of a panel: a card fits into it.
const LEAST_HEIGHT: f64 = 290.0;

/// What a panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Fabric,
    Opened(Opened),
}

#[derive(Debug)]
pub struct Panel<'a> {
    pub subject: Subject,
    pub rows: Vec<Row>,
    /// Row by row, from the left.
    pub boxes: Vec<MapBox<'a>>,
    /// All links between two boxes; `a` is in the higher row, or left of `b`.
    pub lines: Vec<Line<'a>>,
    pub height: f64,
}

#[derive(Debug)]
pub struct Row {
    pub label: &'static str,
    pub top: f64,
    pub height: f64,
    pub is_upright: bool,
}

#[derive(Debug)]
pub struct MapBox<'a> {
    pub members: Members<'a>,
    pub row: usize,
    /// Its middle, and half its width.
    pub middle: f64,
    pub half: f64,
}

#[derive(Debug)]
pub struct Line<'a> {
    pub a: usize,
    pub b: usize,
    pub links: Vec<LinkRow<'a>>,
}

/// A row before it has a place.
struct Content<'a> {
    label: &'static str,
    members: Vec<Members<'a>>,
}

/// The name of a level in a fabric with this top level.
pub fn level_name(level: Option<u8>, top: Option<u8>) -> &'static str {
    match (level, top) {
        (None, _) => "Other",
        (Some(1), Some(1)) => "Switches",
        (Some(1), _) => "Leaves",
        (Some(2), _) => "Spines",
        (Some(3), Some(3)) => "Cores",
        (Some(_), _) => "Higher",
    }
}

/// The panels of a map: the whole fabric, and what is open. What is not found has none.
pub fn panels<'a>(map: &Map<'a>, open: &[Opened]) -> Vec<Panel<'a>> {
    let overview = overview(map);
    let opened = open.iter().filter_map(|opened| match opened {
        Opened::Switch(guid) => Some(switch_panel(map, map.place(*guid)?, *opened)),
        Opened::Group(guid) => {
            let place = map.place(*guid)?;
            let boxes = overview.boxes.iter().filter_map(|it| match &it.members {
                Members::Switches(switches) => Some(switches),
                Members::Host(_) => None,
            });
            let switches = boxes.into_iter().find(|switches| switches.contains(&place))?;
            Some(group_panel(map, &whole_groups(map, switches), *opened))
        }
    });
    let opened: Vec<Panel<'a>> = opened.collect();
    std::iter::once(overview).chain(opened).collect()
}

/// A panel with as many boxes in a row as it can have without too many lines.
fn fitting<'a>(of_boxes: impl Fn(usize) -> Panel<'a>) -> Panel<'a> {
    let mut panel = of_boxes(BOX_LIMITS[0]);
    for most in &BOX_LIMITS[1..] {
        if panel.lines.len() > MAX_LINES {
            panel = of_boxes(*most);
        }
    }
    panel
}

fn overview<'a>(map: &Map<'a>) -> Panel<'a> {
    fitting(|most| {
        let rows = map.levels().into_iter().map(|(level, switches)| Content {
            label: level_name(level, map.top_level()),
            members: units(map, &switches, most),
        });
        Panel::new(map, Subject::Fabric, rows.collect(), |_, _| true)
    })
}

/// The boxes of some switches of a level, which are in their order: one for each, or for each group, or for as many
/// neighbors as needed.
fn units<'a>(map: &Map<'a>, switches: &[usize], most: usize) -> Vec<Members<'a>> {
    let group = |switch: &usize| map.wiring.switches[*switch].group;
    let groups: Vec<&[usize]> = switches.chunk_by(|a, b| group(a) == group(b)).collect();
    let single: Vec<&[usize]> = switches.chunks(1).collect();
    let units = if single.len() > most && groups.len() > 1 { groups } else { single };
    let per_box = units.len().div_ceil(most).max(1);
    units.chunks(per_box).map(|of| Members::Switches(of.concat())).collect()
}

/// The switches of a box and, of whole pods, those of the other levels of these pods.
fn whole_groups(map: &Map<'_>, switches: &[usize]) -> BTreeSet<usize> {
    let all = &map.wiring.switches;
    let top = map.top_level();
    let mut whole: BTreeSet<usize> = switches.iter().copied().collect();
    let groups: BTreeSet<usize> = switches.iter().map(|it| all[*it].group).collect();
    let is_of_groups = |place: usize| groups.contains(&all[place].group);
    let level = switches.first().and_then(|it| all[*it].level);
    let of_level = (0..all.len()).filter(|it| all[*it].level == level && is_of_groups(*it));
    // A part of the only group of a level stands for itself.
    if level.is_some() && level < top && of_level.count() == switches.len() {
        let others = (0..all.len()).filter(|it| all[*it].level < top && is_of_groups(*it));
        whole.extend(others);
    }
    whole
}

fn group_panel<'a>(map: &Map<'a>, group: &BTreeSet<usize>, opened: Opened) -> Panel<'a> {
    let neighbors: BTreeSet<usize> = group.iter().flat_map(|it| map.neighbors(*it)).collect();
    fitting(|most| {
        let mut rows = Vec::new();
        for (level, switches) in map.levels() {
            let label = level_name(level, map.top_level());
            let (own, others): (Vec<usize>, Vec<usize>) =
                switches.into_iter().partition(|it| group.contains(it));
            let near: Vec<usize> = others.into_iter().filter(|it| neighbors.contains(it)).collect();
            rows.push(Content { label, members: units(map, &near, most) });
            for part in own.chunks(MAX_BOXES) {
                rows.push(Content { label, members: units(map, part, MAX_BOXES) });
            }
        }
        let is_shown = |a: usize, b: usize| group.contains(&a) || group.contains(&b);
        Panel::new(map, Subject::Opened(opened), rows, is_shown)
    })
}

fn switch_panel<'a>(map: &Map<'a>, switch: usize, opened: Opened) -> Panel<'a> {
    let level = map.wiring.switches[switch].level;
    let neighbors: BTreeSet<usize> = map.neighbors(switch).collect();
    let row = |of: Option<u8>, switches: &[usize]| {
        let near: Vec<usize> =
            switches.iter().copied().filter(|it| neighbors.contains(it)).collect();
        Content { label: level_name(of, map.top_level()), members: units(map, &near, MAX_BOXES) }
    };
    let levels = map.levels();
    // Switches without a level come first: they are drawn above.
    let (below, above): (Vec<_>, Vec<_>) =
        levels.iter().partition(|(of, _)| of.is_some() && *of < level);
    let mut rows: Vec<Content<'a>> = above.iter().map(|(of, all)| row(*of, all)).collect();
    let own = Members::Switches(vec![switch]);
    rows.push(Content { label: level_name(level, map.top_level()), members: vec![own] });
    rows.extend(below.iter().map(|(of, all)| row(*of, all)));
    for hosts in map.wiring.switches[switch].hosts.chunks(MAX_BOXES) {
        let members = hosts.iter().map(|host| Members::Host(*host)).collect();
        rows.push(Content { label: "Hosts", members });
    }
    Panel::new(map, Subject::Opened(opened), rows, |a, b| a == switch || b == switch)
}

impl<'a> Panel<'a> {
    /// Gives everything its place; of the lines between switches those for which `is_shown`.
    fn new(
        map: &Map<'a>,
        subject: Subject,
        content: Vec<Content<'a>>,
        is_shown: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut rows = Vec::new();
        let mut boxes = Vec::new();
        for Content { label, members } in content {
            if members.is_empty() {
                continue;
            }
            let each = (WIDTH - LEFT) / members.len() as f64;
            let is_upright = each < LEAST_WIDE;
            let (width, height) = if is_upright { UPRIGHT } else { BOX };
            let space = if is_upright { 3.0 } else { 6.0 };
            for (place, members) in members.into_iter().enumerate() {
                boxes.push(MapBox {
                    members,
                    row: rows.len(),
                    middle: LEFT + each * (place as f64 + 0.5),
                    half: ((each - space) / 2.0).min(width / 2.0),
                });
            }
            rows.push(Row { label, top: 0.0, height, is_upright });
        }
        let lines = lines(map, subject, &boxes, is_shown);
        let mut panel = Panel { subject, rows, boxes, lines, height: 0.0 };
        let mut top = if subject == Subject::Fabric { ABOVE } else { HEADING };
        for row in 0..panel.rows.len() {
            top += if panel.has_arcs(row) { ARCS } else { 0.0 };
            panel.rows[row].top = top;
            top += panel.rows[row].height + GAP;
        }
        panel.height = (top - GAP + BELOW).max(LEAST_HEIGHT);
        panel
    }

    /// Whether a line leads from a row to itself.
    fn has_arcs(&self, row: usize) -> bool {
        self.lines.iter().any(|line| [line.a, line.b].map(|it| self.boxes[it].row) == [row, row])
    }

    /// The path of a line, and its middle.
    pub fn path(&self, line: &Line<'_>) -> (String, (f64, f64)) {
        let (a, b) = (&self.boxes[line.a], &self.boxes[line.b]);
        let (above, below) = (&self.rows[a.row], &self.rows[b.row]);
        let (from, to) = (a.middle, b.middle);
        let middle = f64::midpoint(from, to);
        if a.row == b.row {
            let rise = ARCS * (0.35 + 0.65 * (to - from).abs() / WIDTH) * 2.0;
            let (left, right) = (tenth(from), tenth(to));
            let peak = tenth(above.top - rise);
            let path = format!("M{left} {0}Q{1} {peak} {right} {0}", above.top, tenth(middle));
            return (path, (middle, above.top - rise / 2.0));
        }
        let bottom = above.top + above.height;
        let path = format!("M{} {bottom}L{} {}", tenth(from), tenth(to), below.top);
        (path, (middle, f64::midpoint(bottom, below.top)))
    }
}

fn lines<'a>(
    map: &Map<'a>,
    subject: Subject,
    boxes: &[MapBox<'a>],
    is_shown: impl Fn(usize, usize) -> bool,
) -> Vec<Line<'a>> {
    let mut box_of = vec![None; map.wiring.switches.len()];
    for (place, it) in boxes.iter().enumerate() {
        if let Members::Switches(switches) = &it.members {
            for switch in switches {
                box_of[*switch] = Some(place);
            }
        }
    }
    let mut lines: BTreeMap<(usize, usize), Vec<LinkRow<'a>>> = BTreeMap::new();
    for bundle in &map.wiring.bundles {
        let (Some(a), Some(b)) = (box_of[bundle.a], box_of[bundle.b]) else { continue };
        // The color of a box shows the links within it.
        if a != b && is_shown(bundle.a, bundle.b) {
            lines.entry((a.min(b), a.max(b))).or_default().extend_from_slice(&bundle.links);
        }
    }
    // Hosts are shown of the switch that is open.
    if let Subject::Opened(Opened::Switch(guid)) = subject
        && let Some(a) = map.place(guid).and_then(|switch| box_of[switch])
    {
        for (b, it) in boxes.iter().enumerate() {
            if let Members::Host(host) = &it.members {
                lines.insert((a, b), vec![host.link]);
            }
        }
    }
    lines.into_iter().map(|((a, b), links)| Line { a, b, links }).collect()
}

/// Rounds to a tenth. More digits would not be visible and make the page larger.
pub fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
