//! Random small fabrics, the same in each run.

use std::collections::{BTreeMap, BTreeSet};

use drain_plan::{GroupId, HostId, Link, LinkId, LinkState, Net, NodeId, Repair, Share};

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `count - 1`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// Both limits are included.
    pub(crate) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// What groups consist of.
#[derive(Debug, Default)]
pub(crate) struct Groups(BTreeMap<GroupId, Vec<Repair>>);

impl Groups {
    /// The links and nodes of a repair.
    pub(crate) fn parts(&self, repair: Repair) -> Vec<Repair> {
        match repair {
            Repair::Group(group) => self.0[&group].clone(),
            Repair::Link(_) | Repair::Node(_) => vec![repair],
        }
    }
}

/// A fabric, with what is asked about it.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) net: Net,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) links: Vec<LinkId>,
    pub(crate) drained: BTreeSet<HostId>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) groups: Groups,
    pub(crate) min_capacity: Share,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        Case {
            net: Net::default(),
            nodes: Vec::new(),
            links: Vec::new(),
            drained: BTreeSet::new(),
            repairs: Vec::new(),
            groups: Groups::default(),
            min_capacity: Share::new(random.pick(&[0.0, 0.25, 0.5, 0.75, 1.0])).unwrap(),
        }
    }

    fn add_switches(&mut self, count: usize) -> Vec<NodeId> {
        let switches: Vec<NodeId> = (0..count).map(|_| self.net.add_switch()).collect();
        self.nodes.extend(&switches);
        switches
    }

    fn add_host(&mut self, hcas: usize) -> Vec<NodeId> {
        let host = self.net.add_host();
        let hcas: Vec<NodeId> = (0..hcas).map(|_| self.net.add_hca(host).unwrap()).collect();
        self.nodes.extend(&hcas);
        hcas
    }

    fn add_link(&mut self, random: &mut Random, ends: [NodeId; 2]) {
        let state = if random.percent(8) { LinkState::Down } else { LinkState::Usable };
        let gbps = random.pick(&[100, 200, 200, 400]);
        self.links.push(self.net.add_link(Link { ends, gbps, state }).unwrap());
    }

    /// Any nodes with any links: loopback plugs, parallel links, hosts back to back, HCAs with several ports.
    pub(crate) fn any(
        random: &mut Random,
        switches: usize,
        hosts: usize,
        more_links: usize,
        repairs: usize,
    ) -> Self {
        let mut case = Case::new(random);
        let switch_count = random.between(0, switches);
        let switches = case.add_switches(switch_count);
        for _ in 0..random.between(1, hosts) {
            let hca_count = random.pick(&[1, 1, 2]);
            for hca in case.add_host(hca_count) {
                if !switches.is_empty() && random.percent(85) {
                    let switch = random.pick(&switches);
                    case.add_link(random, [hca, switch]);
                }
            }
        }
        for _ in 0..random.between(0, more_links) {
            let from =
                if switches.is_empty() || random.percent(30) { &case.nodes } else { &switches };
            let ends = [random.pick(from), random.pick(from)];
            case.add_link(random, ends);
        }
        case.ask(random, repairs);
        case
    }

    /// Leaves with one or two uplinks to each spine, in one or two rails; at most 20 links.
    pub(crate) fn fat_tree(random: &mut Random, repairs: usize) -> Self {
        let mut case = Case::new(random);
        let rails = random.pick(&[1, 1, 2]);
        let mut leaves_of_rails = Vec::new();
        let leaf_count = if rails == 1 { random.between(2, 3) } else { 2 };
        for _ in 0..rails {
            let leaves = case.add_switches(leaf_count);
            let most_spines = if rails == 1 && leaf_count == 2 { 4 } else { 2 };
            let spine_count = random.between(1, most_spines);
            let spines = case.add_switches(spine_count);
            for &leaf in &leaves {
                for &spine in &spines {
                    for _ in 0..random.between(1, 2) {
                        case.add_link(random, [leaf, spine]);
                    }
                }
            }
            leaves_of_rails.push(leaves);
        }
        for place in 0..leaf_count {
            for (hca, leaves) in case.add_host(rails).into_iter().zip(&leaves_of_rails) {
                case.add_link(random, [hca, leaves[place]]);
            }
        }
        case.ask(random, repairs);
        case
    }

    /// Chooses repairs, mostly of links, some of several parts, and drained hosts.
    fn ask(&mut self, random: &mut Random, repairs: usize) {
        for _ in 0..repairs {
            let repair = if random.percent(15) { self.group(random) } else { self.part(random) };
            self.repairs.push(repair);
        }
        for host in self.net.host_ids() {
            if random.percent(15) {
                self.drained.insert(host);
            }
        }
    }

    fn part(&self, random: &mut Random) -> Repair {
        if self.links.is_empty() || random.percent(20) {
            Repair::Node(random.pick(&self.nodes))
        } else {
            Repair::Link(random.pick(&self.links))
        }
    }

    fn group(&mut self, random: &mut Random) -> Repair {
        let parts: Vec<Repair> = (0..random.between(0, 3)).map(|_| self.part(random)).collect();
        let links = parts.iter().filter_map(|part| match part {
            Repair::Link(link) => Some(*link),
            Repair::Node(_) | Repair::Group(_) => None,
        });
        let nodes = parts.iter().filter_map(|part| match part {
            Repair::Node(node) => Some(*node),
            Repair::Link(_) | Repair::Group(_) => None,
        });
        let (links, nodes): (Vec<_>, Vec<_>) = (links.collect(), nodes.collect());
        let group = self.net.add_group(&links, &nodes).unwrap();
        self.groups.0.insert(group, parts);
        Repair::Group(group)
    }
}
