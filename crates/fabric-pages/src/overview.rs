//! `/`: the overview of all fabrics.

use std::time::Duration;

use axum::response::Response;
use maud::{Markup, html};

use crate::state::PageState;
use fabric_api as api;
use fabric_api::model::{Fabric, LEARNING, Region, Source, Sweep, Traffic, Verdicts};
use fabric_api::overview::overview;
use fabric_api::{LiveState, history_states};
use fabric_history::incidents::{Incident, Incidents};
use fabric_history::local_clock::LocalClock;
use fabric_observation::MonitorStats;
use ib_fabric::fabric_kind::FabricKind;
use ib_health::{Reason, Verdict};

use super::components::{self, grouped, plural, verdict};
use super::incidents::brief;
use crate::history_queries;
use crate::history_queries::HistoryAnswer;
use crate::page::{Live, NOT_YET, Page, not_swept, render};
use crate::window_choice::WindowChoice;
use crate::{host, impact, traffic};
use fabric_api::address;

const MAX_INCIDENTS: usize = 10;
/// The most incidents of which those are.
const MAX_READ: usize = 200;
const INCIDENT_WINDOW: WindowChoice = WindowChoice::DAY;
const MAX_REASONS: usize = 4;
const MAX_BUSIEST: usize = 5;
/// How long the page waits for the incidents. It is opened during one, and the rest matters more.
const INCIDENTS_TIMEOUT: Duration = Duration::from_millis(500);
const ALERTS: &str =
    concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/verdicts-and-alerts.md#alerts");

pub(super) async fn get(app: PageState) -> Response {
    let live = app.live.clone();
    let incidents = history_queries::run_within(INCIDENTS_TIMEOUT, &app.history, move |reader| {
        let window = INCIDENT_WINDOW.until(live.state.as_of, reader)?;
        let mut states = history_states(&live.state);
        states.extend(reader.fabrics_beside(&states, window.to)?);
        Incidents::latest(reader, window, &states, MAX_READ)
    })
    .await;
    render(move || {
        let live = &app.live;
        let main = page(live, &incidents, &app.telemetry_path, app.grafana.as_deref());
        Page::new("Overview", address::OVERVIEW, main).live(Live::Yes).respond()
    })
    .await
}

fn page(
    live: &LiveState,
    latest: &HistoryAnswer<Vec<Incident>>,
    telemetry_path: &str,
    grafana: Option<&str>,
) -> Markup {
    let (state, trends) = (&live.state, &live.trends);
    let (overview, clock) = (overview(state), &components::clock(state));
    let are_several = overview.fabrics.len() > 1;
    html! {
        @if overview.fabrics.is_empty() { @if let Some(why) = not_swept(&state.fabrics, None) { p { (why) } } }
        @if are_several { (summary(&overview.fabrics, clock)) }
        @for (place, (fabric, observation)) in overview.fabrics.iter().zip(&state.fabrics).enumerate() {
            @let is_past = state.as_of.is_some();
            (section(place, fabric, &observation.stats, are_several, is_past, trends.of(&fabric.fabric), clock))
        }
        (impact::repairs(state, clock))
        section aria-labelledby="events" {
            h2 #events { "Latest incidents" }
            @match latest {
                Ok(latest) if latest.is_empty() => p { "No incidents in the last " (INCIDENT_WINDOW.label) "." },
                Ok(latest) => {
                    (brief(clock, latest, components::event_fabrics(state).len() > 1, MAX_INCIDENTS))
                    p { a href=(address::EVENTS) { "All incidents and events" } }
                },
                Err(why) => (why),
            }
        }
        @if let Some(host_devices) = &overview.host {
            section aria-labelledby="host" {
                h2 #host { "This host" }
                (host::devices(host_devices, host::readings(live)))
            }
        }
        p .more {
            a href=(telemetry_path) { "Metrics" } " · "
            a href={ (api::LINKS) "?suspect=true" } { "Bad and degraded links (JSON)" } " · "
            a href=(api::OPENAPI) { "API" } " · "
            a href=(ALERTS) { "Alerts" }
            @if let Some(url) = grafana { " · " a href=(address::dashboard(url, "overview", &[])) { "Grafana" } }
        }
    }
}

