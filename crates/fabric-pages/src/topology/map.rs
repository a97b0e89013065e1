//! A fabric with the classes of its links: what all parts of the picture are made from.

use fabric_api::LinkRow;
use fabric_api::model::{CUT_OFF, DOWN};
use fabric_api::topology::{HostLink, Wiring};
use ib_mad::Guid;

use super::choice::MapChoice;
use super::coloring::{Class, Coloring, Tally};

#[derive(Debug)]
pub struct Map<'a> {
    pub wiring: Wiring<'a>,
    pub coloring: Coloring,
    pub choice: MapChoice,
    /// By switch.
    tallies: Vec<SwitchTally>,
    /// The places of the bundles of each switch.
    bundles: Vec<Vec<usize>>,
    /// All links, each once.
    pub all: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
struct SwitchTally {
    /// All of its links, and itself.
    all: Tally,
    hosts: Tally,
}

/// What a part of the picture stands for.
#[derive(Clone, Debug)]
pub enum Members<'a> {
    /// The places of some switches.
    Switches(Vec<usize>),
    Host(HostLink<'a>),
}

/// How many of some switches are down by themselves, and how many behind others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DownCount {
    pub down: usize,
    pub cut_off: usize,
}

impl DownCount {
    pub fn any(self) -> usize {
        self.down + self.cut_off
    }

    /// The class in the style sheet, if any is down.
    pub fn class(self) -> Option<&'static str> {
        match (self.down, self.cut_off) {
            (0, 0) => None,
            (0, _) => Some(CUT_OFF),
            _ => Some(DOWN),
        }
    }
}

impl<'a> Map<'a> {
    pub fn new(wiring: Wiring<'a>, coloring: Coloring, choice: MapChoice) -> Self {
        let mut tallies = vec![SwitchTally::default(); wiring.switches.len()];
        let mut bundles = vec![Vec::new(); wiring.switches.len()];
        for (switch, tally) in wiring.switches.iter().zip(&mut tallies) {
            for host in &switch.hosts {
                tally.hosts.add(coloring.link(&host.link));
            }
            tally.all = tally.hosts;
            let guid = wiring.view.snapshot.fabric.node(switch.node).identity.guid;
            if let Some(class) = coloring.node(guid) {
                tally.all.add(Some(class));
            }
        }
        for (place, bundle) in wiring.bundles.iter().enumerate() {
            let mut tally = Tally::default();
            for link in &bundle.links {
                tally.add(coloring.link(link));
            }
            for (switch, other) in [(bundle.a, bundle.b), (bundle.b, bundle.a)] {
                // That nothing is known of links to a switch that is down says nothing about this one.
                let is_down = wiring.down.get(wiring.switches[other].node).is_some();
                let counted = if is_down { Tally { unknown: 0, ..tally } } else { tally };
                tallies[switch].all = tallies[switch].all.and(&counted);
                bundles[switch].push(place);
            }
        }
        let mut all = Tally::default();
        for link in wiring.view.links() {
            all.add(coloring.link(&link));
        }
        Map { wiring, coloring, choice, tallies, bundles, all }
    }

    pub fn fabric(&self) -> &'a str {
        self.wiring.view.name
    }

    pub fn name(&self, switch: usize) -> &'a str {
        let view = self.wiring.view;
        &view.snapshot.fabric.node(self.wiring.switches[switch].node).name
    }

    pub fn guid(&self, switch: usize) -> Guid {
        let view = self.wiring.view;
        view.snapshot.fabric.node(self.wiring.switches[switch].node).identity.guid
    }

    /// The place of the switch with a GUID.
    pub fn place(&self, guid: Guid) -> Option<usize> {
        (0..self.wiring.switches.len()).find(|place| self.guid(*place) == guid)
    }

    /// The levels, the highest first, each with its switches.
    pub fn levels(&self) -> Vec<(Option<u8>, Vec<usize>)> {
        let switches = &self.wiring.switches;
        let mut levels: Vec<(Option<u8>, Vec<usize>)> = Vec::new();
        for (place, switch) in switches.iter().enumerate() {
            match levels.last_mut() {
                Some((level, of)) if *level == switch.level => of.push(place),
                _ => levels.push((switch.level, vec![place])),
            }
        }
        levels.reverse();
        levels
    }

    pub fn top_level(&self) -> Option<u8> {
        self.wiring.switches.iter().filter_map(|switch| switch.level).max()
    }

    /// The switches that a switch has links with.
    pub fn neighbors(&self, switch: usize) -> impl Iterator<Item = usize> {
        let bundles = self.bundles[switch].iter().map(|bundle| &self.wiring.bundles[*bundle]);
        bundles.map(move |bundle| if bundle.a == switch { bundle.b } else { bundle.a })
    }

    /// All links of some switches, each once.
    fn links(&self, switches: &[usize]) -> Vec<LinkRow<'a>> {
        let of_switch = |switch: &usize| {
            let bundles = self.bundles[*switch].iter();
            bundles.flat_map(|bundle| &self.wiring.bundles[*bundle].links)
        };
        let mut links: Vec<LinkRow<'a>> =
            switches.iter().flat_map(of_switch).chain(self.host_links(switches)).copied().collect();
        links.sort_unstable_by_key(|link| link.cable.low);
        links.dedup_by_key(|link| link.cable.low);
        links
    }

    /// The links of some switches to their hosts.
    pub fn host_links(&self, switches: &[usize]) -> impl Iterator<Item = &LinkRow<'a>> {
        let hosts = switches.iter().flat_map(|switch| &self.wiring.switches[*switch].hosts);
        hosts.map(|host| &host.link)
    }

    /// All links of a part of the picture, each once.
    pub fn links_of(&self, members: &Members<'a>) -> Vec<LinkRow<'a>> {
        match members {
            Members::Switches(switches) => self.links(switches),
            Members::Host(host) => vec![host.link],
        }
    }

    /// The links of a part of the picture and itself, by class.
    pub fn tally(&self, members: &Members<'a>) -> Tally {
        match members {
            Members::Switches(switches) => self.sum(switches, |tally| tally.all),
            Members::Host(host) => self.tally_of([host.link].iter()),
        }
    }

    /// The links to its hosts.
    pub fn host_tally(&self, members: &Members<'a>) -> Tally {
        match members {
            Members::Switches(switches) => self.sum(switches, |tally| tally.hosts),
            Members::Host(_) => Tally::default(),
        }
    }

    pub fn tally_of<'b>(&self, links: impl Iterator<Item = &'b LinkRow<'a>>) -> Tally
    where
        'a: 'b,
    {
        let mut tally = Tally::default();
        links.for_each(|link| tally.add(self.coloring.link(link)));
        tally
    }

    fn sum(&self, switches: &[usize], of: impl Fn(&SwitchTally) -> Tally) -> Tally {
        let tallies = switches.iter().map(|switch| of(&self.tallies[*switch]));
        tallies.fold(Tally::default(), |sum, it| sum.and(&it))
    }

    pub fn down(&self, members: &Members<'a>) -> DownCount {
        let mut count = DownCount::default();
        let nodes: Vec<_> = match members {
            Members::Switches(switches) => {
                switches.iter().map(|switch| self.wiring.switches[*switch].node).collect()
            }
            Members::Host(host) => vec![host.host],
        };
        for down in nodes.into_iter().filter_map(|node| self.wiring.down.get(node)) {
            *(if down.behind.is_some() { &mut count.cut_off } else { &mut count.down }) += 1;
        }
        count
    }

    /// The class that a part of the picture shows.
    pub fn worst(&self, tally: &Tally) -> Option<Class> {
        self.coloring.worst(tally)
    }
}
