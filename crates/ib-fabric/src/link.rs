//! A link by its ports.

use crate::PortIndex;

/// A link by its two ports. The index of a port changes with a discovery;
/// [`LinkId`](crate::topology::LinkId) does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The port with the lower [`PortKey`](ib_mad::PortKey); of a loopback plug, the same as the other.
    pub low: PortIndex,
    /// The port with the higher one.
    pub high: PortIndex,
}

impl Link {
    /// Both ports, the lower first.
    pub fn ports(self) -> [PortIndex; 2] {
        [self.low, self.high]
    }
}
