//! Fabrics as ibsim's net files: fat trees and the examples that ibsim ships.

use ib_mad::node::NodeKind;
use ib_sim::net::file::parse;
use ib_sim::net::shapes::FatTree;
use ib_sim::net::testing::write;
use ib_sim::net::{Net, Node};

fn fat_tree(levels: u8, radix: u8, hosts: usize, (down, up): (u8, u8)) -> String {
    let shape = FatTree {
        levels,
        radix,
        hosts: u32::try_from(hosts).unwrap_or(u32::MAX),
        down: Some(down),
        up: Some(up),
        switch: "quantum".into(),
        hca: "connectx-6".into(),
        ..FatTree::default()
    };
    write(&shape.build().unwrap_or_else(|e| panic!("{shape:?}: {e}")))
}

/// A two-level fat tree: `hosts` hosts, leaves with `down` hosts and `up` uplinks.
///
/// `fat_tree_2(40, 900, 22, 18)` is 60 switches with 3,276 connected ports.
pub fn fat_tree_2(radix: u8, hosts: usize, down: u8, up: u8) -> String {
    fat_tree(2, radix, hosts, (down, up))
}

/// A three-level fat tree of pods with half a radix of leaves.
pub fn fat_tree_3(radix: u8, hosts: usize, down: u8, up: u8) -> String {
    fat_tree(3, radix, hosts, (down, up))
}

/// The fabric for measurements: 507 switches, 5,000 hosts, 24,892 connected ports.
pub fn five_thousand_hosts() -> String {
    fat_tree_3(40, 5000, 23, 17)
}

/// The examples that ibsim ships, by their file names.
pub const EXAMPLES: [&str; 5] =
    ["net", "net.1", "net.2sw2path", "net.2sw2path4hca", "net.2sw2path4hca2port"];

/// One of [`EXAMPLES`], as ibsim's package installs it.
pub fn example(name: &str) -> String {
    let file = format!("/usr/share/doc/ibsim-utils/net-examples/{name}");
    std::fs::read_to_string(&file).unwrap_or_else(|e| {
        // A minimal image may leave out all of /usr/share/doc.
        panic!("{file}: {e}: apt-get install --reinstall ibsim-utils, with its documents")
    })
}

/// A parsed net.
pub fn net(text: &str) -> Net {
    parse(text).unwrap_or_else(|e| panic!("the net cannot be read: {e}"))
}

/// Every port with a cable, as the node's name and the port number.
pub fn all_connected_ports(net_text: &str) -> Vec<(String, u8)> {
    let net = net(net_text);
    net.port_ids()
        .filter(|port| net.port(*port).cable.is_some())
        .map(|port| (net.node_of(port).id.clone(), net.port(port).number))
        .collect()
}

/// The hosts whose first port has a cable, in file order: the nodes on which a client can run.
///
/// ibsim puts a client on its host's first port, cable or not.
pub fn usable_hosts(net_text: &str) -> Vec<String> {
    let net = net(net_text);
    net.node_ids()
        .filter(|node| net.node(*node).kind == NodeKind::Ca)
        .filter(|node| {
            net.port_by_number(*node, 1).is_some_and(|port| net.port(port).cable.is_some())
        })
        .map(|node| net.node(node).id.clone())
        .collect()
}

/// What ibsim must reserve for a net; it exits at a net larger than its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Switches and hosts, for `-N`.
    pub nodes: usize,
    /// Switches, for `-S`.
    pub switches: usize,
    /// Ports, each switch's port 0 among them, for `-P`.
    pub ports: usize,
}

/// The sizes of a net.
pub fn sizes(net_text: &str) -> Sizes {
    let net = net(net_text);
    let is_switch = |node: &&Node| node.kind == NodeKind::Switch;
    let (nodes, switches) = (net.nodes.len(), net.nodes.iter().filter(is_switch).count());
    let ports = net.nodes.iter().map(|node| usize::from(node.port_count)).sum::<usize>() + switches;
    Sizes { nodes, switches, ports }
}
