//! `/api/v1/search`: nodes, ports, links and devices by name, host, GUID, LID, link id, or port in any spelling; cables
//! and modules by serial or part number.

use std::borrow::Cow;
use std::collections::HashMap;

use display_text::{NaturalPart, natural_key};
use fabric_history::cable_life::{MIN_PREFIX, begins_with};
use fabric_observation::SharedState;
use ib_fabric::hardware::PortHardware;
use ib_fabric::reference::{Reference, join_blanks};
use ib_fabric::topology::LinkId;
use ib_fabric::{Fabric, NodeIndex, NodeMap, PortIndex};
use ib_mad::{Guid, PortKey, register};

use crate::condition::DownNodes;
use crate::link_row::LinkRow;
use crate::model::{CUT_OFF, DOWN, Hit, HitKind, LEARNING, Label, Quality, Search, Verdicts};
use crate::view::FabricView;
use crate::{address, overview};

/// The most hits of a response.
const MAX_HITS: usize = 100;

/// What matched: a serial number, or a part number.
pub const SERIAL: &str = "serial_number";
/// See [`SERIAL`].
pub const PART: &str = "part_number";
/// What is printed beside a port.
const FRONT_PANEL: &str = "front_panel";
/// What labels at a front panel without slashes begin with.
const PANEL_WORDS: [&str; 4] = ["sw", "fnm", "ib", "gpu"];

/// How a name matches the text; both must be in lower case.
fn quality_of(name: &str, text: &str) -> Option<Quality> {
    match name.find(text)? {
        0 if name.len() == text.len() => Some(Quality::Exact),
        0 => Some(Quality::Prefix),
        _ => Some(Quality::Substring),
    }
}

/// A match in a fabric and its place in the order: the better match first, then by name, fabric, GUID and port.
type FabricHit<'a> = ((Quality, Vec<NaturalPart<'a>>, &'a str, PortKey), Found<'a>);

/// A match before its model is built: only the best ones get one.
struct Found<'a> {
    view: FabricView<'a>,
    quality: Quality,
    matched: &'static str,
    node: NodeIndex,
    port: Option<PortIndex>,
}

/// Everything that matches a text. A node that matches in two ways is listed once, by the better.
pub fn search(state: &SharedState, text: &str) -> Search {
    let terms = Reference::new(text);
    let mut result = Search { query: terms.text.clone(), ..Search::default() };
    if terms.text.is_empty() {
        return result;
    }
    let mut in_fabrics = Vec::new();
    for view in state.fabrics.iter().filter_map(|observation| FabricView::new(observation)) {
        search_fabric(view, &terms, &mut in_fabrics);
    }
    let devices = devices(state, &terms);
    result.found = in_fabrics.len() + devices.len();
    in_fabrics.sort_by(|(place, _), (other, _)| place.cmp(other));
    let mut states: HashMap<&str, States<'_>> = HashMap::new();
    let in_fabrics = in_fabrics.into_iter().take(MAX_HITS).map(|(place, found)| {
        let view = found.view;
        let states = states.entry(view.name).or_insert_with(|| States::new(view));
        let state = states.of(found.node, found.port);
        (place.0, Hit { state, ..found.hit() })
    });
    let mut hits: Vec<(Quality, Hit)> = in_fabrics.collect();
    hits.extend(devices);
    // A stable sort: the hits of fabrics come first among equals.
    hits.sort_by_key(|(quality, _)| *quality);
    result.hits = hits.into_iter().take(MAX_HITS).map(|(_, hit)| hit).collect();
    result
}

/// The states of the nodes and links of a fabric.
struct States<'a> {
    down: DownNodes,
    /// Of the links of each node.
    verdicts: NodeMap<Verdicts>,
    links: HashMap<PortIndex, LinkRow<'a>>,
}

