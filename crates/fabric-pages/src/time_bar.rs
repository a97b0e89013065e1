//! The bar with which pages go to other moments, and links that stay at the moment that is shown.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use axum::extract::Query;
use axum::http::Uri;
use display_text::plural;
use fabric_api::address;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::time;
use fabric_history::parameters::Pairs;
use fabric_history::past::{Neighbors, Past};
use maud::{Markup, PreEscaped, html};

use crate::components::duration;
use crate::moment::AT;
use crate::recent_moments::ShownMoment;

const HOUR: Duration = Duration::from_secs(3600);
/// The most limits of a moment that are listed.
const MOST_TEXTS: usize = 8;

/// The parameters of an address without the moment, and those that are no choice of the page.
fn others(uri: &Uri) -> Pairs {
    let Query(pairs) = Query::<Pairs>::try_from_uri(uri).unwrap_or_default();
    pairs.into_iter().filter(|(key, _)| ![AT, "refresh", "page"].contains(&&**key)).collect()
}

/// The same page at another moment, or now.
fn address_at(uri: &Uri, at: Option<SystemTime>) -> String {
    let (others, at) = (others(uri), at.map(time::text).unwrap_or_default());
    let others = others.iter().map(|(key, value)| (&**key, &**value));
    let pairs: Vec<(&str, &str)> = others.chain([(AT, &*at)]).collect();
    address::with(uri.path(), &pairs)
}

/// A form that leads to the same page at a moment.
fn form(uri: &Uri, at: &str) -> Markup {
    html! { form .moment action=(uri.path()) {
        @for (key, value) in others(uri) { input type="hidden" name=(key) value=(value); }
        label for="at" { "Time" }
        input #at name=(AT) value=(at) placeholder="2h, 03:12, 2026-11-27 03:12" autocomplete="off" spellcheck="false" size="28";
        button { "Go" }
    } }
}

/// Where a page of the present leads into the past.
pub fn into_past(uri: &Uri) -> Markup {
    html! { details .past {
        summary { "Show the past" }
        (form(uri, ""))
        p { a href=(changes(uri, "24h", None)) { "What changed in the last 24 hours" } }
    } }
}

/// The page that compares a moment with a later one, or with now.
fn changes(uri: &Uri, from: &str, to: Option<&str>) -> String {
    let others = others(uri);
    let fabric = others.iter().find(|(key, _)| key == "fabric").map_or("", |(_, value)| value);
    address::with(
        address::CHANGES,
        &[("diff", from), (AT, to.unwrap_or_default()), ("fabric", fabric)],
    )
}

/// The bar of a page of the past.
pub fn bar(uri: &Uri, moment: &ShownMoment) -> Markup {
    let (past, clock) = (&moment.past, LocalClock::now());
    let Neighbors { sweeps, events, span, .. } = past.neighbors;
    let hour_before = past.at.checked_sub(HOUR).filter(|at| span.first.is_some_and(|it| it <= *at));
    let hour_after = Some(past.at + HOUR).filter(|at| span.last.is_some_and(|it| it >= *at));
    let step = |to: Option<SystemTime>, text: &str, what: &str| {
        html! { li { @match to {
            Some(to) => a href=(address_at(uri, Some(to))) aria-label=(what) { (text) },
            None => span .quiet aria-label={ (what) ": none" } { (text) },
        } } }
    };
    let age = clock.time().duration_since(past.at).unwrap_or_default();
    html! { section .timebar aria-label="Time" {
        p {
            strong { "As of " time datetime=(moment.text()) { (clock.format(past.at)) } }
            " (" (duration(age)) " ago). " a href=(address_at(uri, None)) { "Now" }
            " · " a href=(changes(uri, &moment.text(), None)) { "What changed since" }
        }
        nav aria-label="Steps in time" { ul {
            (step(hour_before, "« hour", "One hour earlier"))
            (step(events[0], "‹ event", "Previous event"))
            (step(sweeps[0], "‹ sweep", "Previous sweep"))
            (step(sweeps[1], "sweep ›", "Next sweep"))
            (step(events[1], "event ›", "Next event"))
            (step(hour_after, "hour »", "One hour later"))
        } }
        (form(uri, &clock.format(past.at)))
        @for text in limits(past, &clock) { p { (text) } }
        p .quiet { "Not recorded: LIDs, firmware, modules, temperatures, bit error ratios, and totals of traffic and corrected errors." }
    } }
}

/// What is known less well than it was then: as many texts as fit.
fn limits(past: &Past, clock: &LocalClock) -> Vec<String> {
    let mut texts = past.limits(clock);
    let more = texts.len().saturating_sub(MOST_TEXTS);
    texts.truncate(MOST_TEXTS);
    if more > 0 {
        texts.push(format!("Not shown: {} like these.", plural(more, "more note")));
    }
    texts
}

