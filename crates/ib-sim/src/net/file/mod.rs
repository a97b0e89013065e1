//! Reads a net from a file: ibsim's own kind, or what `ibnetdiscover` printed of a real fabric.
//!
//! Both are one format. A node's line is followed by a line for each of its cables, up to the
//! first line that is neither; ids, GUIDs and rates are set by lines before. Where the reader is
//! not ibsim's, it takes more: a cable may be told at one end only, an alias before it is given,
//! and a record may end without an empty line.

mod error;
mod line;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use ib_mad::Guid;
use ib_mad::node::NodeKind;

use super::build::{BuildError, LONGEST_PREFIX, NetBuilder, NewNode};
use super::rates::{MASKS, Rates, set_option, set_rate};
use super::{Model, Net, NodeId, PortId};
pub use error::{NetFileError, Problem};
use line::{Cable, Header};

/// Reads a net.
///
/// # Errors
///
/// The first line that is wrong, and why. Lines that mean nothing are passed over, as ibsim does.
pub fn parse(text: &str) -> Result<Net, NetFileError> {
    let mut reader = Reader::default();
    for (index, text) in text.lines().enumerate() {
        reader.line = index + 1;
        let read = reader.read(text);
        read.map_err(|problem| NetFileError::Line { line: index + 1, problem })?;
    }
    reader.finish()
}

/// The kinds of nodes, as indices of the reader's GUIDs.
const KINDS: [NodeKind; 3] = [NodeKind::Switch, NodeKind::Ca, NodeKind::Router];

/// What lines begin with, and which kind it is about. No more than that is looked at, so a line of
/// prose may be a wrong node, as it is for ibsim.
const NODES: [(&str, usize); 4] = [("Switch", 0), ("Hca", 1), ("Ca", 1), ("Rt", 2)];
const GUIDS: [(&str, usize); 4] =
    [("switchguid", 0), ("hcaguids", 1), ("caguid", 1), ("rtguid", 2)];
/// What brings in another file, and what runs a command of ibsim's console: passed over, either
/// would leave another net than the one that was meant.
const UNSUPPORTED: [(&str, usize); 2] = [("include", 0), ("do", 0)];

/// The GUIDs that the next node of a kind gets.
#[derive(Clone, Copy)]
struct Guids {
    base: u64,
    next: u64,
    /// Of a switch's ports, if the file tells it apart.
    port: Option<Guid>,
}

impl Guids {
    fn from(base: u64) -> Guids {
        Guids { base, next: base, port: None }
    }
}

/// One end of a cable, as a line tells it.
struct Told {
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
    /// What the lines of a node's ports tell of rates in their comments, as ibnetdiscover does.
    seen: HashMap<NodeId, Rates>,
    /// The ports that have lines.
    named: HashSet<PortId>,
    told: Vec<Told>,
    aliases: HashMap<String, PortId>,
}

impl Default for Reader {
    fn default() -> Self {
        Reader {
            builder: NetBuilder::default(),
            line: 0,
            node: None,
            // Where ibsim begins, so that a file without GUIDs has the same ones here and there.
            guids: [Guids::from(0x20_0000), Guids::from(0x10_0000), Guids::from(0)],
            prefix: String::new(),
            vendor_id: 0,
            device_id: 0,
            system_guid: None,
            rates: Rates::default(),
            seen: HashMap::new(),
            named: HashSet::new(),
            told: Vec::new(),
            aliases: HashMap::new(),
        }
    }
}

