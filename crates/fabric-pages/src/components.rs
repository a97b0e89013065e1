//! Parts that several pages have: verdicts, times, rates and counts as text, links to other pages, tables and forms.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use maud::{Markup, html};

pub use display_text::{grouped, label_text, plural};
use fabric_api::Fabrics;
use fabric_api::model::{
    BusyLink, CUT_OFF, Condition, Congestion, DOWN, Flow, LEARNING, Learning, Link, Node, Port,
    PortName, Verdicts,
};
use fabric_api::traffic::bit_rate;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::Event;
use fabric_history::model::time::clamped;
use fabric_history::settings::HOST_FABRIC;
use fabric_observation::SharedState;
use ib_health::verdict::{Reason, Verdict};
use ib_mad::Counter;

use super::address;

pub fn verdict(label: &str) -> Markup {
    html! { span class={ "verdict " (label) } { (Verdict::word(label)) } }
}

/// The headline of a condition, in its color.
pub fn headline(condition: &Condition) -> Markup {
    html! { span class={ "condition " (condition.verdict) } { (capitalized(&condition.headline)) } }
}

/// The state of a node or link: a node that is down is as bad as a bad link.
pub fn state(label: &str) -> Markup {
    match label {
        DOWN | CUT_OFF => html! { span .verdict.bad { (label_text(label)) } },
        label => verdict(label),
    }
}

/// Since when a node is down, and behind which other one.
pub fn down(clock: &LocalClock, fabric: &str, node: &Node) -> Markup {
    html! {
        @if let Some(at) = &node.down_since { " " span .quiet { (lasting(clock, at)) } }
        @if let Some(by) = &node.behind { ", behind " (self::node(fabric, &by.guid, &by.node)) }
        @if node.nodes_behind > 0 { ", " (plural(node.nodes_behind, "node")) " behind it" }
    }
}

/// The verdict of a link, or that it is being learned.
pub fn link_verdict(label: &str, learning: Option<&Learning>) -> Markup {
    html! { @match learning {
        Some(learning) => span .verdict.learning title=(learning_text(learning)) { (LEARNING) },
        None => (verdict(label)),
    } }
}

/// How far links are: `4 of 10 min, no errors so far`.
pub fn learning_text(learning: &Learning) -> String {
    let Learning { observed_seconds: observed, needed_seconds: needed, errors, .. } = learning;
    let (unit, per) = if *needed < 120.0 { ("s", 1.0) } else { ("min", 60.0) };
    // The last step is not done before the time is over.
    let needed = (needed / per).round();
    let observed = (observed / per).floor().min(needed);
    let errors = if *errors == 0 { "no errors".to_owned() } else { plural(*errors, "bit error") };
    format!("{observed:.0} of {needed:.0} {unit}, {errors} so far")
}

/// What a port sends or receives, and the share of its bandwidth.
pub fn flow(flow: Option<&Flow>) -> Markup {
    html! { @if let Some(flow) = flow {
        span .whole {
            (bit_rate(flow.bytes_per_second))
            @if flow.utilization > 0.0 { " " span .quiet { (percent(flow.utilization)) } }
        }
    } }
}

/// The row of a direction of a link: from which port to which, its utilization and rate.
pub fn busy_link(fabric: &str, busy: &BusyLink) -> Markup {
    html! { tr {
        th scope="row" data-label="Link" { a .cable href=(address::link(fabric, &busy.link)) {
            bdi { (busy.from.label()) } " → " wbr; bdi { (busy.to.label()) }
        } }
        td .n data-label="Utilization" { (meter(busy.flow.utilization)) " " (percent(busy.flow.utilization)) }
        td .n data-label="Rate" { (bit_rate(busy.flow.bytes_per_second)) }
        td data-label="Verdict" { (link_verdict(&busy.verdict, busy.learning.as_ref())) }
    } }
}

/// A share as a bar; the number stands next to it.
pub fn meter(share: f32) -> Markup {
    html! { svg .meter viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
        rect .rest width="100" height="10" {}
        rect .load width=(format!("{:.0}", share * 100.0)) height="10" {}
    } }
}

