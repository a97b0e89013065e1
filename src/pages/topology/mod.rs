//! `/topology`: how a fabric is wired. A picture of its levels; where that has to put several switches into
//! one box, matrices of each switch, too; and all of it once more as a table, which can be read out.

mod layout;
mod matrix;
mod picture;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use crate::api;
use crate::api::archive::Said;
use crate::api::model::Verdicts;
use crate::api::model::topology::{Apart, Suspect, Switch, Topology};
use fabric_history::clock::Clock;
use ib_health::Verdict;

use super::ask::{self, Asked};
use super::page::Page;
use super::{Desk, address, words};
use layout::Layout;

/// So many lines can be followed; more are shown as matrices, too.
const MOST_LINES: usize = 150;

/// How many faults are listed; the list of links has all.
const MOST_FAULTS: usize = 40;

/// How many pairs of hosts without a switch are.
const MOST_APART: usize = 100;

pub(super) async fn get(State(desk): State<Desk>, said: Said) -> Response {
    let asked = Asked::from(said);
    let exposition = desk.exposition();
    if let Some(refusal) = ask::unknown_fabric(&exposition.board().fabrics, asked.fabric()) {
        return refusal;
    }
    ask::written(move || {
        let fabrics = &exposition.board().fabrics;
        let names: Vec<&str> = fabrics.iter().map(|it| &*it.fabric).collect();
        let observation = ask::meant(fabrics, asked.fabric()).next();
        let shown = observation.map(|observation| &*observation.fabric);
        let main = html! {
            @if names.len() > 1 { (tabs(&names, shown.unwrap_or_default())) }
            @match ask::not_swept(fabrics, shown) {
                Some(why) => p { (why) },
                None => @if let Some(it) = observation { (section(&api::topology::topology(it))) },
            }
        };
        Page::new("Topology", address::TOPOLOGY, main).answer()
    })
    .await
}

fn tabs(names: &[&str], chosen: &str) -> Markup {
    html! {
        nav .tabs aria-label="Fabrics" { ul {
            @for name in names { li {
                a href=(address::with(address::TOPOLOGY, &[("fabric", name)])) aria-current=[(*name == chosen).then_some("true")] { (name) }
            } }
        } }
    }
}

fn section(topology: &Topology) -> Markup {
    let layout = Layout::of(topology);
    let needs_matrix = layout.is_shrunk || layout.lines.len() > MOST_LINES;
    html! {
        (gist(topology))
        @if !topology.switches.is_empty() {
            div .wide tabindex="0" role="group" aria-label="Picture" { (picture::drawn(topology, &layout)) }
            (legend(topology.switches.iter().any(|switch| switch.congestion.is_any())))
        }
        (apart(topology))
        (faults(topology))
        @if needs_matrix { (matrices(topology)) }
        @if !topology.switches.is_empty() { (table(topology)) }
    }
}

fn gist(topology: &Topology) -> Markup {
    let between = topology.bundles.iter().fold(Verdicts::default(), |sum, it| sum.and(it.verdicts));
    let to_hosts =
        topology.switches.iter().fold(Verdicts::default(), |sum, it| sum.and(it.to_hosts));
    html! {
        p .gist {
            (topology.fabric) ": " (words::several(topology.switches.len(), "switch", "switches"))
            @if between.count() > 0 { " · between them " (picture::stats(&between)) }
            @if to_hosts.count() > 0 { " · to hosts " (picture::stats(&to_hosts)) }
        }
        @if let Some(swept) = &topology.swept_at { p .quiet { "As of " (words::since(&Clock::now(), swept, None)) "." } }
    }
}

fn legend(is_congested: bool) -> Markup {
    html! {
        ul .legend {
            @for (verdict, means) in [("ok", "all ok"), ("unknown", "some unknown"), ("watch", "some to watch"), ("bad", "some bad")] {
                li {
                    svg .key width="28" height="12" viewBox="0 0 28 12" aria-hidden="true" { path class={ "cable " (verdict) } d="M1 6L27 6" {} }
                    " " (means)
                }
            }
            li { "A line is all cables between two boxes. Signs beneath a box are cables to its hosts: "
                span .sign.bad { "✕" } " bad, " span .sign.watch { "!" } " watch." }
            @if is_congested {
                li {
                    svg .key width="28" height="12" viewBox="0 0 28 12" aria-hidden="true" { path .congested d="M1 6L27 6" {} }
                    " congested. Above a box, its congested cables: ◆ with a root, ◇ with a victim"
                }
            }
        }
    }
}

