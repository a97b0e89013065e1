//! A stub of what other programs publish of the simulated fabric: it reads the devices as they do, and writes their formats.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use fabric_observation::Observation;
use ib_mad::counter::{Attribute, TABLE};
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortState;
use ib_mad::rate::Speed;
use ib_mad::{Guid, PortKey, pma};
use ib_sim::agents;
use ib_sim::net::PortId;
use ib_sim::simulation::Simulation;

/// A server that answers each request with what was published last.
pub struct Endpoint {
    port: u16,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Endpoint {
    pub fn start() -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer: Arc<Mutex<Vec<u8>>> = Arc::default();
        let of = Arc::clone(&answer);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let answer = of.lock().unwrap().clone();
                // One that is slow does not keep others waiting.
                std::thread::spawn(move || respond(stream.unwrap(), &answer));
            }
        });
        Endpoint { port, answer }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Answers with a body from now on.
    pub fn publish(&self, body: &str) {
        self.answer_with("200 OK", body.len(), body.as_bytes());
    }

    /// Answers with any status, length and body.
    pub fn answer_with(&self, status: &str, length: usize, body: &[u8]) {
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        *self.answer.lock().unwrap() = [head.as_bytes(), body].concat();
    }

    /// Takes requests and does not answer.
    pub fn hang(&self) {
        self.answer.lock().unwrap().clear();
    }
}

fn respond(mut stream: TcpStream, answer: &[u8]) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
        request.push(byte[0]);
    }
    if answer.is_empty() {
        // Until the client gives up.
        let _ = stream.set_read_timeout(Some(Duration::from_secs(120)));
        let _ = stream.read(&mut byte);
    }
    let _ = stream.write_all(answer);
}

/// A port as a device shows it, by the names of UFM's fields.
struct Row {
    port: PortKey,
    node_type: u8,
    description: String,
    port_count: u8,
    device: u16,
    port_guid: Guid,
    lid: u16,
    states: (u8, u8),
    rate: Option<(u8, Speed)>,
    fec: Option<u16>,
    peer: Option<(PortKey, String)>,
    counters: Vec<(String, u64)>,
}

/// All ports that respond, at one time.
pub struct Sample {
    rows: Vec<Row>,
    at: SystemTime,
}

