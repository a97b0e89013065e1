//! What several pages say: times, numbers, verdicts, ports, what happened.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use crate::health::evidence::grouped;
use crate::history::model::Told;
use crate::web::api::model::{Link, overview};

use super::address;

/// So much of one thing, or of several: `1 cable`, `30,000 cables`.
pub fn count(number: usize, one: &str, several: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { several })
}

/// A length of time, roughly: nobody reads seconds beside hours.
pub fn roughly(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", grouped((seconds / 86_400) as usize)),
    }
}

/// How long ago a time is, as JSON has it. What lies ahead, by a clock that runs fast, is now.
pub fn ago(time: &str) -> Option<String> {
    let at = humantime::parse_rfc3339(time).ok()?;
    let since = SystemTime::now().duration_since(at).unwrap_or_default();
    Some(if since.as_secs() < 2 { "just now".into() } else { format!("{} ago", roughly(since)) })
}

/// A time as JSON has it, for people: `2026-11-21 03:12:00`, in UTC.
pub fn clock(time: &str) -> Markup {
    let plain = time.get(..19).unwrap_or(time).replace('T', " ");
    html! { time datetime=(time) { (plain) } }
}

/// How long ago something was, with the time itself for who wants to know.
pub fn since(time: &str) -> Markup {
    let plain = time.get(..19).unwrap_or(time).replace('T', " ");
    html! { time datetime=(time) title={ (plain) " UTC" } { (ago(time).unwrap_or(plain.clone())) } }
}

/// How long something has been so.
pub fn lasting(time: &str) -> Markup {
    let plain = time.get(..19).unwrap_or(time).replace('T', " ");
    let ago = ago(time).map_or_else(
        || format!("since {plain}"),
        |ago| match ago.strip_suffix(" ago") {
            Some(length) => format!("for {length}"),
            None => ago,
        },
    );
    html! { time datetime=(time) title={ "since " (plain) " UTC" } { (ago) } }
}

/// A verdict, by its word.
pub fn verdict(word: &str) -> Markup {
    let class = match word {
        "ok" | "watch" | "bad" => word,
        _ => "unknown",
    };
    html! { span class={ "verdict " (class) } { (word) } }
}

/// A cable's name, which leads to its page. Each end stays in one line, if it can.
pub fn cable(link: &Link) -> Markup {
    html! { a .cable href=(address::with(&format!("/link/{}", link.link), &[("fabric", &link.fabric)])) {
        bdi { (link.ends[0].label()) } " – " wbr; bdi { (link.ends[1].label()) }
    } }
}

/// A port's name, which leads to its cable, or to its node.
pub fn port(fabric: &str, port: &overview::Port) -> Markup {
    let page = match &port.link {
        Some(link) => format!("/link/{link}"),
        None => format!("/node/{}", port.guid),
    };
    html! { a href=(address::with(&page, &[("fabric", fabric)])) {
        bdi { (port.node) } " port " (port.port)
    } }
}

/// What carries how much: `400 Gb/s`.
pub fn rate(bytes_per_second: u64) -> String {
    format!("{} Gb/s", (bytes_per_second as f64 * 8.0 / 1e7).round() / 100.0)
}

/// The page of what an event is about, if it has one.
fn page_of(told: &Told) -> Option<String> {
    let fabric = &told.fabric;
    match (told.link, told.node, told.port) {
        (Some(link), ..) => Some(address::link(fabric, link)),
        (None, Some(guid), Some(number)) => Some(address::port(fabric, guid, number)),
        (None, Some(guid), None) => Some(address::node(fabric, guid)),
        _ => None,
    }
}

/// What happened, in the order in which it is given.
pub fn happened(events: &[Told], with_fabric: bool) -> Markup {
    html! { ul .events { @for told in events { li {
        span .told { (clock(&humantime::format_rfc3339_seconds(told.at).to_string())) " " span .kind { (told.kind.replace('_', " ")) } }
        span .what {
            @match page_of(told) {
                Some(page) => a href=(page) { bdi { (told.place) } },
                None => bdi { (told.place) },
            }
            @if with_fabric { " " span .quiet { "in " bdi { (told.fabric) } } }
            @if !told.text.is_empty() { ": " (told.text) }
        }
    } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_exact_as_anybody_wants() {
        for (seconds, says) in [
            (0, "0 s"),
            (119, "119 s"),
            (120, "2 min"),
            (7_199, "119 min"),
            (7_200, "2 h"),
            (172_799, "47 h"),
            (172_800, "2 days"),
            (864_000_000, "10,000 days"),
        ] {
            assert_eq!(roughly(Duration::from_secs(seconds)), says);
        }
    }

    #[test]
    fn what_is_no_time_is_told_as_it_is() {
        assert_eq!(clock("soon").into_string(), "<time datetime=\"soon\">soon</time>");
        assert!(since("<soon>").into_string().contains(">&lt;soon&gt;<"));
        let ahead = humantime::format_rfc3339(SystemTime::now() + Duration::from_secs(99));
        assert_eq!(ago(&ahead.to_string()).as_deref(), Some("just now"));
        assert_eq!(ago("2001-09-09T01:46:40Z").unwrap().split(' ').nth(1), Some("days"));
    }

    #[test]
    fn rates_are_in_the_field_s_unit() {
        assert_eq!(
            (rate(50_000_000_000), rate(31_250_000)),
            ("400 Gb/s".into(), "0.25 Gb/s".into())
        );
    }
}