impl<'a> States<'a> {
    fn new(view: FabricView<'a>) -> Self {
        let fabric = &view.snapshot.fabric;
        let mut verdicts = NodeMap::filled(fabric.nodes.len(), Verdicts::default());
        let mut links = HashMap::new();
        for link in view.links() {
            for port in link.all_ports() {
                links.insert(port, link);
            }
            // A loopback plug counts at both of its ports.
            let ports = link.ports().map(|port| fabric.port(port).node);
            let nodes = if link.whole().is_some() { link.nodes() } else { ports.to_vec() };
            for node in nodes {
                verdicts[node].add_link(&link);
            }
        }
        States { down: DownNodes::find(view), verdicts, links }
    }

    /// The state of a node, or of the link at one of its ports.
    fn of(&self, node: NodeIndex, port: Option<PortIndex>) -> Option<Label> {
        let state = match (self.down.get(node), port) {
            (Some(down), _) if down.behind.is_some() => CUT_OFF,
            (Some(_), _) => DOWN,
            (None, None) => self.verdicts[node].worst_shown(),
            (None, Some(port)) => {
                let link = self.links.get(&port)?;
                if link.learning().is_some() { LEARNING } else { link.verdict().label() }
            }
        };
        Some(state.into())
    }
}

fn search_fabric<'a>(view: FabricView<'a>, terms: &Reference, hits: &mut Vec<FabricHit<'a>>) {
    let fabric = &view.snapshot.fabric;
    let text = terms.text.to_lowercase();
    let joined = join_blanks(&text);
    let mut add = |quality, matched, index: NodeIndex, port: Option<PortIndex>| {
        let node = fabric.node(index);
        let number = port.map_or(0, |port| fabric.port(port).number);
        let place =
            (quality, natural_key(&node.name), view.name, PortKey::new(node.identity.guid, number));
        hits.push((place, Found { view, quality, matched, node: index, port }));
    };
    if let Some(LinkId { low: a, high: b }) = terms.link
        && let Some((a, b)) = fabric.find(a).zip(fabric.find(b))
        && fabric.port(a).peer.is_some_and(|peer| peer.port == b)
    {
        add(Quality::Exact, "link", fabric.port(a).node, Some(a));
    }
    for (quality, matched, port) in cables(view, &terms.text) {
        add(quality, matched, fabric.port(port).node, Some(port));
    }
    for index in fabric.node_indexes() {
        let node = fabric.node(index);
        let name = node.name.to_lowercase();
        let guid = node.identity.guid;
        let host = node.host.as_ref().map(|host| host.to_lowercase());
        for port in &terms.ports {
            let of_host = || host.as_deref() == Some(&*port.node.to_lowercase());
            if (port.is_at(&node.name, guid, port.number) || of_host())
                && let Some(port) = fabric.find(PortKey::new(guid, port.number))
            {
                add(Quality::Exact, "port", index, Some(port));
            }
        }
        for (quality, port) in by_front_panel(fabric, index, terms) {
            add(quality, FRONT_PANEL, index, Some(port));
        }
        // The same name with fewer blanks is not as good.
        let by_joined = || {
            let name = join_blanks(&name);
            // Most names have no two blanks in a row: then it is the same comparison.
            let differs = matches!(name, Cow::Owned(_)) || matches!(joined, Cow::Owned(_));
            let quality = if differs { quality_of(&name, &joined) } else { None };
            quality.map(|it| it.max(Quality::Prefix))
        };
        let by_name = quality_of(&name, &text).or_else(by_joined);
        let mut best = by_name.map(|quality| (quality, "name"));
        // The host is a part of the name: only all of it is a better match.
        if host.as_ref() == Some(&text) && best != Some((Quality::Exact, "name")) {
            best = Some((Quality::Exact, "host"));
        }
        if terms.guid == Some(guid) {
            best = Some((Quality::Exact, "guid"));
        } else if best.is_none() && is_prefix_of(guid, &text) {
            best = Some((Quality::Prefix, "guid"));
        }
        let exact = best.is_some_and(|(quality, _)| quality == Quality::Exact);
        let mut of_ports = None;
        for port in fabric.ports_of(index).filter(|_| !exact) {
            let (port_guid, status) = (fabric.port(port).guid, fabric.port(port).status);
            if terms.guid == Some(port_guid) && port_guid != Guid::default() {
                of_ports = Some((port, "port_guid"));
            } else if status.is_some_and(|status| terms.lid == Some(status.lid))
                && of_ports.is_none()
            {
                of_ports = Some((port, "lid"));
            }
        }
        match (of_ports, best) {
            (Some((port, matched)), _) => {
                // Port 0 of a switch represents the switch.
                let port = Some(port).filter(|port| fabric.port(*port).number > 0);
                add(Quality::Exact, matched, index, port);
            }
            (None, Some((quality, matched))) => add(quality, matched, index, None),
            (None, None) => {}
        }
    }
}

