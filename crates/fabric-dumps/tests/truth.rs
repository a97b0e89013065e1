//! What infiniband-diags print of fabrics in ibsim, each format alone and each two together, is what ibsim says.
//!
//! `ibsim/make` writes the dumps, and `truth.txt` without any parser of this crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fabric_dumps::{Dump, read};
use ib_mad::counter::TABLE;
use ib_mad::node::NodeKind;
use ib_mad::{Counter, Guid, PortKey};

/// By how much counters of traffic may exceed what was set: the tools' own requests.
const REQUESTS: u64 = 1_000_000;

const TRAFFIC: [Counter; 4] =
    [Counter::XmitData, Counter::RcvData, Counter::XmitPkts, Counter::RcvPkts];

/// Which nodes a format lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nodes {
    All,
    /// The adapters, and what their cables lead to.
    CasAndPeers,
    /// Those with counters above 0.
    Counted,
    /// Those with counters above 0, and some of what their cables lead to.
    CountedAndPeers,
    /// Nodes are LIDs, which another file resolves.
    None,
}

/// By what a node is known; two files are of one fabric because they share at least one.
const LID: u8 = 1;
const NODE_GUID: u8 = 2;
const PORT_GUID: u8 = 4;

#[expect(clippy::struct_excessive_bools, reason = "a row of a table")]
struct Format {
    file: &'static str,
    nodes: Nodes,
    has_links: bool,
    has_kinds: bool,
    has_errors: bool,
    /// Counters of 64 bits.
    has_traffic: bool,
    /// Keys of adapters.
    ca_keys: u8,
    /// Keys of switches, whose port GUIDs are their node GUIDs.
    switch_keys: u8,
}

const TOPOLOGY: Format = Format {
    file: "",
    nodes: Nodes::All,
    has_links: true,
    has_kinds: true,
    has_errors: false,
    has_traffic: false,
    ca_keys: LID | PORT_GUID,
    switch_keys: LID | NODE_GUID,
};

const ERRORS: Format = Format {
    file: "",
    nodes: Nodes::Counted,
    has_links: false,
    has_errors: true,
    ca_keys: PORT_GUID,
    switch_keys: NODE_GUID,
    ..TOPOLOGY
};

const PERFQUERY: Format = Format {
    file: "",
    nodes: Nodes::None,
    has_links: false,
    has_kinds: false,
    ca_keys: LID,
    switch_keys: LID,
    ..TOPOLOGY
};

/// What each format shows, and so what must be read from it.
const FORMATS: [Format; 12] = [
    Format { file: "ibnetdiscover", ca_keys: LID | NODE_GUID | PORT_GUID, ..TOPOLOGY },
    Format { file: "ports", ..TOPOLOGY },
    Format { file: "iblinkinfo", ..TOPOLOGY },
    Format { file: "line", ..TOPOLOGY },
    Format { file: "switches-only", ca_keys: LID, ..TOPOLOGY },
    Format { file: "cas-only", nodes: Nodes::CasAndPeers, switch_keys: LID, ..TOPOLOGY },
    Format { file: "errors", ..ERRORS },
    Format { file: "report", nodes: Nodes::CountedAndPeers, ..ERRORS },
    Format { file: "data", has_traffic: true, ..ERRORS },
    // All ports, without their kinds.
    Format {
        file: "counters",
        nodes: Nodes::All,
        has_kinds: false,
        has_errors: false,
        has_traffic: true,
        ca_keys: NODE_GUID,
        ..ERRORS
    },
    Format { file: "perfquery", has_errors: true, ..PERFQUERY },
    Format { file: "perfquery-x", has_traffic: true, ..PERFQUERY },
];

struct TrueNode {
    kind: NodeKind,
    name: String,
}

struct TruePort {
    guid: Guid,
    lid: u16,
    rate: String,
}

/// `truth.txt`.
#[derive(Default)]
struct Truth {
    time: u64,
    nodes: BTreeMap<Guid, TrueNode>,
    ports: BTreeMap<PortKey, TruePort>,
    links: Vec<(PortKey, PortKey)>,
    counters: BTreeMap<(PortKey, Counter), u64>,
}

fn guid(text: &str) -> Guid {
    Guid(u64::from_str_radix(text, 16).unwrap())
}

fn key(node: &str, number: &str) -> PortKey {
    PortKey::new(guid(node), number.parse().unwrap())
}

