//! Findings made by hand, on a small fabric.

use std::sync::Arc;
use std::time::SystemTime;

use crate::bit_errors::{BitErrors, Judgement};
use crate::bit_errors::{Measured, Window};
use crate::congestion::Wait;
use crate::evidence::*;
use crate::findings::Counting;
use crate::findings::{Findings, LinkFindings, PortFindings};
use crate::outage::{Downtime, Outages};
use crate::{Reason, Verdict};
use ib_fabric::Fabric;
use ib_fabric::assembly::DiscoveredFabric;
use ib_fabric::names::NodeNameMap;
use ib_fabric::snapshot::PortRead;
use ib_fabric::testing::{end, found};
use ib_fabric::topology::Link;
use ib_fabric::{PortIndex, Snapshot};
use ib_mad::Counter;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortStatus;
use ib_mad::{Moment, Reading};
use std::time::Duration;

/// Switch `leaf`, with `host-a` on its port 1, `host-b` on its port 2, and nothing on its port 3.
pub fn snapshot() -> Snapshot {
    let names = NodeNameMap::parse("0x1 \"leaf\"\n0x2 \"host-a\"\n0x3 \"host-b\"\n").unwrap();
    let nodes =
        vec![found(1, NodeKind::Switch, 3), found(2, NodeKind::Ca, 1), found(3, NodeKind::Ca, 1)];
    let links = vec![(end(1, 1), end(2, 1)), (end(1, 2), end(3, 1))];
    let found = DiscoveredFabric { nodes, links, ..DiscoveredFabric::default() };
    let fabric = Fabric::assemble(found, &names, Moment(0), None);
    let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
    let ended = Moment::default() + Duration::from_secs(1000);
    let mut snapshot = Snapshot { ended, ..Snapshot::blank(Arc::new(fabric), anchor) };
    snapshot.readings.fill(Some(Reading::empty(ended)));
    snapshot
}

/// Nothing found but that all links are fine, since 100 s after the beginning.
pub fn fine(snapshot: &Snapshot) -> Findings {
    Findings {
        ports: vec![PortFindings::default(); snapshot.fabric.ports.len()],
        links: snapshot.fabric.links().map(of_link).collect(),
        ..Findings::default()
    }
}

fn of_link(link: Link) -> LinkFindings {
    LinkFindings {
        link,
        verdict: Verdict::Ok,
        since: Moment::default() + Duration::from_secs(100),
        reasons: crate::verdict::Reasons::default(),
        repair: None,
        up: Some(true),
        outages: Outages::default(),
        losses: None,
        upstream: None,
        reference: None,
    }
}

/// A port by its node's GUID and its number.
pub fn port(snapshot: &Snapshot, guid: u64, number: u8) -> PortIndex {
    snapshot.fabric.find(end(guid, number)).unwrap()
}

/// A counter that was full, and is so still or not.
pub fn saturated(counter: Counter, stuck: bool) -> Counting {
    let bit = 1 << counter as usize;
    Counting { saturated: bit, stuck: if stuck { bit } else { 0 }, ..Counting::default() }
}

/// So many errors in 12 minutes at 4x EDR, which is over the limit.
pub fn over(errors: u32) -> BitErrors {
    let mut windows = [Measured::default(); Window::ALL.len()];
    windows[Window::Short as usize] = Measured { errors, seconds: 720.0 };
    BitErrors {
        judgement: Judgement::Over,
        decided_by: Some(Window::Short),
        windows,
        bits_a_second: 1e11,
        limit: 1e-12,
        mended: None,
    }
}

/// Counts of the reading of a port.
pub fn count(snapshot: &mut Snapshot, port: PortIndex, counter: Counter, value: u64) {
    snapshot.readings[port.0 as usize].as_mut().unwrap().set(counter, value);
}
