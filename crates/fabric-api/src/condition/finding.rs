//! What is not ok in a fabric.

use ib_health::Verdict;

use crate::model::{Finding, Label, NodeName};

display_text::labeled_enum! {
    /// What is not ok in a fabric; of equal verdicts in the order of headlines.
    #[derive(PartialOrd, Ord)]
    pub enum FindingKind {
        NotSwept, "not_swept", "The first sweep has not ended.";
        NoView, "no_view", "The latest sweep or discovery had no result: our own port or device is down.";
        Partition, "partition", "The P_Key of the exporter's port is probably wrong: nearly all hosts do not respond.";
        Stale, "stale", "The latest sweep is older than four intervals and a minute.";
        SwitchesDown, "switches_down", "Switches are missing or unresponsive.";
        NodesDown, "nodes_down", "HCAs or routers are missing or unresponsive.";
        Links, "links", "Links are bad, degraded or unknown.";
        Learning, "learning", "Links were not observed for long enough.";
        Maintenance, "maintenance", "Nodes are down, or links not judged, because they are in maintenance.";
        DiscoveryGaps, "discovery_gaps", "Requests of the latest discovery had no response: parts may be missing.";
    }
}

/// What is not ok, before its model is built.
pub(super) struct Found {
    pub kind: FindingKind,
    pub verdict: Verdict,
    pub count: usize,
    pub text: String,
    pub nodes: Vec<NodeName>,
    pub alert: Option<&'static str>,
}

impl Found {
    pub fn new(kind: FindingKind, verdict: Verdict, count: usize, text: impl Into<String>) -> Self {
        Found { kind, verdict, count, text: text.into(), nodes: Vec::new(), alert: None }
    }

    pub fn model(self) -> Finding {
        Finding {
            kind: self.kind.label().into(),
            verdict: self.verdict.label().into(),
            count: self.count,
            text: self.text,
            nodes: self.nodes,
            alert: self.alert.map(Label::Borrowed),
        }
    }
}
