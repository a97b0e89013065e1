//! `ports`: the ports of nodes with state, neighbor, verdict and counters.

use ib_mad::PortKey;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use clap::{Args, ValueEnum};

use crate::history_client::Place;
use display_text::plural;
use fabric_api::model::{NodeDetail, Port, Verdicts};
use ib_health::Verdict;

use super::cells::{self, rate, wait, wait_rank};
use super::gate::{self, Fault, Gate};
use super::list::{Found, ListArgs, SortKey, VerdictArgs};
use super::node_match::NodeMatch;
use super::source::{FabricSource, is_at};
use super::table::{Fit, Table};
use super::terminal;
use super::terminal::{Color, ColorChoice};
use crate::exit::Fatal;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter ports leaf-0-1 --url http://127.0.0.1:10315
  fabric-exporter ports leaf-0-1/10 --url http://127.0.0.1:10315
  fabric-exporter ports 0x0002c90300000001 --verdict bad,watch

WAIT is the share of time in which the port had data to send but sent none; it is not known while
PortXmitWait is saturated. ERRORS is the sum of link errors, COUNTS has the error counters; a + means
that a counter is saturated.";

/// The arguments of `ports`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct PortsArgs {
    /// Node, port or link
    ///
    /// A name, GUID, LID or port in any spelling, such as leaf-0-1/10; or a link by its id.
    #[arg(value_name = "NODE", required = true)]
    node: Vec<String>,
    #[command(flatten)]
    selection: VerdictArgs,
    #[command(flatten)]
    list: ListArgs<PortOrder>,
}

/// The order of the ports of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PortOrder {
    /// By number
    #[default]
    Port,
    /// The worst first
    Verdict,
    /// The most link errors first
    Errors,
    /// The highest wait ratio first
    Wait,
}

impl SortKey for PortOrder {
    const HELP: &'static str = "Order [default: port]";
}

/// Prints the ports.
pub fn run(args: &PortsArgs, color: ColorChoice) -> Result<(), Fatal> {
    args.list.run(color, |source| args.find(source), |found: &Vec<NodeDetail>| table(found))
}

impl PortsArgs {
    fn find(&self, source: &FabricSource) -> Result<Found<Vec<NodeDetail>>, Fatal> {
        let mut places: Vec<Place> = Vec::new();
        for text in &self.node {
            places.extend(source.places("NODE", text)?);
        }
        let mut seen = BTreeSet::new();
        let guids = places.iter().map(|(guid, _)| *guid).filter(|guid| seen.insert(*guid));
        let nodes = guids.map(|guid| source.node(guid, source.fabric.as_deref()));
        let nodes = nodes.collect::<Result<Vec<NodeDetail>, Fatal>>()?;
        let mut found = self.select(nodes, &places);
        if self.list.fail_on.is_some() {
            let down = gate::nodes_down(source)?;
            let is_blind = down.fabrics.iter().any(|fabric| {
                let is_its = found.model.iter().any(|node| node.fabric == fabric.fabric);
                is_its && fabric.condition.blind().is_some()
            });
            if is_blind {
                found.gate = Gate::default();
            }
            let named = [NodeMatch::Places(places)];
            found.gate.add_down(down, |node| gate::is_named(&named, node));
        }
        Ok(found)
    }

    fn select(&self, mut nodes: Vec<NodeDetail>, places: &[Place]) -> Found<Vec<NodeDetail>> {
        let (mut verdicts, mut gate) = (Verdicts::default(), Gate::default());
        let (mut count, mut room) = (0, self.list.most());
        for detail in &mut nodes {
            let guid = detail.node.guid.parse().unwrap_or_default();
            detail.ports.retain(|port| {
                is_at(places, PortKey::new(guid, port.name.port))
                    && self.selection.selects(verdict(port), port.reasons.iter().map(|it| &**it))
            });
            detail.ports.sort_by_key(|port| key(self.list.order(), port));
            for port in detail.ports.iter().filter(|port| port.verdict.is_some()) {
                verdicts.add(verdict(port));
                verdicts.learning += usize::from(port.learning.is_some());
                gate.name(verdict(port), || fault(port));
            }
            count += detail.ports.len();
            detail.ports.truncate(room);
            room -= detail.ports.len();
        }
        let summary =
            format!("{}; links: {}", plural(count, "port"), cells::verdict_counts(&verdicts, true));
        gate.add(verdicts);
        Found { model: nodes, summary, gate }
    }
}

/// Why a port is not ok: by its link.
fn fault(port: &Port) -> Fault {
    let label = port.name.label();
    let repair = Some(format!("See fabric-exporter links --node '{label}'."));
    Fault { why: format!("{label}: {}", port.reasons.join(", ")), repair }
}

fn verdict(port: &Port) -> Verdict {
    port.verdict.as_deref().and_then(Verdict::from_label).unwrap_or(Verdict::Unknown)
}

fn key(order: PortOrder, port: &Port) -> impl Ord + use<> {
    let first = match order {
        PortOrder::Port => (None, None),
        PortOrder::Verdict => (port.verdict.as_ref().map(|_| verdict(port)), port.errors),
        PortOrder::Errors => (None, port.errors),
        PortOrder::Wait => (None, Some(wait_rank(port.wait_ratio, port.wait_saturated))),
    };
    (Reverse(first), port.name.port)
}

