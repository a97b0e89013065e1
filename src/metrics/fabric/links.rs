//! Families of links: info, verdict, repair and outages.

use exposition::{Family, MetricType, Samples, counter, gauge};
use fabric_observation::families::{LINK_INFO, LINK_LABELS, LINK_UP};
use ib_fabric::Snapshot;
use ib_health::LinkAssessment;
use ib_health::outage::{BOUNDS, ExpectedCause};
use ib_mad::rate::{Speed, Width};

/// The labels of the two ends of a link: node GUID, port, name and type of the node.
const ENDS: [[&str; 4]; 2] = [
    ["guid", "port", "node", "node_type"],
    ["peer_guid", "peer_port", "peer_node", "peer_node_type"],
];

/// A link and its assessment.
pub(super) struct LinkItem<'a> {
    pub snapshot: &'a Snapshot,
    pub assessment: &'a LinkAssessment,
}

type WriteLink = fn(&LinkItem<'_>, &mut Samples<'_>);

pub(super) const LINKS: &[(Family, WriteLink)] = &[
    (LINK_INFO, |link, samples| {
        let fabric = &link.snapshot.fabric;
        for (labels, port) in ENDS.into_iter().zip([link.assessment.link.0, link.assessment.link.1])
        {
            let ((guid, number), node) = (fabric.end(port), fabric.node_of(port));
            samples.label(labels[0], &guid.to_string());
            samples.label(labels[1], itoa::Buffer::new().format(number));
            samples.label(labels[2], &node.name);
            samples.label(labels[3], node.identity.kind.label());
        }
        let status = link.snapshot.status(link.assessment.link.0);
        samples.label_if_known("speed", status.and_then(|it| it.speed).map(Speed::label));
        samples.label_if_known("width", status.and_then(|it| it.width).map(Width::label));
        samples.value(1);
    }),
    gauge(
        "infiniband_link_verdict",
        &["fabric", "link", "reason"],
        "What a cable comes to, a series for each reason with what it weighs: 0 ok, 1 unknown, 2 watch, 3 bad. The greatest is the verdict: max by (fabric, link). Without a reason it is none; recent is what is over, and not for long enough.",
        |link, samples| {
            let (verdict, reasons) = (link.assessment.verdict, &link.assessment.reasons);
            for (reason, weight) in reasons.iter() {
                samples.label("reason", reason.label());
                // A reason that is too new to count in full must not outweigh the verdict.
                samples.value(weight.min(verdict) as u64);
            }
            if verdict > reasons.verdict() {
                samples.label("reason", "recent");
                samples.value(verdict as u64);
            } else if reasons.worst().is_none() {
                samples.label("reason", "none");
                samples.value(verdict as u64);
            }
        },
    ),
    gauge(
        "infiniband_link_verdict_timestamp_seconds",
        LINK_LABELS,
        "Since when the verdict has been what it is, in seconds since 1970.",
        |link, samples| {
            samples.seconds(link.snapshot.anchor.unix_seconds_of(link.assessment.since));
        },
    ),
    gauge(
        "infiniband_link_repair",
        &["fabric", "link", "repair"],
        "What to try first, as a series that is always 1: reseat, swap_cable, swap_transceiver, look_upstream, look_at_host or nothing.",
        |link, samples| {
            if let Some(repair) = link.assessment.repair {
                samples.label("repair", repair.label()).value(1);
            }
        },
    ),
    (LINK_UP, |link, samples| samples.value_if_known(link.assessment.up.map(u64::from))),
    counter(
        "infiniband_link_flaps",
        LINK_LABELS,
        "Losses of the link that nobody expected; one that both ends tell is one.",
        |link, samples| samples.value(link.assessment.outages.flaps.into()),
    ),
    counter(
        "infiniband_link_expected_outages",
        &["fabric", "link", "cause"],
        "Losses of the link with which nothing is wrong: a node at its end was rebooted, or somebody works on it (reboot, maintenance).",
        |link, samples| {
            for cause in ExpectedCause::ALL {
                samples.label("cause", cause.label());
                samples.value(link.assessment.outages.expected[cause as usize].into());
            }
        },
    ),
    counter(
        "infiniband_link_down_seconds",
        LINK_LABELS,
        "How long flaps kept the link down at least: from the first to the last time each was seen down. An outage is added once the link is up and both ends have been read.",
        |link, samples| samples.seconds(link.assessment.outages.down.least.as_secs_f64()),
    ),
    counter(
        "infiniband_link_down_max_seconds",
        LINK_LABELS,
        "How long flaps kept the link down at most: from the last time it was seen up before each to the first time after. A flap between two sweeps counts one interval.",
        |link, samples| samples.seconds(link.assessment.outages.down.most.as_secs_f64()),
    ),
    counter(
        "infiniband_link_expected_down_seconds",
        LINK_LABELS,
        "How long expected losses kept the link down at least: from the first to the last time it was seen down.",
        |link, samples| samples.seconds(link.assessment.outages.expected_down.least.as_secs_f64()),
    ),
    counter(
        "infiniband_link_expected_down_max_seconds",
        LINK_LABELS,
        "How long expected losses kept the link down at most: from the last time it was seen up before each to the first time after.",
        |link, samples| samples.seconds(link.assessment.outages.expected_down.most.as_secs_f64()),
    ),
    counter(
        "infiniband_link_recoveries",
        LINK_LABELS,
        "Times that the link retrained by itself.",
        |link, samples| samples.value(link.assessment.outages.recoveries.into()),
    ),
    gauge(
        "infiniband_link_last_change_timestamp_seconds",
        LINK_LABELS,
        "When the link went down or came up last, in seconds since 1970; absent if it never did.",
        |link, samples| {
            if let Some(last) = link.assessment.outages.last_change {
                samples.seconds(link.snapshot.anchor.unix_seconds_of(last));
            }
        },
    ),
    (
        Family {
            name: "infiniband_link_outage_seconds",
            kind: MetricType::Histogram,
            labels: LINK_LABELS,
            help: "How long flaps were, for links that were seen down: the middle between the least and the most that is possible. A flap between two sweeps, which only LinkDowned shows, is not in it.",
        },
        |link, samples| {
            let outages = &link.assessment.outages;
            let all: u64 = outages.lengths.iter().copied().map(u64::from).sum();
            if all == 0 {
                return;
            }
            let mut up_to = 0;
            for (bound, length) in BOUNDS.iter().zip(outages.lengths) {
                up_to += u64::from(length);
                samples.suffix("_bucket");
                // OpenMetrics wants a float to look like one.
                samples.label("le", &format!("{bound:?}"));
                samples.value(up_to);
            }
            samples.suffix("_bucket");
            samples.label("le", "+Inf");
            samples.value(all);
            samples.suffix("_sum");
            samples.seconds(outages.lengths_sum.as_secs_f64());
            samples.suffix("_count");
            samples.value(all);
        },
    ),
];