/// The ports of a node that are called so at the front panel: behind the node's name they are meant; alone, it may be a
/// port of any switch.
fn by_front_panel<'a>(
    fabric: &'a Fabric,
    node: NodeIndex,
    terms: &'a Reference,
) -> impl Iterator<Item = (Quality, PortIndex)> + 'a {
    let of = fabric.node(node);
    let is_reported = !fabric.front_panels.is_empty();
    let behind = || terms.front_panel_of(&of.name, of.identity.guid);
    let behind = is_reported.then(behind).flatten();
    // Most searches are for names of nodes, which need not be compared with those of all ports.
    let is_alone = |text: &&str| {
        let begins = |word: &str| {
            text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        };
        text.contains('/') || PANEL_WORDS.into_iter().any(begins)
    };
    let (quality, called) = match behind {
        Some(panel) => (Quality::Exact, Some(panel)),
        None => (Quality::Prefix, Some(&*terms.text).filter(|text| is_reported && is_alone(text))),
    };
    // A number is that of the subnet.
    let called = called.filter(|text| text.bytes().any(|byte| !byte.is_ascii_digit()));
    let ports = called.into_iter().flat_map(move |_| fabric.ports_of(node));
    let is_it = move |port: &PortIndex| {
        let panel = fabric.front_panel(*port);
        panel.zip(called).is_some_and(|(panel, called)| panel.is_called(called))
    };
    ports.filter(is_it).map(move |port| (quality, port))
}

/// The ports that have a cable or module with a serial or part number that is the text, or begins with it. Both ends of
/// a cable are one match.
fn cables<'a>(
    view: FabricView<'a>,
    text: &'a str,
) -> impl Iterator<Item = (Quality, &'static str, PortIndex)> + 'a {
    let fabric = &view.snapshot.fabric;
    let find = move |port: PortIndex| {
        let module = view.hardware(port).and_then(PortHardware::plugged)?;
        let matches = |field: &[u8]| {
            let number = register::text(field);
            begins_with(&number, text).then_some(if number.len() == text.len() {
                Quality::Exact
            } else {
                Quality::Prefix
            })
        };
        let serial = matches(&module.serial_number).map(|quality| (quality, SERIAL));
        serial.into_iter().chain(matches(&module.part_number).map(|quality| (quality, PART))).min()
    };
    let is_enough = text.len() >= MIN_PREFIX;
    fabric.port_indexes().filter(move |_| is_enough).filter_map(move |port| {
        let (quality, matched) = find(port)?;
        let peer = fabric.port(port).peer.map(|peer| peer.port).filter(|peer| *peer < port);
        let is_other_end = peer.and_then(find).is_some_and(|other| other == (quality, matched));
        (!is_other_end).then_some((quality, matched, port))
    })
}

/// Whether a GUID begins with the text, which must look like the beginning of one.
fn is_prefix_of(guid: Guid, text: &str) -> bool {
    text.len() > 4 && text.starts_with("0x") && guid.to_string().starts_with(text)
}

impl Found<'_> {
    /// The model of a match without its state: a node, or one of its ports, or the link at that port.
    fn hit(&self) -> Hit {
        let Found { view: FabricView { name, snapshot, .. }, quality, matched, node, port } = *self;
        let fabric = &snapshot.fabric;
        let of_node = fabric.node(node);
        let guid = of_node.identity.guid;
        let port_label = |port| snapshot.fabric.port_label(port);
        let (kind, label, id, page) = match port {
            None => {
                (HitKind::Node, of_node.name.clone(), guid.to_string(), address::node(name, guid))
            }
            Some(port)
                if matched == "link"
                    || [SERIAL, PART].contains(&matched) && fabric.link_id(port).is_some() =>
            {
                let port = fabric.aggregated_link(port).map_or(port, |link| link.lead().low);
                let peer = fabric.port(port).peer.map_or(port, |peer| peer.port);
                let link = LinkId::between(fabric.port_key(port), fabric.port_key(peer));
                let label = format!("{} – {}", port_label(port), port_label(peer));
                (HitKind::Link, label, link.to_string(), address::link(name, link))
            }
            Some(port) => {
                let page = match fabric.link_id(port) {
                    Some(link) => address::link(name, link),
                    None => address::port_of_node(name, guid, fabric.port(port).number),
                };
                (HitKind::Port, port_label(port), guid.to_string(), page)
            }
        };
        Hit {
            kind: kind.label().into(),
            fabric: name.to_owned(),
            name: label,
            id,
            matched: matched.into(),
            quality: quality.label().into(),
            state: None,
            page,
        }
    }
}

