//! Fat trees of two and three levels.

use super::{MOST_HOSTS, Maker, Model, Net, NodeId, RADIX, ShapeError, in_range};

/// A fat tree.
///
/// Of two levels: leaves with `down` hosts and `up` uplinks, and as many spines as the uplinks
/// fill. Nodes are called `host-N`, `leaf-0-N` and `spine-N`.
///
/// Of three levels: pods of half a radix of leaves, each with one uplink to each of the pod's `up`
/// aggregation switches; aggregation switch J of every pod goes up to core group J. Nodes are
/// called `host-N`, `leaf-POD-N`, `agg-POD-J` and `core-J-N`.
#[derive(Clone, Debug, PartialEq)]
pub struct FatTree {
    /// Levels of switches: 2 or 3.
    pub levels: u8,
    /// Ports of each switch.
    pub radix: u8,
    /// Hosts.
    pub hosts: u32,
    /// Hosts at each leaf; half the radix if left out.
    pub down: Option<u8>,
    /// Uplinks of each leaf; half the radix if left out.
    pub up: Option<u8>,
    /// Ports of each adapter, each at another leaf: a host's leaves are next to each other.
    pub ports: u8,
    /// Fabrics that share nothing but the hosts, which have an adapter in each. With more than one,
    /// switches are called `p0-leaf-0-1` and adapters `host-3-mlx5_0`.
    pub planes: u8,
    /// Whether each switch has an aggregation node (SHARP) on a port of its own behind the others,
    /// as port 41 of a Quantum and port 65 of a Quantum-2 are.
    pub aggregation_nodes: bool,
    /// The switches.
    pub switch: &'static Model,
    /// The adapters.
    pub hca: &'static Model,
}

impl FatTree {
    /// The same tree with another number of hosts. Of two levels it keeps what each leaf has, and
    /// its switches get as many ports as it takes to join every leaf with every spine.
    #[must_use]
    pub fn with_hosts(self, hosts: u32) -> FatTree {
        if self.levels != 2 {
            return FatTree { hosts, ..self };
        }
        let (down, up) = (self.leaf_down(), self.leaf_up());
        let leaves = u64::from(hosts).div_ceil(u64::from(down).max(1)) * u64::from(self.ports);
        let needed = leaves.max(u64::from(down) + u64::from(up)).min(RADIX.1) as u8;
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
        let Self { radix, hosts, ports, planes, .. } = *self;
        let (down, up) = (self.leaf_down(), self.leaf_up());
        in_range("levels", self.levels, (2, 3))?;
        in_range("radix", radix, RADIX)?;
        in_range("hosts", hosts, (1, MOST_HOSTS))?;
        in_range("down", down, (1, RADIX.1))?;
        in_range("up", up, (1, RADIX.1))?;
        in_range("ports", ports, (1, 8))?;
        in_range("planes", planes, (1, 16))?;
        let needed = u64::from(down) + u64::from(up);
        if needed > u64::from(radix) {
            return Err(ShapeError::Radix { what: "a leaf with its down and up", needed, radix });
        }
        let mut maker = Maker::new(self.switch, self.hca)?;
        let mut adapters = vec![Vec::new(); usize::from(planes)];
        for host in 0..hosts {
            for plane in 0..planes {
                adapters[usize::from(plane)].push(maker.host(host, plane, planes, ports)?);
            }
        }
        for (plane, adapters) in adapters.iter().enumerate() {
            let prefix = if planes == 1 { String::new() } else { format!("p{plane}-") };
            let aggregation_nodes = self.aggregation_nodes;
            let plane = Plane { prefix, radix, down, up, adapters, ports, aggregation_nodes };
            if self.levels == 2 {
                plane.two_levels(&mut maker)?;
            } else {
                plane.three_levels(&mut maker)?;
            }
        }
        Ok(maker.builder.finish())
    }
}

/// One fabric of the tree, with all parameters settled.
struct Plane<'a> {
    prefix: String,
    radix: u8,
    down: u8,
    up: u8,
    adapters: &'a [NodeId],
    ports: u8,
    aggregation_nodes: bool,
}

