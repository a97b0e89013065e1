//! The output of ibnetdiscover, as it writes it and as ibdiagnet writes it (`*.ibnetdiscover`), and that of
//! `ibnetdiscover -p`.

use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, NodeRecord, PortName, PortRecord};
use crate::problem::Problem;
use crate::text;

/// Reads the format with a block per node. Lines that are neither a node nor a port are ignored: prompts of shells, logs
/// of terminals, lines of chassis.
pub fn parse(text: &str) -> Result<Contents, Problem> {
    let mut found = Contents { is_topology: true, ..Contents::default() };
    found.taken_at = crate::ibdiagnet::timestamp(text);
    let (mut about, mut open) = (NodeRecord::default(), None);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let at = |problem: String| Problem::at(index + 1, problem);
        if let Some((_, time)) = line.split_once("Topology file: generated on ") {
            found.taken_at = text::time(time);
        } else if let Some((name, value)) = line.split_once('=').filter(|_| !line.contains('"')) {
            match name {
                "vendid" => about.vendor_id = text::number(value).unwrap_or(0) as u32,
                "devid" => about.device_id = text::number(value).unwrap_or(0) as u16,
                "sysimgguid" => about.system_guid = text::guid(value),
                _ => {}
            }
        } else if let Some((kind, rest)) = node_line(line) {
            let (guid, node) = node(kind, rest).map_err(at)?;
            found.node(guid).merge(node);
            found.node(guid).merge(std::mem::take(&mut about));
            open = Some((guid, kind));
        } else if line.starts_with('[') && line.contains('"') {
            let missing = "a port without a node: the beginning of the file is missing";
            port(open.ok_or_else(|| at(missing.into()))?, line, &mut found).map_err(at)?;
        } else if line.is_empty() {
            open = None;
        }
    }
    Ok(found)
}

/// The kind of a node's line, and what follows it. Logs of terminals may have lost the tab.
pub fn node_line(line: &str) -> Option<(NodeKind, &str)> {
    let kinds = ["Switch", "Ca", "Hca", "Rt"];
    let (word, rest) = kinds.into_iter().find_map(|word| Some((word, line.strip_prefix(word)?)))?;
    let rest = rest.trim_start();
    let is_node = rest.starts_with(|it: char| it.is_ascii_digit()) && rest.contains('"');
    Some((text::kind(word)?, rest)).filter(|_| is_node)
}

/// `41 "S-1c34da0300728866"  # "name" base port 0 lid 1600 lmc 0`.
fn node(kind: NodeKind, rest: &str) -> Result<(Guid, NodeRecord), String> {
    let (count, rest) = rest.split_once('"').unwrap_or((rest, ""));
    let (id, rest) = rest.split_once('"').ok_or("the node id has no closing quote")?;
    let guid = node_guid(id)?;
    let (name, after) = comment_name(rest);
    let lid = after.split_once(" lid ").and_then(|(_, lid)| text::lid(lid.split(' ').next()?));
    let record = NodeRecord {
        kind: Some(kind),
        description: text::description(name),
        port_count: count
            .trim()
            .parse()
            .map_err(|_| format!("{count:?} is not a number of ports"))?,
        lid: lid.filter(|_| kind == NodeKind::Switch),
        ..NodeRecord::default()
    };
    Ok((guid, record))
}

/// The GUID in `S-1c34da0300728866`.
fn node_guid(id: &str) -> Result<Guid, String> {
    let digits = id.split_once('-').map_or(id, |(_, digits)| digits);
    text::guid(digits).ok_or_else(|| format!("node id {id:?} contains no GUID"))
}

/// The quoted name in a comment, and what follows it. A name may contain quotes.
fn comment_name(rest: &str) -> (&str, &str) {
    let comment = rest.split_once('#').map_or("", |(_, comment)| comment);
    let [_, name, after] = text::enclosed(comment, '"', '"').unwrap_or_default();
    (name, after)
}

/// `[1](1c34da0300608820)  "S-0c42a103008a3ec0"[39]  # lid 837 lmc 0 "name" lid 102 4xHDR`: a port of this node.
fn port((own, kind): (Guid, NodeKind), line: &str, found: &mut Contents) -> Result<(), String> {
    let (near, rest) = line.split_once('"').ok_or("no peer")?;
    let (peer, rest) = rest.split_once('"').ok_or("the peer's id has no closing quote")?;
    let (number, port_guid) = bracketed(near)?;
    let (far, comment) = rest.split_once('#').unwrap_or((rest, ""));
    let (far_number, far_guid) = bracketed(far)?;
    let far_node = node_guid(peer)?;
    let own_lid = comment.trim_start().strip_prefix("lid ").and_then(|it| it.split(' ').next());
    let (name, after) = comment_name(rest);
    let mut words = after.split_whitespace();
    let far_lid = words.clone().skip_while(|word| *word != "lid").nth(1).and_then(text::lid);
    let (width, speed) = text::rate(words.next_back().unwrap_or_default());
    let record = PortRecord { width, speed, ..PortRecord::default() };
    let [near, far] = [PortName::Node(own, number), PortName::Node(far_node, far_number)];
    let (guid, lid) = match kind {
        NodeKind::Switch => (None, None),
        _ => (port_guid, own_lid.and_then(text::lid)),
    };
    found.port(near).merge(PortRecord { guid, lid, ..record.clone() });
    let (guid, lid) = if peer.starts_with('S') { (None, None) } else { (far_guid, far_lid) };
    found.port(far).merge(PortRecord { guid, lid, ..record });
    // The peer's own block may be missing.
    found.node(far_node).merge(NodeRecord {
        kind: Some(match peer.as_bytes().first() {
            Some(b'S') => NodeKind::Switch,
            Some(b'R') => NodeKind::Router,
            _ => NodeKind::Ca,
        }),
        description: text::description(name),
        port_count: far_number,
        ..NodeRecord::default()
    });
    found.links.push((near, far));
    Ok(())
}