/// A small plot of values in equal periods, without axes; the text says what it shows.
pub fn sparkline(values: &[f64], text: &str) -> Markup {
    const HEIGHT: f64 = 20.0;
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut path = format!("M0 {HEIGHT}");
    for (place, value) in values.iter().enumerate() {
        let y = ((1.0 - value / most) * (HEIGHT - 1.0) + 0.5) * 10.0;
        // Writing to a string does not fail.
        let _ = write!(path, "V{}H{}", y.round() / 10.0, place + 1);
    }
    let _ = write!(path, "V{HEIGHT}Z");
    html! { svg .spark viewBox={ "0 0 " (values.len()) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(text) {
        title { (text) }
        path d=(path) {}
    } }
}

/// A message of the API as a sentence.
pub fn sentence(message: &str) -> String {
    capitalized(message) + "."
}

/// A text with a capital letter at its beginning.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    format!("{}{}", first.collect::<String>(), chars.as_str())
}

pub fn node_kind(label: &str) -> &str {
    match label {
        "ca" => "HCA",
        "aggregation_node" => "aggregation node",
        known => known,
    }
}

/// Bytes per second as bits per second, which is how link rates are given.
pub fn link_rate(bytes: u64) -> String {
    let gigabits = bytes as f64 * 8.0 / 1e9;
    if gigabits.fract() < 0.05 {
        format!("{gigabits:.0} Gb/s")
    } else {
        format!("{gigabits:.1} Gb/s")
    }
}

/// The optical power of each lane in dBm.
pub fn powers(lanes: &[Option<f64>]) -> String {
    let power = |it: &Option<f64>| it.map_or("none".into(), |dbm| format!("{dbm:.1}"));
    lanes.iter().map(power).collect::<Vec<_>>().join(", ") + " dBm"
}

pub fn percent(share: f32) -> String {
    match share * 100.0 {
        0.0 => "0%".into(),
        percent if percent < 0.1 => "< 0.1%".into(),
        // What is rounded up to 10 has no digit behind the point.
        percent if percent < 9.95 => format!("{percent:.1}%"),
        percent => format!("{percent:.0}%"),
    }
}

/// The share of time in which a port waited, or why it is not known.
pub fn wait(port: &Port) -> Markup {
    html! {
        @if let Some(ratio) = port.wait_ratio { (percent(ratio)) }
        @else if port.wait_saturated { abbr title="PortXmitWait is saturated: how long the port waits is not known" { "saturated" } }
    }
}

/// A duration with two units at most: seconds, from an hour on minutes, from a day on hours are the smallest.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds == 0 && !time.is_zero() {
        return format!("{}ms", time.as_millis());
    }
    let coarse = match seconds {
        0..3_600 => seconds,
        3_600..86_400 => seconds / 60 * 60,
        _ => seconds / 3_600 * 3_600,
    };
    humantime::format_duration(Duration::from_secs(coarse)).to_string()
}

/// A time in the exporter's time zone, with its machine-readable form.
pub fn timestamp(clock: &LocalClock, time: SystemTime) -> Markup {
    html! {
        time datetime=(humantime::format_rfc3339_seconds(clamped(time))) { (clock.format(time)) }
    }
}

/// An RFC 3339 time of a model, and how long before another one it was.
pub fn timestamp_and_age(clock: &LocalClock, time: &str, now: Option<&str>) -> Markup {
    let read = |text: &str| humantime::parse_rfc3339(text).ok();
    let Some(moment) = read(time) else { return html! { (time) } };
    let age = now.and_then(|now| read(now)?.duration_since(moment).ok());
    html! {
        (timestamp(clock, moment))
        @if let Some(age) = age { " " span .quiet { "(" (duration(age)) " ago)" } }
    }
}

/// How long ago an RFC 3339 time of a model was; the time itself is the title. A time in the future, by a
/// simulated clock, is now.
pub fn ago(clock: &LocalClock, time: &str) -> Markup {
    relative(clock, time, |age| {
        if age.as_secs() < 2 { "just now".into() } else { format!("{} ago", duration(age)) }
    })
}

/// How long something has lasted, in the same way.
pub fn lasting(clock: &LocalClock, time: &str) -> Markup {
    relative(clock, time, |age| format!("for {}", duration(age)))
}

fn relative(clock: &LocalClock, time: &str, text: impl Fn(Duration) -> String) -> Markup {
    let Ok(moment) = humantime::parse_rfc3339(time) else { return html! { (time) } };
    let age = clock.time().duration_since(moment).unwrap_or_default();
    let age = Duration::from_secs(age.as_secs());
    html! { time datetime=(time) title=(clock.format(moment)) { (text(age)) } }
}

