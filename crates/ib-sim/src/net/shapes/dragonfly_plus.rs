//! Dragonfly+: groups of leaves and spines, and cables between the spines of each two groups.

use serde::Deserialize;

use super::{
    MOST_HOSTS, Models, Net, NodeId, RADIX, ShapeBuilder, ShapeError, in_radix, in_range, models,
};

/// A Dragonfly+. Nodes are called `host-N`, `g2-leaf-1` and `g2-spine-0`.
///
/// Within a group each leaf has a cable to each spine. Each two groups have equally many cables
/// between their spines.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DragonflyPlus {
    /// Number of groups.
    pub groups: u16,
    /// Leaves of each group.
    pub leaves: u8,
    /// Spines of each group.
    pub spines: u8,
    /// Hosts at each leaf.
    pub hosts_per_leaf: u8,
    /// Cables of each spine to other groups.
    pub global: u8,
    /// Ports of each switch.
    pub radix: u8,
    /// The model of the switches.
    pub switch: String,
    /// The model of the adapters.
    pub hca: String,
}

impl Default for DragonflyPlus {
    fn default() -> Self {
        DragonflyPlus {
            groups: 3,
            leaves: 2,
            spines: 2,
            hosts_per_leaf: 4,
            global: 1,
            radix: 16,
            switch: "quantum-2".into(),
            hca: "connectx-7".into(),
        }
    }
}

impl DragonflyPlus {
    pub(crate) fn models(&self) -> Result<Models, ShapeError> {
        models(&self.switch, &self.hca)
    }

    pub(super) fn hosts(&self) -> u32 {
        let leaves = u32::from(self.groups) * u32::from(self.leaves);
        leaves * u32::from(self.hosts_per_leaf) // at most 2^16 * 2^8 * 2^8 - 1
    }

    /// Builds it.
    pub fn build(&self) -> Result<Net, ShapeError> {
        let per_pair = self.check()?;
        let mut builder = ShapeBuilder::new(self.models()?)?;
        let hosts = (0..self.hosts()).map(|host| builder.host(host, 0, 1, 1));
        let mut hosts = hosts.collect::<Result<Vec<_>, _>>()?.into_iter();
        let mut spines: Vec<Vec<NodeId>> = Vec::new();
        for group in 0..self.groups {
            let leaves = self.switches(&mut builder, group, "leaf", self.leaves)?;
            let group_spines = self.switches(&mut builder, group, "spine", self.spines)?;
            for leaf in leaves {
                for host in hosts.by_ref().take(self.hosts_per_leaf.into()) {
                    builder.connect(host, leaf)?;
                }
                for &spine in &group_spines {
                    builder.connect(leaf, spine)?;
                }
            }
            spines.push(group_spines);
        }
        // The order of a group's global cables: first those to the next group, last those to the
        // one before. They go to its spines in turn.
        let groups = usize::from(self.groups);
        let end = |group: usize, distance: usize, cable: usize| {
            let end = (distance - 1) * per_pair + cable;
            spines[group][end % spines[group].len()]
        };
        for a in 0..groups {
            for b in a + 1..groups {
                for cable in 0..per_pair {
                    builder.connect(end(a, b - a, cable), end(b, groups - (b - a), cable))?;
                }
            }
        }
        Ok(builder.net.finish())
    }

    /// The number of cables between each two groups.
    fn check(&self) -> Result<usize, ShapeError> {
        let Self { groups, leaves, spines, hosts_per_leaf, global, radix, .. } = *self;
        in_range("radix", radix, RADIX)?;
        in_range("groups", groups, (2, u64::from(u16::MAX)))?;
        in_range("leaves", leaves, (1, RADIX.1))?;
        in_range("spines", spines, (1, RADIX.1))?;
        in_range("hosts-per-leaf", hosts_per_leaf, (1, RADIX.1))?;
        in_range("global", global, (1, RADIX.1))?;
        in_range("groups * leaves * hosts-per-leaf", self.hosts(), (1, MOST_HOSTS))?;
        let of_leaf = u64::from(hosts_per_leaf) + u64::from(spines);
        in_radix("a leaf (hosts + spines)", of_leaf, radix)?;
        let of_spine = u64::from(leaves) + u64::from(global);
        in_radix("a spine (leaves + global cables)", of_spine, radix)?;
        let (ends, others) = (u64::from(spines) * u64::from(global), u64::from(groups) - 1);
        if ends % others != 0 {
            let problem = format!(
                "{ends} global cables per group cannot be spread evenly over {others} other groups: \
                 use a multiple of {others}"
            );
            return Err(ShapeError::new("", problem));
        }
        Ok((ends / others) as usize)
    }

    fn switches(
        &self,
        builder: &mut ShapeBuilder,
        group: u16,
        what: &str,
        count: u8,
    ) -> Result<Vec<NodeId>, ShapeError> {
        (0..count).map(|n| builder.switch(format!("g{group}-{what}-{n}"), self.radix)).collect()
    }
}
