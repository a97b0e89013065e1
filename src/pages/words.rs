//! What pages say again and again: verdicts, times, rates, counts, and ways to ports.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use crate::api::model::port::{Congestion, Port, PortName};
use crate::api::model::{Link, Verdicts};
use fabric_history::clock::Clock;
use fabric_history::model::Told;
use fabric_history::settings::HOST_FABRIC;
use fabric_observation::SharedState;
pub use ib_health::evidence::grouped as count;
use ib_health::verdict::Reason;
use ib_mad::{Counter, Guid};

use super::address;

/// A verdict: its word has its colour.
pub fn verdict(label: &str) -> Markup {
    html! { span class={ "verdict " (label) } { (label) } }
}

/// A word of a vocabulary as people write it: `bit_errors` as `bit errors`.
pub fn plain(label: &str) -> String {
    label.replace('_', " ")
}

/// What programs are told, as a sentence.
pub fn sentence(told: &str) -> String {
    let mut letters = told.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    format!("{}{}.", first.collect::<String>(), letters.as_str())
}

/// A kind of node as people write it.
pub fn kind(label: &str) -> &str {
    match label {
        "ca" => "host adapter",
        "aggregation_node" => "aggregation node",
        known => known,
    }
}

/// So much of one thing, or of several: `1 cable`, `30,000 cables`.
pub fn several(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number as u64), if number == 1 { one } else { many })
}

/// So many bytes a second in bits, as links are spoken of.
pub fn rate(bytes: u64) -> String {
    let gigabits = bytes as f64 * 8.0 / 1e9;
    if gigabits.fract() < 0.05 {
        format!("{gigabits:.0} Gb/s")
    } else {
        format!("{gigabits:.1} Gb/s")
    }
}

/// A share of time.
pub fn share(share: f32) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        percent if percent < 0.1 => "< 0.1 %".into(),
        percent if percent < 10.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// A length of time, to the second.
pub fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds == 0 && !time.is_zero() {
        return format!("{} ms", time.as_millis());
    }
    // Of long times, the two greatest parts say enough.
    let coarse = match seconds {
        0..3_600 => seconds,
        3_600..86_400 => seconds / 60 * 60,
        _ => seconds / 3_600 * 3_600,
    };
    humantime::format_duration(Duration::from_secs(coarse)).to_string()
}

/// A time of day in the exporter's zone, as programs can read it, too.
pub fn at(clock: &Clock, time: SystemTime) -> Markup {
    html! {
        time datetime=(humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH))) { (clock.tell(time)) }
    }
}

/// A time that a model has as text, and how long that was before another such time.
pub fn since(clock: &Clock, time: &str, now: Option<&str>) -> Markup {
    let read = |text: &str| humantime::parse_rfc3339(text).ok();
    let Some(moment) = read(time) else { return html! { (time) } };
    let rest = now.and_then(read).and_then(|now| now.duration_since(moment).ok());
    html! {
        (at(clock, moment))
        @if let Some(rest) = rest { " " span .quiet { "(" (length(rest)) " ago)" } }
    }
}

/// How long ago a time is that a model has as text, with the time itself for who wants to know. What lies
/// ahead, by a simulated clock, is now.
pub fn ago(clock: &Clock, time: &str) -> Markup {
    told_by_age(clock, time, |rest| {
        if rest.as_secs() < 2 { "just now".into() } else { format!("{} ago", length(rest)) }
    })
}

/// How long something has been as it is, in the same way.
pub fn lasting(clock: &Clock, time: &str) -> Markup {
    told_by_age(clock, time, |rest| format!("for {}", length(rest)))
}

/// Now, not behind the latest sweep: a simulated clock may be ahead of ours.
pub fn now(board: &SharedState) -> Clock {
    let swept = board.fabrics.iter().filter_map(|observation| observation.snapshot.as_ref());
    let latest = swept.map(|snapshot| snapshot.anchor.wall_of(snapshot.ended)).max();
    Clock::now().not_before(latest.unwrap_or(SystemTime::UNIX_EPOCH))
}

