//! The kinds of events, and events before they are recorded.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::model::Event;
use crate::{micros_of, time_of};
use display_text::plural;
use ib_fabric::topology::LinkId;
use ib_health::outage::Downtime;
use ib_health::{Verdict, explain};
use ib_mad::{Guid, PortKey, PortNumber};

display_text::labeled_enum! {
    /// The kind of an event; its label is its name in the file, in JSON and on the command line.
    #[derive(PartialOrd, Ord)]
    pub enum EventKind {
        ExporterStart, "exporter_start", "The exporter started. Nothing is known about the time when it did not run.";
        ExporterStop, "exporter_stop", "The exporter stopped.";
        HistoryDisplaced, "history_displaced", "Another program deleted, renamed, replaced or truncated the history file. A new file begins with this event.";
        SweepFailed, "sweep_failed", "Sweeps of the fabric fail.";
        SweepRecovered, "sweep_recovered", "Sweeps of the fabric succeed again.";
        ReadsFailed, "reads_failed", "Counters of some ports cannot be read, although their nodes respond.";
        ReadsRecovered, "reads_recovered", "Counters of all ports can be read again.";
        MasterChanged, "master_changed", "Another subnet manager became master.";
        ClockJump, "clock_jump", "The clock of the exporter's host was set. Times before and after this event cannot be compared.";
        LinkDown, "link_down", "A link went down.";
        LinkDownReason, "link_down_reason", "The device of a port reported why its link went down or retrained.";
        LinkUp, "link_up", "A link came up.";
        Flap, "flap", "A link went down unexpectedly and came up again. The event has the time of the link down, and is therefore listed before link_up.";
        ExpectedLinkDown, "expected_link_down", "A link went down and came up again because the node at one end was reset, or during maintenance.";
        LinkAdded, "link_added", "A new link was discovered.";
        CableMoved, "cable_moved", "The cable of a port now leads to another port.";
        CableChanged, "cable_changed", "The serial number of the cable or module of a port has changed.";
        VerdictChanged, "verdict_changed", "The verdict of a link changed.";
        VerdictUpdated, "verdict_updated", "The reason of a degraded or bad verdict, or what to try first, changed.";
        RateChanged, "rate_changed", "The width or speed of a link changed.";
        NodeDown, "node_down", "A node is missing or does not respond.";
        NodeUp, "node_up", "A node responds again.";
        NodeAdded, "node_added", "A new node was discovered.";
        DeviceFatal, "device_fatal", "The kernel reported that a device of the exporter's host failed or is being removed (IBV_EVENT_DEVICE_FATAL).";
        CounterReset, "counter_reset", "Counters are lower than before: they were cleared, or the device was reset.";
        CounterSaturated, "counter_saturated", "A counter reached its maximum and stopped.";
        CongestionStart, "congestion_start", "This port became the root of a congestion region: it waits to send data, or other ports wait because of it.";
        CongestionEnd, "congestion_end", "This port is no longer the root of a congestion region.";
    }
}

display_text::labeled_enum! {
    /// What caused a [`EventKind::Flap`], in its detail.
    pub enum FlapCause {
        Link, "link", "The link itself: its cable or a transceiver.";
        Node, "node", "The node at one end: only the other end counted the link down.";
    }
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The whole fabric, or the exporter.
    All,
    /// A node.
    Node(Guid),
    /// A port.
    Port(Guid, PortNumber),
    /// A cable.
    Link(LinkId),
}

impl From<PortKey> for About {
    fn from(PortKey { guid, number }: PortKey) -> Self {
        About::Port(guid, number)
    }
}

/// An event to record.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// When it happened, or, if that is not known, when it was detected.
    pub at: SystemTime,
    /// What.
    pub kind: EventKind,
    /// What it is about.
    pub about: About,
    /// The name of what it is about at that time.
    pub place: String,
    /// What happened, in a sentence.
    pub text: String,
    /// Its details for programs; null if there are none.
    pub detail: Value,
}

impl NewEvent {
    /// An event of a whole fabric, or of the exporter, without details.
    pub(crate) fn of_fabric(
        kind: EventKind,
        fabric: &str,
        text: impl Into<String>,
        at: SystemTime,
    ) -> Self {
        let (place, text) = (fabric.to_owned(), text.into());
        NewEvent { at, kind, about: About::All, place, text, detail: Value::Null }
    }

    /// The event of a fabric as a source returns it once it is recorded.
    pub fn of(&self, fabric: &str) -> Event {
        let (node, port, link) = match self.about {
            About::All => (None, None, None),
            About::Node(guid) => (Some(guid), None, None),
            About::Port(guid, number) => (Some(guid), Some(number), None),
            About::Link(id) => (None, None, Some(id)),
        };
        Event {
            // The file has microseconds.
            at: time_of(micros_of(self.at)),
            fabric: fabric.to_owned(),
            kind: self.kind.label().to_owned(),
            node,
            port,
            link,
            place: self.place.clone(),
            text: self.text.clone(),
            detail: self.detail.clone(),
        }
    }
}

/// The text of a [`EventKind::Flap`]: how often the link went down, for how long if that is known, and its
/// flaps so far.
pub(crate) fn flap_text(count: u32, down: Downtime, all: u64) -> String {
    let flaps = plural(usize::try_from(all).unwrap_or(usize::MAX), "flap");
    format!("{}; {flaps} since the exporter started", explain::link_downs(count, down))
}

/// How long a link was down, as the detail of an event: at least and at most, in seconds.
pub fn downtime_detail(down: Downtime) -> Value {
    let seconds = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
    json!({"down_seconds": seconds(down.least), "down_max_seconds": seconds(down.most)})
}

/// The verdict under a key of an event's detail: `from` or `to`.
pub(super) fn verdict_of(detail: &Value, key: &str) -> Option<Verdict> {
    Verdict::from_label(detail[key].as_str()?)
}

/// How many link downs a flap combines, by its detail.
pub(super) fn losses_of(detail: &Value) -> u64 {
    detail["losses"].as_u64().unwrap_or(1)
}

/// How long a link was down, from the detail of an event.
pub(super) fn downtime_of(detail: &Value) -> Option<Downtime> {
    let seconds = |key| Duration::try_from_secs_f64(detail[key].as_f64()?).ok();
    let (least, most) = (seconds("down_seconds")?, seconds("down_max_seconds")?);
    (least <= most).then_some(Downtime { least, most })
}
