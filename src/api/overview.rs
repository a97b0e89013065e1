//! `/api/v1/overview`: a board at a glance. It takes in each node and each cable once, and tells no more of
//! them than fits on a page: 60,000 ports are milliseconds.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use fabric_observation::host::HostObservation;
use fabric_observation::{Board, Collector, Observation};
use ib_fabric::{NodeIndex, Snapshot};
use ib_health::congestion::{Cause, Region as Waiting};
use ib_health::{Reason, Verdict};
use ib_mad::Guid;
use ib_mad::port_state;
use ib_umad::stats::MadOutcome;
use rdma_host::model::{Device as HostDevice, Port as HostPort};

use super::links::{Of, all, time};
use super::model::Verdicts;
use super::model::overview::{
    Counted, Device, DevicePort, Fabric, Host, NodeCount, NodeName, Overview, Region, Sweep,
};
use super::nodes::KINDS;
use super::ports::name;
use super::ranking::{Wanted, ranked};

/// So many of the worst cables, the largest regions and the nodes that are not up are told.
pub const MOST: usize = 10;

/// A board at a glance.
pub fn overview(board: &Board) -> Overview {
    Overview {
        fabrics: board.fabrics.iter().map(fabric).collect(),
        host: board.host.as_deref().map(|seen| host(seen, &board.fabrics)),
        recorded: board.recording.is_some(),
    }
}

fn fabric(observation: &Arc<Observation>) -> Fabric {
    let blank = Fabric {
        fabric: observation.fabric.clone(),
        interval_seconds: observation.interval.as_secs_f64(),
        ..Fabric::default()
    };
    let Some(of) = Of::new(observation) else { return blank };
    let Of { snapshot, findings, .. } = of;
    let mut verdicts = Verdicts::default();
    let mut reasons: BTreeMap<(Reason, Verdict), usize> = BTreeMap::new();
    for (_, judged) in all(observation) {
        let verdict = judged.map_or(Verdict::Unknown, |link| link.verdict);
        verdicts.add(verdict);
        let gravest = judged.and_then(|link| link.reasons.gravest());
        if let Some((reason, _)) = gravest.filter(|_| verdict != Verdict::Ok) {
            *reasons.entry((reason, verdict)).or_default() += 1;
        }
    }
    let suspect = Wanted { verdicts: &[Verdict::Bad, Verdict::Watch], ..Wanted::default() };
    let down = |node: &NodeIndex| !snapshot.is_up(*node);
    Fabric {
        sweep: Some(sweep(observation, of)),
        nodes: nodes(snapshot),
        not_up: snapshot
            .fabric
            .node_indexes()
            .filter(down)
            .take(MOST)
            .map(|node| snapshot.fabric.node(node))
            .map(|node| NodeName { guid: node.identity.guid.to_string(), node: node.name.clone() })
            .collect(),
        verdicts,
        reasons: counted(reasons),
        worst: ranked(std::slice::from_ref(observation), &suspect, 0, MOST).links,
        regions: findings.regions.len(),
        congestion: findings.regions.iter().take(MOST).map(|waiting| region(waiting, of)).collect(),
        ..blank
    }
}

fn counted(reasons: BTreeMap<(Reason, Verdict), usize>) -> Vec<Counted> {
    let told = reasons.into_iter().map(|((reason, verdict), links)| Counted {
        reason: reason.label().into(),
        what: reason.help().into(),
        verdict: verdict.label().into(),
        links,
    });
    let mut told: Vec<Counted> = told.collect();
    told.sort_by_key(|it| Reverse(it.links));
    told
}

