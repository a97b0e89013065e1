//! The output of ibnetdiscover, as it writes it and as ibdiagnet writes it (`*.ibnetdiscover`).

use std::collections::HashSet;

use ib_mad::node::NodeKind;
use ib_mad::rate::{Speed, Width};
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, NameRank, NodeName, NodeRecord, PortName, PortRecord};
use crate::lines::Line;
use crate::problem::Problem;
use crate::remark::Remark;
use crate::scan::Scan;
use crate::text;
use crate::tool_output::ToolOutput;

/// What a line of ibnetdiscover is.
enum Entry<'a> {
    /// `vendid=0x2c9`, `switchguid=0x10(10)`: of the node that follows.
    About(&'a str, &'a str),
    Node(Node<'a>),
    Port(Port<'a>),
    /// Chassis and their modules.
    Other,
}

/// `Switch 41 "S-1c34da0300728866"  # "name" base port 0 lid 1600 lmc 0`.
struct Node<'a> {
    kind: NodeKind,
    ports: u8,
    guid: Guid,
    name: &'a str,
    lid: Option<u16>,
    lmc: u8,
}

/// `[1](1c34da0300608820)  "S-0c42a103008a3ec0"[39]  # lid 837 lmc 0 "name" lid 102 4xHDR`.
struct Port<'a> {
    number: PortNumber,
    guid: Option<Guid>,
    /// Of an adapter's port.
    lid: Option<u16>,
    lmc: u8,
    peer_kind: NodeKind,
    peer: Guid,
    peer_number: PortNumber,
    peer_port_guid: Option<Guid>,
    peer_name: &'a str,
    peer_lid: Option<u16>,
    width: Option<Width>,
    speed: Option<Speed>,
    /// The line says at which rate the link runs.
    has_rate: bool,
}

/// The attributes of a node before its line.
const ABOUT: [&str; 6] = ["vendid", "devid", "sysimgguid", "switchguid", "caguid", "rtguid"];

/// How lines of chassis and modules begin.
const OTHER: [&str; 7] =
    ["Chassis", "Non-Chassis", "Spine ", "Line ", "Channel Adapters", "Routers", "Switches"];

fn entry(line: &str) -> Option<Entry<'_>> {
    if line.starts_with('[') {
        return port(line).map(Entry::Port);
    }
    if let Some(node) = node(line) {
        return Some(Entry::Node(node));
    }
    if let Some((name, value)) = line.split_once('=') {
        // With -g a comment follows: `# Chassis 1 (name)`.
        let value = value.split('#').next().unwrap_or_default().trim();
        let digits = value.split('(').next().unwrap_or_default();
        let is_value = digits.is_empty() || text::number(digits).is_some();
        return (ABOUT.contains(&name) && is_value).then_some(Entry::About(name, value));
    }
    OTHER.iter().any(|word| line.starts_with(word)).then_some(Entry::Other)
}

/// The kind of a node's line, and what follows it. Logs of terminals may have lost the tab.
fn node_line(line: &str) -> Option<(NodeKind, &str)> {
    let kinds = ["Switch", "Ca", "Hca", "Rt"];
    let (word, rest) = kinds.into_iter().find_map(|word| Some((word, line.strip_prefix(word)?)))?;
    let rest = rest.trim_start();
    let is_node = rest.starts_with(|it: char| it.is_ascii_digit()) && rest.contains('"');
    Some((text::kind(word)?, rest)).filter(|_| is_node)
}

/// The kind and the GUID in `S-1c34da0300728866`; the text if it has no GUID.
fn node_id(id: &str) -> Result<(NodeKind, Guid), String> {
    let (letter, digits) = id.split_once('-').unwrap_or(("", id));
    let kind = match letter {
        "S" => NodeKind::Switch,
        "R" => NodeKind::Router,
        _ => NodeKind::Ca,
    };
    let guid = text::guid(digits).ok_or_else(|| format!("node id {id:?} contains no GUID"))?;
    Ok((kind, guid))
}

/// Whether a text is a name, and not several lines in one.
fn is_name(text: &str) -> bool {
    !["\"S-", "\"H-", "\"R-"].iter().any(|id| text.contains(id))
}

fn quoted<'a>(scan: &mut Scan<'a>) -> Option<&'a str> {
    scan.skip("\"")?;
    scan.until("\"")
}

