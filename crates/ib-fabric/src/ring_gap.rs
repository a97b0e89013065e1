//! Where the ring between the nodes of a multi-plane switch has no link.

use crate::PortIndex;
use crate::link::Link;

/// Ports of a ring that have no link, although other nodes of the switch have theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingGap {
    /// The lowest link of the ring, at which it is reported.
    pub link: Link,
    /// The ports.
    pub ports: Vec<PortIndex>,
}
