//! Writes a net as a file that ibsim reads, and [`parse`](super::file::parse) as well.

use std::fmt::Write;

use ib_mad::node::NodeKind;

use super::build::default_guid;
use super::rates::{MASKS, Rates};
use super::{Net, Node, NodeId, Port, PortId};

/// Writes a net: each node with its GUIDs and ids, the rates of its ports where they are not those
/// of the node before, and its cables.
///
/// Read again, it is the same net, but for what the format has no words for: rates, GUIDs and LIDs
/// of adapters' ports without cables, and quotes in descriptions, which become apostrophes.
///
/// An ibsim older than NDR stops at a net that has it: Debian 12's 0.10 knows speeds up to HDR.
pub fn write(net: &Net) -> String {
    let mut text = String::new();
    let mut state = State { rates: Rates::default(), prefix: "" };
    for id in net.node_ids() {
        // A String takes all that is written.
        let _ = node(&mut text, net, id, &mut state);
    }
    text
}

/// What the lines so far have set for those that follow.
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
    // No option can tell the rates of port 0, so the node's are those of its port 0.
    let port0 = net.port(PortId(of.first_port));
    let rates = rates_of(port0);
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
    write!(text, "\n{word}\t{} \"{base}\"\t\t# \"{}\"", of.port_count, described(of))?;
    if is_switch {
        if of.enhanced_port0 {
            text.push_str(" enhanced port 0");
        }
        lid(text, port0)?;
    }
    text.push('\n');
    for plug in net.plugs_of(id) {
        if let Some(peer) = net.port(plug).cable {
            cable(text, net, plug, peer, state)?;
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
    // Within a module an id without a prefix is one of the module's.
    let outside = if state.prefix.is_empty() || peer_of.id.contains('#') { "" } else { "#" };
    write!(text, "\t\"{outside}{}\"[{}]", peer_of.id, peer.number)?;
    let rates = rates_of(port);
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

fn rates_of(port: &Port) -> Rates {
    Rates { widths: port.widths, speeds: port.speeds }
}

/// The format knows no escapes.
fn described(node: &Node) -> String {
    let plain = |c: char| match c {
        '"' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    node.description.chars().map(plain).collect()
}
