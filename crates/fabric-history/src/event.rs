//! The kinds of events, and events before they are recorded.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use ib_fabric::topology::{End, LinkId};
use ib_health::evidence;
use ib_health::outage::Downtime;
use ib_mad::{Guid, PortNumber};

macro_rules! kinds {
    ($($kind:ident $label:literal $help:literal;)+) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind { $(#[doc = $help] $kind),+ }

        impl EventKind {
            /// All of them.
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),+];

            /// Its name in the file, in JSON and on the command line.
            pub fn label(self) -> &'static str {
                match self { $(EventKind::$kind => $label),+ }
            }

            /// What it means, in a sentence.
            pub fn help(self) -> &'static str {
                match self { $(EventKind::$kind => $help),+ }
            }
        }
    };
}

kinds! {
    ExporterStart "exporter_start" "The exporter was started: what happened before is not known.";
    ExporterStop "exporter_stop" "The exporter was ended.";
    SweepFailed "sweep_failed" "The fabric could not be asked any more.";
    SweepBack "sweep_back" "The fabric could be asked again.";
    ReadsFailed "reads_failed" "Ports did not tell their counters, although their nodes answer.";
    ReadsBack "reads_back" "All ports told their counters again.";
    MasterChanged "master_changed" "Another subnet manager is the master.";
    ClockJump "clock_jump" "The clock of the exporter's host was set: times before and after do not fit together.";
    LinkDown "link_down" "A link carries nothing any more.";
    LinkUp "link_up" "A link carries traffic again.";
    Flap "flap" "A link was lost, and nobody expected it.";
    ExpectedLoss "expected_loss" "A link was lost with a node that was reset, or that is worked on.";
    LinkNew "link_new" "There is a link that was not there before.";
    PortMoved "port_moved" "A port's cable leads to another port.";
    Verdict "verdict" "The verdict on a link is another one.";
    Rate "rate" "A link runs at another width or speed.";
    NodeGone "node_gone" "A node is gone, or does not answer.";
    NodeBack "node_back" "A node is back.";
    NodeNew "node_new" "There is a node that was not there before.";
    DeviceFatal "device_fatal" "A device of the exporter's host told that it, or its driver, goes away.";
    CounterReset "counter_reset" "Counters fell: somebody cleared them, or the device was reset.";
    Saturation "saturation" "A counter is full, and counts no further.";
    CongestionBegan "congestion_began" "Ports wait for this one.";
    CongestionEnded "congestion_ended" "No ports wait for this one any more.";
}

impl EventKind {
    /// The kind with this label.
    pub fn from_label(label: &str) -> Option<EventKind> {
        EventKind::ALL.iter().copied().find(|kind| kind.label() == label)
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

impl From<End> for About {
    fn from((guid, number): End) -> Self {
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

/// The end of the text of a link loss: how long the link was down, if that is known.
pub fn downtime_text(down: Downtime) -> String {
    if down.most.is_zero() {
        return String::new();
    }
    format!("; down for {}", evidence::downtime(down))
}

/// How long a link was down, as the detail of an event: at least and at most, in seconds.
pub fn downtime_detail(down: Downtime) -> Value {
    let seconds = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
    json!({"down_seconds": seconds(down.least), "down_max_seconds": seconds(down.most)})
}

/// How long a link was down, from the detail of an event.
pub(super) fn downtime_of(detail: &Value) -> Option<Downtime> {
    let seconds = |key| Duration::try_from_secs_f64(detail.get(key)?.as_f64()?).ok();
    let (least, most) = (seconds("down_seconds")?, seconds("down_max_seconds")?);
    (least <= most).then_some(Downtime { least, most })
}
