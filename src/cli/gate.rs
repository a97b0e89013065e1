//! `--fail-on`: when a list ends with [`Exit::Found`], and the line that says why and what to do. It is made for
//! scripts that take a host out of service, such as Slurm's HealthCheckProgram.
//!
//! A node that is down fails at each level: its links have no verdict that could. If the exporter itself sees nothing
//! now, nothing is found either way: that is a failure of the exporter, not of the hosts.

use clap::ValueEnum;
use humantime::parse_rfc3339;

use display_text::plural;
use fabric_api::Filter;
use fabric_api::model::{Condition, End, Link, Node, Nodes, Verdicts};
use fabric_api::nodes::nodes;
use fabric_history::local_clock::LocalClock;
use ib_health::Verdict;
use ib_mad::node::NodeKind;

use super::cells::{reason, verdict_counts};
use super::node_match::{NodeMatch, is_wanted};
use super::source::FabricSource;
use super::terminal::printable;
use crate::exit::{Exit, Fatal};

/// With which verdict of a selected link a list ends with [`Exit::Found`]; with a node that is down at each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Bad
    Bad,
    /// Bad or degraded
    #[value(alias = "degraded")]
    Watch,
    /// Bad, degraded or unknown, also while learning
    Unknown,
}

impl FailOn {
    /// The counts that make it fail.
    fn failing(self, verdicts: &Verdicts) -> Verdicts {
        let fails: &[Verdict] = match self {
            FailOn::Bad => &[Verdict::Bad],
            FailOn::Watch => &[Verdict::Bad, Verdict::Watch],
            FailOn::Unknown => &[Verdict::Bad, Verdict::Watch, Verdict::Unknown],
        };
        verdicts.only(fails)
    }
}

/// What a gate judges: the selected nodes and links.
#[derive(Debug, Default)]
pub struct Gate {
    /// The fabrics of which nothing is known now, and why.
    blind: Vec<String>,
    /// Those that are down, by harm.
    down: Vec<Node>,
    /// Of the selected links, also of those beyond `--limit`.
    pub verdicts: Verdicts,
    /// The first of the worst links.
    worst: Option<(Verdict, Fault)>,
}

/// Why something is not ok, and what to try first.
#[derive(Debug, Default)]
pub struct Fault {
    pub why: String,
    pub repair: Option<String>,
}

impl Gate {
    /// Whether the links and nodes of a fabric count; if not, that is kept.
    pub fn sees(&mut self, fabric: &str, condition: &Condition) -> bool {
        let why = match condition.blind() {
            Some(why) => &*why.text,
            None if condition.verdict.is_empty() => "the exporter is too old to say",
            None => return true,
        };
        let line = format!("fabric {fabric}: {why}");
        if !self.blind.contains(&line) {
            self.blind.push(line);
        }
        false
    }

    /// Adds the nodes of some fabrics that are down and selected.
    pub fn add_down(&mut self, found: Nodes, is_selected: impl Fn(&Node) -> bool) {
        for fabric in found.fabrics {
            if self.sees(&fabric.fabric, &fabric.condition) {
                let down = fabric.nodes.into_iter().filter(|node| !node.up && is_selected(node));
                self.down.extend(down);
            }
        }
        self.down.sort_by_key(harm);
    }

    /// Adds links by their verdicts.
    pub fn add(&mut self, verdicts: Verdicts) {
        self.verdicts = self.verdicts.and(verdicts);
    }

    /// Keeps the first of the worst links, to name it.
    pub fn name(&mut self, verdict: Verdict, fault: impl FnOnce() -> Fault) {
        if self.worst.as_ref().is_none_or(|(worst, _)| verdict > *worst) {
            self.worst = Some((verdict, fault()));
        }
    }

