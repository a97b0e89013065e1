//! Which names of nodes mean the same node.
//!
//! Tools name a node by its own GUID, by the GUID of a port, by a LID, or only by its description. The names of one
//! dump are joined by what its files say together: port GUIDs of a node, LIDs, blocks, and at last descriptions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ib_fabric::reference::join_blanks;
use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortKey, PortNumber};

use crate::contents::{Contents, NodeName, NodeRecord, PortName};
use crate::text::NEAR;

/// The first GUID of nodes of which no GUID is known. No vendor has the company id ff-ff-ff.
const MADE_UP: u64 = 0xffff_ffff_0000_0000;

/// Where no file says what a node is: adapters have at most two ports, beside planes; one with more is a switch.
const MAX_ADAPTER_PORTS: u8 = 2;

/// The nodes of a dump.
#[derive(Debug, Default)]
pub struct Identity {
    ids: HashMap<Name, usize>,
    parents: Vec<usize>,
    nodes: Vec<Known>,
    /// The LIDs of each port with an LMC above 0, by its base LID.
    masks: BTreeMap<u16, u8>,
}

/// A name, and the reading that it is from if that matters: a LID of two readings may be of two fabrics.
type Name = (usize, NodeName);

fn name_in(reading: usize, name: NodeName) -> Name {
    (if matches!(name, NodeName::Lid(_)) { reading } else { 0 }, name)
}

/// What is known of a set of names.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Its own GUID.
    guid: Option<Guid>,
    /// GUIDs of ports, or its own.
    port_guids: BTreeSet<Guid>,
    lids: BTreeSet<u16>,
    record: NodeRecord,
    ports: BTreeMap<PortNumber, KnownPort>,
}

/// What is known of a port of an adapter.
#[derive(Clone, Copy, Debug, Default)]
struct KnownPort {
    guid: Option<Guid>,
    lid: Option<u16>,
}

impl KnownPort {
    fn merge(&mut self, other: KnownPort) {
        self.guid = self.guid.or(other.guid);
        self.lid = self.lid.or(other.lid);
    }

    /// Whether these are two ports.
    fn differs(self, other: KnownPort) -> bool {
        differ(self.guid, other.guid) || differ(self.lid, other.lid)
    }
}

fn differ<T: PartialEq>(one: Option<T>, two: Option<T>) -> bool {
    one.zip(two).is_some_and(|(one, two)| one != two)
}

impl Known {
    fn is_switch(&self) -> bool {
        self.record.kind == Some(NodeKind::Switch)
    }
}

impl Identity {
    /// Joins the names of all contents, which are of one dump.
    pub fn of(contents: &[Contents]) -> Identity {
        let mut found = Identity::default();
        for (reading, contents) in contents.iter().enumerate() {
            found.add(reading, contents);
        }
        found.join_by_port_guids(contents);
        for (reading, contents) in contents.iter().enumerate() {
            for (one, two) in &contents.same {
                found.join(name_in(reading, *one), name_in(reading, *two));
            }
            found.join_by_lids_of(reading, contents);
        }
        found.join_by_lids();
        found.join_by_descriptions();
        found.infer_kinds(contents);
        found
    }

    fn add(&mut self, reading: usize, contents: &Contents) {
        for (name, record) in &contents.nodes {
            let id = self.id(name_in(reading, *name));
            let known = &mut self.nodes[id];
            known.record.merge(record.clone());
            known.lids.extend(record.lid);
        }
        for (name, port) in &contents.ports {
            let id = self.id(name_in(reading, name.node));
            let known = &mut self.nodes[id];
            let guid = match name.node {
                NodeName::Port(guid) if !known.is_switch() => Some(guid),
                _ => port.guid,
            };
            let lid = match name.node {
                NodeName::Lid(lid) => Some(lid),
                _ => port.lid,
            };
            known.ports.entry(name.number).or_default().merge(KnownPort { guid, lid });
            known.lids.extend(port.lid);
            if let Some(lid) = port.lid.filter(|_| port.lmc > 0) {
                self.masks.insert(lid, port.lmc);
            }
        }
        for (near, far) in &contents.links {
            for end in [near, far] {
                let id = self.id(name_in(reading, end.node));
                self.nodes[id].ports.entry(end.number).or_default();
            }
        }
    }

