//! What people call nodes, and where cables lead.

use std::collections::{BTreeMap, BTreeSet};

use fabric_history::model::Port;
use fabric_history::source::AskError;
use ib_fabric::topology::{End, LinkId};
use ib_mad::Guid;

use super::client::Sample;
use super::look::{Look, end_at, fabric, fabric_end, guid};
use super::matchers;

/// The names of some nodes.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: BTreeMap<(String, Guid), String>,
}

impl Names {
    /// Asks for them: for what they are called at the window's end, or were called last.
    pub(super) fn ask(
        look: &Look<'_>,
        wanted: impl IntoIterator<Item = Guid>,
    ) -> Result<Self, AskError> {
        let wanted: BTreeSet<Guid> = wanted.into_iter().collect();
        let mut names = Names::default();
        // A host that watches its own ports alone has no nodes.
        for metric in ["infiniband_node_info", "infiniband_port_info"] {
            let missing = wanted.iter().filter(|guid| !names.has(**guid));
            let missing: Vec<String> = missing.map(ToString::to_string).collect();
            for matchers in matchers::one_of("guid", missing, 300) {
                for sample in look.latest(metric, &matchers, "guid")? {
                    names.learn(&sample);
                }
            }
        }
        Ok(names)
    }

    fn learn(&mut self, sample: &Sample) {
        let labels = &sample.labels;
        if let (Some(fabric), Some(guid), Some(node)) =
            (fabric(labels), guid(labels), labels.get("node"))
        {
            self.names.entry((fabric, guid)).or_insert_with(|| node.clone());
        }
    }

    fn has(&self, guid: Guid) -> bool {
        self.names.keys().any(|(_, known)| *known == guid)
    }

    /// What a node is called; its GUID if nobody says.
    pub(super) fn node(&self, fabric: &str, guid: Guid) -> String {
        let name = self.names.get(&(fabric.to_owned(), guid));
        name.cloned().unwrap_or_else(|| guid.to_string())
    }

    /// A port, as it is told.
    pub(super) fn port(&self, fabric: &str, (guid, port): End) -> Port {
        Port { fabric: fabric.to_owned(), guid, port, node: self.node(fabric, guid) }
    }

    /// A cable, as people write it.
    pub(super) fn link(&self, fabric: &str, link: LinkId) -> String {
        let [a, b] = link.ends().map(|end| self.port(fabric, end).label());
        format!("{a} – {b}")
    }
}

/// The other ends of some ports' cables, at the window's end or last.
pub(super) fn peers(
    look: &Look<'_>,
    ends: &BTreeSet<End>,
) -> Result<BTreeMap<(String, End), Port>, AskError> {
    let mut peers = BTreeMap::new();
    for matchers in matchers::ports(ends, 300) {
        let matchers = [matchers, vec!["peer_guid!=\"\"".into()]].concat();
        for sample in look.latest("infiniband_port_info", &matchers, "guid")? {
            let labels = &sample.labels;
            if let (Some((fabric, end)), Some((guid, port))) =
                (fabric_end(labels), end_at(labels, "peer_guid", "peer_port"))
            {
                let node = labels.get("peer_node").cloned().unwrap_or_else(|| guid.to_string());
                let peer = Port { fabric: fabric.clone(), guid, port, node };
                peers.entry((fabric, end)).or_insert(peer);
            }
        }
    }
    Ok(peers)
}
