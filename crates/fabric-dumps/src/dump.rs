//! From files to dumps: which files belong together, and which port a file means.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortKey};

use crate::contents::{Contents, NodeRecord, PortName, PortRecord};
use crate::format::Format;
use crate::ibnetdiscover;

/// The largest file: `*.db_csv` has some 2 KB per port, so this is a fabric of 500,000 ports.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The most nodes: a subnet has 49,151 unicast LIDs (IBA 4.1.3), and each node needs one. A node takes some 10 kB until it
/// is evaluated, and in a dense format 100 bytes of its file.
const MOST_NODES: usize = 100_000;

/// Files of one folder whose times differ by more belong to different dumps.
const MAX_DUMP_SPREAD: Duration = Duration::from_secs(3600);

/// Nodes without a kind that have more ports are switches.
const MOST_ADAPTER_PORTS: u8 = 4;

/// The state of a fabric at one time, from one or more files.
#[derive(Clone, Debug)]
pub struct Dump {
    /// The files, with their formats.
    pub files: Vec<(PathBuf, Format)>,
    /// When the counters were read.
    pub taken_at: SystemTime,
    /// A file says so; else it is the time at which a file was last modified.
    pub has_time: bool,
    /// By GUID.
    pub nodes: BTreeMap<Guid, NodeRecord>,
    /// By the GUID of the node.
    pub ports: BTreeMap<PortKey, PortRecord>,
    /// Cables, the lower end first.
    pub links: BTreeSet<(PortKey, PortKey)>,
    /// Ports that could not be identified, such as LIDs without a topology.
    pub unresolved: usize,
}

/// Why dumps could not be read, in one line.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// A file or folder cannot be read.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What was read is no dump, or not all of one.
    #[error("{0}")]
    Invalid(String),
}

impl DumpError {
    fn invalid(path: &Path, problem: impl Display) -> Self {
        DumpError::Invalid(format!("{}: {problem}", path.display()))
    }

    fn unknown_format(path: &Path) -> Self {
        DumpError::invalid(
            path,
            "unknown format: expected a file of ibdiagnet2 (db_csv, lst, net_dump, pm, cables) or the output of \
             ibnetdiscover, iblinkinfo, ibqueryerrors or perfquery",
        )
    }
}

/// A file that was read.
struct Source {
    path: PathBuf,
    format: Format,
    contents: Contents,
    modified: SystemTime,
}

/// Reads files, and all dumps in directories, and returns the dumps, the oldest first.
///
/// Files of one directory make one dump as long as they complete each other. A second file with the same counters, or
/// a second topology, is another dump. A dump without a topology has that of the others.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Dump>, DumpError> {
    join(sources(paths)?)
}

/// The same for texts in memory, which count as files of one directory.
pub fn from_texts(texts: &[&str]) -> Result<Vec<Dump>, DumpError> {
    let source = |(nth, text): (usize, &&str)| {
        let path = PathBuf::from(format!("text {}", nth + 1));
        let source = parse(&path, text, SystemTime::UNIX_EPOCH)?;
        source.ok_or_else(|| DumpError::unknown_format(&path)).map(|it| (PathBuf::new(), it))
    };
    join(texts.iter().enumerate().map(source).collect::<Result<_, _>>()?)
}

fn join(sources: Vec<(PathBuf, Source)>) -> Result<Vec<Dump>, DumpError> {
    let mut groups: Vec<(PathBuf, Vec<Source>)> = Vec::new();
    for (folder, source) in sources {
        let group = groups.iter_mut().find(|(of, known)| *of == folder && source.fits(known));
        match group {
            Some((_, known)) => known.push(source),
            None => groups.push((folder, vec![source])),
        }
    }
    let topology: Vec<Contents> = groups
        .iter()
        .flat_map(|(_, group)| group)
        .find(|source| source.contents.is_topology)
        .map(|source| source.contents.without_counters())
        .into_iter()
        .collect();
    let resolve = |(_, group): (_, Vec<Source>)| {
        let has_topology = group.iter().any(|source| source.contents.is_topology);
        resolve(group, if has_topology { &[] } else { &topology })
    };
    let mut dumps: Vec<Dump> = groups.into_iter().map(resolve).collect();
    if dumps.iter().all(|dump| dump.nodes.is_empty()) {
        let problem =
            "no nodes found: add a file with the topology, such as the output of ibnetdiscover";
        return Err(DumpError::Invalid(problem.into()));
    }
    dumps.sort_by_key(|dump| dump.taken_at);
    Ok(dumps)
}