fn told_by_age(clock: &Clock, time: &str, tell: impl Fn(Duration) -> String) -> Markup {
    let Ok(moment) = humantime::parse_rfc3339(time) else { return html! { (time) } };
    let rest =
        Duration::from_secs(clock.time().duration_since(moment).unwrap_or_default().as_secs());
    html! { time datetime=(time) title=(clock.tell(moment)) { (tell(rest)) } }
}

/// A cable by its ends, and the way to its page. An end stays in one line, if it can.
pub fn cable(link: &Link) -> Markup {
    let page = link.link.parse().map(|id| address::link(&link.fabric, id)).unwrap_or_default();
    html! { a .cable href=(page) {
        bdi { (link.ends[0].label()) } " – " wbr; bdi { (link.ends[1].label()) }
    } }
}

/// A node by its name, and the way to its page.
pub fn node(fabric: &str, guid: &str, name: &str) -> Markup {
    let Ok(guid) = guid.parse::<Guid>() else { return html! { (name) } };
    html! { a href=(address::node(fabric, guid)) { (name) } }
}

/// A port, and the way to it on its node's page.
pub fn port(fabric: &str, port: &PortName) -> Markup {
    let Ok(guid) = port.guid.parse::<Guid>() else { return html! { (port.label()) } };
    html! { a href=(address::port_of_node(fabric, (guid, port.port))) { (port.label()) } }
}

/// The same by its number alone, where its node stands beside it.
pub fn port_number(fabric: &str, port: &PortName) -> Markup {
    let Ok(guid) = port.guid.parse::<Guid>() else { return html! { "port " (port.port) } };
    html! { a href=(address::port_of_node(fabric, (guid, port.port))) { "port " (port.port) } }
}

/// A port's part in a congestion, and the way to the root that it waits for.
pub fn congestion(part: &Congestion, fabric: &str) -> Markup {
    html! {
        @match (&*part.role, &part.of) {
            ("victim", Some(root)) => { "victim of " (port(fabric, root)) }
            _ => {
                "root"
                @match part.cause.as_deref() {
                    Some("slow_receiver") => ": slow receiver",
                    Some("full_link") => ": link is full",
                    _ => "",
                }
            }
        }
    }
}

/// The part in a congestion of the other end of a port's cable, as the cable's reasons have it.
pub fn far_congestion(port: &Port) -> Option<&'static str> {
    let has = |reason: Reason| port.reasons.iter().any(|it| it == reason.label());
    let is_own = |role: &str| port.congestion.as_ref().is_some_and(|part| part.role == role);
    [(Reason::Congested, "root"), (Reason::Victim, "victim")]
        .into_iter()
        .find(|(reason, role)| has(*reason) && !is_own(role))
        .map(|(_, role)| role)
}

/// The heading of a column of link errors: what is in the sum.
pub fn link_errors() -> Markup {
    html! { abbr title="Symbol errors, receive errors without those marked upstream, link integrity errors, buffer overruns, uncorrectable FEC blocks, retrainings and link downs" { "Link errors" } }
}

/// A sum of a port's counters, if it was read. It is a lower bound where one of them was full.
pub fn summed(port: &Port, of: &[Counter], sum: Option<u64>) -> Markup {
    let is_least = of.iter().any(|part| port.saturated.iter().any(|it| it == part.row().metric));
    html! {
        @match sum.filter(|_| port.read_at.is_some()) {
            None => span .quiet { "not read" },
            Some(0) => span .quiet { "0" },
            Some(sum) => {
                @if is_least { abbr title="A counter field was full at least once: the sum is a lower bound." { "≥ " } }
                (count(sum))
            }
        }
    }
}

/// How many cables have which verdict, the worst first: `1 bad, 12 ok`.
pub fn stats(verdicts: &Verdicts) -> String {
    let counts = [
        ("bad", verdicts.bad),
        ("watch", verdicts.watch),
        ("unknown", verdicts.unknown),
        ("ok", verdicts.ok),
    ];
    let told: Vec<String> = counts
        .into_iter()
        .filter(|(_, of_verdict)| *of_verdict > 0)
        .map(|(label, of_verdict)| format!("{} {label}", count(of_verdict as u64)))
        .collect();
    told.join(", ")
}

