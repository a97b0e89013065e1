//! Writes a net as a file for ibsim and for [`parse`](super::file::parse).

use std::fmt::Write;

use ib_mad::node::NodeKind;

use super::build::default_guid;
use super::rates::{MASKS, Rates};
use super::{Net, Node, NodeId, Port, PortId};

/// Writes a net: each node with its GUIDs and ids, the rates of its ports where they differ from
/// those of the node before, and its cables.
///
/// [`parse`](super::file::parse) reads the same net again, without what the format cannot express:
/// rates, GUIDs and LIDs of adapters' ports without cables, and quotes in descriptions, which
/// become apostrophes.
///
/// An ibsim older than NDR stops at a net with NDR: Debian 12's 0.10 knows speeds up to HDR.
pub fn write(net: &Net) -> String {
    let mut text = String::new();
    let mut state = State { rates: Rates::default(), prefix: "" };
    for id in net.node_ids() {
        // Writing to a String cannot fail.
        let _ = node(&mut text, net, id, &mut state);
    }
    text
}

/// What earlier lines have set for later ones.
struct State<'a> {
    rates: Rates,
    prefix: &'a str,
}

fn node<'a>(
    text: &mut String,
    net: &'a Net,
    id: NodeId,
    state: &mut State<'a>,
) -> std::fmt::Result {
    let of = net.node(id);
    // No option sets the rates of port 0, so the node's are those of port 0.
    let port0 = net.port(PortId(of.first_port));
    let rates = port0.rates;
    for mask in &MASKS {
        if mask.get(rates) != mask.get(state.rates) {
            writeln!(text, "{}={}", mask.key, mask.get(rates))?;
        }
    }
    let (prefix, base) = of.id.split_once('#').unwrap_or(("", &of.id));
    if prefix != state.prefix {
        writeln!(text, "module=\"{prefix}\"")?;
    }
    *state = State { rates, prefix };

    writeln!(text, "vendid={:#x}\ndevid={}", of.vendor_id, of.device_id)?;
    if of.system_guid != of.guid {
        writeln!(text, "sysimgguid={}", of.system_guid)?;
    }
    let is_switch = of.kind == NodeKind::Switch;
    let (word, key) = match of.kind {
        NodeKind::Switch => ("Switch", "switchguid"),
        NodeKind::Ca | NodeKind::AggregationNode => ("Hca", "caguid"),
        NodeKind::Router => ("Rt", "rtguid"),
    };
    write!(text, "{key}={}", of.guid)?;
    if is_switch && port0.guid != of.guid {
        write!(text, "({:x})", port0.guid.0)?;
    }
    write!(text, "\n{word}\t{} \"{base}\"\t\t# \"{}\"", of.port_count, description(of))?;
    if is_switch {
        if of.enhanced_port0 {
            text.push_str(" enhanced port 0");
        }
        lid(text, port0)?;
    }
    text.push('\n');
    for port in net.cable_ports(id) {
        if let Some(peer) = net.port(port).cable {
            cable(text, net, port, peer, state)?;
        }
    }
    text.push('\n');
    Ok(())
}

fn cable(text: &mut String, net: &Net, at: PortId, to: PortId, state: &State) -> std::fmt::Result {
    let (port, peer) = (net.port(at), net.port(to));
    let (of, peer_of) = (net.node_of(at), net.node_of(to));
    write!(text, "[{}]", port.number)?;
    if of.kind != NodeKind::Switch && port.guid != default_guid(of.kind, of.guid, port.number) {
        write!(text, "({:x})", port.guid.0)?;
    }
    // Within a module an id without a prefix belongs to the module.
    let outside = if state.prefix.is_empty() || peer_of.id.contains('#') { "" } else { "#" };
    write!(text, "\t\"{outside}{}\"[{}]", peer_of.id, peer.number)?;
    let rates = port.rates;
    for mask in &MASKS {
        if mask.get(rates) != mask.get(state.rates) {
            write!(text, " {}={}", mask.letter, mask.get(rates))?;
        }
    }
    if of.kind != NodeKind::Switch && (port.lid.is_some() || port.lmc != 0) {
        text.push_str("\t#");
        lid(text, port)?;
    }
    text.push('\n');
    Ok(())
}

fn lid(text: &mut String, port: &Port) -> std::fmt::Result {
    match port.lid {
        Some(lid) => write!(text, " lid {lid} lmc {}", port.lmc),
        None if port.lmc != 0 => write!(text, " lmc {}", port.lmc),
        None => Ok(()),
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
