//! `/`: the fabric at a glance.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use crate::api;
use crate::api::model::Verdicts;
use crate::api::model::overview::{Fabric, Region, Sweep};
use crate::api::overview::overview;
use fabric_history::clock::Clock;
use fabric_history::model::Told;
use fabric_history::source::Wanted;
use fabric_observation::{MonitorStats, SharedState};

use super::ask::{self, written};
use super::page::Page;
use super::past::{self, Choice, Past};
use super::words::{self, cable, count, several, verdict};
use super::{Desk, address, host};

/// So many of the latest events are told.
const EVENTS: usize = 10;

/// From how far back.
const LATELY: Choice = Choice::MONTH;

/// So many reasons of all cables are told.
const REASONS: usize = 4;

/// How long the page waits for them: it is looked at when something is wrong, and tells the most without.
const PATIENCE: Duration = Duration::from_millis(300);

/// Where the alerts are explained.
const ALERTS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/alerts.md");

pub(super) async fn get(State(desk): State<Desk>) -> Response {
    let past = past::soon(PATIENCE, desk.archive(), |reader| {
        let window = LATELY.until_now(reader)?;
        Ok(reader.latest(&Wanted::all(window), &|_| true, 0, EVENTS)?.0)
    })
    .await;
    written(move || {
        let main = page(desk.exposition().board(), &past, desk.telemetry_path());
        Page::new("The fabric at a glance", address::OVERVIEW, main).answer()
    })
    .await
}

/// The page from what is known.
pub fn page(board: &SharedState, past: &Past<Vec<Told>>, telemetry_path: &str) -> Markup {
    let (told, clock) = (overview(board), words::now(board));
    let clock = &clock;
    let are_several = told.fabrics.len() > 1;
    html! {
        @if told.fabrics.is_empty() { @if let Some(why) = ask::not_swept(&board.fabrics, None) { p { (why) } } }
        @if are_several { (summary(&told.fabrics, clock)) }
        @for (place, (fabric, seen)) in told.fabrics.iter().zip(&board.fabrics).enumerate() {
            (section(place, fabric, &seen.stats, are_several, clock))
        }
        section aria-labelledby="events" {
            h2 #events { "Latest events" }
            (latest(past, clock, words::recorded(board).len() > 1))
        }
        @if let Some(seen) = &told.host {
            section aria-labelledby="host" {
                h2 #host { "This host" }
                (host::in_short(seen))
            }
        }
        p .more {
            a href=(telemetry_path) { "Metrics" } " · "
            a href={ (api::LINKS) "?suspect=true" } { "Suspect links as JSON" } " · "
            a href=(api::OPENAPI) { "API" } " · "
            a href=(ALERTS) { "Alerts" }
        }
    }
}

/// All fabrics in a few lines.
fn summary(fabrics: &[Fabric], clock: &Clock) -> Markup {
    let columns = ["bad", "watch", "unknown", "ok"];
    html! { div .wide tabindex="0" role="group" aria-label="All fabrics" { table {
        thead { tr {
            th scope="col" { "Fabric" }
            @for word in columns { th .n scope="col" { (verdict(word)) } }
            th .n scope="col" { "Nodes" } th .n scope="col" { "Not up" } th scope="col" { "Swept" }
        } }
        tbody { @for (place, it) in fabrics.iter().enumerate() { tr {
            th scope="row" { a href={ "#fabric-" (place) } { bdi { (it.fabric) } } }
            @for (_, number) in by_verdict(&it.verdicts) { td .n { (number) } }
            td .n { (it.nodes.iter().map(|of| of.nodes).sum::<usize>()) }
            td .n { (it.nodes.iter().map(|of| of.not_up).sum::<usize>()) }
            td { @match it.sweep.as_ref().and_then(|sweep| sweep.ended_at.as_deref()) {
                Some(at) => (words::ago(clock, at)), None => "not yet",
            } }
        } } }
    } } }
}

