//! Small fabrics, and what is told of them, as text.

use std::collections::{BTreeMap, BTreeSet};

use drain_plan::Share;
use fabric_api::model::{
    Condition, End, FabricLinks, FabricNodes, Link, LinkPlane, Links, Node, Nodes, PortName,
};
use ib_mad::Guid;

use crate::cli::drain_plan::judge::{self, Question};
use crate::cli::drain_plan::net::FabricNet;
use crate::cli::drain_plan::parts::Target;
use crate::cli::drain_plan::report::Report;
use crate::cli::drain_plan::{drained_hosts, select};

/// Models of a fabric that is written as text.
///
/// `h1-L1 h2.2-L1 L1xS1 L1?S1:200` are links of 400 Gb/s, or as many as written behind a colon: `x` is down, and `?` not
/// known. Names with `h` are HCAs, `h2.2` the second one of host h2; with `r` routers, with `a` aggregation nodes; all
/// others are switches. A `!` at the end makes a link bad, a `~` degraded.
#[derive(Default)]
pub(super) struct Fabric {
    pub(super) links: Vec<Link>,
    pub(super) nodes: Vec<Node>,
    ports: BTreeMap<String, u8>,
}

impl Fabric {
    pub(super) fn parse(text: &str) -> Self {
        let mut fabric = Fabric::default();
        for word in text.split_whitespace() {
            fabric.add(word);
        }
        fabric
    }

    pub(super) fn add(&mut self, word: &str) {
        let is_bad = word.ends_with('!');
        let is_degraded = word.ends_with('~');
        let word = word.trim_end_matches(['!', '~']);
        let (ends, gbps) = word.split_once(':').unwrap_or((word, "400"));
        let at = ends.find(['-', 'x', '?']).unwrap();
        let up = match &ends[at..=at] {
            "-" => Some(true),
            "x" => Some(false),
            _ => None,
        };
        let gbps: u64 = gbps.parse().unwrap();
        let ends = [&ends[..at], &ends[at + 1..]].map(|name| self.end(name));
        let verdict = match (is_bad, is_degraded) {
            (true, _) => "bad",
            (_, true) => "watch",
            _ => "ok",
        };
        self.links.push(Link {
            link: format!("{}:{}-{}:{}", ends[0].guid, ends[0].port, ends[1].guid, ends[1].port),
            fabric: "f".into(),
            verdict: verdict.into(),
            up,
            rate: (up == Some(true)).then_some(gbps * 125_000_000),
            ends,
            ..Link::default()
        });
    }

    pub(super) fn end(&mut self, name: &str) -> End {
        let node_type = match &name[..1] {
            "h" => "ca",
            "r" => "router",
            "a" => "aggregation_node",
            _ => "switch",
        };
        let host = (node_type == "ca").then(|| name.split('.').next().unwrap().to_owned());
        if !self.nodes.iter().any(|node| node.node == name) {
            let guid = Guid(self.nodes.len() as u64 + 1).to_string();
            self.nodes.push(Node {
                guid: guid.clone(),
                system_guid: guid,
                node: name.into(),
                description: name.into(),
                node_type: node_type.into(),
                host: host.clone(),
                up: true,
                ..Node::default()
            });
        }
        let port = self.ports.entry(name.to_owned()).or_default();
        *port += 1;
        let port = *port;
        let guid = self.node(name).guid.clone();
        let node_type = node_type.into();
        End { guid, node: name.into(), port, node_type, host, ..End::default() }
    }

    pub(super) fn node(&self, name: &str) -> &Node {
        self.nodes.iter().find(|node| node.node == name).unwrap()
    }

    pub(super) fn node_mut(&mut self, name: &str) -> &mut Node {
        self.nodes.iter_mut().find(|node| node.node == name).unwrap()
    }

    pub(super) fn models(&self, fabric: &str) -> (Links, Nodes) {
        let condition = Condition { verdict: "ok".into(), ..Condition::default() };
        let (links, nodes, name) = (self.links.clone(), self.nodes.clone(), fabric.to_owned());
        let links =
            FabricLinks { fabric: name.clone(), condition, links, ..FabricLinks::default() };
        let nodes = FabricNodes { fabric: name, nodes, ..FabricNodes::default() };
        (Links { fabrics: vec![links] }, Nodes { fabrics: vec![nodes] })
    }

    pub(super) fn net(&self) -> FabricNet {
        let (links, nodes) = self.models("f");
        FabricNet::new(&links, &nodes)
    }

