//! What the pointer and the keyboard find of a box or a line of the map: it leads to a page, and has a card. The card of a
//! box is below or above it, so that the pointer finds the boxes beside it.

use maud::{Markup, html};

use super::card::Card;
use super::layout::{LEFT, LETTER, MapBox, Row, WIDTH, tenth};

/// The height of a line of a card, and the space around them.
const LINE: f64 = 15.0;
const EDGE: f64 = 8.0;
/// The border of a card, half of which is outside.
const BORDER: f64 = 1.0;
/// Where a card begins below its box: what is said below the box stays visible.
const BELOW: f64 = 32.0;

/// A line with this path; its card is at its middle.
pub fn of_line(card: &Card, path: &str, (x, y): (f64, f64), panel_height: f64) -> Markup {
    let place = Place { x, y, panel_height };
    over(card, &html! { path d=(path) {} }, &html! {}, &place)
}

/// A box, with the link below it that opens it.
pub fn of_box(
    card: &Card,
    it: &MapBox<'_>,
    row: &Row,
    opener: &Markup,
    panel_height: f64,
) -> Markup {
    let (x, width) = (tenth(it.middle - it.half), tenth(it.half * 2.0));
    let shape = html! { rect x=(x) y=(row.top) width=(width) height=(row.height) rx="4" {} };
    let bottom = row.top + row.height;
    let height = size(card)[1];
    let has_space = panel_height - bottom - BELOW >= height.min(row.top);
    let reach = html! {
        // The pointer goes over this part to a card that does not touch its box.
        @if has_space { rect .reach x=(x) y=(bottom) width=(width) height=(BELOW) {} }
        (opener)
    };
    let y = if has_space { bottom + BELOW } else { row.top - height };
    over(card, &shape, &reach, &Place { x: it.middle, y, panel_height })
}

/// Where the card is: its middle and its top, if that is within the panel.
struct Place {
    x: f64,
    y: f64,
    panel_height: f64,
}

fn over(card: &Card, shape: &Markup, reach: &Markup, at: &Place) -> Markup {
    let [width, height] = size(card);
    let left = tenth((at.x - width / 2.0).clamp(LEFT / 2.0, WIDTH - width - BORDER));
    let top = tenth(at.y.min(at.panel_height - height - BORDER).max(BORDER));
    html! { g .over {
        a href=(card.href()) aria-label=(card.summary()) { (shape) }
        (reach)
        g .info transform={ "translate(" (left) " " (top) ")" } {
            rect width=(width) height=(height) rx="4" {}
            text { @for (place, (parts, href)) in card.fitted().enumerate() {
                @let text = html! { @for (nth, part) in parts.iter().enumerate() {
                    @let dy = if place + nth == 0 { EDGE + 9.0 } else { LINE };
                    tspan x=(EDGE) dy=(dy) { (part) }
                } };
                @match href { Some(href) => a href=(href) { (text) }, None => (text) }
            } }
        }
    } }
}

/// The width and the height of a card.
fn size(card: &Card) -> [f64; 2] {
    let parts: Vec<String> = card.fitted().flat_map(|(parts, _)| parts).collect();
    let letters = parts.iter().map(|part| part.chars().count()).max().unwrap_or(0);
    let width = (letters as f64 * LETTER + 2.0 * EDGE).ceil();
    [width, parts.len() as f64 * LINE + 2.0 * EDGE - 4.0]
}
