//! Dumps: the state of a fabric at one time, joined from the readings of some files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use display_text::plural;
use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortKey};

use crate::contents::{self, Contents, NodeName, NodeRecord, PortName, PortRecord};
use crate::format::Format;
use crate::identity::Identity;
use crate::readings;
use crate::remark::Remark;
use crate::source::{DumpError, Source, Sources};

/// Files that were copied have times that differ by less.
const MAX_COPY: Duration = Duration::from_secs(60);

/// The state of a fabric at one time, from one or more files.
#[derive(Clone, Debug)]
pub struct Dump {
    /// The files, with their formats.
    pub files: Vec<(PathBuf, Format)>,
    /// When the counters were read.
    pub taken_at: SystemTime,
    /// A file says so; else it is the time at which a file was last modified.
    pub has_time: bool,
    /// By GUID. A node of which no file has a GUID has a made-up one from 0xffffffff00000000 on.
    pub nodes: BTreeMap<Guid, NodeRecord>,
    /// By the GUID of the node.
    pub ports: BTreeMap<PortKey, PortRecord>,
    /// Cables, the lower end first.
    pub links: BTreeSet<(PortKey, PortKey)>,
    /// What was not used, or not as it is written.
    pub remarks: Vec<Remark>,
}

/// The dumps in some files.
#[derive(Clone, Debug)]
pub struct Dumps {
    /// The oldest first; never empty.
    pub dumps: Vec<Dump>,
    /// On files that are part of no dump.
    pub remarks: Vec<Remark>,
}

impl Dumps {
    /// All remarks: those on files first.
    pub fn remarks(&self) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().chain(self.dumps.iter().flat_map(|dump| &dump.remarks))
    }
}

/// Reads files, and all dumps in directories.
///
/// Files of one directory make one dump as long as they complete each other. Other values of the same counters, or the
/// same ports at another time, are another dump. A dump without a topology has that of the others.
pub fn read(paths: &[PathBuf]) -> Result<Dumps, DumpError> {
    join(Sources::of_paths(paths)?)
}

/// The same for files in memory with their names, which count as files of one directory.
pub fn from_files(files: Vec<(PathBuf, Vec<u8>)>) -> Result<Dumps, DumpError> {
    join(Sources::of_files(files)?)
}

/// The same for texts.
pub fn from_texts(texts: &[&str]) -> Result<Dumps, DumpError> {
    let name = |nth: usize| PathBuf::from(format!("text {}", nth + 1));
    let files = texts.iter().enumerate().map(|(nth, text)| (name(nth), text.as_bytes().to_vec()));
    from_files(files.collect())
}

fn join(sources: Sources) -> Result<Dumps, DumpError> {
    let Sources { readings, remarks } = sources;
    let groups = readings::dumps(readings);
    let has_topology = |group: &[Source]| group.iter().any(|source| source.contents.is_topology);
    // A copy is as large as the topology itself.
    let is_needed = !groups.iter().all(|group| has_topology(group));
    let first = groups.iter().flatten().find(|source| source.contents.is_topology && is_needed);
    let topology: Vec<Contents> =
        first.map(|source| source.contents.without_counters()).into_iter().collect();
    // A LID alone says nothing of a node.
    let has_nodes = groups.iter().flatten().any(|source| {
        let is_guid = |name: &PortName| !matches!(name.node, NodeName::Lid(_));
        let Contents { nodes, ports, is_report, .. } = &source.contents;
        *is_report || !nodes.is_empty() || ports.keys().any(is_guid)
    });
    if !has_nodes {
        let problem =
            "no nodes found: add a file with the topology, such as the output of ibnetdiscover";
        return Err(DumpError::Invalid(problem.into()));
    }
    let resolve = |group: Vec<Source>| {
        let other: &[Contents] = if has_topology(&group) { &[] } else { &topology };
        Dump::of(group, other)
    };
    let mut dumps: Vec<Dump> = groups.into_iter().map(resolve).collect();
    // A copy of files has the time of the copy, in any order: then the order of the arguments counts.
    let times = || dumps.iter().map(|dump| dump.taken_at);
    let spread =
        times().max().zip(times().min()).and_then(|(last, first)| last.duration_since(first).ok());
    if dumps.iter().any(|dump| dump.has_time) || spread > Some(MAX_COPY) {
        dumps.sort_by_key(|dump| dump.taken_at);
    }
    Ok(Dumps { dumps, remarks })
}

impl Dump {
    /// Ignores times of single ports that are more than a day ahead.
    pub fn ignore_times_ahead(&mut self, now: SystemTime) {
        if let Some(ignored) = contents::ignore_times_ahead(&mut self.ports, now) {
            self.taken_at = ignored.latest;
            self.remarks.push(ignored.remark);
        }
    }

