//! The families of what was found out, each with what it tells of a thing: the labels that it has
//! besides, and the value.

use crate::metrics::family::{Family, Kind};
use crate::metrics::line::Line;
use ib_fabric::{Fabric, PortIndex, Snapshot};
use ib_health::assessment::CounterStatus;
use ib_health::bit_errors::BerWindow;
use ib_health::congestion::{Region, Role};
use ib_health::{LinkAssessment, PortAssessment, Verdict};
use ib_mad::counter::TABLE as COUNTERS;
use ib_mad::moment::Anchor;

/// How a port's counters fared, whoever read them.
pub(in crate::metrics) struct Counted<'a> {
    pub(in crate::metrics) anchor: &'a Anchor,
    /// `None` where they were not read.
    pub(in crate::metrics) counting: Option<&'a CounterStatus>,
}

/// A cable.
pub(super) struct Cable<'a> {
    pub(super) anchor: &'a Anchor,
    pub(super) snapshot: &'a Snapshot,
    pub(super) assessment: &'a LinkAssessment,
}

/// A port.
pub(super) struct Spot<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) port: PortIndex,
    pub(super) assessment: &'a PortAssessment,
    pub(super) counted: Counted<'a>,
}

/// Ports that wait together.
pub(super) struct Waiting<'a> {
    pub(super) anchor: &'a Anchor,
    pub(super) region: &'a Region,
}

// Spelled out, for each of them takes things of any lifetime.
pub(in crate::metrics) type TellCounted = fn(&Counted<'_>, &mut Line<'_>);
pub(super) type TellCable = fn(&Cable<'_>, &mut Line<'_>);
type TellSpot = fn(&Spot<'_>, &mut Line<'_>);
type TellWaiting = fn(&Waiting<'_>, &mut Line<'_>);

const PORT_LABELS: &[&str] = &["fabric", "guid", "port"];
const WINDOW_LABELS: &[&str] = &["fabric", "link", "guid", "port", "window"];
const REGION_LABELS: &[&str] = &["fabric", "root_guid", "root_port"];

pub(super) const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, kind: Kind::Gauge, labels, help }
}

pub(super) const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, kind: Kind::Counter, labels, help }
}

/// What the fabric and the host both tell of a port's counters.
pub(in crate::metrics) const COUNTING: &[(Family, TellCounted)] = &[
    (
        gauge(
            "infiniband_port_counter_saturated",
            &["fabric", "guid", "port", "counter"],
            "1 while a counter's field is full and counts no further, 0 if it was so before; from then on its total is a lower bound. Absent for counters that never were.",
        ),
        |counted, line| {
            let Some(counting) = counted.counting.filter(|it| it.was_any_saturated()) else {
                return;
            };
            for row in COUNTERS.iter().filter(|row| counting.was_saturated(row.counter)) {
                line.label("counter", row.metric);
                line.value(counting.is_stuck(row.counter).into());
            }
        },
    ),
    (
        counter(
            "infiniband_port_impossible_readings",
            PORT_LABELS,
            "Values of a port's counters that were dropped because they are impossible: 2^63 or more, or more than the link can have carried since the reading before. Absent for ports that never had one.",
        ),
        |counted, line| {
            let times = counted.counting.map(|counting| u64::from(counting.impossible_readings));
            line.value_of(times.filter(|times| *times > 0));
        },
    ),
    (
        counter(
            "infiniband_port_counter_resets",
            PORT_LABELS,
            "Times that a port's counters fell: somebody cleared them, or the device was reset.",
        ),
        |counted, line| line.value_of(counted.counting.map(|counting| counting.resets.into())),
    ),
    (
        gauge(
            "infiniband_port_counter_reset_timestamp_seconds",
            PORT_LABELS,
            "When that was seen last, in seconds since 1970; absent if it never was.",
        ),
        |counted, line| {
            if let Some(last) = counted.counting.and_then(|counting| counting.last_reset) {
                line.seconds(counted.anchor.unix_seconds_of(last));
            }
        },
    ),
];

/// The windows that are told; what happened within seconds is for the verdict alone.
const WINDOWS: [BerWindow; 2] = [BerWindow::Short, BerWindow::Long];

