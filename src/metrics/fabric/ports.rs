//! Families of ports: status of their counters, bit errors by direction of a link, congestion.

use exposition::{Family, Samples, counter, gauge};
use ib_fabric::{Fabric, PortIndex};
use ib_health::assessment::CounterStatus;
use ib_health::bit_errors::BerWindow;
use ib_health::congestion::{Region, Role};
use ib_health::{PortAssessment, Verdict};
use ib_mad::counter::TABLE as COUNTERS;
use ib_mad::moment::Anchor;

/// Status of a port's counters, which the fabric or the host collector read.
#[derive(Clone, Copy)]
pub(in crate::metrics) struct Counted<'a> {
    pub anchor: &'a Anchor,
    pub counting: &'a CounterStatus,
}

/// A port of a fabric with its assessment.
pub(super) struct JudgedPort<'a> {
    pub fabric: &'a Fabric,
    pub port: PortIndex,
    pub assessment: &'a PortAssessment,
}

/// Ports that wait together.
pub(super) struct RegionItem<'a> {
    pub anchor: &'a Anchor,
    pub region: &'a Region,
}

// With all lifetimes spelled out: the functions take items of any lifetime.
type WriteCounted = fn(&Counted<'_>, &mut Samples<'_>);
type WriteJudged = fn(&JudgedPort<'_>, &mut Samples<'_>);
type WriteRegion = fn(&RegionItem<'_>, &mut Samples<'_>);

const PORT_LABELS: &[&str] = &["fabric", "guid", "port"];
const WINDOW_LABELS: &[&str] = &["fabric", "link", "guid", "port", "window"];
const REGION_LABELS: &[&str] = &["fabric", "root_guid", "root_port"];

/// Status of counters, of fabrics and of the host.
pub(in crate::metrics) const COUNTING: &[(Family, WriteCounted)] = &[
    gauge(
        "infiniband_port_counter_saturated",
        &["fabric", "guid", "port", "counter"],
        "1 while a counter's field is full and counts no further, 0 if it was so before; from then on its total is a lower bound. Absent for counters that never were.",
        |counted, samples| {
            let counting = counted.counting;
            if !counting.was_any_saturated() {
                return;
            }
            for row in COUNTERS.iter().filter(|row| counting.was_saturated(row.counter)) {
                samples.label("counter", row.metric);
                samples.value(counting.is_stuck(row.counter).into());
            }
        },
    ),
    counter(
        "infiniband_port_impossible_readings",
        PORT_LABELS,
        "Values of a port's counters that were dropped because they are impossible: 2^63 or more, or more than the link can have carried since the reading before. Absent for ports that never had one.",
        |counted, samples| {
            let times = u64::from(counted.counting.impossible_readings);
            samples.value_if_known(Some(times).filter(|times| *times > 0));
        },
    ),
    counter(
        "infiniband_port_counter_resets",
        PORT_LABELS,
        "Times that a port's counters fell: somebody cleared them, or the device was reset.",
        |counted, samples| samples.value(counted.counting.resets.into()),
    ),
    gauge(
        "infiniband_port_counter_reset_timestamp_seconds",
        PORT_LABELS,
        "When that was seen last, in seconds since 1970; absent if it never was.",
        |counted, samples| {
            if let Some(last) = counted.counting.last_reset {
                samples.seconds(counted.anchor.unix_seconds_of(last));
            }
        },
    ),
];

/// The windows that are exposed; that of seconds is for the verdict alone.
const WINDOWS: [BerWindow; 2] = [BerWindow::Short, BerWindow::Long];

