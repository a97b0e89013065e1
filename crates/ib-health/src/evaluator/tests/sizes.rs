//! The memory that the evaluation takes per port and per link: docs/dev/measurements.md shows of what it is made.

use crate::assessment::{LinkAssessment, PortAssessment};
use crate::link_tracker::LinkTracker;
use crate::port::PortTracker;
use ib_mad::Reading;

#[test]
fn no_port_or_link_takes_more_memory_than_is_documented() {
    for (what, size, documented) in [
        ("kept of a port", size_of::<PortTracker>(), 920),
        ("kept of a link", size_of::<LinkTracker>(), 488),
        ("totals of a port", size_of::<Option<Reading>>(), 328),
        ("verdict of a port", size_of::<PortAssessment>(), 256),
        ("verdict of a link", size_of::<LinkAssessment>(), 288),
    ] {
        assert!(size <= documented, "{what}: {size} bytes");
    }
}
