//! Fat trees of two and three levels.

use serde::Deserialize;

use super::builder::{MOST_HOSTS, RADIX, ShapeBuilder, ShapeError, in_radix, in_range};
use crate::net::topology::{Net, NodeId};

/// The adapters of a rail host: one for each of eight GPUs.
const RAILS: u32 = 8;
/// The most rail hosts: then they alone need a quarter of the LIDs.
const MOST_RAIL_HOSTS: u64 = 1536;
/// The ports of the largest switches (Quantum-2, in 32 cages).
const LARGEST_SWITCH: u8 = 64;

/// A fat tree.
///
/// With two levels: leaves with `down` hosts and `up` uplinks, and as many spines as the uplinks
/// fill. Nodes are called `host-N`, `leaf-0-N` and `spine-N`.
///
/// With three levels: pods of half a radix of leaves, each with one uplink to each of the pod's
/// `up` aggregation switches; aggregation switch J of every pod has uplinks to core group J. Nodes
/// are called `host-N`, `leaf-POD-N`, `agg-POD-J` and `core-J-N`.
///
/// With more than one plane switches are called `p0-leaf-0-1` and adapters `host-3-mlx5_0`.
///
/// Rail hosts have eight adapters, `gpu-0-mlx5_0` to `gpu-0-mlx5_7`, in turn at the leaves, behind the uplinks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "docs/dev/scenarios.md describes the keys")]
pub struct FatTree {
    pub levels: u8,
    pub hosts: u32,
    pub radix: u8,
    pub down: Option<u8>,
    pub up: Option<u8>,
    /// Ports of each adapter, each at another leaf. A host's leaves are adjacent.
    pub ports: u8,
    pub planes: u8,
    /// Additional hosts with eight adapters.
    pub rail_hosts: u32,
    /// At an additional port of each switch, such as port 41 of a Quantum and 65 of a Quantum-2.
    pub aggregation_nodes: bool,
    pub switch: String,
    pub hca: String,
}

impl Default for FatTree {
    fn default() -> Self {
        FatTree {
            levels: 2,
            hosts: 24,
            radix: 16,
            down: None,
            up: None,
            ports: 1,
            planes: 1,
            rail_hosts: 0,
            aggregation_nodes: false,
            switch: "quantum-2".into(),
            hca: "connectx-7".into(),
        }
    }
}

impl FatTree {
    /// The same tree with another number of hosts. With two levels the leaves keep their number of hosts and
    /// uplinks, and switches get as many ports as needed to connect every leaf with every spine. If no switch has that
    /// many, the tree gets a third level.
    #[must_use]
    pub fn with_hosts(self, hosts: u32) -> FatTree {
        if self.levels != 2 {
            return FatTree { hosts, ..self };
        }
        let (down, up) = (self.leaf_down(), self.leaf_up());
        let leaves = u64::from(hosts).div_ceil(u64::from(down).max(1)) * u64::from(self.ports);
        if leaves > RADIX.1 {
            let radix = self.radix.max(LARGEST_SWITCH);
            return FatTree { levels: 3, hosts, radix, down: Some(down), up: Some(up), ..self };
        }
        let rails = u64::from(self.rail_hosts.saturating_mul(RAILS)).div_ceil(leaves.max(1));
        let leaf_ports = u64::from(down) + u64::from(up) + rails;
        let needed = leaves.max(leaf_ports).min(RADIX.1) as u8;
        let radix = self.radix.max(needed);
        FatTree { hosts, radix, down: Some(down), up: Some(up), ..self }
    }

    fn leaf_down(&self) -> u8 {
        self.down.unwrap_or(self.radix / 2)
    }

    fn leaf_up(&self) -> u8 {
        self.up.unwrap_or(self.radix / 2)
    }

    /// Builds it.
    pub fn build(&self) -> Result<Net, ShapeError> {
        let Self { radix, hosts, ports, planes, rail_hosts, .. } = *self;
        let (down, up) = (self.leaf_down(), self.leaf_up());
        let mut builder = ShapeBuilder::new(&self.switch, &self.hca)?;
        in_range("levels", self.levels, (2, 3))?;
        in_range("radix", radix, RADIX)?;
        in_range("hosts", hosts, (1, MOST_HOSTS))?;
        in_range("down", down, (1, RADIX.1))?;
        in_range("up", up, (1, RADIX.1))?;
        in_range("ports", ports, (1, 8))?;
        in_range("planes", planes, (1, 16))?;
        in_range("rail-hosts", rail_hosts, (0, MOST_RAIL_HOSTS))?;
        in_radix("a leaf (down + up)", u64::from(down) + u64::from(up), radix)?;
        if rail_hosts > 0 && planes > 1 {
            return Err(ShapeError::new("rail-hosts", "rail-hosts needs planes: 1".into()));
        }
        let mut adapters = vec![Vec::new(); usize::from(planes)];
        for host in 0..hosts {
            for plane in 0..planes {
                adapters[usize::from(plane)].push(builder.host(host, plane, planes, ports)?);
            }
        }
        let rails = (0..rail_hosts).flat_map(|host| (0..RAILS).map(move |rail| (host, rail)));
        let rails = rails.map(|(host, rail)| builder.rail(host, rail));
        let rails = rails.collect::<Result<Vec<_>, _>>()?;
        for (plane, adapters) in adapters.iter().enumerate() {
            let prefix = if planes == 1 { String::new() } else { format!("p{plane}-") };
            let builder = &mut builder;
            let mut plane = Plane { tree: self, prefix, adapters, rails: &rails, builder };
            let built = if self.levels == 2 { plane.two_levels() } else { plane.three_levels() };
            built?;
        }
        Ok(builder.net.net)
    }
}