fn node(line: &str) -> Option<Node<'_>> {
    let (kind, rest) = node_line(line)?;
    let mut scan = Scan::new(rest);
    let ports: u8 = scan.number()?;
    let (_, guid) = node_id(quoted(&mut scan)?).ok()?;
    let mut node = Node { kind, ports, guid, name: "", lid: None, lmc: 0 };
    if scan.end().is_some() {
        return Some(node);
    }
    scan.skip("#")?;
    scan.skip("\"")?;
    node.name = scan.until_last("\"").filter(|name| is_name(name))?;
    // Of a switch: `base port 0 lid 1600 lmc 0`, `enhanced port 0 …`.
    let (lid, lmc) = lid_and_lmc(scan.rest())?;
    (node.lid, node.lmc) = (lid, lmc);
    Some(node)
}

/// `[base|enhanced port 0] [lid N [lmc N]]`.
fn lid_and_lmc(text: &str) -> Option<(Option<u16>, u8)> {
    let mut scan = Scan::new(text);
    for word in ["base", "enhanced", "port 0"] {
        let _ = scan.skip(word);
    }
    let mut found = (None, 0);
    if scan.skip("lid ").is_some() {
        let lid: u32 = scan.number()?;
        found.0 = u16::try_from(lid).ok().filter(|lid| text::is_unicast(*lid));
    }
    if scan.skip("lmc ").is_some() {
        found.1 = scan.number().filter(|lmc| *lmc < 8)?;
    }
    scan.end()?;
    Some(found)
}

/// The number in `[1]`, and the GUID in one of the following parentheses. ibdiagnet also has the label of the port there,
/// and chassis have `[ext 3]`.
fn place(scan: &mut Scan<'_>) -> Option<(PortNumber, Option<Guid>)> {
    scan.skip("[")?;
    let number = scan.until("]")?.trim().parse().ok()?;
    let mut guid = None;
    loop {
        if scan.skip("(").is_some() {
            let inner = scan.until(")")?;
            guid = guid.or(text::guid(inner).filter(|_| inner.len() > 8));
        } else if scan.skip("[").is_some() {
            scan.until("]")?;
        } else {
            return Some((number, guid));
        }
    }
}

fn port(line: &str) -> Option<Port<'_>> {
    let mut scan = Scan::new(line);
    let (number, guid) = place(&mut scan)?;
    let (peer_kind, peer) = node_id(quoted(&mut scan)?).ok()?;
    let (peer_number, peer_port_guid) = place(&mut scan)?;
    let mut port = Port {
        number,
        guid,
        lid: None,
        lmc: 0,
        peer_kind,
        peer,
        peer_number,
        peer_port_guid,
        peer_name: "",
        peer_lid: None,
        width: None,
        speed: None,
        has_rate: false,
    };
    scan.skip("#")?;
    (port.lid, port.lmc) = lid_and_lmc(scan.until("\"")?)?;
    port.peer_name = scan.until_last("\"").filter(|name| is_name(name))?;
    scan.skip("lid ")?;
    let lid: u32 = scan.number()?;
    port.peer_lid = u16::try_from(lid).ok().filter(|lid| text::is_unicast(*lid));
    // With -f: ` s=1 w=2 v=4`; modules of chassis have ` slot 3` and ` (scp)`.
    let mut rate = scan.rest();
    for more in [" s=", " slot ", " (scp)"] {
        rate = rate.split_once(more).map_or(rate, |(rate, _)| rate.trim());
    }
    if !rate.is_empty() {
        (port.width, port.speed) = text::rate(rate);
        port.has_rate = true;
        // A rate that this tool does not know, `4x ???`, is unknown.
        let is_known = port.speed.is_some() || rate.contains('?');
        (port.width.is_some() && is_known).then_some(())?;
    }
    Some(port)
}

/// Whether a whole line is one of ibnetdiscover.
pub fn is_line(line: &str) -> bool {
    !matches!(entry(line), None | Some(Entry::Other))
}

/// Whether a line begins a node: for a bound on their number before they are read.
pub fn is_node(line: &str) -> bool {
    node_line(line).is_some()
}

/// Whether a line is a damaged one of ibnetdiscover.
pub fn is_damaged(line: &str) -> bool {
    let is_port = || {
        line.strip_prefix('[').is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
            && line.contains(']')
    };
    let has_id = || ["\"S-", "\"H-", "\"R-"].iter().any(|id| line.contains(id));
    let is_about =
        || ABOUT.iter().any(|name| line.starts_with(name) && line[name.len()..].starts_with('='));
    node_line(line).is_some() || has_id() || is_port() && line.contains('"') || is_about()
}

