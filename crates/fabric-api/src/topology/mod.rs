//! `/api/v1/topology`: the switches of each fabric and the links between them, built from the latest snapshots.

mod groups;
mod wiring;

use std::cmp::Reverse;

use fabric_observation::Observation;
use ib_fabric::{NodeIndex, Snapshot};
use ib_health::Verdict;

use crate::condition::name;
use crate::link_row::LinkRow;
use crate::model::{
    Bundle, CongestionCounts, LinkFigures, Suspect, Switch, SwitchlessPair, Topology, Verdicts,
};
use crate::view::FabricView;

pub use wiring::{HostLink, WiredBundle, WiredSwitch, Wiring};

/// The most links that a bundle or a switch lists one by one.
const MAX_SUSPECTS: usize = 8;

/// The topology of a fabric.
pub fn topology(observation: &Observation) -> Topology {
    match FabricView::new(observation) {
        Some(view) => Wiring::new(view).topology(),
        None => Topology { fabric: observation.fabric.clone(), ..Topology::default() },
    }
}

/// The switches of the lowest level, those with hosts, in the order in which they are listed.
pub fn leaves(snapshot: &Snapshot) -> Vec<NodeIndex> {
    let leaves = groups::ordered_switches(snapshot).into_iter().filter(|it| it.level == Some(1));
    leaves.map(|it| it.node).collect()
}

impl<'a> Wiring<'a> {
    /// Its model.
    pub fn topology(&self) -> Topology {
        let mut switches: Vec<Switch> = self.switches.iter().map(|it| self.switch(it)).collect();
        let mut bundles = Vec::with_capacity(self.bundles.len());
        for WiredBundle { a, b, links } in &self.bundles {
            let sum = LinkSum::of(links.iter());
            let count = sum.verdicts.count();
            if switches[*a].level == switches[*b].level {
                switches[*a].side_links += count;
                switches[*b].side_links += count;
            } else {
                // The order has the lower level first, and switches without a level last.
                switches[*a].up_links += count;
                switches[*b].down_links += count;
            }
            for place in [*a, *b] {
                let switch = &mut switches[place];
                switch.verdicts = switch.verdicts.and(sum.verdicts);
                switch.congestion = switch.congestion.and(&sum.congestion);
                switch.figures.add(&sum.figures);
            }
            bundles.push(Bundle {
                a: *a,
                b: *b,
                verdicts: sum.verdicts,
                suspects: worst_suspects(links.iter()),
                congestion: sum.congestion,
                figures: sum.figures,
            });
        }
        for switch in &mut switches {
            switch.worst_verdict = Some(switch.verdicts.worst().label().into());
        }
        Topology {
            fabric: self.view.name.to_owned(),
            swept_at: self.view.swept_at(),
            switches,
            bundles,
            switch_links: self.switch_links,
            host_links: self.host_links,
            switchless: self.switchless.iter().map(switchless_pair).collect(),
        }
    }

    /// A switch with the links to its hosts only.
    fn switch(&self, it: &WiredSwitch<'a>) -> Switch {
        let node = self.view.snapshot.fabric.node(it.node);
        let down = self.down.get(it.node);
        let links = || it.hosts.iter().map(|host| &host.link);
        let hosts = LinkSum::of(links());
        Switch {
            guid: node.identity.guid.to_string(),
            node: node.name.clone(),
            up: self.view.snapshot.is_up(it.node),
            level: it.level,
            group: it.group,
            down_since: down.and_then(|down| self.view.time(down.since?)),
            behind: down.and_then(|down| down.behind).map(|by| name(self.view, by)),
            hosts_down: self.hosts_down(it),
            hosts: hosts.verdicts.count(),
            host_verdicts: hosts.verdicts,
            host_suspects: worst_suspects(links()),
            verdicts: hosts.verdicts,
            host_congestion: hosts.congestion.clone(),
            congestion: hosts.congestion,
            temperature: self.view.temperature(it.node),
            host_figures: hosts.figures.clone(),
            figures: hosts.figures,
            ..Switch::default()
        }
    }
}

/// Links that are summed up: those between two switches, or from a switch to its hosts.
#[derive(Clone, Debug, Default)]
pub struct LinkSum {
    /// By verdict.
    pub verdicts: Verdicts,
    /// The congestion on them.
    pub congestion: CongestionCounts,
    /// What was measured.
    pub figures: LinkFigures,
}

impl LinkSum {
    /// The sum of some links.
    pub fn of<'a: 'b, 'b>(links: impl Iterator<Item = &'b LinkRow<'a>>) -> Self {
        let mut sum = LinkSum::default();
        for link in links {
            sum.verdicts.add_link(link);
            sum.congestion = sum.congestion.and(&link.congestion());
            sum.figures.add_link(link);
        }
        sum
    }
}

/// The worst links that are watch or bad. Unknown ones are not listed: after a start there are many.
fn worst_suspects<'a: 'b, 'b>(links: impl Iterator<Item = &'b LinkRow<'a>>) -> Vec<Suspect> {
    let mut worst: Vec<&LinkRow<'_>> =
        links.filter(|link| link.verdict() >= Verdict::Watch).collect();
    worst.sort_by_key(|link| (Reverse(link.verdict()), link.cable.low));
    worst.into_iter().take(MAX_SUSPECTS).map(suspect).collect()
}

fn suspect(link: &LinkRow<'_>) -> Suspect {
    Suspect { link: link.id(), name: link.name(), verdict: link.verdict().label().into() }
}

fn switchless_pair(row: &LinkRow<'_>) -> SwitchlessPair {
    let Suspect { link, verdict, .. } = suspect(row);
    let nodes = row.ports().map(|port| {
        let node = row.view.snapshot.fabric.node_of(port);
        (node.identity.guid.to_string(), node.name.clone())
    });
    SwitchlessPair { nodes: nodes.to_vec(), link: Some(link), verdict: Some(verdict) }
}