    /// The error that ends the command, if it fails.
    pub fn check(&self, level: FailOn) -> Result<(), Fatal> {
        let mut faults = Vec::new();
        // An aggregation node disappears when SHARP is disabled.
        let aggregates = |node: &&Node| node.node_type == NodeKind::AggregationNode.label();
        let is_down = |node: &&Node| level == FailOn::Unknown || !aggregates(node);
        let nodes: Vec<&Node> = self.down.iter().filter(is_down).collect();
        if let Some(first) = nodes.first() {
            let Fault { why, repair } = down(first);
            let why = format!("{} down: {why}", plural(nodes.len(), "node"));
            faults.push(Fault { why, repair });
        }
        let failing = level.failing(&self.verdicts);
        if failing.count() > 0 {
            let (why, repair) = match &self.worst {
                Some((_, fault)) => (format!(": {}", fault.why), fault.repair.clone()),
                None => (String::new(), None),
            };
            faults.push(Fault { why: format!("{}{why}", verdict_counts(&failing, false)), repair });
        }
        let name = level.to_possible_value().map(|value| value.get_name().to_owned());
        let flag = format!("--fail-on {}", name.unwrap_or_default());
        if let Some(repair) = faults.first().map(|first| first.repair.clone()) {
            let why = faults.iter().map(|it| &*it.why).collect::<Vec<_>>().join("; ");
            let repair = repair.map(|it| format!(". Try first: {it}")).unwrap_or_default();
            return Err(Fatal::new(Exit::Found, printable(&format!("{flag}: {why}{repair}"))));
        }
        if self.blind.is_empty() {
            return Ok(());
        }
        let why = self.blind.join("; ");
        Err(Fatal::failed(printable(&format!("{flag}: the state is not known: {why}"))))
    }
}

/// The order of nodes that are down: those that are down by themselves first, and switches first among these.
pub fn harm(node: &Node) -> (bool, bool, std::cmp::Reverse<usize>) {
    let is_switch = node.node_type == "switch";
    (node.behind.is_some(), !is_switch, std::cmp::Reverse(node.nodes_behind))
}

/// `host-33 since 2026-11-28 05:10:00, behind leaf-0-2`, and what its alert advises.
fn down(node: &Node) -> Fault {
    let since = node.down_since.as_deref().map(local_time);
    let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
    let (by, repair) = match (&node.behind, &*node.node_type) {
        (Some(by), _) => (format!(", behind {}", by.node), format!("Repair {}.", by.node)),
        (None, "switch") => (String::new(), "Check its power and console.".to_owned()),
        (None, _) => (String::new(), "Check whether the host is up.".to_owned()),
    };
    let others = match node.nodes_behind {
        0 => String::new(),
        count => format!(", {} behind it", plural(count, "node")),
    };
    Fault { why: format!("{}{since}{by}{others}", node.node), repair: Some(repair) }
}

/// A time of a model in the time zone of this host.
pub fn local_time(rfc3339: &str) -> String {
    parse_rfc3339(rfc3339).map_or_else(|_| rfc3339.to_owned(), |at| LocalClock::now().format(at))
}

/// Why a link is not ok, and its repair.
pub fn of_link(link: &Link) -> Fault {
    let [a, b] = link.ends.each_ref().map(End::label);
    Fault {
        why: format!("{a} – {b}: {}", reason(link)),
        repair: link.repair.as_ref().map(|repair| repair.description.to_string()),
    }
}

/// The nodes that are down.
pub fn nodes_down(source: &FabricSource) -> Result<Nodes, Fatal> {
    let filter = Filter { fabric: source.fabric.clone(), down: true, ..Filter::default() };
    source.get("/api/v1/nodes", &filter, |state| nodes(&state.fabrics, &filter))
}

/// Fails if a pattern of names matches nothing: a gate that checks nothing must not succeed.
pub fn check_patterns(
    selected: &[NodeMatch],
    is_found: impl Fn(&NodeMatch) -> bool,
) -> Result<(), Fatal> {
    let unmatched = selected.iter().find(|it| matches!(it, NodeMatch::Pattern(_)) && !is_found(it));
    let Some(NodeMatch::Pattern(pattern)) = unmatched else { return Ok(()) };
    Err(Fatal::usage(printable(&format!("--node: no node matches {pattern:?}"))))
}

/// Whether a node is one of those that are named; none is, if no name is given.
pub fn is_named(named: &[NodeMatch], node: &Node) -> bool {
    !named.is_empty() && is_wanted(named, &node.node, &node.guid, None)
}