/// The moment of a state. The present is not before the latest sweep: a simulated clock may be ahead of ours.
pub fn clock(state: &SharedState) -> LocalClock {
    if let Some(at) = state.as_of {
        return LocalClock::at(at);
    }
    let swept = state.fabrics.iter().filter_map(|observation| observation.snapshot.as_ref());
    let latest = swept.map(|snapshot| snapshot.anchor.wall_of(snapshot.ended)).max();
    LocalClock::now().not_before(latest.unwrap_or(SystemTime::UNIX_EPOCH))
}

/// A link by its two ends, leading to its page. Lines break between the ends.
pub fn link(link: &Link) -> Markup {
    html! { a .cable href=(address::link(&link.fabric, &link.link)) {
        bdi { (link.ends[0].label()) } " – " wbr; bdi { (link.ends[1].label()) }
    } }
}

pub fn node(fabric: &str, guid: &str, name: &str) -> Markup {
    html! { a href=(address::node(fabric, guid)) { (name) } }
}

/// A port by its name, leading to its row on the page of its node.
pub fn port(fabric: &str, port: &PortName) -> Markup {
    html! { a href=(address::port_of_node(fabric, &port.guid, port.port)) { (port.label()) } }
}

/// The role of a port in congestion; a victim links to the root that it waits for.
pub fn congestion(part: &Congestion, fabric: &str) -> Markup {
    html! {
        @match (&*part.role, &part.root) {
            ("victim", Some(root)) => { "victim of " (port(fabric, root)) }
            _ => {
                "root" @if let Some(cause) = cause_text(part.cause.as_deref().unwrap_or_default()) { ": " (cause) }
            }
        }
        @if let Some(at) = &part.measured_at { span .quiet { ", last measured at " (at) } }
    }
}

/// The cause of a congestion as text, if it is known.
pub fn cause_text(label: &str) -> Option<&'static str> {
    match label {
        "slow_receiver" => Some("slow receiver"),
        "full_link" => Some("link fully utilized"),
        _ => None,
    }
}

/// The role in a congestion of the port at the other end, by the reasons of the link.
pub fn peer_congestion(port: &Port) -> Option<&'static str> {
    let has = |reason: Reason| port.reasons.iter().any(|it| it == reason.label());
    let is_own = |role: &str| port.congestion.as_ref().is_some_and(|part| part.role == role);
    let roles = [(Reason::Congested, "root"), (Reason::Victim, "victim")];
    roles.into_iter().find_map(|(reason, role)| (has(reason) && !is_own(role)).then_some(role))
}

/// A sum of counters of a port; a lower bound if one of them was saturated.
pub fn counter_sum(port: &Port, counters: &[Counter], sum: Option<u64>) -> Markup {
    let is_least =
        counters.iter().any(|part| port.saturated.iter().any(|it| it == part.row().metric));
    error_sum(sum, is_least)
}

/// A sum of error counters, if they were read; a lower bound if one of them was saturated.
pub fn error_sum(sum: Option<u64>, is_least: bool) -> Markup {
    let least = "A counter was saturated at least once: the sum is a lower bound.";
    counted(sum, is_least.then_some(least))
}

/// A count, if it was read; with the reason if it is a lower bound.
pub fn counted(count_read: Option<u64>, least: Option<&str>) -> Markup {
    html! {
        @match count_read {
            None => span .quiet { "not read" },
            Some(0) => span .quiet { "0" },
            Some(number) => { @if let Some(why) = least { abbr title=(why) { "≥ " } } (grouped(number)) }
        }
    }
}

/// The count of each verdict that occurs, the worst first: `1 bad, 12 ok`.
pub fn verdict_counts(verdicts: &Verdicts) -> String {
    let counts = verdicts.shown().into_iter().filter(|(_, links)| *links > 0);
    let counts =
        counts.map(|(it, links)| format!("{} {}", grouped(links as u64), Verdict::word(it)));
    counts.collect::<Vec<_>>().join(", ")
}