fn summary(fabrics: &[Fabric], clock: &LocalClock) -> Markup {
    html! { div .wide tabindex="0" role="group" aria-label="All fabrics" { table {
        thead { tr {
            th scope="col" { "Fabric" } th scope="col" { "Condition" }
            @for (it, _) in Verdicts::default().worst_first() { th .n scope="col" { (verdict(it.label())) } }
            th .n scope="col" { "Nodes" } th .n scope="col" { "Down" } th scope="col" { "Last sweep" }
        } }
        tbody { @for (place, it) in fabrics.iter().enumerate() { tr {
            th .whole scope="row" { a href={ "#fabric-" (place) } { bdi { (it.fabric) } } }
            td { (components::headline(&it.condition)) }
            @for (_, number) in it.verdicts.worst_first() { td .n { (number) } }
            td .n { (it.nodes.iter().map(|of| of.nodes).sum::<usize>()) }
            td .n { (it.nodes.iter().map(|of| of.down).sum::<usize>()) }
            td { @match it.sweep.as_ref().and_then(|sweep| sweep.ended_at.as_deref()) {
                Some(at) => (components::ago(clock, at)), None => "not yet",
            } }
        } } }
    } } }
}

/// Why most of a fabric may be missing, and the setting that fixes it.
fn access_problems(stats: &MonitorStats) -> Markup {
    html! {
        @if stats.m_key_suspected { p .card {
            strong { "Nodes do not respond to subnet management, probably because an M_Key protects them." }
            " They are missing, or shown as last discovered. Set " code { "--fabric.m-key-file" }
            " to a file with the subnet manager’s M_Key, or set " code { "m_key_protection_level 1" } " in " code { "opensm.conf" } "."
        } }
        @if stats.vs_key_suspected { p .card {
            strong { "Devices do not respond to the vendor class, probably because a VSKey protects them." }
            " Their registers are not read: cables, temperatures, fans. Set " code { "--fabric.vs-key-file" }
            " to a file with the VSKey of the key manager, or " code { "--no-fabric.registers" } "."
        } }
        @if stats.partition_suspected { p .card {
            strong { "Hosts do not respond to performance management, probably because this port is not a full member of their partition." }
            " Their counters are not read. Make this port a full member of a partition with all hosts, or select one with "
            code { "--fabric.pkey" } "; " code { "fabric-exporter doctor" } " shows the P_Keys of this port."
        } }
    }
}

fn section(
    place: usize,
    it: &Fabric,
    stats: &MonitorStats,
    is_one_of_several: bool,
    is_past: bool,
    trend: &[f32],
    clock: &LocalClock,
) -> Markup {
    let id = format!("fabric-{place}");
    html! { section .fabric aria-labelledby=(id) {
        h2 #(id) .unseen[!is_one_of_several] { bdi { (it.fabric) } }
        @match &it.sweep {
            None => p .card { (NOT_YET) },
            Some(sweep) => {
                (access_problems(stats))
                @if it.kind.as_deref() == Some(FabricKind::NvLink.label()) { p .card {
                    strong { "This is an NVLink fabric." } " Its counters are shown, and its links have no verdicts."
                } }
                div .glance {
                    (health(it))
                    (nodes(it, clock))
                    @if is_past { (past_sweep(sweep)) } @else { (latest_sweep(it, sweep, clock)) }
                }
                @if !it.worst_links.is_empty() { (worst(it, clock)) }
                @if let Some(sum) = &it.traffic { (busiest(it, sum, trend)) }
                @if !it.congestion.is_empty() { (congestion(it, clock)) }
                @if !it.firmware_differences.is_empty() { (firmware(it)) }
            }
        }
    } }
}

