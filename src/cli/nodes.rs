//! `nodes`: the switches, channel adapters and routers of a fabric, with the verdicts of their links.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};

use display_text::{natural_key, plural};
use fabric_api::model::{HostsOfLink, Node, Nodes, Verdicts};
use fabric_api::nodes::nodes;
use fabric_api::{Filter, LINK_HOSTS};
use ib_fabric::topology::LinkId;
use ib_health::Verdict;
use ib_mad::node::NodeKind;

use super::cells;
use super::gate::{self, Fault, Gate};
use super::list::{self, Found, ListArgs, SortKey};
use super::node_match;
use super::node_match::NodeMatch;
use super::route::tables_unread;
use super::source::FabricSource;
use super::table::{Fit, Table};
use super::terminal::{Color, ColorChoice, printable};
use crate::exit::Fatal;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter nodes --url http://127.0.0.1:10315 --type switch
  fabric-exporter nodes --url http://127.0.0.1:10315 --node 'leaf-*' --sort temperature
  fabric-exporter nodes --down --json
  fabric-exporter nodes --url http://127.0.0.1:10315 --crosses leaf-0-1/24

VERDICT is the worst verdict of the node's links, unknown without links. Nodes that are down come first: switches, then
others, then those BEHIND one that is down. A terminal shows FIRMWARE, LID and GUID only if they
fit: see --wide.";

/// The arguments of `nodes`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct NodesArgs {
    /// Only nodes of this type
    ///
    /// switch, ca (channel adapter), router or aggregation_node.
    #[arg(long = "type", value_name = "TYPE", value_parser = node_type, help_heading = "Selection")]
    kind: Option<&'static str>,
    /// Only this node
    ///
    /// A name, GUID or LID; a host for all of its HCAs; or a pattern of names, such as 'leaf-0-*'. May be repeated.
    #[arg(long, value_name = "NODE", help_heading = "Selection")]
    node: Vec<String>,
    /// Only adapters of hosts whose packets cross this link
    ///
    /// By the forwarding tables of the switches, which are read for it: at most 2,000 MADs. A link by its id, or by one of
    /// its ports, such as leaf-0-1/10. With adaptive routing packets of other hosts may cross it, too.
    #[arg(long, value_name = "LINK", help_heading = "Selection")]
    crosses: Option<String>,
    /// Only nodes that are down: missing or unresponsive
    #[arg(long, help_heading = "Selection")]
    down: bool,
    /// Only nodes whose worst link has this verdict
    ///
    /// One or more of bad, watch (degraded), unknown and ok, separated by commas.
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = list::verdict,
          help_heading = "Selection")]
    verdict: Vec<Verdict>,
    #[command(flatten)]
    list: ListArgs<NodeOrder>,
}

/// The order of a list of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NodeOrder {
    /// The worst first
    #[default]
    Verdict,
    /// By name
    Node,
    /// By type
    Type,
    /// By LID
    Lid,
    /// The hottest first
    Temperature,
    /// By device and firmware
    Firmware,
}

impl SortKey for NodeOrder {}

fn node_type(text: &str) -> Result<&'static str, String> {
    let types = fabric_api::KINDS.map(NodeKind::label);
    let text = match &*text.to_lowercase().replace(' ', "_") {
        "hca" | "host" => "ca".to_owned(),
        text => text.to_owned(),
    };
    let known = || format!("known: {}", types.join(", "));
    types.into_iter().find(|known| *known == text).ok_or_else(known)
}

/// Prints the nodes.
pub fn run(args: &NodesArgs, color: ColorChoice) -> Result<(), Fatal> {
    let order = args.list.order();
    args.list.run(color, |source| args.find(source), |found| table(found, order))
}

impl NodesArgs {
    fn find(&self, source: &FabricSource) -> Result<Found<Nodes>, Fatal> {
        let fabric = source.fabric.clone();
        let filter = Filter { kind: self.kind, fabric, ..Filter::default() };
        let wanted = NodeMatch::all(source, &self.node)?;
        let mut found =
            source.get("/api/v1/nodes", &filter, |state| nodes(&state.fabrics, &filter))?;
        let crossing = self.crosses.as_deref().map(|link| crossing(source, link)).transpose()?;
        if let Some(crossing) = &crossing {
            retain_crossing(&mut found, crossing);
        }
        if self.list.fail_on.is_some() {
            gate::check_patterns(&wanted, |pattern| {
                let mut nodes = found.fabrics.iter().flat_map(|fabric| &fabric.nodes);
                nodes.any(|node| pattern.has(&node.node, &node.guid, None))
            })?;
        }
        let mut found = self.select(found, &wanted);
        if let Some(crossing) = &crossing {
            found.summary += &reservations(crossing);
        }
        Ok(found)
    }

