//! Fabrics as ibsim's net files: generated fat trees and the examples that ibsim ships.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A node of a net under construction.
struct Node {
    name: String,
    is_switch: bool,
    ports: u8,
    next_free: u8,
    cables: BTreeMap<u8, (usize, u8)>,
}

/// A net under construction: nodes in file order and the cables between them.
#[derive(Default)]
struct Net {
    nodes: Vec<Node>,
}

impl Net {
    fn add(&mut self, name: String, is_switch: bool, ports: u8) -> usize {
        self.nodes.push(Node { name, is_switch, ports, next_free: 1, cables: BTreeMap::new() });
        self.nodes.len() - 1
    }

    fn add_hosts(&mut self, hosts: usize) -> Vec<usize> {
        (0..hosts).map(|h| self.add(format!("host-{h}"), false, 1)).collect()
    }

    /// A cable from the first free port of one node to the first free port of the other.
    fn link(&mut self, a: usize, b: usize) {
        let (port_a, port_b) = (self.take_port(a), self.take_port(b));
        self.nodes[a].cables.insert(port_a, (b, port_b));
        self.nodes[b].cables.insert(port_b, (a, port_a));
    }

    fn take_port(&mut self, node: usize) -> u8 {
        let node = &mut self.nodes[node];
        let port = node.next_free;
        assert!(port <= node.ports, "{} has only {} ports", node.name, node.ports);
        node.next_free += 1;
        port
    }

    /// Leaves the ports below `port` unused, so that uplinks sit at the same numbers on each switch.
    fn start_at(&mut self, node: usize, port: u8) {
        self.nodes[node].next_free = port;
    }

    fn text(&self) -> String {
        // 4X up to EDR, and GUIDs apart by kind so that a test can tell them at a glance.
        let mut text = String::from(
            "width=3\nspeed=7\nextspeed=3\ncaguid=0x0002c90300000000\nswitchguid=0x0002c90200000000\n\n",
        );
        for node in &self.nodes {
            let (kind, device) = if node.is_switch { ("Switch", 54000) } else { ("Hca", 4123) };
            let Node { name, ports, .. } = node;
            let _ = writeln!(
                text,
                "vendid=0x2c9\ndevid={device}\n{kind}\t{ports} \"{name}\"\t\t# \"{name}\""
            );
            for (port, (peer, peer_port)) in &node.cables {
                let _ = writeln!(text, "[{port}]\t\"{}\"[{peer_port}]", self.nodes[*peer].name);
            }
            text.push('\n');
        }
        text
    }
}

/// A two-level fat tree: `hosts` hosts, leaves with `down` hosts and `up` uplinks, and as many
/// spines as the uplinks fill. Nodes are called `host-N`, `leaf-0-N` and `spine-N`.
///
/// `fat_tree_2(40, 900, 22, 18)` is 60 switches with 3,276 connected ports.
pub fn fat_tree_2(radix: u8, hosts: usize, down: u8, up: u8) -> String {
    assert!(down + up <= radix, "{down} down and {up} up do not fit a switch of {radix} ports");
    let (down_ports, uplinks) = (usize::from(down), usize::from(up));
    let mut net = Net::default();
    let hosts = net.add_hosts(hosts);
    let leaf_count = hosts.len().div_ceil(down_ports);
    let spine_count = (leaf_count * uplinks).div_ceil(usize::from(radix));
    let leaves: Vec<_> =
        (0..leaf_count).map(|l| net.add(format!("leaf-0-{l}"), true, radix)).collect();
    let spines: Vec<_> =
        (0..spine_count).map(|s| net.add(format!("spine-{s}"), true, radix)).collect();
    for (h, host) in hosts.iter().enumerate() {
        net.link(*host, leaves[h / down_ports]);
    }
    // Uplinks that do not divide evenly go on where the leaf before ended, to fill the spines evenly.
    let even = uplinks % spine_count == 0;
    for (l, leaf) in leaves.iter().enumerate() {
        net.start_at(*leaf, down + 1);
        for u in 0..uplinks {
            let spine = if even { u } else { l * uplinks + u } % spine_count;
            net.link(*leaf, spines[spine]);
        }
    }
    net.text()
}