/// One fabric of the tree, with its adapters.
struct Plane<'a> {
    tree: &'a FatTree,
    prefix: String,
    adapters: &'a [NodeId],
    rails: &'a [NodeId],
    builder: &'a mut ShapeBuilder,
}

impl Plane<'_> {
    fn two_levels(&mut self) -> Result<(), ShapeError> {
        let uplinks = usize::from(self.tree.leaf_up());
        let leaf_count = self.leaf_count();
        let spine_count = (leaf_count * uplinks).div_ceil(self.tree.radix.into());
        self.check_paths("leaves", uplinks, spine_count)?;
        let leaves = self.switches(leaf_count, |l| format!("leaf-0-{l}"))?;
        let spines = self.switches(spine_count, |s| format!("spine-{s}"))?;
        self.connect_hosts(&leaves)?;
        // Uplinks that do not divide evenly continue after those of the leaf before, to fill the spines evenly.
        let even = uplinks % spine_count == 0;
        for (l, leaf) in leaves.iter().enumerate() {
            self.builder.start_at(*leaf, self.tree.leaf_down() + 1);
            for u in 0..uplinks {
                let spine = if even { u } else { l * uplinks + u } % spine_count;
                self.builder.connect(*leaf, spines[spine])?;
            }
        }
        self.connect_rails(&leaves)
    }

    fn three_levels(&mut self) -> Result<(), ShapeError> {
        let groups = usize::from(self.tree.leaf_up());
        let leaf_count = self.leaf_count();
        let pod_leaves = usize::from(self.tree.radix / 2);
        let agg_uplinks = usize::from(self.tree.radix) - pod_leaves;
        let pods = leaf_count.div_ceil(pod_leaves);
        let cores = (pods * agg_uplinks).div_ceil(self.tree.radix.into()); // in each group
        self.check_paths("aggregation switches", agg_uplinks, cores)?;
        let name = |what: &'static str, size: usize| {
            move |n: usize| format!("{what}-{}-{}", n / size, n % size)
        };
        let leaves = self.switches(leaf_count, name("leaf", pod_leaves))?;
        let aggs = self.switches(pods * groups, name("agg", groups))?;
        let cores_of = self.switches(groups * cores, name("core", cores))?;
        self.connect_hosts(&leaves)?;
        for (l, leaf) in leaves.iter().enumerate() {
            self.builder.start_at(*leaf, self.tree.leaf_down() + 1);
            for j in 0..groups {
                self.builder.connect(*leaf, aggs[l / pod_leaves * groups + j])?;
            }
        }
        for (a, agg) in aggs.iter().enumerate() {
            self.builder.start_at(*agg, self.tree.radix / 2 + 1);
            for u in 0..agg_uplinks {
                let core = (a / groups * agg_uplinks + u) % cores;
                self.builder.connect(*agg, cores_of[a % groups * cores + core])?;
            }
        }
        self.connect_rails(&leaves)
    }

    /// The same hosts are at as many leaves as an adapter has ports.
    fn leaf_count(&self) -> usize {
        self.adapters.len().div_ceil(self.tree.leaf_down().into()) * usize::from(self.tree.ports)
    }

    fn switches(
        &mut self,
        count: usize,
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<NodeId>, ShapeError> {
        let FatTree { radix, aggregation_nodes, .. } = *self.tree;
        let id = |n| format!("{}{}", self.prefix, name(n));
        (0..count).map(|n| self.builder.switch(&id(n), radix, aggregation_nodes)).collect()
    }

    fn connect_hosts(&mut self, leaves: &[NodeId]) -> Result<(), ShapeError> {
        let ports = usize::from(self.tree.ports);
        for (h, adapter) in self.adapters.iter().enumerate() {
            let first = h / usize::from(self.tree.leaf_down()) * ports;
            for leaf in &leaves[first..first + ports] {
                self.builder.connect(*adapter, *leaf)?;
            }
        }
        Ok(())
    }

    /// At the ports behind the uplinks. Neighboring rails are at different leaves, if there are as many.
    fn connect_rails(&mut self, leaves: &[NodeId]) -> Result<(), ShapeError> {
        let (down, up) = (self.tree.leaf_down(), self.tree.leaf_up());
        let ports =
            u64::from(down) + u64::from(up) + self.rails.len().div_ceil(leaves.len()) as u64;
        in_radix("a leaf (down + up + rails)", ports, self.tree.radix)?;
        for (rail, leaf) in self.rails.iter().zip(leaves.iter().cycle()) {
            self.builder.connect(*rail, *leaf)?;
        }
        Ok(())
    }

    /// Checks that any two switches have a switch above in common, and so a path up and then down. Uplinks
    /// go to neighbors in the ring of the switches above, so each has to reach more than half of them.
    fn check_paths(&self, what: &str, uplinks: usize, above: usize) -> Result<(), ShapeError> {
        if 2 * uplinks > above {
            return Ok(());
        }
        let remedy = if self.tree.levels == 2 {
            "levels: 3, more uplinks (up)"
        } else {
            "more hosts per leaf (down)"
        };
        let problem = format!(
            "{} hosts are too many: with {uplinks} uplinks to {above} switches, two {what} may have \
             no common switch above; use {remedy} or a larger radix",
            self.adapters.len()
        );
        Err(ShapeError { key: "hosts", ..problem.into() })
    }
}
