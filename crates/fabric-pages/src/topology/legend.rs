//! The legend of a map: each class with its line, its sign and how many links have it, and what else there is to know.

use fabric_api::model::{CUT_OFF, DOWN};
use maud::{Markup, html};

use super::choice::Mask;
use super::layout::{LETTER, WIDTH};
use super::map::{DownCount, Map, Members};
use display_text::grouped;

/// A line of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The class in the style sheet.
    look: &'static str,
    sign: &'static str,
    text: String,
}

/// The width of the line and the box of an entry.
const KEY: f64 = 56.0;

fn entries(map: &Map<'_>) -> Vec<Entry> {
    let scale = &map.coloring.scale;
    let steps = scale.steps.iter().zip(map.all.counts).map(|(step, count)| Entry {
        look: step.look.class(),
        sign: step.sign,
        text: format!("{}: {}", step.label, grouped(count as u64)),
    });
    let unknown = Entry {
        look: "unknown",
        sign: "?",
        text: format!("unknown ({}): {}", scale.unknown, grouped(map.all.unknown as u64)),
    };
    let mut all: Vec<Entry> = steps.chain([unknown]).collect();
    let switches = Members::Switches((0..map.wiring.switches.len()).collect());
    let DownCount { down, cut_off } = map.down(&switches);
    for (look, text, count) in [
        (DOWN, "switches that are down", down),
        (CUT_OFF, "switches cut off by one that is down", cut_off),
    ] {
        if count > 0 {
            let text = format!("{text}: {}", grouped(count as u64));
            all.push(Entry { look, sign: "✕", text });
        }
    }
    all
}

/// A line and a box as the class has them.
fn key(entry: &Entry) -> Markup {
    html! {
        // Switches that are cut off have no line of their own.
        @if entry.look != CUT_OFF { path class={ "cable " (entry.look) } d="M1 7L24 7" {} }
        rect class={ "box " (entry.look) } x="30" y="2" width="18" height="10" rx="2" {}
    }
}

/// The notes, those on all maps included.
fn notes(map: &Map<'_>) -> Vec<String> {
    let mut notes = map.coloring.scale.notes.clone();
    notes.push(
        "A line shows the worst of the links between two boxes, a box the worst of its own links. The bar below a box: the \
         links to its hosts."
            .into(),
    );
    if map.choice.mask == Mask::Verdict {
        notes.push(
            "Broad lines: congested links. Above a box: ◆ number of its links with a congestion root, ◇ with a victim."
                .into(),
        );
    }
    notes
}

/// On a page.
pub fn on_page(map: &Map<'_>) -> Markup {
    html! {
        ul .legend { @for entry in entries(map) { li {
            svg .key.wiring width=(KEY) height="14" viewBox={ "0 0 " (KEY) " 14" } aria-hidden="true" { (key(&entry)) }
            @if !entry.sign.is_empty() { span class={ "sign " (entry.look) } { (entry.sign) } " " }
            (entry.text)
        } } }
        @for note in notes(map) { p .quiet.note { (note) } }
    }
}

/// In a file, from a height on; and the height where it ends.
pub fn in_file(map: &Map<'_>, from: f64) -> (Markup, f64) {
    let (mut x, mut y) = (0.0, from);
    let mut drawn = Vec::new();
    for entry in entries(map) {
        let sign = if entry.sign.is_empty() { String::new() } else { format!("{} ", entry.sign) };
        let text = format!("{sign}{}", entry.text);
        let width = KEY + text.chars().count() as f64 * LETTER + 24.0;
        if x > 0.0 && x + width > WIDTH {
            (x, y) = (0.0, y + 20.0);
        }
        drawn.push(html! { g transform={ "translate(" (x) " " (y) ")" } {
            (key(&entry))
            text .level x=(KEY) y="11" { (text) }
        } });
        x += width;
    }
    y += 36.0;
    for note in notes(map) {
        #[expect(clippy::cast_sign_loss, reason = "a width")]
        for line in wrapped(&note, (WIDTH / LETTER) as usize) {
            drawn.push(html! { text .level x="0" y=(y) { (line) } });
            y += 15.0;
        }
    }
    (html! { @for it in &drawn { (it) } }, y)
}

/// A text in lines of at most so many letters, if its words are not longer.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_have_several_lines() {
        assert_eq!(wrapped("one two  three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrapped("", 9), [""; 0]);
    }
}
