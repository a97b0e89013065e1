//! The model of rails in `/api/v1/nodes/{guid}`.

use super::{NodeName, Verdicts};

models! {
    /// A rail of a host: one of its HCAs.
    pub struct Rail {
        /// Its name: the device in the name of the HCA (`--fabric.rails`).
        pub rail: String,
        /// The HCA.
        #[serde(flatten)]
        pub name: NodeName,
        /// Whether it is up: present and responsive.
        pub up: bool,
        /// The switches that its ports are connected to, or were last.
        pub switches: Vec<NodeName>,
        /// Number of its links by verdict.
        pub verdicts: Verdicts,
        /// Bytes per second that it sent between the latest two readings; null if that is not known.
        pub sent: Option<f64>,
        /// Bytes per second that it received.
        pub received: Option<f64>,
        /// What it sent and received, compared with the median of the host's rails: 1 is as much. Null while half of
        /// the rails are idle.
        pub ratio: Option<f64>,
    }
}