fn table(nodes: &[NodeDetail]) -> Table {
    let columns = vec![
        ("VERDICT", Fit::Whole),
        ("PORT", Fit::Name),
        ("STATE", Fit::Whole),
        ("RATE", Fit::Whole),
        ("NEIGHBOR", Fit::Name),
        ("ERRORS", Fit::Whole),
        ("WAIT", Fit::Whole),
        ("REASONS", Fit::Text),
        ("COUNTS", Fit::Extra),
    ];
    let ports = nodes.iter().flat_map(|detail| &detail.ports);
    Table { columns, rows: ports.map(row).collect() }
}

fn row(port: &Port) -> super::table::Row {
    let linked = port.verdict.as_deref();
    let peer = port.peer.as_ref().map(|peer| peer.name.label()).unwrap_or_default();
    let cells = vec![
        linked.map_or("-", Verdict::word).to_owned(),
        port.name.label(),
        port.state.as_deref().unwrap_or("unknown").to_owned(),
        rate(port.width.as_deref(), port.speed.as_deref()),
        peer,
        port.errors.map(|sum| cells::count(sum, port.is_least())).unwrap_or_default(),
        wait(port.wait_ratio, port.wait_saturated),
        port.reasons.join(", "),
        errors(port),
    ];
    (Color::of(verdict(port)).filter(|_| linked.is_some()), cells)
}

/// The error counters that are not 0. Corrected symbols are normal: only `--json` has them.
fn errors(port: &Port) -> String {
    use ib_mad::counter::{CounterKind, TABLE};
    let rows =
        TABLE.iter().filter(|row| matches!(row.kind, CounterKind::Error | CounterKind::Link));
    let counts = rows.filter_map(|row| {
        let count = port.counters.get(row.metric).filter(|count| **count > 0)?;
        let is_least = port.saturated.iter().any(|name| name == row.metric);
        Some(format!("{} {}", row.metric, cells::count(*count, is_least)))
    });
    terminal::printable(&counts.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::table::Style;
    use crate::cli::{Cli, Verb};
    use clap::Parser;
    use fabric_api::model::{Node, Peer, PortName};
    use ib_mad::Guid;

    fn leaf() -> NodeDetail {
        let name = |node: &str, port| PortName { node: node.into(), port, ..PortName::default() };
        let port = |number, verdict: Option<&'static str>, errors| Port {
            name: name("leaf-1", number),
            state: Some(if verdict.is_some() { "Active" } else { "Down" }.into()),
            verdict: verdict.map(Into::into),
            errors: Some(errors),
            counters: [("symbol_errors".into(), errors), ("transmit_packets".into(), 7)].into(),
            peer: verdict.map(|_| Peer { name: name("host-1", 1), connected: true }),
            ..Port::default()
        };
        let mut waiting = port(3, Some("ok"), 0);
        waiting.wait_ratio = Some(0.123);
        let mut full = port(4, Some("ok"), 0);
        full.wait_saturated = true;
        let mut bad = port(2, Some("bad"), 5);
        (bad.reasons, bad.saturated) = (vec!["bit_errors".into()], vec!["symbol_errors".into()]);
        NodeDetail {
            node: Node { guid: Guid(1).to_string(), ..Node::default() },
            ports: vec![port(1, None, 9), bad, waiting, full],
            ..NodeDetail::default()
        }
    }

    fn found(options: &[&str], places: &[Place]) -> Found<Vec<NodeDetail>> {
        let command = [&["fabric-exporter", "ports", "leaf-1"], options].concat();
        let Verb::Ports(args) = Cli::try_parse_from(command).unwrap().verb else {
            panic!("another verb");
        };
        args.select(vec![leaf()], places)
    }

    #[test]
    fn ports_are_selected_and_sorted() {
        let node = &[(Guid(1), None)][..];
        for (options, places, numbers) in [
            (&[][..], node, &[1, 2, 3, 4][..]),
            (&[], &[(Guid(1), Some(3)), (Guid(2), None)], &[3]),
            (&["--sort=verdict"], node, &[2, 3, 4, 1]),
            (&["--sort=errors"], node, &[1, 2, 3, 4]),
            (&["--sort=wait", "--limit=2"], node, &[3, 4]),
            (&["--verdict=bad"], node, &[2]),
            (&["--reason=bit errors"], node, &[2]),
            (&["--reason=flapping"], node, &[]),
        ] {
            let found = found(options, places);
            let ports = found.model[0].ports.iter().map(|port| port.name.port);
            assert_eq!(ports.collect::<Vec<_>>(), numbers, "{options:?}");
        }
        let found = found(&[], node);
        let says = "4 ports; links: 1 bad, 0 degraded, 0 unknown, 2 ok";
        assert_eq!(found.summary, says);
    }

    #[test]
    fn table_has_state_neighbor_and_counts() {
        let mut out = Vec::new();
        table(&[leaf()]).write(&mut out, Style::default()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\
VERDICT  PORT           STATE   RATE  NEIGHBOR       ERRORS  WAIT       REASONS     COUNTS
-        leaf-1 port 1  Down    -                    9                              symbol_errors 9
bad      leaf-1 port 2  Active  -     host-1 port 1  5+                 bit_errors  symbol_errors 5+
ok       leaf-1 port 3  Active  -     host-1 port 1  0       12.3%
ok       leaf-1 port 4  Active  -     host-1 port 1  0       saturated
"
        );
    }
}
