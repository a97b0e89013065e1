//! Names to places: what a scenario calls a node or a port, found in the net.

use std::collections::HashMap;

use crate::net::{Net, NodeId, PortId};
use ib_mad::PortNumber;
use ib_mad::node::NodeKind;
use site_config::near::{meant, quoted};

/// The names of a net.
#[derive(Debug)]
pub(super) struct Places<'a> {
    net: &'a Net,
    ids: HashMap<&'a str, NodeId>,
}

impl<'a> Places<'a> {
    pub(super) fn new(net: &'a Net) -> Places<'a> {
        Places { net, ids: net.node_ids().map(|id| (net.node(id).id.as_str(), id)).collect() }
    }

    /// A node by its id.
    pub(super) fn node(&self, text: &str) -> Result<NodeId, String> {
        self.ids.get(text).copied().ok_or_else(|| {
            let near = meant(text, self.net.nodes.iter().map(|node| node.id.as_str()));
            format!("no node {}{near}", quoted(text))
        })
    }

    /// A node and perhaps one of its ports: `leaf-1` or `leaf-1[7]`.
    fn place(&self, text: &str) -> Result<(NodeId, Option<PortId>), String> {
        // An id may have brackets of its own.
        if let Some(node) = self.ids.get(text) {
            return Ok((*node, None));
        }
        let Some((id, number)) = text.strip_suffix(']').and_then(|text| text.rsplit_once('['))
        else {
            return self.node(text).map(|node| (node, None));
        };
        let node = self.node(id)?;
        let Ok(number) = number.parse::<u64>() else {
            return Err(format!("{} is no port such as {id}[1]", quoted(text)));
        };
        let port = PortNumber::try_from(number).ok().and_then(|number| self.port_of(node, number));
        let count = self.net.node(node).port_count;
        let missing = || format!("{id} has ports 1 to {count}, and no {number}");
        port.ok_or_else(missing).map(|port| (node, Some(port)))
    }

    /// A port that there is: port 0 only of a switch.
    fn port_of(&self, node: NodeId, number: PortNumber) -> Option<PortId> {
        let zero = self.net.node(node).kind == NodeKind::Switch;
        (number > 0 || zero).then(|| self.net.port_of(node, number)).flatten()
    }

    /// A port: `leaf-1[7]`, or the id alone of a node that has but one.
    pub(super) fn port(&self, text: &str) -> Result<PortId, String> {
        let (node, port) = self.place(text)?;
        let mut plugs = self.net.plugs_of(node);
        match (port, plugs.next(), plugs.next()) {
            (Some(port), _, _) | (None, Some(port), None) => Ok(port),
            _ => {
                let of = self.net.node(node);
                Err(format!("say which port: {0}[1] to {0}[{1}]", of.id, of.port_count))
            }
        }
    }

    /// A host, and its port if it is named.
    pub(super) fn host(&self, text: &str) -> Result<(NodeId, Option<PortId>), String> {
        let (node, port) = self.place(text)?;
        let of = self.net.node(node);
        match of.kind {
            NodeKind::AggregationNode | NodeKind::Ca if of.is_aggregation_node() => {
                Err(format!("{} is a part of a switch, and no host", quoted(text)))
            }
            NodeKind::Ca | NodeKind::AggregationNode => Ok((node, port)),
            NodeKind::Switch => Err(format!("{} is a switch, and no host", quoted(text))),
            NodeKind::Router => Err(format!("{} is a router, and no host", quoted(text))),
        }
    }

    /// Where a subnet manager can sit: a host, or a switch's port 0.
    pub(super) fn manager(&self, text: &str) -> Result<(NodeId, Option<PortId>), String> {
        let (node, port) = self.place(text)?;
        if self.net.node(node).kind != NodeKind::Switch {
            return self.host(text);
        }
        match (self.net.port_of(node, 0), port) {
            (Some(zero), None) => Ok((node, Some(zero))),
            (Some(zero), Some(port)) if zero == port => Ok((node, Some(zero))),
            _ => Err(format!("{}: a switch is asked at its port 0", quoted(text))),
        }
    }
}

/// Whether two adapters are in one host: on one card, or with one host's name before the device's
/// in the description, as Linux writes it (`node1 mlx5_0`).
pub(super) fn same_host(net: &Net, one: NodeId, other: NodeId) -> bool {
    let (one, other) = (net.node(one), net.node(other));
    let name = host_name(&one.description);
    one.is_host()
        && other.is_host()
        && (one.guid == other.guid
            || (one.system_guid.0 != 0 && one.system_guid == other.system_guid)
            || (name.is_some() && name == host_name(&other.description)))
}

fn host_name(description: &str) -> Option<&str> {
    let (host, device) = description.split_once(' ')?;
    let is_device = !device.contains(' ') && device.ends_with(|last: char| last.is_ascii_digit());
    is_device.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::super::tests::net;
    use super::*;

    #[test]
    fn names_lead_to_places() {
        let net = net("{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2}}");
        let places = Places::new(&net);
        assert_eq!(net.label(places.port("leaf-0-1[3]").unwrap()), "leaf-0-1[3]");
        assert_eq!(net.label(places.port("host-3").unwrap()), "host-3[1]");
        assert!(places.host("host-3").unwrap().1.is_none());
        assert_eq!(places.manager("leaf-0-1").unwrap(), places.manager("leaf-0-1[0]").unwrap());
        for (error, says) in [
            (places.port("leaf-0-1").err(), "say which port: leaf-0-1[1] to leaf-0-1[4]"),
            (places.port("leaf-0-1[5]").err(), "leaf-0-1 has ports 1 to 4, and no 5"),
            (places.port("leaf-0-1[260]").err(), "and no 260"),
            (places.port("host-1[0]").err(), "host-1 has ports 1 to 1, and no 0"),
            (places.port("leaf-0-1[-1]").err(), "\"leaf-0-1[-1]\" is no port such as leaf-0-1[1]"),
            (places.port("leaf-0-1[]").err(), "is no port such as"),
            (places.port("leaf-1[1]").err(), "no node \"leaf-1\" (did you mean \"leaf-0-1\"?)"),
            (places.port("[").err(), "no node \"[\""),
            (places.port("]").err(), "no node \"]\""),
            (places.host("leaf-0-1").err(), "is a switch, and no host"),
            (places.manager("leaf-0-1[1]").err(), "a switch is asked at its port 0"),
        ] {
            let error = error.unwrap();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_hosts_adapters_know_each_other() {
        let mut net = net("{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2, planes: 2}}");
        let of = |net: &Net, one: &str, other: &str| {
            let places = Places::new(net);
            same_host(net, places.node(one).unwrap(), places.node(other).unwrap())
        };
        assert!(
            of(&net, "host-1-mlx5_0", "host-1-mlx5_1")
                && of(&net, "host-1-mlx5_0", "host-1-mlx5_0")
        );
        assert!(!of(&net, "host-1-mlx5_0", "host-2-mlx5_0"));
        assert!(!of(&net, "p0-leaf-0-1", "p0-leaf-0-1"));
        // As many files have it: the maker's words and no host's.
        for node in &mut net.nodes {
            node.description = "MT4129 ConnectX7 Mellanox Technologies".into();
        }
        assert!(!of(&net, "host-1-mlx5_0", "host-1-mlx5_1"));
    }
}
