//! Congestion: which ports are roots of it, which are victims, and the regions that they form.
//!
//! InfiniBand drops no packet for lack of buffers: a port sends only what the far end has given credits for, and
//! waits otherwise. So a slow receiver makes the port before it wait, then the ports that feed that one, up to
//! the senders (tree saturation). A full link does the same, except that its own port is busy and does not
//! wait. What can be repaired is at the root.
//!
//! Which port waits for which is inferred from the cables:
//!
//! - A port *waits* from [`FLOOR`] of the time on.
//! - It waits for those other ports of the switch at the far end of its cable that wait themselves,
//!   or are full; it is their *victim*.
//! - If there are none, if the far end is no switch, or if its own link is full, it is a *root*.
//! - Of ports that wait for one another in a cycle, and lead to no root, the one that waits most is the root.
//! - A victim belongs to the root that waits most of those that it leads to.
//!
//! **Routing is not known**: forwarding tables are not read. A port may lead to a root that none of its packets
//! go to, if both wait at the same time; "victim of" says where to look first, and is no proof. Two properties
//! of any correct routing are used: no packet returns to the node that it came from, not even by another cable;
//! and in a tree, no packet that came down goes up again (up/down routing, which keeps a tree free of credit
//! loops). Without the second, each leaf would connect what comes down to it with what its own hosts send up,
//! and a busy tree would be one cycle. Where it does not hold (some detours in a Dragonfly+, or hosts at a few
//! of the upper switches), a chain ends early: there is one root too many, with [`RootCause::Unknown`].

mod regions;
mod role;
#[cfg(test)]
mod tests;
mod wait;
mod wait_graph;

use ib_fabric::topology::Levels;
use ib_fabric::{Fabric, PortIndex};
use ib_mad::Moment;

use regions::RegionHistory;
pub use regions::{GRACE, Level, Region};
pub use role::{FLOOR, FULL, Role, RootCause};
pub use wait::{HeldWait, SATURATED_HOLD, Wait, used, wait};
use wait_graph::{WaitGraph, WaitingPort, find_roots};

/// The congestion of a fabric in one sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CongestionReport {
    /// The role of each port that waits, and of each that makes others wait, in the order of ports.
    pub roles: Vec<(PortIndex, Role)>,
    /// The regions, the largest first.
    pub regions: Vec<Region>,
}

/// The congestion of a fabric from sweep to sweep.
#[derive(Clone, Debug, Default)]
pub struct Congestion {
    history: RegionHistory,
}

impl Congestion {
    /// Finds the roots, victims and regions of a sweep that ended `at`.
    ///
    /// `waits` returns the share of time that a port waited ([`wait()`]), `used` the share of its bandwidth that it sent
    /// ([`used()`]); both `None` where that is not known. Without `used` no link is full, and the ports that
    /// feed a full one are roots of unknown cause. Port 0 of a switch takes no part: it leads nowhere.
    ///
    /// The indexes are those of this fabric; what is kept from earlier sweeps is by (GUID, port), so that
    /// it may be another fabric each time.
    pub fn update(
        &mut self,
        fabric: &Fabric,
        waits: impl Fn(PortIndex) -> Option<f32>,
        used: impl Fn(PortIndex) -> Option<f32>,
        at: Moment,
    ) -> CongestionReport {
        let waiting = |port: PortIndex| {
            let share = waits(port)?;
            (share >= FLOOR && fabric.port(port).number != 0).then_some(share)
        };
        if !fabric.port_indexes().any(|port| waiting(port).is_some()) {
            regions::remove_old(&mut self.history, at);
            return CongestionReport::default();
        }
        let graph = WaitGraph::build(fabric, &Levels::compute(fabric), waiting, used);
        let roots = find_roots(&graph);
        let mut regions = regions::find(&graph, &roots);
        regions::update_history(&mut self.history, fabric, &graph, &mut regions, at);
        let role = |(waiting, root): (&WaitingPort, &Option<u32>)| {
            let of = graph.ports[(*root)? as usize].port;
            let is_root = of == waiting.port;
            let role = if is_root { Role::Root(waiting.cause) } else { Role::Victim { of } };
            Some((waiting.port, role))
        };
        let mut roles: Vec<_> = graph.ports.iter().zip(&roots).filter_map(role).collect();
        // Those that are full and do not wait come after all that wait.
        roles.sort_unstable_by_key(|(port, _)| *port);
        CongestionReport { roles, regions: regions.into_iter().map(|(region, _)| region).collect() }
    }
}
