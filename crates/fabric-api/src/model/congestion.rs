//! The model of a congestion region.

use super::{Label, PortName};

models! {
    /// A congestion region: connected ports that wait, with one or more congestion roots.
    pub struct Region {
        /// The congestion root; of several roots, the one with the highest wait ratio.
        pub root: PortName,
        /// The port at the other end of the root's link, if it has one: at the edge of the fabric that of the host.
        #[serde(default)]
        pub peer: Option<PortName>,
        /// The id of the link of the root, if it has one.
        pub link: Option<String>,
        /// Why the root is one: `slow_receiver`, `full_link` or `unknown`.
        pub cause: Label,
        /// Number of waiting ports.
        pub ports: u32,
        /// Number of roots.
        pub roots: u32,
        /// The highest wait ratio of these ports.
        pub wait_ratio: Option<f32>,
        /// `low`, `medium` or `high`.
        pub level: Label,
        /// When the congestion began (RFC 3339).
        pub since: Option<String>,
        /// When the wait ratio of the root was last measured (RFC 3339), if it is not known now.
        #[serde(default)]
        pub measured_at: Option<String>,
    }
}

impl Region {
    /// The root, after the host that it sends to at the edge of the fabric: `host-200 (leaf-0-10 port 1)`.
    pub fn root_label(&self) -> String {
        let root = self.root.label();
        match self.peer.as_ref().and_then(PortName::behind) {
            Some(host) => format!("{host} ({root})"),
            None => root,
        }
    }
}