/// A table of events; with a column of fabrics where there are several.
pub fn event_table(clock: &LocalClock, events: &[Event], several_fabrics: bool) -> Markup {
    html! {
        table .stack.events {
            thead { tr {
                th scope="col" { "Time" } th scope="col" { "Event" } th scope="col" { "Location" }
                @if several_fabrics { th scope="col" { "Fabric" } }
                th scope="col" { "Description" }
            } }
            tbody { @for event in events { tr {
                td .when { (timestamp(clock, event.at)) }
                td .what { (label_text(&event.kind)) }
                td { (event_place(event)) }
                @if several_fabrics { td data-label="Fabric" { bdi { (event.fabric) } } }
                td { (event.text) }
            } } }
        }
    }
}

fn event_place(event: &Event) -> Markup {
    let to = match (event.link, event.node) {
        // A device of this host may be a node of a fabric, but its events are not that node's.
        (None, Some(_)) if event.fabric == HOST_FABRIC => address::HOST.to_owned(),
        (Some(link), _) => address::link(&event.fabric, link),
        (None, Some(guid)) => match event.port {
            Some(port) => address::port_of_node(&event.fabric, guid, port),
            None => address::node(&event.fabric, guid),
        },
        (None, None) => return html! { (event.place) },
    };
    let name = if event.place.is_empty() { "details" } else { &event.place };
    html! { a href=(to) { (name) } }
}

/// The names that events may have as their fabric: the swept fabrics, and this host.
pub fn event_fabrics(state: &SharedState) -> Vec<String> {
    let fabrics = state.fabrics.iter().map(|observation| observation.fabric.clone());
    fabrics.chain(state.host.as_ref().map(|_| HOST_FABRIC.to_owned())).collect()
}

/// Tabs that select a fabric, where there are several.
pub fn fabric_tabs(path: &str, fabrics: &Fabrics, shown: Option<&str>) -> Markup {
    html! { @if fabrics.len() > 1 { nav .tabs aria-label="Fabrics" { ul {
        @for name in fabrics.iter().map(|it| &*it.fabric) { li {
            a href=(address::with(path, &[("fabric", name)])) aria-current=[(Some(name) == shown).then_some("true")] { (name) }
        } }
    } } } }
}

/// A field of a form that selects one of some values, each with its text.
pub fn select_field(name: &str, label: &str, chosen: &str, options: &[(&str, String)]) -> Markup {
    html! { p {
        label for=(name) { (label) }
        select id=(name) name=(name) { @for (value, text) in options {
            option value=(value) selected[*value == chosen] { (text) }
        } }
    } }
}

/// These values with their texts, after one that selects all.
pub fn or_all<'a>(values: &[&'a str], text: impl Fn(&str) -> String) -> Vec<(&'a str, String)> {
    let all = std::iter::once(("", "all".to_owned()));
    all.chain(values.iter().map(|value| (*value, text(value)))).collect()
}

/// The field that selects a fabric, where there are several.
pub fn fabric_field(names: &[&str], chosen: Option<&str>) -> Markup {
    let (chosen, options) = (chosen.unwrap_or_default(), or_all(names, str::to_owned));
    html! { @if names.len() > 1 { (select_field("fabric", "Fabric", chosen, &options)) } }
}

/// The pager of a list: the page shown, of how many pages, and the address of each.
pub fn list_pager(page: usize, pages: usize, address: impl Fn(usize) -> String) -> Markup {
    let last = pages.max(1);
    let previous = (page > 1).then(|| ("Previous", address((page - 1).min(last))));
    let next = (page < last).then(|| ("Next", address(page + 1)));
    let current = format!("Page {} of {}", grouped(page as u64), grouped(last as u64));
    html! { @if last > 1 { (pager("Pages of the list", &current, [previous, next])) } }
}

