//! A monitored scenario, and the metrics of its ports.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ib_mad::counter::{CounterKind, CounterRow, TABLE};
use ib_sim::load::{Flow, RoutedFlows};
use ib_sim::net::{Net, PortId};
use ib_sim::scenario::{FabricChange, ResolvedScenario};

use test_rig::{Metrics, Simulated};

/// Counters of corrected symbols, which grow on good links with four-level signals, too.
pub const MENDED: [&str; 2] = ["fec_corrected_blocks", "fec_corrected_symbols"];

/// The rate of an NDR link of four lanes, in bits a second.
pub const NDR_BITS: f64 = 400e9;
/// The number of packets that are lost with a link that carries traffic.
pub const LOST: u64 = 112;

/// A monitored scenario.
pub struct Run {
    pub simulated: Simulated,
}

/// The metrics of the ports at a time, by labels such as `leaf-0-1[9]`.
pub struct Look {
    pub metrics: Metrics,
    /// By family, without `infiniband_port_`.
    pub ports: BTreeMap<String, BTreeMap<String, u64>>,
    /// The peer that each port has, or last had.
    pub peers: BTreeMap<String, String>,
    /// The link of each port that has a peer.
    pub links: BTreeMap<String, String>,
    pub up: BTreeMap<String, bool>,
}

impl Run {
    pub fn of(simulated: Simulated) -> Run {
        Run { simulated }
    }

    pub fn story(&self) -> &ResolvedScenario {
        self.simulated.story()
    }

    pub fn net(&self) -> &Net {
        &self.story().net
    }

    /// The metrics this many seconds after the start.
    pub fn at(&self, seconds: u64) -> Look {
        self.simulated.run_to(Duration::from_secs(seconds));
        Look::new(self.net(), self.simulated.metrics())
    }

    /// All ports of a node that have cables, by their labels.
    pub fn ports_of(&self, node: &str) -> Vec<String> {
        let net = self.net();
        let id = net.node_ids().find(|id| net.node(*id).id == node).unwrap();
        net.cable_ports(id)
            .filter(|port| net.port(*port).cable.is_some())
            .map(|port| net.label(port))
            .collect()
    }

    /// The peer of a port as built.
    pub fn peer(&self, label: &str) -> String {
        let net = self.net();
        net.label(net.port(self.simulated.port(label)).cable.unwrap())
    }

    /// The paths of all flows when all links are up.
    pub fn ways(&self) -> Vec<Vec<PortId>> {
        let flows: Vec<Flow> =
            self.story().changes.iter().flat_map(|step| flows(&step.change)).collect();
        let links: Vec<_> = self.net().ports.iter().map(|port| port.cable).collect();
        RoutedFlows::new(self.net(), &links, &flows).paths
    }

    /// The ports that may wait because of these: all that send towards one, or towards one that
    /// waits.
    pub fn upstream(&self, roots: &[&str]) -> BTreeSet<String> {
        let ways = self.ways();
        let mut behind: BTreeSet<PortId> =
            roots.iter().map(|root| self.simulated.port(root)).collect();
        let mut found = BTreeSet::new();
        while !behind.is_empty() {
            let before = ways.iter().flat_map(|way| {
                let last = way.iter().rposition(|port| behind.contains(port)).unwrap_or(0);
                way[..last].iter().copied()
            });
            behind = before.filter(|port| found.insert(*port)).collect();
        }
        found.into_iter().map(|port| self.net().label(port)).collect()
    }
}

pub fn flows(change: &FabricChange) -> Vec<Flow> {
    if let FabricChange::SetTraffic { flows, .. } = change { flows.clone() } else { Vec::new() }
}

impl Look {
    pub fn new(net: &Net, metrics: Metrics) -> Look {
        let ids: BTreeMap<String, &str> =
            net.nodes.iter().map(|node| (node.guid.to_string(), node.id.as_str())).collect();
        let mut look = Look {
            metrics,
            ports: BTreeMap::new(),
            peers: BTreeMap::new(),
            links: BTreeMap::new(),
            up: BTreeMap::new(),
        };
        for sample in &look.metrics.samples {
            let Some(id) = sample.labels.get("guid").and_then(|guid| ids.get(guid)) else {
                continue;
            };
            let Some(port) = sample.labels.get("port") else {
                if sample.name == "infiniband_node_up" {
                    look.up.insert((*id).to_owned(), sample.raw == "1");
                }
                continue;
            };
            let label = format!("{id}[{port}]");
            // Derived metrics have tests of their own.
            let Some(family) = sample.name.strip_prefix("infiniband_port_") else { continue };
            if [
                "saturated_counters",
                "counters_reset_timestamp",
                "transmit_wait_ratio",
                "transmit_wait_held",
                "congestion",
                "reported_bit_error_ratio",
            ]
            .iter()
            .any(|it| family.starts_with(it))
            {
                continue;
            }
            if family != "info" {
                look.ports.entry(family.to_owned()).or_default().insert(label, sample.u64());
            } else if let Some(peer) = sample.labels.get("peer_guid") {
                let peer = format!("{}[{}]", ids[peer], sample.labels["peer_port"]);
                look.links.insert(label.clone(), sample.labels["link"].clone());
                look.peers.insert(label, peer);
            }
        }
        look
    }