/// The devices of this host, also missing ones, that match by their own name, by that of a network interface, or by
/// their GUID. The GUID of a device that is present in a fabric finds its node there.
fn devices(state: &SharedState, terms: &Reference) -> Vec<(Quality, Hit)> {
    let text = terms.text.to_lowercase();
    let hit = |name: &str, guid: Option<Guid>, interfaces: &[&str], is_missing| {
        let names = std::iter::once(name).chain(interfaces.iter().copied());
        let by_name = names.filter_map(|name| quality_of(&name.to_lowercase(), &text)).min();
        let fabric = overview::node_in(&state.fabrics, guid);
        let own = guid.filter(|guid| guid.0 != 0 && (is_missing || fabric.is_none()));
        let by_guid = own.and_then(|guid| match guid {
            guid if terms.guid == Some(guid) => Some(Quality::Exact),
            guid => is_prefix_of(guid, &text).then_some(Quality::Prefix),
        });
        let by_name = by_name.map(|quality| (quality, "name"));
        let (quality, matched) = by_name.into_iter().chain(by_guid.map(|it| (it, "guid"))).min()?;
        let hit = Hit {
            kind: HitKind::Device.label().into(),
            fabric: fabric.unwrap_or_default(),
            name: name.to_owned(),
            id: overview::guid_text(guid),
            matched: matched.into(),
            quality: quality.label().into(),
            state: None,
            page: address::device(name),
        };
        Some((quality, hit))
    };
    let Some(observation) = &state.host else { return Vec::new() };
    let present = observation.snapshot.iter().flat_map(|snapshot| &snapshot.devices);
    let present = present.filter_map(|device| {
        let netdevs = device.ports.iter().flat_map(|port| &port.netdevs);
        let interfaces: Vec<&str> = netdevs.map(|netdev| &*netdev.name).collect();
        hit(&device.name, device.info.guid, &interfaces, false)
    });
    present
        .chain(observation.missing.iter().filter_map(|gone| hit(&gone.name, gone.guid, &[], true)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::filter::Filter;
    use fabric_observation::Observation;
    use fabric_observation::host::HostObservation;
    use ib_health::testing::snapshot;
    use ib_mad::hierarchy::{HierarchyInfo, template};
    use ib_mad::{FrontPanel, NodeKind};
    use rdma_host::testing::{port as host_port, snapshot as host_snapshot};

    /// A leaf with two hosts. The LID of a node is its GUID; a port's GUID is its node's, followed by the port
    /// number.
    fn state() -> SharedState {
        let swept = Observation {
            fabric: "f".into(),
            snapshot: Some(snapshot().into()),
            ..Observation::default()
        };
        let host = HostObservation {
            snapshot: Some(host_snapshot("mlx5_0", vec![host_port(1)])),
            ..HostObservation::default()
        };
        let unswept = Observation { fabric: "g".into(), ..Observation::default() };
        let fabrics = vec![Arc::new(unswept), Arc::new(swept)];
        SharedState { fabrics, host: Some(Arc::new(host)), ..SharedState::default() }
    }

    #[test]
    fn ports_are_found_by_what_is_printed_beside_them() {
        let mut swept = snapshot();
        let fabric = Arc::make_mut(&mut swept.fabric);
        for number in 1..=4 {
            let mut info = HierarchyInfo::empty(template::NDR);
            let (cage, port) = (u32::from(number).div_ceil(2), 2 - u32::from(number) % 2);
            info.values[1..4].copy_from_slice(&[port, cage, 1]);
            let panel = FrontPanel::new(&info, NodeKind::Switch);
            let port = PortKey::new(Guid(1), number);
            Arc::make_mut(&mut fabric.front_panels).insert(port, panel);
        }
        let swept = Observation {
            fabric: "f".into(),
            snapshot: Some(swept.into()),
            ..Observation::default()
        };
        let state = SharedState { fabrics: vec![Arc::new(swept)], ..SharedState::default() };
        for (text, name, quality) in [
            ("leaf 1/1/1", "leaf port 1 (1/1/1)", "exact"),
            ("Leaf/IB1/2/1", "leaf port 3 (1/2/1)", "exact"),
            ("leaf[2/1]", "leaf port 3 (1/2/1)", "exact"),
            ("leaf port sw1p2", "leaf port 2 (1/1/2)", "exact"),
            ("0x1:1/1/2", "leaf port 2 (1/1/2)", "exact"),
            // Each way in which a port is printed.
            ("leaf port 3 (1/2/1)", "leaf port 3 (1/2/1)", "exact"),
            // Of any switch.
            ("1/2/1", "leaf port 3 (1/2/1)", "prefix"),
            ("sw2p1", "leaf port 3 (1/2/1)", "prefix"),
        ] {
            let found = search(&state, text);
            let hits: Vec<_> = found.hits.iter().map(|hit| (&*hit.name, &*hit.quality)).collect();
            assert_eq!(hits, [(name, quality)], "{text}");
        }
        for nothing in ["leaf 1/3/1", "1/9/1", "leaf 3/1"] {
            assert_eq!(search(&state, nothing).found, 0, "{nothing}");
        }
        // A number is that of the subnet.
        assert_eq!(search(&state, "leaf/1").hits.len(), 1);
    }

    #[test]
    fn names_guids_lids_and_link_ids_are_found() {
        let state = state();
        let link = "/link/0x0000000000000001:1-0x0000000000000002:1?fabric=f";
        let (leaf, host) =
            ("/node/0x0000000000000001?fabric=f", "/node/0x0000000000000002?fabric=f");
        for (text, matched, page) in [
            ("LEAF", "name, exact", leaf),
            (" lea ", "name, prefix", leaf),
            ("st-a", "name, substring", host),
            ("0x0000000000000002", "guid, exact", host),
            ("0000000000000002", "guid, exact", host),
            // Also a LID, of the same node.
            ("0x2", "guid, exact", host),
            ("2", "guid, exact", host),
            ("0x000000000000000", "guid, prefix", host),
            // An adapter's port by its own GUID, and by its LID.
            ("0x201", "port_guid, exact", link),
            ("0x0000000000000001:1-0x0000000000000002:1", "link, exact", link),
            // The ends in either order.
            ("0x2:1-0x1:1", "link, exact", link),
            ("leaf[1]", "port, exact", link),
            ("leaf port 1", "port, exact", link),
            ("Leaf/1", "port, exact", link),
            ("leaf:1", "port, exact", link),
            ("leaf port 1 – host-a port 1", "port, exact", link),
            ("0x1:1", "port, exact", link),
            // A port without a cable is on its node's page.
            ("leaf[3]", "port, exact", "/node/0x0000000000000001?fabric=f#port-3"),
            ("mlx5", "name, prefix", "/host#mlx5_0"),
        ] {
            let result = search(&state, text);
            let hit = result.hits.first().unwrap_or_else(|| panic!("{text}: nothing"));
            assert_eq!(
                (format!("{}, {}", hit.matched, hit.quality).as_str(), &*hit.page),
                (matched, page),
                "{text}"
            );
        }
        for nothing in [
            "",
            "  ",
            "no-such-node",
            "leaf[9]",
            "leaf[999]",
            "leaf/",
            "0x1:1-0x3:1",
            "0xfff0",
            "99999",
        ] {
            assert_eq!(search(&state, nothing).found, 0, "{nothing}");
        }
    }

    #[test]
    fn cable_is_found_by_its_serial_or_part_number() {
        use ib_fabric::hardware::{Hardware, ReadAt};
        use ib_mad::Moment;
        use ib_mad::register::Module;

        let mut state = state();
        let observation = state.fabrics.iter_mut().find(|it| it.snapshot.is_some()).unwrap();
        let snapshot = Arc::make_mut(Arc::make_mut(observation).snapshot.as_mut().unwrap());
        let mut hardware = Hardware::default();
        let mut plug = |end: (u64, u8), serial: &[u8; 16]| {
            let (kind, part_number) = (1, *b"MFA7U10-H010    ");
            let value = Module { kind, part_number, serial_number: *serial, ..Module::default() };
            let module = Some(Arc::new(ReadAt { value, at: Moment(1) }));
            *hardware.port_mut(PortKey::new(Guid(end.0), end.1)) =
                PortHardware { module, ..PortHardware::default() };
        };
        // A cable; and a module without a link.
        plug((1, 1), b"MT2135VS01      ");
        plug((2, 1), b"MT2135VS01      ");
        plug((1, 3), b"MT2135VS012     ");
        snapshot.hardware = Arc::new(hardware);
        let found = |text: &str| -> Vec<String> {
            let told =
                |hit: &Hit| format!("{} {}: {}, {}", hit.kind, hit.name, hit.matched, hit.quality);
            search(&state, text).hits.iter().map(told).collect()
        };
        let cable = "link leaf port 1 – host-a port 1: serial_number";
        let module = "port leaf port 3: serial_number, prefix";
        assert_eq!(found("mt2135vs01"), [&*format!("{cable}, exact"), module]);
        assert_eq!(found("MT21"), [&*format!("{cable}, prefix"), module]);
        assert_eq!(found("MT2135VS012"), ["port leaf port 3: serial_number, exact"]);
        assert_eq!(found("mfa7u10-h010").len(), 2);
        assert_eq!(found("mt2"), [""; 0]);
        assert_eq!(found("T2135VS01"), [""; 0]);
    }

    #[test]
    fn hits_have_the_state_of_the_node_or_link() {
        let states = |silent: &[u64]| {
            let mut state = state();
            let observation =
                Arc::make_mut(state.fabrics.iter_mut().find(|it| it.snapshot.is_some()).unwrap());
            observation.assessment =
                ib_health::testing::fine(observation.snapshot.as_ref().unwrap());
            observation.assessment.links[0].verdict = ib_health::Verdict::Bad;
            let snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
            for (node, silence) in snapshot.fabric.nodes.iter().zip(&mut snapshot.silent) {
                *silence = silent.contains(&node.identity.guid.0);
            }
            let first = |text: &str| search(&state, text).hits[0].state.clone().unwrap_or_default();
            ["leaf", "host-a", "host-b", "leaf[1]", "leaf[3]", "mlx5"]
                .map(first)
                .map(|it| it.to_string())
        };
        assert_eq!(states(&[]), ["bad", "bad", "ok", "bad", "", ""]);
        let [leaf, a, b, ..] = states(&[1, 2]);
        assert_eq!([&*leaf, &*a, &*b], ["down", "cut_off", "ok"]);
    }

    #[test]
    fn shared_name_finds_all_its_nodes() {
        let mut state = state();
        let observation = state.fabrics.iter_mut().find(|it| it.snapshot.is_some()).unwrap();
        let snapshot = Arc::make_mut(Arc::make_mut(observation).snapshot.as_mut().unwrap());
        let mut nodes = (*snapshot.fabric).clone();
        for node in &mut nodes.nodes {
            node.name = format!("Q2#{:06x}", node.identity.guid.0);
        }
        snapshot.fabric = Arc::new(nodes);
        let names = |text: &str| -> Vec<String> {
            search(&state, text).hits.iter().map(|hit| hit.name.clone()).collect()
        };
        let all = names("q2");
        assert!(all.len() > 1 && all.iter().all(|name| name.starts_with("Q2#0000")), "{all:?}");
        assert_eq!(names("q2[1]").len(), all.len(), "port 1 of each");
        assert_eq!(names("Q2#000001 port 1"), ["Q2#000001 port 1"]);
        assert_eq!(names("Q2#000001")[0], "Q2#000001");
    }

    #[test]
    fn name_with_several_blanks_is_found_as_a_browser_copies_it() {
        let mut state = state();
        let observation = state.fabrics.iter_mut().find(|it| it.snapshot.is_some()).unwrap();
        let snapshot = Arc::make_mut(Arc::make_mut(observation).snapshot.as_mut().unwrap());
        let mut fabric = (*snapshot.fabric).clone();
        let names = ["rack 3   leaf", "a b", "a  b"];
        for (node, name) in fabric.nodes.iter_mut().zip(names) {
            node.name = name.into();
        }
        snapshot.fabric = Arc::new(fabric);
        for (text, found) in [
            ("Rack 3 leaf", "rack 3   leaf, prefix"),
            ("a  b", "a  b, exact"),
            ("a b", "a b, exact"),
            ("rack 3   leaf", "rack 3   leaf, exact"),
            ("3 leaf", "rack 3   leaf, substring"),
            ("rack 3 leaf port 2", "rack 3   leaf port 2, exact"),
        ] {
            let hits = search(&state, text).hits;
            assert_eq!(format!("{}, {}", hits[0].name, hits[0].quality), found, "{text}");
        }
        for (name, guids) in [("rack 3 leaf", &[1][..]), ("a b", &[2]), ("a  b", &[3])] {
            let filter = Filter { node: Some(name.into()), ..Filter::default() };
            assert_eq!(filter.check(&state.fabrics), Ok(()), "{name}");
            let nodes = crate::nodes::nodes(&state.fabrics, &filter).fabrics.remove(1).nodes;
            let found: Vec<String> = nodes.into_iter().map(|node| node.guid).collect();
            let guids: Vec<String> = guids.iter().map(|guid| Guid(*guid).to_string()).collect();
            assert_eq!(found, guids, "{name}");
        }
    }

    #[test]
    fn host_finds_its_adapters_before_longer_names() {
        let mut state = state();
        let observation = state.fabrics.iter_mut().find(|it| it.snapshot.is_some()).unwrap();
        let snapshot = Arc::make_mut(Arc::make_mut(observation).snapshot.as_mut().unwrap());
        let mut fabric = (*snapshot.fabric).clone();
        for (node, host) in fabric.nodes.iter_mut().skip(1).zip(["gpu10", "gpu1"]) {
            node.name = format!("{host} mlx5_0");
            node.host = Some(host.into());
        }
        snapshot.fabric = Arc::new(fabric);
        let found = search(&state, "GPU1");
        let hits: Vec<_> = found.hits.iter().map(|hit| (&*hit.name, &*hit.matched)).collect();
        assert_eq!(hits, [("gpu1 mlx5_0", "host"), ("gpu10 mlx5_0", "name")]);
        assert_eq!(search(&state, "gpu10[1]").hits[0].matched, "port");
    }

    #[test]
    fn hits_are_counted_and_the_best_come_first() {
        let result = search(&state(), "host");
        let names: Vec<&str> = result.hits.iter().map(|hit| &*hit.name).collect();
        assert_eq!((result.found, names), (2, vec!["host-a", "host-b"]));
        assert_eq!(quality_of("host-1", "host-1"), Some(Quality::Exact));
        assert!(Quality::Exact < Quality::Prefix && Quality::Prefix < Quality::Substring);
    }
}
