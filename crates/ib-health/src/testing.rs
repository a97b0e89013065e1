//! Assessments made by hand, on a small fabric: for tests of this and other crates.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "for tests only")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::Verdict;
use crate::assessment::{Assessment, LinkAssessment, PortAssessment};
use crate::bit_errors::{BerWindow, BitErrorLevel, BitErrors, Deciding, Measurement};
use crate::counter_status::CounterStatus;
use crate::outage::Outages;
use ib_fabric::assembly::DiscoveredFabric;
use ib_fabric::node_name_map::NodeNameMap;
use ib_fabric::testing::{end, found};
use ib_fabric::{Fabric, PortIndex, PortMap, Snapshot};
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::{Counter, Moment, Reading};

/// Switch `leaf`, with `host-a` on its port 1, `host-b` on its port 2, and nothing on its port 3.
pub fn snapshot() -> Snapshot {
    let names =
        NodeNameMap::parse("0x1 \"leaf\"\n0x2 \"host-a\"\n0x3 \"host-b\"\n").unwrap().into();
    let nodes =
        vec![found(1, NodeKind::Switch, 3), found(2, NodeKind::Ca, 1), found(3, NodeKind::Ca, 1)];
    let links = vec![(end(1, 1), end(2, 1)), (end(1, 2), end(3, 1))];
    let found = DiscoveredFabric { nodes, links, ..DiscoveredFabric::default() };
    let fabric = Fabric::assemble(found, &names, Moment(0), None);
    let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
    let ended = Moment::default() + Duration::from_secs(1000);
    let began = ended.before(Duration::from_secs(4));
    let mut snapshot = Snapshot { began, ended, ..Snapshot::blank(Arc::new(fabric), anchor) };
    snapshot.readings.fill(Some(Reading::empty(ended)));
    snapshot
}

/// All links are ok since 100 s after the beginning.
pub fn fine(snapshot: &Snapshot) -> Assessment {
    let of_link = |link| LinkAssessment {
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
        replaced: None,
        repeated_flaps: None,
    };
    Assessment {
        ports: PortMap::filled(snapshot.fabric.ports.len(), PortAssessment::default()),
        links: snapshot.fabric.links().map(of_link).collect(),
        ..Assessment::default()
    }
}

/// A port by its node's GUID and its number.
pub fn port(snapshot: &Snapshot, guid: u64, number: u8) -> PortIndex {
    snapshot.fabric.find(end(guid, number)).unwrap()
}

/// A counter that was saturated, and still is if `is_now`.
pub fn saturated(counter: Counter, is_now: bool) -> CounterStatus {
    let mut status = CounterStatus::default();
    status.ever_saturated.insert(counter);
    status.saturated_now.set(counter, is_now);
    status
}

/// This many errors in 12 minutes at 4x EDR, which is over the limit.
pub fn over(errors: u32) -> BitErrors {
    let mut windows = [Measurement::default(); BerWindow::ALL.len()];
    let measured = Measurement { errors, seconds: 720.0 };
    windows[BerWindow::Short as usize] = measured;
    BitErrors {
        level: BitErrorLevel::Over,
        decided_by: Some(Deciding { counted: measured, steady: errors }),
        windows,
        bits_per_second: 1e11,
        limit: 1e-12,
        raised_before: None,
        pre_fec: None,
    }
}

/// Sets a counter of a port's reading.
pub fn count(snapshot: &mut Snapshot, port: PortIndex, counter: Counter, value: u64) {
    snapshot.readings[port].as_mut().unwrap().set(counter, value);
}