    pub(super) fn select(&self, mut found: Nodes, wanted: &[NodeMatch]) -> Found<Nodes> {
        let mut verdicts = Verdicts::default();
        let mut selected = Vec::new();
        let (mut count, mut down, mut gate) = (0, 0, Gate::default());
        // A node that is named counts, also if another option leaves it out.
        let is_judged = |node: &Node| gate::is_named(wanted, node) || self.selects(node, wanted);
        gate.add_down(found.clone(), is_judged);
        for (fabric, listed) in found.fabrics.iter_mut().enumerate() {
            let is_seen = gate.sees(&listed.fabric, &listed.condition);
            for node in std::mem::take(&mut listed.nodes) {
                count += 1;
                down += usize::from(!node.up);
                if !self.selects(&node, wanted) {
                    continue;
                }
                let verdict = node.verdicts.worst();
                verdicts.add(verdict);
                if is_seen {
                    let mut one = Verdicts::default();
                    one.add(verdict);
                    gate.add(one);
                    gate.name(verdict, || fault(&node));
                }
                selected.push((fabric, node));
            }
        }
        let nodes = plural(count, "node");
        let listed =
            if selected.len() < count { format!("{} of ", selected.len()) } else { String::new() };
        let counts = cells::verdict_counts(&verdicts, true);
        let conditions = found.fabrics.iter().map(|it| (&*it.fabric, &it.condition));
        let headline = list::headline(conditions);
        let summary = format!("{headline}{listed}{nodes}, {down} down; worst links: {counts}");
        let order = list::order_by(&selected, |(_, node)| key(self.list.order(), node));
        for (fabric, node) in list::reordered(selected, order).take(self.list.most()) {
            found.fabrics[fabric].nodes.push(node);
        }
        Found { model: found, summary, gate }
    }

    fn selects(&self, node: &Node, wanted: &[NodeMatch]) -> bool {
        (!self.down || !node.up)
            && (self.verdict.is_empty() || self.verdict.contains(&node.verdicts.worst()))
            && node_match::is_wanted(wanted, &node.node, &node.guid, None)
    }
}

/// The hosts whose packets cross a link, which is called by its id or by one of its ports.
fn crossing(source: &FabricSource, called: &str) -> Result<HostsOfLink, Fatal> {
    let id = link_id(source, called)?;
    let path = LINK_HOSTS.replace("{id}", &id.to_string());
    source.ask(&path, &[], async |desk, fabrics, fabric| desk.hosts(fabrics, fabric, id).await)
}

fn link_id(source: &FabricSource, called: &str) -> Result<LinkId, Fatal> {
    if let Ok(id) = called.parse() {
        return Ok(id);
    }
    let places = source.places("--crosses", called)?;
    let mut ids = BTreeSet::new();
    for (guid, number) in places {
        let detail = source.node(guid, source.fabric.as_deref())?;
        let ports = detail.ports.iter().filter(|port| number.is_none_or(|it| it == port.name.port));
        ids.extend(ports.filter_map(|port| port.link.as_deref()?.parse::<LinkId>().ok()));
    }
    let count = ids.len();
    match ids.pop_first() {
        Some(id) if count == 1 => Ok(id),
        _ => Err(Fatal::usage(printable(&format!(
            "--crosses: {called:?} has {count} links: name one of its ports, or a link by its id"
        )))),
    }
}

/// Keeps the adapters of the hosts that cross a link.
fn retain_crossing(found: &mut Nodes, crossing: &HostsOfLink) {
    let hosts: BTreeSet<&str> = crossing.hosts.iter().map(|host| &**host).collect();
    for fabric in &mut found.fabrics {
        let is_it = fabric.fabric == crossing.fabric;
        let name = |node: &Node| node.host.clone().unwrap_or_else(|| node.node.clone());
        fabric.nodes.retain(|node| is_it && hosts.contains(&*name(node)));
    }
}

/// What is not known of the hosts that cross a link.
fn reservations(crossing: &HostsOfLink) -> String {
    let mut text = format!("; packets of {} cross", plural(crossing.hosts.len(), "host"));
    let _ = write!(text, " {}", crossing.link);
    if crossing.incomplete {
        let why = tables_unread(&crossing.tables);
        let _ = write!(text, "; there may be more: {why}");
    }
    if crossing.may_differ {
        text += "; adaptive routing: packets of other hosts may cross it, too";
    }
    text
}

/// Why a node is not ok: by its links.
fn fault(node: &Node) -> Fault {
    let links = match node.verdicts.count() {
        0 => "without links".to_owned(),
        _ => format!("with links {}", cells::verdict_counts(&node.verdicts, false)),
    };
    let why = format!("{} {links}", node.node);
    Fault { why, repair: Some(format!("See fabric-exporter links --node '{}'.", node.node)) }
}

