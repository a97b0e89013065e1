//! The picture of a map (SVG): its panels one below the other.
//!
//! On a page, each box and each line has a card that shows while the pointer is over it, or while it has the keyboard
//! focus. SVG paints in the order of its elements: what the pointer finds is a layer of its own, which is invisible,
//! above all that is drawn, so that nothing is drawn over a card.

use maud::{Markup, PreEscaped, html};

use display_text::abbreviate;
use fabric_api::LinkRow;
use fabric_api::model::{CongestionCounts, DOWN};
use fabric_api::topology::LinkSum;

use super::card::{self, Card};
use super::choice::{Mask, Opened, anchor};
use super::layout::{LETTER, Line, MapBox, Panel, Row, Subject, WIDTH, tenth};
use super::map::{Map, Members};
use super::over;
use crate::components::plural;

/// With more lines than this they are drawn thinner.
const DENSE: usize = 120;

/// Where the picture is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// On a page, with cards and links.
    Page,
    /// In a file: what a card would say is the title of what is drawn.
    File,
}

/// The panels of a map, drawn from a height on, and the height where they end.
pub fn draw(map: &Map<'_>, panels: &[Panel<'_>], medium: Medium, from: f64) -> (Markup, f64) {
    let mut drawn = String::new();
    let mut y = from;
    for panel in panels {
        let drawing = Drawing { map, panel, medium };
        drawn +=
            &html! { g transform={ "translate(0 " (y) ")" } { (drawing.panel()) } }.into_string();
        y += panel.height;
    }
    (PreEscaped(drawn), y)
}

/// What a panel shows, as text.
pub fn heading(map: &Map<'_>, panel: &Panel<'_>) -> String {
    match panel.subject {
        Subject::Fabric => "The whole fabric".into(),
        Subject::Opened(Opened::Switch(guid)) => {
            let place = map.place(guid);
            let hosts = place.map_or(0, |place| map.wiring.switches[place].hosts.len());
            let name = place.map_or("", |place| map.name(place));
            format!("{name} and its {}", plural(hosts, "host"))
        }
        Subject::Opened(Opened::Group(guid)) => {
            let place = map.place(guid);
            format!("The group of {}", place.map_or("", |place| map.name(place)))
        }
    }
}

/// A box or a line: what is seen, and what the pointer finds.
struct Part {
    drawn: Markup,
    over: Markup,
}

struct Drawing<'a, 'b> {
    map: &'b Map<'a>,
    panel: &'b Panel<'a>,
    medium: Medium,
}

