//! Reads a net from a file: an ibsim net file, or the output of `ibnetdiscover` for a real fabric.
//!
//! Both have one format. A node's line is followed by a line for each of its cables, up to the first other line; ids,
//! GUIDs and rates are set by lines before. This reader accepts more than ibsim's: a cable may be listed at one end
//! only, an alias may be used before its definition, and a record may end without an empty line.

mod line;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use ib_mad::Guid;
use ib_mad::node::NodeKind;

use super::build::{LONGEST_PREFIX, NetBuilder, bad_port_count};
use super::planes::find_planes;
use super::rates::{MASKS, Rates, set_option, set_rate};
use super::topology::{Net, Node, NodeId, PortId};
use crate::device::DeviceModel;
use line::{CableLine, NodeLine};

/// Why a file is not a net: the first wrong line, numbered from 1, or the lack of nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetFileError(String);

/// Reads a net. Unknown lines are ignored, as by ibsim.
pub fn parse(text: &str) -> Result<Net, NetFileError> {
    // The first GUIDs are those of ibsim, so that a file without GUIDs gets the same ones.
    let guids = [0x20_0000, 0x10_0000, 0].map(|base| Guids { base, next: base, port: None });
    let mut reader = Reader { guids, ..Reader::default() };
    let in_line =
        |line: usize| move |problem: String| NetFileError(format!("line {line}: {problem}"));
    for (index, text) in text.lines().enumerate() {
        reader.line = index + 1;
        reader.read(text).map_err(in_line(index + 1))?;
    }
    if reader.builder.net.nodes.is_empty() {
        return Err(NetFileError(
            "no nodes found: expected an ibsim net file or the output of ibnetdiscover, with lines such \
             as Switch 8 \"leaf-1\""
                .into(),
        ));
    }
    // Now that all ends of cables are known.
    let cables = std::mem::take(&mut reader.cables);
    for cable in &cables {
        reader.connect(cable, &cables).map_err(in_line(cable.line))?;
    }
    reader.set_unlisted_rates();
    find_planes(&mut reader.builder.net);
    Ok(reader.builder.net)
}

/// The kinds of nodes; their indices are those of the reader's GUIDs.
const KINDS: [NodeKind; 3] = [NodeKind::Switch, NodeKind::Ca, NodeKind::Router];

/// How lines begin, and the index of the kind. Only that is checked, so a line of prose may be an
/// invalid node, as for ibsim.
const NODES: [(&str, usize); 4] = [("Switch", 0), ("Hca", 1), ("Ca", 1), ("Rt", 2)];
const GUIDS: [(&str, usize); 4] =
    [("switchguid", 0), ("hcaguids", 1), ("caguid", 1), ("rtguid", 2)];
/// Lines that include another file, or run a command of ibsim's console. To ignore them would make
/// another net than the one that was meant.
const UNSUPPORTED: [&str; 2] = ["include", "do"];

/// The GUIDs that the next node of a kind gets.
#[derive(Default)]
struct Guids {
    base: u64,
    next: u64,
    /// That of a switch's ports, if the file has another one.
    port: Option<Guid>,
}

struct ListedCable {
    line: usize,
    port: PortId,
    peer: String,
    peer_number: u64,
}

#[derive(Default)]
struct Reader {
    builder: NetBuilder,
    line: usize,
    /// The node whose cables may follow.
    node: Option<NodeId>,
    guids: [Guids; KINDS.len()],
    prefix: String,
    vendor_id: u32,
    device_id: u16,
    system_guid: Option<Guid>,
    rates: Rates,
    /// The rates in the comments of a node's ports, as ibnetdiscover prints them.
    commented: HashMap<NodeId, Rates>,
    /// The ports that have lines.
    listed: HashSet<PortId>,
    cables: Vec<ListedCable>,
    aliases: HashMap<String, PortId>,
}