    /// `L1-S1` is the first link of both, `L1-S1#2` the second; other names are nodes.
    pub(super) fn targets(&self, net: &FabricNet, repairs: &str) -> Vec<Target> {
        let mut targets = Vec::new();
        for word in repairs.split_whitespace() {
            let (ends, nth) = word.split_once('#').unwrap_or((word, "1"));
            let nth: usize = nth.parse().unwrap();
            let place = if let Some((a, b)) = ends.split_once('-') {
                let is_it = |link: &&Link| link.ends[0].node == a && link.ends[1].node == b;
                let end = &self.links.iter().filter(is_it).nth(nth - 1).unwrap().ends[0];
                vec![(end.guid.parse().unwrap(), Some(end.port))]
            } else {
                let is_it = |node: &&Node| node.node == ends || node.host.as_deref() == Some(ends);
                let nodes = self.nodes.iter().filter(is_it);
                nodes.map(|node| (node.guid.parse().unwrap(), None)).collect()
            };
            targets.extend(select::of_places(net, ends, &place).unwrap());
        }
        targets
    }

    pub(super) fn report(&self, repairs: &str, drained: &str, min_capacity: f64) -> Report {
        let mut net = self.net();
        let targets = self.targets(&net, repairs);
        answer(&mut net, &targets, drained, min_capacity)
    }
}

pub(super) fn answer(
    net: &mut FabricNet,
    targets: &[Target],
    drained: &str,
    min_capacity: f64,
) -> Report {
    let drained: Vec<String> = drained.split_whitespace().map(str::to_owned).collect();
    let drained: BTreeSet<usize> = drained_hosts(net, &drained).unwrap();
    let min_capacity = Share::new(min_capacity).unwrap();
    judge::report(&Question { net, targets, drained: &drained, min_capacity }).unwrap()
}

/// `L1-S1 80% L1 rail h2 | spine`, windows separated by a bar, and `; unsafe L1-S1: why: advice`.
pub(super) fn told(report: &Report) -> String {
    let short = |name: &str| {
        let words: Vec<&str> = name.split(' ').collect();
        match words[..] {
            [a, "port", _, "–", b, "port", _] => format!("{a}-{b}"),
            _ => name.to_owned(),
        }
    };
    let windows = report.windows.iter().map(|window| {
        let names = window.repairs.iter().map(|it| short(&it.what.name));
        let mut parts = vec![names.collect::<Vec<_>>().join(" ")];
        if let Some(leaf) = &window.left.worst_leaf {
            let share = judge::percent(window.left.remaining_capacity);
            parts.push(format!("{} {share}", leaf.node));
        }
        if !window.rails_lost.is_empty() {
            parts.push(format!("rail {}", window.rails_lost));
        }
        parts.extend(window.doubt.clone());
        parts.join(", ")
    });
    let windows = windows.collect::<Vec<_>>().join(" | ");
    let refused = report
        .unsafe_repairs
        .iter()
        .map(|it| format!("; unsafe {}: {}: {}", short(&it.what.name), it.why, it.advice));
    windows + &refused.collect::<String>()
}

/// Switches of four nodes, one for each plane, with a host at each of the first two.
pub(super) fn planes() -> Fabric {
    let mut fabric = Fabric::default();
    for (leaf, host) in [("L1", "h1"), ("L2", "h2")] {
        for ends in [[host, leaf], [leaf, "S1"], [leaf, "S2"]] {
            let mut planes = Vec::new();
            for plane in 1..=4_u8 {
                let node = |name: &str| match name {
                    host if host.starts_with('h') => host.to_owned(),
                    switch => format!("{switch}p{plane}"),
                };
                let ends = ends.map(|name| fabric.end(&node(name)));
                planes.push((plane, ends));
            }
            let (_, lead) = planes[0].clone();
            let port = |end: &End| PortName {
                guid: end.guid.clone(),
                node: end.node.clone(),
                host: end.host.clone(),
                node_type: end.node_type.clone(),
                port: end.port,
                front_panel: None,
            };
            let plane = |(plane, ends): &(u8, [End; 2])| LinkPlane {
                plane: *plane,
                ports: ends.each_ref().map(port),
                up: Some(true),
                rate: Some(25_000_000_000),
                ..LinkPlane::default()
            };
            let id = [&lead[0], &lead[1]].map(|end| format!("{}:{}", end.guid, end.port));
            fabric.links.push(Link {
                link: id.join("-"),
                fabric: "f".into(),
                verdict: "ok".into(),
                up: Some(true),
                rate: Some(100_000_000_000),
                planes: planes.iter().map(plane).collect(),
                ends: lead,
                ..Link::default()
            });
        }
    }
    for node in &mut fabric.nodes {
        if let Some((switch, _)) = node.node.split_once('p') {
            node.system_guid = Guid(
                0x100 + u64::from(switch.as_bytes()[0]) * 16 + u64::from(switch.as_bytes()[1]),
            )
            .to_string();
        }
    }
    fabric
}