impl Truth {
    fn of(text: &str) -> Self {
        let mut truth = Self::default();
        for line in text.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["time", seconds] => truth.time = seconds.parse().unwrap(),
                ["node", node, kind, _ports, _lid, name] => {
                    let kind = if kind == "switch" { NodeKind::Switch } else { NodeKind::Ca };
                    truth.nodes.insert(guid(node), TrueNode { kind, name: name.into() });
                }
                ["port", node, number, port, lid, _state, width, speed] => {
                    let rate = format!("{width} {speed}");
                    let port = TruePort { guid: guid(port), lid: lid.parse().unwrap(), rate };
                    truth.ports.insert(key(node, number), port);
                }
                ["link", node, number, peer, peer_number] => {
                    truth.links.push((key(node, number), key(peer, peer_number)));
                }
                ["counter", node, number, name, value] => {
                    let counter = Counter::all().find(|it| TABLE[*it as usize].ibta == name);
                    let of = (key(node, number), counter.unwrap());
                    truth.counters.insert(of, value.parse().unwrap());
                }
                _ => panic!("{line}"),
            }
        }
        truth
    }

    /// The nodes that a format lists.
    fn listed(&self, nodes: Nodes) -> BTreeSet<Guid> {
        let is_ca = |node: Guid| self.nodes[&node].kind == NodeKind::Ca;
        match nodes {
            Nodes::All => self.nodes.keys().copied().collect(),
            Nodes::CasAndPeers => {
                let of_ca = |(a, b): &&(PortKey, PortKey)| is_ca(a.guid) || is_ca(b.guid);
                self.links.iter().filter(of_ca).flat_map(|(a, b)| [a.guid, b.guid]).collect()
            }
            Nodes::Counted | Nodes::CountedAndPeers => {
                self.counters.keys().map(|(port, _)| port.guid).collect()
            }
            Nodes::None => BTreeSet::new(),
        }
    }

    fn has_twins(&self) -> bool {
        let names: BTreeSet<_> = self.nodes.values().map(|node| &node.name).collect();
        names.len() < self.nodes.len()
    }

    fn end(&self, port: PortKey) -> String {
        format!("{:?} [{}]", self.nodes[&port.guid].name, port.number)
    }
}

/// A link, the same from both ends.
fn link(ends: [(String, String); 2]) -> String {
    let mut ends = ends;
    ends.sort();
    let [(a, a_rate), (b, b_rate)] = ends;
    format!("{a} {a_rate} - {b} {b_rate}")
}

fn found_end(dump: &Dump, port: PortKey) -> String {
    let name = dump.nodes.get(&port.guid).map_or("", |node| &node.description);
    format!("{name:?} [{}]", port.number)
}

fn found_rate(dump: &Dump, port: PortKey) -> String {
    let record = dump.ports.get(&port);
    let rate = record.and_then(|port| port.width.zip(port.speed));
    rate.map_or_else(
        || "no rate".into(),
        |(width, speed)| format!("{} {}", width.label(), speed.label()),
    )
}

/// The files of a fabric in a folder, written when it was made: the times of a checkout are others.
fn files(folder: &Path, fabric: &str, truth: &Truth) -> BTreeMap<String, PathBuf> {
    let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ibsim").join(fabric);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(truth.time);
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = folder.join(from.file_name().unwrap());
        std::fs::copy(&from, &to).unwrap();
        std::fs::File::options().write(true).open(&to).unwrap().set_modified(time).unwrap();
        files.insert(from.file_stem().unwrap().to_str().unwrap().to_owned(), to);
    }
    files
}

fn dump(paths: &[PathBuf]) -> Result<Dump, String> {
    let dumps = read(paths).map_err(|error| error.to_string())?.dumps;
    let count = dumps.len();
    dumps.into_iter().next().filter(|_| count == 1).ok_or(format!("{count} dumps, expected one"))
}

/// Adds the lines that only one of two lists has, as often as it has them.
fn compare(what: &str, mut expected: Vec<String>, found: Vec<String>, problems: &mut String) {
    let mut extra = Vec::new();
    for line in found {
        match expected.iter().position(|other| *other == line) {
            Some(at) => drop(expected.swap_remove(at)),
            None => extra.push(line),
        }
    }
    for (is, lines) in [("missing", expected), ("wrong", extra)] {
        for line in lines {
            writeln!(problems, "    {is} {what}: {line}").unwrap();
        }
    }
}

