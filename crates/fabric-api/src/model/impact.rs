//! The models of `/api/v1/impact`: the jobs that bad links may hurt.

use super::{Label, SuggestedRepair};

models! {
    /// Which running jobs bad links may hurt, and what their repair would free. All of it is an upper bound: a job that has
    /// a host at a link, or one whose packets cross it, need not notice its errors.
    pub struct Impact {
        /// Whether the jobs are known.
        pub jobs: JobsState,
        /// The links whose verdict is bad, each with what its repair frees: first the one with most nodes at risk. Empty
        /// while the jobs are not known.
        pub repairs: Vec<LinkImpact>,
    }

    /// What is known of the jobs.
    pub struct JobsState {
        /// Where they are read from: `slurm` or `directory`; null without --jobs.from.
        pub source: Option<Label>,
        /// When they were last read (RFC 3339); null before.
        pub read_at: Option<String>,
        /// How long ago that was.
        pub age_seconds: Option<f64>,
        /// Whether they are known: they are forgotten five intervals after the latest read that succeeded.
        pub known: bool,
        /// Why the latest read failed; null if it succeeded.
        pub problem: Option<String>,
        /// The number of running jobs.
        pub running: usize,
        /// Running jobs whose id or hosts could not be read.
        pub unreadable: usize,
        /// Hosts of running jobs that no fabric has: their jobs are at no link.
        pub unknown_hosts: usize,
    }

    /// A link and the running jobs that it may hurt.
    pub struct LinkImpact {
        /// The fabric.
        pub fabric: String,
        /// The id of the link.
        pub link: String,
        /// The ports at its ends.
        pub ends: [String; 2],
        /// Its verdict.
        pub verdict: Label,
        /// Since when it has this verdict (RFC 3339).
        pub since: Option<String>,
        /// What to try first.
        pub repair: Option<SuggestedRepair>,
        /// The hosts whose own cable it is.
        pub hosts: Vec<String>,
        /// The number of other hosts whose packets cross it, by the forwarding tables; null if they were not read.
        pub crossing_hosts: Option<usize>,
        /// Whether further hosts may cross it: a table was not read, or packets may take other ports (adaptive routing).
        pub crossing_incomplete: bool,
        /// The number of running jobs with a host at the link, or one whose packets cross it. An upper bound.
        pub jobs_at_risk: usize,
        /// The number of hosts of these jobs, at the link or not: a job waits for its slowest host. An upper bound.
        pub nodes_at_risk: usize,
        /// Node hours of these jobs from now until their time limits; null if none of them has one. An upper bound.
        pub node_hours_left: Option<f64>,
        /// Node hours of these jobs since the link has this verdict. An upper bound.
        pub node_hours_since: f64,
        /// GPU hours of these jobs until their time limits, of those whose GPUs are known; null if of none. An upper bound.
        pub gpu_hours_left: Option<f64>,
        /// GPU hours of these jobs since the link has this verdict, likewise. An upper bound.
        pub gpu_hours_since: Option<f64>,
        /// Jobs without a time limit: they are not in the hours that are left.
        pub jobs_without_end: usize,
        /// The jobs, those with most hosts first; at most 100.
        pub jobs: Vec<JobAtRisk>,
    }

    /// A running job that a link may hurt.
    pub struct JobAtRisk {
        /// Its id.
        pub id: String,
        /// Who submitted it.
        pub user: Option<String>,
        /// Its partition.
        pub partition: Option<String>,
        /// The number of its hosts.
        pub nodes: usize,
        /// How many of them have the link as their own cable.
        pub nodes_at_link: usize,
        /// How many others have packets that cross it.
        pub nodes_crossing: usize,
        /// The number of its GPUs.
        pub gpus: Option<u64>,
        /// When it started (RFC 3339).
        pub started_at: Option<String>,
        /// When its time limit ends it (RFC 3339).
        pub ends_at: Option<String>,
    }
}
