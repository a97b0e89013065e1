//! The models of a fabric's condition: the worst of its nodes and links.

use ib_health::Verdict;

use super::{Label, NodeName};

models! {
    /// The condition of a fabric: the worst of its nodes and links, and whether all of it is known.
    pub struct Condition {
        /// `bad`, `watch`, `unknown` or `ok`: the verdict of the worst finding. `ok` only if each node is up, and the
        /// verdict of each link that is judged is `ok`.
        pub verdict: Label,
        /// The worst findings in one line: `1 switch down (leaf-0-2), 12 HCAs behind it`.
        pub headline: String,
        /// All that is not ok, the worst first.
        pub findings: Vec<Finding>,
    }

    /// What is not ok in a fabric: nodes or links of the same kind.
    pub struct Finding {
        /// `not_swept`, `no_view`, `stale`, `switches_down`, `nodes_down`, `links`, `learning`, `maintenance` or
        /// `discovery_gaps`.
        pub kind: Label,
        /// `bad`, `watch` or `unknown`.
        pub verdict: Label,
        /// Number of nodes, links or requests.
        pub count: usize,
        /// What it is: `1 switch down (leaf-0-2), 12 HCAs behind it`.
        pub text: String,
        /// The nodes that are down, at most three; without those behind them.
        pub nodes: Vec<NodeName>,
        /// The alert that watches these nodes.
        pub alert: Option<Label>,
    }

    /// A node that is down: missing or unresponsive.
    pub struct NodeDown {
        /// NodeGUID.
        pub guid: String,
        /// The name of the node.
        pub node: String,
        /// `ca`, `switch`, `router` or `aggregation_node`.
        #[serde(default)]
        pub node_type: Label,
        /// The beginning of the first sweep that found it down (RFC 3339).
        #[serde(default)]
        pub since: Option<String>,
        /// The node that is down and cuts it off; null if it is down by itself.
        #[serde(default)]
        pub behind: Option<NodeName>,
        /// Number of nodes behind it.
        #[serde(default)]
        pub nodes_behind: usize,
        /// Whether it is in maintenance: by its name or host, or because all of its links are.
        #[serde(default)]
        pub maintenance: bool,
    }
}

impl Condition {
    /// The verdict of the worst finding; unknown if there is no condition.
    pub fn verdict(&self) -> Verdict {
        Verdict::from_label(&self.verdict).unwrap_or(Verdict::Unknown)
    }

    /// The findings that the verdicts of links do not show: nodes that are down, and what is not known of all.
    pub fn beside_links(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|it| !it.is_about_links())
    }

    /// Why nothing can be said of the nodes and links now, if that is so.
    pub fn blind(&self) -> Option<&Finding> {
        let kinds = ["not_swept", "no_view", "stale", "partition"];
        self.findings.iter().find(|it| kinds.contains(&&*it.kind))
    }
}

impl Finding {
    /// Its verdict.
    pub fn verdict(&self) -> Verdict {
        Verdict::from_label(&self.verdict).unwrap_or(Verdict::Unknown)
    }

    fn is_about_links(&self) -> bool {
        ["links", "learning"].contains(&&*self.kind)
    }
}