/// The worst first, as on the page.
fn by_verdict(of: &Verdicts) -> [(&'static str, usize); 4] {
    [("bad", of.bad), ("watch", of.watch), ("unknown", of.unknown), ("ok", of.ok)]
}

/// Why most of a fabric may be missing here, and the setting that helps.
fn missing(stats: &MonitorStats) -> Markup {
    html! {
        @if stats.m_key_suspected { p .card {
            strong { "Nodes do not answer subnet management; likely an M_Key protects them." }
            " They are missing here, or shown as they were last found. Give the M_Key of the subnet manager with "
            code { "--fabric.m-key-file" } ", or set " code { "m_key_protection_level 1" } " in " code { "opensm.conf" } "."
        } }
        @if stats.partition_suspected { p .card {
            strong { "Hosts do not answer performance management; likely this port is in the wrong partition." }
            " Their counters are not read. Make this port a full member of a partition that has all hosts, or choose one with "
            code { "--fabric.pkey" } "; " code { "fabric-exporter doctor" } " shows the P_Keys of this port."
        } }
    }
}

fn section(
    place: usize,
    it: &Fabric,
    stats: &MonitorStats,
    is_one_of_several: bool,
    clock: &Clock,
) -> Markup {
    let id = format!("fabric-{place}");
    html! { section .fabric aria-labelledby=(id) {
        h2 #(id) .unseen[!is_one_of_several] { bdi { (it.fabric) } }
        @match &it.sweep {
            None => p .card { (ask::NOT_YET) },
            Some(sweep) => {
                (missing(stats))
                div .glance {
                    (health(it))
                    (nodes(it, clock))
                    (swept(it, sweep, clock))
                }
                @if !it.worst.is_empty() { (worst(it, clock)) }
                @if !it.congestion.is_empty() { (congestion(it, clock)) }
            }
        }
    } }
}

/// How many cables have which verdict.
fn health(it: &Fabric) -> Markup {
    let Verdicts { bad, watch, unknown, .. } = it.verdicts;
    let all = it.verdicts.count();
    let list = |word| address::with(address::LINKS, &[("fabric", &it.fabric), ("verdict", word)]);
    html! { div .card .health {
        p .lead { @match (bad, watch) {
            // What nobody knows is not well.
            _ if all == 0 => { span .verdict.unknown { "No cable is known" } },
            _ if unknown == all => { span .verdict.unknown { "Nothing is known" } },
            (0, 0) => { span .verdict.ok { "No bad cable" } },
            (0, watch) => { span .verdict.watch { (several(watch, "cable", "cables")) } " to watch" },
            (bad, _) => { span .verdict.bad { (several(bad, "bad cable", "bad cables")) } },
        } @if all > 0 { " " span .of { "of " (several(all, "cable", "cables")) } } }
        (bar(&by_verdict(&it.verdicts)))
        ul .verdicts { @for (word, number) in by_verdict(&it.verdicts) { li {
            a href=(list(word)) class=(word) {
                span .number { (count(number as u64)) } " " (word)
            }
        } } }
        @if !it.reasons.is_empty() { ul .why { @for because in it.reasons.iter().take(REASONS) { li {
            span .number { (count(because.links as u64)) } " " (verdict(&because.verdict)) " " (because.what)
        } } } }
    } }
}

/// A bar of parts, none of those that are there too thin to be seen. What it says stands beside it.
fn bar(parts: &[(&str, usize)]) -> Markup {
    const LENGTH: f64 = 1000.0;
    const LEAST: f64 = 12.0;
    let there: Vec<_> = parts.iter().filter(|(_, number)| *number > 0).collect();
    let all: usize = there.iter().map(|(_, number)| number).sum();
    let share = |number: usize| number as f64 / all.max(1) as f64 * LENGTH;
    let widths: Vec<f64> = there.iter().map(|(_, number)| share(*number).max(LEAST)).collect();
    let scale = LENGTH / widths.iter().sum::<f64>().max(1.0);
    let drawn = there.iter().zip(&widths).scan(0.0, |left, ((word, _), width)| {
        let from = *left;
        *left += width * scale;
        Some((word, from, width * scale))
    });
    html! { svg .bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
        @for (word, left, width) in drawn {
            rect class=(word) x=(format!("{left:.1}")) y="0" width=(format!("{width:.1}")) height="10" {}
        }
    } }
}

fn nodes(it: &Fabric, clock: &Clock) -> Markup {
    let down: usize = it.nodes.iter().map(|of| of.not_up).sum();
    let kind = |word: &str, number| match word {
        "switch" => several(number, "switch", "switches"),
        "ca" => several(number, "adapter", "adapters"),
        "router" => several(number, "router", "routers"),
        _ => several(number, "aggregation node", "aggregation nodes"),
    };
    html! { div .card {
        h3 { "Nodes" }
        p .big { @for (place, of) in it.nodes.iter().enumerate() {
            @if place > 0 { ", " } span .whole { (kind(&of.node_type, of.nodes)) }
        } }
        @if it.nodes.is_empty() { p { strong { "None is found." } } }
        @else if down == 0 { p { "All are up." } } @else {
            p { strong { (several(down, "is", "are")) " not up" } ": "
                @for (place, node) in it.not_up.iter().enumerate() {
                    @if place > 0 { ", " }
                    (words::node(&it.fabric, &node.guid, &node.node))
                }
                @if down > it.not_up.len() { " and others" } "."
            }
        }
        @if let Some(sweep) = &it.sweep { dl {
            @if let Some(at) = &sweep.discovered_at { div { dt { "Discovered" } dd { (words::ago(clock, at)) } } }
            @if sweep.discovery_gaps > 0 { div { dt { "Gaps" } dd { strong { (several(sweep.discovery_gaps as usize, "question", "questions")) " open" } } } }
            div { dt { "Subnet’s master" } dd { @match &sweep.master {
                Some(master) => (words::node(&it.fabric, &master.guid, &master.node)),
                None => "not heard",
            } } }
        } }
    } }
}

