//! One discovery of the fabric: SMInfo of each port with IsSM, for standby subnet managers, the names and GUIDs that
//! several nodes share, and how long a sweep takes with a limit of MADs per second.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use display_text::plural;
use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::discovery::Discovery;
use ib_fabric::collect::registers::{self, RegisterIntervals, RegisterReader};
use ib_fabric::collect::sweep::{SmSweep, Sweep};
use ib_fabric::fabric_kind::FabricKind;
use ib_fabric::hardware::{FirmwareVersions, Hardware};
use ib_fabric::names::Naming;
use ib_fabric::snapshot::SubnetManager;
use ib_fabric::{Fabric, Node, NodeIndex, Snapshot};
use ib_mad::m_key::MKeys;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::smp::SmState;
use ib_mad::{Mad, Moment, device};
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::plan::{self, QueryPlan, RunError};
use ib_umad::{MadTransport, QueuePair, Request, RequestError};

use crate::config::FabricSettings;

use super::finding::{Finding, Subject, bad, grouped, note, ok, shortened, warn};

/// How long the discovery may take. 60,000 ports of switches that respond in 50 µs take less; a fabric with
/// many dead hosts may take more.
const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The same with a limit of MADs per second.
const LIMITED_DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);

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

    fn is_over(&self) -> bool {
        self.plan.is_over()
    }
}

/// Discovers the fabric and checks it, and its firmware if there are `vs_keys`; no finding if the device was removed
/// meanwhile, which other checks report.
pub(super) fn check(
    what: &str,
    site: (&Naming, &MKeys),
    vs_keys: Option<MKeys>,
    (settings, pace): (&FabricSettings, SendConfig),
    client: &mut MadClient,
    transport: &mut impl MadTransport,
) -> Vec<Finding> {
    let limit = match pace.max_mads_per_second {
        Some(_) => LIMITED_DISCOVERY_TIMEOUT,
        None => DISCOVERY_TIMEOUT,
    };
    let Ok(found) = query_managers(site, limit, client, transport) else { return Vec::new() };
    let (managers, fabric) = found.unzip();
    let standbys = format!("{what}: standbys");
    let mut findings = vec![standby_finding(&standbys, managers.as_deref(), limit)];
    let Some(fabric) = fabric else { return findings };
    let fabric = Arc::new(fabric);
    findings.push(check_route(what, &fabric));
    if fabric.routes.is_directed() {
        findings.push(master_finding(what, managers.as_deref().unwrap_or_default()));
    }
    findings.extend(check_kind(what, &fabric));
    findings.extend(check_identities(what, &fabric));
    findings.extend(check_sweep(what, settings, &fabric, transport.anchor()));
    if let Some(keys) = vs_keys.filter(|_| transport.local_port().has_vendor_class) {
        let client = &mut client.beside(SendConfig { retries: 0, ..registers::send_config(pace) });
        findings.extend(query_firmware(what, &fabric, keys, client, transport).unwrap_or_default());
    }
    findings
}

/// Of an NVLink fabric, what is not done for it.
fn check_kind(what: &str, fabric: &Fabric) -> Option<Finding> {
    let is_nvlink = fabric.kind == Some(FabricKind::NvLink);
    let found = "NVLink: counters are exported, links have no verdicts";
    is_nvlink.then(|| note(Subject::Fabric, format!("{what}: kind"), found))
}

/// Reads GeneralInfo of all NVIDIA devices, once each.
fn query_firmware(
    what: &str,
    fabric: &Arc<Fabric>,
    vs_keys: MKeys,
    client: &mut MadClient,
    transport: &mut impl MadTransport,
) -> Result<Vec<Finding>, RunError> {
    let (now, stop) = (transport.now(), AtomicBool::new(false));
    let snapshot: Snapshot = Snapshot::blank(Arc::clone(fabric), transport.anchor());
    let mut reader = RegisterReader::new(RegisterIntervals::default());
    reader.set_keys(vs_keys);
    let mut run = reader.begin(&snapshot, now, now + FIRMWARE_TIMEOUT);
    plan::run(&mut run, client, transport, &stop)?;
    // The discovery was a moment ago.
    reader.confirm(fabric, false);
    let mut findings = firmware_findings(what, fabric, &reader.hardware);
    findings.extend(vs_key_finding(what, &reader));
    Ok(findings)
}