fn health(it: &Fabric) -> Markup {
    let Verdicts { learning, .. } = it.verdicts;
    let list = |word: &str| {
        let word = if word == LEARNING { Verdict::Unknown.label() } else { word };
        address::with(address::LINKS, &[("fabric", &it.fabric), ("verdict", word)])
    };
    // What neither the headline nor the counts of links say.
    let worst = it.condition.verdict();
    let others: Vec<_> = it.condition.beside_links().filter(|it| it.verdict() < worst).collect();
    html! { div .card .health {
        p .lead { (components::headline(&it.condition)) }
        @if !others.is_empty() { p .quiet { "Also " @for (place, finding) in others.iter().enumerate() {
            @if place > 0 { "; " } (finding.text)
        } "." } }
        (bar(&it.verdicts))
        ul .verdicts { @for (word, number) in it.verdicts.shown() { @if word != LEARNING || number > 0 { li {
            a href=(list(word)) class=(word) {
                span .number { (grouped(number as u64)) } " " (Verdict::word(word))
            }
        } } } }
        @if let Some(learning) = &it.learning {
            p { "Learning: " (components::learning_text(learning)) "." }
        }
        // What only lacks time is said above.
        @let lacks_time = |reason: &str| learning > 0 && reason == Reason::InsufficientData.label();
        @let reasons: Vec<_> = it.reasons.iter().filter(|it| !lacks_time(&it.reason)).collect();
        // A bad one is never left out.
        @let bad = reasons.iter().filter(|it| it.verdict == Verdict::Bad.label()).count();
        @let shown = reasons.len().min(MAX_REASONS.max(bad));
        @if !reasons.is_empty() { ul .why {
            @for because in &reasons[..shown] { li {
                span .number { (grouped(because.links as u64)) } " " (verdict(&because.verdict)) " " (because.description)
            } }
            @if reasons.len() > shown { li .quiet { "and " (plural(reasons.len() - shown, "other reason")) } }
        } }
    } }
}