fn swept(it: &Fabric, sweep: &Sweep, clock: &Clock) -> Markup {
    let bad = |number: usize| html! { @if number > 0 { strong { (number) } } @else { "0" } };
    let lost = sweep.mads_timed_out as f64 / sweep.mads_sent.max(1) as f64;
    html! { div .card {
        h3 { "Latest sweep" }
        p .big { @match &sweep.ended_at { Some(at) => (words::ago(clock, at)), None => "at an unknown time" } }
        p { "It took " (seconds(sweep.seconds)) " of an interval of " (seconds(it.interval_seconds)) "." }
        @if !sweep.failing.is_empty() { p { strong { "Fails: " (sweep.failing.join(", ")) } } }
        dl {
            div { dt { "Ports read" } dd { (count(sweep.ports_read as u64)) } }
            div { dt { "Ports read in part" } dd { (bad(sweep.ports_failed)) } }
            div { dt { "Nodes silent" } dd { (bad(sweep.nodes_silent)) } }
            div { dt { "MADs lost" } dd { (words::share(lost as f32)) } }
        }
    } }
}

/// A length of time that may be short.
fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 10.0 => format!("{seconds:.1} s"),
        seconds => format!("{seconds:.0} s"),
    }
}

fn worst(it: &Fabric, clock: &Clock) -> Markup {
    let all = it.verdicts.bad + it.verdicts.watch;
    html! {
        h3 { "The worst cables" }
        ol .cables { @for link in &it.worst { li {
            div .stands {
                (verdict(&link.verdict))
                @if let Some(at) = &link.since { span .quiet { (words::lasting(clock, at)) } }
            }
            div {
                p .name { (cable(link)) }
                ul .reasons { @for because in link.reasons.iter().filter(|because| because.weight == link.verdict || because.weight == "watch") {
                    li { span .reason { (words::plain(&because.reason)) } " " (because.evidence) }
                } }
            }
            p .repair { @if let Some(repair) = &link.repair { span .quiet { "Try first: " } (repair.what) } }
        } } }
        @if all > it.worst.len() {
            p { a href=(address::with(address::LINKS, &[("fabric", &it.fabric)])) {
                "All " (several(all, "cable", "cables")) " that are bad or to watch"
            } }
        }
    }
}

fn congestion(it: &Fabric, clock: &Clock) -> Markup {
    html! {
        h3 { "Congestion" }
        ul .regions { @for region in &it.congestion { li { (waits(&it.fabric, region, clock)) } } }
        @if it.regions > it.congestion.len() {
            p .quiet { "and " (several(it.regions - it.congestion.len(), "smaller region", "smaller regions")) }
        }
    }
}

/// The port that is waited for, and the way to its cable, where its evidence is.
fn waited_for(fabric: &str, region: &Region) -> Markup {
    match region.link.as_deref().and_then(|link| link.parse().ok()) {
        Some(link) => {
            html! { a href=(address::link(fabric, link)) { bdi { (region.root.label()) } } }
        }
        None => words::port(fabric, &region.root),
    }
}

fn waits(fabric: &str, region: &Region, clock: &Clock) -> Markup {
    let cause = match &*region.cause {
        "slow_receiver" => "whose receiver takes in too little",
        "full_link" => "whose link is full",
        _ => "for a reason that is not known",
    };
    html! {
        span class={ "level " (region.level) } { (region.level) } " "
        (several(region.ports as usize, "port waits", "ports wait")) " for " (waited_for(fabric, region)) ", " (cause)
        @if region.roots > 1 { " (and for " (several(region.roots as usize - 1, "other", "others")) ")" }
        @if let Some(ratio) = region.wait_ratio { ", up to " (format!("{:.0} %", ratio * 100.0)) " of the time" }
        @if let Some(at) = &region.since { span .quiet { ", " (words::lasting(clock, at)) } }
    }
}