pub(super) const DIRECTIONS: &[(Family, WriteJudged)] = &[
    gauge(
        "infiniband_link_bit_error_ratio",
        WINDOW_LABELS,
        "How many of the bits that came in at this port of a link were wrong, over a window; absent while it is too short to tell.",
        |port, samples| {
            for window in WINDOWS {
                if let Some(ratio) = port.assessment.bit_errors.ratio(window) {
                    samples.label("window", window.label());
                    samples.ratio(ratio);
                }
            }
        },
    ),
    gauge(
        "infiniband_link_bit_error_window_seconds",
        WINDOW_LABELS,
        "How much of the window was watched so far.",
        |port, samples| {
            for window in WINDOWS {
                let measured = port.assessment.bit_errors.windows[window as usize];
                if !measured.span().is_zero() {
                    samples.label("window", window.label());
                    samples.seconds(measured.span().as_secs_f64());
                }
            }
        },
    ),
    gauge(
        "infiniband_link_bit_error_ratio_limit",
        &["fabric", "link", "guid", "port"],
        "The bit error ratio that is too much for this link.",
        |port, samples| {
            let limit = port.assessment.bit_errors.limit;
            if limit > 0.0 {
                samples.ratio(limit);
            }
        },
    ),
    gauge(
        "infiniband_link_pre_fec_bit_error_ratio",
        &["fabric", "link", "guid", "port"],
        "How many of the bits that came in at this port of a link error correction had to correct, in the latest 2 to 4 minutes. Absent while its counter is full: then the verdict has the reason counter_saturated, and pages and API have the last ratio that is known, and when it was measured.",
        |port, samples| {
            if let Some(mended) = port.assessment.bit_errors.pre_fec.filter(|it| !it.stale) {
                samples.ratio(mended.ratio);
            }
        },
    ),
    gauge(
        "infiniband_link_pre_fec_bit_error_ratio_limit",
        &["fabric", "link", "guid", "port"],
        "The ratio of bits to be corrected that is too much for this link.",
        |port, samples| {
            if let Some(mended) = port.assessment.bit_errors.pre_fec {
                samples.ratio(mended.limit);
            }
        },
    ),
];

pub(super) const PORTS: &[(Family, WriteJudged)] = &[
    gauge(
        "infiniband_port_transmit_wait_ratio",
        &["fabric", "guid", "port", "tick"],
        "Share of the time between the two latest readings in which the port had data and no credit to send it with, 0 to 1. Where the device does not tell how long its tick is, one is assumed (tick: device, assumed).",
        |port, samples| {
            if let Some(wait) = port.assessment.wait {
                samples.label("tick", if wait.tick_told { "device" } else { "assumed" });
                samples.ratio(wait.share);
            }
        },
    ),
    gauge(
        "infiniband_port_congestion",
        &["fabric", "guid", "port", "role", "root_guid", "root_port"],
        "A port's part in a congestion, as a series that is always 1: root, whose receiver is slow, or victim, which waits because that root does.",
        |port, samples| {
            let (role, root) = match port.assessment.role {
                Some(Role::Root) => ("root", port.port),
                Some(Role::Victim { of }) => ("victim", of),
                None => return,
            };
            let (guid, number) = port.fabric.end(root);
            samples.label("role", role);
            samples.label("root_guid", &guid.to_string());
            samples.label("root_port", itoa::Buffer::new().format(number));
            samples.value(1);
        },
    ),
];

pub(super) const REGIONS: &[(Family, WriteRegion)] = &[
    gauge(
        "infiniband_congestion_region_ports",
        &["fabric", "root_guid", "root_port", "level"],
        "How many neighbouring ports wait together, by the root that waits most, and how bad it is: low (up to 15 % of the time), medium (up to 25 %), high.",
        |item, samples| {
            samples.label("level", item.region.level.label());
            samples.value(item.region.ports.into());
        },
    ),
    gauge(
        "infiniband_congestion_region_wait_ratio",
        REGION_LABELS,
        "The greatest share of time that one of them waits.",
        |item, samples| samples.ratio(item.region.share),
    ),
    gauge(
        "infiniband_congestion_region_start_timestamp_seconds",
        REGION_LABELS,
        "Since when they have been waiting, in seconds since 1970.",
        |item, samples| samples.seconds(item.anchor.unix_seconds_of(item.region.since)),
    ),
];

// The metric is the number of the verdict.
const _: () = assert!(Verdict::Ok as u64 == 0 && Verdict::Bad as u64 == 3);