impl Reader {
    fn read(&mut self, line: &str) -> Result<(), Problem> {
        if line.starts_with('#') {
            return Ok(()); // even between a node and its cables
        }
        if line::is_cable(line) {
            let Some(node) = self.node else { return Err(Problem::Stray) };
            return self.cable(node, line);
        }
        self.node = None;
        let of = |words: &[(&'static str, usize)]| {
            words.iter().find(|(word, _)| line.starts_with(word)).copied()
        };
        let starts = |word: &str| line.starts_with(word);
        if let Some((word, kind)) = of(&NODES) {
            self.header(kind, &line[word.len()..])
        } else if let Some((key, kind)) = of(&GUIDS) {
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
        } else if let Some((word, _)) = of(&UNSUPPORTED)
            && line[word.len()..].starts_with([' ', '\t', '"'])
        {
            Err(Problem::Unsupported(word))
        } else {
            self.rates(line)
        }
    }

    fn rates(&mut self, line: &str) -> Result<(), Problem> {
        let Some(mask) = MASKS.iter().find(|mask| line.starts_with(mask.key)) else {
            return Ok(());
        };
        let value = line::value(mask.key, line, mask.most.into(), "a mask of its bits")?;
        if mask.set(&mut self.rates, value) {
            Ok(())
        } else {
            Err(line::bad(mask.key, &value.to_string(), "a mask of its bits"))
        }
    }

    fn module(&mut self, line: &str) -> Result<(), Problem> {
        let Some((_, after)) = line.split_once('=').or_else(|| line.split_once("module")) else {
            return Err(Problem::NoValue("module"));
        };
        let (prefix, _) = line::quoted(after).ok_or(Problem::NoValue("module"))?;
        if prefix.len() > LONGEST_PREFIX || prefix.contains(['#', '@']) {
            return Err(Problem::BadPrefix(prefix.to_owned()));
        }
        prefix.clone_into(&mut self.prefix);
        Ok(())
    }

    /// `=` sets a base for GUIDs to count from, `+` goes on at a distance from it. What
    /// ibnetdiscover puts in parentheses behind a switch's is the GUID of its ports.
    fn guid_base(&mut self, kind: usize, key: &'static str, line: &str) -> Result<(), Problem> {
        let guids = &mut self.guids[kind];
        let absolute = line.split_once('=');
        let (_, text) = absolute.or_else(|| line.split_once('+')).ok_or(Problem::NoValue(key))?;
        let (value, rest) =
            line::number(text).ok_or_else(|| line::bad(key, text, "a GUID has 64 bits"))?;
        if absolute.is_some() {
            guids.base = value;
            guids.next = value;
        } else {
            guids.next = guids.base.wrapping_add(value);
        }
        guids.port = line::guid_in_parentheses(rest).map(|(guid, _)| guid);
        Ok(())
    }

    fn header(&mut self, index: usize, rest: &str) -> Result<(), Problem> {
        let header = Header::read(rest)?;
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
            // The vendor is for one node, the device for all that follow: ibsim's way.
            system_guid: self.system_guid.take().unwrap_or(guid),
            vendor_id: std::mem::take(&mut self.vendor_id),
            device_id: self.device_id,
            model: Model::of_device(kind, self.device_id),
            port_count,
            enhanced_port0: is_switch && header.more.contains("enhanced port 0"),
            rates: self.rates,
        })?;
        self.node = Some(node);
        let port0 = self.builder.net().port_of(node, 0);
        if let Some(port0) = port0.filter(|_| is_switch) {
            let (lid, lmc) = line::lid_and_lmc(header.more);
            self.builder.set_lid(port0, lid, lmc);
        }
        Ok(())
    }

    fn cable(&mut self, node: NodeId, line: &str) -> Result<(), Problem> {
        let cable = Cable::read(line)?;
        let of = self.builder.net().node(node);
        let (kind, id, ports) = (of.kind, of.id.clone(), of.port_count);
        let port = u8::try_from(cable.number)
            .ok()
            .and_then(|number| self.builder.plug(node, number).ok())
            .ok_or(BuildError::NoSuchPort { id, number: cable.number, ports })?;
        if cable.is_alias {
            let alias = format!("{}@{}", self.prefix, cable.peer);
            if self.aliases.insert(alias, port).is_some() {
                return Err(Problem::DuplicateAlias(cable.peer.to_owned()));
            }
        } else {
            self.told.push(Told {
                line: self.line,
                port,
                peer: self.in_module(cable.peer),
                peer_number: cable.peer_number.unwrap_or(1),
            });
        }
        let mut rates = self.rates;
        for (letter, value) in cable.options() {
            let (value, _) =
                line::number(value).ok_or_else(|| line::bad("an option", value, "w, s or e"))?;
            if !set_option(&mut rates, letter, value) {
                return Err(line::bad("an option", &format!("{letter}={value}"), "a mask"));
            }
        }
        if let Some(rate) = cable.rate() {
            set_rate(&mut rates, rate);
            let seen = self.seen.entry(node).or_insert(rates);
            *seen = seen.or(rates);
        }
        self.named.insert(port);
        self.builder.set_rates(port, rates);
        if kind != NodeKind::Switch {
            if let Some(guid) = cable.guid {
                self.builder.set_guid(port, guid);
            }
            let (lid, lmc) = line::lid_and_lmc(cable.about_itself());
            self.builder.set_lid(port, lid, lmc);
        }
        Ok(())
    }

    /// A node's id, or an alias, as the module that the reader is in means it. `#` alone in front
    /// leads out of all modules, for which ibsim has no means.
    fn in_module(&self, id: &str) -> String {
        match id.strip_prefix('#') {
            Some(outside) if !self.prefix.is_empty() => outside.to_owned(),
            _ if id.starts_with('@') => format!("{}{id}", self.prefix),
            _ if self.prefix.is_empty() || id.contains(['#', '@']) => id.to_owned(),
            _ => format!("{}#{id}", self.prefix),
        }
    }

    /// Plugs in the cables, now that all their ends are known.
    fn finish(mut self) -> Result<Net, NetFileError> {
        if self.builder.net().nodes.is_empty() {
            return Err(NetFileError::NoNodes);
        }
        let mut said: HashMap<PortId, usize> = HashMap::new();
        for told in std::mem::take(&mut self.told) {
            let peer = self.plug(&told, &said);
            let peer = peer.map_err(|problem| NetFileError::Line { line: told.line, problem })?;
            said.entry(told.port).or_insert(told.line);
            said.entry(peer).or_insert(told.line);
        }
        self.fill_in();
        Ok(self.builder.finish())
    }

    /// Of a port without a link ibnetdiscover prints nothing: it can do what the node's others can.
    fn fill_in(&mut self) {
        for (node, rates) in std::mem::take(&mut self.seen) {
            let of = self.builder.net().node(node);
            for port in (of.first_port..=of.first_port + u32::from(of.port_count)).map(PortId) {
                if !self.named.contains(&port) {
                    self.builder.set_rates(port, rates);
                }
            }
        }
    }

    fn plug(&mut self, told: &Told, said: &HashMap<PortId, usize>) -> Result<PortId, Problem> {
        let label = |port| self.builder.net().label(port);
        let unknown = || Problem::UnknownPeer { port: label(told.port), peer: told.peer.clone() };
        let peer = if told.peer.contains('@') {
            self.aliases.get(&told.peer).copied().ok_or_else(unknown)?
        } else {
            let node = self.builder.find(&told.peer).ok_or_else(unknown)?;
            let ports = self.builder.net().node(node).port_count;
            let number = u8::try_from(told.peer_number).unwrap_or(u8::MAX);
            self.builder.plug(node, number).map_err(|_| BuildError::NoSuchPort {
                id: told.peer.clone(),
                number: told.peer_number,
                ports,
            })?
        };
        match self.builder.cable(told.port, peer) {
            Err(BuildError::Taken { port, peer: to, at_peer, by }) => {
                let (end, taken) = if at_peer { (peer, &to) } else { (told.port, &port) };
                let taken = taken.clone();
                let other = said.get(&end).copied().unwrap_or(told.line);
                Err(Problem::Disagree { port, peer: to, taken, by, other })
            }
            done => done.map(|()| peer).map_err(Problem::Build),
        }
    }
}
