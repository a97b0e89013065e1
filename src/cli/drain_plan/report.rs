//! The result of `drain-plan`: its JSON.

use serde::Serialize;

/// What can be repaired when.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// The fabrics that were judged, as one net.
    pub fabrics: Vec<String>,
    /// The share of its capacity that each leaf keeps in each window.
    pub min_capacity: f64,
    /// The hosts that may lose their paths, as Slurm lists them.
    pub drained: String,
    /// Number of repairs.
    pub repairs: usize,
    /// `smallest`, or `at_most`: a plan with fewer windows might exist.
    pub window_count: &'static str,
    /// Repairs that can be made together, in any order. Each repair that is safe alone is in one of them.
    pub windows: Vec<Window>,
    /// Repairs that are not safe, even alone.
    pub unsafe_repairs: Vec<Refused>,
    /// Whether all that the answer depends on is known.
    pub certain: bool,
    /// What is not known, or was left out.
    pub notes: Vec<String>,
}

/// A maintenance window.
#[derive(Debug, Serialize)]
pub(super) struct Window {
    pub repairs: Vec<Repaired>,
    /// What is left while all of them are made.
    #[serde(flatten)]
    pub left: Left,
    /// Hosts that keep a path to all others, but lose a rail or plane, as Slurm lists them.
    pub rails_lost: String,
    /// Why it may not be safe, if links whose state is not known are down.
    pub doubt: Option<String>,
}

/// A repair.
#[derive(Debug, Serialize)]
pub(super) struct Repaired {
    #[serde(flatten)]
    pub what: What,
    /// What is left while it alone is made.
    #[serde(flatten)]
    pub left: Left,
    /// Hosts that lose a rail or plane while it alone is made.
    pub rails_lost: String,
}

/// A repair that is not safe.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    #[serde(flatten)]
    pub what: What,
    #[serde(flatten)]
    pub left: Left,
    /// The hosts that lose their last path to others.
    pub cut_hosts: Vec<Cut>,
    /// The hosts to drain first, as Slurm lists them; null if that does not help, or was not computed.
    pub drain: Option<String>,
    /// Why it is not safe, and what to do.
    pub why: String,
    pub advice: String,
}

/// What a repair takes out of service.
#[derive(Debug, Serialize)]
pub(super) struct What {
    /// `link`, `switch`, `host`, `hca` or `router`.
    pub kind: &'static str,
    pub name: String,
    pub fabric: String,
    /// The id of a link.
    pub link: Option<String>,
    /// The verdict of a link.
    pub verdict: Option<String>,
    /// The GUIDs of the nodes that are powered off.
    pub nodes: Vec<String>,
    /// Whether nothing of it carries traffic now.
    pub down: bool,
}

/// The capacity that is left.
#[derive(Debug, Serialize)]
pub(super) struct Left {
    /// The smallest share of its capacity that a leaf keeps.
    pub remaining_capacity: f64,
    /// The leaf that keeps it; null if each keeps all.
    pub worst_leaf: Option<Leaf>,
    /// Number of leaves with less capacity than now.
    pub reduced_leaves: usize,
}

/// A leaf with less capacity.
#[derive(Debug, Serialize)]
pub(super) struct Leaf {
    pub guid: String,
    pub node: String,
    /// Gb/s to all other leaves together now.
    pub now_gbps: u64,
    /// Gb/s that are left.
    pub left_gbps: u64,
}

/// A host that loses paths.
#[derive(Debug, Serialize)]
pub(super) struct Cut {
    pub host: String,
    /// Number of hosts that it no longer reaches.
    pub lost: usize,
    /// Number of hosts that it still reaches.
    pub kept: usize,
}
