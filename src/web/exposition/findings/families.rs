//! The families of what was found out, each with what it tells of a thing: the labels that it has
//! besides, and the value.

use crate::fabric::counter::TABLE as COUNTERS;
use crate::fabric::moment::Anchor;
use crate::fabric::{Fabric, PortIndex, Snapshot};
use crate::health::bit_errors::Window;
use crate::health::congestion::{Region, Role};
use crate::health::findings::Counting;
use crate::health::outage::{BOUNDS, Expected};
use crate::health::{LinkFindings, PortFindings, Verdict};
use crate::web::exposition::family::{Family, Kind};
use crate::web::exposition::line::Line;

/// How a port's counters fared, whoever read them.
pub(in crate::web::exposition) struct Counted<'a> {
    pub(in crate::web::exposition) anchor: &'a Anchor,
    /// `None` where they were not read.
    pub(in crate::web::exposition) counting: Option<&'a Counting>,
}

/// A cable.
pub(super) struct Cable<'a> {
    pub(super) anchor: &'a Anchor,
    pub(super) snapshot: &'a Snapshot,
    pub(super) findings: &'a LinkFindings,
}

/// A port.
pub(super) struct Spot<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) port: PortIndex,
    pub(super) findings: &'a PortFindings,
    pub(super) counted: Counted<'a>,
}

/// Ports that wait together.
pub(super) struct Waiting<'a> {
    pub(super) anchor: &'a Anchor,
    pub(super) region: &'a Region,
}

// Spelled out, for each of them takes things of any lifetime.
pub(in crate::web::exposition) type TellCounted = fn(&Counted<'_>, &mut Line<'_>);
type TellCable = fn(&Cable<'_>, &mut Line<'_>);
type TellSpot = fn(&Spot<'_>, &mut Line<'_>);
type TellWaiting = fn(&Waiting<'_>, &mut Line<'_>);

const PORT_LABELS: &[&str] = &["fabric", "guid", "port"];
const LINK_LABELS: &[&str] = &["fabric", "link"];
const WINDOW_LABELS: &[&str] = &["fabric", "link", "guid", "port", "window"];
const REGION_LABELS: &[&str] = &["fabric", "root_guid", "root_port"];

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, labels, help }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, kind: Kind::Counter, labels, help }
}