/// The links to the previous and the next page of a list: the text and the address of each.
pub fn pager(label: &str, current: &str, [previous, next]: [Option<(&str, String)>; 2]) -> Markup {
    html! { nav .leaf aria-label=(label) { ul {
        @if let Some((text, address)) = previous { li { a rel="prev" href=(address) { (text) } } }
        li aria-current="page" { (current) }
        @if let Some((text, address)) = next { li { a rel="next" href=(address) { (text) } } }
    } } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::Guid;

    #[test]
    fn rates_percentages_and_durations_are_rounded() {
        for (bytes, text) in
            [(50_000_000_000, "400 Gb/s"), (312_500_000, "2.5 Gb/s"), (7_000_000_000, "56 Gb/s")]
        {
            assert_eq!(link_rate(bytes), text);
        }
        for (part, text) in
            [(0.0, "0%"), (0.0001, "< 0.1%"), (0.0512, "5.1%"), (0.0996, "10%"), (0.9, "90%")]
        {
            assert_eq!(percent(part), text);
        }
        for (millis, text) in [
            (0, "0s"),
            (120, "120ms"),
            (61_000, "1m 1s"),
            (3_700_000, "1h 1m"),
            (90_061_000, "1day 1h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn learning_says_how_long_and_what_was_seen() {
        let learning = |observed_seconds, needed_seconds, errors| {
            learning_text(&Learning { links: 1, observed_seconds, needed_seconds, errors })
        };
        assert_eq!(learning(270.0, 625.0, 0), "4 of 10 min, no errors so far");
        assert_eq!(learning(50.0, 78.0, 1), "50 of 78 s, 1 bit error so far");
        assert_eq!(learning(700.0, 625.0, 0), "10 of 10 min, no errors so far");
    }

    #[test]
    fn sparkline_fills_its_height() {
        let drawn = sparkline(&[0.0, 5.0, 10.0], "up to 10").into_string();
        assert!(drawn.contains("d=\"M0 20V19.5H1V10H2V0.5H3V20Z\""), "{drawn}");
        // Nothing was sent.
        let drawn = sparkline(&[0.0, 0.0], "none").into_string();
        assert!(drawn.contains("d=\"M0 20V19.5H1V19.5H2V20Z\""), "{drawn}");
    }

    /// One word for the verdict, in tables and sentences.
    #[test]
    fn verdict_watch_is_called_degraded() {
        let unknown = Verdicts { unknown: 3, learning: 2, ..Verdicts::default() };
        assert_eq!(verdict_counts(&unknown), "1 unknown, 2 learning");
        let shown = verdict("watch").into_string();
        assert_eq!(shown, "<span class=\"verdict watch\">degraded</span>");
        assert_eq!(
            verdict_counts(&Verdicts { watch: 2, ok: 1, ..Verdicts::default() }),
            "2 degraded, 1 ok"
        );
    }

    /// An event of this host belongs to no fabric, so no node's page has it.
    #[test]
    fn event_place_leads_to_an_existing_page() {
        let event = |fabric: &str, link: Option<&str>, port| Event {
            at: SystemTime::UNIX_EPOCH,
            fabric: fabric.into(),
            kind: "link_down".into(),
            node: Some(Guid(2)),
            port,
            link: link.map(|link| link.parse().unwrap()),
            place: "somewhere".into(),
            text: "it happened".into(),
            detail: serde_json::Value::Null,
        };
        for (it, to) in [
            (event("f", None, None), "/node/0x0000000000000002?fabric=f"),
            (event("f", None, Some(3)), "/node/0x0000000000000002?fabric=f#port-3"),
            (
                event("f", Some("0x1:1-0x2:3"), Some(3)),
                "/link/0x0000000000000001:1-0x0000000000000002:3?fabric=f",
            ),
            (event("host", None, Some(1)), "/host"),
        ] {
            assert_eq!(
                event_place(&it).into_string(),
                format!("<a href=\"{to}\">somewhere</a>"),
                "{it:?}"
            );
        }
        let events = [event("a<b", None, None)];
        let table = |several| event_table(&LocalClock::now(), &events, several).into_string();
        assert!(table(true).contains("a&lt;b") && !table(false).contains("a&lt;b"));
    }

    #[test]
    fn names_are_escaped() {
        let name = PortName {
            guid: "0x0000000000000001".into(),
            node: "<script>\"x\"</script>".into(),
            port: 3,
            ..PortName::default()
        };
        let page = port("f\"><b>", &name).into_string();
        assert_eq!(
            page,
            "<a href=\"/node/0x0000000000000001?fabric=f%22%3E%3Cb%3E#port-3\">&lt;script&gt;&quot;x&quot;&lt;/script&gt; port 3</a>"
        );
    }

    #[test]
    fn timestamp_beyond_the_year_9999_is_a_time() {
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        let text = timestamp(&LocalClock::now(), far).into_string();
        assert!(text.contains("datetime=\"9999-12-31T23:59:59Z\""), "{text}");
    }
}
