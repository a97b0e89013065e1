//! `/traffic`: what the hosts of a fabric send and receive, its busiest links, and a heat map of its leaves.

use maud::{Markup, html};

use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_api as api;
use fabric_api::FabricView;
use fabric_api::model::{BusyLink, Traffic};
use fabric_api::topology::leaves;
use fabric_api::traffic::bit_rate;
use ib_fabric::{NodeIndex, PortIndex};
use ib_health::congestion::FULL;

use super::components::{self, percent, plural};
use crate::page::{Answer, fabric_page};
use fabric_api::address;

/// The busiest directions of links that are listed.
const MAX_BUSIEST: usize = 50;
/// With more leaves than this, a cell is a leaf and not a port.
const MAX_ROWS: usize = 48;
/// The cells of a row then.
const ROW_LENGTH: usize = 32;
/// The utilizations from which on a cell has the next color, and what the legend calls them. The last one is that of a
/// fully utilized link, as on the map.
const STEPS: [(f32, &str); 6] =
    [(0.0, "idle"), (0.01, "1%"), (0.25, "25%"), (0.5, "50%"), (0.75, "75%"), (FULL, "90%")];

pub(super) async fn get(app: PageState, query: QueryResult) -> Answer {
    fabric_page(&app, query, "Traffic", address::TRAFFIC, |live, observation| {
        let view = FabricView::new(observation);
        html! { @if let Some(view) = view { (section(view, live.trends.of(view.name))) } }
    })
    .await
}

fn section(view: FabricView<'_>, trend: &[f32]) -> Markup {
    let Some(traffic) = api::traffic::traffic(view, MAX_BUSIEST) else {
        return html! { p { "The traffic is known after the second sweep." } };
    };
    html! {
        (throughput(&traffic, trend))
        (heat(view))
        h2 { "Busiest links" }
        @if traffic.busiest.is_empty() { p { "No link carries data." } } @else {
            (busiest(view.name, &traffic.busiest))
        }
    }
}

/// The sums of a fabric, and their trend.
pub(super) fn throughput(traffic: &Traffic, trend: &[f32]) -> Markup {
    let sent: Vec<f64> = trend.iter().map(|rate| f64::from(*rate)).collect();
    let most = sent.iter().copied().fold(0.0, f64::max);
    html! {
        p {
            "Hosts send " strong { (bit_rate(traffic.sent)) } " and receive "
            strong { (bit_rate(traffic.received)) } "."
            @if sent.len() > 2 { span .quiet {
                " Highest rate sent in the last " (sent.len()) " sweeps: " (bit_rate(most)) "."
            } }
        }
        @if sent.len() > 2 { div .trend {
            (components::sparkline(&sent, &format!("Sent in the last {} sweeps", sent.len())))
        } }
    }
}

pub(super) fn busiest(fabric: &str, links: &[BusyLink]) -> Markup {
    html! { table .stack.flows {
        thead { tr {
            th scope="col" { "Link and direction" } th .n scope="col" { "Utilization" } th .n scope="col" { "Rate" } th scope="col" { "Verdict" }
        } }
        tbody { @for busy in links { (components::busy_link(fabric, busy)) } }
    } }
}

/// A cell: its utilization, if it is known; its text, and the page that it leads to.
struct Cell {
    used: Option<f32>,
    text: String,
    page: String,
}

/// The utilization of each port of each leaf; of many leaves, that of the busiest port of each.
fn heat(view: FabricView<'_>) -> Markup {
    let leaves = leaves(view.snapshot);
    let is_by_leaf = leaves.len() > MAX_ROWS;
    let what = if is_by_leaf {
        "leaf, colored by its busiest port"
    } else {
        "port, colored by its busier direction"
    };
    html! {
        @if !leaves.is_empty() {
            h2 { "Utilization of the leaves" }
            ul .legend {
                li { "Each cell is a " (what) "." }
                @for (place, (_, name)) in STEPS.iter().enumerate() { li {
                    svg .key width="14" height="14" viewBox="0 0 14 14" aria-hidden="true" { rect class={ "h" (place) } width="14" height="14" {} }
                    " " @if place > 0 { "≥ " } (name)
                } }
            }
            div .heat {
                @if is_by_leaf {
                    @for row in leaves.chunks(ROW_LENGTH) { (row_of_leaves(view, row)) }
                } @else {
                    @for leaf in &leaves { (row_of_ports(view, *leaf)) }
                }
            }
        }
    }
}

