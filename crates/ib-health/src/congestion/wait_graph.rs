//! Which ports can wait for which: the ports that take part in a congestion, and the switches between them.
//!
//! A port that leads into a switch may wait for each waiting port of that switch, except for those that lead back or
//! up again. As pairs, these are thousands per switch. But all ports that lead into a switch have much the same ports
//! to leave it by, so each switch is a *hub* with two short lists, of ports that lead in and ports that lead out: a
//! traversal that has crossed a hub twice has seen all of it. The roots are where chains of waiting ports end.

use ib_fabric::topology::Levels;
use ib_fabric::{Fabric, NodeIndex, NodeMap, PortIndex};

use super::role::{FULL, RootCause};

/// A port that waits, or is full and may make others wait.
pub(super) struct WaitingPort {
    pub(super) port: PortIndex,
    /// The share of time that it waits; 0 if it is only full.
    pub(super) share: f32,
    /// The share of its bandwidth that it uses, if the link is full.
    full: Option<f32>,
    node: NodeIndex,
    far: Option<NodeIndex>,
    pub(super) cause: RootCause,
    rises: bool,
    falls: bool,
    /// The hub that it leads into; `None` where a chain ends with it.
    ahead: Option<NodeIndex>,
}

impl WaitingPort {
    pub(super) fn waits(&self) -> bool {
        self.share > 0.0
    }
}

/// See the module. Ports are numbered by their place in `ports`.
pub(super) struct WaitGraph {
    /// Those that wait, in the order of port indexes, and after them those that are only full.
    pub(super) ports: Vec<WaitingPort>,
    into: HubSide,
    out: HubSide,
}

impl WaitGraph {
    /// `waiting` returns the share of time that a port waits, if it does; `used` that of its bandwidth in use.
    pub(super) fn build(
        fabric: &Fabric,
        levels: &Levels,
        waiting: impl Fn(PortIndex) -> Option<f32>,
        used: impl Fn(PortIndex) -> Option<f32>,
    ) -> WaitGraph {
        let waiting_port = |port: PortIndex, share: f32, full: Option<f32>| {
            let node = fabric.port(port).node;
            let far = fabric.port(port).connected_peer().map(|peer| fabric.port(peer).node);
            let hub = far.filter(|far| fabric.node(*far).is_switch());
            let cause = match (full, far) {
                (Some(_), _) => RootCause::FullLink,
                (None, Some(_)) if hub.is_none() => RootCause::SlowReceiver,
                _ => RootCause::Unknown,
            };
            WaitingPort {
                port,
                share,
                full,
                node,
                far,
                cause,
                rises: far.is_some_and(|far| levels.rises(node, far)),
                falls: far.is_some_and(|far| levels.rises(far, node)),
                // A full link cannot carry more, whatever it waits for: the chain ends here.
                ahead: hub.filter(|_| full.is_none()),
            }
        };
        let full = |port: PortIndex| used(port).filter(|used| *used >= FULL);
        let mut ports: Vec<WaitingPort> = fabric
            .port_indexes()
            .filter_map(|port| Some(waiting_port(port, waiting(port)?, full(port))))
            .collect();

        let mut is_hub = NodeMap::filled(fabric.nodes.len(), false);
        for hub in ports.iter().filter_map(|port| port.ahead) {
            is_hub[hub] = true;
        }
        for hub in fabric.node_indexes().filter(|node| is_hub[*node]) {
            for port in fabric.ports_of(hub).filter(|port| fabric.port(*port).number != 0) {
                if let Some(full) = full(port).filter(|_| waiting(port).is_none()) {
                    ports.push(waiting_port(port, 0.0, Some(full)));
                }
            }
        }
        let into = ports.iter().map(|port| (port.ahead, port.falls, Some(port.node)));
        let out = ports.iter().map(|port| (Some(port.node), port.rises, port.far));
        let (into, out) = (HubSide::new(fabric, into), HubSide::new(fabric, out));
        WaitGraph { ports, into, out }
    }

    fn port(&self, port: u32) -> &WaitingPort {
        &self.ports[port as usize]
    }

    /// Whether there is a port that it may wait for.
    pub(super) fn leads_on(&self, port: u32) -> bool {
        let port = self.port(port);
        let lists = HubSide::lists(port.ahead, port.falls);
        lists.into_iter().any(|list| self.out.except(list, Some(port.node)).next().is_some())
    }

    /// The weight of a root: the share of time that it waits. For one that is full, half of the share that
    /// those before it wait, times how full it is: that it is full does not prove that they wait for it.
    pub(super) fn weight(&self, port: u32) -> f32 {
        let port = self.port(port);
        let Some(full) = port.full else { return port.share };
        let lists = HubSide::lists(Some(port.node), port.rises);
        let before = lists.flat_map(|list| self.into.except(list, port.far));
        let most = before.map(|before| self.port(before).share).fold(0.0, f32::max);
        port.share.max(most / 2.0 * full)
    }
}

/// One side of all hubs. Each hub has two lists: ports that can reach all of the other side, and ports that
/// cannot, for what came down does not go up again. Each port has the neighbor that it comes from or leads
/// to: no packet returns there.
struct HubSide(Vec<Vec<(u32, Option<NodeIndex>)>>);

impl HubSide {
    fn new(
        fabric: &Fabric,
        entries: impl Iterator<Item = (Option<NodeIndex>, bool, Option<NodeIndex>)>,
    ) -> HubSide {
        let mut lists = vec![Vec::new(); fabric.nodes.len() * 2];
        for (port, (hub, bound, neighbor)) in (0..).zip(entries) {
            if let Some(hub) = hub {
                lists[hub.0 as usize * 2 + usize::from(bound)].push((port, neighbor));
            }
        }
        HubSide(lists)
    }

