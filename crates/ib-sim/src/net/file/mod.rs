//! Reads a net from a file: an ibsim net file, or the output of `ibnetdiscover` for a real fabric.
//!
//! Both have one format. A node's line is followed by a line for each of its cables, up to the
//! first other line; ids, GUIDs and rates are set by lines before. This reader accepts more than
//! ibsim's: a cable may be listed at one end only, an alias may be used before its definition, and
//! a record may end without an empty line.

mod line;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use ib_mad::Guid;
use ib_mad::node::NodeKind;

use super::build::{BuildError, LONGEST_PREFIX, NetBuilder, NewNode};
use super::rates::{MASKS, Rates, set_option, set_rate};
use super::{DeviceModel, Net, NodeId, PortId};
use line::{CableLine, NodeLine};

/// Why a file is not a net.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts name the fields")]
pub enum NetFileError {
    /// A line is wrong; lines are numbered from 1.
    #[error("line {line}: {problem}")]
    Line { line: usize, problem: LineError },
    /// The file has no nodes.
    #[error(
        "no nodes: neither an ibsim net file nor ibnetdiscover's output, which have lines such as \
         Switch 8 \"leaf-1\""
    )]
    NoNodes,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts name the fields")]
pub enum LineError {
    /// The line's node or cable cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A key without `=`.
    #[error("\"{0}\" without \"=\" and a value")]
    NoValue(&'static str),
    /// An invalid number, or one out of the key's range.
    #[error("bad number for {key}: \"{}\"; {wanted}", .text.escape_default())]
    BadNumber { key: &'static str, text: String, wanted: &'static str },
    /// A node's line without an id.
    #[error("a node without an id in quotes")]
    NoId,
    /// A cable's line without a peer.
    #[error("a cable without the other end's id in quotes")]
    NoPeer,
    /// A cable's line that belongs to no node.
    #[error("a cable that belongs to no node: a node's cables follow its line without a gap")]
    Stray,
    /// An invalid module prefix.
    #[error("bad module prefix \"{}\": at most {LONGEST_PREFIX} bytes without \"#\" and \"@\"",
        .0.escape_default())]
    BadPrefix(String),
    /// Two ports have the same alias.
    #[error("alias \"{}\" is given already", .0.escape_default())]
    DuplicateAlias(String),
    /// The other end of a cable is not in the file.
    #[error("{port} leads to \"{}\", which is not in the file", .peer.escape_default())]
    UnknownPeer { port: String, peer: String },
    /// The two ends of a cable disagree, or two cables have one end: line `other` connects `taken`,
    /// one of the two, to `by`.
    #[error("{port} leads to {peer} here, but line {other} joins {taken} to {by}")]
    Disagree { port: String, peer: String, taken: String, by: String, other: usize },
    /// A line that only ibsim supports.
    #[error("\"{0}\" is for ibsim alone: a net is read from one file, and nothing is run")]
    Unsupported(&'static str),
}

