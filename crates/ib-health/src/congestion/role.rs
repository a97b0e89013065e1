//! The parts that ports have in a congestion.

use ib_fabric::PortIndex;

/// The share of time from which on a port waits; less is normal in a busy fabric (Jha et al., NSDI 2020: negligible).
pub const FLOOR: f32 = 0.05;

/// The share of its bandwidth from which on a port is full. A port is never busy all the time: packets of 2 KiB
/// leave some 2% to their headers' credits and the link's own, and sweeps include the beginning and the end
/// of a transfer. Congestion further downstream takes at most a tenth from it.
pub const FULL: f32 = 0.9;

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
