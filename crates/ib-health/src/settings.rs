//! What a site may want otherwise: limits, and what it works on.

use std::time::SystemTime;

use ib_fabric::{Fabric, NodeIndex, PortIndex};
use ib_mad::{Guid, PortNumber};

use super::bit_errors::LimitTable;

/// How links are judged.
#[derive(Clone, Debug, Default)]
pub struct HealthSettings {
    /// How many bits may be wrong.
    pub limits: LimitTable,
}

/// A node as people call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRef {
    /// By its GUID.
    Guid(Guid),
    /// By its name.
    Name(String),
}

impl NodeRef {
    /// A name, unless it is written like a GUID: `0x` and 16 digits.
    pub fn new(text: &str) -> Self {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 16);
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(guid) => NodeRef::Guid(guid),
            None => NodeRef::Name(text.to_owned()),
        }
    }

    fn is(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        let node = fabric.node(node);
        match self {
            NodeRef::Guid(guid) => node.identity.guid == *guid,
            NodeRef::Name(name) => node.has_name(name),
        }
    }
}

/// Something that is worked on: what goes down there is expected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The node.
    pub node: NodeRef,
    /// One port of it, and the cable there; all of them, if none is named.
    pub port: Option<PortNumber>,
    /// From when on; from always, if that is not said.
    pub from: Option<SystemTime>,
    /// Until when; without end, if that is not said.
    pub until: Option<SystemTime>,
}

impl Work {
    /// Whether it goes on at a time.
    pub fn is_on(&self, at: SystemTime) -> bool {
        self.from.is_none_or(|from| from <= at) && self.until.is_none_or(|until| at < until)
    }

    /// The ports that it concerns.
    pub fn ports<'a>(&'a self, fabric: &'a Fabric) -> impl Iterator<Item = PortIndex> + 'a {
        fabric
            .node_indexes()
            .filter(|&node| self.node.is(fabric, node))
            .flat_map(|node| fabric.ports_of(node))
            .filter(|&port| self.port.is_none_or(|number| fabric.port(port).number == number))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ib_fabric::testing::{end, fabric, found};
    use ib_mad::node::NodeKind;

    #[test]
    fn work_concerns_a_node_or_one_of_its_ports_for_a_while() {
        let fabric =
            fabric(vec![found(1, NodeKind::Switch, 3), found(2, NodeKind::Ca, 1)], &[], None);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let work = |node: &str, port| Work {
            node: NodeRef::new(node),
            port,
            from: Some(at(10)),
            until: Some(at(20)),
        };
        let ports =
            |work: &Work| work.ports(&fabric).map(|port| fabric.end(port)).collect::<Vec<_>>();
        assert_eq!(ports(&work("node 2", None)), [end(2, 1)]);
        assert_eq!(ports(&work("0x0000000000000001", Some(2))), [end(1, 2)]);
        assert_eq!(ports(&work("0x0000000000000001", None)).len(), 4);
        assert_eq!(ports(&work("nobody", None)), []);
        // A name that two nodes share means both of them.
        let mut twins = [3, 4].map(|guid| found(guid, NodeKind::Ca, 1));
        for twin in &mut twins {
            twin.identity.description = "node 9".into();
        }
        let twins = self::fabric(twins.to_vec(), &[], None);
        let of = |name: &str| work(name, None).ports(&twins).count();
        assert_eq!(["node 9", "node 9#000003", "node 9#00"].map(of), [2, 1, 0]);
        let work = work("node 2", None);
        let on = [9, 10, 19, 20].map(|seconds| work.is_on(at(seconds)));
        assert_eq!(on, [false, true, true, false]);
        assert!(Work { from: None, until: None, ..work }.is_on(at(0)));
    }
}