    /// The lists of a hub's one side that a port at its other side can reach.
    fn lists(hub: Option<NodeIndex>, bound: bool) -> std::ops::Range<usize> {
        hub.map_or(0..0, |hub| {
            let first = hub.0 as usize * 2;
            first..first + if bound { 1 } else { 2 }
        })
    }

    /// The ports of a list, except those of one neighbor.
    fn except(&self, list: usize, neighbor: Option<NodeIndex>) -> impl Iterator<Item = u32> {
        self.0[list].iter().filter(move |(_, of)| *of != neighbor).map(|(port, _)| *port)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visited {
    Nothing,
    AllExcept(Option<NodeIndex>),
    All,
}

/// A traversal that visits each port once or twice, however many ways lead there.
pub(super) struct Traversal<'a> {
    graph: &'a WaitGraph,
    into: Vec<Visited>,
    out: Vec<Visited>,
}

impl<'a> Traversal<'a> {
    pub(super) fn new(graph: &'a WaitGraph) -> Traversal<'a> {
        let nothing = vec![Visited::Nothing; graph.into.0.len()];
        Traversal { graph, into: nothing.clone(), out: nothing }
    }

    /// Visits the ports that may wait for this one and were not visited before.
    pub(super) fn upstream(&mut self, port: u32, visit: impl FnMut(u32)) {
        let port = self.graph.port(port);
        let lists = HubSide::lists(Some(port.node), port.rises);
        step(&self.graph.into, &mut self.into, lists, port.far, visit);
    }

    /// Visits the ports that this one may wait for and were not visited before.
    pub(super) fn downstream(&mut self, port: u32, visit: impl FnMut(u32)) {
        let port = self.graph.port(port);
        let lists = HubSide::lists(port.ahead, port.falls);
        step(&self.graph.out, &mut self.out, lists, Some(port.node), visit);
    }
}

fn step(
    side: &HubSide,
    visited: &mut [Visited],
    lists: std::ops::Range<usize>,
    neighbor: Option<NodeIndex>,
    mut visit: impl FnMut(u32),
) {
    for list in lists {
        visited[list] = match visited[list] {
            Visited::Nothing => Visited::AllExcept(neighbor),
            Visited::AllExcept(other) if other != neighbor => Visited::All,
            _ => continue,
        };
        side.except(list, neighbor).for_each(&mut visit);
    }
}

/// Finds the root of each port: itself if it is one. `None` only for one that is full and that no port waits for.
pub(super) fn find_roots(graph: &WaitGraph) -> Vec<Option<u32>> {
    let ports = 0..graph.ports.len() as u32;
    let mut roots: Vec<u32> = ports.filter(|&port| !graph.leads_on(port)).collect();
    heaviest_first(graph, &mut roots);
    let (mut of, _) = trace(graph, roots.iter().copied());
    if of.contains(&None) {
        roots.extend(roots_of_cycles(graph, &of));
        heaviest_first(graph, &mut roots);
        (of, _) = trace(graph, roots.into_iter());
    }
    // A full link that no port waits for is not a root.
    let mut has_victims = vec![false; graph.ports.len()];
    for (root, _) in of.iter().zip(&graph.ports).filter(|(_, port)| port.waits()) {
        if let Some(root) = root {
            has_victims[*root as usize] = true;
        }
    }
    for ((of, has_victims), port) in of.iter_mut().zip(has_victims).zip(&graph.ports) {
        *of = of.filter(|_| has_victims || port.waits());
    }
    of
}

/// Sorts by weight. Among equals the lower (GUID, port) comes first, which is the order of ports.
fn heaviest_first(graph: &WaitGraph, ports: &mut [u32]) {
    ports.sort_by_cached_key(|&port| {
        // No weight is negative, so the order of its bits is its own.
        (std::cmp::Reverse(graph.weight(port).to_bits()), port)
    });
}

/// Goes upstream from one port after the other: each port belongs to the first one that it leads to. Returns
/// that one by port, and those that do not lead to one before them.
fn trace(graph: &WaitGraph, from: impl Iterator<Item = u32>) -> (Vec<Option<u32>>, Vec<u32>) {
    let (mut of, mut roots) = (vec![None; graph.ports.len()], Vec::new());
    let mut traversal = Traversal::new(graph);
    let mut queue = Vec::new();
    for root in from {
        if of[root as usize].is_some() {
            continue;
        }
        of[root as usize] = Some(root);
        roots.push(root);
        queue.push(root);
        while let Some(port) = queue.pop() {
            traversal.upstream(port, |before| {
                let of = &mut of[before as usize];
                if of.is_none() {
                    *of = Some(root);
                    queue.push(before);
                }
            });
        }
    }
    (of, roots)
}

/// The roots of cycles: of ports that wait for one another in a cycle, and for no others, the heaviest one. `of`
/// has the ports that lead to a root.
///
/// Going upstream from the heaviest first, the first port of a cycle that is visited is its heaviest. But some
/// in cycles that lead on into another cycle are visited first, too. There is no way back to them, so they are
/// excluded when the same is done from the last to the first.
fn roots_of_cycles(graph: &WaitGraph, of: &[Option<u32>]) -> Vec<u32> {
    let mut left: Vec<u32> = (0..of.len() as u32).filter(|&it| of[it as usize].is_none()).collect();
    heaviest_first(graph, &mut left);
    let (_, first) = trace(graph, left.into_iter());
    trace(graph, first.into_iter().rev()).1
}
