//! The card of a part of the map: what it is, its verdict with the first reason, rate, utilization, errors,
//! temperatures, hosts, and where to read on. What is not known is said to be unknown.

use std::cmp::Reverse;

use display_text::abbreviate;
use fabric_api::LinkRow;
use fabric_api::address;
use fabric_api::model::{CongestionCounts, LinkFigures, Verdicts};
use fabric_api::topology::LinkSum;
use ib_health::Verdict;
use ib_mad::NodeKind;

use super::choice::{Mask, Opened};
use super::coloring::Tally;
use super::layout::{Panel, Subject};
use super::map::{Map, Members};
use crate::components::{self, grouped, plural};

/// The most letters of a line.
const MAX_LETTERS: usize = 62;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardLine {
    pub text: String,
    pub href: Option<String>,
}

/// The first line is the name, which leads to the page of what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    pub lines: Vec<CardLine>,
}

impl Card {
    fn new(name: String, href: String) -> Self {
        Card { lines: vec![CardLine { text: name, href: Some(href) }] }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.lines.push(CardLine { text: text.into(), href: None });
    }

    fn lead(&mut self, text: impl Into<String>, href: String) {
        self.lines.push(CardLine { text: text.into(), href: Some(href) });
    }

    /// The address of its page.
    pub fn href(&self) -> &str {
        self.lines.first().and_then(|line| line.href.as_deref()).unwrap_or_default()
    }

    /// Its name, and the line after it.
    pub fn summary(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().take(2).map(|line| &*line.text).collect();
        lines.join("; ")
    }

    /// What it says, without where it leads to.
    pub fn text(&self) -> String {
        let said = self.lines.iter().enumerate().filter(|(place, line)| {
            let is_action =
                line.href.as_deref().is_some_and(|it| it.starts_with(address::TOPOLOGY));
            *place == 0 || !is_action
        });
        said.map(|(_, line)| &*line.text).collect::<Vec<_>>().join("\n")
    }

    /// Its lines, each as the parts that fit.
    pub fn fitted(&self) -> impl Iterator<Item = (Vec<String>, Option<&str>)> {
        self.lines.iter().map(|it| (wrapped(&it.text, MAX_LETTERS), it.href.as_deref()))
    }

    fn figures(&mut self, figures: &LinkFigures) {
        let rate = figures.min_rate.map(components::link_rate);
        let speeds = match figures.speeds.len() {
            0 => "Speed unknown".to_owned(),
            1 => figures.speeds.keys().next().map_or_else(String::new, ToString::to_string),
            _ => {
                let by_count = figures.speeds.iter();
                let parts =
                    by_count.map(|(speed, count)| format!("{} {speed}", grouped(*count as u64)));
                parts.collect::<Vec<_>>().join(", ")
            }
        };
        let from = if figures.speeds.len() > 1 { "from " } else { "" };
        let rate = rate.map_or_else(String::new, |rate| format!(", {from}{rate}"));
        let used = match figures.max_utilization {
            Some(used) => format!("utilization {}", components::percent(used)),
            None => "utilization unknown".into(),
        };
        self.say(format!("{speeds}{rate} · {used}"));
        let counted: Vec<String> = figures
            .bit_errors
            .iter()
            // The shortest one only says what the next one says, too.
            .filter(|it| it.window != "75s")
            .map(|it| format!("{} in {}", grouped(it.errors), it.window))
            .collect();
        let errors = match &*counted {
            [] => "unknown".to_owned(),
            counted => counted.join(", "),
        };
        let heat = match figures.max_temperature {
            Some(degrees) => format!("Modules up to {degrees:.0} °C"),
            None => "Module temperature unknown".into(),
        };
        self.say(format!("Bit errors: {errors}"));
        self.say(heat);
    }

    fn congestion(&mut self, counts: &CongestionCounts) {
        if counts.is_any() {
            self.say(format!("Congestion: {}", congestion(counts)));
        }
    }

