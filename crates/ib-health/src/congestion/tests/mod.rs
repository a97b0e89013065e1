//! Small fabrics in words, and what is found in them.

mod history;
mod properties;
mod shares;
mod trees;

use std::collections::BTreeMap;

use ib_fabric::testing::{end, fabric, found};
use ib_fabric::{Fabric, PortIndex, PortMap};
use ib_mad::node::NodeKind;
use ib_mad::{Moment, PortKey};

use super::*;

/// The GUIDs of switches begin here, so that hosts come before them.
const SWITCHES: u64 = 1000;
const ROUTERS: u64 = 2000;

/// `s3:4` is port 4 of switch 3; `h` is a host, `r` a router.
fn parse_end(text: &str) -> PortKey {
    let (node, port) = text.split_once(':').unwrap();
    let number: u64 = node[1..].parse().unwrap();
    let base = match &node[..1] {
        "h" => 0,
        "s" => SWITCHES,
        "r" => ROUTERS,
        other => panic!("{other}"),
    };
    end(base + number, port.parse().unwrap())
}

fn name(fabric: &Fabric, port: PortIndex) -> String {
    let PortKey { guid, number } = fabric.port_key(port);
    match guid.0 {
        guid if guid >= ROUTERS => format!("r{}:{number}", guid - ROUTERS),
        guid if guid >= SWITCHES => format!("s{}:{number}", guid - SWITCHES),
        guid => format!("h{guid}:{number}"),
    }
}

/// A port's role, if it has one.
fn role_of(found: &CongestionReport, port: PortIndex) -> Option<Role> {
    let at = found.roles.binary_search_by_key(&port, |(port, _)| *port).ok()?;
    Some(found.roles[at].1)
}

/// A fabric and what its ports do.
#[derive(Debug)]
struct Bench {
    fabric: Fabric,
    waits: PortMap<Option<f32>>,
    used: PortMap<Option<f32>>,
}

impl Bench {
    /// `cables` as `h1:1-s1:1`, separated by blanks; a `~` for the `-` is one that was pulled.
    fn new(cables: &str) -> Bench {
        let cables: Vec<(PortKey, PortKey, bool)> = cables
            .split_whitespace()
            .map(|cable| {
                let (a, b) = cable.split_once(['-', '~']).unwrap();
                (parse_end(a), parse_end(b), cable.contains('-'))
            })
            .collect();
        Bench::of(&cables)
    }

    /// Cables by their ends, and whether they are connected.
    fn of(cables: &[(PortKey, PortKey, bool)]) -> Bench {
        let mut ports: BTreeMap<u64, u8> = BTreeMap::new();
        for PortKey { guid, number } in cables.iter().flat_map(|(a, b, _)| [a, b]) {
            let most = ports.entry(guid.0).or_default();
            *most = (*most).max(*number);
        }
        let nodes = ports.iter().map(|(guid, ports)| {
            let kind = match *guid {
                guid if guid >= ROUTERS => NodeKind::Router,
                guid if guid >= SWITCHES => NodeKind::Switch,
                _ => NodeKind::Ca,
            };
            found(*guid, kind, *ports)
        });
        let links: Vec<(PortKey, PortKey)> = cables.iter().map(|(a, b, _)| (*a, *b)).collect();
        let mut fabric = fabric(nodes.collect(), &links, None);
        for (a, b, connected) in cables {
            for end in [a, b] {
                let port = fabric.find(*end).unwrap();
                fabric.ports[port].peer.as_mut().unwrap().connected = *connected;
            }
        }
        let ports = fabric.ports.len();
        Bench { fabric, waits: PortMap::filled(ports, None), used: PortMap::filled(ports, None) }
    }

    fn find(&self, text: &str) -> PortIndex {
        self.fabric.find(parse_end(text)).unwrap_or_else(|| panic!("no {text}"))
    }

    /// `values` as `s1:1=0.5`, separated by blanks.
    fn say(&self, values: &str) -> PortMap<Option<f32>> {
        let mut all = PortMap::filled(self.fabric.ports.len(), None);
        for value in values.split_whitespace() {
            let (port, share) = value.split_once('=').unwrap();
            all[self.find(port)] = Some(share.parse().unwrap());
        }
        all
    }

    fn update(&self, congestion: &mut Congestion, at: Moment) -> CongestionReport {
        let wait = |port: PortIndex| self.waits[port];
        congestion.update(&self.fabric, wait, |port| self.used[port], at)
    }

    fn found(&self) -> CongestionReport {
        self.update(&mut Congestion::default(), Moment(7))
    }

    /// As the tables write it: `h1:1<s1:1 s1:1!SlowReceiver`.
    fn roles(&self, found: &CongestionReport) -> String {
        let roles = found.roles.iter().map(|(port, role)| {
            let port_name = name(&self.fabric, *port);
            match role {
                Role::Root(cause) => format!("{port_name}!{cause:?}"),
                Role::Victim { of } => format!("{port_name}<{}", name(&self.fabric, *of)),
            }
        });
        roles.collect::<Vec<_>>().join(" ")
    }

    /// As the tables write it: `s1:1 3/1 0.8`, ports and roots and the greatest share.
    fn regions(&self, found: &CongestionReport) -> String {
        let regions = found.regions.iter().map(|region| {
            let root = name(&self.fabric, region.root);
            format!("{root} {}/{} {}", region.ports, region.roots, region.share)
        });
        regions.collect::<Vec<_>>().join(", ")
    }
}