/// What the fabric and the host both tell of a port's counters.
pub(in crate::web::exposition) const COUNTING: &[(Family, TellCounted)] = &[
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

/// The labels of the two ends of a cable: node GUID, port, name and kind of the node.
const ENDS: [[&str; 4]; 2] = [
    ["guid", "port", "node", "node_type"],
    ["peer_guid", "peer_port", "peer_node", "peer_node_type"],
];

pub(super) const LINKS: &[(Family, TellCable)] = &[
    (
        gauge(
            "infiniband_link_info",
            &[
                "fabric",
                "link",
                "guid",
                "port",
                "node",
                "node_type",
                "peer_guid",
                "peer_port",
                "peer_node",
                "peer_node_type",
                "speed",
                "width",
            ],
            "A cable and its two ends, as a series that is always 1; the end with the lesser GUID comes first, as in the link's id.",
        ),
        |cable, line| {
            let fabric = &cable.snapshot.fabric;
            for (labels, port) in
                ENDS.into_iter().zip([cable.findings.link.0, cable.findings.link.1])
            {
                let ((guid, number), node) = (fabric.end(port), fabric.node_of(port));
                line.label(labels[0], &guid.to_string());
                line.label(labels[1], itoa::Buffer::new().format(number));
                line.label(labels[2], &node.name);
                line.label(labels[3], node.identity.kind.label());
            }
            let status = cable.snapshot.status(cable.findings.link.0);
            if let Some(speed) = status.and_then(|status| status.speed) {
                line.label("speed", speed.label());
            }
            if let Some(width) = status.and_then(|status| status.width) {
                line.label("width", width.label());
            }
            line.value(1);
        },
    ),
    (
        gauge(
            "infiniband_link_verdict",
            &["fabric", "link", "reason"],
            "What a cable comes to, a series for each reason with what it weighs: 0 ok, 1 unknown, 2 watch, 3 bad. The greatest is the verdict: max by (fabric, link). Without a reason it is none; recent is what is over, and not for long enough.",
        ),
        |cable, line| {
            let (verdict, reasons) = (cable.findings.verdict, &cable.findings.reasons);
            for (reason, weight) in reasons.iter() {
                line.label("reason", reason.label());
                // A reason that is too new to count in full must not outweigh the verdict.
                line.value(weight.min(verdict) as u64);
            }
            if verdict > reasons.verdict() {
                line.label("reason", "recent");
                line.value(verdict as u64);
            } else if reasons.gravest().is_none() {
                line.label("reason", "none");
                line.value(verdict as u64);
            }
        },
    ),
    (
        gauge(
            "infiniband_link_verdict_timestamp_seconds",
            LINK_LABELS,
            "Since when the verdict has been what it is, in seconds since 1970.",
        ),
        |cable, line| line.seconds(cable.anchor.unix_seconds_of(cable.findings.since)),
    ),
    (
        gauge(
            "infiniband_link_repair",
            &["fabric", "link", "repair"],
            "What to try first, as a series that is always 1: reseat, swap_cable, swap_transceiver, look_upstream, look_at_host or nothing.",
        ),
        |cable, line| {
            if let Some(repair) = cable.findings.repair {
                line.label("repair", repair.label());
                line.value(1);
            }
        },
    ),
    (
        gauge(
            "infiniband_link_up",
            LINK_LABELS,
            "Whether the link carries traffic; absent where that is not known.",
        ),
        |cable, line| line.value_of(cable.findings.up.map(u64::from)),
    ),
    (
        counter(
            "infiniband_link_flaps",
            LINK_LABELS,
            "Losses of the link that nobody expected; one that both ends tell is one.",
        ),
        |cable, line| line.value(cable.findings.outages.flaps.into()),
    ),
    (
        counter(
            "infiniband_link_expected_outages",
            &["fabric", "link", "cause"],
            "Losses of the link with which nothing is wrong: a node at its end was rebooted, or somebody works on it (reboot, maintenance).",
        ),
        |cable, line| {
            for cause in Expected::ALL {
                line.label("cause", cause.label());
                line.value(cable.findings.outages.expected[cause as usize].into());
            }
        },
    ),
    (
        counter(
            "infiniband_link_down_seconds",
            LINK_LABELS,
            "For how long the link was down by flaps, as far as that was seen. An outage is in it once it is over and both ends have told what they counted.",
        ),
        |cable, line| line.seconds(cable.findings.outages.down.as_secs_f64()),
    ),
    (
        counter(
            "infiniband_link_expected_down_seconds",
            LINK_LABELS,
            "For how long the link was down by what was expected.",
        ),
        |cable, line| line.seconds(cable.findings.outages.expected_down.as_secs_f64()),
    ),
    (
        counter(
            "infiniband_link_recoveries",
            LINK_LABELS,
            "Times that the link retrained by itself.",
        ),
        |cable, line| line.value(cable.findings.outages.recoveries.into()),
    ),
    (
        gauge(
            "infiniband_link_last_change_timestamp_seconds",
            LINK_LABELS,
            "When the link went down or came up last, in seconds since 1970; absent if it never did.",
        ),
        |cable, line| {
            if let Some(last) = cable.findings.outages.last_change {
                line.seconds(cable.anchor.unix_seconds_of(last));
            }
        },
    ),
    (
        Family {
            name: "infiniband_link_outage_seconds",
            kind: Kind::Histogram,
            labels: LINK_LABELS,
            help: "How long flaps were, for links that had one of which that was seen.",
        },
        |cable, line| {
            let outages = &cable.findings.outages;
            let all: u64 = outages.lengths.iter().copied().map(u64::from).sum();
            if all == 0 {
                return;
            }
            let mut up_to = 0;
            for (bound, length) in BOUNDS.iter().zip(outages.lengths) {
                up_to += u64::from(length);
                line.part("_bucket");
                // OpenMetrics wants a float to look like one.
                line.label("le", &format!("{bound:?}"));
                line.value(up_to);
            }
            line.part("_bucket");
            line.label("le", "+Inf");
            line.value(all);
            line.part("_sum");
            line.seconds(outages.down.as_secs_f64());
            line.part("_count");
            line.value(all);
        },
    ),
];

/// The windows that are told; what happened within seconds is for the verdict alone.
const WINDOWS: [Window; 2] = [Window::Short, Window::Long];

pub(super) const DIRECTIONS: &[(Family, TellSpot)] = &[
    (
        gauge(
            "infiniband_link_bit_error_ratio",
            WINDOW_LABELS,
            "How many of the bits that came in at this port of a link were wrong, over a window; absent while it is too short to tell.",
        ),
        |spot, line| {
            for window in WINDOWS {
                if let Some(ratio) = spot.findings.bit_errors.ratio(window) {
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
                let measured = spot.findings.bit_errors.windows[window as usize];
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
            let limit = spot.findings.bit_errors.limit;
            if limit > 0.0 {
                line.ratio(limit);
            }
        },
    ),
    (
        gauge(
            "infiniband_link_pre_fec_bit_error_ratio",
            &["fabric", "link", "guid", "port"],
            "How many of the bits that came in at this port of a link had to be mended by error correction, in the latest 12 to 24 minutes.",
        ),
        |spot, line| {
            if let Some(mended) = spot.findings.bit_errors.mended {
                line.ratio(mended.ratio);
            }
        },
    ),
    (
        gauge(
            "infiniband_link_pre_fec_bit_error_ratio_limit",
            &["fabric", "link", "guid", "port"],
            "The ratio of bits to be mended that is too much for this link.",
        ),
        |spot, line| {
            if let Some(mended) = spot.findings.bit_errors.mended {
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
            if let Some(wait) = spot.findings.wait {
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
            let (role, root) = match spot.findings.role {
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

/// All families of this part.
pub fn families() -> impl Iterator<Item = Family> {
    (COUNTING.iter().map(|(family, _)| *family))
        .chain(LINKS.iter().map(|(family, _)| *family))
        .chain(DIRECTIONS.iter().map(|(family, _)| *family))
        .chain(PORTS.iter().map(|(family, _)| *family))
        .chain(REGIONS.iter().map(|(family, _)| *family))
}

// Metrics tell verdicts by their places.
const _: () = assert!(Verdict::Ok as u64 == 0 && Verdict::Bad as u64 == 3);