fn latest(past: &Past<Vec<Told>>, clock: &Clock, of_several: bool) -> Markup {
    html! { @match past.told() {
        Ok(events) if events.is_empty() => p { "Nothing happened in the last " (LATELY.name) ", as far as is recorded." },
        Ok(events) => {
            (words::events(clock, events, of_several))
            p { a href=(address::EVENTS) { "All events" } }
        },
        Err(why) => (why),
    } }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use fabric_observation::Observation;
    use ib_health::Verdict;
    use ib_health::testing::{fine, snapshot};

    fn swept(name: &str, verdicts: [Verdict; 2]) -> Arc<Observation> {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        for (link, verdict) in assessment.links.iter_mut().zip(verdicts) {
            link.verdict = verdict;
        }
        let (fabric, snapshot) = (name.to_owned(), Some(snapshot.into()));
        Arc::new(Observation { fabric, snapshot, assessment, ..Observation::default() })
    }

    fn written(fabrics: Vec<Arc<Observation>>, past: &Past<Vec<Told>>) -> String {
        page(&fabrics.into(), past, "/m\"").into_string()
    }

    #[test]
    fn what_is_not_known_yet_is_said() {
        let blank = Observation { fabric: "f".into(), ..Observation::default() };
        let page = written(vec![Arc::new(blank)], &Past::Unrecorded);
        assert!(page.contains("Not swept yet") && page.contains("--history.file"), "{page}");
        assert!(written(vec![], &Past::Unrecorded).contains("No fabric is swept here"));
        let busy = Past::Silent("The recorder is busy.".into());
        assert!(
            written(vec![swept("f", [Verdict::Ok; 2])], &busy).contains("The recorder is busy.")
        );
    }

    #[test]
    fn a_suspected_m_key_or_partition_is_said_with_its_setting() {
        let page = |m_key_suspected, partition_suspected| {
            let mut seen = Observation::clone(&swept("f", [Verdict::Ok; 2]));
            seen.stats.m_key_suspected = m_key_suspected;
            seen.stats.partition_suspected = partition_suspected;
            written(vec![Arc::new(seen)], &Past::Unrecorded)
        };
        for (m_key, partition) in [(false, false), (true, false), (false, true)] {
            let page = page(m_key, partition);
            assert_eq!(page.contains("--fabric.m-key-file"), m_key, "{page}");
            assert_eq!(page.contains("--fabric.pkey"), partition, "{page}");
        }
    }

    #[test]
    fn the_worst_is_said_first() {
        let page = |verdicts| written(vec![swept("f", verdicts)], &Past::Told(vec![]));
        for (verdicts, says) in [
            ([Verdict::Ok; 2], "No bad cable"),
            ([Verdict::Ok, Verdict::Watch], "1 cable</span> to watch"),
            ([Verdict::Bad, Verdict::Watch], "1 bad cable<"),
            ([Verdict::Bad; 2], "2 bad cables<"),
            ([Verdict::Unknown, Verdict::Ok], "No bad cable"),
            // After a start, and while the device is away.
            ([Verdict::Unknown; 2], "Nothing is known<"),
        ] {
            let page = page(verdicts);
            assert!(page.contains(says) && page.contains("of 2 cables"), "{says}: {page}");
        }
        assert!(!page([Verdict::Ok; 2]).contains("The worst cables"));
    }

    #[test]
    fn several_fabrics_are_told_in_a_line_each_first() {
        let fabrics = vec![swept("<script>\"&", [Verdict::Bad; 2]), swept("g", [Verdict::Ok; 2])];
        let page = written(fabrics, &Past::Unrecorded);
        assert!(page.contains("href=\"#fabric-1\"") && page.contains("id=\"fabric-1\""), "{page}");
        // Whoever named it cannot break out of the page.
        assert!(page.contains("&lt;script&gt;&quot;&amp;") && !page.contains("<script>"));
        assert!(page.contains("fabric=%3Cscript%3E%22%26") && page.contains("href=\"/m&quot;\""));
    }

    #[test]
    fn a_bar_is_full_and_shows_each_part() {
        let drawn = bar(&[("bad", 1), ("watch", 0), ("unknown", 1), ("ok", 29_998)]).into_string();
        let numbers = |key: &str| {
            let key = format!(" {key}=\"");
            let told = drawn.split(&*key).skip(1);
            told.map(|rest| rest.split('"').next().unwrap().parse::<f64>().unwrap())
                .collect::<Vec<_>>()
        };
        let widths = numbers("width");
        assert_eq!((widths.len(), drawn.matches("rect class").count()), (3, 3));
        assert!(widths.iter().all(|width| *width > 10.0));
        assert!((widths.iter().sum::<f64>() - 1000.0).abs() < 0.5 && numbers("x")[0] == 0.0);
    }
}
