//! The model of a topology: `/api/v1/topology`.

use std::collections::BTreeMap;

use super::{Label, NodeName, Verdicts};

models! {
    /// The topologies of all fabrics.
    pub struct Topologies {
        /// One entry per fabric.
        pub fabrics: Vec<Topology>,
    }

    /// The topology of a fabric: its switches and the links between them.
    pub struct Topology {
        /// The fabric's name.
        pub fabric: String,
        /// When its latest sweep ended (RFC 3339); null before the first.
        pub swept_at: Option<String>,
        /// The switches, by level, the lowest first, and within a level by group.
        pub switches: Vec<Switch>,
        /// The links between each pair of switches. `a` is the switch of the lower level, or the first of the list.
        pub bundles: Vec<Bundle>,
        /// Number of all links between switches by verdict. A link of several planes counts once here, and in each of the
        /// bundles and switches that its planes join.
        #[serde(default)]
        pub switch_links: Verdicts,
        /// Number of all links between a switch and a host or router by verdict, with planes counted once, too.
        #[serde(default)]
        pub host_links: Verdicts,
        /// Hosts and routers that are connected without a switch.
        pub switchless: Vec<SwitchlessPair>,
    }

    /// A switch.
    pub struct Switch {
        /// NodeGUID.
        pub guid: String,
        /// The name of the node.
        pub node: String,
        /// Whether it is up: present and responsive.
        pub up: bool,
        /// While it is down: the beginning of the first sweep that found it down (RFC 3339).
        #[serde(default)]
        pub down_since: Option<String>,
        /// While it is down: the node that is down and cuts it off; null if it is down by itself.
        #[serde(default)]
        pub behind: Option<NodeName>,
        /// Number of its hosts and routers that are down.
        #[serde(default)]
        pub hosts_down: usize,
        /// Distance from the hosts: a switch with hosts has level 1. Null if no path leads to a switch with hosts.
        pub level: Option<u8>,
        /// Group number: switches of a level that belong together (a pod, a plane, a Dragonfly+ group) share it.
        pub group: usize,
        /// Number of hosts and routers that are connected to it.
        pub hosts: usize,
        /// Number of the links to them by verdict.
        pub host_verdicts: Verdicts,
        /// Number of links to switches of a higher level.
        pub up_links: usize,
        /// Number of links to switches of the same level.
        pub side_links: usize,
        /// Number of links to switches of a lower level.
        pub down_links: usize,
        /// The worst verdict of its links; `unknown` if it has none.
        pub worst_verdict: Option<Label>,
        /// Number of all of its links by verdict.
        #[serde(default)]
        pub verdicts: Verdicts,
        /// The links to hosts that are `watch` or `bad`, at most eight, the worst first.
        pub host_suspects: Vec<Suspect>,
        /// Congestion on the links to its hosts.
        #[serde(default)]
        pub host_congestion: CongestionCounts,
        /// Congestion on all of its links.
        #[serde(default)]
        pub congestion: CongestionCounts,
        /// The temperature of its ASIC in degrees Celsius; null while it is down, or if it reports none.
        #[serde(default)]
        pub temperature: Option<f64>,
        /// What was measured on the links to its hosts.
        #[serde(default)]
        pub host_figures: LinkFigures,
        /// What was measured on all of its links.
        #[serde(default)]
        pub figures: LinkFigures,
    }

    /// Congested links: those with a port that waits to send for at least 5% of the time.
    pub struct CongestionCounts {
        /// Links with a congestion root at one end.
        pub roots: usize,
        /// Links with a victim at one end and no root.
        pub victims: usize,
        /// The highest wait ratio of their ports; null if none is a root or a victim.
        pub max_wait_ratio: Option<f32>,
    }

    /// All links between two switches.
    pub struct Bundle {
        /// The index of one of them in `switches`.
        pub a: usize,
        /// The index of the other.
        pub b: usize,
        /// Number of these links by verdict.
        pub verdicts: Verdicts,
        /// The links that are `watch` or `bad`, at most eight, the worst first.
        pub suspects: Vec<Suspect>,
        /// Congestion on these links.
        #[serde(default)]
        pub congestion: CongestionCounts,
        /// What was measured on these links.
        #[serde(default)]
        pub figures: LinkFigures,
    }

    /// A link that is `watch` or `bad`.
    pub struct Suspect {
        /// The id of the link.
        pub link: String,
        /// The names of both ends.
        pub name: String,
        /// The verdict.
        pub verdict: Label,
    }

    /// Two nodes that are connected without a switch, or one node without a link.
    pub struct SwitchlessPair {
        /// GUID and name of each node.
        pub nodes: Vec<(String, String)>,
        /// The id of the link.
        pub link: Option<String>,
        /// The verdict of the link.
        pub verdict: Option<Label>,
    }

    /// What was measured on some links. A link of which a value is not known is in no count of that value: it is not
    /// zero.
    pub struct LinkFigures {
        /// Number of links by signaling rate per lane; a link that is down is in none.
        pub speeds: BTreeMap<Label, usize>,
        /// The lowest data rate of a link in bytes per second; null if none is known.
        pub min_rate: Option<u64>,
        /// The highest utilization of a direction, 0 to 1; null if none is known.
        pub max_utilization: Option<f32>,
        /// Number of links whose utilization is known.
        pub utilization_known: usize,
        /// The highest temperature of a cable or module at either end in degrees Celsius; null if none is known.
        pub max_temperature: Option<f64>,
        /// Number of links with such a temperature.
        pub temperature_known: usize,
        /// The bit errors of each window in which a link was observed.
        pub bit_errors: Vec<WindowFigure>,
    }

    /// The bit errors of some links in a window.
    pub struct WindowFigure {
        /// The window: `75s`, `12m` or `125m`.
        pub window: Label,
        /// The errors of all of them, and of both directions.
        pub errors: u64,
        /// Number of links whose errors were counted in it, for a part of it at least.
        pub known: usize,
    }
}

impl CongestionCounts {
    /// The sum of both.
    #[must_use]
    pub fn and(&self, other: &CongestionCounts) -> CongestionCounts {
        let waits = [self.max_wait_ratio, other.max_wait_ratio];
        CongestionCounts {
            roots: self.roots + other.roots,
            victims: self.victims + other.victims,
            max_wait_ratio: waits.into_iter().flatten().reduce(f32::max),
        }
    }

    /// Whether any link is congested.
    pub fn is_any(&self) -> bool {
        self.roots + self.victims > 0
    }
}
