//! State of a port as PortInfo reports it, and the asynchronous events of the host's own ports.

use std::sync::Arc;

use crate::moment::Anchor;
use crate::rate::{self, Speed, SpeedSet, Width};
use crate::{Guid, Lid, PortNumber, labeled_enum};

/// PortState: the logical state (IBTA 1.4, table 155).
pub mod state {
    /// No link.
    pub const DOWN: u8 = 1;
    /// Link is up, not yet configured by a subnet manager.
    pub const INIT: u8 = 2;
    /// Configured, not yet in use.
    pub const ARMED: u8 = 3;
    /// Carries traffic.
    pub const ACTIVE: u8 = 4;
    /// Carries traffic during a link error grace period (kernel: `IB_PORT_ACTIVE_DEFER`).
    pub const ACTIVE_DEFER: u8 = 5;

    /// Name of a state.
    pub fn name(state: u8) -> &'static str {
        super::name(&["Down", "Init", "Armed", "Active", "ActiveDefer"], state)
    }
}

/// PortPhysicalState (IBTA 1.4, table 155).
pub mod physical {
    /// Does not search for a link partner.
    pub const SLEEP: u8 = 1;
    /// Searches for a link partner.
    pub const POLLING: u8 = 2;
    /// Disabled.
    pub const DISABLED: u8 = 3;
    /// The lanes are trained.
    pub const LINK_UP: u8 = 5;

    /// Name of a state.
    pub fn name(state: u8) -> &'static str {
        let names =
            ["Sleep", "Polling", "Disabled", "Training", "LinkUp", "LinkErrorRecovery", "PhyTest"];
        super::name(&names, state)
    }
}

/// The name of a state, from the names of states 1 and up.
fn name(names: &[&'static str], state: u8) -> &'static str {
    let index = usize::from(state).checked_sub(1);
    index.and_then(|index| names.get(index)).unwrap_or(&"unknown")
}

/// State of a port, as PortInfo reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct PortStatus {
    /// LID of the port; a switch has one, on port 0.
    pub lid: Lid,
    /// LID mask count: the port owns 2^lmc LIDs.
    pub lmc: u8,
    /// LID of the master subnet manager (MasterSMLID).
    pub sm_lid: Lid,
    /// A subnet manager runs at this port; of a switch, on port 0.
    pub is_sm: bool,
    pub state: u8,
    pub physical_state: u8,
    pub width: Option<Width>,
    pub speed: Option<Speed>,
    /// LinkWidthSupported, a mask of codes.
    pub widths_supported: u8,
    pub speeds_supported: SpeedSet,
    /// LinkWidthEnabled, a mask of codes.
    pub widths_enabled: u8,
    pub speeds_enabled: SpeedSet,
}

impl PortStatus {
    /// Whether the lanes are trained: there is a link partner.
    pub fn link_up(&self) -> bool {
        self.physical_state == physical::LINK_UP
    }

    /// Nominal rate at the active width and speed, in bytes per second.
    pub fn rate(&self) -> Option<u64> {
        Some(rate::bytes_per_second(self.width?, self.speed?))
    }

    /// The port with FDR10 instead of QDR, for which PortInfo has the same code.
    #[must_use]
    pub fn at_fdr10(self) -> Self {
        let fdr10 = |speed| if speed == Speed::Qdr { Speed::Fdr10 } else { speed };
        PortStatus {
            speed: self.speed.map(fdr10),
            speeds_supported: self.speeds_supported.with(Speed::Fdr10),
            speeds_enabled: self.speeds_enabled.with(Speed::Fdr10),
            ..self
        }
    }

    /// The highest rate that this port and its partner both support, in bytes per second.
    pub fn best_rate_with(&self, partner: &PortStatus) -> Option<u64> {
        let width = Width::widest(self.widths_supported & partner.widths_supported)?;
        let speed = self.speeds_supported.intersection(partner.speeds_supported).fastest()?;
        Some(rate::bytes_per_second(width, speed))
    }

    /// Supported and enabled widths (a mask of codes) and speeds.
    pub fn allowed(&self) -> (u8, SpeedSet) {
        let widths = self.widths_supported & self.widths_enabled;
        (widths, self.speeds_supported.intersection(self.speeds_enabled))
    }

    /// The highest width and speed that this port and its partner both support and have enabled.
    pub fn best_enabled_with(&self, partner: &PortStatus) -> (Option<Width>, Option<Speed>) {
        let (near, far) = (self.allowed(), partner.allowed());
        (Width::widest(near.0 & far.0), near.1.intersection(far.1).fastest())
    }
}

/// Which speed fields of PortInfo are valid, by its capability masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SpeedFields {
    /// FDR to NDR.
    pub extended: bool,
    /// XDR.
    pub extended2: bool,
}

labeled_enum! {
    /// The kind of an asynchronous event that concerns a port or a whole device. The discriminants are its numbers in
    /// `enum ibv_event_type` of libibverbs (kernel: `enum ib_event_type`); the other numbers concern queues and QPs.
    #[derive(PartialOrd, Ord)]
    pub enum PortEventKind {
        DeviceFatal = 8, "device_fatal", "The device or its driver is removed.";
        PortActive = 9, "port_active", "The port carries traffic again.";
        PortError = 10, "port_error", "The link of the port went down.";
        LidChange = 11, "lid_change", "The subnet manager gave the port another LID.";
        PkeyChange = 12, "pkey_change", "The port's P_Key table changed.";
        SmChange = 13, "sm_change", "Another subnet manager is the master.";
        ClientReregister = 17, "client_reregister", "The subnet manager requests that all clients register again.";
        GidChange = 18, "gid_change", "The port's GID table changed.";
    }
}

/// An event as a device of this host reported it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct PortEvent {
    pub at: Anchor,
    /// The device: `mlx5_0`.
    pub device: Arc<str>,
    pub guid: Option<Guid>,
    /// The port; `None` for an event of the whole device.
    pub port: Option<PortNumber>,
    pub kind: PortEventKind,
}

impl PortEvent {
    /// The port by its node GUID and number, where both are known.
    pub fn end(&self) -> Option<(Guid, PortNumber)> {
        self.guid.zip(self.port)
    }

    /// Whether it says that the port's link came up or went down; `None` if it says neither.
    pub fn link_up(&self) -> Option<bool> {
        match self.kind {
            PortEventKind::PortActive => Some(true),
            PortEventKind::PortError => Some(false),
            _ => None,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;

#[cfg(test)]
mod tests {
    use super::testing::up;
    use super::*;

    #[test]
    fn best_rate_is_common_to_both_ends() {
        let (mut near, far) = (up(1), up(2));
        assert_eq!(near.best_rate_with(&far), Some(12_500_000_000));
        near.widths_supported = 1;
        assert_eq!(near.best_rate_with(&far), Some(3_125_000_000));
        near.speeds_supported = SpeedSet::default();
        assert_eq!(near.best_rate_with(&far), None);
    }

    #[test]
    fn codes_are_those_of_libibverbs() {
        // infiniband/verbs.h: IBV_EVENT_CQ_ERR is 0, IBV_EVENT_WQ_FATAL 19.
        let known: Vec<u32> =
            (0..64_u32).filter(|&code| PortEventKind::from_discriminant(code).is_some()).collect();
        assert_eq!(known, [8, 9, 10, 11, 12, 13, 17, 18]);
        assert_eq!(PortEventKind::from_discriminant(10_u32), Some(PortEventKind::PortError));
        assert_eq!(PortEventKind::ALL.len(), known.len());
    }
}