/// Reads a net.
///
/// # Errors
///
/// The first wrong line. Unknown lines are ignored, as by ibsim.
pub fn parse(text: &str) -> Result<Net, NetFileError> {
    let mut reader = Reader::default();
    for (index, text) in text.lines().enumerate() {
        reader.line = index + 1;
        let read = reader.read(text);
        read.map_err(|problem| NetFileError::Line { line: index + 1, problem })?;
    }
    reader.finish()
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
#[derive(Clone, Copy)]
struct Guids {
    base: u64,
    next: u64,
    /// That of a switch's ports, if the file has another one.
    port: Option<Guid>,
}

impl Guids {
    fn from(base: u64) -> Guids {
        Guids { base, next: base, port: None }
    }
}

/// A cable as listed at one end.
struct ListedCable {
    line: usize,
    port: PortId,
    peer: String,
    peer_number: u64,
}

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

impl Default for Reader {
    fn default() -> Self {
        Reader {
            builder: NetBuilder::default(),
            line: 0,
            node: None,
            // Those of ibsim, so that a file without GUIDs gets the same ones.
            guids: [Guids::from(0x20_0000), Guids::from(0x10_0000), Guids::from(0)],
            prefix: String::new(),
            vendor_id: 0,
            device_id: 0,
            system_guid: None,
            rates: Rates::default(),
            commented: HashMap::new(),
            listed: HashSet::new(),
            cables: Vec::new(),
            aliases: HashMap::new(),
        }
    }
}

impl Reader {
    fn read(&mut self, line: &str) -> Result<(), LineError> {
        if line.starts_with('#') {
            return Ok(()); // also between a node and its cables
        }
        if line::is_cable(line) {
            let Some(node) = self.node else { return Err(LineError::Stray) };
            return self.cable(node, line);
        }
        self.node = None;
        let starts = |word: &str| line.starts_with(word);
        let find =
            |words: &[(&'static str, usize)]| words.iter().find(|(word, _)| starts(word)).copied();
        if let Some((word, kind)) = find(&NODES) {
            self.header(kind, &line[word.len()..])
        } else if let Some((key, kind)) = find(&GUIDS) {
            self.guid_base(kind, key, line)
        } else if starts("vendid") {
            self.vendor_id = line::value("vendid", line, 0xff_ffff, "24 bits")? as u32;
            Ok(())
        } else if starts("devid") {
            self.device_id = line::value("devid", line, 0xffff, "16 bits")? as u16;
            Ok(())
        } else if starts("sysimgguid") {
            let guid = line::value("sysimgguid", line, u64::MAX, "64 bits")?;
            self.system_guid = (guid != 0).then_some(Guid(guid));
            Ok(())
        } else if starts("module") {
            self.module(line)
        } else if let Some(word) = UNSUPPORTED.into_iter().find(|word| starts(word))
            && line[word.len()..].starts_with([' ', '\t', '"'])
        {
            Err(LineError::Unsupported(word))
        } else {
            self.rates(line)
        }
    }

    fn rates(&mut self, line: &str) -> Result<(), LineError> {
        let Some(mask) = MASKS.iter().find(|mask| line.starts_with(mask.key)) else {
            return Ok(());
        };
        let value = line::value(mask.key, line, mask.most.into(), "a mask of its bits")?;
        if mask.set(&mut self.rates, value) {
            Ok(())
        } else {
            Err(line::bad_number(mask.key, &value.to_string(), "a mask of its bits"))
        }
    }

    fn module(&mut self, line: &str) -> Result<(), LineError> {
        let Some((_, after)) = line.split_once('=').or_else(|| line.split_once("module")) else {
            return Err(LineError::NoValue("module"));
        };
        let (prefix, _) = line::quoted(after).ok_or(LineError::NoValue("module"))?;
        if prefix.len() > LONGEST_PREFIX || prefix.contains(['#', '@']) {
            return Err(LineError::BadPrefix(prefix.to_owned()));
        }
        prefix.clone_into(&mut self.prefix);
        Ok(())
    }

    /// `=` sets a base for GUIDs, `+` an offset from it. ibnetdiscover prints the GUID of a
    /// switch's ports in parentheses.
    fn guid_base(&mut self, kind: usize, key: &'static str, line: &str) -> Result<(), LineError> {
        let guids = &mut self.guids[kind];
        let absolute = line.split_once('=');
        let (_, text) = absolute.or_else(|| line.split_once('+')).ok_or(LineError::NoValue(key))?;
        let (value, rest) =
            line::number(text).ok_or_else(|| line::bad_number(key, text, "a GUID has 64 bits"))?;
        if absolute.is_some() {
            guids.base = value;
            guids.next = value;
        } else {
            guids.next = guids.base.wrapping_add(value);
        }
        guids.port = line::guid_in_parentheses(rest).map(|(guid, _)| guid);
        Ok(())
    }

    fn header(&mut self, index: usize, rest: &str) -> Result<(), LineError> {
        let header = NodeLine::read(rest)?;
        let kind = KINDS[index];
        let id = self.in_module(header.id);
        let port_count = u8::try_from(header.ports)
            .map_err(|_| BuildError::PortCount { id: id.clone(), ports: header.ports })?;
        let is_switch = kind == NodeKind::Switch;
        let guids = &mut self.guids[index];
        let guid = Guid(guids.next);
        guids.next = guids.next.wrapping_add(if is_switch { 1 } else { u64::from(port_count) + 1 });
        let port_guid = guids.port.take().filter(|_| is_switch);
        let node = self.builder.add(NewNode {
            description: line::description(header.description.unwrap_or(&id)),
            id,
            kind,
            guid,
            port_guid,
            // As in ibsim the vendor is for one node, and the device for all that follow.
            system_guid: self.system_guid.take().unwrap_or(guid),
            vendor_id: std::mem::take(&mut self.vendor_id),
            device_id: self.device_id,
            model: DeviceModel::for_device(kind, self.device_id),
            port_count,
            enhanced_port0: is_switch && header.more.contains("enhanced port 0"),
            rates: self.rates,
        })?;
        self.node = Some(node);
        let port0 = self.builder.net().port_by_number(node, 0);
        if let Some(port0) = port0.filter(|_| is_switch) {
            let (lid, lmc) = line::lid_and_lmc(header.more);
            self.builder.set_lid(port0, lid, lmc);
        }
        Ok(())
    }

    fn cable(&mut self, node: NodeId, line: &str) -> Result<(), LineError> {
        let cable = CableLine::read(line)?;
        let of = self.builder.net().node(node);
        let (kind, id, ports) = (of.kind, of.id.clone(), of.port_count);
        let port = u8::try_from(cable.number)
            .ok()
            .and_then(|number| self.builder.cable_port(node, number).ok())
            .ok_or(BuildError::NoSuchPort { id, number: cable.number, ports })?;
        if cable.is_alias {
            let alias = format!("{}@{}", self.prefix, cable.peer);
            if self.aliases.insert(alias, port).is_some() {
                return Err(LineError::DuplicateAlias(cable.peer.to_owned()));
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
                .ok_or_else(|| line::bad_number("an option", value, "w, s or e"))?;
            if !set_option(&mut rates, letter, value) {
                return Err(line::bad_number("an option", &format!("{letter}={value}"), "a mask"));
            }
        }
        if let Some(rate) = cable.rate() {
            set_rate(&mut rates, rate);
            let commented = self.commented.entry(node).or_insert(rates);
            *commented = commented.union(rates);
        }
        self.listed.insert(port);
        self.builder.set_rates(port, rates);
        if kind != NodeKind::Switch {
            if let Some(guid) = cable.guid {
                self.builder.set_guid(port, guid);
            }
            let (lid, lmc) = line::lid_and_lmc(cable.own_comment());
            self.builder.set_lid(port, lid, lmc);
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

    /// Connects the cables, now that all their ends are known.
    fn finish(mut self) -> Result<Net, NetFileError> {
        if self.builder.net().nodes.is_empty() {
            return Err(NetFileError::NoNodes);
        }
        let mut lines: HashMap<PortId, usize> = HashMap::new();
        for cable in std::mem::take(&mut self.cables) {
            let peer = self.connect(&cable, &lines);
            let peer = peer.map_err(|problem| NetFileError::Line { line: cable.line, problem })?;
            lines.entry(cable.port).or_insert(cable.line);
            lines.entry(peer).or_insert(cable.line);
        }
        self.set_unlisted_rates();
        Ok(self.builder.finish())
    }

    /// ibnetdiscover does not list ports without a link: they get the rates of the node's other
    /// ports.
    fn set_unlisted_rates(&mut self) {
        for (node, rates) in std::mem::take(&mut self.commented) {
            let of = self.builder.net().node(node);
            for port in (of.first_port..=of.first_port + u32::from(of.port_count)).map(PortId) {
                if !self.listed.contains(&port) {
                    self.builder.set_rates(port, rates);
                }
            }
        }
    }

    /// Connects a cable. `lines` has the lines of the ports that are connected already.
    fn connect(
        &mut self,
        cable: &ListedCable,
        lines: &HashMap<PortId, usize>,
    ) -> Result<PortId, LineError> {
        let label = |port| self.builder.net().label(port);
        let unknown =
            || LineError::UnknownPeer { port: label(cable.port), peer: cable.peer.clone() };
        let peer = if cable.peer.contains('@') {
            self.aliases.get(&cable.peer).copied().ok_or_else(unknown)?
        } else {
            let node = self.builder.find(&cable.peer).ok_or_else(unknown)?;
            let ports = self.builder.net().node(node).port_count;
            let number = u8::try_from(cable.peer_number).unwrap_or(u8::MAX);
            self.builder.cable_port(node, number).map_err(|_| BuildError::NoSuchPort {
                id: cable.peer.clone(),
                number: cable.peer_number,
                ports,
            })?
        };
        match self.builder.cable(cable.port, peer) {
            Err(BuildError::Taken { port, peer: to, at_peer, by }) => {
                let (end, taken) = if at_peer { (peer, &to) } else { (cable.port, &port) };
                let taken = taken.clone();
                let other = lines.get(&end).copied().unwrap_or(cable.line);
                Err(LineError::Disagree { port, peer: to, taken, by, other })
            }
            done => done.map(|()| peer).map_err(LineError::Build),
        }
    }
}
