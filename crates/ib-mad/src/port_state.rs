//! State of a port as PortInfo reports it.

use crate::ids::Lid;
use crate::rate::{self, Speed, SpeedSet, Width};

macro_rules! states {
    ($($(#[$about:meta])* pub enum $states:ident {
        $($(#[$meaning:meta])* $variant:ident = $code:literal, $name:literal;)+
    })+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $states {
            $($(#[$meaning])* $variant,)+
            /// A code without a meaning; 0 if there is no state.
            Other(u8),
        }

        impl $states {
            /// The state with this code.
            pub fn from_code(code: u8) -> Self {
                match code { $($code => Self::$variant,)+ _ => Self::Other(code) }
            }

            /// The code of the state.
            pub fn code(self) -> u8 {
                match self { $(Self::$variant => $code,)+ Self::Other(code) => code }
            }

            /// Name of the state.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ Self::Other(_) => "unknown" }
            }
        }

        impl Default for $states {
            fn default() -> Self {
                Self::Other(0)
            }
        }
    )+};
}

states! {
    /// PortState: the logical state (IBTA 1.4, table 155).
    pub enum PortState {
        /// No link.
        Down = 1, "Down";
        /// Link is up, not yet configured by a subnet manager.
        Init = 2, "Init";
        /// Configured, not yet in use.
        Armed = 3, "Armed";
        /// Carries traffic.
        Active = 4, "Active";
        /// Carries traffic during a link error grace period (kernel: `IB_PORT_ACTIVE_DEFER`).
        ActiveDefer = 5, "ActiveDefer";
    }

    /// PortPhysicalState (IBTA 1.4, table 155).
    pub enum PhysicalState {
        /// Does not search for a link partner.
        Sleep = 1, "Sleep";
        /// Searches for a link partner.
        Polling = 2, "Polling";
        /// Disabled.
        Disabled = 3, "Disabled";
        /// Trains the lanes.
        Training = 4, "Training";
        /// The lanes are trained.
        LinkUp = 5, "LinkUp";
        /// Trains the lanes again after an error.
        LinkErrorRecovery = 6, "LinkErrorRecovery";
        /// Tests the transmitter.
        PhyTest = 7, "PhyTest";
    }
}

impl PortState {
    /// Whether the port carries traffic. The reserved codes, 6 to 15, are not active.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Active | Self::ActiveDefer)
    }
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
    pub state: PortState,
    pub physical_state: PhysicalState,
    pub width: Option<Width>,
    pub speed: Option<Speed>,
    /// LinkWidthSupported, a mask of codes.
    pub widths_supported: u8,
    pub speeds_supported: SpeedSet,
    /// LinkWidthEnabled, a mask of codes.
    pub widths_enabled: u8,
    pub speeds_enabled: SpeedSet,
}

// It is kept for each port of a fabric.
const _: () = assert!(size_of::<PortStatus>() == 18);

impl PortStatus {
    /// Whether the lanes are trained: there is a link partner.
    pub fn link_up(&self) -> bool {
        self.physical_state == PhysicalState::LinkUp
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
}