/// The models of the API that have a past.
fn is_model_with_past(path: &str) -> bool {
    let models = ["changes", "links", "nodes", "overview", "search", "topology", "traffic"];
    let model = path.strip_prefix("/api/v1/").and_then(|rest| rest.split('/').next());
    model.is_some_and(|model| models.contains(&model)) && !path.ends_with("/hosts")
}

/// Whether an address is that of a page or model that has a past.
pub fn has_past(address: &str, telemetry_path: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let is_below = |parent: &str| {
        path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    path.starts_with('/')
        && !path.starts_with("//")
        && (!path.starts_with("/api/") || is_model_with_past(path))
        && !["/-", address::RUNBOOKS, telemetry_path].into_iter().any(is_below)
}

/// Whether an escaped address names a moment, or the present by an empty one.
fn has_moment(address: &str) -> bool {
    ["?at=", "&amp;at="].iter().any(|parameter| address.contains(parameter))
}

/// An address with a moment, in front of its fragment; `and` separates parameters.
pub fn with_moment(address: &str, at: &str, and: &str) -> String {
    let (path, fragment) = match address.find('#') {
        Some(place) => address.split_at(place),
        None => (address, ""),
    };
    let joint = if path.contains('?') { and } else { "?" };
    format!("{path}{joint}{AT}={at}{fragment}")
}

/// The content of a page whose links and forms stay at a moment. All of them are found here: some 200 places make links,
/// and none of them has to know of the past.
pub fn keep_moment(content: &Markup, at: &str, telemetry_path: &str) -> Markup {
    // RFC 3339 in UTC has no character that an address escapes.
    let text = &content.0;
    let mut kept = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = &**text;
    while let Some(place) = rest.find('<') {
        let (before, tag) = rest.split_at(place);
        kept += before;
        // Values are escaped: none contains the end of a tag.
        let end = tag.find('>').map_or(tag.len(), |end| end + 1);
        let (tag, after) = tag.split_at(end);
        let is = |name: &str| tag.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
        let attribute = if is("<a") { " href=\"" } else { " action=\"" };
        let value = if is("<a") || is("<form") { tag.find(attribute) } else { None };
        let value = value.map(|place| place + attribute.len());
        let found = value.and_then(|start| Some((start, start + tag[start..].find('"')?)));
        match found.filter(|(start, end)| has_past(&tag[*start..*end], telemetry_path)) {
            Some((start, end)) if is("<a") && !has_moment(&tag[start..end]) => {
                kept += &tag[..start];
                kept += &with_moment(&tag[start..end], at, "&amp;");
                kept += &tag[end..];
            }
            Some(_) if is("<form") => {
                kept += tag;
                // Writing to a string does not fail.
                let _ = write!(kept, "<input type=\"hidden\" name=\"{AT}\" value=\"{at}\">");
            }
            _ => kept += tag,
        }
        rest = after;
    }
    kept += rest;
    PreEscaped(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_forms_stay_at_the_moment() {
        let at = "2026-11-27T03:12:00.000Z";
        for (from, to) in [
            (r#"<a href="/links">x</a>"#, r#"<a href="/links?at=2026-11-27T03:12:00.000Z">x</a>"#),
            (
                r#"<a class="b" href="/node/0x1?fabric=a&amp;b=c#port-3">"#,
                r#"<a class="b" href="/node/0x1?fabric=a&amp;b=c&amp;at=2026-11-27T03:12:00.000Z#port-3">"#,
            ),
            (
                r#"<a href="/links?format=csv">"#,
                r#"<a href="/links?format=csv&amp;at=2026-11-27T03:12:00.000Z">"#,
            ),
            (
                r#"<form class="f" action="/links"><p></p></form>"#,
                r#"<form class="f" action="/links"><input type="hidden" name="at" value="2026-11-27T03:12:00.000Z"><p></p></form>"#,
            ),
        ] {
            assert_eq!(keep_moment(&PreEscaped(from.to_owned()), at, "/metrics").0, to);
        }
        for same in [
            r#"<a href="/metrics">x</a>"#,
            r#"<a href="/runbooks/InfinibandCableBad">x</a>"#,
            r#"<a href="/api/v1/openapi.json">x</a>"#,
            r#"<a href="https://example.org/links">x</a>"#,
            r#"<a href="//example.org/links">x</a>"#,
            r##"<a href="#main">x</a>"##,
            r#"<link rel="stylesheet" href="/-/style.css?1">"#,
            r#"<a href="/links?at=2026-11-26T00:00:00.000Z">x</a>"#,
            "a < b, no tag at all <a href=\"/links",
        ] {
            assert_eq!(keep_moment(&PreEscaped(same.to_owned()), at, "/metrics").0, same);
        }
    }

    #[test]
    fn steps_keep_the_choices_of_the_page_but_not_its_number() {
        let uri = Uri::from_static("/links?verdict=bad&page=3&at=2h&refresh=off");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(
            address_at(&uri, Some(at)),
            "/links?verdict=bad&at=2023%2D11%2D14T22%3A13%3A20%2E000Z"
        );
        assert_eq!(address_at(&uri, None), "/links?verdict=bad");
    }
}
