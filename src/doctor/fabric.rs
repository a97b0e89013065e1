//! One discovery of the fabric: SMInfo of each port with IsSM, for standby subnet managers, and the names and GUIDs
//! that several nodes share.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use display_text::plural;
use ib_fabric::collect::discovery::Discovery;
use ib_fabric::collect::registers::{self, RegisterIntervals, RegisterReader};
use ib_fabric::collect::sweep::SmSweep;
use ib_fabric::hardware::{FirmwareVersions, Hardware};
use ib_fabric::names::Naming;
use ib_fabric::snapshot::SubnetManager;
use ib_fabric::{Fabric, Node, NodeIndex, Snapshot};
use ib_mad::m_key::MKeys;
use ib_mad::node::NodeKind;
use ib_mad::smp::SmState;
use ib_mad::{Mad, Moment, device};
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::plan::{self, QueryPlan, RunError};
use ib_umad::{MadTransport, QueuePair, Request, RequestError};

use super::finding::{Finding, Subject, bad, grouped, note, ok, shortened, warn};

/// How long the discovery may take. 60,000 ports of switches that respond in 50 µs take less; a fabric with
/// many dead hosts may take more.
const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(1_500);

/// How long firmware versions may take: devices without the vendor class do not respond.
const FIRMWARE_TIMEOUT: Duration = Duration::from_secs(2);

/// A query plan that sends nothing more after a deadline.
struct WithDeadline<W> {
    plan: W,
    deadline: Moment,
    late: bool,
}

impl<W: QueryPlan> QueryPlan for WithDeadline<W> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if self.late { None } else { self.plan.next_request(qp) }
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        self.late |= at > self.deadline;
        self.plan.handle_outcome(tag, outcome, at);
    }
}

/// Discovers the fabric and checks it, and its firmware if there are `vs_keys`; no finding if the device was removed meanwhile, which other checks report.
pub(super) fn check(
    what: &str,
    site: (&Naming, &MKeys),
    vs_keys: Option<MKeys>,
    pace: SendConfig,
    client: &mut MadClient,
    transport: &mut impl MadTransport,
) -> Vec<Finding> {
    let Ok(found) = query_managers(site, client, transport) else { return Vec::new() };
    let (managers, fabric) = found.unzip();
    let mut findings = vec![standby_finding(&format!("{what}: standbys"), managers.as_deref())];
    let Some(fabric) = fabric else { return findings };
    let fabric = Arc::new(fabric);
    findings.extend(check_identities(what, &fabric));
    if let Some(keys) = vs_keys {
        findings.extend(query_firmware(what, &fabric, keys, pace, transport).unwrap_or_default());
    }
    findings
}

/// Reads GeneralInfo of all NVIDIA devices, once each.
fn query_firmware(
    what: &str,
    fabric: &Arc<Fabric>,
    vs_keys: MKeys,
    pace: SendConfig,
    transport: &mut impl MadTransport,
) -> Result<Vec<Finding>, RunError> {
    let (now, stop) = (transport.now(), AtomicBool::new(false));
    let snapshot: Snapshot = Snapshot::blank(Arc::clone(fabric), transport.anchor());
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    reader.set_keys(vs_keys);
    let mut run = reader.begin(&snapshot, now, now + FIRMWARE_TIMEOUT);
    let pace = SendConfig { retries: 0, ..registers::send_config(pace) };
    plan::run(&mut run, &mut MadClient::new(pace), transport, &stop)?;
    Ok(firmware_findings(what, fabric, &reader.hardware))
}

