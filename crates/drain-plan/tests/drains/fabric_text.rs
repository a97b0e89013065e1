//! Fabrics as text: `h1-L1 h2-L1 L1-S1 L1-S1`.
//!
//! Names that begin with `h` are HCAs, all others switches. `h1` is the only HCA of host h1, `h1.2` its second. Each
//! word is a link of 400 Gb/s; with `x` instead of `-` it is down, with `:100` its capacity is 100 Gb/s. In lists of
//! repairs, `L1-S1` is the first link with these ends, `L1-S1#2` the second.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use drain_plan::{
    Assessment, HostId, Link, LinkId, LinkState, Net, NodeId, Repair, Share, assess, plan,
};

#[derive(Default)]
pub(crate) struct Fabric {
    net: Net,
    hosts: BTreeMap<String, HostId>,
    nodes: BTreeMap<String, NodeId>,
    links: BTreeMap<String, LinkId>,
}

impl Fabric {
    pub(crate) fn parse(text: &str) -> Self {
        let mut fabric = Fabric::default();
        for word in text.split_whitespace() {
            let (ends, gbps) = word.split_once(':').unwrap_or((word, "400"));
            let state = if ends.contains('-') { LinkState::Usable } else { LinkState::Down };
            let (first, second) = ends.split_once(['-', 'x']).unwrap();
            let ends = [first, second].map(|name| fabric.node(name));
            let link = Link { ends, gbps: gbps.parse().unwrap(), state };
            let id = fabric.net.add_link(link).unwrap();
            let name = format!("{first}-{second}");
            let parallel = (2..).map(|number| format!("{name}#{number}"));
            let mut names = std::iter::once(name.clone()).chain(parallel);
            let free = names.find(|name| !fabric.links.contains_key(name)).unwrap();
            fabric.links.insert(free, id);
        }
        fabric
    }

    fn node(&mut self, name: &str) -> NodeId {
        if let Some(&node) = self.nodes.get(name) {
            return node;
        }
        let node = if name.starts_with('h') {
            let host = name.split('.').next().unwrap();
            let host = *self.hosts.entry(host.to_owned()).or_insert_with(|| self.net.add_host());
            self.net.add_hca(host).unwrap()
        } else {
            self.net.add_switch()
        };
        self.nodes.insert(name.to_owned(), node);
        node
    }

    fn repairs(&self, text: &str) -> Vec<Repair> {
        let named = |name: &str| {
            let link = self.links.get(name).copied().map(Repair::Link);
            link.or_else(|| self.nodes.get(name).copied().map(Repair::Node))
                .unwrap_or_else(|| panic!("unknown: {name}"))
        };
        text.split_whitespace().map(named).collect()
    }

    fn drained(&self, text: &str) -> BTreeSet<HostId> {
        text.split_whitespace().map(|name| self.hosts[name]).collect()
    }

    pub(crate) fn assess(&self, repairs: &str, drained: &str) -> Assessment {
        assess(&self.net, &self.repairs(repairs), &self.drained(drained)).unwrap()
    }

    /// For example `cut h1 | rails h2.1 | L1 400/800, L2 0/800`, without the parts that are empty.
    pub(crate) fn describe(&self, assessment: &Assessment) -> String {
        let hosts = assessment.cut_hosts.iter().map(|cut| key_of(&self.hosts, &cut.host));
        let hcas = assessment.cut_hcas.iter().map(|cut| key_of(&self.nodes, &cut.hca));
        let leaves = assessment.reduced_leaves.iter().map(|leaf| {
            let name = key_of(&self.nodes, &leaf.leaf);
            format!("{name} {}/{}", leaf.after_gbps, leaf.before_gbps)
        });
        let list = |prefix: &str, names: Vec<&str>, separator: &str| {
            (!names.is_empty()).then(|| format!("{prefix}{}", names.join(separator)))
        };
        let leaves: Vec<String> = leaves.collect();
        let parts = [
            list("cut ", hosts.collect(), " "),
            list("rails ", hcas.collect(), " "),
            list("", leaves.iter().map(String::as_str).collect(), ", "),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" | ")
    }

    /// For example `L1-S1 L2-S1 | L1-S2; unsafe h1-L1 (cut h1)`: the windows, and the repairs in none.
    pub(crate) fn plan(&self, repairs: &str, drained: &str, min_capacity: f64) -> String {
        let share = Share::new(min_capacity).unwrap();
        let plan = plan(&self.net, &self.repairs(repairs), &self.drained(drained), share).unwrap();
        let windows = plan.windows.iter().map(|window| {
            let names = window.repairs.iter().map(|&repair| self.repair_name(repair));
            names.collect::<Vec<_>>().join(" ")
        });
        let mut text = windows.collect::<Vec<_>>().join(" | ");
        for refused in &plan.unsafe_repairs {
            let (name, why) = (self.repair_name(refused.repair), &refused.assessment);
            let _ = write!(text, "; unsafe {name} ({})", self.describe(why));
        }
        text
    }

    fn repair_name(&self, repair: Repair) -> &str {
        match repair {
            Repair::Link(link) => key_of(&self.links, &link),
            Repair::Node(node) => key_of(&self.nodes, &node),
            Repair::Group(_) => "group",
        }
    }
}

fn key_of<'a, Id: PartialEq>(map: &'a BTreeMap<String, Id>, id: &Id) -> &'a str {
    map.iter().find(|(_, it)| *it == id).unwrap().0
}
