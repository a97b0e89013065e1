//! Dragonfly+: groups of leaves and spines, and cables between the spines of each two groups.

use serde::Deserialize;

use super::builder::{MOST_HOSTS, RADIX, ShapeBuilder, ShapeError, in_radix, in_range};
use crate::net::topology::{Net, NodeId};

/// A Dragonfly+. Nodes are called `host-N`, `g2-leaf-1` and `g2-spine-0`.
///
/// Within a group each leaf has a cable to each spine. Each two groups have equally many cables between their spines.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "docs/dev/scenarios.md describes the keys")]
pub struct DragonflyPlus {
    pub groups: u16,
    pub leaves: u8,
    pub spines: u8,
    pub hosts_per_leaf: u8,
    pub global: u8,
    pub radix: u8,
    pub switch: String,
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
    pub(super) fn hosts(&self) -> u32 {
        let leaves = u32::from(self.groups) * u32::from(self.leaves);
        leaves * u32::from(self.hosts_per_leaf) // at most 2^16 * 2^8 * 2^8 - 1
    }

    /// Builds it.
    pub fn build(&self) -> Result<Net, ShapeError> {
        let mut builder = ShapeBuilder::new(&self.switch, &self.hca)?;
        let per_pair = self.check()?;
        let hosts = (0..self.hosts()).map(|host| builder.host(host, 0, 1, 1));
        let mut hosts = hosts.collect::<Result<Vec<_>, _>>()?.into_iter();
        let mut spines: Vec<Vec<NodeId>> = Vec::new();
        for group in 0..self.groups {
            let mut switches = |what: &str, count: u8| -> Result<Vec<NodeId>, ShapeError> {
                let id = |n| format!("g{group}-{what}-{n}");
                (0..count).map(|n| builder.switch(&id(n), self.radix, false)).collect()
            };
            let (leaves, group_spines) =
                (switches("leaf", self.leaves)?, switches("spine", self.spines)?);
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
        Ok(builder.net.net)
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
}