pub(super) const DIRECTIONS: &[(Family, TellSpot)] = &[
    (
        gauge(
            "infiniband_link_bit_error_ratio",
            WINDOW_LABELS,
            "How many of the bits that came in at this port of a link were wrong, over a window; absent while it is too short to tell.",
        ),
        |spot, line| {
            for window in WINDOWS {
                if let Some(ratio) = spot.assessment.bit_errors.ratio(window) {
                    line.label("window", window.label());
                    line.ratio(ratio);
                }
            }
        },
    ),
    (
        gauge(
            "infiniband_link_bit_error_window_seconds",
            WINDOW_LABELS,
            "How much of the window was watched so far.",
        ),
        |spot, line| {
            for window in WINDOWS {
                let measured = spot.assessment.bit_errors.windows[window as usize];
                if !measured.span().is_zero() {
                    line.label("window", window.label());
                    line.seconds(measured.span().as_secs_f64());
                }
            }
        },
    ),
    (
        gauge(
            "infiniband_link_bit_error_ratio_limit",
            &["fabric", "link", "guid", "port"],
            "The bit error ratio that is too much for this link.",
        ),
        |spot, line| {
            let limit = spot.assessment.bit_errors.limit;
            if limit > 0.0 {
                line.ratio(limit);
            }
        },
    ),
    (
        gauge(
            "infiniband_link_pre_fec_bit_error_ratio",
            &["fabric", "link", "guid", "port"],
            "How many of the bits that came in at this port of a link error correction had to correct, in the latest 2 to 4 minutes. Absent while its counter is full: then the verdict has the reason counter_saturated, and pages and API have the last ratio that is known, and when it was measured.",
        ),
        |spot, line| {
            if let Some(mended) = spot.assessment.bit_errors.pre_fec.filter(|it| !it.stale) {
                line.ratio(mended.ratio);
            }
        },
    ),
    (
        gauge(
            "infiniband_link_pre_fec_bit_error_ratio_limit",
            &["fabric", "link", "guid", "port"],
            "The ratio of bits to be corrected that is too much for this link.",
        ),
        |spot, line| {
            if let Some(mended) = spot.assessment.bit_errors.pre_fec {
                line.ratio(mended.limit);
            }
        },
    ),
];

pub(super) const PORTS: &[(Family, TellSpot)] = &[
    (
        gauge(
            "infiniband_port_transmit_wait_ratio",
            &["fabric", "guid", "port", "tick"],
            "Share of the time between the two latest readings in which the port had data and no credit to send it with, 0 to 1. Where the device does not tell how long its tick is, one is assumed (tick: device, assumed).",
        ),
        |spot, line| {
            if let Some(wait) = spot.assessment.wait {
                line.label("tick", if wait.tick_told { "device" } else { "assumed" });
                line.ratio(wait.share);
            }
        },
    ),
    (
        gauge(
            "infiniband_port_congestion",
            &["fabric", "guid", "port", "role", "root_guid", "root_port"],
            "A port's part in a congestion, as a series that is always 1: root, whose receiver is slow, or victim, which waits because that root does.",
        ),
        |spot, line| {
            let (role, root) = match spot.assessment.role {
                Some(Role::Root) => ("root", spot.port),
                Some(Role::Victim { of }) => ("victim", of),
                None => return,
            };
            let (guid, number) = spot.fabric.end(root);
            line.label("role", role);
            line.label("root_guid", &guid.to_string());
            line.label("root_port", itoa::Buffer::new().format(number));
            line.value(1);
        },
    ),
];

pub(super) const REGIONS: &[(Family, TellWaiting)] = &[
    (
        gauge(
            "infiniband_congestion_region_ports",
            &["fabric", "root_guid", "root_port", "level"],
            "How many neighbouring ports wait together, by the root that waits most, and how bad it is: low (up to 15 % of the time), medium (up to 25 %), high.",
        ),
        |waiting, line| {
            line.label("level", waiting.region.level.label());
            line.value(waiting.region.ports.into());
        },
    ),
    (
        gauge(
            "infiniband_congestion_region_wait_ratio",
            REGION_LABELS,
            "The greatest share of time that one of them waits.",
        ),
        |waiting, line| line.ratio(waiting.region.share),
    ),
    (
        gauge(
            "infiniband_congestion_region_start_timestamp_seconds",
            REGION_LABELS,
            "Since when they have been waiting, in seconds since 1970.",
        ),
        |waiting, line| line.seconds(waiting.anchor.unix_seconds_of(waiting.region.since)),
    ),
];

// Metrics tell verdicts by their places.
const _: () = assert!(Verdict::Ok as u64 == 0 && Verdict::Bad as u64 == 3);