/// What a dump of these formats says otherwise than the truth.
fn problems(truth: &Truth, formats: &[&Format], dump: &Dump) -> String {
    let mut problems = String::new();
    let listed: BTreeSet<Guid> =
        formats.iter().flat_map(|format| truth.listed(format.nodes)).collect();
    let name = |node: &Guid| truth.nodes[node].name.clone();
    let expected: Vec<String> = listed.iter().map(name).collect();
    let mut found: Vec<String> = dump.nodes.values().map(|node| node.description.clone()).collect();
    if formats.iter().any(|format| format.nodes == Nodes::None) {
        // A LID that the other file does not resolve has no name.
        found.retain(|name| !name.is_empty());
    }
    if formats.iter().any(|format| format.nodes == Nodes::CountedAndPeers) {
        let all: BTreeSet<String> = truth.nodes.keys().map(name).collect();
        found.retain(|name| expected.contains(name) || !all.contains(name));
    }
    compare("node", expected, found, &mut problems);

    let with_kind = formats.iter().filter(|format| format.has_kinds);
    let with_kind: BTreeSet<Guid> =
        with_kind.flat_map(|format| truth.listed(format.nodes)).collect();
    let names: BTreeSet<String> = with_kind.iter().map(name).collect();
    let kind = |name: &str, kind: Option<NodeKind>| format!("{name:?} {kind:?}");
    let found = dump.nodes.values().filter(|node| names.contains(&node.description));
    compare(
        "kind",
        with_kind.iter().map(|node| kind(&name(node), Some(truth.nodes[node].kind))).collect(),
        found.map(|node| kind(&node.description, node.kind)).collect(),
        &mut problems,
    );

    let has_guids = |keys: fn(&Format) -> u8| {
        formats.iter().any(|format| {
            let is_whole = listed == truth.listed(format.nodes);
            is_whole && keys(format) & NODE_GUID != 0
        })
    };
    let (ca, switch) = (has_guids(|it| it.ca_keys), has_guids(|it| it.switch_keys));
    let has_guid = |node: &Guid| {
        truth.nodes.get(node).is_some_and(|of| match of.kind {
            NodeKind::Switch => switch,
            _ => ca,
        })
    };
    for node in listed.iter().filter(|node| has_guid(node)) {
        let found = dump.nodes.get(node).map_or("no such node", |node| &node.description);
        if found != truth.nodes[node].name {
            writeln!(problems, "    node {node}: {found:?}, not {:?}", name(node)).unwrap();
        }
    }

    check_links(truth, formats, dump, &mut problems);
    check_ports(truth, dump, &mut problems);
    check_counters(truth, formats, &listed, dump, &mut problems);
    problems
}

fn check_links(truth: &Truth, formats: &[&Format], dump: &Dump, problems: &mut String) {
    let is_listed = |(a, b): &&(PortKey, PortKey)| {
        formats.iter().filter(|format| format.has_links).any(|format| match format.nodes {
            Nodes::CasAndPeers => {
                [a, b].iter().any(|end| truth.nodes[&end.guid].kind == NodeKind::Ca)
            }
            _ => true,
        })
    };
    let end = |port: &PortKey| (truth.end(*port), truth.ports[port].rate.clone());
    let found_end = |port: &PortKey| (found_end(dump, *port), found_rate(dump, *port));
    let expected: Vec<String> =
        truth.links.iter().filter(is_listed).map(|(a, b)| link([end(a), end(b)])).collect();
    let mut found: Vec<String> =
        dump.links.iter().map(|(a, b)| link([found_end(a), found_end(b)])).collect();
    if formats.iter().any(|format| format.nodes == Nodes::CountedAndPeers) {
        // It shows some cables.
        let all: Vec<String> = truth.links.iter().map(|(a, b)| link([end(a), end(b)])).collect();
        found.retain(|link| expected.contains(link) || !all.contains(link));
    }
    compare("link", expected, found, problems);
}

/// GUIDs and LIDs, where a format shows them.
fn check_ports(truth: &Truth, dump: &Dump, problems: &mut String) {
    let mut of_name: BTreeMap<String, Vec<&TruePort>> = BTreeMap::new();
    for (port, record) in &truth.ports {
        of_name.entry(truth.end(*port)).or_default().push(record);
    }
    for (port, record) in &dump.ports {
        let end = found_end(dump, *port);
        // Port 0 has no cable, and the sum of all ports no number.
        let Some(ports) = of_name.get(&end) else { continue };
        let is_port = |of: &&TruePort| {
            record.guid.is_none_or(|guid| guid == of.guid)
                && record.lid.is_none_or(|lid| lid == of.lid)
        };
        if !ports.iter().any(is_port) {
            let (guid, lid) = (record.guid, record.lid);
            writeln!(problems, "    port {end}: port GUID {guid:?}, LID {lid:?}").unwrap();
        }
    }
}

