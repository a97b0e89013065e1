//! `/api/v1/search`: what goes by a name, a GUID, a LID, a cable's id, or `node[port]`.

use std::sync::Arc;

use crate::api::address;
use fabric_observation::{Board, Observation};
use ib_fabric::topology::{End, LinkId};
use ib_fabric::{NodeIndex, PortIndex, Snapshot, unique};
use ib_mad::label;
use ib_mad::label::natural_key;
use ib_mad::{Guid, Lid, PortNumber};

use super::model::search::{Hit, Search};
use super::overview;

/// So many hits are told.
pub const MOST: usize = 100;

/// How well something fits, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Exact,
    Prefix,
    Substring,
}

impl Fit {
    fn label(self) -> &'static str {
        match self {
            Fit::Exact => "exact",
            Fit::Prefix => "prefix",
            Fit::Substring => "substring",
        }
    }

    /// How what is sought fits to a name, both in lower case.
    fn of(name: &str, sought: &str) -> Option<Fit> {
        match name.find(sought)? {
            0 if name.len() == sought.len() => Some(Fit::Exact),
            0 => Some(Fit::Prefix),
            _ => Some(Fit::Substring),
        }
    }
}

/// What can be meant by a text.
struct Sought {
    text: String,
    guid: Option<Guid>,
    lid: Option<Lid>,
    link: Option<LinkId>,
    port: Option<(String, PortNumber)>,
}

impl Sought {
    fn new(text: &str) -> Self {
        let text = text.trim().to_lowercase();
        let hexadecimal = text.strip_prefix("0x");
        let lid = match hexadecimal {
            Some(digits) => u16::from_str_radix(digits, 16),
            None => text.parse(),
        };
        Sought {
            guid: text.parse().ok(),
            lid: lid.ok().map(Lid).filter(|lid| lid.is_unicast()),
            link: text.parse().ok(),
            port: port(&text),
            text,
        }
    }
}

/// `node[5]`, `0x…:5`, and `node port 5`, as evidence has it.
fn port(text: &str) -> Option<(String, PortNumber)> {
    let bracketed = text.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    let split = bracketed.or_else(|| text.rsplit_once(" port ")).or_else(|| text.rsplit_once(':'));
    let (node, number) = split?;
    Some((node.trim().to_owned(), number.trim().parse().ok()?))
}

/// Something that fits.
struct Found<'a> {
    fit: Fit,
    by: &'static str,
    observation: &'a Observation,
    snapshot: &'a Snapshot,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Node(NodeIndex),
    Port(PortIndex),
    Link(PortIndex),
}

/// What fits to a text. Of a node that fits in two ways the better one is told.
pub fn search(board: &Board, text: &str) -> Search {
    let sought = Sought::new(text);
    let mut told = Search { sought: text.trim().to_owned(), ..Search::default() };
    if sought.text.is_empty() {
        return told;
    }
    let mut found = Vec::new();
    for observation in &board.fabrics {
        if let Some(snapshot) = &observation.snapshot {
            look(observation, snapshot, &sought, &mut found);
        }
    }
    let mut devices = devices(board, &sought.text);
    devices.sort_by_key(|(fit, _)| *fit);
    told.found = found.len() + devices.len();
    if found.len() > MOST {
        found.select_nth_unstable_by(MOST, Found::order);
        found.truncate(MOST);
    }
    found.sort_by(Found::order);
    let mut hits: Vec<(Fit, Hit)> = found.iter().map(|it| (it.fit, it.told())).collect();
    hits.extend(devices);
    hits.sort_by_key(|(fit, _)| *fit);
    told.hits = hits.into_iter().take(MOST).map(|(_, hit)| hit).collect();
    told
}

