//! `/topology.svg`: the picture of the map as a file that shows the same without the exporter.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use fabric_history::local_clock::LocalClock;
use maud::html;

use super::choice::Mask;
use super::layout::{Panel, WIDTH};
use super::legend;
use super::map::Map;
use super::picture::{self, Medium};
use crate::components;
use crate::style::PICTURE_CSS;

/// The space around the picture.
const MARGIN: f64 = 16.0;

/// Nothing but the style in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// The file as a download.
pub fn respond(map: &Map<'_>, panels: &[Panel<'_>], swept_at: Option<&str>) -> Response {
    let mask = map.choice.mask.label();
    let name: String =
        map.fabric().chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    let disposition = format!("attachment; filename=\"topology-{name}-{mask}.svg\"");
    let mut response = draw(map, panels, swept_at).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // A name of letters, digits and dashes is a value.
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

fn draw(map: &Map<'_>, panels: &[Panel<'_>], swept_at: Option<&str>) -> String {
    let title = title(map);
    let clock = LocalClock::now();
    let time = swept_at.and_then(|text| humantime::parse_rfc3339(text).ok());
    let about = match time {
        Some(time) => format!("As of {}, {}", clock.format(time), clock.zone()),
        None => "Before the first sweep".into(),
    };
    let switches = components::plural(map.wiring.switches.len(), "switch");
    let links = components::plural(map.all.total(), "link");
    let (legend, below) = legend::in_file(map, 58.0);
    let (panels, bottom) = picture::draw(map, panels, Medium::File, below + 8.0);
    let (width, height) = (WIDTH + 2.0 * MARGIN, bottom + 2.0 * MARGIN);
    let drawn = html! {
        svg .wiring.file xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
            title { (title) }
            style { (maud::PreEscaped(PICTURE_CSS)) }
            rect .paper width="100%" height="100%" {}
            g transform={ "translate(" (MARGIN) " " (MARGIN) ")" } {
                text .heading x="0" y="20" { (title) }
                text .level x="0" y="42" { (about) " · " (switches) ", " (links) }
                (legend)
                (panels)
            }
        }
    };
    xml(&drawn.into_string())
}

/// What the picture shows: `Fabric default: errors, 12 minutes`.
pub fn title(map: &Map<'_>) -> String {
    let window = map.choice.error_window().map_or("", |window| window.label());
    let joint = if window.is_empty() { "" } else { " in the last " };
    let mask = match map.choice.mask {
        Mask::Verdict => "verdicts",
        other => other.label(),
    };
    format!("Fabric {}: {mask} of links{joint}{window}", map.fabric())
}

/// The text without what XML cannot have (XML 1.0, 2.2): a node may have any name.
fn xml(text: &str) -> String {
    let is_control = |it: char| it < ' ' && !matches!(it, '\t' | '\n' | '\r');
    text.replace(|it| is_control(it) || matches!(it, '\u{fffe}' | '\u{ffff}'), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_no_xml() {
        assert_eq!(xml("a\u{1}b\tc\n\u{ffff}é"), "a\u{fffd}b\tc\n\u{fffd}é");
    }
}