/// A bar of the verdicts' shares, each wide enough to be seen. The numbers are next to it as text.
fn bar(verdicts: &Verdicts) -> Markup {
    const LENGTH: f64 = 1000.0;
    const MIN_WIDTH: f64 = 12.0;
    let all = verdicts.count().max(1) as f64;
    let counts = verdicts.shown().into_iter().filter(|(_, number)| *number > 0);
    let parts: Vec<_> = counts
        .map(|(word, number)| (word, (number as f64 / all * LENGTH).max(MIN_WIDTH)))
        .collect();
    let scale = LENGTH / parts.iter().map(|(_, width)| width).sum::<f64>().max(1.0);
    let drawn = parts.iter().scan(0.0, |left, (word, width)| {
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

fn nodes(it: &Fabric, clock: &LocalClock) -> Markup {
    let down: usize = it.nodes.iter().map(|of| of.down).sum();
    html! { div .card {
        h3 { "Nodes" }
        p .big { @for (place, of) in it.nodes.iter().enumerate() {
            @if place > 0 { ", " } span .whole { (plural(of.nodes, components::node_kind(&of.node_type))) }
        } }
        @if it.nodes.is_empty() { p { strong { "No nodes found." } } }
        @else if down == 0 { p { "All up." } } @else {
            p { strong { (grouped(down as u64)) " down" } }
            ul .down {
                @let alone: Vec<_> = it.nodes_down.iter().filter(|node| node.behind.is_none()).collect();
                @for node in &alone { li {
                    (components::node(&it.fabric, &node.guid, &node.node))
                    @if let Some(at) = &node.since { " " span .quiet { (components::lasting(clock, at)) } }
                    @if node.nodes_behind > 0 { ", " (plural(node.nodes_behind, "node")) " behind it" }
                    @if node.maintenance { " " span .quiet { "(maintenance)" } }
                } }
                @let named: usize = alone.iter().map(|node| 1 + node.nodes_behind).sum();
                @if down > named { li .quiet { "and " (plural(down - named, "other")) } }
            }
        }
        @if let Some(sweep) = &it.sweep { dl {
            @if let Some(at) = &sweep.discovered_at { div { dt { "Last discovery" } dd { (components::ago(clock, at)) } } }
            @if sweep.discovery_gaps > 0 { div { dt { "Discovery gaps" } dd { strong { (plural(sweep.discovery_gaps, "request")) " without response" } } } }
            div { dt { "Master SM" } dd { @match &sweep.master_sm {
                Some(master) => (components::node(&it.fabric, &master.guid, &master.node)),
                None => "unknown",
            } } }
        } }
    } }
}

/// Of a past sweep only its time and the ports are recorded.
fn past_sweep(sweep: &Sweep) -> Markup {
    let ended = sweep.ended_at.as_deref();
    html! { div .card {
        h3 { "Last sweep by then" }
        p .big { @match ended {
            Some(at) => (components::timestamp_and_age(&LocalClock::now(), at, None)), None => "at an unknown time",
        } }
        dl { div { dt { "Ports read" } dd { (grouped(sweep.ports_read as u64)) } } }
    } }
}

fn latest_sweep(it: &Fabric, sweep: &Sweep, clock: &LocalClock) -> Markup {
    let bad = |number: usize| html! { @if number > 0 { strong { (number) } } @else { "0" } };
    let lost = sweep.mads_timed_out as f64 / sweep.mads_sent.max(1) as f64;
    html! { div .card {
        h3 { "Last sweep" }
        p .big { @match &sweep.ended_at { Some(at) => (components::ago(clock, at)), None => "at an unknown time" } }
        @match &it.source {
            Some(source) => (data_source(it, source)),
            None => p { "Duration " (seconds(sweep.seconds)) ", interval " (seconds(it.interval_seconds)) "." }
        }
        @if !sweep.failing.is_empty() { p { strong { "Failed: " (sweep.failing.join(", ")) } } }
        dl {
            div { dt { "Ports read" } dd { (grouped(sweep.ports_read as u64)) } }
            div { dt { "Ports with failed requests" } dd { (bad(sweep.ports_failed)) } }
            div { dt { "Unresponsive nodes" } dd { (bad(sweep.nodes_unresponsive)) } }
            @if it.source.is_none() { div { dt { "MADs timed out" } dd { (components::percent(lost as f32)) } } }
        }
    } }
}

/// Where the data is from, how often it changes, and what it is too poor for.
fn data_source(it: &Fabric, source: &Source) -> Markup {
    html! {
        p { "Data of " (source.name) @if !source.format.is_empty() { " (" (source.format) ")" }
            @match source.interval_seconds {
                Some(interval) => { ", which changes every " (seconds(interval)) "." }
                None => { ", taken to change every " (seconds(it.interval_seconds)) " at most." }
            }
        }
        @if let Some(problem) = &source.problem { p { strong { (problem) } } }
        @for limit in &source.limits { p .quiet { "Limit: " (limit) "." } }
    }
}

/// A duration that may be short.
fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{:.0}ms", seconds * 1e3),
        seconds if seconds < 10.0 && seconds.fract() >= 0.05 => format!("{seconds:.1}s"),
        seconds => format!("{seconds:.0}s"),
    }
}

fn worst(it: &Fabric, clock: &LocalClock) -> Markup {
    let all = it.verdicts.bad + it.verdicts.watch;
    html! {
        h3 { "Worst links" }
        ol .cables { @for link in &it.worst_links { li {
            div .stands {
                (verdict(&link.verdict))
                @if let Some(at) = &link.since { span .quiet { (components::lasting(clock, at)) } }
            }
            div {
                p .name { (components::link(link)) }
                ul .reasons { @for because in link.reasons.iter().filter(|because| because.verdict == link.verdict || because.verdict == "watch") {
                    li { span .reason { (components::label_text(&because.reason)) } " " (because.evidence) }
                } }
            }
            p .repair { @if let Some(repair) = &link.repair { span .quiet { "Try first: " } (repair.description) } }
        } } }
        @if all > it.worst_links.len() {
            p { a href=(address::with(address::LINKS, &[("fabric", &it.fabric)])) {
                "All " (grouped(all as u64)) " bad and degraded links"
            } }
        }
    }
}

/// What the hosts send and receive, and the busiest directions of links.
fn busiest(it: &Fabric, sum: &Traffic, trend: &[f32]) -> Markup {
    html! {
        h3 { "Traffic" }
        (traffic::throughput(sum, trend))
        @if !sum.busiest.is_empty() {
            (traffic::busiest(&it.fabric, &sum.busiest[..sum.busiest.len().min(MAX_BUSIEST)]))
        }
        p { a href=(address::with(address::TRAFFIC, &[("fabric", &it.fabric)])) { "Utilization of all leaves" } }
    }
}

fn congestion(it: &Fabric, clock: &LocalClock) -> Markup {
    html! {
        h3 { "Congestion" }
        ul .regions { @for region in &it.congestion { li { (waits(&it.fabric, region, clock)) } } }
        @if it.regions > it.congestion.len() {
            p .quiet { "and " (plural(it.regions - it.congestion.len(), "smaller region")) }
        }
    }
}

fn firmware(it: &Fabric) -> Markup {
    html! {
        h3 { "Different firmware" }
        @for difference in &it.firmware_differences { p {
            (difference.device) span .quiet { " (PSID " (difference.psid) ")" } ": "
            @for (nth, version) in difference.versions.iter().enumerate() {
                @if nth > 0 { "; " }
                (version.firmware) " on " (plural(version.nodes, "node"))
                // The most frequent one is what the others are compared with.
                @if nth > 0 {
                    " (" bdi { (version.names.join(", ")) }
                    @if version.nodes > version.names.len() { ", …" } ")"
                }
            }
        } }
    }
}

fn waits(fabric: &str, region: &Region, clock: &LocalClock) -> Markup {
    let root = &region.root;
    let cause = components::cause_text(&region.cause).unwrap_or("cause unknown");
    html! {
        span class={ "level " (region.level) } { (region.level) } " congestion root "
        // The page of its link has the evidence.
        @match &region.link {
            Some(link) => a href=(address::link(fabric, link)) { bdi { (region.root_label()) } },
            None => (components::port(fabric, root)),
        }
        ", " (cause)
        @if region.roots > 1 { " and " (plural(region.roots - 1, "other")) }
        ": " (plural(region.ports, "port")) @if region.ports == 1 { " waits" } @else { " wait" } " in its region"
        @if let Some(ratio) = region.wait_ratio { ", up to " (format!("{:.0}%", ratio * 100.0)) " of the time" }
        @if let Some(at) = &region.measured_at { span .quiet { ", last measured " (components::ago(clock, at)) } }
        @if let Some(at) = &region.since { span .quiet { ", " (components::lasting(clock, at)) } }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::history_queries::NoHistory;
    use fabric_api::model::ReasonCount;
    use fabric_observation::{Collector, Observation};
    use ib_health::testing::{fine, snapshot};

    fn swept(name: &str, verdicts: [Verdict; 2]) -> Arc<Observation> {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        for (link, verdict) in assessment.links.iter_mut().zip(verdicts) {
            link.verdict = verdict;
        }
        let (fabric, snapshot) = (name.to_owned(), Some(snapshot.into()));
        let mut observation =
            Observation { fabric, snapshot, assessment, ..Observation::default() };
        for collector in Collector::ALL {
            observation.stats.set_success(collector, true);
        }
        Arc::new(observation)
    }

    fn rendered(fabrics: Vec<Arc<Observation>>, latest: &HistoryAnswer<Vec<Incident>>) -> String {
        page(&LiveState::first(fabrics.into()), latest, "/m\"", Some("https://g")).into_string()
    }

    #[test]
    fn unswept_fabric_and_missing_history_are_explained() {
        let blank = Observation { fabric: "f".into(), ..Observation::default() };
        let page = rendered(vec![Arc::new(blank)], &Err(NoHistory::NotRecorded));
        assert!(
            page.contains("first sweep is not finished") && page.contains("--history.file"),
            "{page}"
        );
        assert!(rendered(vec![], &Err(NoHistory::NotRecorded)).contains("sweeps no fabric"));
        let busy = Err(NoHistory::Unavailable("The history is busy.".into()));
        assert!(
            rendered(vec![swept("f", [Verdict::Ok; 2])], &busy).contains("The history is busy.")
        );
    }

    #[test]
    fn suspected_key_or_partition_names_its_setting() {
        let page = |m_key_suspected, vs_key_suspected, partition_suspected| {
            let mut observation = Observation::clone(&swept("f", [Verdict::Ok; 2]));
            observation.stats.m_key_suspected = m_key_suspected;
            observation.stats.vs_key_suspected = vs_key_suspected;
            observation.stats.partition_suspected = partition_suspected;
            rendered(vec![Arc::new(observation)], &Err(NoHistory::NotRecorded))
        };
        for (m_key, vs_key, partition) in [
            (false, false, false),
            (true, false, false),
            (false, true, false),
            (false, false, true),
        ] {
            let page = page(m_key, vs_key, partition);
            assert_eq!(page.contains("--fabric.vs-key-file"), vs_key, "{page}");
            assert_eq!(page.contains("--fabric.m-key-file"), m_key, "{page}");
            assert_eq!(page.contains("--fabric.pkey"), partition, "{page}");
        }
    }

    #[test]
    fn headline_has_the_worst_verdict() {
        let page = |verdicts| rendered(vec![swept("f", verdicts)], &Ok(vec![]));
        for (verdicts, class, says) in [
            ([Verdict::Ok; 2], "ok", "All ok: 2 links, 3 nodes<"),
            ([Verdict::Ok, Verdict::Watch], "watch", "1 degraded link<"),
            ([Verdict::Bad, Verdict::Watch], "bad", "1 bad link<"),
            ([Verdict::Bad; 2], "bad", "2 bad links<"),
            ([Verdict::Unknown, Verdict::Ok], "unknown", "Unknown for 1 link<"),
            ([Verdict::Unknown; 2], "unknown", "Unknown for 2 links<"),
        ] {
            let page = page(verdicts);
            let lead = format!("<p class=\"lead\"><span class=\"condition {class}\">{says}");
            assert!(page.contains(&lead), "{lead}: {page}");
        }
        assert!(!page([Verdict::Ok; 2]).contains("Worst links"));
    }

    #[test]
    fn node_that_is_down_is_the_headline_although_all_links_are_ok() {
        let mut observation = Observation::clone(&swept("f", [Verdict::Ok; 2]));
        let snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
        snapshot.silent.fill(true);
        let page = rendered(vec![Arc::new(observation)], &Ok(vec![]));
        let lead = "<span class=\"condition bad\">1 switch down (leaf), 2 HCAs behind it<";
        assert!(page.contains(lead) && page.contains("2 nodes behind it"), "{page}");
        assert!(!page.contains("host-a"), "it is behind the leaf: {page}");
    }

    #[test]
    fn reasons_leave_out_no_bad_one() {
        let reason = |verdict: &'static str, links| ReasonCount {
            reason: "width".into(),
            description: format!("because of {links}").into(),
            verdict: verdict.into(),
            links,
        };
        let mut reasons: Vec<ReasonCount> = (1..=5).map(|links| reason("bad", links)).collect();
        reasons.push(reason("unknown", 32));
        let page = health(&Fabric { reasons, ..Fabric::default() }).into_string();
        assert!((1..=5).all(|links| page.contains(&format!("because of {links}<"))), "{page}");
        assert!(!page.contains("because of 32") && page.contains("and 1 other reason"), "{page}");
    }

    #[test]
    fn several_fabrics_begin_with_a_table() {
        let fabrics = vec![swept("<script>\"&", [Verdict::Bad; 2]), swept("g", [Verdict::Ok; 2])];
        let page = rendered(fabrics, &Err(NoHistory::NotRecorded));
        assert!(page.contains("href=\"#fabric-1\"") && page.contains("id=\"fabric-1\""), "{page}");
        // Names are escaped.
        assert!(page.contains("&lt;script&gt;&quot;&amp;") && !page.contains("<script>"));
        assert!(page.contains("fabric=%3Cscript%3E%22%26") && page.contains("href=\"/m&quot;\""));
    }

    #[test]
    fn bar_is_full_and_each_part_is_visible() {
        let drawn =
            bar(&Verdicts { bad: 1, unknown: 1, ok: 29_998, ..Verdicts::default() }).into_string();
        let numbers = |key: &str| {
            let key = format!(" {key}=\"");
            let values = drawn.split(&*key).skip(1);
            values
                .map(|rest| rest.split('"').next().unwrap().parse::<f64>().unwrap())
                .collect::<Vec<_>>()
        };
        let widths = numbers("width");
        assert_eq!((widths.len(), drawn.matches("rect class").count()), (3, 3));
        assert!(widths.iter().all(|width| *width > 10.0));
        assert!((widths.iter().sum::<f64>() - 1000.0).abs() < 0.5 && numbers("x")[0] == 0.0);
    }
}