/// What to do if devices do not respond to the vendor class because of a VSKey.
fn vs_key_finding(what: &str, reader: &RegisterReader) -> Option<Finding> {
    let fix = if reader.has_keys() {
        "compare the key in --fabric.vs-key-file with that of the key manager: the key is wrong"
    } else {
        "set --fabric.vs-key-file to a file with the VSKey of the key manager, or --no-fabric.registers"
    };
    let found = "devices do not respond to the vendor class: probably protected by a VSKey";
    reader.is_vs_key_suspected().then(|| {
        warn(Subject::Firmware, format!("{what}: VSKey"), found)
            .expected("responses to GeneralInfo")
            .fix(fix)
    })
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
    limit: Duration,
    client: &mut MadClient,
    transport: &mut impl MadTransport,
) -> Result<Option<(Managers, Fabric)>, RunError> {
    let stop = AtomicBool::new(false);
    let deadline = transport.now() + limit;
    let keys = Arc::new(keys.clone());
    let local = transport.local_port();
    let discovery = Discovery::new(Arc::clone(&keys), local.guid, HashSet::new());
    let mut discovery = discovery.from_planes(local.planes).with_kind(None);
    // They tell whether a fabric has planes. With a limit of MADs per second they would take longer than all else.
    if limit == DISCOVERY_TIMEOUT {
        discovery = discovery.with_front_panels(None, None);
    }
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

/// How sweeps read port states, and why.
fn check_route(what: &str, fabric: &Fabric) -> Finding {
    let reason = fabric.routes.reason().help().trim_end_matches('.');
    let found = if fabric.routes.is_directed() {
        let ports = plural(fabric.routes.roots().len(), "local port");
        format!("by directed route from {ports} ({reason})")
    } else {
        format!("by LID ({reason})")
    };
    ok(Subject::Fabric, format!("{what}: port states"), found)
}

/// The master of a fabric with planes, which only the discovery asks.
fn master_finding(what: &str, managers: &[(SubnetManager, String)]) -> Finding {
    let what = format!("{what}: master");
    let Some((manager, node)) = managers.iter().find(|(it, _)| it.state == SmState::Master) else {
        return bad(Subject::SubnetManager, what, "no master SM responds by directed route")
            .expected("a response; without a master SM, links that come up stay in Init")
            .fix("sminfo on the subnet manager's host, and its log");
    };
    let found = format!("master SM at {node} responds, priority {}", manager.priority);
    ok(Subject::SubnetManager, what, found)
}

fn standby_finding(
    what: &str,
    managers: Option<&[(SubnetManager, String)]>,
    limit: Duration,
) -> Finding {
    let Some(managers) = managers else {
        let found = format!("not checked: the discovery takes longer than {limit:?}");
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

/// How long a sweep takes with a limit of MADs per second; no finding without one. It is the time of the first sweep,
/// of which it is not known yet which counters each device has.
fn check_sweep(
    what: &str,
    settings: &FabricSettings,
    fabric: &Arc<Fabric>,
    anchor: Anchor,
) -> Option<Finding> {
    let limit = settings.pace.max_mads_per_second?;
    let mut agents = AgentCache::new(settings.optional_counters());
    let mads = Sweep::new(fabric, &mut agents, anchor, true).max_mads();
    let (takes, interval) = (settings.pace.least_time(mads), settings.interval.as_secs());
    // Rounded up.
    let seconds = takes.as_secs() + u64::from(takes.subsec_nanos() > 0);
    let found = format!(
        "a sweep has up to {mads} MADs: up to {seconds} s with --fabric.max-mads-per-second={limit}"
    );
    let what = format!("{what}: sweep");
    if seconds <= interval {
        return Some(ok(Subject::Fabric, what, found));
    }
    let enough = mads as u64 / interval.max(1) + 1;
    let finding = warn(Subject::Fabric, what, found)
        .expected(format!(
            "less than the {interval} s of --fabric.interval; otherwise sweeps are left out"
        ))
        .fix(format!("--fabric.interval={seconds}s, or --fabric.max-mads-per-second={enough}"));
    Some(finding)
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
    use std::num::NonZeroU32;

    use super::*;
    use crate::doctor::Level;
    use ib_fabric::PortIndex;
    use ib_fabric::assembly::DiscoveredFabric;
    use ib_fabric::names::Naming;
    use ib_fabric::testing::{end, found};
    use ib_fabric::topology::DuplicateGuid;
    use ib_mad::{Guid, Moment};
    use ib_umad::testing::ScriptedTransport;

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
            let finding = standby_finding("standbys", managers.as_deref(), DISCOVERY_TIMEOUT);
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.found.contains(says), "{finding:?}");
        }
    }

    #[test]
    fn sweep_with_limit_is_compared_with_interval() {
        use crate::config::{Settings, options::Options};
        use ib_umad::testing::{ScriptedTransport, fabric};

        let links: Vec<_> = (0..30).map(|host| ((0, host as u8 + 1), (host + 1, 1))).collect();
        let mut kinds = vec![(NodeKind::Switch, 32)];
        kinds.extend([(NodeKind::Ca, 1); 30]);
        let mut transport = ScriptedTransport::new(fabric(&kinds, &links));
        transport.local_port = (1, 1);
        let mut client = MadClient::new(SendConfig::default());
        let site = (&Naming::default(), &MKeys::default());
        let found = query_managers(site, DISCOVERY_TIMEOUT, &mut client, &mut transport);
        let fabric = Arc::new(found.unwrap().unwrap().1);
        let mut settings = Settings::load(Options::default(), None).unwrap().fabrics.remove(0);
        for (limit, level, says) in [
            (0, None, ""),
            // Of 62 ports: five attributes at most, and the port states of the switch.
            (1_000, Some(Level::Ok), "up to 1 s with --fabric.max-mads-per-second=1000"),
            (10, Some(Level::Warn), "MADs: up to "),
        ] {
            settings.pace.max_mads_per_second = NonZeroU32::new(limit);
            let finding = check_sweep("f", &settings, &fabric, transport.anchor());
            assert_eq!(finding.as_ref().map(|it| it.level), level, "{finding:?}");
            assert!(finding.is_none_or(|it| it.found.contains(says)), "{limit}");
        }
    }

    #[test]
    fn silent_vendor_class_suggests_vs_key() {
        let nodes = (1..=40).map(|guid| found(guid, NodeKind::Ca, 1)).collect();
        let nodes = DiscoveredFabric { nodes, ..DiscoveredFabric::default() };
        let fabric = Arc::new(Fabric::assemble(nodes, &Naming::default(), Moment(0), None));
        for (key, fix) in [("", "set --fabric.vs-key-file"), ("0x1234", "compare the key in")] {
            // An empty fabric: nothing responds.
            let mut transport = ScriptedTransport::new(Vec::new());
            let keys = MKeys::parse(key).unwrap_or_default();
            let pace = registers::send_config(SendConfig::default());
            let mut client = MadClient::new(SendConfig { retries: 0, ..pace });
            let findings = query_firmware("f", &fabric, keys, &mut client, &mut transport).unwrap();
            let [finding] = &findings[..] else { panic!("{findings:?}") };
            assert_eq!((finding.level, &*finding.what), (Level::Warn, "f: VSKey"));
            assert!(finding.fix.as_ref().is_some_and(|it| it.contains(fix)), "{finding:?}");
            assert_eq!(transport.sent.len(), 32);
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
