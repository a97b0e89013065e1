//! The models of traffic in `/api/v1/traffic` and `/api/v1/overview`.

use super::{Flow, Label, Learning, PortName};

models! {
    /// The traffic of a fabric.
    pub struct Traffic {
        /// What all hosts and routers send, in bytes per second.
        pub sent: f64,
        /// What they receive.
        pub received: f64,
        /// The directions of links with the highest utilization: in the overview at most ten.
        pub busiest: Vec<BusyLink>,
    }

    /// One direction of a link, and its traffic.
    pub struct BusyLink {
        /// The id of the link.
        pub link: String,
        /// The verdict of the link.
        pub verdict: Label,
        /// How far its observation is, as in `/api/v1/links`.
        #[serde(default)]
        pub learning: Option<Learning>,
        /// The port that sends.
        pub from: PortName,
        /// The port that receives.
        pub to: PortName,
        /// What it sends.
        #[serde(flatten)]
        pub flow: Flow,
        /// The share of time in which it had data to send but sent none (PortXmitWait), if that is known.
        #[serde(default)]
        pub wait_ratio: Option<f32>,
        /// Whether PortXmitWait is saturated, so that the wait ratio is not known.
        #[serde(default)]
        pub wait_saturated: bool,
    }

    /// The traffic of all fabrics.
    pub struct Traffics {
        /// One entry per fabric.
        pub fabrics: Vec<FabricTraffic>,
    }

    /// The traffic of a fabric, with its name.
    pub struct FabricTraffic {
        /// The fabric's name.
        pub fabric: String,
        /// When its latest sweep ended (RFC 3339); null before the first.
        pub swept_at: Option<String>,
        /// The traffic between the latest two sweeps; null before the second.
        pub traffic: Option<Traffic>,
    }
}
