//! The models of `/api/v1/changes`.

use std::collections::BTreeMap;

use super::Label;

models! {
    /// What changed between two moments.
    pub struct Changes {
        /// The first moment (RFC 3339).
        pub from: String,
        /// Whether that is the end of the first recorded sweep, because an earlier moment was asked for.
        pub from_first_sweep: bool,
        /// The second moment.
        pub to: String,
        /// Whether all events of replaced and moved cables were read. If there were too many between the moments, the
        /// earlier ones are missing.
        pub cables_complete: bool,
        /// One entry per fabric that is known at either moment.
        pub fabrics: Vec<FabricChanges>,
    }

    /// What changed in a fabric.
    pub struct FabricChanges {
        /// The fabric's name.
        pub fabric: String,
        /// Whether the fabric is known at both moments. If not, nothing else is listed.
        pub known: bool,
        /// The ends of the sweeps that are compared (RFC 3339).
        pub swept_at: [Option<String>; 2],
        /// The number of nodes at each moment.
        pub nodes_at: [usize; 2],
        /// The number of links at each moment.
        pub links_at: [usize; 2],
        /// The nodes that changed: those that are down first.
        pub nodes: Vec<NodeChange>,
        /// The links that changed, the worst first.
        pub links: Vec<LinkChange>,
    }

    /// What changed of a node.
    pub struct NodeChange {
        /// GUID of the node.
        pub guid: String,
        /// Its name at the second moment, or at the first if it is gone.
        pub node: String,
        /// `switch`, `ca`, `router` or `aggregation_node`.
        #[serde(rename = "type")]
        pub node_type: String,
        /// `added`, `removed`, `down`, `up` or `renamed`.
        pub change: Label,
        /// Its name at the first moment, if it was renamed.
        #[serde(default)]
        pub name_before: Option<String>,
    }

    /// What changed of a link.
    pub struct LinkChange {
        /// The id of the link.
        pub link: String,
        /// Its ends: `leaf-1 port 3 – host-7 port 1`.
        pub name: String,
        /// `added`, `removed`, `moved`, `down`, `up`, `worse`, `better`, `rate` or `errors`; the most important first.
        /// `moved`: a port of it had another link at the first moment.
        pub changes: Vec<Label>,
        /// The verdict at each moment; null where the link was not there.
        pub verdicts: [Option<Label>; 2],
        /// Width and speed at each moment; null where the link was not there, or down.
        pub rates: [Option<String>; 2],
        /// Where the cable led before, if it was moved.
        #[serde(default)]
        pub moved_from: Option<String>,
        /// By what error counters of both ends increased, by counter.
        pub errors: BTreeMap<Label, u64>,
        /// What was recorded of its cable between the moments: another serial number, or where it was before.
        #[serde(default)]
        pub cable: Vec<String>,
    }
}
