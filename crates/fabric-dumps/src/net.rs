//! A dump as ibnetdiscover would have printed the fabric: what simulators read.

use std::collections::HashMap;
use std::fmt::Write;

use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortKey};

use crate::dump::Dump;

/// The most ports of a node (IBTA 1.4, 16.1.3.2).
const MOST_PORTS: u8 = 254;

impl Dump {
    /// The nodes and cables in the format of ibnetdiscover.
    pub fn to_ibnetdiscover(&self) -> String {
        let peers: HashMap<PortKey, PortKey> =
            self.links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        let mut text = String::new();
        for (guid, node) in &self.nodes {
            let kind = node.kind.unwrap_or(NodeKind::Ca);
            let (word, key) = match kind {
                NodeKind::Switch => ("Switch", "switchguid"),
                NodeKind::Router => ("Rt", "rtguid"),
                NodeKind::Ca | NodeKind::AggregationNode => ("Ca", "caguid"),
            };
            let ports = node.port_count.clamp(1, MOST_PORTS);
            let system = node.system_guid.unwrap_or(*guid);
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "vendid={:#x}\ndevid={:#x}\nsysimgguid={:#x}\n{key}={:#x}\n{word}\t{ports} \"{}\"\t\t# \"{}\"\n",
                node.vendor_id,
                node.device_id,
                system.0,
                guid.0,
                self.id(*guid),
                self.description(*guid),
            );
            for number in 1..=ports {
                let port = PortKey::new(*guid, number);
                let Some(peer) = peers.get(&port) else { continue };
                let rate = self.ports.get(&port).and_then(|port| port.width.zip(port.speed));
                let rate = rate.map_or_else(String::new, |(width, speed)| {
                    format!(" {}{}", width.label(), speed.label())
                });
                let (id, name) = (self.id(peer.guid), self.description(peer.guid));
                let _ = writeln!(
                    text,
                    "[{number}]\t\"{id}\"[{}]\t\t# \"{name}\" lid 0{rate}",
                    peer.number
                );
            }
            text.push('\n');
        }
        text
    }

    fn id(&self, guid: Guid) -> String {
        let letter = match self.nodes.get(&guid).and_then(|node| node.kind) {
            Some(NodeKind::Switch) => 'S',
            Some(NodeKind::Router) => 'R',
            _ => 'H',
        };
        format!("{letter}-{:016x}", guid.0)
    }

    fn description(&self, guid: Guid) -> String {
        self.nodes.get(&guid).map_or_else(String::new, |node| node.description.replace('"', "'"))
    }
}
