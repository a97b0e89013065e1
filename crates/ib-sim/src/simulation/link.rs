//! The state of ports, and the training of links.

use crate::net::{Port, PortId};
use ib_mad::port_state::{physical, state};
use ib_mad::rate;
use ib_mad::rate::{Speed, Width};
use ib_mad::{Lid, Moment};

use super::counts::PortCounts;

/// The present state of a port.
#[derive(Clone, Debug)]
pub struct PortState {
    /// The peer of its cable.
    pub cable: Option<PortId>,
    /// Whether the cable carries a signal.
    pub signal: bool,
    /// PortState, as `fabric::status::state` numbers it.
    pub state: u8,
    /// The width and speed of the link, while there is one.
    pub trained: Option<(Width, Speed)>,
    /// When it last trained; `None` for a link from the start.
    pub trained_at: Option<Moment>,
    /// The limits of its width and speed.
    pub limit: (Option<Width>, Option<Speed>),
    /// The bit error ratio of the received bits.
    pub bit_errors: f64,
    /// The fraction of its link's rate that an adapter receives.
    pub intake: f64,
    /// Its LID; that of a switch is on port 0.
    pub lid: Lid,
    /// Its counters.
    pub counts: PortCounts,
}

impl PortState {
    /// A port as built, before its link trains.
    pub fn new(built: &Port, counts: PortCounts) -> Self {
        PortState {
            cable: built.cable,
            signal: true,
            state: state::DOWN,
            trained: None,
            trained_at: None,
            limit: (None, None),
            bit_errors: 0.0,
            intake: 1.0,
            lid: Lid(0),
            counts,
        }
    }

    /// PortPhysicalState. A switch's port 0 never trains, and is up.
    pub fn physical_state(&self) -> u8 {
        if self.state == state::DOWN { physical::POLLING } else { physical::LINK_UP }
    }

    /// The rate of its link, in bytes a second each way.
    pub fn bytes_per_second(&self) -> u64 {
        self.trained.map_or(0, |(width, speed)| rate::bytes_per_second(width, speed))
    }

    /// Whether it carries more than subnet management.
    pub fn is_active(&self) -> bool {
        self.state == state::ACTIVE
    }
}

/// The width and speed that two ports train at: the highest that both have enabled, within the
/// limits. `None` if they have none in common.
pub fn train(
    (a, a_now): (&Port, &PortState),
    (b, b_now): (&Port, &PortState),
) -> Option<(Width, Speed)> {
    let limits = [a_now.limit, b_now.limit];
    let width = limits.iter().filter_map(|limit| limit.0).min();
    let speed = limits.iter().filter_map(|limit| limit.1).min();
    a.rates.common(b.rates).up_to(width, speed).best()
}