    /// A value of one port.
    pub fn get(&self, family: &str, port: &str) -> Option<u64> {
        self.ports.get(family)?.get(port).copied()
    }

    /// A counter of one port. Causes of errors and resets are absent while they are 0.
    pub fn count(&self, counter: &str, port: &str) -> u64 {
        self.get(&format!("{counter}_total"), port).unwrap_or_else(|| {
            let row = TABLE.iter().find(|row| row.metric == counter);
            let is_cause =
                row.is_some_and(|row| row.fields.iter().all(|field| field.attribute.is_details()));
            assert!(is_cause || counter == "counters_reset", "{port} has no {counter}");
            0
        })
    }

    /// The ports with counters that were reset since an earlier time.
    pub fn reset_since(&self, before: &Look) -> Vec<&str> {
        let more = self.more("counters_reset", before);
        more.into_keys().collect()
    }

    /// The ports whose counter is not 0.
    pub fn counted(&self, counter: &str) -> BTreeMap<&str, u64> {
        let all = self.ports.get(&format!("{counter}_total")).into_iter().flatten();
        all.filter(|(_, count)| **count > 0).map(|(port, count)| (port.as_str(), *count)).collect()
    }

    /// The ports whose counter has increased since an earlier time.
    pub fn more(&self, counter: &str, before: &Look) -> BTreeMap<&str, u64> {
        let more = |(port, count)| (port, count - before.count(counter, port));
        self.counted(counter).into_iter().map(more).filter(|(_, more)| *more > 0).collect()
    }

    /// Apart from traffic only these counters are not 0, each at exactly these ports.
    pub fn assert_only<S: AsRef<str>>(&self, expected: &[(&str, &[S])]) {
        let tells =
            |row: &&CounterRow| row.kind != CounterKind::Traffic && !MENDED.contains(&row.metric);
        for row in TABLE.iter().filter(tells) {
            let of = expected.iter().find(|(counter, _)| *counter == row.metric);
            let mut ports: Vec<&str> =
                of.map_or(Vec::new(), |(_, ports)| ports.iter().map(S::as_ref).collect());
            ports.sort_unstable();
            let counted = self.counted(row.metric);
            assert_eq!(
                counted.keys().copied().collect::<Vec<_>>(),
                ports,
                "{}: {counted:?}",
                row.metric
            );
        }
        for (counter, _) in expected {
            assert!(TABLE.iter().any(|row| row.metric == *counter), "{counter}");
        }
    }

    /// No port has errors.
    pub fn assert_clean(&self) {
        self.assert_only::<&str>(&[]);
    }

    pub fn down(&self) -> Vec<&str> {
        self.up.iter().filter(|(_, up)| !**up).map(|(node, _)| node.as_str()).collect()
    }

    pub fn of_fabric(&self, name: &str) -> f64 {
        self.metrics.get(name, &[]).unwrap_or_else(|| panic!("no {name}"))
    }

    pub fn changes(&self, kind: &str) -> u64 {
        self.metrics.get_u64("fabric_exporter_fabric_changes_total", &[("kind", kind)]).unwrap()
    }

    /// MADs of all classes with this outcome.
    pub fn mads(&self, outcome: &str) -> u64 {
        let of = |name: &str| name == "fabric_exporter_mads_total";
        let all = self.metrics.samples.iter().filter(|sample| of(&sample.name));
        all.filter(|sample| sample.has(&[("outcome", outcome)]))
            .map(test_rig::metrics::Sample::u64)
            .sum()
    }

    /// The metrics of ports only.
    pub fn of_ports(&self) -> &BTreeMap<String, BTreeMap<String, u64>> {
        &self.ports
    }
}

/// Within six standard deviations of a number of independent events: exceeded once in 500 million.
pub fn assert_drawn(count: u64, mean: f64, what: &str) {
    let off = (count as f64 - mean).abs();
    assert!(off <= 6.0 * mean.sqrt() + 1.0, "{what}: {count}, not about {mean}");
}
