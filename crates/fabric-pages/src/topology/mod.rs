//! `/topology`: the switches of a fabric and the links between them, as a picture and as a table. The table has
//! each switch, also where the picture puts several into one box, and screen readers can read it.

mod picture;

use axum::extract::State;
use maud::{Markup, html};

use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_api as api;
use fabric_api::model::{CUT_OFF, Condition, DOWN, LEARNING, Suspect, Switch, Topology};
use fabric_history::local_clock::LocalClock;
use ib_health::Verdict;

use crate::components;
use crate::page::{Answer, fabric_page};
use fabric_api::address;

/// The most suspect links listed. The list of links has all.
const MAX_SUSPECTS: usize = 40;
/// The most pairs of hosts without a switch.
const MAX_PAIRS: usize = 100;

pub(super) async fn get(State(app): State<PageState>, query: QueryResult) -> Answer {
    fabric_page(&app, query, "Topology", address::TOPOLOGY, |live, observation| {
        let clock = components::clock(&live.state);
        let topology = api::topology::topology(observation);
        section(&topology, &api::condition::condition(observation), &clock)
    })
    .await
}

fn section(topology: &Topology, condition: &Condition, clock: &LocalClock) -> Markup {
    html! {
        p .gist { (components::headline(condition)) }
        (gist(topology))
        @if !topology.switches.is_empty() {
            div .wide tabindex="0" role="group" aria-label="Picture" { (picture::draw(topology)) }
            (legend(topology))
        }
        (switchless_pairs(topology))
        (suspects(topology))
        @if !topology.switches.is_empty() { (table(topology, clock)) }
    }
}

fn gist(topology: &Topology) -> Markup {
    let (between, to_hosts) = (&topology.switch_links, &topology.host_links);
    html! {
        p .gist {
            (topology.fabric) ": " (components::plural(topology.switches.len(), "switch"))
            @if between.count() > 0 { " · between switches: " (picture::links(between)) }
            @if to_hosts.count() > 0 { " · to hosts: " (picture::links(to_hosts)) }
        }
        @if let Some(swept) = &topology.swept_at { p .quiet { "As of " (components::timestamp_and_age(&LocalClock::now(), swept, None)) "." } }
    }
}

fn legend(topology: &Topology) -> Markup {
    let is_congested = topology.switches.iter().any(|switch| switch.congestion.is_any());
    let is_learning = topology.switches.iter().any(|switch| switch.verdicts.learning > 0);
    let is_down = topology.switches.iter().any(|switch| !switch.up);
    let lines = [
        ("ok", "all ok"),
        (LEARNING, "some learning"),
        ("unknown", "some unknown"),
        ("watch", "some degraded"),
        ("bad", "some bad"),
        (DOWN, "to a switch that is down"),
    ];
    let is_shown = |word: &str| match word {
        LEARNING => is_learning,
        DOWN => is_down,
        _ => true,
    };
    html! {
        ul .legend {
            @for (verdict, means) in lines.into_iter().filter(|(it, _)| is_shown(it)) {
                li {
                    svg .key width="28" height="12" viewBox="0 0 28 12" aria-hidden="true" { path class={ "cable " (verdict) } d="M1 6L27 6" {} }
                    " " (means)
                }
            }
            @if is_down { @for (class, means) in [(DOWN, "switch down"), (CUT_OFF, "switch cut off by one that is down")] {
                li {
                    svg .key.wiring width="28" height="14" viewBox="0 0 28 14" aria-hidden="true" { rect class={ "box " (class) } x="2" y="2" width="24" height="10" rx="2" {} }
                    " " (means)
                }
            } }
            li { "A line shows all links between two boxes. Symbols below a box: links to its hosts, "
                span .sign.bad { "✕" } " bad, " span .sign.watch { "!" } " degraded." }
            @if is_congested {
                li {
                    svg .key width="28" height="12" viewBox="0 0 28 12" aria-hidden="true" { path .congested d="M1 6L27 6" {} }
                    " congested links. Above a box: ◆ number of its links with a congestion root, ◇ with a victim."
                }
            }
        }
    }
}

