//! Subnet managers: who gave the ports their LIDs, and who stands by to take over.

use super::topology::PortIndex;

/// SMState (IBTA 1.4, 14.2.5.13): what a subnet manager is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagerState {
    /// Told to keep still.
    NotActive,
    /// Looks at the subnet, and for other subnet managers.
    Discovering,
    /// Waits for the master to fail.
    Standby,
    /// The subnet is its.
    Master,
}

impl ManagerState {
    /// All of them, each at the place that is its code.
    pub const ALL: [ManagerState; 4] = [
        ManagerState::NotActive,
        ManagerState::Discovering,
        ManagerState::Standby,
        ManagerState::Master,
    ];

    /// By its code. The others of the field are reserved, and mean nothing.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            ManagerState::NotActive => "not_active",
            ManagerState::Discovering => "discovering",
            ManagerState::Standby => "standby",
            ManagerState::Master => "master",
        }
    }
}

/// A subnet manager, as it told of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubnetManager {
    /// The port that it was asked at: an adapter's, or a switch's port 0.
    pub port: PortIndex,
    /// What it is about.
    pub state: ManagerState,
    /// The highest is to be the master.
    pub priority: u8,
    /// ActCount: goes up while it works, and stands still when it hangs.
    pub activity: u32,
}
