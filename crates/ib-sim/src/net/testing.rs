//! Writes a net as a file for ibsim and for [`parse`](super::file::parse): for tests, which serve the same net by
//! both simulators.

use std::fmt::Write;

use ib_mad::node::NodeKind;

use super::build::default_guid;
use super::rates::{MASKS, Mask, Rates};
use super::{Net, Node, NodeId, Port, PortId};

/// Writes a net: each node with its GUIDs and ids, the rates of its ports where they differ from
/// those of the node before, and its cables.
///
/// [`parse`](super::file::parse) reads the same net again, without what the format cannot express: rates, GUIDs
/// and LIDs of adapters' ports without cables, and quotes in descriptions, which become apostrophes.
///
/// An ibsim older than NDR stops at a net with NDR: Debian 12's 0.10 knows speeds up to HDR.
pub fn write(net: &Net) -> String {
    let mut writer = Writer { net, text: String::new(), rates: Rates::default(), prefix: "" };
    for id in net.node_ids() {
        // Writing to a String cannot fail.
        let _ = writer.node(id);
    }
    writer.text
}

struct Writer<'a> {
    net: &'a Net,
    text: String,
    /// What earlier lines have set for later ones.
    rates: Rates,
    prefix: &'a str,
}

impl Writer<'_> {
    fn node(&mut self, id: NodeId) -> std::fmt::Result {
        let of = self.net.node(id);
        // No option sets the rates of port 0, so the node's are those of port 0.
        let port0 = self.net.port(PortId(of.first_port));
        for (mask, value) in self.changed_masks(port0) {
            writeln!(self.text, "{}={value}", mask.key)?;
        }
        let (prefix, base) = of.id.split_once('#').unwrap_or(("", &of.id));
        if prefix != self.prefix {
            writeln!(self.text, "module=\"{prefix}\"")?;
        }
        (self.rates, self.prefix) = (port0.rates, prefix);
        writeln!(self.text, "vendid={:#x}\ndevid={}", of.vendor_id, of.device_id)?;
        if of.system_guid != of.guid {
            writeln!(self.text, "sysimgguid={}", of.system_guid)?;
        }
        let is_switch = of.kind == NodeKind::Switch;
        let (word, key) = match of.kind {
            NodeKind::Switch => ("Switch", "switchguid"),
            NodeKind::Ca | NodeKind::AggregationNode => ("Hca", "caguid"),
            NodeKind::Router => ("Rt", "rtguid"),
        };
        write!(self.text, "{key}={}", of.guid)?;
        if is_switch && port0.guid != of.guid {
            write!(self.text, "({:x})", port0.guid.0)?;
        }
        let (count, description) = (of.port_count, description(of));
        write!(self.text, "\n{word}\t{count} \"{base}\"\t\t# \"{description}\"")?;
        if is_switch {
            self.text.push_str(if of.enhanced_port0 { " enhanced port 0" } else { "" });
            self.lid(port0)?;
        }
        self.text.push('\n');
        for port in self.net.cable_ports(id) {
            if let Some(peer) = self.net.port(port).cable {
                self.cable(port, peer)?;
            }
        }
        self.text.push('\n');
        Ok(())
    }

    /// The masks that earlier lines have set to other values than the port's.
    fn changed_masks(&self, port: &Port) -> impl Iterator<Item = (&'static Mask, u8)> + use<> {
        let (rates, before) = (port.rates, self.rates);
        let masks = MASKS.iter().map(move |mask| (mask, mask.get(rates)));
        masks.filter(move |(mask, value)| *value != mask.get(before))
    }

    fn cable(&mut self, at: PortId, to: PortId) -> std::fmt::Result {
        let (port, peer) = (self.net.port(at), self.net.port(to));
        let (of, peer_of) = (self.net.node_of(at), self.net.node_of(to));
        let is_switch = of.kind == NodeKind::Switch;
        write!(self.text, "[{}]", port.number)?;
        if !is_switch && port.guid != default_guid(of.kind, of.guid, port.number) {
            write!(self.text, "({:x})", port.guid.0)?;
        }
        // Within a module an id without a prefix belongs to the module.
        let outside = if self.prefix.is_empty() || peer_of.id.contains('#') { "" } else { "#" };
        write!(self.text, "\t\"{outside}{}\"[{}]", peer_of.id, peer.number)?;
        for (mask, value) in self.changed_masks(port) {
            write!(self.text, " {}={value}", mask.letter)?;
        }
        if !is_switch && (port.lid.is_some() || port.lmc != 0) {
            self.text.push_str("\t#");
            self.lid(port)?;
        }
        self.text.push('\n');
        Ok(())
    }

    fn lid(&mut self, port: &Port) -> std::fmt::Result {
        match port.lid {
            Some(lid) => write!(self.text, " lid {lid} lmc {}", port.lmc),
            None if port.lmc != 0 => write!(self.text, " lmc {}", port.lmc),
            None => Ok(()),
        }
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