fn look<'a>(
    observation: &'a Arc<Observation>,
    snapshot: &'a Snapshot,
    sought: &Sought,
    found: &mut Vec<Found<'a>>,
) {
    let fabric = &snapshot.fabric;
    let mut take = |fit, by, what| found.push(Found { fit, by, observation, snapshot, what });
    if let Some(port) = sought
        .link
        .and_then(|LinkId(a, b)| fabric.find(a).zip(fabric.find(b)))
        .filter(|&(a, b)| fabric.port(a).peer.is_some_and(|peer| peer.port == b))
    {
        take(Fit::Exact, "link", What::Link(port.0));
    }
    for index in fabric.node_indexes() {
        let node = fabric.node(index);
        let name = node.name.to_lowercase();
        let guid = node.identity.guid;
        let shared = unique::shared_name(&name, guid);
        if let Some((of, number)) = &sought.port
            && (name == *of || shared == *of || of.parse() == Ok(guid))
            && let Some(port) = fabric.find((guid, *number))
        {
            take(Fit::Exact, "port", What::Port(port));
        }
        let mut best = Fit::of(&name, &sought.text).map(|fit| (fit, "name"));
        if sought.guid == Some(guid) {
            best = Some((Fit::Exact, "guid"));
        } else if best.is_none() && is_beginning_of(guid, &sought.text) {
            best = Some((Fit::Prefix, "guid"));
        }
        let exact = best.is_some_and(|(fit, _)| fit == Fit::Exact);
        let mut of_ports = None;
        for port in fabric.ports_of(index).filter(|_| !exact) {
            let (port_guid, status) = (fabric.port(port).guid, fabric.port(port).status);
            if sought.guid == Some(port_guid) && port_guid != Guid::default() {
                of_ports = Some((port, "port_guid"));
            } else if status.is_some_and(|status| sought.lid == Some(status.lid))
                && of_ports.is_none()
            {
                of_ports = Some((port, "lid"));
            }
        }
        match (of_ports, best) {
            // A switch's port 0 is the switch.
            (Some((port, by)), _) if fabric.port(port).number == 0 => {
                take(Fit::Exact, by, What::Node(index));
            }
            (Some((port, by)), _) => take(Fit::Exact, by, What::Port(port)),
            (None, Some((fit, by))) => take(fit, by, What::Node(index)),
            (None, None) => {}
        }
    }
}

/// Whether a GUID begins with what is sought, which must look like the beginning of one.
fn is_beginning_of(guid: Guid, text: &str) -> bool {
    text.len() > 4 && text.starts_with("0x") && guid.to_string().starts_with(text)
}

impl Found<'_> {
    /// The better first, then by name.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let fabrics = || self.observation.fabric.cmp(&other.observation.fabric);
        (self.fit.cmp(&other.fit))
            .then_with(|| natural_key(self.name()).cmp(&natural_key(other.name())))
            .then_with(fabrics)
            .then_with(|| self.end().cmp(&other.end()))
    }

    fn end(&self) -> End {
        let fabric = &self.snapshot.fabric;
        match self.what {
            What::Node(node) => (fabric.node(node).identity.guid, 0),
            What::Port(port) | What::Link(port) => fabric.end(port),
        }
    }

    fn name(&self) -> &str {
        let fabric = &self.snapshot.fabric;
        match self.what {
            What::Node(node) => &fabric.node(node).name,
            What::Port(port) | What::Link(port) => &fabric.node_of(port).name,
        }
    }

    fn told(&self) -> Hit {
        let (fabric, name) = (&self.snapshot.fabric, &self.observation.fabric);
        let label =
            |port: PortIndex| label::port(&fabric.node_of(port).name, fabric.port(port).number);
        let (kind, called, id, page) = match self.what {
            What::Node(node) => {
                let node = fabric.node(node);
                let guid = node.identity.guid;
                ("node", node.name.clone(), guid.to_string(), address::node(name, guid))
            }
            What::Port(port) => {
                let end = fabric.end(port);
                let page = match fabric.link_id(port) {
                    Some(link) => address::link(name, link),
                    None => address::port_of_node(name, end),
                };
                ("port", label(port), end.0.to_string(), page)
            }
            What::Link(port) => {
                let peer = fabric.port(port).peer.map_or(port, |peer| peer.port);
                let link = LinkId::between(fabric.end(port), fabric.end(peer));
                let called = format!("{} – {}", label(port), label(peer));
                ("link", called, link.to_string(), address::link(name, link))
            }
        };
        Hit {
            kind: kind.into(),
            fabric: name.clone(),
            name: called,
            id,
            by: self.by.into(),
            fits: self.fit.label().into(),
            page,
        }
    }
}

