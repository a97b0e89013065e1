//! `/api/v1/overview`: each fabric in a few numbers, and the devices of this host. It visits each node and link
//! once and lists no more than fits on a page: 60,000 ports take milliseconds.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use fabric_observation::host::{HostObservation, HostPortTotals};
use fabric_observation::{Collector, DataSource, Observation, SharedState};
use ib_fabric::hardware::FirmwareVersions;
use ib_fabric::{NodeIndex, Snapshot};
use ib_health::congestion::{Region as Waiting, Role, RootCause};
use ib_health::counter_status::CounterStatus;
use ib_health::{Reason, Verdict};
use ib_mad::port_state::PortState;
use ib_mad::{Guid, PortKey, device, register};
use ib_umad::stats::MadOutcome;
use rdma_host::model::{Device as HostDevice, Netdev as HostNetdev, Port as HostPort, Sensor};

use crate::condition::{DownNodes, condition};
use crate::filter::KINDS;
use crate::filter::{Fabrics, Filter};
use crate::link_row::{LinkRow, names};
use crate::links::ranked;
use crate::model::{
    Device, DevicePort, Fabric, FirmwareDifference, FirmwareVersion, Host, Learning, MissingDevice,
    Netdev, NodeCount, Overview, ReasonCount, Region, Source, Sweep, Temperature, Verdicts,
};
use crate::ports::measured_at;
use crate::view::{FabricView, rfc3339};
use crate::{modules, traffic};

/// The most entries of each list: the worst links, the largest regions, the nodes that are not up.
const MAX_LISTED: usize = 10;

/// The overview of all fabrics and of this host.
pub fn overview(state: &SharedState) -> Overview {
    Overview {
        fabrics: state.fabrics.iter().map(fabric).collect(),
        host: state.host.as_deref().map(|observation| host(observation, &state.fabrics)),
        recorded: state.recording.is_some(),
    }
}

fn source(source: &DataSource) -> Source {
    Source {
        name: source.name.clone(),
        format: source.format.clone(),
        interval_seconds: source.interval.map(|interval| interval.as_secs_f64()),
        problem: source.problem.clone(),
        limits: source.limits.clone(),
    }
}

fn fabric(observation: &Arc<Observation>) -> Fabric {
    let unswept = Fabric {
        fabric: observation.fabric.clone(),
        interval_seconds: observation.interval.as_secs_f64(),
        source: observation.source.as_deref().map(source),
        condition: condition(observation),
        ..Fabric::default()
    };
    let Some(view) = FabricView::new(observation) else { return unswept };
    let FabricView { snapshot, assessment, .. } = view;
    let (mut verdicts, mut learning) = (Verdicts::default(), None);
    let mut reasons: BTreeMap<(Reason, Verdict), usize> = BTreeMap::new();
    for row in view.links() {
        if let Some(link) = verdicts.add_link(&row) {
            learning = Some(learning.map_or(link, |sum: Learning| sum.and(link)));
        }
        let (verdict, worst) =
            (row.verdict(), row.assessment.and_then(|link| link.reasons.worst()));
        if let Some((reason, _)) = worst.filter(|_| verdict != Verdict::Ok) {
            *reasons.entry((reason, verdict)).or_default() += 1;
        }
    }
    let suspect = Filter { verdicts: vec![Verdict::Bad, Verdict::Watch], ..Filter::default() };
    let worst = ranked(std::slice::from_ref(observation), &suspect, 0, MAX_LISTED);
    let down = DownNodes::find(view);
    let regions = assessment.regions.iter().take(MAX_LISTED);
    Fabric {
        kind: snapshot.fabric.kind.map(|kind| kind.label().into()),
        sweep: Some(sweep(observation, view)),
        nodes: nodes(snapshot),
        nodes_down: down.iter().take(MAX_LISTED).map(|node| node.model(view)).collect(),
        verdicts,
        reasons: reason_counts(reasons),
        worst_links: worst.1.iter().map(LinkRow::link).collect(),
        learning,
        traffic: traffic::traffic(view, MAX_LISTED),
        regions: assessment.regions.len(),
        congestion: regions.map(|waiting| region(waiting, view)).collect(),
        firmware_differences: firmware_differences(snapshot),
        ..unswept
    }
}