    /// Joins the readings of a dump, and a topology of another one.
    pub(crate) fn of(mut sources: Vec<Source>, topology: &[Contents]) -> Dump {
        // What a file of more detail says counts.
        sources.sort_by_key(|source| source.format);
        let has_counters = |source: &&Source| source.contents.has_counters();
        // The time is that of the counters: a topology may be older.
        let mut timed: Vec<&Source> = sources.iter().filter(has_counters).collect();
        if timed.is_empty() {
            timed = sources.iter().collect();
        }
        let taken = timed.iter().find_map(|source| source.own_time());
        let modified = timed.iter().map(|source| source.modified).max();
        let mut dump = Dump {
            taken_at: taken.or(modified).unwrap_or(SystemTime::UNIX_EPOCH),
            has_time: taken.is_some(),
            files: sources.iter().map(|source| (source.path.clone(), source.format)).collect(),
            nodes: BTreeMap::new(),
            ports: BTreeMap::new(),
            links: BTreeSet::new(),
            remarks: Vec::new(),
        };
        for source in &mut sources {
            let of_file =
                std::mem::take(&mut source.contents.remarks).into_iter().map(|mut remark| {
                    if remark.file.as_os_str().is_empty() {
                        remark.file.clone_from(&source.path);
                    }
                    remark
                });
            dump.remarks.extend(of_file);
            if source.contents.more_remarks > 0 {
                let what = plural(source.contents.more_remarks, "more remark");
                dump.remarks.push(Remark { file: source.path.clone(), ..Remark::unused(0, what) });
            }
        }
        let contents: Vec<Contents> = sources
            .into_iter()
            .map(|source| source.contents)
            .chain(topology.iter().cloned())
            .collect();
        let (nodes, places) = Identity::of(&contents).nodes();
        dump.nodes = nodes;
        let mut links = Vec::new();
        for (reading, found) in contents.into_iter().enumerate() {
            for (name, record) in found.ports {
                if let Some(end) = places.port(reading, name) {
                    dump.ports.entry(end).or_default().merge(record);
                }
            }
            let ends = found.links.into_iter().filter_map(|(near, far)| {
                places.port(reading, near).zip(places.port(reading, far))
            });
            links.extend(ends);
        }
        dump.add_links(links);
        dump.add_kinds();
        dump.note_ports_without_node();
        dump
    }

    /// Adds cables. A port has one: another one is a contradiction in the files.
    fn add_links(&mut self, links: Vec<(PortKey, PortKey)>) {
        let mut peers: HashMap<PortKey, PortKey> = HashMap::new();
        let mut left_out: BTreeSet<(PortKey, PortKey)> = BTreeSet::new();
        for (near, far) in links {
            let (low, high) = (near.min(far), near.max(far));
            let is_free =
                |end: PortKey, peer: PortKey| peers.get(&end).is_none_or(|known| *known == peer);
            let has_port0 = low.number == 0 || high.number == 0;
            if low == high || has_port0 || !is_free(low, high) || !is_free(high, low) {
                left_out.insert((low, high));
                continue;
            }
            peers.insert(low, high);
            peers.insert(high, low);
            self.links.insert((low, high));
        }
        for (low, high) in left_out {
            let (a, b) = (self.port_label(low), self.port_label(high));
            let what = match peers
                .get(&low)
                .map(|peer| (low, peer))
                .or(peers.get(&high).map(|peer| (high, peer)))
            {
                Some((end, peer)) => {
                    let (end, peer) = (self.port_label(end), self.port_label(*peer));
                    format!("link left out: {a} - {b}: {end} is connected with {peer}, too")
                }
                None if low == high => format!("link left out: {a} is connected with itself"),
                None => format!("link left out: {a} - {b}: port 0 has no cable"),
            };
            self.remarks.push(Remark::unused(0, what));
        }
        // The state of a cable is that of both ends, unless both have their own.
        for (low, high) in &self.links {
            let of_high = self.ports.get(high).map(PortRecord::of_peer).unwrap_or_default();
            let low = self.ports.entry(*low).or_default();
            let of_low = low.of_peer();
            low.merge(of_high);
            self.ports.entry(*high).or_default().merge(of_low);
        }
    }

    /// What a node is if nothing says it: an adapter.
    fn add_kinds(&mut self) {
        for end in self.ports.keys() {
            let node = self.nodes.entry(end.guid).or_default();
            node.port_count = node.port_count.max(end.number);
        }
        for node in self.nodes.values_mut() {
            node.kind = node.kind.or(Some(NodeKind::Ca));
        }
    }

    /// Counters without a topology are of ports of unknown nodes.
    fn note_ports_without_node(&mut self) {
        let linked: BTreeSet<Guid> =
            self.links.iter().flat_map(|(low, high)| [low.guid, high.guid]).collect();
        let is_unknown = |guid: &Guid| {
            let is_unnamed = self.nodes.get(guid).is_none_or(|node| node.description.is_empty());
            is_unnamed && !linked.contains(guid)
        };
        let made_up = self.ports.keys().filter(|end| end.guid.0 >> 32 == 0xffff_ffff);
        let count = made_up.filter(|end| is_unknown(&end.guid)).count();
        if count > 0 {
            let what =
                format!("no known node of {}: add a file with the topology", plural(count, "port"));
            self.remarks.push(Remark::unused(0, what));
        }
    }

    fn port_label(&self, end: PortKey) -> String {
        let name = self.nodes.get(&end.guid).map(|node| node.description.as_str());
        match name.filter(|name| !name.is_empty()) {
            Some(name) => format!("{name}/{}", end.number),
            None => format!("{}/{}", end.guid, end.number),
        }
    }

    /// The ports with counters.
    pub fn counted(&self) -> usize {
        self.ports.values().filter(|port| !port.counters.is_empty()).count()
    }

    /// As messages call it: its only file, or the folder of its files, or the first one.
    pub fn name(&self) -> String {
        match &*self.files {
            [(file, _)] => file.display().to_string(),
            [(file, _), rest @ ..] => match file.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder.display().to_string(),
                _ => format!("{} and {} more", file.display(), rest.len()),
            },
            [] => String::new(),
        }
    }
}

impl PortRecord {
    /// What is known of the other end of its cable.
    fn of_peer(&self) -> PortRecord {
        PortRecord {
            state: self.state,
            physical_state: self.physical_state,
            width: self.width,
            speed: self.speed,
            widths_supported: self.widths_supported,
            widths_enabled: self.widths_enabled,
            speeds_supported: self.speeds_supported,
            speeds_enabled: self.speeds_enabled,
            ..PortRecord::default()
        }
    }
}
