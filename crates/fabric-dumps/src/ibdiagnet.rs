//! The other files of ibdiagnet2 that have cables or counters: `*.lst`, `*.net_dump` and `*.pm`.

use std::collections::HashMap;
use std::time::SystemTime;

use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortNumber};

use crate::contents::{Contents, PortName, PortRecord};
use crate::problem::Problem;
use crate::text;

/// The time in the comments at the beginning.
pub fn timestamp(text: &str) -> Option<SystemTime> {
    let mut comments = text.lines().take(20).filter_map(|line| line.strip_prefix('#'));
    let (_, time) = comments.find_map(|line| {
        line.split_once("Running timestamp").or_else(|| line.split_once("Timestamp"))
    })?;
    text::time(time.trim_start_matches([' ', ':']))
}

/// The port of a line `Port=1 Lid=0x00b4 GUID=0xb0cf0e0300d33fc0 ...`.
pub fn port_line(line: &str, number: usize) -> Result<PortName, Problem> {
    let field = |name: &str| text::field(line.split_whitespace(), name);
    let guid = text::guid(field("GUID="));
    let port = field("Port=").parse().ok();
    let (guid, port) = guid
        .zip(port)
        .ok_or_else(|| Problem::at(number, format!("{line:?} has no port or no GUID")))?;
    Ok(PortName::Port(guid, port))
}

/// Reads `*.pm`: a block per port, with a counter in each line.
pub fn parse_pm(text: &str) -> Result<Contents, Problem> {
    let mut found = Contents { taken_at: timestamp(text), ..Contents::default() };
    let mut port = None;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("Port=") {
            let key = port_line(line, index + 1)?;
            found.port(key);
            port = Some(key);
        } else if let Some((key, (name, value))) = port.zip(line.split_once('=')) {
            found.port(key).counters.set_by_name(name, false, value);
        }
    }
    Ok(found)
}

/// Reads `*.lst`: a line per cable. Its numbers are hexadecimal, without `0x`.
pub fn parse_lst(text: &str) -> Result<Contents, Problem> {
    let mut found =
        Contents { taken_at: timestamp(text), is_topology: true, ..Contents::default() };
    for (index, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("{ ")) {
        let damaged =
            || Problem::at(index + 1, "a line of *.lst has no two ends: the file is damaged");
        let (near, rest) = line[2..].split_once(" } { ").ok_or_else(damaged)?;
        let (far, state) = rest.rsplit_once(" } ").ok_or_else(damaged)?;
        let field = |name: &str| text::field(state.split_whitespace(), name);
        let record = PortRecord {
            width: text::width(field("PHY=")),
            speed: text::speed(field("SPD=")),
            state: text::port_state(field("LOG=")),
            ..PortRecord::default()
        };
        let [near, far] = [near, far].map(|end| lst_end(end, &record, &mut found));
        found.links.push(near.zip(far).ok_or_else(damaged)?);
    }
    Ok(found)
}

/// Adds an end: `CA Ports:01 SystemGUID:… NodeGUID:… PortGUID:… VenID:… DevID:… Rev:… {name} LID:00b5 PN:01`.
fn lst_end(end: &str, record: &PortRecord, found: &mut Contents) -> Option<PortName> {
    // Old versions have no name. A name may contain braces.
    let [front, name, back] = text::enclosed(end, '{', '}').unwrap_or([end, "", ""]);
    let words = front.split_whitespace().chain(back.split_whitespace());
    let field = |name: &str| text::field(words.clone(), name);
    let hex = |name: &str| u32::from_str_radix(field(name), 16).ok();
    let guid = text::guid(field("NodeGUID:"))?;
    let number = PortNumber::try_from(hex("PN:")?).ok()?;
    let lid = hex("LID:").and_then(|lid| u16::try_from(lid).ok()).filter(|lid| *lid > 0);
    let node = found.node(guid);
    node.kind = text::kind(front.split_whitespace().next()?);
    node.description = text::description(name);
    node.port_count = hex("Ports:").and_then(|count| u8::try_from(count).ok()).unwrap_or(0);
    node.system_guid = text::guid(field("SystemGUID:"));
    node.vendor_id = hex("VenID:").unwrap_or(0);
    node.device_id = hex("DevID:").unwrap_or(0) as u16;
    if node.kind == Some(NodeKind::Switch) {
        node.lid = lid;
    }
    let key = PortName::Node(guid, number);
    let guid = text::guid(field("PortGUID:"));
    found.port(key).merge(PortRecord { guid, lid, ..record.clone() });
    Some(key)
}

/// Reads `*.net_dump`: a table per switch. It names the port of a neighbor as it is labeled on the device, so the
/// neighbor's own table has the number; an adapter's port is found by its GUID.
pub fn parse_net_dump(text: &str) -> Result<Contents, Problem> {
    let mut found =
        Contents { taken_at: timestamp(text), is_topology: true, ..Contents::default() };
    let mut switch = None;
    let mut columns: Vec<&str> = Vec::new();
    let mut numbers: HashMap<(Guid, &str), PortNumber> = HashMap::new();
    let mut neighbors: Vec<(PortName, Guid, &str, &str)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some((name, rest)) = line.strip_prefix('"').and_then(|rest| rest.rsplit_once("\", "))
        {
            let mut words = rest.split(", ");
            let guid = words.find_map(|word| text::guid(word).filter(|_| word.starts_with("0x")));
            let guid = guid.ok_or_else(|| Problem::at(index + 1, "a switch has no GUID"))?;
            let node = found.node(guid);
            (node.kind, node.description) = (Some(NodeKind::Switch), text::description(name));
            node.lid = rest.rsplit_once("LID ").and_then(|(_, lid)| text::lid(lid));
            switch = Some(guid);
            continue;
        }
        if !line.contains(" : ") || line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.splitn(columns.len().max(100), " : ").map(str::trim).collect();
        if cells.contains(&"IB#") {
            columns = cells;
            continue;
        }
        let Some(guid) = switch else { continue };
        let cell = |name: &str| {
            let column = columns.iter().position(|column| *column == name);
            column.and_then(|column| cells.get(column).copied()).unwrap_or_default()
        };
        let number: PortNumber = cell("IB#").parse().map_err(|_| {
            Problem::at(index + 1, format!("{:?} is not a port number (IB#)", cell("IB#")))
        })?;
        numbers.insert((guid, cell("#")), number);
        let key = PortName::Node(guid, number);
        found.port(key).merge(PortRecord {
            state: text::port_state(cell("Sta")),
            physical_state: text::physical_state(cell("PhysSta")),
            width: text::width(cell("LWA")),
            speed: text::speed(cell("LSA")),
            fec: text::fec(cell("FEC mode")),
            ..PortRecord::default()
        });
        if let Some(neighbor) = text::guid(cell("Neighbor Guid")) {
            neighbors.push((key, neighbor, cell("N#"), cell("Neighbor Description")));
        }
    }
    for (near, guid, label, name) in neighbors {
        let is_switch = found.nodes.get(&guid).is_some_and(|it| it.kind == Some(NodeKind::Switch));
        let far = match (is_switch, numbers.get(&(guid, label))) {
            (true, Some(number)) => PortName::Node(guid, *number),
            // A switch without a table of its own, or without this label.
            (true, None) => continue,
            (false, _) => {
                let node = found.node(guid);
                (node.kind, node.description) = (Some(NodeKind::Ca), text::description(name));
                PortName::Port(guid, 1)
            }
        };
        found.links.push((near, far));
    }
    Ok(found)
}