/// How many nodes of a version are named.
const MAX_NAMED: usize = 5;

fn firmware_differences(snapshot: &Snapshot) -> Vec<FirmwareDifference> {
    let fabric = &snapshot.fabric;
    let types = snapshot.hardware.firmware(fabric).into_iter();
    let difference = |it: FirmwareVersions| {
        let name = |node: &NodeIndex| fabric.node(*node).name.clone();
        let version = |(firmware, nodes): (String, Vec<NodeIndex>)| FirmwareVersion {
            firmware,
            nodes: nodes.len(),
            names: nodes.iter().take(MAX_NAMED).map(name).collect(),
        };
        let mut versions: Vec<_> = it.versions.into_iter().map(version).collect();
        versions.sort_by_key(|version| Reverse(version.nodes));
        let (vendor, device) = it.device;
        let name = device::name(vendor, device).map(str::to_owned);
        FirmwareDifference {
            device: name.unwrap_or_else(|| device.to_string()),
            psid: it.board,
            versions,
        }
    };
    types.filter(|it| it.versions.len() > 1).take(MAX_LISTED).map(difference).collect()
}

fn reason_counts(reasons: BTreeMap<(Reason, Verdict), usize>) -> Vec<ReasonCount> {
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|((_, verdict), links)| (Reverse(*verdict), Reverse(*links)));
    let count = |((reason, verdict), links): ((Reason, Verdict), usize)| ReasonCount {
        reason: reason.label().into(),
        description: reason.help().into(),
        verdict: verdict.label().into(),
        links,
    };
    reasons.into_iter().map(count).collect()
}

fn sweep(observation: &Observation, view: FabricView<'_>) -> Sweep {
    let snapshot = view.snapshot;
    let (stats, mads) = (&observation.stats, &observation.mads);
    let failing = Collector::ALL.into_iter().filter(|collector| !stats.success(*collector));
    let discovered = stats.discovery.as_ref();
    // The outcomes before this one are those of MADs that were sent.
    let sent = MadOutcome::ALL.into_iter().take_while(|outcome| *outcome != MadOutcome::Unsent);
    let master = stats.mastership.master.and_then(|end| snapshot.fabric.find(end));
    Sweep {
        ended_at: rfc3339(&snapshot.anchor, snapshot.ended),
        seconds: snapshot.ended.since(snapshot.began).as_secs_f64(),
        sweeps: stats.sweeps,
        ports_read: snapshot.readings.iter().flatten().count(),
        ports_failed: stats.failed_ports,
        nodes_unresponsive: snapshot.silent.iter().filter(|silent| **silent).count(),
        failing: failing.map(|collector| collector.label().into()).collect(),
        discovered_at: discovered.and_then(|(anchor, ended)| rfc3339(anchor, *ended)),
        discovery_gaps: stats.discovery_gaps,
        mads_sent: sent.map(|outcome| mads.total(outcome)).sum(),
        mads_timed_out: mads.total(MadOutcome::TimedOut),
        master_sm: master.map(|port| view.port_name(port)),
    }
}

fn nodes(snapshot: &Snapshot) -> Vec<NodeCount> {
    let fabric = &snapshot.fabric;
    let counts = KINDS.map(|kind| {
        let of_kind = |node: &NodeIndex| fabric.node(*node).identity.kind == kind;
        let nodes: Vec<NodeIndex> = fabric.node_indexes().filter(of_kind).collect();
        let down = nodes.iter().filter(|node| !snapshot.is_up(**node)).count();
        NodeCount { node_type: kind.label().into(), nodes: nodes.len(), down }
    });
    counts.into_iter().filter(|count| count.nodes > 0).collect()
}

fn region(waiting: &Waiting, view: FabricView<'_>) -> Region {
    let port = view.port(waiting.root);
    let role = port.and_then(|port| port.role);
    let cause = if let Some(Role::Root(cause)) = role { cause } else { RootCause::Unknown };
    let peer = view.snapshot.fabric.port(waiting.root).connected_peer();
    Region {
        root: view.port_name(waiting.root),
        peer: peer.map(|peer| view.port_name(peer)),
        link: view.snapshot.fabric.link_id(waiting.root).map(|id| id.to_string()),
        cause: cause.label().into(),
        ports: waiting.ports,
        roots: waiting.roots,
        wait_ratio: Some(waiting.share).filter(|share| share.is_finite()),
        level: waiting.level.label().into(),
        since: view.time(waiting.since),
        measured_at: port.and_then(|port| measured_at(view, port)),
    }
}

