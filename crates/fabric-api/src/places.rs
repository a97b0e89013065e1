//! The nodes and ports that a text means in a fabric: where routes begin and end.

use ib_fabric::reference::Reference;
use ib_fabric::{Fabric, NodeIndex, PortIndex};
use ib_mad::{Guid, PortKey};

/// A node, or one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricPlace {
    /// The node.
    pub node: NodeIndex,
    /// Its port, if only that is meant.
    pub port: Option<PortIndex>,
}

/// The present nodes and ports that a text means: nodes by their name, the name of their host, or their GUID; if there are
/// none, ports in any spelling, by their GUID, or by one of their LIDs. The case of letters does not matter.
pub fn places(fabric: &Fabric, text: &str) -> Vec<FabricPlace> {
    let reference = Reference::new(text);
    if reference.text.is_empty() {
        return Vec::new();
    }
    let nodes = || fabric.node_indexes().filter(|node| fabric.node(*node).present());
    let is_called = |node: &NodeIndex| {
        let node = fabric.node(*node);
        let is_host = |host: &String| host.eq_ignore_ascii_case(&reference.text);
        reference.is_node(&node.name, node.identity.guid) || node.host.as_ref().is_some_and(is_host)
    };
    let called: Vec<FabricPlace> =
        nodes().filter(is_called).map(|node| FabricPlace { node, port: None }).collect();
    // Another name with more or fewer blanks is meant only if no node has this one.
    let is_same = |place: &FabricPlace| {
        fabric.node(place.node).names().any(|name| name.eq_ignore_ascii_case(&reference.text))
    };
    if called.iter().any(is_same) {
        return called.into_iter().filter(is_same).collect();
    }
    if !called.is_empty() {
        return called;
    }
    let at_node = |port: PortIndex| FabricPlace { node: fabric.port(port).node, port: Some(port) };
    let spelled = nodes().flat_map(|node| ports(fabric, &reference, node)).map(at_node);
    let spelled: Vec<FabricPlace> = spelled.collect();
    if !spelled.is_empty() {
        return spelled;
    }
    let all = fabric.port_indexes().filter(|port| fabric.node_of(*port).present());
    let is_numbered = |port: &PortIndex| {
        let guid = fabric.port(*port).guid;
        reference.guid.is_some_and(|wanted| wanted == guid && guid != Guid::default())
            || reference.lid.is_some_and(|lid| lids(fabric, *port).any(|own| own == lid.0))
    };
    all.filter(is_numbered).map(at_node).collect()
}

/// The ports of a node that are spelled in a reference.
fn ports<'a>(
    fabric: &'a Fabric,
    reference: &'a Reference,
    node: NodeIndex,
) -> impl Iterator<Item = PortIndex> + 'a {
    let of = fabric.node(node);
    let guid = of.identity.guid;
    let numbered = reference.ports.iter().filter(move |port| {
        let is_host = |host: &String| host.eq_ignore_ascii_case(&port.node);
        port.is_at(&of.name, guid, port.number) || of.host.as_ref().is_some_and(is_host)
    });
    let numbered = numbered.filter_map(move |port| fabric.find(PortKey::new(guid, port.number)));
    let behind =
        (!fabric.front_panels.is_empty()).then(|| reference.front_panel_of(&of.name, guid));
    let behind = behind.flatten();
    let printed = behind.into_iter().flat_map(move |_| fabric.ports_of(node)).filter(move |port| {
        let panel = fabric.front_panel(*port);
        panel.zip(behind).is_some_and(|(panel, behind)| panel.is_called(behind))
    });
    numbered.chain(printed)
}

/// The LIDs of a port that has its own.
pub(crate) fn lids(fabric: &Fabric, port: PortIndex) -> impl Iterator<Item = u16> + use<> {
    let status = fabric.port(port).status.filter(|status| status.lid.is_unicast());
    // LMC has 3 bits.
    let range =
        status.map_or(0..0, |it| u32::from(it.lid.0)..u32::from(it.lid.0) + (1 << (it.lmc & 7)));
    range.filter_map(|lid| u16::try_from(lid).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_health::testing::snapshot;
    use ib_mad::Lid;

    #[test]
    fn each_spelling_of_a_node_and_of_a_port_is_found() {
        let mut fabric = (*snapshot().fabric).clone();
        for node in fabric.nodes.iter_mut().skip(1) {
            node.host = Some("gpu1".into());
        }
        let found = |text: &str| -> Vec<(u32, Option<u8>)> {
            let number = |port: PortIndex| fabric.port(port).number;
            let places = places(&fabric, text).into_iter();
            places.map(|it| (it.node.0, it.port.map(number))).collect()
        };
        for (text, expected) in [
            ("leaf", &[(0, None)][..]),
            ("LEAF", &[(0, None)]),
            ("0x1", &[(0, None)]),
            ("gpu1", &[(1, None), (2, None)]),
            ("host-a", &[(1, None)]),
            ("host-a[1]", &[(1, Some(1))]),
            ("leaf port 2", &[(0, Some(2))]),
            ("nothing", &[]),
            ("", &[]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
        // No GUID of this fabric.
        let port = fabric.ports_of(NodeIndex(1)).next().unwrap();
        fabric.ports[port].status.as_mut().unwrap().lid = Lid(77);
        let places = places(&fabric, "77");
        assert_eq!(places, [FabricPlace { node: NodeIndex(1), port: Some(port) }]);
    }
}