/// A finding for each type of device with different versions.
fn firmware_findings(what: &str, fabric: &Fabric, hardware: &Hardware) -> Vec<Finding> {
    let types = hardware.firmware(fabric);
    let differing = types.iter().filter(|it| it.versions.len() > 1);
    let finding = |it: &FirmwareVersions| {
        let name = device::name(it.device.0, it.device.1).unwrap_or("unknown device");
        let names = |node: &NodeIndex| &*fabric.node(*node).name;
        let by_version = it.versions.iter();
        let by_version: BTreeMap<&str, Vec<&str>> = by_version
            .map(|(version, nodes)| (version.as_str(), nodes.iter().map(names).collect()))
            .collect();
        let found = format!("{name} {}: versions differ: {}", it.board, grouped(&by_version));
        warn(Subject::Firmware, format!("{what}: firmware"), found)
            .expected("the same version on all devices of this type")
            .fix("bring them to one version: flint, mlxfwmanager, or the switch operating system")
    };
    let mut findings: Vec<Finding> = differing.map(finding).collect();
    let nodes: usize = types.iter().flat_map(|it| it.versions.values()).map(Vec::len).sum();
    if findings.is_empty() && nodes > 0 {
        let found = format!("one version per type and board on {}", plural(nodes, "node"));
        findings.push(ok(Subject::Firmware, format!("{what}: firmware"), found));
    }
    findings
}

/// Subnet managers, each with the name of its node.
type Managers = Vec<(SubnetManager, String)>;

/// The subnet managers and the fabric; `None` if the discovery took too long.
fn query_managers(
    (naming, keys): (&Naming, &MKeys),
    client: &mut MadClient,
    transport: &mut impl MadTransport,
) -> Result<Option<(Managers, Fabric)>, RunError> {
    let stop = AtomicBool::new(false);
    let deadline = transport.now() + DISCOVERY_TIMEOUT;
    let keys = Arc::new(keys.clone());
    let discovery = Discovery::new(Arc::clone(&keys), transport.local_port().guid, HashSet::new());
    let mut plan = WithDeadline { plan: discovery, deadline, late: false };
    plan::run(&mut plan, client, transport, &stop)?;
    if plan.late {
        return Ok(None);
    }
    let fabric = Fabric::assemble(plan.plan.finish().fabric, naming, transport.now(), None);
    let mut sweep = SmSweep::new(&fabric, keys);
    plan::run(&mut sweep, client, transport, &stop)?;
    let managers = sweep.finish().into_iter();
    let managers = managers.map(|it| (it, fabric.node_of(it.port).name.clone())).collect();
    Ok(Some((managers, fabric)))
}

fn standby_finding(what: &str, managers: Option<&[(SubnetManager, String)]>) -> Finding {
    let Some(managers) = managers else {
        let found = format!("not checked: the discovery takes longer than {DISCOVERY_TIMEOUT:?}");
        return note(Subject::SubnetManager, what, found)
            .fix("query infiniband_subnet_managers of a running exporter");
    };
    let of = |state: SmState| {
        let matching = managers.iter().filter(move |(manager, _)| manager.state == state);
        matching.map(|(it, node)| format!("{node} (priority {})", it.priority)).collect::<Vec<_>>()
    };
    let (masters, standbys) = (of(SmState::Master), of(SmState::Standby));
    if masters.len() > 1 {
        let found = format!("{} masters: {}", masters.len(), masters.join(", "));
        return bad(Subject::SubnetManager, what, found)
            .expected("one master SM, all others standby")
            .fix("stop all but one; compare their versions, M_Keys and SM_Keys");
    }
    if standbys.is_empty() {
        return note(Subject::SubnetManager, what, "no standby SM to take over from the master")
            .expected("a standby SM, if the fabric must survive a failure of the master")
            .fix("start a subnet manager with a lower priority on another host or switch");
    }
    ok(Subject::SubnetManager, what, format!("standby: {}", standbys.join(", ")))
}

/// How many shared names and GUIDs are listed; the others are counted.
const MAX_LISTED: usize = 5;

/// Checks the GUIDs and the names of the nodes that a discovery found.
fn check_identities(what: &str, fabric: &Fabric) -> [Finding; 2] {
    [check_guids(&format!("{what}: GUIDs"), fabric), check_names(&format!("{what}: names"), fabric)]
}

fn check_guids(what: &str, fabric: &Fabric) -> Finding {
    let all = &fabric.duplicates;
    if all.is_empty() {
        return ok(Subject::Fabric, what, "no duplicate GUIDs");
    }
    let nodes = all.iter().map(|it| {
        let known = fabric.node_by_guid(it.guid).map_or("", |node| &*fabric.node(node).name);
        format!("{} ({}, also on {known})", it.location(fabric), it.guid)
    });
    let nodes = shortened(nodes.collect(), MAX_LISTED);
    let found = format!("nodes ignored because of a duplicate GUID: {nodes}");
    warn(Subject::Fabric, what, found)
        .expected("a unique NodeGUID per node; the subnet manager cannot distinguish them either")
        .fix(
            "mstflint -d <device> query   # if its GUID is not the one on its label: mstflint -d <device> \
             -guid <GUID> sg",
        )
}