impl<'a> Drawing<'a, '_> {
    fn panel(&self) -> Markup {
        let mut order: Vec<&Line<'a>> = self.panel.lines.iter().collect();
        // The worst are drawn last, above the others.
        order.sort_by_cached_key(|line| {
            let tally = self.map.tally_of(line.links.iter());
            (self.map.worst(&tally), line.links.iter().map(LinkRow::verdict).max())
        });
        let lines: Vec<Part> = order.into_iter().map(|line| self.line(line)).collect();
        let boxes: Vec<Part> = self.panel.boxes.iter().map(|it| self.switch_box(it)).collect();
        let is_dense = lines.len() > DENSE;
        html! {
            @if let Subject::Opened(opened) = self.panel.subject { (self.frame(opened)) }
            g .dense[is_dense] { @for line in &lines { (line.drawn) } }
            @for row in &self.panel.rows {
                text .level x="0" y=(row.top + row.height / 2.0 + 4.0) { (row.label) }
            }
            @for it in &boxes { (it.drawn) }
            @for part in lines.iter().chain(&boxes) { (part.over) }
        }
    }

    /// What is open has a line above, its name, and a link that closes it.
    fn frame(&self, opened: Opened) -> Markup {
        let heading = heading(self.map, self.panel);
        html! {
            path .frame d={ "M0 2H" (WIDTH) } {}
            text .heading #(anchor(opened)) x="0" y="24" { (heading) }
            @if self.medium == Medium::Page {
                a .action href=(self.map.choice.closed(opened)) aria-label={ "Close " (heading) } {
                        text .heading x=(heading.chars().count() as f64 * 9.0 + 16.0) y="24" { "Close" }
                }
            }
        }
    }

    /// What only a page has.
    fn on_page(&self, part: impl Fn() -> Markup) -> Markup {
        if self.medium == Medium::Page {
            part()
        } else {
            html! {}
        }
    }

    /// The title of what is drawn, in a file.
    fn title(&self, card: &Card) -> Markup {
        html! { @if self.medium == Medium::File { title { (card.text()) } } }
    }

    fn line(&self, line: &Line<'a>) -> Part {
        let (a, b) = (&self.panel.boxes[line.a], &self.panel.boxes[line.b]);
        let (path, middle) = self.panel.path(line);
        let sum = LinkSum::of(line.links.iter());
        let card = card::of_links(self.map, [&a.members, &b.members], &line.links, &sum);
        let is_down = [a, b].iter().any(|it| match &it.members {
            Members::Switches(of) => self.map.down(&it.members).any() == of.len(),
            Members::Host(_) => self.map.down(&it.members).any() > 0,
        });
        let tally = self.map.tally_of(line.links.iter());
        let look = match self.map.worst(&tally) {
            _ if is_down => DOWN,
            worst => self.map.coloring.look(worst).class(),
        };
        let is_congested = self.map.choice.mask == Mask::Verdict && sum.congestion.is_any();
        let drawn = html! {
            @if is_congested { path .congested d=(path) {} }
            path class={ "cable " (look) } d=(path) { (self.title(&card)) }
        };
        let over = self.on_page(|| over::of_line(&card, &path, middle, self.panel.height));
        Part { drawn, over }
    }

    fn switch_box(&self, it: &MapBox<'a>) -> Part {
        let row = &self.panel.rows[it.row];
        let links = self.map.links_of(&it.members);
        let sum = LinkSum::of(links.iter());
        let card = card::of_box(self.map, self.panel, &it.members, &links, &sum);
        let down = self.map.down(&it.members);
        let tally = self.map.tally(&it.members);
        let worst = self.map.worst(&tally);
        let look = down.class().unwrap_or_else(|| self.map.coloring.look(worst).class());
        let sign = match down.class() {
            Some(_) => "✕",
            None => self.map.coloring.sign(worst),
        };
        let (x, width) = (tenth(it.middle - it.half), tenth(it.half * 2.0));
        let drawn = html! {
            g .gone[down.down > 0] {
                rect class={ "box " (look) } x=(x) y=(row.top) width=(width) height=(row.height) rx="4" { (self.title(&card)) }
                @if row.is_upright { (self.upright(it, row, sign, look)) } @else { (self.wide(it, row, sign, look)) }
            }
            (self.strip(it, row))
            (self.congestion(&sum.congestion, it, row))
            (self.below(it, row))
        };
        let opener = self.opener(it, row);
        let over = self.on_page(|| over::of_box(&card, it, row, &opener, self.panel.height));
        Part { drawn, over }
    }

    /// The text of a box: its name, what it has, and its sign.
    fn texts(&self, it: &MapBox<'a>) -> Vec<String> {
        match &it.members {
            Members::Switches(switches) => match switches[..] {
                [first, .., last] => {
                    let down = self.map.down(&it.members).any();
                    let count = match down {
                        0 => format!("{} {}", self.mark(it), plural(switches.len(), "switch")),
                        down => format!("{down} of {} down", switches.len()),
                    };
                    vec![self.map.name(first).into(), format!("to {}", self.map.name(last)), count]
                }
                [one] => {
                    let down = self.map.down(&it.members);
                    let state = match (down.down, down.cut_off) {
                        (0, 0) => None,
                        (0, _) => Some("cut off".to_owned()),
                        _ => Some("down".to_owned()),
                    };
                    let hosts = self.map.wiring.switches[one].hosts.len();
                    let hosts = (hosts > 0).then(|| plural(hosts, "HCA"));
                    std::iter::once(self.map.name(one).to_owned()).chain(state.or(hosts)).collect()
                }
                [] => Vec::new(),
            },
            Members::Host(_) => {
                let state = (self.map.down(&it.members).any() > 0).then(|| "down".to_owned());
                std::iter::once(card::name(self.map, &it.members)).chain(state).collect()
            }
        }
    }

    fn wide(&self, it: &MapBox<'a>, row: &Row, sign: &str, look: &str) -> Markup {
        let mut texts = self.texts(it);
        if texts.len() == 1 && !sign.is_empty() {
            texts.push(String::new());
        }
        let letters = letters(it.half * 2.0);
        let first = row.top + row.height / 2.0 + 4.0 - (texts.len() as f64 - 1.0) * 7.0;
        let last = texts.len() - 1;
        html! { @for (place, text) in texts.iter().enumerate() {
            text .unit[place > 0] x=(tenth(it.middle)) y=(first + place as f64 * 14.0) {
                @if place == last && !sign.is_empty() {
                    (signed(sign, look)) " " (fitted(text, (letters * 6 / 5).saturating_sub(sign.chars().count() + 1)))
                } @else {
                    (abbreviate(text, if place > 0 { letters * 6 / 5 } else { letters }))
                }
            }
        } }
    }

    /// As many lines of upright text as there is space for, and the sign below.
    fn upright(&self, it: &MapBox<'a>, row: &Row, sign: &str, look: &str) -> Markup {
        let texts = self.texts(it);
        let space = row.height - 22.0;
        #[expect(clippy::cast_sign_loss, reason = "a box has a width")]
        let fits = ((it.half * 2.0 / 12.0) as usize).max(1);
        let shown = texts.len().min(fits);
        let y = tenth(row.top + 6.0 + space / 2.0);
        html! {
            @for (place, text) in texts.iter().take(shown).enumerate() {
                @let x = tenth(it.middle + 4.0 - (shown as f64 - 1.0 - place as f64 * 2.0) * 6.0);
                text .unit[place > 0] x=(x) y=(y) transform={ "rotate(-90 " (x) " " (y) ")" } {
                    (abbreviate(text, letters(space)))
                }
            }
            @if !sign.is_empty() {
                text x=(tenth(it.middle)) y=(row.top + row.height - 5.0) { (signed(sign, look)) }
            }
        }
    }

    /// The links to its hosts by class, as the parts of a bar, the worst one first.
    fn strip(&self, it: &MapBox<'a>, row: &Row) -> Markup {
        let tally = self.map.host_tally(&it.members);
        let total = tally.total() as f64;
        let width = it.half * 2.0;
        let steps = self.map.coloring.scale.steps.iter().enumerate().rev();
        let known = steps.map(|(place, step)| (step.look.class(), tally.counts[place]));
        let parts = known.chain([("unknown", tally.unknown)]).filter(|(_, count)| *count > 0);
        let mut x = it.middle - it.half;
        let placed = parts.map(|(look, count)| {
            let part = width * count as f64 / total;
            x += part;
            (look, tenth(x - part), tenth(part))
        });
        let y = row.top + row.height + 4.0;
        html! { @for (look, x, width) in placed {
            rect class={ "part " (look) } x=(x) y=(y) width=(width) height="6" {}
        } }
    }

    /// The counts of congested links, above a box. They include links to hosts, which have no line.
    fn congestion(&self, counts: &CongestionCounts, it: &MapBox<'a>, row: &Row) -> Markup {
        if self.map.choice.mask != Mask::Verdict || matches!(it.members, Members::Host(_)) {
            return html! {};
        }
        html! { @if counts.is_any() {
            text .congestion .small[row.is_upright] x=(tenth(it.middle + it.half)) y=(tenth(row.top - 4.0)) {
                title { "Congestion: " (card::congestion(counts)) }
                @if counts.roots > 0 { "◆" (counts.roots) } @if counts.victims > 0 { "◇" (counts.victims) }
            }
        } }
    }

    /// Whether a box is open.
    fn mark(&self, it: &MapBox<'a>) -> &'static str {
        let is_open = self.opened(it).is_some_and(|it| self.map.choice.open.contains(&it));
        if is_open { "▾" } else { "▸" }
    }

    /// What opens a box.
    fn opened(&self, it: &MapBox<'a>) -> Option<Opened> {
        let Members::Switches(switches) = &it.members else { return None };
        match switches[..] {
            [one] if self.map.wiring.switches[one].hosts.is_empty() => None,
            [one] => Some(Opened::Switch(self.map.guid(one))),
            _ => card::group_of(self.map, switches),
        }
    }

    /// What is said below a box: the worst class of the links to its hosts and how many they are, and the mark that opens
    /// a switch.
    fn below(&self, it: &MapBox<'a>, row: &Row) -> Markup {
        if matches!(it.members, Members::Host(_)) {
            return html! {};
        }
        let tally = self.map.host_tally(&it.members);
        let worst = self.map.worst(&tally);
        let sign = if tally.total() == 0 { "" } else { self.map.coloring.sign(worst) };
        let count = worst.map_or(tally.unknown, |class| tally.counts[class.0]);
        // Longer ones would not fit.
        let count = if sign.chars().count() == 1 { count.to_string() } else { String::new() };
        let is_subject =
            self.opened(it).is_some_and(|it| self.panel.subject == Subject::Opened(it));
        let (x, y) = (tenth(it.middle), row.top + row.height + 24.0);
        html! {
            @if self.opens(it).is_some() { text .mark x=(x) y=(y) { (self.mark(it)) } }
            @if !sign.is_empty() {
                @let look = self.map.coloring.look(worst).class();
                // Lines to hosts begin below what is open.
                @if is_subject {
                    text class={ "count aside " (look) } x=(tenth(it.middle + it.half + 6.0)) y=(y - 13.0) { (count) (sign) }
                } @else {
                    text class={ "count " (look) } x=(x) y=(y + 13.0) { (count) (sign) }
                }
            }
        }
    }

    /// The switch that a mark below a box opens or closes. A box of several opens by itself, and what is open has a link
    /// above it.
    fn opens(&self, it: &MapBox<'a>) -> Option<Opened> {
        let opened = self.opened(it)?;
        let is_one = matches!(opened, Opened::Switch(_));
        let is_subject = self.panel.subject == Subject::Opened(opened);
        (is_one && !is_subject && self.medium == Medium::Page).then_some(opened)
    }

    /// The link that the mark below a box is. The pointer may be over it on its way to the card.
    fn opener(&self, it: &MapBox<'a>, row: &Row) -> Markup {
        let Some(opened) = self.opens(it) else { return html! {} };
        let choice = &self.map.choice;
        let (action, href) = if choice.open.contains(&opened) {
            ("Close", choice.closed(opened))
        } else {
            ("Show", choice.opened(opened))
        };
        let label = format!("{action} the hosts of {}", card::name(self.map, &it.members));
        let (x, y) = (tenth(it.middle - 11.0), row.top + row.height + 11.0);
        html! { a href=(href) aria-label=(label) { rect x=(x) y=(y) width="22" height="18" {} } }
    }
}

#[expect(clippy::cast_sign_loss, reason = "a width")]
fn letters(width: f64) -> usize {
    (width / LETTER) as usize
}

/// A sign in the color of its class.
fn signed(sign: &str, look: &str) -> Markup {
    html! { tspan class={ "sign " (look) } { (sign) } }
}

/// A count that fits: `▸ 8 switches`, or `▸ 8`.
fn fitted(text: &str, letters: usize) -> String {
    let is_count = text.split(' ').nth(1).is_some_and(|word| word.parse::<usize>().is_ok());
    if is_count && text.chars().count() > letters {
        return text.split(' ').take(2).collect::<Vec<_>>().join(" ");
    }
    abbreviate(text, letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shortened_to_their_number() {
        for (text, letters, fits) in [
            ("▸ 8 switches", 12, "▸ 8 switches"),
            ("▸ 8 switches", 9, "▸ 8"),
            ("11 HCAs", 7, "11 HCAs"),
            ("", 3, ""),
        ] {
            assert_eq!(fitted(text, letters), fits);
        }
    }
}
