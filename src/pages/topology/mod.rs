//! `/topology`: the switches of a fabric and the links between them, as a picture and as a table. The table has
//! each switch, also where the picture puts several into one box, and screen readers can read it.

mod picture;

use axum::extract::State;
use maud::{Markup, html};

use crate::api;
use crate::api::history_service::QueryResult;
use crate::api::model::{LEARNING, Suspect, Switch, Topology, Verdicts};
use crate::server::WebApp;
use fabric_history::local_clock::LocalClock;
use ib_health::Verdict;

use super::{Answer, address, components, fabric_page};

/// The most suspect links listed. The list of links has all.
const MAX_SUSPECTS: usize = 40;
/// The most pairs of hosts without a switch.
const MAX_PAIRS: usize = 100;

pub(super) async fn get(State(app): State<WebApp>, query: QueryResult) -> Answer {
    fabric_page(&app, query, "Topology", address::TOPOLOGY, |_, observation| {
        section(&api::topology::topology(observation))
    })
    .await
}

fn section(topology: &Topology) -> Markup {
    html! {
        (gist(topology))
        @if !topology.switches.is_empty() {
            div .wide tabindex="0" role="group" aria-label="Picture" { (picture::draw(topology)) }
            (legend(topology))
        }
        (switchless_pairs(topology))
        (suspects(topology))
        @if !topology.switches.is_empty() { (table(topology)) }
    }
}

fn gist(topology: &Topology) -> Markup {
    let between = topology.bundles.iter().fold(Verdicts::default(), |sum, it| sum.and(it.verdicts));
    let to_hosts =
        topology.switches.iter().fold(Verdicts::default(), |sum, it| sum.and(it.host_verdicts));
    html! {
        p .gist {
            (topology.fabric) ": " (components::plural(topology.switches.len(), "switch"))
            @if between.count() > 0 { " · between switches: " (picture::links(&between)) }
            @if to_hosts.count() > 0 { " · to hosts: " (picture::links(&to_hosts)) }
        }
        @if let Some(swept) = &topology.swept_at { p .quiet { "As of " (components::timestamp_and_age(&LocalClock::now(), swept, None)) "." } }
    }
}

fn legend(topology: &Topology) -> Markup {
    let is_congested = topology.switches.iter().any(|switch| switch.congestion.is_any());
    let is_learning = topology.switches.iter().any(|switch| switch.verdicts.learning > 0);
    let lines = [
        ("ok", "all ok"),
        (LEARNING, "some learning"),
        ("unknown", "some unknown"),
        ("watch", "some degraded"),
        ("bad", "some bad"),
    ];
    html! {
        ul .legend {
            @for (verdict, means) in lines.into_iter().filter(|(it, _)| *it != LEARNING || is_learning) {
                li {
                    svg .key width="28" height="12" viewBox="0 0 28 12" aria-hidden="true" { path class={ "cable " (verdict) } d="M1 6L27 6" {} }
                    " " (means)
                }
            }
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
    suspects.sort_by_key(|suspect| std::cmp::Reverse(Verdict::from_label(&suspect.verdict)));
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

fn table(topology: &Topology) -> Markup {
    let top = picture::top_level(topology);
    html! {
        h2 { "All switches" }
        div .wide tabindex="0" role="group" aria-label="All switches" { table {
            thead { tr {
                th scope="col" { "Switch" } th scope="col" { "Level" } th .n scope="col" { "Uplinks" } th .n scope="col" { "Same level" }
                th .n scope="col" { "Downlinks" } th .n scope="col" { "Hosts" } th scope="col" { "Worst link" } th scope="col" { "Congestion on its links" }
            } }
            tbody { @for switch in &topology.switches { (row(&topology.fabric, switch, top)) } }
        } }
    }
}

fn row(fabric: &str, switch: &Switch, top: Option<u8>) -> Markup {
    let number = |count: usize| html! { td .n { @if count > 0 { (count) } } };
    html! {
        tr #(switch.guid) {
            th scope="row" {
                (components::node(fabric, &switch.guid, &switch.node))
                @if !switch.up { " " span .verdict.unknown { "down" } }
            }
            td { (picture::level_name(switch.level, top)) }
            (number(switch.up_links)) (number(switch.side_links)) (number(switch.down_links)) (number(switch.hosts))
            td { @if let Some(worst) = switch.verdicts.worst_shown() { (components::verdict(worst)) } }
            td { @if switch.congestion.is_any() { (picture::congestion(&switch.congestion)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::CongestionCounts;

    /// A victim may be the port at the other end of a link.
    #[test]
    fn congestion_is_that_of_the_links_of_a_switch() {
        let congestion = CongestionCounts { roots: 1, victims: 1, max_wait_ratio: Some(0.9) };
        let switches = vec![Switch { congestion, ..Switch::default() }];
        let shown = table(&Topology { switches, ..Topology::default() }).into_string();
        assert!(shown.contains("Congestion on its links"), "{shown}");
        assert!(shown.contains("1 root, 1 victim, waiting up to 90% of the time"), "{shown}");
    }
}
