//! Maximum flow from a leaf to all other leaves together, in integers (Dinic's algorithm).
//!
//! Most flows need no search: in a fat tree, each switch above a leaf leads to enough other leaves for all that the leaf
//! can send to it. Only what is left over is sent through further switches.

use crate::capacity::{Capacities, Hop, SwitchGraph};

/// Computes flows, and keeps its memory between them.
pub(crate) struct Flow<'a> {
    graph: &'a SwitchGraph,
    capacities: &'a Capacities,
    /// By trunk: Gb/s that it can carry in addition.
    residuals: Vec<Residual>,
    /// By switch: capacity to leaves that is in use, or leads back to where the flow begins.
    used_exits: Vec<u64>,
    /// By switch: hops from where the flow begins.
    levels: Vec<Option<usize>>,
    /// By switch: the next hop to try.
    next_hops: Vec<usize>,
    visited: Vec<usize>,
    touched_trunks: Vec<usize>,
    touched_exits: Vec<usize>,
}

/// What a trunk can carry in addition, in Gb/s. What is sent one way can be taken back, so the other way gains it.
#[derive(Clone, Copy)]
struct Residual {
    forward: u64,
    backward: u64,
}

impl Residual {
    fn of_unused(capacity: u64) -> Self {
        Residual { forward: capacity, backward: capacity }
    }

    fn along(self, hop: Hop) -> u64 {
        if hop.is_forward { self.forward } else { self.backward }
    }

    fn send(&mut self, hop: Hop, gbps: u64) {
        let (with, against) = if hop.is_forward {
            (&mut self.forward, &mut self.backward)
        } else {
            (&mut self.backward, &mut self.forward)
        };
        *with -= gbps;
        *against += gbps;
    }
}

/// What a leaf could send to a neighbor, beyond what the neighbor sends straight to leaves.
struct Supply {
    switch: usize,
    left: u64,
}

impl<'a> Flow<'a> {
    pub(crate) fn new(graph: &'a SwitchGraph, capacities: &'a Capacities) -> Self {
        Flow {
            graph,
            capacities,
            residuals: capacities.trunks.iter().copied().map(Residual::of_unused).collect(),
            used_exits: vec![0; graph.switch_count()],
            levels: vec![None; graph.switch_count()],
            next_hops: vec![0; graph.switch_count()],
            visited: Vec::new(),
            touched_trunks: Vec::new(),
            touched_exits: Vec::new(),
        }
    }

    /// The maximum flow from a leaf, given as index of its switch, in Gb/s; or at least `enough`, if it is more.
    ///
    /// Takes time in proportion to the leaf's neighbors if that suffices. Otherwise Dinic's algorithm takes at most the
    /// square of the switches times the trunks between switches that are no leaves.
    pub(crate) fn maximum(&mut self, leaf: usize, enough: u64) -> u64 {
        self.reset();
        let mut total = 0;
        let mut supplies = Vec::new();
        for hop in self.graph.hops(leaf) {
            let capacity = self.capacities.trunks[hop.trunk];
            if self.graph.is_leaf(hop.peer) {
                total += capacity;
                continue;
            }
            let straight = capacity.min(self.capacities.to_leaves[hop.peer] - capacity);
            total += straight;
            self.use_exit(hop.peer, capacity + straight);
            if capacity > straight {
                supplies.push(Supply { switch: hop.peer, left: capacity - straight });
            }
        }
        while total < enough && self.find_levels(&supplies) {
            for supply in &mut supplies {
                while supply.left > 0 && total < enough {
                    let sent = self.send(supply);
                    if sent == 0 {
                        break;
                    }
                    total += sent;
                }
            }
        }
        total
    }

    fn reset(&mut self) {
        for trunk in self.touched_trunks.drain(..) {
            self.residuals[trunk] = Residual::of_unused(self.capacities.trunks[trunk]);
        }
        for switch in self.touched_exits.drain(..) {
            self.used_exits[switch] = 0;
        }
    }

    fn use_exit(&mut self, switch: usize, gbps: u64) {
        self.used_exits[switch] += gbps;
        self.touched_exits.push(switch);
    }

    fn exit(&self, switch: usize) -> u64 {
        self.capacities.to_leaves[switch] - self.used_exits[switch]
    }

    fn residual(&self, hop: Hop) -> u64 {
        self.residuals[hop.trunk].along(hop)
    }

    /// Breadth-first search from the supplies to the nearest exits. False: no exit can be reached.
    fn find_levels(&mut self, supplies: &[Supply]) -> bool {
        for switch in self.visited.drain(..) {
            self.levels[switch] = None;
            self.next_hops[switch] = 0;
        }
        for supply in supplies.iter().filter(|supply| supply.left > 0) {
            self.levels[supply.switch] = Some(0);
            self.visited.push(supply.switch);
        }
        let mut done = 0;
        let mut found = None;
        while let Some(&switch) = self.visited.get(done) {
            done += 1;
            let level = self.levels[switch].unwrap_or_default();
            if found.is_some_and(|found| level > found) {
                break;
            }
            if self.exit(switch) > 0 {
                found = Some(level);
            }
            if found.is_some() {
                continue;
            }
            for &hop in self.graph.hops(switch) {
                if self.levels[hop.peer].is_none() && self.residual(hop) > 0 {
                    self.levels[hop.peer] = Some(level + 1);
                    self.visited.push(hop.peer);
                }
            }
        }
        found.is_some()
    }

    /// Sends as much as one shortest path to an exit can carry. 0: there is none any more.
    fn send(&mut self, supply: &mut Supply) -> u64 {
        let graph = self.graph;
        let mut path: Vec<Hop> = Vec::new();
        let mut switch = supply.switch;
        while self.exit(switch) == 0 {
            if let Some(&hop) = graph.hops(switch).get(self.next_hops[switch]) {
                let level = self.levels[switch].map(|level| level + 1);
                if self.levels[hop.peer] == level && self.residual(hop) > 0 {
                    path.push(hop);
                    switch = hop.peer;
                } else {
                    self.next_hops[switch] += 1;
                }
            } else {
                // A dead end: the hop that led here is not tried again.
                if path.pop().is_none() {
                    return 0;
                }
                switch = path.last().map_or(supply.switch, |hop| hop.peer);
                self.next_hops[switch] += 1;
            }
        }
        let narrowest = path.iter().map(|&hop| self.residual(hop)).min();
        let sent = supply.left.min(self.exit(switch)).min(narrowest.unwrap_or(u64::MAX));
        for hop in path {
            self.residuals[hop.trunk].send(hop, sent);
            self.touched_trunks.push(hop.trunk);
        }
        self.use_exit(switch, sent);
        supply.left -= sent;
        sent
    }
}
