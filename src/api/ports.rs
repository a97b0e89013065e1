//! `/api/v1/nodes`, `/api/v1/nodes/{guid}`, `/api/v1/links/{id}` and `/api/v1/modules`: nodes, links with both of their
//! ports in full, and the cables and modules that devices report, built from the latest snapshots.

use display_text::natural_key;
use ib_fabric::hardware::{NodeHardware, PortHardware, ReadAt};
use ib_fabric::topology::{Link as Cable, LinkId, Presence};
use ib_fabric::{NodeIndex, PortIndex};
use ib_health::congestion::Role;
use ib_health::{LinkAssessment, PortAssessment, Verdict};
use ib_mad::counter::{TABLE, scaled};
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortStatus;
use ib_mad::register::{self, monitor, text};
use ib_mad::{Counter, Guid, Reading, device};

use super::condition::{DownNode, DownNodes, condition, name as node_name};
use super::links::{FabricView, LinkRow, bit_errors, names, ranked, wait_ratio, worst_first};
use super::model::{
    Congestion, FabricModules, FabricNodes, Fan, LinkDetail, LinkDownReason, Module, Modules, Node,
    NodeDetail, Nodes, Peer, Port, PortModule, PortName, PreFecBer, ReportedBer, Spare, Verdicts,
};
use super::spares;
use super::{Fabrics, Filter, learning, selected, traffic};

/// The kinds of nodes, in the order in which they are listed.
pub(crate) const KINDS: [NodeKind; 4] =
    [NodeKind::Switch, NodeKind::Ca, NodeKind::Router, NodeKind::AggregationNode];

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

/// The cables and modules of the fabrics that a filter selects, by fabric, ordered by port.
pub fn modules(fabrics: &Fabrics, filter: &Filter) -> Modules {
    let fabrics = selected(fabrics, filter.fabric.as_deref()).map(|observation| {
        let view = FabricView::new(observation);
        let modules = view.map(|view| port_modules(view, filter)).unwrap_or_default();
        FabricModules {
            fabric: observation.fabric.clone(),
            swept_at: view.and_then(FabricView::swept_at),
            spares: spares_needed(std::slice::from_ref(observation), filter),
            parts: spares::parts(modules.iter()),
            modules,
        }
    });
    Modules { fabrics: fabrics.collect() }
}

/// The spares that the links of the fabrics and nodes that a filter selects need now.
pub(crate) fn spares_needed(fabrics: &Fabrics, filter: &Filter) -> Vec<Spare> {
    // All other links are fine: their models are not built.
    let verdicts = vec![Verdict::Bad, Verdict::Watch];
    let (fabric, node) = (filter.fabric.clone(), filter.node.clone());
    let filter = Filter { fabric, node, verdicts, ..Filter::default() };
    let links = ranked(fabrics, &filter, 0, usize::MAX).1;
    let links: Vec<_> = links.iter().map(LinkRow::link).collect();
    spares::spares(links.iter())
}

fn port_modules(view: FabricView<'_>, filter: &Filter) -> Vec<PortModule> {
    module_rows_of(view, filter).iter().map(ModuleRow::module).collect()
}

/// A cable or module of a list, before its model is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModuleRow<'a> {
    pub view: FabricView<'a>,
    port: PortIndex,
    plugged: &'a register::Module,
    /// Of its link.
    pub verdict: Option<Verdict>,
}

impl ModuleRow<'_> {
    /// Its model.
    pub fn module(&self) -> PortModule {
        let ModuleRow { view, port, plugged, verdict } = *self;
        PortModule {
            verdict: verdict.map(|verdict| verdict.label().into()),
            module: module(plugged, has_link(view, port), lanes(view, port)),
            name: name(view, port),
            link: view.snapshot.fabric.link_id(port).map(|id| id.to_string()),
            reported_ber: reported_ber(view, port),
        }
    }
}

/// The cables and modules of the fabrics that a filter selects, by fabric, ordered by port.
pub(crate) fn module_rows<'a>(fabrics: &'a Fabrics, filter: &Filter) -> Vec<ModuleRow<'a>> {
    let views = selected(fabrics, filter.fabric.as_deref()).filter_map(|it| FabricView::new(it));
    views.flat_map(|view| module_rows_of(view, filter)).collect()
}

