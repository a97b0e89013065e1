//! How nodes are named: by the site's node-name-map, else by their descriptions, else by their GUIDs; and made unique.

use ib_mad::NodeIdentity;
use ib_mad::ids::Guid;

use super::hosts::HostRegex;
use super::node_name_map::NodeNameMap;
use super::rails::RailChoice;
use super::topology::Node;
use super::unique_names::{NamedNode, unique_names};

/// How nodes and their hosts are named.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// The site's names, which take precedence over the descriptions of devices.
    pub map: NodeNameMap,
    /// Which part of a name is the host's.
    pub hosts: HostRegex,
    /// Which devices of a host are its rails.
    pub rails: RailChoice,
}

/// The names of a node.
pub(super) struct Names {
    /// Its own, which others may share.
    pub node: String,
    /// That of its host.
    pub host: Option<String>,
    /// The rail that it is if its host has another one.
    pub rail: Option<String>,
}

impl From<NodeNameMap> for Naming {
    fn from(map: NodeNameMap) -> Self {
        Naming { map, ..Naming::default() }
    }
}

impl Naming {
    /// The names of a node.
    pub(super) fn names(&self, identity: &NodeIdentity) -> Names {
        let name = self.map.get(identity.guid).unwrap_or(&identity.description);
        let place = self.hosts.place(identity.kind, name);
        let rail = place.and_then(|place| self.rails.rail(place.device?));
        Names {
            node: if name.is_empty() { identity.guid.to_string() } else { name.to_owned() },
            host: place.map(|place| place.host.to_owned()),
            rail: rail.map(str::to_owned),
        }
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