fn check_names(what: &str, fabric: &Fabric) -> Finding {
    let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
    // All aggregation nodes have one description, which no site can change.
    let named = fabric.nodes.iter().filter(|it| it.identity.kind != NodeKind::AggregationNode);
    for name in named.filter(|node| node.name != node.shared_name()).map(Node::shared_name) {
        *shared.entry(name).or_default() += 1;
    }
    if shared.is_empty() {
        return ok(Subject::Fabric, what, "no duplicate names");
    }
    let named =
        |(name, times): (&&str, &usize)| format!("{} named {name:?}", plural(*times, "node"));
    let groups = shortened(shared.iter().map(named).collect(), MAX_LISTED);
    note(Subject::Fabric, what, format!("{groups}; digits of the GUID are appended to each"))
        .expected("unique names")
        .fix("switches: --fabric.node-name-map=FILE; hosts: run rdma-ndd")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;
    use ib_fabric::PortIndex;
    use ib_fabric::assembly::DiscoveredFabric;
    use ib_fabric::names::Naming;
    use ib_fabric::testing::{end, found};
    use ib_fabric::topology::DuplicateGuid;
    use ib_mad::{Guid, Moment};

    #[test]
    fn level_depends_on_masters_and_standbys() {
        let manager = |state, node: &str| {
            let manager = SubnetManager { port: PortIndex(0), state, priority: 4, act_count: 1 };
            (manager, node.to_owned())
        };
        let master = manager(SmState::Master, "head-1");
        let other = manager(SmState::Master, "head-2");
        let standby = manager(SmState::Standby, "head-3");
        for (managers, level, says) in [
            (None, Level::Note, "not checked"),
            (Some(vec![master.clone()]), Level::Note, "no standby"),
            (Some(vec![master.clone(), standby]), Level::Ok, "standby: head-3 (priority 4)"),
            (Some(vec![master, other]), Level::Bad, "2 masters: head-1 (priority 4), head-2"),
        ] {
            let finding = standby_finding("standbys", managers.as_deref());
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.found.contains(says), "{finding:?}");
        }
    }

    #[test]
    fn shared_names_and_guids_are_listed() {
        let mut nodes = vec![found(1, NodeKind::Switch, 2)];
        let whole = |nodes, duplicates| {
            let found = DiscoveredFabric { nodes, duplicates, ..DiscoveredFabric::default() };
            Fabric::assemble(found, &Naming::default(), Moment(0), None)
        };
        let levels = |fabric: &Fabric| [0, 1].map(|nth| check_identities("f", fabric)[nth].level);
        assert_eq!(levels(&whole(nodes.clone(), Vec::new())), [Level::Ok; 2]);

        nodes.extend((2..10).map(|guid| found(guid, NodeKind::Switch, 2)));
        nodes.extend((20..30).map(|guid| found(guid, NodeKind::AggregationNode, 1)));
        for node in &mut nodes[1..] {
            node.identity.description = match node.identity.kind {
                NodeKind::Switch => "Quantum-2 Mellanox Technologies".into(),
                _ => "Mellanox Technologies Aggregation Node".into(),
            };
        }
        let duplicate = DuplicateGuid { guid: Guid(3), behind: Some(end(1, 2)) };
        let fabric = whole(nodes, vec![duplicate]);
        assert_eq!(levels(&fabric), [Level::Warn, Level::Note]);
        let findings = check_identities("f", &fabric);
        for (finding, says) in findings.iter().zip([
            "behind node 1 port 2 (0x0000000000000003, also on Quantum-2 Mellanox Technologies#000003)",
            "8 nodes named \"Quantum-2 Mellanox Technologies\"; digits",
        ]) {
            assert!(finding.found.contains(says), "{finding:?}");
        }
        assert!(!findings[1].found.contains("Aggregation"), "{findings:?}");
    }
}