fn module_rows_of<'a>(view: FabricView<'a>, filter: &Filter) -> Vec<ModuleRow<'a>> {
    let fabric = &view.snapshot.fabric;
    let mut nodes: Vec<NodeIndex> = selected_nodes(view, filter).collect();
    nodes.sort_by_cached_key(|node| natural_key(&fabric.node(*node).name));
    let mut verdicts = vec![None; fabric.ports.len()];
    for link in view.links() {
        for port in link.ports() {
            verdicts[port.0 as usize] = Some(link.verdict());
        }
    }
    let ports = nodes.into_iter().flat_map(|node| fabric.ports_of(node));
    let row = |port: PortIndex| {
        let plugged = view.hardware(port).and_then(PortHardware::plugged)?;
        Some(ModuleRow { view, port, plugged, verdict: verdicts[port.0 as usize] })
    };
    ports.filter_map(row).collect()
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
        })
    })
}

/// A node of a list, before its model is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeRow<'a> {
    pub view: FabricView<'a>,
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

fn selected_nodes(view: FabricView<'_>, filter: &Filter) -> impl Iterator<Item = NodeIndex> {
    let fabric = &view.snapshot.fabric;
    fabric.node_indexes().filter(move |index| {
        let node = fabric.node(*index);
        filter.kind.is_none_or(|kind| node.identity.kind.label() == kind)
            && !(filter.down && view.snapshot.is_up(*index))
            && filter.node.as_ref().is_none_or(|name| node.is_called(name))
    })
}

/// The nodes of a fabric that a filter selects.
fn rows_of<'a>(view: FabricView<'a>, filter: &Filter) -> impl Iterator<Item = NodeRow<'a>> {
    let fabric = &view.snapshot.fabric;
    let mut verdicts = vec![Verdicts::default(); fabric.nodes.len()];
    for link in view.links() {
        let [near, far] = link.ports().map(|port| fabric.port(port).node);
        for node in [Some(near), Some(far).filter(|far| *far != near)].into_iter().flatten() {
            verdicts[node.0 as usize].add_link(&link);
        }
    }
    let down = DownNodes::find(view);
    selected_nodes(view, filter).map(move |index| {
        let verdicts = verdicts[index.0 as usize];
        NodeRow { view, index, verdicts, down: down.get(index).copied() }
    })
}

/// The nodes of a kind in the selected fabrics, by name.
pub(crate) fn node_rows<'a>(
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
        presence: presence.into(),
        last_found: view.time(node.last_found),
        tick: snapshot.ticks.get(index.0 as usize).copied().flatten(),
        firmware: general.map(|general| general.firmware()).filter(|version| !version.is_empty()),
        psid: general.map(|general| general.board()).filter(|board| !board.is_empty()),
        uptime_seconds: general.filter(|_| is_up).map(|general| general.uptime),
        fans: hardware.filter(|_| is_up).map_or_else(Vec::new, fans),
        temperature: hardware.filter(|_| is_up).and_then(|it| it.temperature).map(|it| it.value),
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

/// The link with this id and all current data of its ends, from the first of the selected fabrics that has it.
pub fn link_by_id(fabrics: &Fabrics, fabric: Option<&str>, id: LinkId) -> Option<LinkDetail> {
    let mut views = selected(fabrics, fabric).filter_map(|it| FabricView::new(it));
    views.find_map(|view| {
        let fabric = &view.snapshot.fabric;
        let near = fabric.find(id.0)?;
        let far = fabric.port(near).peer?.port;
        (fabric.end(far) == id.1).then(|| link(view, Cable(near, far)))
    })
}

/// A link with all data of its ends.
pub fn link(view: FabricView<'_>, cable: Cable) -> LinkDetail {
    let assessment = view.assessment.links.iter().find(|assessment| assessment.link == cable);
    let outages = assessment.map(|assessment| assessment.outages).unwrap_or_default();
    LinkDetail {
        swept_at: view.swept_at(),
        link: LinkRow { view, cable, assessment }.link(),
        expected_link_downs: outages.expected.iter().sum(),
        expected_down_seconds: outages.expected_down.least.as_secs_f64(),
        expected_down_max_seconds: outages.expected_down.most.as_secs_f64(),
        recoveries: outages.recoveries,
        ports: [cable.0, cable.1].map(|index| port(view, index, assessment)),
    }
}

