//! The models of `/api/v1/totals`.

use std::collections::BTreeMap;

use super::Label;

models! {
    /// What counters had counted before their last reset.
    pub struct Totals {
        /// One entry per fabric.
        pub fabrics: Vec<FabricTotals>,
    }

    /// The ports of a fabric whose counters were ever reset.
    pub struct FabricTotals {
        /// The fabric's name.
        pub fabric: String,
        /// The ports.
        pub ports: Vec<PortTotals>,
    }

    /// A port whose counters were reset.
    pub struct PortTotals {
        /// NodeGUID of its node.
        pub guid: String,
        /// The port number.
        pub port: u8,
        /// The time since its counters were last read.
        pub read_seconds_ago: f64,
        /// By counter, in the units of the device: what it had counted before its last reset, and what the device showed in
        /// the latest sweep; null if it was not read. The sum of both is the total.
        pub counters: BTreeMap<Label, (u64, Option<u64>)>,
    }
}
