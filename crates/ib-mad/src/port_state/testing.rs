//! Ports for tests.

use super::{Lid, PhysicalState, PortState, PortStatus, Speed, Width};

/// An active 4x EDR port.
pub fn up(lid: u16) -> PortStatus {
    PortStatus {
        lid: Lid(lid),
        lmc: 0,
        sm_lid: Lid(1),
        is_sm: false,
        state: PortState::Active,
        physical_state: PhysicalState::LinkUp,
        width: Some(Width::X4),
        speed: Some(Speed::Edr),
        widths_supported: 1 | 2,
        speeds_supported: [Speed::Sdr, Speed::Edr].into_iter().collect(),
        widths_enabled: 1 | 2,
        speeds_enabled: [Speed::Sdr, Speed::Edr].into_iter().collect(),
    }
}