/// A port, with the assessment of its link.
fn port(view: FabricView<'_>, index: PortIndex, link: Option<&LinkAssessment>) -> Port {
    let (snapshot, fabric) = (view.snapshot, &view.snapshot.fabric);
    let known = fabric.port(index);
    let peer = known.peer;
    let (status, reading) = (snapshot.status(index), snapshot.reading(index));
    let default = PortAssessment::default();
    let assessment = view.port(index).unwrap_or(&default);
    let (counting, pre_fec) = (assessment.counters, assessment.bit_errors.pre_fec);
    let verdict = link.map_or(Verdict::Unknown, |link| link.verdict);
    let reasons = link.into_iter().flat_map(worst_first);
    let counters = TABLE.iter().filter_map(|row| {
        let count = scaled(reading?.get(row.counter)?, row.scale);
        Some((row.metric.into(), count))
    });
    let hardware = view.hardware(index);
    let best = || status?.best_rate_with(snapshot.status(peer?.port)?);
    Port {
        name: name(view, index),
        up: snapshot.is_up(known.node),
        state: status.map(|status| status.state.name().into()),
        physical_state: status.map(|status| status.physical_state.name().into()),
        speed: status.and_then(|status| status.speed).map(|speed| speed.label().into()),
        width: status.and_then(|status| status.width).map(|width| width.label().into()),
        rate: status.and_then(PortStatus::rate),
        supported_rate: best(),
        fec: snapshot.fec.get(index.0 as usize).copied().flatten().map(|fec| fec.label().into()),
        peer: peer.map(|peer| Peer { name: name(view, peer.port), connected: peer.connected }),
        link: fabric.link_id(index).map(|id| id.to_string()),
        verdict: peer.map(|_| verdict.label().into()),
        reasons: reasons.map(|(reason, _)| reason.label().into()).collect(),
        read_at: reading.and_then(|reading| view.time(reading.at)),
        errors: reading.map_or(0, Reading::link_errors),
        discards: reading.and_then(|reading| reading.get(Counter::XmitDiscards)),
        counters: counters.collect(),
        saturated: names(counting.saturated),
        saturated_now: names(counting.stuck),
        impossible: names(counting.impossible),
        impossible_readings: counting.impossible_readings,
        resets: counting.resets,
        last_reset: counting.last_reset.and_then(|last| view.time(last)),
        cleared_every_seconds: assessment.cleared_every.map(|every| every.as_secs_f64()),
        bit_errors: bit_errors(&assessment.bit_errors),
        pre_fec_ber: pre_fec.filter(|it| it.ratio.is_finite() && it.limit.is_finite()).map(|it| {
            PreFecBer {
                ratio: it.ratio,
                limit: it.limit,
                measured_at: view.time(it.at),
                stale: it.stale,
                lane: it.lane.map(|(lane, _)| lane),
                lane_share: it.lane.map(|(_, share)| share),
            }
        }),
        reported_ber: reported_ber(view, index),
        fec_histogram: hardware
            .filter(|_| has_link(view, index))
            .and_then(|it| it.fec_histogram.as_ref())
            .map_or_else(Vec::new, |read| read.value.blocks.to_vec()),
        link_down_reason: hardware.and_then(|it| it.link_down.as_ref()).map(|read| {
            let side = read.value.side().map(|side| side.label().into());
            LinkDownReason { side, reason: read.value.reason(), read_at: view.time(read.at) }
        }),
        trouble: hardware
            .filter(|_| status.is_some_and(|status| !status.link_up()))
            .and_then(|it| register::trouble(it.trouble.as_ref()?.value))
            .map(Into::into),
        module: module_of(view, index),
        tx: assessment.tx.map(traffic::flow),
        rx: assessment.rx.map(traffic::flow),
        learning: link.and_then(|link| learning::of_link(view, link)),
        wait_ratio: wait_ratio(assessment),
        wait_saturated: assessment.is_wait_saturated(),
        tick_reported: assessment.wait.is_some_and(|wait| wait.tick_told),
        congestion: assessment
            .role
            .map(|role| congestion(view, role, measured_at(view, assessment))),
    }
}

