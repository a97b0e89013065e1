//! The models of routes of data packets: `/api/v1/route`, `/api/v1/links/{id}/hosts` and `/api/v1/crossed`.

use super::{Label, Learning, NodeName, PortName, SuggestedRepair};

models! {
    /// The routes between two nodes, by the forwarding tables of the switches.
    pub struct Routes {
        /// The fabric's name.
        pub fabric: String,
        /// From each port of the first node with a link to each LID of the second one: a port with an LMC has several.
        pub routes: Vec<Route>,
        /// Packets may take other ports than the tables have (adaptive routing): they may cross other cables, too.
        pub may_differ: bool,
        /// What was read.
        pub tables: TablesRead,
    }

    /// A route.
    pub struct Route {
        /// The destination LID.
        pub lid: u16,
        /// The nodes in order, that of the sender first.
        pub hops: Vec<RouteHop>,
        /// Why the route ends before its destination; null if it does not.
        pub broken: Option<RouteEnd>,
    }

    /// A node on a route.
    pub struct RouteHop {
        /// NodeGUID.
        pub guid: String,
        /// The name of the node.
        pub node: String,
        /// The host of a channel adapter (`--fabric.host-regex`).
        pub host: Option<String>,
        /// `ca`, `switch`, `router` or `aggregation_node`.
        pub node_type: Label,
        /// The port by which packets come in; null where the route begins.
        pub in_port: Option<u8>,
        /// The port by which they leave; null where the route ends.
        pub port: Option<u8>,
        /// The cable at that port; null where the route ends.
        pub cable: Option<RouteCable>,
    }

    /// A cable on a route.
    pub struct RouteCable {
        /// The id of the link: the value of the metrics' label `link`.
        pub link: String,
        /// The port that sends.
        pub from: PortName,
        /// The port that receives.
        pub to: PortName,
        /// The verdict: `ok`, `unknown`, `watch` (degraded) or `bad`.
        pub verdict: Label,
        /// The reasons of the verdict, the worst first.
        pub reasons: Vec<Label>,
        /// The action to try first.
        pub repair: Option<SuggestedRepair>,
        /// How far the observation is, if the link is `unknown` only because it was observed for too short a time.
        pub learning: Option<Learning>,
    }

    /// Where a route ends before its destination, and why.
    pub struct RouteEnd {
        /// The name of the node; null if the route does not even begin.
        pub node: Option<String>,
        /// `no_entry`, `no_such_port`, `no_link`, `loop`, `other_node` or `not_read`.
        pub cause: Label,
        /// The cause as text.
        pub description: String,
    }

    /// What was read of forwarding tables for an answer.
    pub struct TablesRead {
        /// When the oldest table was read that the answer is based on (RFC 3339); null if none was needed.
        pub read_at: Option<String>,
        /// The age of that table, in seconds.
        pub age_seconds: Option<f64>,
        /// The requests that were sent, without retries; 0 if all was known.
        pub requests: usize,
        /// Switches that did not respond, refused, or have no address.
        pub unread: Vec<UnreadTable>,
        /// The limit that ended the reading; null if none did.
        pub limit: Option<String>,
    }

    /// A switch whose table could not be read.
    pub struct UnreadTable {
        /// The switch.
        #[serde(flatten)]
        pub switch: NodeName,
        /// Why.
        pub cause: String,
    }

    /// The hosts whose packets cross a link.
    pub struct HostsOfLink {
        /// The fabric's name.
        pub fabric: String,
        /// The id of the link.
        pub link: String,
        /// For each direction.
        pub directions: Vec<HostsOfDirection>,
        /// The hosts of both directions, each once, sorted. Of the cable of a host only that host.
        pub hosts: Vec<String>,
        /// Packets may take other ports than the tables have (adaptive routing): other hosts may cross the link, too.
        pub may_differ: bool,
        /// There may be more hosts: tables that decide about some were not read.
        pub incomplete: bool,
        /// What was read.
        pub tables: TablesRead,
    }

    /// The hosts whose packets cross a link in one direction.
    pub struct HostsOfDirection {
        /// The port that sends; of several planes (XDR), that of the lowest.
        pub from: PortName,
        /// The port that receives.
        pub to: PortName,
        /// The hosts that send packets over the link.
        pub senders: Vec<String>,
        /// The hosts that receive packets over the link.
        pub receivers: Vec<String>,
        /// How many hosts may send or receive over the link, by tables that were not read; some are in the other list.
        pub undecided: usize,
    }

    /// The links that the packets of a host cross, its own cables included. Cables of other hosts are left out.
    pub struct CrossedLinks {
        /// The fabric's name.
        pub fabric: String,
        /// The adapters whose packets are meant.
        pub nodes: Vec<NodeName>,
        /// The links, the worst first.
        pub links: Vec<CrossedLink>,
        /// Packets may take other ports than the tables have (adaptive routing): they may cross other links, too.
        pub may_differ: bool,
        /// Routes that are not known to their end, because tables were not read: there may be more links.
        pub unknown_routes: usize,
        /// Routes that do not reach their destination, by tables that were read.
        pub broken_routes: usize,
        /// What was read.
        pub tables: TablesRead,
    }

    /// A link that packets of a host cross.
    pub struct CrossedLink {
        /// The cable, in one of the directions in which the routes take it.
        #[serde(flatten)]
        pub cable: RouteCable,
        /// What the host sends crosses it.
        pub sends: bool,
        /// What the host receives crosses it.
        pub receives: bool,
    }
}