/// The files of arguments, each with its folder. Files of a directory that are no dumps are left out.
fn sources(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Source)>, DumpError> {
    let mut found = Vec::new();
    for path in paths {
        let failed = |error| DumpError::File { path: path.clone(), error };
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            let source = read_file(path)?.ok_or_else(|| DumpError::unknown_format(path))?;
            found.push((path.parent().unwrap_or(Path::new("")).to_owned(), source));
            continue;
        }
        let entries = fs::read_dir(path).map_err(failed)?;
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
        files.sort();
        let before = found.len();
        for file in files {
            found.extend(read_file(&file)?.map(|source| (path.clone(), source)));
        }
        if found.len() == before {
            return Err(DumpError::invalid(path, "no dumps in this directory"));
        }
    }
    Ok(found)
}

/// Reads a file; `None` if its format is not known.
fn read_file(path: &Path) -> Result<Option<Source>, DumpError> {
    let failed = |error| DumpError::File { path: path.to_owned(), error };
    let file = File::open(path).map_err(failed)?;
    let modified =
        file.metadata().and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut bytes = Vec::new();
    // A pipe has no length.
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(DumpError::invalid(path, "larger than 1 GiB"));
    }
    parse(path, &String::from_utf8_lossy(&bytes), modified)
}

fn parse(path: &Path, text: &str, modified: SystemTime) -> Result<Option<Source>, DumpError> {
    let Some(format) = Format::of(text) else { return Ok(None) };
    let invalid = |problem: String| {
        DumpError::invalid(path, format!("{problem} (format {})", format.label()))
    };
    let too_many = || invalid(format!("contains more than {MOST_NODES} nodes"));
    // Before memory is needed for all of them.
    let is_node = |line: &&str| ibnetdiscover::node_line(line).is_some();
    if format == Format::IbNetDiscover && text.lines().filter(is_node).nth(MOST_NODES).is_some() {
        return Err(too_many());
    }
    let contents = format.parse(text).map_err(|problem| invalid(problem.to_string()))?;
    if contents.nodes.len() > MOST_NODES {
        return Err(too_many());
    }
    if contents.is_empty() {
        return Err(invalid("contains no nodes and no ports".into()));
    }
    Ok(Some(Source { path: path.to_owned(), format, contents, modified }))
}

impl Source {
    /// Whether it completes these files, instead of being a later reading of the same.
    fn fits(&self, known: &[Source]) -> bool {
        let repeats = |other: &Source| {
            other.format == self.format
                && (self.contents.is_topology
                    || self.contents.counted().any(|key| {
                        other.contents.ports.get(key).is_some_and(|port| !port.counters.is_empty())
                    }))
        };
        let is_far = |other: &Source| {
            let times = self.contents.taken_at.zip(other.contents.taken_at);
            let apart = times.and_then(|(a, b)| a.max(b).duration_since(a.min(b)).ok());
            apart.is_some_and(|apart| apart > MAX_DUMP_SPREAD)
        };
        // Which cable is where changes rarely.
        let is_cables = |source: &Source| source.format == Format::Cables;
        !known
            .iter()
            .any(|other| repeats(other) || is_far(other) && !is_cables(self) && !is_cables(other))
    }
}

impl Contents {
    /// Nodes, ports and cables only.
    fn without_counters(&self) -> Contents {
        let mut topology = self.clone();
        for port in topology.ports.values_mut() {
            port.counters = crate::counters::Counters::default();
        }
        topology
    }
}

/// Which port a name in a file means.
#[derive(Default)]
struct Resolver {
    /// The ports of adapters by their own GUIDs.
    by_guid: HashMap<Guid, PortKey>,
    /// Ports of adapters by LID.
    by_lid: HashMap<u16, PortKey>,
    /// Switches by LID.
    switches: HashMap<u16, Guid>,
}

impl Resolver {
    fn end(&self, key: PortName) -> Option<PortKey> {
        match key {
            PortName::Node(guid, number) => Some(PortKey::new(guid, number)),
            PortName::Port(guid, number) => {
                Some(self.by_guid.get(&guid).copied().unwrap_or(PortKey::new(guid, number)))
            }
            PortName::Lid(lid, number) => {
                let switch = self.switches.get(&lid).map(|guid| PortKey::new(*guid, number));
                switch.or_else(|| self.by_lid.get(&lid).copied())
            }
        }
    }
}