/// This host's devices that are called so, or have an interface that is.
fn devices(board: &Board, sought: &str) -> Vec<(Fit, Hit)> {
    let all = board.host.iter().flat_map(|seen| overview::devices(seen));
    let found = all.filter_map(|(device, guid)| {
        let interfaces = device.ports.iter().flat_map(|port| &port.netdevs);
        let names = std::iter::once(&device.name).chain(interfaces.map(|netdev| &netdev.name));
        let fit = names.filter_map(|name| Fit::of(&name.to_lowercase(), sought)).min()?;
        let hit = Hit {
            kind: "device".into(),
            fabric: overview::node_in(&board.fabrics, guid).unwrap_or_default(),
            name: device.name.to_string(),
            id: device.about.guid.map(|guid| guid.to_string()).unwrap_or_default(),
            by: "name".into(),
            fits: fit.label().into(),
            page: address::device(&device.name),
        };
        Some((fit, hit))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_observation::host::HostObservation;
    use ib_health::testing::snapshot;
    use rdma_host::testing::{port as host_port, snapshot as host_snapshot};

    /// A leaf with two hosts: the LID of a node is its GUID, and a port's GUID is that of its node with its
    /// number behind it.
    fn board() -> Board {
        let swept = Observation {
            fabric: "f".into(),
            snapshot: Some(snapshot()),
            ..Observation::default()
        };
        let host = HostObservation {
            snapshot: Some(host_snapshot("mlx5_0", vec![host_port(1)])),
            ..HostObservation::default()
        };
        let unswept = Observation { fabric: "g".into(), ..Observation::default() };
        let fabrics = vec![Arc::new(unswept), Arc::new(swept)];
        Board { fabrics, host: Some(Arc::new(host)), ..Board::default() }
    }

    #[test]
    fn what_goes_by_a_text_is_found_by_it() {
        let board = board();
        let link = "/link/0x0000000000000001:1-0x0000000000000002:1?fabric=f";
        let (leaf, host) =
            ("/node/0x0000000000000001?fabric=f", "/node/0x0000000000000002?fabric=f");
        for (text, fits, page) in [
            ("LEAF", "name, exact", leaf),
            (" lea ", "name, prefix", leaf),
            ("st-a", "name, substring", host),
            ("0x0000000000000002", "guid, exact", host),
            ("0000000000000002", "guid, exact", host),
            // A LID, too, and of the same node.
            ("0x2", "guid, exact", host),
            ("2", "guid, exact", host),
            ("0x000000000000000", "guid, prefix", host),
            // An adapter's port by its own GUID, and by its LID.
            ("0x201", "port_guid, exact", link),
            ("0x0000000000000001:1-0x0000000000000002:1", "link, exact", link),
            // Whichever end is named first.
            ("0x2:1-0x1:1", "link, exact", link),
            ("leaf[1]", "port, exact", link),
            ("leaf port 1", "port, exact", link),
            ("0x1:1", "port, exact", link),
            // A port without a cable is on its node's page.
            ("leaf[3]", "port, exact", "/node/0x0000000000000001?fabric=f#port-3"),
            ("mlx5", "name, prefix", "/host#mlx5_0"),
        ] {
            let told = search(&board, text);
            let hit = told.hits.first().unwrap_or_else(|| panic!("{text}: nothing"));
            assert_eq!(
                (format!("{}, {}", hit.by, hit.fits).as_str(), &*hit.page),
                (fits, page),
                "{text}"
            );
        }
        for nothing in
            ["", "  ", "nobody", "leaf[9]", "leaf[999]", "0x1:1-0x3:1", "0xfff0", "99999"]
        {
            assert_eq!(search(&board, nothing).found, 0, "{nothing}");
        }
    }

    #[test]
    fn a_shared_name_finds_each_of_its_nodes() {
        let mut board = board();
        let seen = board.fabrics.iter_mut().find(|it| it.snapshot.is_some()).unwrap();
        let snapshot = Arc::make_mut(seen).snapshot.as_mut().unwrap();
        let mut nodes = (*snapshot.fabric).clone();
        for node in &mut nodes.nodes {
            node.name = format!("Q2#{:06x}", node.identity.guid.0);
        }
        snapshot.fabric = Arc::new(nodes);
        let names = |text: &str| -> Vec<String> {
            search(&board, text).hits.iter().map(|hit| hit.name.clone()).collect()
        };
        let all = names("q2");
        assert!(all.len() > 1 && all.iter().all(|name| name.starts_with("Q2#0000")), "{all:?}");
        assert_eq!(names("q2[1]").len(), all.len(), "port 1 of each");
        assert_eq!(names("Q2#000001 port 1"), ["Q2#000001 port 1"]);
        assert_eq!(names("Q2#000001")[0], "Q2#000001");
    }

    #[test]
    fn the_better_comes_first_and_all_are_counted() {
        let told = search(&board(), "host");
        let names: Vec<&str> = told.hits.iter().map(|hit| &*hit.name).collect();
        assert_eq!((told.found, names), (2, vec!["host-a", "host-b"]));
        assert_eq!(Fit::of("host-1", "host-1"), Some(Fit::Exact));
        assert!(Fit::Exact < Fit::Prefix && Fit::Prefix < Fit::Substring);
    }
}