fn check_counters(
    truth: &Truth,
    formats: &[&Format],
    listed: &BTreeSet<Guid>,
    dump: &Dump,
    problems: &mut String,
) {
    let has_errors = formats.iter().any(|format| format.has_errors);
    let has_traffic = formats.iter().any(|format| format.has_traffic);
    let line = |end: &str, counter: Counter, value: u64, is_saturated: bool| {
        let plus = if is_saturated { "+" } else { "" };
        format!("{end} {} {value}{plus}", TABLE[counter as usize].ibta)
    };
    let is_shown = |(port, counter): &(PortKey, Counter)| {
        let is_traffic = TRAFFIC.contains(counter);
        listed.contains(&port.guid) && if is_traffic { has_traffic } else { has_errors }
    };
    let mut expected = Vec::new();
    let mut traffic: BTreeMap<(String, Counter), u64> = BTreeMap::new();
    for (of @ (port, counter), value) in truth.counters.iter().filter(|(of, _)| is_shown(of)) {
        let end = truth.end(*port);
        let is_saturated = !TRAFFIC.contains(counter) && counter.may_be_saturated(*value);
        expected.push(line(&end, *counter, *value, is_saturated));
        if TRAFFIC.contains(&of.1) {
            traffic.insert((end, *counter), *value);
        }
    }
    let mut found = Vec::new();
    let is_resolved = |port: &&PortKey| {
        let name = dump.nodes.get(&port.guid).map_or("", |node| &node.description);
        !name.is_empty() || formats.iter().all(|format| format.nodes != Nodes::None)
    };
    for (port, record) in dump.ports.iter().filter(|(port, _)| is_resolved(port)) {
        let end = found_end(dump, *port);
        for (counter, value, is_saturated) in record.counters.values() {
            if !TRAFFIC.contains(&counter) {
                if value > 0 {
                    found.push(line(&end, counter, value, is_saturated));
                }
            } else if let Some(set) = traffic.get(&(end.clone(), counter)) {
                let is_right = (*set..set + REQUESTS).contains(&value);
                found.push(line(&end, counter, if is_right { *set } else { value }, is_saturated));
            }
        }
    }
    compare("counter", expected, found, problems);
}

/// Whether two files of a fabric can say one thing together.
fn belong_together(truth: &Truth, one: &Format, other: &Format) -> bool {
    let shares = |keys: fn(&Format) -> u8| keys(one) & keys(other) != 0;
    let is_resolved = [one, other].iter().all(|format| format.nodes != Nodes::None)
        || [one, other].iter().any(|format| format.has_links);
    // Nodes of the same name are told apart by a common key only.
    let is_distinct = !truth.has_twins() || shares(|it| it.ca_keys) && shares(|it| it.switch_keys);
    // The same tool at two times, between which the traffic grew.
    let is_one_time = [one.file, other.file] != ["data", "counters"];
    is_resolved && is_distinct && is_one_time
}

fn check(fabric: &str) {
    let text = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ibsim").join(fabric);
    let truth = Truth::of(&std::fs::read_to_string(text.join("truth.txt")).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path(), fabric, &truth);
    let formats: Vec<&Format> =
        FORMATS.iter().filter(|format| files.contains_key(format.file)).collect();
    let mut sets: Vec<Vec<&Format>> = Vec::new();
    for (nth, one) in formats.iter().enumerate() {
        if one.nodes != Nodes::None {
            sets.push(vec![one]);
        }
        let others = formats[nth + 1..].iter();
        sets.extend(
            others.filter(|other| belong_together(&truth, one, other)).map(|it| vec![*one, *it]),
        );
    }
    let mut report = String::new();
    let mut wrong = 0;
    for set in &sets {
        let paths: Vec<PathBuf> = set.iter().map(|it| files[it.file].clone()).collect();
        let problems = match dump(&paths) {
            Ok(dump) => problems(&truth, set, &dump),
            Err(error) => format!("    {error}\n"),
        };
        if !problems.is_empty() {
            wrong += 1;
            let names: Vec<&str> = set.iter().map(|it| it.file).collect();
            writeln!(report, "{fabric}: {}\n{problems}", names.join(" + ")).unwrap();
        }
    }
    assert!(wrong == 0, "{fabric}: {wrong} of {} sets of files are wrong\n{report}", sets.len());
}

#[test]
fn two_levels() {
    check("two-levels");
}

#[test]
fn three_levels() {
    check("three-levels");
}

#[test]
fn names_with_blanks_quotes_and_brackets() {
    check("names");
}

#[test]
fn dual_port_adapters_with_other_port_guids() {
    check("dual-port");
}

#[test]
fn two_lids_per_port() {
    check("lmc");
}

#[test]
fn two_hosts_without_a_switch() {
    check("back-to-back");
}

#[test]
fn nodes_of_the_same_name() {
    check("twins");
}

/// ibqueryerrors lists nothing where nothing is wrong.
#[test]
fn healthy_fabric_has_no_counters_and_all_links() {
    for fabric in ["two-levels", "names", "back-to-back"] {
        let text = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ibsim").join(fabric);
        let mut truth = Truth::of(&std::fs::read_to_string(text.join("truth.txt")).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), fabric, &truth);
        truth.counters.clear();
        let dump = dump(&[files["ibnetdiscover"].clone(), files["healthy"].clone()]);
        let problems = problems(&truth, &[&FORMATS[0]], &dump.unwrap());
        assert!(problems.is_empty(), "{fabric}:\n{problems}");
    }
}
