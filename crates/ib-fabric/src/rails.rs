//! Rails: the channel adapters of a host that has several.
//!
//! A rail is called as the device is in the adapter's name: `mlx5_3`. The name is all that is used. In a rail-optimized
//! fabric the leaf says the same, but only until a cable is at a wrong leaf; the place of an adapter among those that
//! were found changes when one of them is missing. Hosts of one model have the same devices at the same GPUs, and the
//! list of devices that are rails is the one that NCCL is given (`NCCL_IB_HCA`).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::str::FromStr;

use super::topology::Node;

/// Which devices of a host are its rails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RailChoice {
    /// All of them.
    #[default]
    All,
    /// None: hosts have no rails.
    None,
    /// Those with these names. Others carry storage or management traffic.
    Devices(BTreeSet<String>),
}

impl FromStr for RailChoice {
    /// What is wrong with the text, in one line.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => return Ok(RailChoice::All),
            "none" => return Ok(RailChoice::None),
            _ => {}
        }
        let mut devices = BTreeSet::new();
        for device in text.split(',').map(str::trim) {
            if device.is_empty() || !devices.insert(device.to_owned()) {
                let what = if device.is_empty() {
                    "an empty name".into()
                } else {
                    format!("{device} twice")
                };
                return Err(format!("{text:?} has {what}; write for example mlx5_0,mlx5_3"));
            }
        }
        if devices.len() < 2 {
            return Err(format!(
                "{text:?} is neither \"all\", \"none\" nor a list of devices such as mlx5_0,mlx5_3"
            ));
        }
        Ok(RailChoice::Devices(devices))
    }
}

impl RailChoice {
    /// The rail that a device is.
    pub(super) fn rail<'a>(&self, device: &'a str) -> Option<&'a str> {
        let is_one = match self {
            RailChoice::All => true,
            RailChoice::None => false,
            RailChoice::Devices(devices) => devices.contains(device),
        };
        is_one.then_some(device)
    }
}

/// The host of a node and the rail that it is there.
fn of_host(node: &Node) -> Option<(&str, &str)> {
    Some((node.host.as_deref()?, node.rail.as_deref()?))
}

/// What is known of the adapters with a host's name.
#[derive(Default)]
struct HostRails<'a> {
    all: HashSet<&'a str>,
    /// Those of present nodes.
    present: HashSet<&'a str>,
    /// Two present nodes are the same rail: several machines have this name, such as `localhost`.
    is_ambiguous: bool,
}

impl HostRails<'_> {
    fn has_rails(&self) -> bool {
        self.all.len() > 1 && !self.is_ambiguous
    }
}

/// Removes the rails of hosts that have only one, and of machines that share a name.
pub(super) fn keep_siblings(nodes: &mut [Node]) {
    let mut hosts: HashMap<&str, HostRails<'_>> = HashMap::new();
    for node in nodes.iter() {
        let Some((host, rail)) = of_host(node) else { continue };
        let known = hosts.entry(host).or_default();
        known.all.insert(rail);
        // A card that replaced another is the same rail.
        known.is_ambiguous |= node.present() && !known.present.insert(rail);
    }
    let has_siblings = |node| of_host(node).is_some_and(|(host, _)| hosts[host].has_rails());
    let kept: Vec<bool> = nodes.iter().map(has_siblings).collect();
    for (node, _) in nodes.iter_mut().zip(kept).filter(|(_, is_kept)| !is_kept) {
        node.rail = None;
    }
}

#[cfg(test)]
mod tests {
    use ib_mad::Moment;
    use ib_mad::node::NodeKind;

    use super::*;
    use crate::Fabric;
    use crate::assembly::DiscoveredFabric;
    use crate::names::Naming;
    use crate::testing::found;