impl Sample {
    /// Reads the devices. FEC modes, which no agent of the simulation has to be asked for again, are those that the sweep
    /// read.
    /// The time of a sample is that at which its collection began: the whole second, at which the sweep was due.
    pub fn read(world: &Simulation, observation: &Observation) -> Sample {
        let net = world.net();
        let snapshot = observation.snapshot.as_ref().expect("a sweep");
        let at = snapshot.anchor.wall_of(snapshot.began);
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs());
        let mut rows = Vec::new();
        for port in net.port_ids() {
            let built = net.port(port);
            let node = net.node_of(port);
            if built.number == 0 || built.number > node.port_count || node.is_aggregation_node() {
                continue;
            }
            // Other programs read the devices over the same fabric: one without a link has no rows.
            let mut ports = net.cable_ports(built.node);
            if !ports.any(|port| world.port(port).state == PortState::Active) {
                continue;
            }
            // The agent of a switch is at its port 0.
            let is_switch = node.kind == NodeKind::Switch;
            let agent = if is_switch { PortId(node.first_port) } else { port };
            let Some(counters) = counters(world, agent, built.number) else { continue };
            let state = world.port(port);
            let key = PortKey::new(node.guid, built.number);
            let peer = state.cable.filter(|_| state.trained.is_some()).map(|peer| {
                let (end, node) = (net.port(peer), net.node_of(peer));
                (PortKey::new(node.guid, end.number), node.description.clone())
            });
            let fec = snapshot.fabric.find(key).and_then(|port| snapshot.fec[port]);
            rows.push(Row {
                port: key,
                node_type: if is_switch { 2 } else { 1 },
                description: node.description.clone(),
                port_count: node.port_count,
                device: node.device_id,
                port_guid: built.guid,
                lid: world.port(agent).lid.0,
                states: (state.physical_state().code(), state.state.code()),
                rate: state.trained.map(|(width, speed)| (width.code(), speed)),
                fec: fec.map(|fec| fec as u16),
                peer,
                counters,
            });
        }
        Sample { rows, at }
    }

    /// The cells of a row with their names.
    fn cells(&self, row: &Row) -> Vec<(String, String)> {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let (peer, peer_name) = row.peer.clone().unzip();
        let peer = peer.unwrap_or(PortKey::new(Guid(0), 0));
        let mut cells: Vec<(String, String)> = [
            ("timestamp", since.as_micros().to_string()),
            ("source_id", row.port.guid.to_string()),
            ("tag", String::new()),
            ("Node_GUID", row.port.guid.to_string()),
            ("port_guid", row.port_guid.to_string()),
            ("Port_Number", row.port.number.to_string()),
            ("node_description", row.description.clone()),
            ("Device_ID", row.device.to_string()),
            ("lid", row.lid.to_string()),
            ("phy_state", row.states.0.to_string()),
            ("logical_state", row.states.1.to_string()),
            ("Link_speed_active", row.rate.map_or(0, |(_, speed)| packed(speed)).to_string()),
            ("Link_width_active", row.rate.map_or(0, |(width, _)| width).to_string()),
            ("Active_FEC", row.fec.map_or("N/A".into(), |code| code.to_string())),
            ("Module_Temperature", "N/A".into()),
            ("link_partner_node_guid", format!("0x{:016x}", peer.guid.0)),
            ("link_partner_port_num", peer.number.to_string()),
            ("link_partner_description", peer_name.unwrap_or_default()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        cells.extend(row.counters.iter().map(|(name, value)| (name.clone(), value.to_string())));
        cells
    }

    /// All names of counters: not every device has all.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for row in &self.rows {
            for (name, _) in self.cells(row) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    pub fn csv(&self) -> String {
        let names = self.names();
        let mut text = names.join(",") + "\n";
        for row in &self.rows {
            let cells = self.cells(row);
            let cell = |name: &String| {
                let found = cells.iter().find(|(it, _)| it == name);
                found.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            text += &(names.iter().map(cell).collect::<Vec<_>>().join(",") + "\n");
        }
        text
    }

    pub fn prometheus(&self) -> String {
        let milliseconds = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let is_label = |name: &str| {
            matches!(
                name,
                "Node_GUID"
                    | "port_guid"
                    | "Port_Number"
                    | "node_description"
                    | "Device_ID"
                    | "Active_FEC"
            ) || name.starts_with("link_partner")
        };
        let mut text = String::new();
        for row in &self.rows {
            let cells = self.cells(row);
            let labels = cells.iter().filter(|(name, value)| is_label(name) && !value.is_empty());
            let labels: Vec<String> =
                labels.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
            let labels = labels.join(",");
            for (name, value) in
                cells.iter().filter(|(name, _)| !is_label(name) && name != "timestamp")
            {
                if value.parse::<f64>().is_ok() {
                    writeln!(text, "{name}{{{labels}}} {value} {milliseconds}").unwrap();
                }
            }
        }
        text
    }

    /// What `ibdiagnet -o FOLDER` writes, complete since some time.
    pub fn write_db_csv(&self, folder: &Path) {
        let at = humantime::format_rfc3339_seconds(self.at).to_string();
        let at = at.replace('T', " ").replace('Z', " UTC +0000");
        let mut text = format!("START_RUN_INFO\nDate\n\"{at}\"\nEND_RUN_INFO\n");
        text += "START_NODES\nNodeDesc,NumPorts,NodeType,NodeGUID,PortGUID,DeviceID,VendorID,LocalPortNum\n";
        let mut last = None;
        for row in &self.rows {
            if last.replace(row.port.guid) != Some(row.port.guid) {
                let Row { description, port_count, node_type, port_guid, device, .. } = row;
                let guid = row.port.guid;
                writeln!(
                    text,
                    "\"{description}\",{port_count},{node_type},{guid},{port_guid},{device},713,1"
                )
                .unwrap();
            }
        }
        text += "END_NODES\nSTART_PORTS\nNodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkSpeedActv,PortPhyState,PortState,FECActv\n";
        for row in &self.rows {
            let (physical, logical) = row.states;
            let (width, speed) = row.rate.map_or((0, 0), |(width, speed)| (width, packed(speed)));
            let fec = row.fec.map_or("N/A".into(), |code| code.to_string());
            let PortKey { guid, number } = row.port;
            let lid = if row.node_type == 2 { 0 } else { row.lid };
            writeln!(
                text,
                "{guid},{},{number},{lid},{width},{speed},{physical},{logical},{fec}",
                row.port_guid
            )
            .unwrap();
        }
        text += "END_PORTS\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n";
        for row in &self.rows {
            if let Some((peer, _)) = row.peer.as_ref().filter(|(peer, _)| row.port < *peer) {
                let PortKey { guid, number } = row.port;
                writeln!(text, "{guid},{number},{},{}", peer.guid, peer.number).unwrap();
            }
        }
        text += "END_LINKS\nSTART_PM_INFO\nNodeGUID,PortNumber";
        let mut names: Vec<&String> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.counters) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in &names {
            write!(text, ",{name}").unwrap();
        }
        for row in &self.rows {
            write!(text, "\n{},{}", row.port.guid, row.port.number).unwrap();
            for name in &names {
                let value = row.counters.iter().find(|(it, _)| it == *name);
                write!(text, ",{}", value.map_or("NA".into(), |(_, value)| value.to_string()))
                    .unwrap();
            }
        }
        text += "\nEND_PM_INFO\n";
        let path = folder.join("ibdiagnet2.db_csv");
        std::fs::write(&path, text).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(self.at - Duration::from_secs(10)).unwrap();
    }
}

/// LinkSpeedActive as ibdiagnet packs it.
fn packed(speed: Speed) -> u32 {
    match speed {
        Speed::Sdr => 1,
        Speed::Ddr => 2,
        Speed::Qdr => 4,
        Speed::Fdr => 1 << 8,
        Speed::Edr => 1 << 9,
        Speed::Hdr => 1 << 10,
        Speed::Ndr => 1 << 11,
        Speed::Xdr => 1 << 12,
        Speed::Fdr10 => 1 << 16,
    }
}

/// What PortCountersExtended and PortCounters of a port show, by the names of the fields; `None` if its agent does not
/// respond.
fn counters(world: &Simulation, agent: PortId, number: u8) -> Option<Vec<(String, u64)>> {
    let mut found = Vec::new();
    for (attribute, suffix) in
        [(Attribute::PortCounters, ""), (Attribute::PortCountersExtended, "Extended")]
    {
        let request = pma::counters(attribute, number).request(None, 1);
        let response = agents::response(world, agent, &request)?;
        for row in TABLE {
            let field = row.fields.iter().find(|field| field.attribute == attribute);
            found.extend(
                field.map(|field| (format!("{}{suffix}", row.ibta), field.read(&response))),
            );
        }
    }
    Some(found)
}