fn switchless_pairs(topology: &Topology) -> Markup {
    let fabric = &topology.fabric;
    html! { @if !topology.switchless.is_empty() {
        h2 { "Links without a switch" }
        ul .pairs { @for pair in topology.switchless.iter().take(MAX_PAIRS) { li {
            @for (place, (guid, name)) in pair.nodes.iter().enumerate() {
                @if place > 0 {
                    " — "
                    @if let (Some(link), Some(verdict)) = (&pair.link, &pair.verdict) {
                        a href=(address::link(fabric, link)) { (components::verdict(verdict)) } " — "
                    }
                }
                (components::node(fabric, guid, name))
            }
        } } }
        @if topology.switchless.len() > MAX_PAIRS { p .quiet { (topology.switchless.len() - MAX_PAIRS) " more." } }
    } }
}

fn suspects(topology: &Topology) -> Markup {
    let between = topology.bundles.iter().flat_map(|bundle| &bundle.suspects);
    let to_hosts = topology.switches.iter().flat_map(|switch| &switch.host_suspects);
    let mut suspects: Vec<&Suspect> = between.chain(to_hosts).collect();
    suspects.sort_by_key(|suspect| {
        (std::cmp::Reverse(Verdict::from_label(&suspect.verdict)), &suspect.link)
    });
    // The planes of a link join several switches, each of which lists it.
    suspects.dedup_by_key(|suspect| &suspect.link);
    let fabric = &topology.fabric;
    html! {
        @if !suspects.is_empty() {
            h2 { "Bad and degraded links" }
            ul .pairs { @for suspect in suspects.iter().take(MAX_SUSPECTS) { li {
                (components::verdict(&suspect.verdict)) " "
                a href=(address::link(fabric, &suspect.link)) { (suspect.name) }
            } } }
            @if suspects.len() > MAX_SUSPECTS {
                p { a href=(address::with(address::LINKS, &[("fabric", fabric)])) { "All links" } }
            }
        }
    }
}

fn table(topology: &Topology, clock: &LocalClock) -> Markup {
    let top = picture::top_level(topology);
    html! {
        h2 { "All switches" }
        div .wide tabindex="0" role="group" aria-label="All switches" { table {
            thead { tr {
                th scope="col" { "Switch" } th scope="col" { "Level" } th .n scope="col" { "Uplinks" } th .n scope="col" { "Same level" }
                th .n scope="col" { "Downlinks" } th .n scope="col" { "HCAs" } th scope="col" { "Worst link" } th scope="col" { "Congestion on its links" }
            } }
            tbody { @for switch in worst_first(&topology.switches) { (row(&topology.fabric, switch, top, clock)) } }
        } }
    }
}

/// What is down first, then by the worst link.
fn worst_first(switches: &[Switch]) -> Vec<&Switch> {
    let mut sorted: Vec<&Switch> = switches.iter().collect();
    let worst = |switch: &Switch| {
        switch.verdicts.worst_first().into_iter().position(|(_, links)| links > 0)
    };
    sorted.sort_by_key(|switch| (switch.up, worst(switch).unwrap_or(usize::MAX)));
    sorted
}

fn row(fabric: &str, switch: &Switch, top: Option<u8>, clock: &LocalClock) -> Markup {
    let number = |count: usize| html! { td .n { @if count > 0 { (count) } } };
    html! {
        tr #(switch.guid) {
            th scope="row" {
                (components::node(fabric, &switch.guid, &switch.node))
                @if !switch.up {
                    " " (components::state(if switch.behind.is_some() { CUT_OFF } else { DOWN }))
                    @if let Some(at) = &switch.down_since { " " span .quiet { (components::lasting(clock, at)) } }
                    @if let Some(by) = &switch.behind { ", behind " (components::node(fabric, &by.guid, &by.node)) }
                    @if switch.hosts_down > 0 { ", " (components::plural(switch.hosts_down, "HCA")) " cut off" }
                }
            }
            td { (picture::level_name(switch.level, top)) }
            (number(switch.up_links)) (number(switch.side_links)) (number(switch.down_links)) (number(switch.hosts))
            td { (components::verdict(switch.verdicts.worst_shown())) }
            td { @if switch.congestion.is_any() { (picture::congestion(&switch.congestion)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_api::model::CongestionCounts;

    /// A victim may be the port at the other end of a link.
    #[test]
    fn congestion_is_that_of_the_links_of_a_switch() {
        let congestion = CongestionCounts { roots: 1, victims: 1, max_wait_ratio: Some(0.9) };
        let switches = vec![Switch { congestion, ..Switch::default() }];
        let topology = Topology { switches, ..Topology::default() };
        let shown = table(&topology, &LocalClock::now()).into_string();
        assert!(shown.contains("Congestion on its links"), "{shown}");
        assert!(shown.contains("1 root, 1 victim, waiting up to 90% of the time"), "{shown}");
    }
}