    fn assembled(rails: &str, descriptions: &[&str], before: Option<&Fabric>) -> Fabric {
        let nodes = (1..).zip(descriptions).map(|(guid, description)| {
            let mut node = found(guid, NodeKind::Ca, 1);
            node.identity.description = (*description).into();
            node
        });
        let all = DiscoveredFabric { nodes: nodes.collect(), ..DiscoveredFabric::default() };
        let naming = Naming { rails: rails.parse().unwrap(), ..Naming::default() };
        Fabric::assemble(all, &naming, Moment(9), before.map(|before| (before, Moment(0))))
    }

    fn rails(fabric: &Fabric) -> Vec<Option<&str>> {
        fabric.nodes.iter().map(|node| node.rail.as_deref()).collect()
    }

    #[test]
    fn devices_of_a_host_with_several_are_its_rails() {
        let names = ["gpu1 mlx5_0", "gpu1 mlx5_3", "gpu1 mlx5_8", "node1 mlx5_0", "gpu2", "gpu2"];
        // A host with one adapter has no rail, and one whose adapters all have its name neither.
        let all = assembled("all", &names, None);
        let [a, b, c] = [Some("mlx5_0"), Some("mlx5_3"), Some("mlx5_8")];
        assert_eq!(rails(&all), [a, b, c, None, None, None]);
        let listed = assembled("mlx5_0, mlx5_3,mlx5_4", &names, None);
        assert_eq!(rails(&listed), [a, b, None, None, None, None], "mlx5_8 is for storage");
        assert_eq!(rails(&assembled("none", &names, None)), [None; 6]);
        assert_eq!(rails(&assembled("mlx5_0,mlx5_9", &names, None)), [None; 6], "one is no rail");
    }

    #[test]
    fn rail_stays_while_a_sibling_is_missing() {
        let all = assembled("all", &["gpu1 mlx5_0", "gpu1 mlx5_1"], None);
        let one = assembled("all", &["gpu1 mlx5_0"], Some(&all));
        assert_eq!(rails(&one), [Some("mlx5_0"), Some("mlx5_1")]);
        // A card that replaced another is the same rail, and a host is not one of several for that.
        let both = assembled("all", &["gpu1 mlx5_0", "gpu1 mlx5_0"], None);
        assert_eq!(rails(&both), [None, None]);
    }

    #[test]
    fn machines_that_share_a_name_are_not_one_host() {
        let names =
            ["localhost mlx5_0", "localhost mlx5_1", "localhost mlx5_0", "localhost mlx5_1"];
        let shared = assembled("all", &names, None);
        assert_eq!(rails(&shared), [None; 4]);
        let own = assembled("all", &["gpu1 mlx5_0", "gpu1 mlx5_1", names[0], names[0]], None);
        assert_eq!(rails(&own), [Some("mlx5_0"), Some("mlx5_1"), None, None]);
    }

    #[test]
    fn rails_stay_when_a_card_is_replaced() {
        let node = |guid: u64, description: &str| {
            let mut node = found(guid, NodeKind::Ca, 1);
            node.identity.description = description.into();
            node
        };
        let assemble = |nodes, before: Option<&Fabric>| {
            let all = DiscoveredFabric { nodes, ..DiscoveredFabric::default() };
            let before = before.map(|before| (before, Moment(0)));
            Fabric::assemble(all, &Naming::default(), Moment(9), before)
        };
        let first = assemble(vec![node(1, "gpu1 mlx5_0"), node(2, "gpu1 mlx5_1")], None);
        let replaced = vec![node(3, "gpu1 mlx5_0"), node(2, "gpu1 mlx5_1")];
        let second = assemble(replaced, Some(&first));
        let expected = [Some("mlx5_0"), Some("mlx5_1"), Some("mlx5_0")];
        assert_eq!(rails(&second), expected, "the first card is absent");
    }

    #[test]
    fn invalid_choice_has_a_one_line_error() {
        for (text, says) in [
            ("", "an empty name"),
            ("mlx5_0,,mlx5_1", "an empty name"),
            ("mlx5_0,mlx5_0", "mlx5_0 twice"),
            ("auto", "neither \"all\", \"none\""),
        ] {
            let error = text.parse::<RailChoice>().unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }
}