/// A three-level fat tree of pods: a pod has half a radix of leaves, each with one uplink to each of
/// the pod's `up` aggregation switches; aggregation switch J of every pod goes up to core group J.
/// Nodes are called `host-N`, `leaf-POD-N`, `agg-POD-J` and `core-J-N`.
pub fn fat_tree_3(radix: u8, hosts: usize, down: u8, up: u8) -> String {
    assert!(down + up <= radix, "{down} down and {up} up do not fit a switch of {radix} ports");
    let (ports, groups) = (usize::from(radix), usize::from(up));
    let mut net = Net::default();
    let hosts = net.add_hosts(hosts);
    let leaf_count = hosts.len().div_ceil(usize::from(down));
    let pod_leaves = ports / 2;
    let agg_uplinks = ports - pod_leaves;
    let pods = leaf_count.div_ceil(pod_leaves);
    let cores = (pods * agg_uplinks).div_ceil(ports); // in each group
    let leaves: Vec<_> = (0..leaf_count)
        .map(|l| net.add(format!("leaf-{}-{}", l / pod_leaves, l % pod_leaves), true, radix))
        .collect();
    let aggs: Vec<_> = (0..pods * groups)
        .map(|a| net.add(format!("agg-{}-{}", a / groups, a % groups), true, radix))
        .collect();
    let cores_of: Vec<Vec<_>> = (0..groups)
        .map(|j| (0..cores).map(|c| net.add(format!("core-{j}-{c}"), true, radix)).collect())
        .collect();
    for (h, host) in hosts.iter().enumerate() {
        net.link(*host, leaves[h / usize::from(down)]);
    }
    for (l, leaf) in leaves.iter().enumerate() {
        net.start_at(*leaf, down + 1);
        for j in 0..groups {
            net.link(*leaf, aggs[l / pod_leaves * groups + j]);
        }
    }
    for (a, agg) in aggs.iter().enumerate() {
        net.start_at(*agg, radix / 2 + 1);
        for u in 0..agg_uplinks {
            net.link(*agg, cores_of[a % groups][(a / groups * agg_uplinks + u) % cores]);
        }
    }
    net.text()
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

/// A line of a net file that says something about the fabric.
enum Line<'a> {
    Node { is_switch: bool, ports: usize, name: &'a str },
    Cable { port: u8 },
}

fn lines(net_text: &str) -> impl Iterator<Item = Line<'_>> {
    net_text.lines().filter_map(|line| {
        if let Some(rest) = line.strip_prefix('[') {
            return Some(Line::Cable { port: rest.split(']').next()?.parse().ok()? });
        }
        let mut words = line.split_whitespace();
        let is_switch = match words.next()? {
            "Switch" => true,
            "Hca" | "Ca" => false,
            _ => return None,
        };
        let ports = words.next()?.parse().ok()?;
        Some(Line::Node { is_switch, ports, name: line.split('"').nth(1)? })
    })
}

/// Every port with a cable, as the node's name and the port number.
pub fn all_connected_ports(net_text: &str) -> Vec<(String, u8)> {
    let mut node = "";
    let mut found = Vec::new();
    for line in lines(net_text) {
        match line {
            Line::Node { name, .. } => node = name,
            Line::Cable { port } => found.push((node.to_owned(), port)),
        }
    }
    found
}

/// The hosts whose first port has a cable, in file order: the places where a client can sit.
///
/// ibsim puts a client on its host's first port, cable or not.
pub fn usable_hosts(net_text: &str) -> Vec<String> {
    let mut host = None;
    let mut found = Vec::new();
    for line in lines(net_text) {
        match line {
            Line::Node { is_switch, name, .. } => host = (!is_switch).then_some(name),
            Line::Cable { port: 1 } => found.extend(host.map(str::to_owned)),
            Line::Cable { .. } => {}
        }
    }
    found
}

/// What ibsim must reserve for a net; it stops at a net larger than its limits.
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
    let mut sizes = Sizes { nodes: 0, switches: 0, ports: 0 };
    for line in lines(net_text) {
        if let Line::Node { is_switch, ports, .. } = line {
            sizes.nodes += 1;
            sizes.switches += usize::from(is_switch);
            sizes.ports += ports + usize::from(is_switch);
        }
    }
    sizes
}
