//! What holds in any fabric, held against the plain rules written out pair by pair.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use ib_fabric::NodeIndex;

const PORTS: u8 = 6;

/// Switches, hosts and a router, with cables between any ports; shares with many equal ones; and how
/// full links are.
fn benches(full: bool) -> impl Strategy<Value = Bench> {
    let ends = (0..9u64, 1..=PORTS).prop_map(|(node, port)| match node {
        0..5 => end(SWITCHES + node, port),
        5..8 => end(node, 1 + port % 2),
        _ => end(ROUTERS, port),
    });
    let cables = vec((ends.clone(), ends, proptest::bool::weighted(0.9)), 1..24);
    let share = prop_oneof![
        3 => Just(None),
        3 => (1u8..6).prop_map(|tenths| Some(f32::from(tenths) / 10.0)),
        1 => Just(Some(0.03)),
        1 => (0.0f32..1.0).prop_map(Some),
    ];
    let used = prop_oneof![3 => Just(None), 1 => (0.8f32..1.0).prop_map(Some)];
    let most = 10 * (usize::from(PORTS) + 1);
    (cables, vec(share, most), vec(used, most)).prop_map(move |(cables, waits, used)| {
        let mut plugged = BTreeSet::new();
        let mut kept = Vec::new();
        for (a, b, connected) in cables {
            // A port has one cable; one to itself is one, too.
            if !plugged.contains(&a) && !plugged.contains(&b) {
                plugged.extend([a, b]);
                kept.push((a, b, connected));
            }
        }
        let mut bench = Bench::of(&kept);
        let ports = bench.fabric.ports.len();
        bench.waits = waits[..ports].to_vec().into();
        if full {
            bench.used = used[..ports].to_vec().into();
        }
        bench
    })
}

impl Bench {
    fn waiting(&self) -> BTreeSet<PortIndex> {
        let waits = |port: &PortIndex| {
            self.fabric.port(*port).number != 0
                && self.waits[*port].is_some_and(|share| share >= FLOOR)
        };
        self.fabric.port_indexes().filter(waits).collect()
    }

    fn is_full(&self, port: PortIndex) -> bool {
        self.fabric.port(port).number != 0 && self.used[port].is_some_and(|used| used >= FULL)
    }

    fn far(&self, port: PortIndex) -> Option<NodeIndex> {
        let peer = self.fabric.port(port).peer.filter(|peer| peer.connected)?;
        Some(self.fabric.port(peer.port).node)
    }

    /// Whom a port may wait for: the rules, pair by pair.
    fn waits_for(&self, port: PortIndex) -> Vec<PortIndex> {
        let levels = Levels::compute(&self.fabric);
        let from = self.fabric.port(port).node;
        let Some(via) = self.far(port) else { return Vec::new() };
        if !self.fabric.node(via).is_switch() || self.is_full(port) {
            return Vec::new();
        }
        let waiting = self.waiting();
        let fits = |next: &PortIndex| {
            let to = self.far(*next);
            let up_again = levels.rises(via, from) && to.is_some_and(|to| levels.rises(via, to));
            (waiting.contains(next) || self.is_full(*next)) && to != Some(from) && !up_again
        };
        self.fabric.ports_of(via).filter(fits).collect()
    }

    /// All that a port leads to, itself included.
    fn leads_to(&self, port: PortIndex) -> BTreeSet<PortIndex> {
        let mut met = BTreeSet::from([port]);
        let mut queue = vec![port];
        while let Some(port) = queue.pop() {
            queue.extend(self.waits_for(port).into_iter().filter(|next| met.insert(*next)));
        }
        met
    }

    fn share(&self, port: PortIndex) -> f32 {
        self.waits[port].unwrap_or_default()
    }

    /// How much a root weighs: that of a full link, by those that may wait for it.
    fn weight(&self, port: PortIndex) -> f32 {
        let full = self.used[port].filter(|_| self.is_full(port));
        let waiting = self.waiting();
        let before = waiting.iter().filter(|before| self.waits_for(**before).contains(&port));
        let most = before.map(|before| self.share(*before)).fold(0.0, f32::max);
        let own = if waiting.contains(&port) { self.share(port) } else { 0.0 };
        own.max(most / 2.0 * full.unwrap_or_default())
    }

    /// The one that waits most, the lowest of equals.
    fn heaviest(&self, ports: impl IntoIterator<Item = PortIndex>) -> Option<PortIndex> {
        ports.into_iter().min_by(|a, b| self.share(*b).total_cmp(&self.share(*a)).then(a.cmp(b)))
    }
}

fn is_root(found: &CongestionReport, port: PortIndex) -> bool {
    matches!(role_of(found, port), Some(Role::Root(_)))
}