impl Reader {
    fn read(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with('#') {
            return Ok(()); // also between a node and its cables
        }
        if line::is_cable(line) {
            let Some(node) = self.node else {
                return Err(
                    "cable without a node: the cables of a node follow its line without a blank line".into(),
                );
            };
            return self.cable(node, line);
        }
        self.node = None;
        let starts = |word: &str| line.starts_with(word);
        let find =
            |words: &[(&'static str, usize)]| words.iter().find(|(word, _)| starts(word)).copied();
        if let Some((word, kind)) = find(&NODES) {
            self.header(kind, &line[word.len()..])?;
        } else if let Some((key, kind)) = find(&GUIDS) {
            self.guid_base(kind, key, line)?;
        } else if starts("vendid") {
            let vendor_id = |id: u64| u32::try_from(id).ok().filter(|id| *id <= 0xff_ffff);
            self.vendor_id = line::value("vendid", line, "expected at most 24 bits", vendor_id)?;
        } else if starts("devid") {
            let device_id = |id: u64| id.try_into().ok();
            self.device_id = line::value("devid", line, "expected at most 16 bits", device_id)?;
        } else if starts("sysimgguid") {
            let guid = line::value("sysimgguid", line, "expected at most 64 bits", Some)?;
            self.system_guid = (guid != 0).then_some(Guid(guid));
        } else if starts("module") {
            self.module(line)?;
        } else if let Some(word) = UNSUPPORTED.into_iter().find(|word| starts(word))
            && line[word.len()..].starts_with([' ', '\t', '"'])
        {
            return Err(format!(
                "\"{word}\" is supported by ibsim only: a net is read from a single file, without commands"
            ));
        } else if let Some(mask) = MASKS.iter().find(|mask| starts(mask.key)) {
            let set = |value| mask.set(&mut self.rates, value).then_some(());
            line::value(mask.key, line, "expected a bit mask", set)?;
        }
        Ok(())
    }

    fn module(&mut self, line: &str) -> Result<(), String> {
        let Some((_, after)) = line.split_once('=').or_else(|| line.split_once("module")) else {
            return Err(line::no_value("module"));
        };
        let (prefix, _) = line::quoted(after).ok_or_else(|| line::no_value("module"))?;
        if prefix.len() > LONGEST_PREFIX || prefix.contains(['#', '@']) {
            return Err(format!(
                "bad module prefix \"{}\": at most {LONGEST_PREFIX} bytes without \"#\" and \"@\"",
                prefix.escape_default()
            ));
        }
        prefix.clone_into(&mut self.prefix);
        Ok(())
    }

    /// `=` sets a base for GUIDs, `+` an offset from it. ibnetdiscover prints the GUID of a
    /// switch's ports in parentheses.
    fn guid_base(&mut self, kind: usize, key: &'static str, line: &str) -> Result<(), String> {
        let guids = &mut self.guids[kind];
        let absolute = line.split_once('=');
        let (_, text) =
            absolute.or_else(|| line.split_once('+')).ok_or_else(|| line::no_value(key))?;
        let (value, rest) = line::number(text)
            .ok_or_else(|| line::bad_number(key, text, "expected a GUID of 64 bits"))?;
        if absolute.is_some() {
            guids.base = value;
            guids.next = value;
        } else {
            guids.next = guids.base.wrapping_add(value);
        }
        guids.port = line::guid_in_parentheses(rest).map(|(guid, _)| guid);
        Ok(())
    }

    fn header(&mut self, index: usize, rest: &str) -> Result<(), String> {
        let header = NodeLine::read(rest)?;
        let kind = KINDS[index];
        let id = self.in_module(header.id);
        let port_count =
            u8::try_from(header.ports).map_err(|_| bad_port_count(&id, header.ports))?;
        let is_switch = kind == NodeKind::Switch;
        let guids = &mut self.guids[index];
        let guid = Guid(guids.next);
        guids.next = guids.next.wrapping_add(if is_switch { 1 } else { u64::from(port_count) + 1 });
        let port_guid = guids.port.take().filter(|_| is_switch);
        let node = Node {
            description: line::description(header.description.unwrap_or(&id)),
            id,
            kind,
            guid,
            // As in ibsim the vendor is for one node, and the device for all that follow.
            system_guid: self.system_guid.take().unwrap_or(guid),
            vendor_id: std::mem::take(&mut self.vendor_id),
            device_id: self.device_id,
            model: DeviceModel::for_device(kind, self.device_id),
            port_count,
            enhanced_port0: is_switch && header.more.contains("enhanced port 0"),
            asic: None,
            first_port: 0,
        };
        let node = self.builder.add(node, self.rates, port_guid)?;
        self.node = Some(node);
        if is_switch {
            let port0 = self.builder.port_mut(PortId(self.builder.net.node(node).first_port));
            (port0.lid, port0.lmc) = line::lid_and_lmc(header.more);
        }
        Ok(())
    }

    fn cable(&mut self, node: NodeId, line: &str) -> Result<(), String> {
        let cable = CableLine::read(line)?;
        let port = self.builder.cable_port(node, cable.number)?;
        if cable.is_alias {
            let alias = format!("{}@{}", self.prefix, cable.peer);
            if self.aliases.insert(alias, port).is_some() {
                return Err(format!("alias \"{}\" is defined twice", cable.peer.escape_default()));
            }
        } else {
            self.cables.push(ListedCable {
                line: self.line,
                port,
                peer: self.in_module(cable.peer),
                peer_number: cable.peer_number.unwrap_or(1),
            });
        }
        let mut rates = self.rates;
        for (letter, value) in cable.options() {
            let (value, _) = line::number(value)
                .ok_or_else(|| line::bad_number("an option", value, "expected w, s or e"))?;
            if !set_option(&mut rates, letter, value) {
                return Err(line::bad_number(
                    "an option",
                    &format!("{letter}={value}"),
                    "expected a mask",
                ));
            }
        }
        if let Some(rate) = cable.rate() {
            set_rate(&mut rates, rate);
            let commented = self.commented.entry(node).or_insert(rates);
            *commented = commented.union(rates);
        }
        self.listed.insert(port);
        let is_switch = self.builder.net.node(node).kind == NodeKind::Switch;
        let port = self.builder.port_mut(port);
        port.rates = rates;
        if !is_switch {
            port.guid = cable.guid.unwrap_or(port.guid);
            (port.lid, port.lmc) = line::lid_and_lmc(cable.own_comment());
        }
        Ok(())
    }

    /// A node's id, or an alias, with the prefix of the current module. A leading `#` means outside
    /// of all modules, which ibsim cannot express.
    fn in_module(&self, id: &str) -> String {
        match id.strip_prefix('#') {
            Some(outside) if !self.prefix.is_empty() => outside.to_owned(),
            _ if id.starts_with('@') => format!("{}{id}", self.prefix),
            _ if self.prefix.is_empty() || id.contains(['#', '@']) => id.to_owned(),
            _ => format!("{}#{id}", self.prefix),
        }
    }

    /// ibnetdiscover does not list ports without a link: they get the rates of the node's other ports.
    fn set_unlisted_rates(&mut self) {
        for (node, rates) in std::mem::take(&mut self.commented) {
            let of = self.builder.net.node(node);
            let ports = (of.first_port..=of.first_port + u32::from(of.port_count)).map(PortId);
            for port in ports.filter(|port| !self.listed.contains(port)) {
                self.builder.port_mut(port).rates = rates;
            }
        }
    }

    fn connect(&mut self, cable: &ListedCable, all: &[ListedCable]) -> Result<(), String> {
        let (port, name) = (cable.port, &cable.peer);
        let known = if name.contains('@') {
            self.aliases.get(name).copied()
        } else {
            let node = self.builder.find(name);
            node.map(|node| self.builder.cable_port(node, cable.peer_number)).transpose()?
        };
        let label = |port| self.builder.net.label(port);
        let peer = known.ok_or_else(|| {
            let (port, name) = (label(port), name.escape_default());
            format!("{port} is connected to \"{name}\", which is not in the file")
        })?;
        if let Some((taken, by)) = self.builder.taken(port, peer).filter(|_| port != peer) {
            // It was connected by the first line of either end.
            let other = all.iter().find(|other| other.port == taken || other.port == by);
            let other = other.map_or(cable.line, |other| other.line);
            let [port, peer, taken, by] = [port, peer, taken, by].map(label);
            return Err(format!(
                "{port} is connected to {peer} here, but {taken} is connected to {by} in line {other}"
            ));
        }
        self.builder.cable(port, peer)
    }
}