fn host(observation: &HostObservation, fabrics: &Fabrics) -> Host {
    let Some(snapshot) = &observation.snapshot else { return Host::default() };
    let totals = observation.totals.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
    let missing = observation.missing.iter().map(|gone| MissingDevice {
        device: gone.name.to_string(),
        guid: guid_text(gone.guid),
        since: rfc3339(&snapshot.anchor, gone.since),
    });
    Host {
        read_at: rfc3339(&snapshot.anchor, snapshot.ended),
        devices: snapshot
            .devices
            .iter()
            .zip(totals)
            .map(|(it, totals)| device(it, totals, fabrics))
            .collect(),
        missing: missing.collect(),
    }
}

/// The GUID of a device; empty if it could not be read.
pub(crate) fn guid_text(guid: Option<Guid>) -> String {
    guid.map(|guid| guid.to_string()).unwrap_or_default()
}

/// The name of the first fabric that has a node with this GUID; no node has 0.
pub(crate) fn node_in(fabrics: &Fabrics, guid: Option<Guid>) -> Option<String> {
    let guid = guid?;
    let has_it = |observation: &&Arc<Observation>| {
        let snapshot = observation.snapshot.as_ref();
        snapshot.is_some_and(|snapshot| snapshot.fabric.node_by_guid(guid).is_some())
    };
    fabrics.iter().find(has_it).map(|observation| observation.fabric.clone())
}

fn device(device: &HostDevice, totals: &[HostPortTotals], fabrics: &Fabrics) -> Device {
    let guid = device.info.guid;
    let counters = totals.iter().map(|totals| Some(&totals.counters));
    let ports = device.ports.iter().zip(counters.chain(std::iter::repeat(None)));
    Device {
        device: device.name.to_string(),
        guid: guid_text(guid),
        kind: device.kind.label().into(),
        hca_type: device.info.hca_type.clone(),
        firmware: device.info.firmware.clone(),
        readable: device.is_readable,
        temperatures: device.sensors.iter().map(temperature).collect(),
        fabric: node_in(fabrics, guid),
        ports: ports.map(|(port, counters)| device_port(port, counters, guid, fabrics)).collect(),
    }
}

fn temperature(sensor: &Sensor) -> Temperature {
    let Sensor { label, celsius, critical } = sensor;
    Temperature { sensor: label.clone(), celsius: *celsius, critical_celsius: *critical }
}

fn netdev(netdev: &HostNetdev) -> Netdev {
    Netdev {
        netdev: netdev.name.to_string(),
        bond: netdev.bond.as_deref().map(str::to_owned),
        administratively_up: netdev.is_admin_up,
        carrier: netdev.carrier,
        operstate: netdev.operstate.clone(),
    }
}

