//! How nodes are named: by the site's node-name-map, else by their descriptions, else by their GUIDs; and made unique.

use ib_mad::NodeIdentity;
use ib_mad::ids::Guid;

use super::hosts::HostRegex;
use super::node_name_map::NodeNameMap;
use super::topology::Node;
use super::unique_names::{NamedNode, unique_names};

/// How nodes and their hosts are named.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// The site's names, which take precedence over the descriptions of devices.
    pub map: NodeNameMap,
    /// Which part of a name is the host's.
    pub hosts: HostRegex,
}

impl From<NodeNameMap> for Naming {
    fn from(map: NodeNameMap) -> Self {
        Naming { map, ..Naming::default() }
    }
}

impl Naming {
    /// The name of a node, which others may share, and that of its host.
    pub(super) fn name(&self, identity: &NodeIdentity) -> (String, Option<String>) {
        let name = self.map.get(identity.guid).unwrap_or(&identity.description);
        let host = self.hosts.host(identity.kind, name);
        (if name.is_empty() { identity.guid.to_string() } else { name.to_owned() }, host)
    }
}

/// Appends digits to the names that nodes share; `before` returns a node's previous name.
pub(super) fn make_unique<'a>(nodes: &mut [Node], before: impl Fn(Guid) -> Option<&'a str>) {
    let shared = nodes.iter().map(|node| NamedNode {
        guid: node.identity.guid,
        name: &node.name,
        is_present: node.present(),
    });
    let unique = unique_names(&shared.collect::<Vec<_>>(), before);
    nodes.iter_mut().zip(unique).for_each(|(node, name)| node.name = name);
}