/// Joins the files of a dump, and a topology of another one.
fn resolve(sources: Vec<Source>, topology: &[Contents]) -> Dump {
    // The time is that of the counters: a topology may be older.
    let has_counters = |source: &&Source| source.contents.counted().next().is_some();
    let mut timed: Vec<&Source> = sources.iter().filter(has_counters).collect();
    if timed.is_empty() {
        timed = sources.iter().collect();
    }
    let taken = timed.iter().find_map(|source| source.contents.taken_at);
    let modified = timed.iter().map(|source| source.modified).max();
    let mut dump = Dump {
        taken_at: taken.or(modified).unwrap_or(SystemTime::UNIX_EPOCH),
        has_time: taken.is_some(),
        files: sources.iter().map(|source| (source.path.clone(), source.format)).collect(),
        nodes: BTreeMap::new(),
        ports: BTreeMap::new(),
        links: BTreeSet::new(),
        unresolved: 0,
    };
    let contents: Vec<Contents> =
        sources.into_iter().map(|source| source.contents).chain(topology.iter().cloned()).collect();
    let resolver = dump.add_nodes(&contents);
    let mut links = Vec::new();
    for found in contents {
        for (key, record) in found.ports {
            match resolver.end(key) {
                Some(end) => dump.ports.entry(end).or_default().merge(record),
                None => dump.unresolved += 1,
            }
        }
        for (near, far) in found.links {
            match resolver.end(near).zip(resolver.end(far)) {
                Some(ends) => links.push(ends),
                None => dump.unresolved += 1,
            }
        }
    }
    dump.add_links(links);
    for PortKey { guid, number } in dump.ports.keys() {
        let node = dump.nodes.entry(*guid).or_default();
        node.port_count = node.port_count.max(*number);
    }
    for node in dump.nodes.values_mut().filter(|node| node.kind.is_none()) {
        let is_switch = node.port_count > MOST_ADAPTER_PORTS;
        node.kind = Some(if is_switch { NodeKind::Switch } else { NodeKind::Ca });
    }
    dump
}

impl Dump {
    /// Adds all nodes. A node that is only known by the GUID of its port is the node of that port.
    fn add_nodes(&mut self, contents: &[Contents]) -> Resolver {
        let mut resolver = Resolver::default();
        let is_switch = |guid: &Guid| {
            let kinds = contents.iter().filter_map(|found| found.nodes.get(guid)?.kind);
            kinds.into_iter().any(|kind| kind == NodeKind::Switch)
        };
        for (key, record) in contents.iter().flat_map(|found| &found.ports) {
            if let (PortName::Node(guid, number), Some(own)) = (*key, record.guid)
                && !is_switch(&guid)
            {
                resolver.by_guid.entry(own).or_insert(PortKey::new(guid, number));
            }
        }
        for (guid, node) in contents.iter().flat_map(|found| &found.nodes) {
            let alias = resolver.by_guid.get(guid).filter(|_| !is_switch(guid));
            let guid = alias.map_or(*guid, |port| port.guid);
            self.nodes.entry(guid).or_default().merge(node.clone());
            if let Some(lid) = node.lid {
                resolver.switches.entry(lid).or_insert(guid);
            }
        }
        for (key, record) in contents.iter().flat_map(|found| &found.ports) {
            if let Some((lid, end)) = record.lid.zip(resolver.end(*key))
                && !is_switch(&end.guid)
            {
                resolver.by_lid.entry(lid).or_insert(end);
            }
        }
        resolver
    }

    /// Adds cables. A port has one: another one is a contradiction in the files.
    fn add_links(&mut self, links: Vec<(PortKey, PortKey)>) {
        let mut peers: HashMap<PortKey, PortKey> = HashMap::new();
        for (near, far) in links {
            let (low, high) = (near.min(far), near.max(far));
            let is_free =
                |end: PortKey, peer: PortKey| peers.get(&end).is_none_or(|known| *known == peer);
            if low == high || !is_free(low, high) || !is_free(high, low) {
                self.unresolved += 1;
                continue;
            }
            peers.insert(low, high);
            peers.insert(high, low);
            if self.links.insert((low, high)) {
                for end in [low, high] {
                    self.ports.entry(end).or_default();
                }
            }
        }
        // The state of a cable is that of both ends.
        let ends = self.links.iter().flat_map(|(low, high)| [(*low, *high), (*high, *low)]);
        for (end, peer) in ends {
            let Some(known) = self.ports.get(&peer) else { continue };
            let record =
                PortRecord { width: known.width, speed: known.speed, ..PortRecord::default() };
            self.ports.entry(end).or_default().merge(record);
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