    fn id(&mut self, name: Name) -> usize {
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        let id = self.nodes.len();
        let mut known = Known::default();
        match name.1 {
            NodeName::Node(guid) => known.guid = Some(guid),
            NodeName::Either(guid) | NodeName::Port(guid) => {
                known.port_guids.insert(guid);
            }
            NodeName::Lid(lid) => {
                known.lids.insert(lid);
            }
        }
        self.ids.insert(name, id);
        self.parents.push(id);
        self.nodes.push(known);
        id
    }

    fn root(&self, mut id: usize) -> usize {
        while self.parents[id] != id {
            id = self.parents[id];
        }
        id
    }

    /// The set of a name.
    fn find(&self, name: Name) -> Option<usize> {
        self.ids.get(&name).map(|id| self.root(*id))
    }

    fn join(&mut self, one: Name, two: Name) {
        if let Some((one, two)) = self.find(one).zip(self.find(two)) {
            self.join_sets(one, two);
        }
    }

    /// Joins two sets, unless they are known to be two nodes. The lower one remains, so that the order of names decides.
    fn join_sets(&mut self, one: usize, two: usize) {
        let (one, two) = (self.root(one), self.root(two));
        let (one, two) = (one.min(two), one.max(two));
        if one == two || self.are_different(one, two) {
            return;
        }
        let other = std::mem::take(&mut self.nodes[two]);
        self.parents[two] = one;
        let known = &mut self.nodes[one];
        known.guid = known.guid.or(other.guid);
        known.port_guids.extend(other.port_guids);
        known.lids.extend(other.lids);
        known.record.merge(other.record);
        for (number, port) in other.ports {
            known.ports.entry(number).or_default().merge(port);
        }
    }

    fn are_different(&self, one: usize, two: usize) -> bool {
        let (one, two) = (&self.nodes[one], &self.nodes[two]);
        let is_port_twice = || {
            let other = |number| two.ports.get(number).copied().unwrap_or_default();
            one.ports.iter().any(|(number, port)| port.differs(other(number)))
        };
        differ(one.guid, two.guid)
            || differ(one.record.kind, two.record.kind)
            || !one.is_switch() && !two.is_switch() && is_port_twice()
    }

    /// A GUID of a port is its node's, if a file says of which, or if a node has it.
    fn join_by_port_guids(&mut self, contents: &[Contents]) {
        for contents in contents {
            for (name, port) in &contents.ports {
                if let (NodeName::Node(_), Some(guid)) = (name.node, port.guid) {
                    self.join((0, name.node), (0, NodeName::Port(guid)));
                }
            }
        }
        let mut names: Vec<Name> = self.ids.keys().copied().collect();
        names.sort_unstable();
        for name in names {
            if let NodeName::Either(guid) = name.1 {
                self.join(name, (0, NodeName::Port(guid)));
            }
            if let NodeName::Either(guid) | NodeName::Port(guid) = name.1
                && self.find(name).is_some_and(|id| self.nodes[id].guid.is_none())
            {
                self.join(name, (0, NodeName::Node(guid)));
            }
        }
    }

    /// A LID belongs to one node in each reading, whatever names its lines have for the node.
    fn join_by_lids_of(&mut self, reading: usize, contents: &Contents) {
        let of_nodes = contents.nodes.iter().filter_map(|(name, node)| Some((node.lid?, *name)));
        let of_ports =
            contents.ports.iter().filter_map(|(name, port)| Some((port.lid?, name.node)));
        let mut first: HashMap<u16, NodeName> = HashMap::new();
        for (lid, name) in of_nodes.chain(of_ports) {
            let known = *first.entry(lid).or_insert(name);
            self.join(name_in(reading, known), name_in(reading, name));
            self.join((reading, NodeName::Lid(lid)), name_in(reading, name));
        }
    }

