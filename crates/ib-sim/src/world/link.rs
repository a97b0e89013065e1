//! Links: what two ports agree on when they train, and what they are worth then.

use crate::net::{Port, PortId};
use ib_mad::port_state::{physical, state};
use ib_mad::rate;
use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::{Lid, Moment};

use super::counts::Counts;

/// A port as it is now.
#[derive(Clone, Debug)]
pub struct PortState {
    /// The other end of its cable.
    pub cable: Option<PortId>,
    /// The cable carries a signal.
    pub signal: bool,
    /// PortState, as `fabric::status::state` numbers it.
    pub state: u8,
    /// What the link runs at, while there is one.
    pub trained: Option<(Width, Speed)>,
    /// When it last trained; `None` for one that was there from the beginning.
    pub trained_at: Option<Moment>,
    /// The link trains no wider and no faster than this.
    pub limit: (Option<Width>, Option<Speed>),
    /// The bit error ratio of what comes in.
    pub bit_errors: f64,
    /// The share of its link's rate that an adapter takes in.
    pub intake: f64,
    /// Its LID; a switch has one, on port 0.
    pub lid: Lid,
    /// What it counted.
    pub counts: Counts,
}

impl PortState {
    /// A port as it was built, before its link trains.
    pub fn new(built: &Port, counts: Counts) -> Self {
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

    /// PortPhysicalState. A switch's own port never trains, and is up.
    pub fn physical_state(&self) -> u8 {
        if self.state == state::DOWN { physical::POLLING } else { physical::LINK_UP }
    }

    /// What its link carries, in bytes a second each way.
    pub fn bytes_a_second(&self) -> u64 {
        self.trained.map_or(0, |(width, speed)| rate::bytes_per_second(width, speed))
    }

    /// Whether it carries more than subnet management.
    pub fn is_active(&self) -> bool {
        self.state == state::ACTIVE
    }
}

/// What two ports train at: the widest and fastest that both have enabled, within the limits.
/// `None` where they have nothing in common.
pub fn train(
    (a, a_now): (&Port, &PortState),
    (b, b_now): (&Port, &PortState),
) -> Option<(Width, Speed)> {
    let limits = [a_now.limit, b_now.limit];
    let most_lanes = limits.iter().filter_map(|limit| limit.0).min();
    let most_speed = limits.iter().filter_map(|limit| limit.1).min();
    let within_width = |mask: u8| most_lanes.map_or(mask, |most| most.up_to() & mask);
    let within_speed = |speeds: SpeedSet| most_speed.map_or(speeds, |most| speeds.up_to(most));
    let width = Width::widest(within_width(a.widths & b.widths))?;
    let speed = within_speed(a.speeds.intersection(b.speeds)).fastest()?;
    Some((width, speed))
}