fn key(order: NodeOrder, node: &Node) -> impl Ord {
    let of_type = (order == NodeOrder::Type).then_some(&*node.node_type);
    let lid = (order == NodeOrder::Lid).then_some((node.lid.is_none(), node.lid));
    // In thousandths: floating-point numbers have no order.
    let heat = node.temperature.filter(|_| order == NodeOrder::Temperature);
    let heat = Reverse(heat.map(|celsius| (celsius * 1e3) as i64));
    let firmware = (order == NodeOrder::Firmware)
        .then_some((node.device.as_deref(), node.firmware.as_deref()));
    let severity = (order == NodeOrder::Verdict).then_some((
        node.up,
        (!node.up).then(|| gate::harm(node)),
        Reverse((node.verdicts.worst(), node.verdicts.bad, node.verdicts.watch)),
    ));
    (of_type, lid, heat, firmware, severity, natural_key(&node.node), &*node.guid)
}

fn table(found: &Nodes, order: NodeOrder) -> Table {
    let columns = vec![
        ("VERDICT", Fit::Whole),
        ("FABRIC", Fit::Whole),
        ("NODE", Fit::Name),
        ("TYPE", Fit::Whole),
        ("STATE", Fit::Whole),
        ("LINKS", Fit::Whole),
        ("SINCE", Fit::Extra),
        ("BEHIND", Fit::Extra),
        ("RAIL", Fit::Extra),
        ("DEVICE", Fit::Extra),
        ("TEMP", Fit::Extra),
        ("FIRMWARE", Fit::Extra),
        ("LID", Fit::Extra),
        ("GUID", Fit::Extra),
    ];
    let nodes = found.fabrics.iter();
    let nodes =
        nodes.flat_map(|fabric| fabric.nodes.iter().map(move |node| (&*fabric.fabric, node)));
    let mut nodes: Vec<(&str, &Node)> = nodes.collect();
    nodes.sort_by_cached_key(|(_, node)| key(order, node));
    let rows = nodes.into_iter().map(|(fabric, node)| row(fabric, node));
    Table { columns, rows: rows.collect() }.with_fabric(found.fabrics.len() > 1)
}