/// The sign that stands for a verdict where colours do not tell.
pub fn sign(verdict: &str) -> &'static str {
    match verdict {
        "ok" => "✓",
        "watch" => "!",
        "bad" => "✕",
        _ => "?",
    }
}

/// A table of events; with the fabric of each, where they may be of several.
pub fn events(clock: &Clock, events: &[Told], of_several: bool) -> Markup {
    html! {
        table .stack.events {
            thead { tr {
                th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Where" }
                @if of_several { th scope="col" { "Fabric" } }
                th scope="col" { "In words" }
            } }
            tbody { @for event in events { tr {
                td .when { (at(clock, event.at)) }
                td .what { (plain(&event.kind)) }
                td { (place(event)) }
                @if of_several { td data-label="Fabric" { bdi { (event.fabric) } } }
                td { (event.text) }
            } } }
        }
    }
}

/// Whose events there may be: the fabrics that are swept, and this host.
pub fn recorded(board: &SharedState) -> Vec<String> {
    let fabrics = board.fabrics.iter().map(|observation| observation.fabric.clone());
    fabrics.chain(board.host.as_ref().map(|_| HOST_FABRIC.to_owned())).collect()
}

/// Where something happened, and the way there.
fn place(event: &Told) -> Markup {
    let to = match (event.link, event.node) {
        // Its devices may be nodes of a fabric; that of these events is none.
        (None, Some(_)) if event.fabric == HOST_FABRIC => address::HOST.to_owned(),
        (Some(link), _) => address::link(&event.fabric, link),
        (None, Some(guid)) => match event.port {
            Some(port) => address::port_of_node(&event.fabric, (guid, port)),
            None => address::node(&event.fabric, guid),
        },
        (None, None) => return html! { (event.place) },
    };
    let name = if event.place.is_empty() { "here" } else { &event.place };
    html! { a href=(to) { (name) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_as_people_read_them() {
        for (bytes, told) in
            [(50_000_000_000, "400 Gb/s"), (312_500_000, "2.5 Gb/s"), (7_000_000_000, "56 Gb/s")]
        {
            assert_eq!(rate(bytes), told);
        }
        for (part, told) in [(0.0, "0 %"), (0.0001, "< 0.1 %"), (0.0512, "5.1 %"), (0.9, "90 %")] {
            assert_eq!(share(part), told);
        }
        for (millis, told) in [
            (0, "0s"),
            (120, "120 ms"),
            (61_000, "1m 1s"),
            (3_700_000, "1h 1m"),
            (90_061_000, "1day 1h"),
        ] {
            assert_eq!(length(Duration::from_millis(millis)), told);
        }
    }

    /// An event of this host is no fabric's, so no node's page has it.
    #[test]
    fn where_something_happened_is_a_page_that_is_there() {
        let told = |fabric: &str, link: Option<&str>, port| Told {
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
        for (event, to) in [
            (told("f", None, None), "/node/0x0000000000000002?fabric=f"),
            (told("f", None, Some(3)), "/node/0x0000000000000002?fabric=f#port-3"),
            (
                told("f", Some("0x1:1-0x2:3"), Some(3)),
                "/link/0x0000000000000001:1-0x0000000000000002:3?fabric=f",
            ),
            (told("host", None, Some(1)), "/host"),
        ] {
            assert_eq!(
                place(&event).into_string(),
                format!("<a href=\"{to}\">somewhere</a>"),
                "{event:?}"
            );
        }
        let events = [told("a<b", None, None)];
        let of_several = |several| events_of(&events, several);
        assert!(of_several(true).contains("a&lt;b") && !of_several(false).contains("a&lt;b"));
    }

    fn events_of(told: &[Told], several: bool) -> String {
        events(&Clock::now(), told, several).into_string()
    }

    #[test]
    fn a_name_from_the_fabric_is_text_and_nothing_else() {
        let name = PortName {
            guid: "0x1".into(),
            node: "<script>\"x\"</script>".into(),
            port: 3,
            ..PortName::default()
        };
        let told = port("f\"><b>", &name).into_string();
        assert_eq!(
            told,
            "<a href=\"/node/0x0000000000000001?fabric=f%22%3E%3Cb%3E#port-3\">&lt;script&gt;&quot;x&quot;&lt;/script&gt; port 3</a>"
        );
    }
}
