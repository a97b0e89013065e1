//! What a list selects: the query parameters of the API, and the fabrics of which something is listed.

use std::sync::Arc;

use fabric_history::parameters::Parameters;
use fabric_observation::Observation;
use ib_fabric::reference::join_blanks;
use ib_fabric::{Fabric, Node, NodeIndex};
use ib_health::{Reason, Verdict};
use ib_mad::node::NodeKind;
use ib_mad::rate::Speed;

use crate::view::FabricView;

/// The kinds of nodes, in the order in which they are listed.
pub const KINDS: [NodeKind; 4] =
    [NodeKind::Switch, NodeKind::Ca, NodeKind::Router, NodeKind::AggregationNode];

/// What to list: the query parameters of a route, or of a list of links. An empty field selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only the fabric of this name.
    pub fabric: Option<String>,
    /// Only nodes with this name or GUID, or in the host of this name.
    pub node: Option<String>,
    /// Only suspect links.
    pub suspect: bool,
    /// Only nodes of this kind: the label of a [`NodeKind`].
    pub kind: Option<&'static str>,
    /// The text to search for.
    pub q: String,
    /// Only links with this text in the name of a node at an end, in any case.
    pub name: String,
    /// Only links with one of these verdicts.
    pub verdicts: Vec<Verdict>,
    /// Only links with this reason.
    pub reason: Option<Reason>,
    /// Only links that run at this speed.
    pub speed: Option<Speed>,
    /// Only nodes that are down.
    pub down: bool,
    /// How many to list.
    pub limit: Option<usize>,
}

/// The largest `limit`: some 3 MB of links.
pub const MAX_LIMIT: usize = 2_000;

impl Filter {
    /// Parses query parameters. One that the route does not accept is an error: if a mistyped parameter were
    /// ignored, the response would have more than was requested.
    pub fn parse(pairs: &[(String, String)], accepted: &[&str]) -> Result<Self, String> {
        let query = Parameters::new(pairs, accepted)?;
        let kinds = KINDS.map(NodeKind::label);
        let kind = query.read("kind", |label| {
            let known = kinds.into_iter().find(|kind| *kind == label);
            known.ok_or_else(|| format!("must be one of: {}", kinds.join(", ")))
        })?;
        let q = if accepted.contains(&"q") { query.required("q")? } else { "" };
        Ok(Filter {
            fabric: query.optional("fabric")?.map(str::to_owned),
            node: query.optional("node")?.map(str::to_owned),
            suspect: query.flag("suspect")?,
            down: query.flag("down")?,
            kind,
            q: q.to_owned(),
            name: query.optional("name")?.unwrap_or_default().to_owned(),
            verdicts: query.read_all("verdict", parse_verdict)?,
            limit: query.read("limit", |text| {
                let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                limit.ok_or_else(|| format!("must be a number from 1 to {MAX_LIMIT}"))
            })?,
            ..Filter::default()
        })
    }

    /// Fails with the problem where a fabric or a node does not exist: otherwise a mistyped name would look like one
    /// without suspect links.
    pub fn check(&self, fabrics: &Fabrics) -> Result<(), String> {
        let fabric = self.fabric.as_deref();
        check_fabric(fabrics, fabric).map_err(|problem| format!("fabric: {problem}"))?;
        let Some(name) = &self.node else { return Ok(()) };
        // Before its first sweep a fabric may have any node.
        let has = |observation: &Arc<Observation>| {
            let snapshot = observation.snapshot.as_ref();
            snapshot.is_none_or(|it| it.fabric.nodes.iter().any(is_called(&it.fabric, name)))
        };
        if selected(fabrics, fabric).any(has) {
            return Ok(());
        }
        Err(format!("node: no node or host has the name {name:?}, and no node has it as GUID"))
    }

    /// The nodes of a fabric that it selects.
    pub(crate) fn nodes(&self, view: FabricView<'_>) -> impl Iterator<Item = NodeIndex> {
        let fabric = &view.snapshot.fabric;
        let is_called = self.node.as_deref().map(|name| is_called(fabric, name));
        fabric.node_indexes().filter(move |index| {
            let node = fabric.node(*index);
            self.kind.is_none_or(|kind| node.identity.kind.label() == kind)
                && !(self.down && view.snapshot.is_up(*index))
                && is_called.as_ref().is_none_or(|is_called| is_called(node))
        })
    }
}

/// Whether a node has this name or GUID. Only if none has exactly this name, several blanks in a row are one.
pub(crate) fn is_called<'a>(fabric: &Fabric, name: &'a str) -> impl Fn(&Node) -> bool + use<'a> {
    let is_known = fabric.nodes.iter().any(|node| node.is_called(name));
    let joined = join_blanks(name);
    move |node| {
        let is_same = |known: &str| join_blanks(known) == joined;
        if is_known { node.is_called(name) } else { node.names().any(is_same) }
    }
}

/// The verdict with this label, or which labels there are.
pub fn parse_verdict(label: &str) -> Result<Verdict, String> {
    let labels = Verdict::labels;
    Verdict::from_label(label).ok_or_else(|| format!("must be one of: {}", labels()))
}

/// The latest observation of each fabric.
pub type Fabrics = [Arc<Observation>];

/// The fabric of this name, or all fabrics without a name.
pub fn selected<'a>(
    fabrics: &'a Fabrics,
    name: Option<&str>,
) -> impl Iterator<Item = &'a Arc<Observation>> {
    fabrics.iter().filter(move |observation| name.is_none_or(|name| name == observation.fabric))
}

/// Fails with the problem where no fabric has the requested name.
pub fn check_fabric(fabrics: &Fabrics, name: Option<&str>) -> Result<(), String> {
    let names: Vec<&str> = fabrics.iter().map(|observation| &*observation.fabric).collect();
    let Some(name) = name.filter(|name| !names.contains(name)) else { return Ok(()) };
    Err(match &names[..] {
        [] => format!("unknown fabric {name:?}; this exporter monitors no fabric"),
        names => format!("unknown fabric {name:?}; known: {}", names.join(", ")),
    })
}