fn row(fabric: &str, node: &Node) -> super::table::Row {
    let verdict = node.verdicts.worst();
    let color = if node.up { Color::of(verdict) } else { Some(Color::Bad) };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let cells = vec![
        Verdict::word(verdict.label()).to_owned(),
        fabric.to_owned(),
        node.node.clone(),
        node.node_type.to_string(),
        if node.up { "up" } else { "down" }.to_owned(),
        cells::verdict_counts(&node.verdicts, false),
        node.down_since.as_deref().map(gate::local_time).unwrap_or_default(),
        node.behind.as_ref().map(|by| by.node.clone()).unwrap_or_default(),
        text(&node.rail),
        node.device.as_deref().unwrap_or_default().to_owned(),
        node.temperature.map(|celsius| format!("{celsius:.0} °C")).unwrap_or_default(),
        text(&node.firmware),
        node.lid.map(|lid| lid.to_string()).unwrap_or_default(),
        node.guid.clone(),
    ];
    (color, cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;
    use fabric_api::model::{Condition, FabricNodes, NodeName};

    fn found() -> Nodes {
        let node = |guid: u64, name: &str, kind: &'static str, verdicts, up| Node {
            guid: ib_mad::Guid(guid).to_string(),
            node: name.into(),
            node_type: kind.into(),
            lid: Some(20 - guid as u16),
            temperature: (kind == "switch").then_some(40.0 + guid as f64),
            verdicts,
            up,
            ..Node::default()
        };
        let ok = Verdicts { ok: 4, ..Verdicts::default() };
        let nodes = vec![
            node(1, "leaf-10", "switch", ok, true),
            node(2, "leaf-2", "switch", Verdicts { bad: 1, ..ok }, true),
            node(3, "host-1 mlx5_0", "ca", Verdicts::default(), false),
            node(4, "host-2 mlx5_0", "ca", Verdicts { watch: 1, ..ok }, true),
        ];
        let condition = Condition { verdict: "bad".into(), ..Condition::default() };
        let fabric = "f".into();
        Nodes { fabrics: vec![FabricNodes { fabric, condition, nodes, ..FabricNodes::default() }] }
    }

    /// The names in the order of JSON and of the table.
    fn listed(options: &[&str]) -> Vec<String> {
        let cli = Cli::try_parse_from([&["fabric-exporter", "nodes"], options].concat()).unwrap();
        let Verb::Nodes(args) = cli.verb else { panic!("another verb") };
        let pattern = args.node.iter().map(|text| NodeMatch::Pattern(text.clone()));
        let found = args.select(found(), &pattern.collect::<Vec<_>>());
        let names = found.model.fabrics[0].nodes.iter().map(|node| node.node.clone());
        let names: Vec<String> = names.collect();
        let rows = table(&found.model, args.list.order()).rows;
        assert_eq!(rows.iter().map(|(_, cells)| cells[1].clone()).collect::<Vec<_>>(), names);
        names
    }

    #[test]
    fn nodes_are_selected_and_sorted() {
        let [ten, two, one, host] = ["leaf-10", "leaf-2", "host-1 mlx5_0", "host-2 mlx5_0"];
        for (options, names) in [
            (&[][..], &[one, two, host, ten][..]),
            (&["--sort=node"], &[one, host, two, ten]),
            (&["--sort=type"], &[one, host, two, ten]),
            (&["--sort=lid"], &[host, one, two, ten]),
            (&["--sort=temperature"], &[two, ten, one, host]),
            (&["--type=switch"], &[one, two, host, ten]),
            (&["--down"], &[one]),
            (&["--verdict=bad,degraded"], &[two, host]),
            (&["--node=leaf-*", "--limit=1"], &[two]),
        ] {
            assert_eq!(listed(options), names, "{options:?}");
        }
        assert_eq!((node_type("HCA"), node_type("Switch")), (Ok("ca"), Ok("switch")));
        assert!(node_type("hub").unwrap_err().contains("router"));
    }

    #[test]
    fn switch_that_is_down_comes_before_the_hosts_behind_it() {
        let down = |name: &str, kind: &'static str, behind: Option<&str>, nodes_behind| Node {
            node: name.into(),
            node_type: kind.into(),
            down_since: Some("2026-11-28T05:10:00Z".into()),
            behind: behind.map(|by| NodeName { node: by.into(), ..NodeName::default() }),
            nodes_behind,
            ..Node::default()
        };
        let nodes = vec![
            down("host-2", "ca", Some("leaf-2"), 0),
            down("host-1", "ca", None, 0),
            down("leaf-1", "switch", None, 0),
            down("leaf-2", "switch", None, 1),
        ];
        let fabric = FabricNodes { fabric: "f".into(), nodes, ..FabricNodes::default() };
        let table = table(&Nodes { fabrics: vec![fabric] }, NodeOrder::Verdict);
        let names: Vec<&str> = table.rows.iter().map(|(_, cells)| &*cells[1]).collect();
        assert_eq!(names, ["leaf-2", "leaf-1", "host-1", "host-2"]);
        let column = |head| table.columns.iter().position(|(it, _)| *it == head).unwrap();
        assert_eq!(table.rows[3].1[column("BEHIND")], "leaf-2");
        assert!(
            table.rows.iter().all(|(_, cells)| cells[column("SINCE")].starts_with("2026-11-2"))
        );
    }

    #[test]
    fn node_without_links_is_unknown() {
        let spare = Node { node: "spare".into(), up: true, ..Node::default() };
        let condition = Condition { verdict: "unknown".into(), ..Condition::default() };
        let nodes = vec![spare];
        let fabric = FabricNodes { condition, nodes, ..FabricNodes::default() };
        let all = Nodes { fabrics: vec![fabric] };
        let found = |options: &[&str]| {
            let options = [&["fabric-exporter", "nodes"], options].concat();
            let Verb::Nodes(args) = Cli::try_parse_from(options).unwrap().verb else {
                panic!("another verb")
            };
            args.select(all.clone(), &[])
        };
        let says = "1 node, 0 down; worst links: 0 bad, 0 degraded, 1 unknown, 0 ok";
        assert_eq!(found(&[]).summary, says);
        let listed = |verdict: &str| found(&["--verdict", verdict]).model.fabrics[0].nodes.len();
        assert_eq!(["ok", "unknown"].map(listed), [0, 1]);
        let (color, cells) = table(&found(&[]).model, NodeOrder::Verdict).rows.remove(0);
        assert_eq!((color, &*cells[0]), (Color::of(Verdict::Unknown), "unknown"));
        let error = found(&[]).gate.check(gate::FailOn::Unknown).unwrap_err().message;
        assert!(error.contains("1 unknown: spare without links"), "{error}");
    }

    #[test]
    fn summary_counts_what_is_selected() {
        let cli = Cli::try_parse_from(["fabric-exporter", "nodes", "--verdict=bad"]).unwrap();
        let Verb::Nodes(args) = cli.verb else { panic!("another verb") };
        let found = args.select(found(), &[]);
        let says = "1 of 4 nodes, 1 down; worst links: 1 bad, 0 degraded, 0 unknown, 0 ok";
        assert_eq!((&*found.summary, found.gate.verdicts.bad), (says, 1));
    }
}