    /// The worst link with its first reason, if it is watch or bad.
    fn worst_link(&mut self, map: &Map<'_>, links: &[LinkRow<'_>]) {
        let suspects = links.iter().filter(|link| link.verdict() >= Verdict::Watch);
        if let Some(link) = suspects.min_by_key(|it| (Reverse(it.verdict()), it.cable.low)) {
            let href = address::link(map.fabric(), link.id());
            self.lead(format!("{}: {}", link.name(), verdict_text(link)), href);
        }
    }

    /// The class by the mask, unless the verdicts say it.
    fn class(&mut self, map: &Map<'_>, tally: &Tally) {
        if map.choice.mask != Mask::Verdict {
            let worst = map.worst(tally);
            let step = worst.and_then(|class| map.coloring.scale.steps.get(class.0));
            self.say(match step {
                Some(step) => format!("By color: {}", step.label),
                None => format!("By color: unknown ({})", map.coloring.scale.unknown),
            });
        }
    }
}

/// A text in parts of so many letters at most, separated at blanks. Only a longer word is abbreviated.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match parts.last_mut() {
            Some(part) if part.chars().count() + 1 + word.chars().count() <= letters => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(abbreviate(word, letters)),
        }
    }
    parts
}

/// The verdict of a link with its first reason.
fn verdict_text(link: &LinkRow<'_>) -> String {
    if link.learning().is_some() {
        return fabric_api::model::LEARNING.into();
    }
    let word = Verdict::word(link.verdict().label());
    match link.first_reason() {
        Some(reason) => format!("{word}, {}", components::label_text(reason.label())),
        None => word.to_owned(),
    }
}

/// The number of links and their verdicts: `4 links (1 bad, 3 ok)`.
pub fn links(verdicts: &Verdicts) -> String {
    let links = plural(verdicts.count(), "link");
    format!("{links} ({})", components::verdict_counts(verdicts))
}

/// The congestion of some links as text: `1 root, 3 victims, waiting up to 32% of the time`.
pub fn congestion(of: &CongestionCounts) -> String {
    let counts = [(of.roots, "root"), (of.victims, "victim")].into_iter();
    let mut parts: Vec<String> =
        counts.filter(|(count, _)| *count > 0).map(|(count, noun)| plural(count, noun)).collect();
    // Less than half a percent is no news.
    if let Some(share) = of.max_wait_ratio.filter(|share| *share >= 0.005) {
        parts.push(format!("waiting up to {} of the time", components::percent(share)));
    }
    parts.join(", ")
}

/// What a box is called: a switch or host by its name, several by the first and the last one.
pub fn name(map: &Map<'_>, members: &Members<'_>) -> String {
    match members {
        Members::Host(host) => map.wiring.view.snapshot.fabric.node(host.host).name.clone(),
        Members::Switches(switches) => match switches[..] {
            [] => String::new(),
            [one] => map.name(one).to_owned(),
            [first, .., last] => format!("{} … {}", map.name(first), map.name(last)),
        },
    }
}