/// Whether a port has a link: without one the physical layer is not read.
fn has_link(view: FabricView<'_>, port: PortIndex) -> bool {
    view.snapshot.status(port).is_some_and(PortStatus::link_up)
}

/// The number of lanes that the link of a port uses.
fn lanes(view: FabricView<'_>, port: PortIndex) -> usize {
    let width = view.snapshot.status(port).and_then(|status| status.width);
    width.map_or(0, |width| width.lanes().into())
}

/// The bit error ratios that a device reports of a port.
fn reported_ber(view: FabricView<'_>, port: PortIndex) -> Option<ReportedBer> {
    let read = &view.hardware(port)?.physical.as_ref().filter(|_| has_link(view, port))?.value;
    Some(ReportedBer {
        raw: read.raw_ber(),
        effective: read.effective_ber(),
        symbol: read.symbol_ber(),
        lane_errors: read.lane_errors.iter().take(lanes(view, port)).copied().collect(),
        since_clear_seconds: Some(read.since_clear / 1_000).filter(|seconds| *seconds > 0),
    })
}

/// The cable or module of a port.
fn module_of(view: FabricView<'_>, port: PortIndex) -> Option<Module> {
    Some(module(view.hardware(port)?.plugged()?, has_link(view, port), lanes(view, port)))
}

/// A cable or module; what it measures only if that `is_read`, of the lanes that the link uses.
pub(super) fn module(module: &register::Module, is_read: bool, lanes: usize) -> Module {
    let has = |monitor| is_read && module.has(monitor);
    let measured = |value| has(monitor::TEMPERATURE).then(|| module.celsius(value)).flatten();
    let powers = |monitor, powers: &[u16]| {
        let is_known = has(monitor) && module.has_power_unit();
        let used = powers.iter().take(lanes).filter(|_| is_known);
        used.map(|power| module.dbm(*power)).collect()
    };
    Module {
        kind: module.technology_label().into(),
        form_factor: module.form_factor().into(),
        vendor: text(&module.vendor),
        part_number: text(&module.part_number),
        serial_number: text(&module.serial_number),
        revision: text(&module.revision),
        length_meters: module.meters(),
        temperature: measured(module.temperature),
        temperature_alarm: module.temperature_alarm(),
        rx_power: powers(monitor::RX_POWER, &module.rx_power),
        tx_power: powers(monitor::TX_POWER, &module.tx_power),
        rx_power_alarm: module.rx_power_alarm(),
    }
}

/// All ports of a node, each with the assessment of its link.
pub fn ports_of(view: FabricView<'_>, node: NodeIndex) -> Vec<Port> {
    let fabric = &view.snapshot.fabric;
    let at_node = |port| fabric.port(port).node == node;
    let links: Vec<&LinkAssessment> = (view.assessment.links.iter())
        .filter(|assessment| at_node(assessment.link.0) || at_node(assessment.link.1))
        .collect();
    let watched = fabric.ports_of(node).filter(|index| fabric.is_monitored(*index));
    let ports = watched.map(|index| {
        let is_its = |link: &&&LinkAssessment| link.link.0 == index || link.link.1 == index;
        port(view, index, links.iter().find(is_its).copied())
    });
    ports.collect()
}

pub(super) fn name(view: FabricView<'_>, index: PortIndex) -> PortName {
    let node = view.snapshot.fabric.node_of(index);
    PortName {
        guid: node.identity.guid.to_string(),
        node: node.name.clone(),
        host: node.host.clone(),
        node_type: node.identity.kind.label().into(),
        port: view.snapshot.fabric.port(index).number,
    }
}

fn congestion(view: FabricView<'_>, role: Role, measured_at: Option<String>) -> Congestion {
    let (role, root, cause) = match role {
        Role::Root(cause) => ("root", None, Some(cause.label().into())),
        Role::Victim { of: root } => ("victim", Some(name(view, root)), None),
    };
    Congestion { role: role.into(), root, cause, measured_at }
}

/// When the wait of a port was last measured, if it is not known now.
pub(super) fn measured_at(view: FabricView<'_>, port: &PortAssessment) -> Option<String> {
    view.time(port.held_wait?.at)
}
