//! Writes a net as a file for ibsim and for [`parse`](super::file::parse): for tests, which serve the same net by
//! both simulators.

use std::fmt::Write;

use ib_mad::node::NodeKind;

use super::build::default_guid;
use super::rates::{MASKS, Mask, Rates};
use super::topology::{Net, Node, Port, PortId};

/// Writes a net: each node with its GUIDs and ids, the rates of its ports where they differ from
/// those of the node before, and its cables.
///
/// [`parse`](super::file::parse) reads the same net again, without what the format cannot express: rates, GUIDs
/// and LIDs of adapters' ports without cables, and quotes in descriptions, which become apostrophes.
///
/// An ibsim older than NDR stops at a net with NDR: Debian 12's 0.10 knows speeds up to HDR.
pub fn write(net: &Net) -> String {
    // What earlier lines have set for later ones.
    let (mut rates, mut module) = (Rates::default(), "");
    let mut text = String::new();
    // Writing to a String cannot fail.
    for id in net.node_ids() {
        let node = net.node(id);
        let is_switch = node.kind == NodeKind::Switch;
        // No option sets the rates of port 0, so the node's are those of port 0.
        let port0 = net.port(PortId(node.first_port));
        for (mask, value) in changed_masks(rates, port0) {
            let _ = writeln!(text, "{}={value}", mask.key);
        }
        let (prefix, base) = node.id.split_once('#').unwrap_or(("", &node.id));
        if prefix != module {
            let _ = writeln!(text, "module=\"{prefix}\"");
        }
        (rates, module) = (port0.rates, prefix);
        let _ = writeln!(text, "vendid={:#x}\ndevid={}", node.vendor_id, node.device_id);
        if node.system_guid != node.guid {
            let _ = writeln!(text, "sysimgguid={}", node.system_guid);
        }
        let (word, key) = match node.kind {
            NodeKind::Switch => ("Switch", "switchguid"),
            NodeKind::Ca | NodeKind::AggregationNode => ("Hca", "caguid"),
            NodeKind::Router => ("Rt", "rtguid"),
        };
        let _ = write!(text, "{key}={}", node.guid);
        if is_switch && port0.guid != node.guid {
            let _ = write!(text, "({:x})", port0.guid.0);
        }
        let (count, description) = (node.port_count, description(node));
        let _ = write!(text, "\n{word}\t{count} \"{base}\"\t\t# \"{description}\"");
        if is_switch {
            text += if node.enhanced_port0 { " enhanced port 0" } else { "" };
            text += &lid(port0);
        }
        text += "\n";
        for port in net.cable_ports(id).map(|port| net.port(port)) {
            let Some(peer) = port.cable else { continue };
            let _ = write!(text, "[{}]", port.number);
            if !is_switch && port.guid != default_guid(node.kind, node.guid, port.number) {
                let _ = write!(text, "({:x})", port.guid.0);
            }
            // Within a module an id without a prefix belongs to the module.
            let (peer_id, peer_number) = (&net.node_of(peer).id, net.port(peer).number);
            let outside = if prefix.is_empty() || peer_id.contains('#') { "" } else { "#" };
            let _ = write!(text, "\t\"{outside}{peer_id}\"[{peer_number}]");
            for (mask, value) in changed_masks(rates, port) {
                let _ = write!(text, " {}={value}", mask.letter);
            }
            let lid = if is_switch { String::new() } else { lid(port) };
            text += if lid.is_empty() { "" } else { "\t#" };
            text += &lid;
            text += "\n";
        }
        text += "\n";
    }
    text
}

/// The masks of a port that earlier lines have set to other values.
fn changed_masks(before: Rates, port: &Port) -> impl Iterator<Item = (&'static Mask, u8)> + use<> {
    let rates = port.rates;
    let masks = MASKS.iter().map(move |mask| (mask, mask.get(rates)));
    masks.filter(move |(mask, value)| *value != mask.get(before))
}

/// The LID and LMC in a comment; empty without both.
fn lid(port: &Port) -> String {
    match port.lid {
        Some(lid) => format!(" lid {lid} lmc {}", port.lmc),
        None if port.lmc != 0 => format!(" lmc {}", port.lmc),
        None => String::new(),
    }
}

/// A description without quotes and control characters: the format has no escapes.
fn description(node: &Node) -> String {
    let plain = |c: char| match c {
        '"' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    node.description.chars().map(plain).collect()
}
