//! `/api/v1/nodes` and `/api/v1/nodes/{guid}`: nodes, built from the latest snapshots.

use display_text::natural_key;
use ib_fabric::hardware::{NodeHardware, ReadAt};
use ib_fabric::topology::Presence;
use ib_fabric::{NodeIndex, NodeMap};
use ib_health::Verdict;
use ib_mad::node::NodeKind;
use ib_mad::{Guid, device};

use crate::condition::{DownNode, DownNodes, condition, name as node_name};
use crate::filter::{Fabrics, Filter, selected};
use crate::model::{FabricNodes, Fan, Node, NodeDetail, Nodes, Verdicts};
use crate::ports::ports_of;
use crate::rails::rails_of;
use crate::view::FabricView;

/// The nodes that a filter selects. A fabric name that no fabric has selects nothing.
pub fn nodes(fabrics: &Fabrics, filter: &Filter) -> Nodes {
    let fabrics = selected(fabrics, filter.fabric.as_deref()).map(|observation| {
        let view = FabricView::new(observation);
        let rows = view.into_iter().flat_map(|view| rows_of(view, filter));
        FabricNodes {
            fabric: observation.fabric.clone(),
            swept_at: view.and_then(FabricView::swept_at),
            condition: condition(observation),
            nodes: rows.map(|row| row.node()).collect(),
        }
    });
    Nodes { fabrics: fabrics.collect() }
}

/// The node with this GUID and its ports, from the first of the selected fabrics that has it.
pub fn node_by_guid(fabrics: &Fabrics, fabric: Option<&str>, guid: Guid) -> Option<NodeDetail> {
    let mut views = selected(fabrics, fabric).filter_map(|it| FabricView::new(it));
    views.find_map(|view| {
        let index = view.snapshot.fabric.node_by_guid(guid)?;
        let ports = ports_of(view, index);
        let mut verdicts = Verdicts::default();
        for port in &ports {
            let Some(verdict) = port.verdict.as_deref() else { continue };
            verdicts.add(Verdict::from_label(verdict).unwrap_or(Verdict::Unknown));
            verdicts.learning += usize::from(port.learning.is_some());
        }
        Some(NodeDetail {
            fabric: view.name.to_owned(),
            swept_at: view.swept_at(),
            node: node(view, index, verdicts, DownNodes::find(view).get(index)),
            ports,
            rails: rails_of(view, index),
        })
    })
}

/// A node of a list, before its model is built.
#[derive(Clone, Copy, Debug)]
pub struct NodeRow<'a> {
    /// Its fabric.
    pub view: FabricView<'a>,
    /// The node.
    pub index: NodeIndex,
    verdicts: Verdicts,
    down: Option<DownNode>,
}

impl NodeRow<'_> {
    /// Its model.
    pub fn node(&self) -> Node {
        node(self.view, self.index, self.verdicts, self.down.as_ref())
    }
}

/// The nodes of a fabric that a filter selects.
fn rows_of<'a>(view: FabricView<'a>, filter: &Filter) -> impl Iterator<Item = NodeRow<'a>> {
    let fabric = &view.snapshot.fabric;
    let mut verdicts = NodeMap::filled(fabric.nodes.len(), Verdicts::default());
    for link in view.links() {
        if link.whole().is_some() {
            for node in link.nodes() {
                verdicts[node].add_link(&link);
            }
            continue;
        }
        let [near, far] = link.ports().map(|port| fabric.port(port).node);
        for node in [Some(near), Some(far).filter(|far| *far != near)].into_iter().flatten() {
            verdicts[node].add_link(&link);
        }
    }
    let down = DownNodes::find(view);
    filter.nodes(view).map(move |index| {
        let verdicts = verdicts[index];
        NodeRow { view, index, verdicts, down: down.get(index).copied() }
    })
}

/// The nodes of a kind in the selected fabrics, by name.
pub fn node_rows<'a>(
    fabrics: &'a Fabrics,
    fabric: Option<&str>,
    kind: NodeKind,
) -> Vec<NodeRow<'a>> {
    let filter = Filter { kind: Some(kind.label()), ..Filter::default() };
    let mut all: Vec<NodeRow<'a>> = Vec::new();
    for view in selected(fabrics, fabric).filter_map(|it| FabricView::new(it)) {
        all.extend(rows_of(view, &filter));
    }
    let name = |row: &NodeRow<'a>| natural_key(&row.view.snapshot.fabric.node(row.index).name);
    all.sort_by_cached_key(name);
    all
}

fn node(
    view: FabricView<'_>,
    index: NodeIndex,
    verdicts: Verdicts,
    down: Option<&DownNode>,
) -> Node {
    let (snapshot, fabric) = (view.snapshot, &view.snapshot.fabric);
    let node = fabric.node(index);
    let identity = &node.identity;
    let presence = match node.presence {
        Presence::Found => "found",
        Presence::Hidden => "hidden",
        Presence::Absent => "absent",
    };
    let hardware = snapshot.hardware.node(identity.guid);
    let general = hardware.and_then(|hardware| hardware.general).map(|read| read.value);
    let is_up = snapshot.is_up(index);
    Node {
        guid: identity.guid.to_string(),
        system_guid: identity.system_guid.to_string(),
        node: node.name.clone(),
        host: node.host.clone(),
        rail: node.rail.clone(),
        description: identity.description.clone(),
        node_type: identity.kind.label().into(),
        vendor_id: format!("{:#08x}", identity.vendor_id),
        device_id: identity.device_id,
        device: device::name(identity.vendor_id, identity.device_id).map(Into::into),
        port_count: identity.port_count,
        lid: fabric.ports_of(index).find_map(|port| fabric.lid_of(port)).map(|lid| lid.0),
        up: is_up,
        down_since: down.and_then(|down| view.time(down.since?)),
        behind: down.and_then(|down| down.behind).map(|by| node_name(view, by)),
        nodes_behind: down.map_or(0, |down| down.nodes_behind),
        drained: view.assessment.drained.contains(&index),
        presence: presence.into(),
        last_found: view.time(node.last_found),
        tick: snapshot.ticks.get(index).copied().flatten(),
        firmware: general.map(|general| general.firmware()).filter(|version| !version.is_empty()),
        psid: general.map(|general| general.board()).filter(|board| !board.is_empty()),
        uptime_seconds: general.filter(|_| is_up).map(|general| general.uptime),
        fans: hardware.filter(|_| is_up).map_or_else(Vec::new, fans),
        temperature: view.temperature(index),
        verdict: verdicts.worst().label().into(),
        verdicts,
    }
}

fn fans(hardware: &NodeHardware) -> Vec<Fan> {
    let out_of_range = hardware.fan_limits.map_or(0, |read| read.value.slow | read.value.fast);
    let fan = |(&number, read): (&u8, &ReadAt<u16>)| Fan {
        number,
        rpm: read.value,
        out_of_range: out_of_range >> number & 1 == 1,
    };
    hardware.fan_speeds.iter().map(fan).collect()
}
