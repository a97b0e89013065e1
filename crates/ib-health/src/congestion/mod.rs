//! Where a fabric waits: the roots, their victims, and the regions that they make.
//!
//! InfiniBand loses no packet for want of room: a port sends only what the far end has given credits
//! for, and waits otherwise. So a receiver that takes in too little lets the port before it wait, then
//! the ports that feed that one, up to the senders (tree saturation). A link that is full does the
//! same, but that its own port is busy and does not wait. What can be repaired is at the root.
//!
//! Who waits for whom is told from the cables:
//!
//! - A port *waits* from [`FLOOR`] of the time on.
//! - It waits for those other ports of the switch at the far end of its cable that wait themselves,
//!   or are full; it is their *victim*.
//! - If there are none, if the far end is no switch, or if its own link is full, it is a *root*.
//! - Ports that wait for one another in a circle, with no root that they lead to, have one among
//!   them: the one that waits most.
//! - A victim is said to be the victim of the root that waits most of those that it leads to.
//!
//! **Routing is not known**: forwarding tables are not read. A port may lead to a root that none of
//! its packets go to, if both wait at the same time; "victim of" says whom to look at first, and
//! proves nothing. Two things are known of any sound routing, and used: no packet goes back to the
//! node that it came from, also not by another cable; and in a tree, none that came down goes up
//! again (up/down routing, which is how a tree is kept free of credit loops). Without the second,
//! every leaf would join what comes down to it with what its own hosts send up, and a busy tree would
//! be one knot. Where it does not hold (some detours in a Dragonfly+, or hosts at few of the upper
//! switches), a chain ends early: there is a root too many, with [`Cause::Unknown`].

mod crowd;
mod history;
mod regions;
mod roots;
#[cfg(test)]
mod tests;
mod wait;

use std::time::Duration;

use ib_fabric::levels::Levels;
use ib_fabric::{Fabric, PortIndex};
use ib_mad::Moment;

use crowd::Crowd;
use history::History;

pub use wait::{Wait, used, wait};

/// The share of time from which on a port waits; below is what a busy fabric has anyway (Jha et al.,
/// NSDI 2020: negligible).
pub const FLOOR: f32 = 0.05;

/// The share of what its link carries from which on a port is full. A port is never busy all the
/// time: packets of 2 KiB leave some 2 % to their headers' credits and the link's own, and sweeps
/// see the beginning and the end of a transfer with it. Whatever is in its way further on takes at
/// most a tenth from it.
pub const FULL: f32 = 0.9;

/// A region that was gone for no longer than this is the same one when it comes back. Jobs
/// communicate in bursts, between which they compute; some minutes are several sweeps and several
/// rounds of most jobs.
pub const GRACE: Duration = Duration::from_secs(300);

/// How bad a congestion is, by the greatest share of time that a port of it waits (Jha et al.,
/// NSDI 2020: up to 5, 15 and 25 %).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Up to 5 %: what a busy fabric has anyway.
    Negligible,
    /// Up to 15 %.
    Low,
    /// Up to 25 %.
    Medium,
    /// More.
    High,
}

impl Level {
    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Level::Negligible => "negligible",
            Level::Low => "low",
            Level::Medium => "medium",
            Level::High => "high",
        }
    }

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
    /// Its receiver is slow, or its link is too narrow for what is to go over it. A port with a full
    /// link need not wait itself.
    Root,
    /// It waits because ports further on wait; this root among them waits most.
    Victim {
        /// The root.
        of: PortIndex,
    },
}

/// What makes a root one, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its receiver, a host or a router, takes in less than the link carries.
    SlowReceiver,
    /// Its link is full: more is to go over it than it carries.
    FullLink,
    /// Not known: its receiver is a switch of which no other port waits or is known to be full, it has
    /// no receiver (any more), or ports wait for one another in a circle.
    Unknown,
}

impl Cause {
    /// As JSON writes it.
    pub fn label(self) -> &'static str {
        match self {
            Cause::SlowReceiver => "slow_receiver",
            Cause::FullLink => "full_link",
            Cause::Unknown => "unknown",
        }
    }
}

/// Neighbouring ports that wait together.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The root that waits most.
    pub root: PortIndex,
    /// How many ports wait.
    pub ports: u32,
    /// How many roots there are; one that is full and does not wait is not among the ports.
    pub roots: u32,
    /// The greatest share of time that one of them waits.
    pub share: f32,
    /// How bad it is.
    pub level: Level,
    /// Since when it has been there.
    pub since: Moment,
}

/// What a sweep tells of a fabric's congestion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The role of each port that waits, and of each that makes others wait, in the order of ports.
    pub roles: Vec<(PortIndex, Role)>,
    /// Of each root, what makes it one, in the order of ports.
    pub causes: Vec<(PortIndex, Cause)>,
    /// The regions, the largest first.
    pub regions: Vec<Region>,
}

impl Found {
    /// A port's role, if it has one.
    pub fn role(&self, port: PortIndex) -> Option<Role> {
        let at = self.roles.binary_search_by_key(&port, |(port, _)| *port).ok()?;
        Some(self.roles[at].1)
    }

    /// What makes a port a root, if it is one.
    pub fn cause(&self, port: PortIndex) -> Option<Cause> {
        let at = self.causes.binary_search_by_key(&port, |(port, _)| *port).ok()?;
        Some(self.causes[at].1)
    }
}

/// A fabric's congestion, followed from sweep to sweep.
#[derive(Clone, Debug, Default)]
pub struct Congestion {
    history: History,
}

impl Congestion {
    /// Finds who waits for whom in a sweep that ended `at`.
    ///
    /// `waits` tells how long a port waited ([`wait()`]), `used` the share of what its link carries
    /// that it sent ([`used()`]); both `None` where that is not known. Without `used` no link is full,
    /// and what feeds a full one shows as many roots of unknown cause. A switch's port 0 has no part
    /// in this: it leads nowhere.
    ///
    /// The indexes are those of this fabric; what is remembered from earlier sweeps goes by the names
    /// of ports, so that it may be another fabric each time.
    pub fn follow(
        &mut self,
        fabric: &Fabric,
        waits: impl Fn(PortIndex) -> Option<Wait>,
        used: impl Fn(PortIndex) -> Option<f32>,
        at: Moment,
    ) -> Found {
        let waiting = |port: PortIndex| {
            let share = waits(port)?.share;
            (share >= FLOOR && fabric.port(port).number != 0).then_some(share)
        };
        if !fabric.port_indexes().any(|port| waiting(port).is_some()) {
            self.history.nobody_waits(at);
            return Found::default();
        }
        let crowd = Crowd::gather(fabric, &Levels::compute(fabric), waiting, used);
        let heads = roots::find(&crowd);
        let mut regions = regions::find(&crowd, &heads);
        self.history.date(fabric, &crowd, &mut regions, at);
        let mut found = Found::default();
        for (member, head) in crowd.members.iter().zip(&heads.of) {
            if let Some(head) = head {
                let root = &crowd.members[*head as usize];
                if root.port == member.port {
                    found.roles.push((member.port, Role::Root));
                    found.causes.push((member.port, member.cause()));
                } else {
                    found.roles.push((member.port, Role::Victim { of: root.port }));
                }
            }
        }
        // Those that are full and do not wait stand behind all that wait.
        found.roles.sort_unstable_by_key(|(port, _)| *port);
        found.causes.sort_unstable_by_key(|(port, _)| *port);
        found.regions = regions.told;
        found
    }
}