fn sweep(observation: &Observation, of: Of<'_>) -> Sweep {
    let snapshot = of.snapshot;
    let (tally, mads) = (&observation.tally, &observation.mads);
    let failing = Collector::ALL.into_iter().filter(|collector| !tally.success(*collector));
    let discovered = tally.discovery.as_ref();
    let sent = [
        MadOutcome::Answered,
        MadOutcome::Busy,
        MadOutcome::Redirected,
        MadOutcome::Refused,
        MadOutcome::TimedOut,
    ];
    let master = tally.mastership.master().and_then(|end| snapshot.fabric.find(end));
    Sweep {
        ended_at: time(&snapshot.anchor, snapshot.ended),
        seconds: snapshot.ended.since(snapshot.began).as_secs_f64(),
        sweeps: tally.sweeps,
        ports_read: snapshot.readings.iter().flatten().count(),
        ports_failed: tally.failed_ports,
        nodes_silent: snapshot.silent.iter().filter(|silent| **silent).count(),
        failing: failing.map(|collector| collector.label().into()).collect(),
        discovered_at: discovered.and_then(|(anchor, ended)| time(anchor, *ended)),
        discovery_gaps: tally.discovery_gaps,
        mads_sent: sent.into_iter().map(|outcome| mads.total(outcome)).sum(),
        mads_timed_out: mads.total(MadOutcome::TimedOut),
        master: master.map(|port| name(of, port)),
    }
}

fn nodes(snapshot: &Snapshot) -> Vec<NodeCount> {
    let mut counts = KINDS.map(|kind| (kind, 0, 0));
    for index in snapshot.fabric.node_indexes() {
        let kind = snapshot.fabric.node(index).identity.kind;
        for (_, all, down) in counts.iter_mut().filter(|(of, ..)| *of == kind) {
            *all += 1;
            *down += usize::from(!snapshot.is_up(index));
        }
    }
    let there = counts.into_iter().filter(|(_, nodes, _)| *nodes > 0);
    there
        .map(|(kind, nodes, not_up)| NodeCount { node_type: kind.label().into(), nodes, not_up })
        .collect()
}

fn region(waiting: &Waiting, of: Of<'_>) -> Region {
    let (snapshot, findings) = (of.snapshot, of.findings);
    let cause = findings.ports.get(waiting.root.0 as usize).and_then(|port| port.cause);
    Region {
        root: name(of, waiting.root),
        link: snapshot.fabric.link_id(waiting.root).map(|id| id.to_string()),
        cause: cause.unwrap_or(Cause::Unknown).label().into(),
        ports: waiting.ports,
        roots: waiting.roots,
        wait_ratio: Some(waiting.share).filter(|share| share.is_finite()),
        level: waiting.level.label().into(),
        since: time(&snapshot.anchor, waiting.since),
    }
}

fn host(seen: &HostObservation, fabrics: &[Arc<Observation>]) -> Host {
    let Some(snapshot) = &seen.snapshot else { return Host::default() };
    Host {
        read_at: time(&snapshot.anchor, snapshot.ended),
        devices: devices(seen).map(|(it, guid)| device(it, guid, fabrics)).collect(),
    }
}

/// This host's devices. One that has no GUID of its own has one here that no node has.
pub(super) fn devices(seen: &HostObservation) -> impl Iterator<Item = (&HostDevice, Guid)> {
    let ids = seen.ids.iter().copied().chain(std::iter::repeat(Guid::default()));
    seen.snapshot.iter().flat_map(|snapshot| &snapshot.devices).zip(ids)
}

/// The fabric that has a device as a node; of several the first.
pub(super) fn node_in(fabrics: &[Arc<Observation>], guid: Guid) -> Option<String> {
    let has_it = |observation: &&Arc<Observation>| {
        let snapshot = observation.snapshot.as_ref();
        snapshot.is_some_and(|snapshot| snapshot.fabric.node_by_guid(guid).is_some())
    };
    fabrics.iter().find(has_it).map(|observation| observation.fabric.clone())
}

fn device(device: &HostDevice, guid: Guid, fabrics: &[Arc<Observation>]) -> Device {
    Device {
        device: device.name.to_string(),
        guid: guid.to_string(),
        hca_type: device.about.hca_type.clone(),
        firmware: device.about.firmware.clone(),
        answers: device.answers,
        node_in: node_in(fabrics, guid),
        ports: device.ports.iter().map(|it| device_port(it, guid, fabrics)).collect(),
    }
}

