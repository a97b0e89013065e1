//! Subnet managers: the master and its standbys.

use super::topology::PortIndex;

pub use crate::mad::smp::SmState;

/// A subnet manager, from its SMInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubnetManager {
    /// Its port: of a channel adapter, or port 0 of a switch.
    pub port: PortIndex,
    /// SMState.
    pub state: SmState,
    /// Priority: the highest becomes master.
    pub priority: u8,
    /// ActCount: increases while it works, and stops when it hangs.
    pub act_count: u32,
}