    /// A LID belongs to one node, unless the descriptions say that it moved between two files.
    fn join_by_lids(&mut self) {
        let mut by_lid: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for id in 0..self.nodes.len() {
            if self.root(id) == id {
                for lid in &self.nodes[id].lids {
                    by_lid.entry(*lid).or_default().push(id);
                }
            }
        }
        // The other LIDs of a port with an LMC.
        for (base, lmc) in std::mem::take(&mut self.masks) {
            let last = base.saturating_add((1 << lmc.min(7)) - 1);
            let others = by_lid.range(base..=last).skip(1).flat_map(|(_, ids)| ids);
            let is_unnamed = |id: &usize| self.nodes[*id].guid.is_none();
            let unnamed: Vec<usize> = others.copied().filter(is_unnamed).collect();
            by_lid.entry(base).or_default().extend(unnamed);
        }
        for ids in by_lid.into_values() {
            let mut of_description: BTreeMap<String, usize> = BTreeMap::new();
            let mut unnamed = Vec::new();
            for id in ids {
                let id = self.root(id);
                let description = join_blanks(&self.nodes[id].record.description).into_owned();
                if description.is_empty() {
                    unnamed.push(id);
                    continue;
                }
                let first = *of_description.entry(description).or_insert(id);
                self.join_sets(first, id);
            }
            // Two nodes with one LID are of two fabrics: which one a mere LID means is not known.
            let mut named = of_description.into_values();
            let target = named.next().or(unnamed.first().copied());
            if let (Some(target), None) = (target, named.next()) {
                for id in unnamed {
                    self.join_sets(target, id);
                }
            }
        }
    }

    /// Names with one description are one node if their GUIDs are near, or if there is one such node.
    fn join_by_descriptions(&mut self) {
        let mut by_description: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for id in 0..self.nodes.len() {
            let description = join_blanks(&self.nodes[id].record.description).into_owned();
            if self.root(id) == id && !description.is_empty() {
                by_description.entry(description).or_default().push(id);
            }
        }
        for (description, ids) in by_description {
            // Many adapters have the description that they were delivered with.
            let is_default = description.contains("Mellanox Technologies");
            let (named, unnamed): (Vec<usize>, Vec<usize>) =
                ids.into_iter().partition(|id| self.nodes[*id].guid.is_some());
            let (with_guid, without): (Vec<usize>, Vec<usize>) =
                unnamed.into_iter().partition(|id| self.guid(*id).is_some());
            // Where many have the same default description, ports of two adapters may differ in their numbers only.
            let is_ambiguous = |ids: &[usize]| {
                let mut numbers = BTreeSet::new();
                let mut ports = ids.iter().flat_map(|id| self.nodes[*id].ports.keys());
                ports.any(|number| !numbers.insert(*number))
            };
            let is_ambiguous = is_ambiguous(&without) || is_ambiguous(&with_guid);
            let mut targets: BTreeMap<Guid, usize> = BTreeMap::new();
            let mut count = named.len();
            let mut only = named.first().copied();
            targets.extend(named.into_iter().filter_map(|id| Some((self.guid(id)?, id))));
            for id in with_guid.into_iter().chain(without) {
                let own = self.guid(id);
                let nearest = own.and_then(|own| {
                    let near = targets
                        .range(Guid(own.0.saturating_sub(NEAR))..=Guid(own.0.saturating_add(NEAR)));
                    let fits = near.filter(|(_, target)| self.may_be(**target, id));
                    fits.min_by_key(|(guid, _)| guid.0.abs_diff(own.0)).map(|(_, target)| *target)
                });
                let only_one = only.filter(|target| {
                    let is_node = self.nodes[self.root(*target)].guid.is_some() && !is_default;
                    let has_guids = own.is_some() && self.guid(*target).is_some();
                    let is_alone = count == 1 && !is_ambiguous;
                    is_alone && (is_node || !has_guids) && self.may_be(*target, id)
                });
                if let Some(target) = nearest.or(only_one) {
                    self.join_sets(target, id);
                } else {
                    count += 1;
                    only = Some(id);
                    targets.extend(own.map(|own| (own, id)));
                }
            }
        }
    }

    /// Whether two sets with the same description may be one node: no port of it would be two, and a switch has one LID.
    fn may_be(&self, target: usize, id: usize) -> bool {
        let (target, id) = (self.root(target), self.root(id));
        let (known, other) = (&self.nodes[target], &self.nodes[id]);
        let has_other_lids =
            !known.lids.is_empty() && !other.lids.is_empty() && known.lids.is_disjoint(&other.lids);
        let is_small = |node: &Known| {
            !node.is_switch() && node.ports.keys().all(|number| *number <= MAX_ADAPTER_PORTS)
        };
        let is_other = has_other_lids && (!is_small(known) || !is_small(other));
        !is_other && !self.are_different(target, id)
    }

    /// The GUID of a node, or the first one of its ports.
    fn guid(&self, id: usize) -> Option<Guid> {
        let known = &self.nodes[self.root(id)];
        known.guid.or(known.port_guids.first().copied())
    }