/// What is wrong with a damaged line, as precisely as possible.
fn expected(line: &str) -> String {
    if !line.contains('"') {
        return "a GUID or number in hexadecimal digits".into();
    }
    let id = line.split('"').nth(1).unwrap_or_default();
    match node_id(id) {
        Err(problem) if line.contains('"') => format!("a GUID in hexadecimal digits: {problem}"),
        _ => "a line of ibnetdiscover, `Switch N \"S-GUID\" # \"name\" …` or `[N] \"S-GUID\"[N] # \"name\" lid N 4xEDR`"
            .into(),
    }
}

/// Reads the format with a block per node.
pub fn parse<'a>(lines: impl Iterator<Item = Line<'a>>) -> Result<Vec<Contents>, Problem> {
    let mut output = ToolOutput::new(true);
    let (mut about, mut open) = (NodeRecord::default(), None);
    let (mut blocks, mut ports) = (HashSet::new(), HashSet::new());
    let mut taken_at = None;
    for line in lines {
        match entry(line.text) {
            Some(Entry::About(name, value)) => match name {
                "vendid" => about.vendor_id = text::number(value).unwrap_or(0) as u32,
                "devid" => about.device_id = text::number(value).unwrap_or(0) as u16,
                "sysimgguid" => about.system_guid = text::guid(value),
                _ => {}
            },
            Some(Entry::Node(node)) => {
                // Each node has one block in a run of the tool.
                if !blocks.insert(node.guid) {
                    output.found.taken_at = output.found.taken_at.or(taken_at.take());
                    output.next_reading();
                    blocks = HashSet::from([node.guid]);
                }
                ports.clear();
                open = Some((node.guid, node.kind));
                node.add(&mut output.found);
                let name = NodeName::Node(node.guid);
                output.found.node(name).merge(std::mem::take(&mut about));
            }
            Some(Entry::Port(port)) => {
                let Some((guid, kind)) = open else {
                    output.damaged(
                        line,
                        "the line of its node before a port: the beginning of the file is missing",
                    )?;
                    continue;
                };
                if line.is_open && !port.has_rate {
                    output.cut_off(line);
                    continue;
                }
                if ports.insert(port.number) {
                    port.add(guid, kind, &mut output.found);
                } else {
                    let what = format!("port {} is listed twice in its block", port.number);
                    output.found.remark(Remark::unused(line.number, what));
                }
            }
            Some(Entry::Other) => {}
            None if line.text.starts_with('#') => {
                if let Some((_, time)) = line.text.split_once("Topology file: generated on ") {
                    taken_at = text::time(time);
                    output.found.is_zoneless = taken_at.is_some();
                } else {
                    taken_at = taken_at.or(text::running_timestamp(line.text));
                }
            }
            None if is_damaged(line.text) => output.damaged(line, &expected(line.text))?,
            None => output.skip(line),
        }
    }
    output.found.taken_at = output.found.taken_at.or(taken_at);
    Ok(output.finish())
}

impl Node<'_> {
    fn add(&self, found: &mut Contents) {
        let description = text::description(self.name);
        found.node(NodeName::Node(self.guid)).merge(NodeRecord {
            port_count: self.ports,
            lid: self.lid.filter(|_| self.kind == NodeKind::Switch),
            ..NodeRecord::named(Some(self.kind), description, NameRank::Device)
        });
        if self.kind == NodeKind::Switch && self.lmc > 0 {
            found.port(PortName::node(self.guid, 0)).lmc = self.lmc;
        }
    }
}

impl Port<'_> {
    fn add(self, own: Guid, kind: NodeKind, found: &mut Contents) {
        let [near, far] =
            [PortName::node(own, self.number), PortName::node(self.peer, self.peer_number)];
        let is_switch = |kind| kind == NodeKind::Switch;
        let (guid, lid) = if is_switch(kind) { (None, None) } else { (self.guid, self.lid) };
        found.port(near).merge(PortRecord {
            guid,
            lid,
            lmc: self.lmc,
            width: self.width,
            speed: self.speed,
            ..PortRecord::default()
        });
        let (guid, lid) = if is_switch(self.peer_kind) {
            (None, None)
        } else {
            (self.peer_port_guid, self.peer_lid)
        };
        if guid.is_some() || lid.is_some() {
            found.port(far).merge(PortRecord { guid, lid, ..PortRecord::default() });
        }
        // The peer's own block may be missing.
        let description = text::description(self.peer_name);
        found.node(far.node).merge(NodeRecord {
            port_count: self.peer_number,
            lid: self.peer_lid.filter(|_| is_switch(self.peer_kind)),
            ..NodeRecord::named(Some(self.peer_kind), description, NameRank::Peer)
        });
        found.links.push((near, far));
    }
}