/// The number in `[1]`, and the GUID in one of the following parentheses. ibdiagnet also has the label of the port there,
/// and chassis have `[ext 3]`.
fn bracketed(text: &str) -> Result<(PortNumber, Option<Guid>), String> {
    let number = text.trim_start().strip_prefix('[').and_then(|rest| rest.split(']').next());
    let number = number.and_then(|number| number.parse().ok());
    let number = number.ok_or_else(|| format!("{:?} is not a port number", text.trim()))?;
    let guids = text.split('(').skip(1).filter_map(|part| part.split(')').next());
    Ok((number, guids.filter(|it| it.len() > 8).find_map(text::guid)))
}

/// Whether a line is one of `ibnetdiscover -p`.
pub fn is_port_list(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_kind = words.next().is_some_and(|it| matches!(it, "CA" | "SW" | "RT"));
    let number = |word: Option<&str>| word.is_some_and(|it| it.parse::<u32>().is_ok());
    is_kind
        && number(words.next())
        && number(words.next())
        && words.next().is_some_and(|it| it.starts_with("0x"))
}

/// Reads the format with a line per port:
/// `CA   134  1 0x7cfe9003003b4bde 4x EDR - SW  1719 10 0x7cfe9003009ce5b0 ( 'name' - 'name' )`.
pub fn parse_port_list(text: &str) -> Result<Contents, Problem> {
    let mut found = Contents { is_topology: true, ..Contents::default() };
    for (index, line) in text.lines().enumerate().filter(|(_, line)| is_port_list(line)) {
        let (fields, names) = match line.split_once(['(', '\'']) {
            Some((fields, _)) => (fields, &line[fields.len()..]),
            None => (line, ""),
        };
        let damaged =
            |what: &str| Problem::at(index + 1, format!("{what} of a port cannot be read"));
        let mut names = names.trim_matches(['(', ')', ' ', '\'']).split("' - '");
        let (near, far) = match fields.split_once(" - ") {
            Some((near, far)) => (near, Some(far)),
            None => (fields, None),
        };
        let words: Vec<&str> = near.split_whitespace().collect();
        let [kind, lid, port, guid, rest @ ..] = words.as_slice() else {
            return Err(damaged("the fields"));
        };
        let (width, speed) = match rest {
            // Of a port without a link they are left over.
            [width, speed, ..] if far.is_some() => (text::width(width), text::speed(speed)),
            _ => (None, None),
        };
        let record = PortRecord { width, speed, ..PortRecord::default() };
        let near = listed(&mut found, [kind, lid, port, guid], names.next(), record.clone())
            .ok_or_else(|| damaged("the GUID or number"))?;
        if let Some(far) = far {
            let words: Vec<&str> = far.split_whitespace().collect();
            let [kind, lid, port, guid, ..] = words.as_slice() else {
                return Err(damaged("the peer"));
            };
            let far = listed(&mut found, [kind, lid, port, guid], names.next(), record)
                .ok_or_else(|| damaged("the GUID or number of the peer"))?;
            found.links.push((near, far));
        }
    }
    Ok(found)
}

/// Adds a port. The GUID is that of the switch, or of the adapter's port.
fn listed(
    found: &mut Contents,
    [kind, lid, port, guid]: [&str; 4],
    name: Option<&str>,
    record: PortRecord,
) -> Option<PortName> {
    let (kind, guid, number) = (text::kind(kind)?, text::guid(guid)?, port.parse().ok()?);
    let lid = text::lid(lid);
    let node = found.node(guid);
    node.kind = Some(kind);
    if node.description.is_empty() {
        node.description = text::description(name.unwrap_or_default());
    }
    let is_switch = kind == NodeKind::Switch;
    node.port_count = node.port_count.max(number);
    let key = if is_switch {
        node.lid = lid;
        PortName::Node(guid, number)
    } else {
        PortName::Port(guid, number)
    };
    found.port(key).merge(PortRecord { lid: lid.filter(|_| !is_switch), ..record });
    Some(key)
}