fn is_sound(bench: &Bench, found: &CongestionReport) -> Result<(), TestCaseError> {
    let waiting = bench.waiting();
    prop_assert!(found.roles.is_sorted_by(|a, b| a.0 < b.0), "one role each");
    let with_role: BTreeSet<PortIndex> = found.roles.iter().map(|(port, _)| *port).collect();
    prop_assert!(waiting.is_subset(&with_role));
    let mut root_count = 0;
    for (port, role) in &found.roles {
        match role {
            Role::Root(cause) => {
                root_count += 1;
                prop_assert_eq!(*cause == RootCause::FullLink, bench.is_full(*port));
                let of = Role::Victim { of: *port };
                let blamed = found.roles.iter().any(|(_, role)| *role == of);
                prop_assert!(waiting.contains(port) || blamed, "full, and no port waits for it");
            }
            Role::Victim { of } => {
                prop_assert!(waiting.contains(port));
                prop_assert!(is_root(found, *of));
                let leads_to = bench.leads_to(*port);
                prop_assert!(leads_to.contains(of));
                let weight = bench.weight(*of);
                let roots = leads_to.iter().filter(|to| is_root(found, **to));
                prop_assert!(roots.into_iter().all(|root| bench.weight(*root) <= weight));
            }
        }
    }
    let sizes: u32 = found.regions.iter().map(|region| region.ports).sum();
    prop_assert_eq!(sizes as usize, waiting.len());
    let roots: u32 = found.regions.iter().map(|region| region.roots).sum();
    prop_assert_eq!(roots, root_count);
    for region in &found.regions {
        prop_assert!(region.roots >= 1 && region.ports >= 1);
        prop_assert!(is_root(found, region.root));
        prop_assert_eq!(region.level, Level::of(region.share));
    }
    prop_assert!(found.regions.is_sorted_by_key(|region| std::cmp::Reverse(region.ports)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_waiting_port_has_role_and_region(bench in benches(true)) {
        is_sound(&bench, &bench.found())?;
    }

    #[test]
    fn roles_match_the_rules_without_full_links(bench in benches(false)) {
        let found = bench.found();
        is_sound(&bench, &found)?;
        let waiting = bench.waiting();
        let ways: BTreeMap<PortIndex, BTreeSet<PortIndex>> =
            waiting.iter().map(|port| (*port, bench.leads_to(*port))).collect();
        // A port is in a sink component, perhaps of one, if each port that it leads to leads back to it.
        let mut roots = BTreeSet::new();
        for (port, met) in &ways {
            if met.iter().all(|other| ways[other].contains(port)) {
                roots.extend(bench.heaviest(met.iter().copied()));
            }
        }
        let with_role = found.roles.iter().map(|(port, _)| *port);
        let actual: BTreeSet<PortIndex> =
            with_role.filter(|port| is_root(&found, *port)).collect();
        prop_assert_eq!(&actual, &roots);
        for (port, met) in &ways {
            let of = bench.heaviest(met.intersection(&roots).copied()).unwrap();
            if of == *port {
                prop_assert!(is_root(&found, of));
            } else {
                prop_assert_eq!(role_of(&found, *port), Some(Role::Victim { of }));
            }
        }
        // The regions: joined pair by pair.
        let mut left = waiting.clone();
        let mut regions = Vec::new();
        while let Some(first) = left.pop_first() {
            let mut region = BTreeSet::from([first]);
            loop {
                let touches = |port: &PortIndex| {
                    region.iter().any(|other| {
                        bench.waits_for(*port).contains(other)
                            || bench.waits_for(*other).contains(port)
                    })
                };
                let Some(next) = left.iter().copied().find(touches) else { break };
                left.remove(&next);
                region.insert(next);
            }
            let root = bench.heaviest(region.intersection(&roots).copied()).unwrap();
            regions.push((std::cmp::Reverse(region.len()), root));
        }
        regions.sort();
        let actual: Vec<_> = found
            .regions
            .iter()
            .map(|region| (std::cmp::Reverse(region.ports as usize), region.root))
            .collect();
        prop_assert_eq!(actual, regions);
    }

    #[test]
    fn history_does_not_change_roles(
        benches in vec((benches(true), 0..400u64), 1..6),
    ) {
        let mut congestion = Congestion::default();
        let mut at = Moment(0);
        for (bench, seconds) in &benches {
            at = at + Duration::from_secs(*seconds);
            let (found, fresh) = (bench.update(&mut congestion, at), bench.found());
            is_sound(bench, &found)?;
            prop_assert_eq!(&found.roles, &fresh.roles);
            for region in &found.regions {
                prop_assert!(region.since <= at);
            }
        }
    }
}
