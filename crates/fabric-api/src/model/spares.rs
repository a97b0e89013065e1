//! The models of spares and part numbers, in `/api/v1/modules` and in `links --spares`.

use super::Label;

models! {
    /// The spares that the present advice needs.
    pub struct Spares {
        /// By part number, the most needed first.
        pub spares: Vec<Spare>,
    }

    /// What has to be replaced now of one part number.
    pub struct Spare {
        /// The part number; null if the devices do not report it, or for the fiber between two transceivers.
        pub part_number: Option<String>,
        /// `cable` or `transceiver`.
        pub what: Label,
        /// Number of pieces.
        pub needed: usize,
        /// The links that need one.
        pub links: Vec<SpareLink>,
    }

    /// A link that needs a spare.
    pub struct SpareLink {
        /// The fabric.
        pub fabric: String,
        /// The id of the link.
        pub link: String,
        /// The ports at its ends.
        pub ends: [String; 2],
        /// Its verdict.
        pub verdict: Label,
        /// The serial number of what is to be replaced.
        pub serial_number: Option<String>,
    }

    /// The cables and modules of one part number.
    pub struct PartSum {
        /// The part number; empty if not reported.
        pub part_number: String,
        /// The vendor.
        pub vendor: String,
        /// As of the modules.
        pub kind: Label,
        /// Number of ports that report it. A cable is at two ports.
        pub ports: usize,
        /// Number of different serial numbers.
        pub pieces: usize,
        /// Number of these ports whose link is bad.
        pub bad: usize,
        /// Number of these ports whose link is degraded.
        pub watch: usize,
    }
}