impl Plane<'_> {
    fn two_levels(&self, maker: &mut Maker) -> Result<(), ShapeError> {
        let uplinks = usize::from(self.up);
        let leaf_count = self.leaf_count();
        let spine_count = (leaf_count * uplinks).div_ceil(self.radix.into());
        self.must_meet("leaves", uplinks, spine_count)?;
        let leaves = self.switches(maker, leaf_count, |l| format!("leaf-0-{l}"))?;
        let spines = self.switches(maker, spine_count, |s| format!("spine-{s}"))?;
        self.plug_in_hosts(maker, &leaves)?;
        // Uplinks that do not divide evenly go on where the leaf before ended, to fill the spines
        // evenly.
        let even = uplinks % spine_count == 0;
        for (l, leaf) in leaves.iter().enumerate() {
            maker.start_at(*leaf, self.down + 1);
            for u in 0..uplinks {
                let spine = if even { u } else { l * uplinks + u } % spine_count;
                maker.link(*leaf, spines[spine])?;
            }
        }
        Ok(())
    }

    fn three_levels(&self, maker: &mut Maker) -> Result<(), ShapeError> {
        let groups = usize::from(self.up);
        let leaf_count = self.leaf_count();
        let pod_leaves = usize::from(self.radix / 2);
        let agg_uplinks = usize::from(self.radix) - pod_leaves;
        let pods = leaf_count.div_ceil(pod_leaves);
        let cores = (pods * agg_uplinks).div_ceil(self.radix.into()); // in each group
        self.must_meet("aggregation switches", agg_uplinks, cores)?;
        let leaves = self.switches(maker, leaf_count, |l| {
            format!("leaf-{}-{}", l / pod_leaves, l % pod_leaves)
        })?;
        let aggs =
            self.switches(maker, pods * groups, |a| format!("agg-{}-{}", a / groups, a % groups))?;
        let cores_of =
            self.switches(maker, groups * cores, |c| format!("core-{}-{}", c / cores, c % cores))?;
        self.plug_in_hosts(maker, &leaves)?;
        for (l, leaf) in leaves.iter().enumerate() {
            maker.start_at(*leaf, self.down + 1);
            for j in 0..groups {
                maker.link(*leaf, aggs[l / pod_leaves * groups + j])?;
            }
        }
        for (a, agg) in aggs.iter().enumerate() {
            maker.start_at(*agg, self.radix / 2 + 1);
            for u in 0..agg_uplinks {
                let core = (a / groups * agg_uplinks + u) % cores;
                maker.link(*agg, cores_of[a % groups * cores + core])?;
            }
        }
        Ok(())
    }

    /// As many leaves as an adapter has ports serve the same hosts.
    fn leaf_count(&self) -> usize {
        self.adapters.len().div_ceil(self.down.into()) * usize::from(self.ports)
    }

    fn switches(
        &self,
        maker: &mut Maker,
        count: usize,
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<NodeId>, ShapeError> {
        let add = |n| {
            let id = format!("{}{}", self.prefix, name(n));
            if self.aggregation_nodes {
                maker.switch_with_aggregation_node(&id, self.radix)
            } else {
                maker.switch(id, self.radix)
            }
        };
        (0..count).map(add).collect()
    }

    fn plug_in_hosts(&self, maker: &mut Maker, leaves: &[NodeId]) -> Result<(), ShapeError> {
        let ports = usize::from(self.ports);
        for (h, adapter) in self.adapters.iter().enumerate() {
            let first = h / usize::from(self.down) * ports;
            for leaf in &leaves[first..first + ports] {
                maker.link(*adapter, *leaf)?;
            }
        }
        Ok(())
    }

    /// Uplinks go to neighbours in the ring of the switches above. More than half of these each, and
    /// any two switches meet in one of them.
    fn must_meet(
        &self,
        what: &'static str,
        uplinks: usize,
        above: usize,
    ) -> Result<(), ShapeError> {
        if 2 * uplinks > above {
            return Ok(());
        }
        let hosts = self.adapters.len() as u32;
        Err(ShapeError::Apart { hosts, what, uplinks: uplinks as u64, above: above as u64 })
    }
}
