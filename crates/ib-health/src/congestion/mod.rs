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
#[cfg(test)]
mod tests;
mod wait_graph;

use std::time::Duration;

use ib_fabric::topology::Levels;
use ib_fabric::{Fabric, PortIndex};
use ib_mad::Moment;
use ib_mad::rate::{Speed, Width, bytes_per_second};

use regions::RegionHistory;
use wait_graph::{WaitGraph, WaitingPort, find_roots};

/// The share of time from which on a port waits; less is normal in a busy fabric (Jha et al., NSDI 2020: negligible).
pub const FLOOR: f32 = 0.05;

/// The share of its bandwidth from which on a port is full. A port is never busy all the time: packets of 2 KiB
/// leave some 2% to their headers' credits and the link's own, and sweeps include the beginning and the end
/// of a transfer. Congestion further downstream takes at most a tenth from it.
pub const FULL: f32 = 0.9;

/// A region that was gone for no longer than this is the same one when it comes back. Jobs communicate in
/// bursts, between which they compute; some minutes are several sweeps and several rounds of most jobs.
pub const GRACE: Duration = Duration::from_secs(300);

/// How long the last known wait of a port stands for the present one while PortXmitWait is saturated. Jobs communicate in
/// bursts, but a counter that fills does so while its port waits; the alert needs 5 minutes.
pub const SATURATED_HOLD: Duration = Duration::from_secs(15 * 60);

/// The time that a port had data to send but sent none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Its share of the time between the two latest readings, 0 to 1.
    pub share: f32,
    /// Whether the device reports the length of its tick; otherwise 8 bytes at the link's rate are assumed.
    pub tick_told: bool,
}

/// The wait of a port when it was last known: PortXmitWait is saturated, was cleared since the reading before, or was not
/// read, or the link went down since then. The port is not taken for one that does not wait, or those that wait for it
/// would be roots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldWait {
    /// The share of time.
    pub share: f32,
    /// When it was measured.
    pub at: Moment,
}

/// The tick of a device that does not report it: 8 bytes, as newer devices have it. No figure for adapters was found.
const DEFAULT_TICK: u8 = 7;

/// The share of time that a port had data to send but sent none, from the growth of PortXmitWait in some
/// seconds; `None` if no time has passed.
///
/// A tick N (PortSamplesControl) is N + 1 bytes: at the port's own rate up to 7 (Quantum and newer),
/// else at one lane's (31: Switch-IB, SwitchX and older; NVIDIA counts 32 bytes a lane there).
pub fn wait(
    ticks: u64,
    tick: Option<u8>,
    width: Width,
    speed: Speed,
    seconds: f64,
) -> Option<Wait> {
    let bytes = f64::from(tick.unwrap_or(DEFAULT_TICK)) + 1.0;
    let width = if tick.is_some_and(|tick| tick > DEFAULT_TICK) { Width::X1 } else { width };
    let waited = ticks as f64 * bytes / bytes_per_second(width, speed) as f64;
    Some(Wait { share: share(waited, seconds)?, tick_told: tick.is_some() })
}

/// The share of its bandwidth that a port sent, 0 to 1; `None` if no time has passed.
///
/// Up to QDR, except for FDR10, two of ten bits are line code (8b/10b), which the nominal rate includes; the
/// codes of faster links take less than [`FULL`] leaves.
pub fn used(bytes: u64, width: Width, speed: Speed, seconds: f64) -> Option<f32> {
    let for_data = if speed <= Speed::Qdr { 0.8 } else { 1.0 };
    share(bytes as f64 / (bytes_per_second(width, speed) as f64 * for_data), seconds)
}

fn share(part: f64, all: f64) -> Option<f32> {
    (all > 0.0).then(|| (part / all).clamp(0.0, 1.0) as f32)
}

display_text::labeled_enum! {
    /// The severity of a congestion, by the greatest share of time that one of its ports waits (Jha et al.,
    /// NSDI 2020: up to 5, 15 and 25%).
    #[derive(PartialOrd, Ord)]
    pub enum Level {
        Negligible, "negligible", "Up to 5%: normal in a busy fabric.";
        Low, "low", "Up to 15%.";
        Medium, "medium", "Up to 25%.";
        High, "high", "More.";
    }
}

impl Level {
    /// The level of a share of time, 0 to 1.
    pub fn of(share: f32) -> Level {
        match share {
            share if share < FLOOR => Level::Negligible,
            share if share < 0.15 => Level::Low,
            share if share < 0.25 => Level::Medium,
            _ => Level::High,
        }
    }
}

/// A port's part in a congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its receiver is slow, or its link is full. A port with a full link need not wait itself.
    Root(RootCause),
    /// It waits because ports further downstream wait; this is the root among them that waits most.
    Victim {
        /// The root.
        of: PortIndex,
    },
}

display_text::labeled_enum! {
    /// Why a port is a root, where that is known.
    pub enum RootCause {
        SlowReceiver, "slow_receiver", "Its receiver, a host or a router, accepts less than the link carries.";
        FullLink, "full_link", "Its link is fully utilized: more traffic is offered than it can carry.";
        Unknown, "unknown", "Its neighbor is a switch with no other port that waits or is known to be fully utilized, it has no neighbor (any more), or ports wait for one another in a cycle.";
    }
}

/// Neighbouring ports that wait for one another.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The root that waits most.
    pub root: PortIndex,
    /// How many ports wait.
    pub ports: u32,
    /// How many roots there are; one that is full and does not wait is not counted in `ports`.
    pub roots: u32,
    /// The greatest share of time that one of them waits.
    pub share: f32,
    /// Its severity.
    pub level: Level,
    /// When it began.
    pub since: Moment,
}

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