fn apart(topology: &Topology) -> Markup {
    html! {
        @if !topology.apart.is_empty() {
            h2 { "Without a switch" }
            ul .pairs { @for pair in topology.apart.iter().take(MOST_APART) { li { (side_by_side(&topology.fabric, pair)) } } }
            @if topology.apart.len() > MOST_APART { p .quiet { (topology.apart.len() - MOST_APART) " more." } }
        }
    }
}

fn side_by_side(fabric: &str, pair: &Apart) -> Markup {
    let link = pair.link.as_deref().and_then(|link| link.parse().ok());
    html! {
        @for (place, (guid, name)) in pair.nodes.iter().enumerate() {
            @if place > 0 {
                " — "
                @if let (Some(link), Some(verdict)) = (link, &pair.verdict) {
                    a href=(address::link(fabric, link)) { (words::verdict(verdict)) } " — "
                }
            }
            (words::node(fabric, guid, name))
        }
    }
}

/// The cables that want a look, the worst first.
fn faults(topology: &Topology) -> Markup {
    let between = topology.bundles.iter().flat_map(|bundle| &bundle.suspects);
    let to_hosts = topology.switches.iter().flat_map(|switch| &switch.host_suspects);
    let mut faults: Vec<(&Suspect, Option<Verdict>)> = between
        .chain(to_hosts)
        .map(|suspect| (suspect, layout::worst(Some(&suspect.verdict))))
        .filter(|(_, verdict)| *verdict >= Some(Verdict::Watch))
        .collect();
    faults.sort_by_key(|(_, verdict)| std::cmp::Reverse(*verdict));
    let fabric = &topology.fabric;
    html! {
        @if !faults.is_empty() {
            h2 { "Links to look at" }
            ul .pairs { @for (suspect, _) in faults.iter().take(MOST_FAULTS) { li {
                (words::verdict(&suspect.verdict)) " "
                @match picture::link(suspect) {
                    Some(link) => a href=(address::link(fabric, link)) { (suspect.place) },
                    None => (suspect.place),
                }
            } } }
            @if faults.len() > MOST_FAULTS {
                p { a href=(address::with(address::LINKS, &[("fabric", fabric)])) { "All links" } }
            }
        }
    }
}

fn matrices(topology: &Topology) -> Markup {
    let top = topology.switches.iter().filter_map(|switch| switch.level).max();
    html! {
        h2 { "Switch by switch" }
        p .quiet {
            "A dot is the cables between two switches, all of them ok; a hollow dot, some unknown; a triangle, some to watch; "
            "a square, some bad. A hole is no cable. Names and faults lead to their pages."
        }
        @for ((low, high), matrices) in matrix::of(topology) {
            h3 { (picture::called(low, top)) @if low != high { " to " (picture::called(high, top)) } @else { " to one another" } }
            div .matrices { @for matrix in &matrices { div .wide tabindex="0" role="group" aria-label="Matrix" { (matrix.drawn(topology)) } } }
        }
    }
}

fn table(topology: &Topology) -> Markup {
    let top = topology.switches.iter().filter_map(|switch| switch.level).max();
    html! {
        h2 { "All switches" }
        div .wide tabindex="0" role="group" aria-label="All switches" { table {
            thead { tr {
                th scope="col" { "Switch" } th scope="col" { "Level" } th .n scope="col" { "Cables up" } th .n scope="col" { "Aside" }
                th .n scope="col" { "Down" } th .n scope="col" { "Hosts" } th scope="col" { "Worst link" } th scope="col" { "Congestion" }
            } }
            tbody { @for switch in &topology.switches { (line(&topology.fabric, switch, top)) } }
        } }
    }
}

fn line(fabric: &str, switch: &Switch, top: Option<u8>) -> Markup {
    let number = |count: usize| html! { td .n { @if count > 0 { (count) } } };
    html! {
        tr #(switch.guid) {
            th scope="row" {
                (words::node(fabric, &switch.guid, &switch.node))
                @if !switch.up { " " span .verdict.unknown { "does not answer" } }
            }
            td { (picture::called(switch.level, top)) }
            (number(switch.up_links)) (number(switch.side_links)) (number(switch.down_links)) (number(switch.hosts))
            td { @if let Some(worst) = &switch.worst { (words::verdict(worst)) } }
            td { @if switch.congestion.is_any() { (picture::congestion(&switch.congestion)) } }
        }
    }
}