fn row_of_leaves(view: FabricView<'_>, leaves: &[NodeIndex]) -> Markup {
    let fabric = &view.snapshot.fabric;
    let name = |leaf: &NodeIndex| &*fabric.node(*leaf).name;
    let cell = |leaf: &NodeIndex| {
        let busiest = fabric.ports_of(*leaf).filter_map(|port| view.used(port)).reduce(f32::max);
        let guid = fabric.node(*leaf).identity.guid;
        Cell { used: busiest, text: name(leaf).to_owned(), page: address::node(view.name, guid) }
    };
    html! { @if let Some((first, last)) = leaves.first().zip(leaves.last()) {
        span { bdi { (name(first)) } " … " bdi { (name(last)) } }
        (cells(&leaves.iter().map(cell).collect::<Vec<_>>()))
    } }
}

fn row_of_ports(view: FabricView<'_>, leaf: NodeIndex) -> Markup {
    let fabric = &view.snapshot.fabric;
    let node = fabric.node(leaf);
    let ports = fabric.ports_of(leaf).filter(|port| fabric.port(*port).number > 0);
    let cell = |port: PortIndex| {
        let number = fabric.port(port).number;
        let page = fabric.link_id(port).map_or_else(
            || address::port_of_node(view.name, node.identity.guid, number),
            |link| address::link(view.name, link),
        );
        let peer = fabric.port(port).peer.map(|peer| &*fabric.node_of(peer.port).name);
        let to = peer.map_or(String::new(), |name| format!(" to {name}"));
        Cell { used: view.used(port), text: format!("port {number}{to}"), page }
    };
    html! {
        (components::node(view.name, &node.identity.guid.to_string(), &node.name))
        (cells(&ports.map(cell).collect::<Vec<_>>()))
    }
}

/// A row of cells that lead to their pages.
fn cells(cells: &[Cell]) -> Markup {
    let busy = cells.iter().filter(|cell| cell.used.is_some()).count();
    let about = format!("{}, {busy} of them with traffic counters", plural(cells.len(), "cell"));
    html! { svg viewBox={ "0 0 " (cells.len() * 16) " 16" } width=(cells.len() * 18) role="group" aria-label=(about) {
        @for (place, cell) in cells.iter().enumerate() {
            @let text = match cell.used {
                Some(used) => format!("{}: {}", cell.text, percent(used)),
                None => format!("{}: no traffic counters", cell.text),
            };
            a href=(cell.page) aria-label=(text) {
                rect class=(class(cell.used)) x=(place * 16) y="0" width="16" height="16" rx="2" { title { (text) } }
            }
        }
    } }
}

fn class(used: Option<f32>) -> String {
    let Some(used) = used else { return "none".into() };
    let step = STEPS.iter().rposition(|(from, _)| used >= *from).unwrap_or(0);
    format!("h{step}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_observation::Observation;
    use ib_health::assessment::Flow;
    use ib_health::testing::{fine, port, snapshot};

    #[test]
    fn cells_show_the_busier_direction() {
        let snapshot = snapshot();
        let mut assessment = fine(&snapshot);
        let [leaf, host] = [port(&snapshot, 1, 1), port(&snapshot, 2, 1)];
        let flow = |used| Some(Flow { rate: used * 1.25e10, used });
        assessment.ports[leaf].tx = flow(0.3);
        // The leaf does not report what it receives: the host does.
        assessment.ports[host].tx = flow(0.97);
        let (fabric, snapshot) = ("f".into(), Some(snapshot.into()));
        let observation = Observation { fabric, snapshot, assessment, ..Observation::default() };
        let page = section(FabricView::new(&observation).unwrap(), &[1.0, 2.0, 3.0]).into_string();
        assert!(page.contains("aria-label=\"port 1 to host-a: 97%\""), "{page}");
        assert!(page.contains("class=\"h5\"") && page.contains("port 3: no traffic counters"));
        assert!(page.contains("Hosts send <strong>97.0 Gb/s</strong>"), "{page}");
        assert!(page.contains("<bdi>leaf port 1</bdi> → <wbr><bdi>host-a port 1</bdi>"), "{page}");
        assert_eq!(page.matches("<tr>").count(), 3, "the head, and two directions: {page}");
    }

    #[test]
    fn colors_have_steps() {
        for (used, name) in [
            (Some(0.0), "h0"),
            (Some(0.009), "h0"),
            (Some(0.25), "h2"),
            (Some(0.89), "h4"),
            (Some(0.9), "h5"),
            (None, "none"),
        ] {
            assert_eq!(class(used), name);
        }
    }
}