/// The card of all links between two boxes.
pub fn of_links(
    map: &Map<'_>,
    [a, b]: [&Members<'_>; 2],
    links: &[LinkRow<'_>],
    sum: &LinkSum,
) -> Card {
    let worst = links.iter().min_by_key(|it| (Reverse(it.verdict()), it.cable.low));
    let href = worst.map_or_else(String::new, |link| address::link(map.fabric(), link.id()));
    let mut card = match links {
        [one] => {
            let mut card = Card::new(one.name(), href);
            card.say(verdict_text(one));
            card
        }
        several => {
            let name = format!("{} – {}", name(map, a), name(map, b));
            let mut card = Card::new(name, href);
            card.say(self::links(&sum.verdicts));
            card.worst_link(map, several);
            card
        }
    };
    card.class(map, &map.tally_of(links.iter()));
    card.figures(&sum.figures);
    card.congestion(&sum.congestion);
    card
}

/// The card of a box with these links.
pub fn of_box(
    map: &Map<'_>,
    panel: &Panel<'_>,
    members: &Members<'_>,
    links: &[LinkRow<'_>],
    sum: &LinkSum,
) -> Card {
    match members {
        Members::Switches(switches) => match switches[..] {
            [one] => of_switch(map, one, links, sum),
            _ => of_group(map, panel, switches, links, sum),
        },
        Members::Host(host) => {
            let view = map.wiring.view;
            let node = view.snapshot.fabric.node(host.host);
            let kind = if node.identity.kind == NodeKind::Router { "router" } else { "HCA" };
            let page = address::node(map.fabric(), node.identity.guid);
            let is_down = map.wiring.down.get(host.host).is_some();
            let state = if is_down { ", down" } else { "" };
            let mut card = Card::new(format!("{}: {kind}{state}", node.name), page);
            let href = address::link(map.fabric(), host.link.id());
            card.lead(format!("{}: {}", host.link.name(), verdict_text(&host.link)), href);
            card.class(map, &map.tally(members));
            card.figures(&sum.figures);
            card.congestion(&sum.congestion);
            card
        }
    }
}

fn of_switch(map: &Map<'_>, place: usize, links: &[LinkRow<'_>], sum: &LinkSum) -> Card {
    let (view, switch, guid) = (map.wiring.view, &map.wiring.switches[place], map.guid(place));
    let fabric = &view.snapshot.fabric;
    let state = match map.wiring.down.get(switch.node) {
        None => String::new(),
        Some(down) => match down.behind {
            Some(by) => format!(", cut off behind {}", fabric.node(by).name),
            None => ", down".into(),
        },
    };
    let name = map.name(place);
    let mut card = Card::new(format!("{name}{state}"), address::node(map.fabric(), guid));
    of_links_of_switches(map, &mut card, &[place], links, sum);
    match view.temperature(switch.node) {
        Some(degrees) => card.say(format!("ASIC {degrees:.0} °C")),
        None if map.choice.mask == Mask::Temperature => card.say("ASIC temperature unknown"),
        None => {}
    }
    if !switch.hosts.is_empty() {
        let opened = Opened::Switch(guid);
        if map.choice.open.contains(&opened) {
            card.lead("Close its hosts", map.choice.closed(opened));
        } else {
            card.lead("Show its hosts", map.choice.opened(opened));
        }
    }
    card
}

fn of_group(
    map: &Map<'_>,
    panel: &Panel<'_>,
    switches: &[usize],
    links: &[LinkRow<'_>],
    sum: &LinkSum,
) -> Card {
    let members = Members::Switches(switches.to_vec());
    let text = format!("{}: {}", name(map, &members), plural(switches.len(), "switch"));
    let opened = group_of(map, switches);
    let is_open = opened.is_some_and(|opened| map.choice.open.contains(&opened));
    let (action, href) = match opened {
        Some(opened) if is_open => ("Close", map.choice.closed(opened)),
        Some(opened) => ("Open", map.choice.opened(opened)),
        None => ("", String::new()),
    };
    let mut card = Card::new(text, href.clone());
    let down = map.down(&members);
    if down.any() > 0 {
        card.say(format!("✕ {} down or cut off", plural(down.any(), "switch")));
    }
    of_links_of_switches(map, &mut card, switches, links, sum);
    if panel.subject == Subject::Fabric && !href.is_empty() {
        card.lead(action, href);
    }
    card
}

fn of_links_of_switches(
    map: &Map<'_>,
    card: &mut Card,
    switches: &[usize],
    links: &[LinkRow<'_>],
    sum: &LinkSum,
) {
    card.say(self::links(&sum.verdicts));
    card.worst_link(map, links);
    let mut hosts = Verdicts::default();
    for link in map.host_links(switches) {
        hosts.add(link.verdict());
        hosts.learning += usize::from(link.learning().is_some());
    }
    if hosts.count() > 0 {
        let counts = components::verdict_counts(&hosts);
        card.say(format!("{}: {counts}", plural(hosts.count(), "HCA")));
    }
    // Its color is also that of the switches themselves.
    card.class(map, &map.tally(&Members::Switches(switches.to_vec())));
    card.figures(&sum.figures);
    card.congestion(&sum.congestion);
}

/// What opens the box of several switches: one of them that is already in the address, or the first one.
pub fn group_of(map: &Map<'_>, switches: &[usize]) -> Option<Opened> {
    let mut guids = switches.iter().map(|switch| Opened::Group(map.guid(*switch)));
    let first = guids.next()?;
    let mut all = std::iter::once(first).chain(guids);
    Some(all.find(|opened| map.choice.open.contains(opened)).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        for (text, parts) in [
            ("one", &["one"][..]),
            ("one two", &["one two"]),
            ("one two three", &["one two", "three"]),
            ("a veryverylong b", &["a", "ve…ylong", "b"]),
            ("", &[""]),
        ] {
            assert_eq!(wrapped(text, 8), parts);
        }
    }
}