    /// What a node is where no file says it: a switch has many ports with one LID, and is the peer of an adapter.
    fn infer_kinds(&mut self, contents: &[Contents]) {
        let is_adapter_name = |name: &str| {
            let name = name.to_ascii_lowercase();
            let words = ["hca-", "mlx4_", "mlx5_", "hfi1_", "qib0", "aggregation node", "connectx"];
            words.iter().any(|word| name.contains(word)) && !name.starts_with("mf0;")
        };
        for id in 0..self.nodes.len() {
            let is_root = self.root(id) == id;
            let known = &mut self.nodes[id];
            if !is_root || known.record.kind.is_some() {
                continue;
            }
            let most = known.ports.keys().copied().max().unwrap_or(0).max(known.record.port_count);
            known.record.kind = match known {
                _ if is_adapter_name(&known.record.description) => Some(NodeKind::Ca),
                _ if most > MAX_ADAPTER_PORTS => Some(NodeKind::Switch),
                _ if known.ports.len() > 1 && known.lids.len() == 1 => Some(NodeKind::Switch),
                _ => None,
            };
        }
        let links = contents.iter().enumerate().flat_map(|(reading, contents)| {
            contents
                .links
                .iter()
                .map(move |(near, far)| [near, far].map(|end| name_in(reading, end.node)))
        });
        for [near, far] in links {
            let Some((near, far)) = self.find(near).zip(self.find(far)) else { continue };
            for (one, other) in [(near, far), (far, near)] {
                if self.nodes[one].record.kind.is_none()
                    && self.nodes[other].record.kind == Some(NodeKind::Ca)
                {
                    self.nodes[one].record.kind = Some(NodeKind::Switch);
                }
            }
        }
    }

    /// The nodes with their GUIDs, and which name means which.
    pub fn nodes(self) -> (BTreeMap<Guid, NodeRecord>, Places) {
        let roots: Vec<usize> = (0..self.nodes.len()).filter(|id| self.root(*id) == *id).collect();
        let mut guids: BTreeMap<usize, Guid> = BTreeMap::new();
        let mut descriptions: HashMap<String, usize> = HashMap::new();
        for id in &roots {
            if let Some(guid) = self.guid(*id) {
                guids.insert(*id, guid);
            } else {
                let description = join_blanks(&self.nodes[*id].record.description).into_owned();
                *descriptions.entry(description).or_default() += 1;
            }
        }
        let mut taken: BTreeSet<Guid> = guids.values().copied().collect();
        let mut nodes = BTreeMap::new();
        for id in roots {
            let known = &self.nodes[id];
            let guid = *guids.entry(id).or_insert_with(|| {
                let description = join_blanks(&known.record.description).into_owned();
                let is_unique = descriptions.get(&description) == Some(&1);
                let mut guid = made_up(&description, known.lids.first().copied(), is_unique);
                while !taken.insert(guid) {
                    guid = Guid(MADE_UP | guid.0.wrapping_add(1) & 0xffff_ffff);
                }
                guid
            });
            let mut record = known.record.clone();
            let last = known.ports.keys().copied().max().unwrap_or(0);
            record.port_count = record.port_count.max(last);
            record.lid = record.lid.or(known.lids.first().copied().filter(|_| known.is_switch()));
            nodes.insert(guid, record);
        }
        let by_name = self.ids.iter().map(|(name, id)| (*name, guids[&self.root(*id)]));
        (nodes, Places(by_name.collect()))
    }
}

/// A GUID for a node of which only a description or a LID is known. It is the same in each dump with that name.
fn made_up(description: &str, lid: Option<u16>, is_unique: bool) -> Guid {
    // FNV-1a
    let add = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let mut hash = description.bytes().fold(0x811c_9dc5, add);
    if !is_unique || description.is_empty() {
        hash = lid.unwrap_or(0).to_be_bytes().into_iter().fold(hash, add);
    }
    Guid(MADE_UP | u64::from(hash))
}

/// Which node a name means.
#[derive(Debug, Default)]
pub struct Places(HashMap<Name, Guid>);

impl Places {
    /// The port of a name in a reading.
    pub fn port(&self, reading: usize, name: PortName) -> Option<PortKey> {
        let guid = self.0.get(&name_in(reading, name.node))?;
        Some(PortKey::new(*guid, name.number))
    }
}