fn device_port(port: &HostPort, guid: Guid, fabrics: &[Arc<Observation>]) -> DevicePort {
    // Each port of a device may be in a fabric of its own.
    let link = fabrics.iter().find_map(|observation| {
        let fabric = &observation.snapshot.as_ref()?.fabric;
        let link = fabric.link_id(fabric.find((guid, port.number))?)?;
        Some((link.to_string(), observation.fabric.clone()))
    });
    let (link, link_in) = link.unzip();
    DevicePort {
        port: port.number,
        link_layer: port.link_layer.clone(),
        state: port.state.map_or("unknown", port_state::state::name).into(),
        rate: port.rate,
        lid: port.lid.map(|lid| lid.0),
        interfaces: port.netdevs.iter().map(|netdev| netdev.name.to_string()).collect(),
        link,
        link_in,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_health::congestion::Level;
    use ib_health::testing::{fine, port, snapshot};
    use rdma_host::testing::{port as host_port, snapshot as host_snapshot};

    #[test]
    fn a_board_at_a_glance() {
        let mut snapshot = snapshot();
        let leaf = port(&snapshot, 1, 1);
        let guid = snapshot.fabric.end(port(&snapshot, 2, 1)).0;
        snapshot.silent[1] = true;
        let since = snapshot.ended;
        let mut findings = fine(&snapshot);
        findings.links[0].verdict = Verdict::Bad;
        findings.ports[leaf.0 as usize].cause = Some(Cause::SlowReceiver);
        let (ports, roots, level) = (3, 1, Level::High);
        let waiting = Waiting { root: leaf, ports, roots, share: 0.5, level, since };
        findings.regions = vec![waiting];
        let fabric = "f".into();
        let snapshot = Some(snapshot);
        let swept = Observation { fabric, snapshot, findings, ..Observation::default() };
        let unswept = Observation { fabric: "g".into(), ..Observation::default() };
        let host = HostObservation {
            snapshot: Some(host_snapshot("mlx5_0", vec![host_port(1)])),
            ids: vec![guid],
            ..HostObservation::default()
        };
        let fabrics = vec![Arc::new(swept), Arc::new(unswept)];
        let board = Board { fabrics, host: Some(Arc::new(host)), ..Board::default() };

        let told = overview(&board);
        let [swept, unswept] = &told.fabrics[..] else { panic!("two fabrics") };
        assert_eq!((&unswept.sweep, unswept.nodes.len()), (&None, 0));
        let counts: Vec<_> =
            swept.nodes.iter().map(|it| (&*it.node_type, it.nodes, it.not_up)).collect();
        assert_eq!(counts, [("switch", 1, 0), ("ca", 2, 1)]);
        assert_eq!((swept.not_up.len(), &*swept.not_up[0].node), (1, "host-a"));
        assert_eq!((swept.verdicts.bad, swept.verdicts.ok, swept.worst.len()), (1, 1, 1));
        assert_eq!(
            (&*swept.worst[0].verdict, &*swept.congestion[0].cause),
            ("bad", "slow_receiver")
        );
        let sweep = swept.sweep.as_ref().unwrap();
        assert_eq!((sweep.nodes_silent, sweep.failing.len()), (1, 3));
        let device = &told.host.as_ref().unwrap().devices[0];
        assert_eq!((device.node_in.as_deref(), &*device.ports[0].state), (Some("f"), "Active"));
        let port = &device.ports[0];
        assert_eq!(
            (port.link.as_ref(), port.link_in.as_deref()),
            (Some(&swept.worst[0].link), Some("f"))
        );
        let text = serde_json::to_string(&told).unwrap();
        assert_eq!(serde_json::from_str::<Overview>(&text).unwrap(), told);
    }
}