fn device_port(
    port: &HostPort,
    counters: Option<&CounterStatus>,
    guid: Option<Guid>,
    fabrics: &Fabrics,
) -> DevicePort {
    // Each port of a device may be in another fabric.
    let link = fabrics.iter().find_map(|observation| {
        let fabric = &observation.snapshot.as_ref()?.fabric;
        let link = fabric.link_id(fabric.find(PortKey::new(guid?, port.number))?)?;
        Some((link.to_string(), observation.fabric.clone()))
    });
    let (link, link_fabric) = link.unzip();
    let module = port.netdevs.iter().find_map(|netdev| netdev.module.as_deref());
    let lanes = port.width.map_or(register::LANES, |width| width.lanes().into());
    DevicePort {
        module: module.map(|module| modules::module(module, true, lanes)),
        port: port.number,
        link_layer: port.link_layer.clone(),
        kind: port.kind.label().into(),
        state: port.state.map_or("unknown", PortState::name).into(),
        physical_state: port.physical_state.map(|state| state.name().into()),
        rate: port.rate,
        lid: port.lid.map(|lid| lid.0),
        saturated: counters.map(|it| names(it.ever_saturated)).unwrap_or_default(),
        saturated_now: counters.map(|it| names(it.saturated_now)).unwrap_or_default(),
        interfaces: port.netdevs.iter().map(|netdev| netdev.name.to_string()).collect(),
        netdevs: port.netdevs.iter().map(netdev).collect(),
        link,
        link_fabric,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_health::congestion::Level;
    use ib_health::testing::{fine, port, snapshot};
    use rdma_host::testing::{port as host_port, snapshot as host_snapshot};

    #[test]
    fn reasons_are_listed_by_severity_then_by_number() {
        let counts = [
            ((Reason::InsufficientData, Verdict::Unknown), 32),
            ((Reason::Width, Verdict::Watch), 2),
            ((Reason::Down, Verdict::Bad), 1),
            ((Reason::BitErrors, Verdict::Bad), 3),
        ];
        let listed = reason_counts(counts.into());
        let listed: Vec<_> = listed.iter().map(|it| (&*it.verdict, it.links)).collect();
        assert_eq!(listed, [("bad", 3), ("bad", 1), ("watch", 2), ("unknown", 32)]);
    }

    #[test]
    fn overview_lists_fabrics_and_host_devices() {
        let mut snapshot = snapshot();
        let leaf = port(&snapshot, 1, 1);
        let guid = snapshot.fabric.port_key(port(&snapshot, 2, 1)).guid;
        snapshot.silent[NodeIndex(1)] = true;
        let since = snapshot.ended;
        let mut assessment = fine(&snapshot);
        assessment.links[0].verdict = Verdict::Bad;
        assessment.ports[leaf].role = Some(Role::Root(RootCause::SlowReceiver));
        let (ports, roots, level) = (3, 1, Level::High);
        let waiting = Waiting { root: leaf, ports, roots, share: 0.5, level, since };
        assessment.regions = vec![waiting];
        let fabric = "f".into();
        let snapshot = Some(snapshot.into());
        let swept = Observation { fabric, snapshot, assessment, ..Observation::default() };
        let unswept = Observation { fabric: "g".into(), ..Observation::default() };
        let mut snapshot = host_snapshot("mlx5_0", vec![host_port(1)]);
        Arc::make_mut(&mut snapshot.devices[0].info).guid = Some(guid);
        let host = HostObservation { snapshot: Some(snapshot), ..HostObservation::default() };
        let fabrics = vec![Arc::new(swept), Arc::new(unswept)];
        let state = SharedState { fabrics, host: Some(Arc::new(host)), ..SharedState::default() };

        let overview = overview(&state);
        let [swept, unswept] = &overview.fabrics[..] else { panic!("two fabrics") };
        assert_eq!((&unswept.sweep, unswept.nodes.len()), (&None, 0));
        let counts: Vec<_> =
            swept.nodes.iter().map(|it| (&*it.node_type, it.nodes, it.down)).collect();
        assert_eq!(counts, [("switch", 1, 0), ("ca", 2, 1)]);
        assert_eq!((swept.nodes_down.len(), &*swept.nodes_down[0].node), (1, "host-a"));
        assert_eq!((swept.verdicts.bad, swept.verdicts.ok, swept.worst_links.len()), (1, 1, 1));
        let region = &swept.congestion[0];
        assert_eq!(
            (&*swept.worst_links[0].verdict, &*region.cause, &*region.root_label()),
            ("bad", "slow_receiver", "host-a (leaf port 1)")
        );
        let sweep = swept.sweep.as_ref().unwrap();
        assert_eq!((sweep.nodes_unresponsive, sweep.failing.len()), (1, 3));
        let device = &overview.host.as_ref().unwrap().devices[0];
        assert_eq!((device.fabric.as_deref(), &*device.ports[0].state), (Some("f"), "Active"));
        let port = &device.ports[0];
        assert_eq!(
            (port.link.as_ref(), port.link_fabric.as_deref()),
            (Some(&swept.worst_links[0].link), Some("f"))
        );
        let text = serde_json::to_string(&overview).unwrap();
        assert_eq!(serde_json::from_str::<Overview>(&text).unwrap(), overview);
    }
}
