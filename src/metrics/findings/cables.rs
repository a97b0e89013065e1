//! The families of cables: what each is, what it comes to, and what it went through.

use crate::metrics::family::{Family, Kind};
use fabric_observation::families::{LINK_INFO, LINK_LABELS, LINK_UP};
use ib_health::outage::{BOUNDS, ExpectedCause};

use super::families::{TellCable, counter, gauge};

/// The labels of the two ends of a cable: node GUID, port, name and kind of the node.
const ENDS: [[&str; 4]; 2] = [
    ["guid", "port", "node", "node_type"],
    ["peer_guid", "peer_port", "peer_node", "peer_node_type"],
];

pub(super) const LINKS: &[(Family, TellCable)] = &[
    (LINK_INFO, |cable, line| {
        let fabric = &cable.snapshot.fabric;
        for (labels, port) in
            ENDS.into_iter().zip([cable.assessment.link.0, cable.assessment.link.1])
        {
            let ((guid, number), node) = (fabric.end(port), fabric.node_of(port));
            line.label(labels[0], &guid.to_string());
            line.label(labels[1], itoa::Buffer::new().format(number));
            line.label(labels[2], &node.name);
            line.label(labels[3], node.identity.kind.label());
        }
        let status = cable.snapshot.status(cable.assessment.link.0);
        if let Some(speed) = status.and_then(|status| status.speed) {
            line.label("speed", speed.label());
        }
        if let Some(width) = status.and_then(|status| status.width) {
            line.label("width", width.label());
        }
        line.value(1);
    }),
    (
        gauge(
            "infiniband_link_verdict",
            &["fabric", "link", "reason"],
            "What a cable comes to, a series for each reason with what it weighs: 0 ok, 1 unknown, 2 watch, 3 bad. The greatest is the verdict: max by (fabric, link). Without a reason it is none; recent is what is over, and not for long enough.",
        ),
        |cable, line| {
            let (verdict, reasons) = (cable.assessment.verdict, &cable.assessment.reasons);
            for (reason, weight) in reasons.iter() {
                line.label("reason", reason.label());
                // A reason that is too new to count in full must not outweigh the verdict.
                line.value(weight.min(verdict) as u64);
            }
            if verdict > reasons.verdict() {
                line.label("reason", "recent");
                line.value(verdict as u64);
            } else if reasons.worst().is_none() {
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
        |cable, line| line.seconds(cable.anchor.unix_seconds_of(cable.assessment.since)),
    ),
    (
        gauge(
            "infiniband_link_repair",
            &["fabric", "link", "repair"],
            "What to try first, as a series that is always 1: reseat, swap_cable, swap_transceiver, look_upstream, look_at_host or nothing.",
        ),
        |cable, line| {
            if let Some(repair) = cable.assessment.repair {
                line.label("repair", repair.label());
                line.value(1);
            }
        },
    ),
    (LINK_UP, |cable, line| line.value_of(cable.assessment.up.map(u64::from))),
    (
        counter(
            "infiniband_link_flaps",
            LINK_LABELS,
            "Losses of the link that nobody expected; one that both ends tell is one.",
        ),
        |cable, line| line.value(cable.assessment.outages.flaps.into()),
    ),
    (
        counter(
            "infiniband_link_expected_outages",
            &["fabric", "link", "cause"],
            "Losses of the link with which nothing is wrong: a node at its end was rebooted, or somebody works on it (reboot, maintenance).",
        ),
        |cable, line| {
            for cause in ExpectedCause::ALL {
                line.label("cause", cause.label());
                line.value(cable.assessment.outages.expected[cause as usize].into());
            }
        },
    ),
    (
        counter(
            "infiniband_link_down_seconds",
            LINK_LABELS,
            "How long flaps kept the link down at least: from the first to the last time each was seen down. An outage is added once the link is up and both ends have been read.",
        ),
        |cable, line| line.seconds(cable.assessment.outages.down.least.as_secs_f64()),
    ),
    (
        counter(
            "infiniband_link_down_max_seconds",
            LINK_LABELS,
            "How long flaps kept the link down at most: from the last time it was seen up before each to the first time after. A flap between two sweeps counts one interval.",
        ),
        |cable, line| line.seconds(cable.assessment.outages.down.most.as_secs_f64()),
    ),
    (
        counter(
            "infiniband_link_expected_down_seconds",
            LINK_LABELS,
            "How long expected losses kept the link down at least: from the first to the last time it was seen down.",
        ),
        |cable, line| line.seconds(cable.assessment.outages.expected_down.least.as_secs_f64()),
    ),
    (
        counter(
            "infiniband_link_expected_down_max_seconds",
            LINK_LABELS,
            "How long expected losses kept the link down at most: from the last time it was seen up before each to the first time after.",
        ),
        |cable, line| line.seconds(cable.assessment.outages.expected_down.most.as_secs_f64()),
    ),
    (
        counter(
            "infiniband_link_recoveries",
            LINK_LABELS,
            "Times that the link retrained by itself.",
        ),
        |cable, line| line.value(cable.assessment.outages.recoveries.into()),
    ),
    (
        gauge(
            "infiniband_link_last_change_timestamp_seconds",
            LINK_LABELS,
            "When the link went down or came up last, in seconds since 1970; absent if it never did.",
        ),
        |cable, line| {
            if let Some(last) = cable.assessment.outages.last_change {
                line.seconds(cable.anchor.unix_seconds_of(last));
            }
        },
    ),
    (
        Family {
            name: "infiniband_link_outage_seconds",
            kind: Kind::Histogram,
            labels: LINK_LABELS,
            help: "How long flaps were, for links that were seen down: the middle between the least and the most that is possible. A flap between two sweeps, which only LinkDowned shows, is not in it.",
        },
        |cable, line| {
            let outages = &cable.assessment.outages;
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
            line.seconds(outages.lengths_sum.as_secs_f64());
            line.part("_count");
            line.value(all);
        },
    ),
];
