//! The models of links and their ports, in `/api/v1/links`, `/api/v1/links/{id}` and `/api/v1/nodes/{guid}`, and the
//! order of links in lists.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use ib_health::{Reason, Verdict};
use ib_mad::counter::link_errors;

use super::common::label_of_port;
use super::{Condition, LEARNING, Label, PortName, Verdicts};

/// The links of all fabrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Links"))]
pub struct Links<L = Vec<Link>> {
    /// One entry per fabric.
    pub fabrics: Vec<FabricLinks<L>>,
}

/// The links of a fabric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FabricLinks"))]
pub struct FabricLinks<L = Vec<Link>> {
    /// The fabric's name.
    pub fabric: String,
    /// When its latest sweep ended (RFC 3339); null before the first.
    pub swept_at: Option<String>,
    /// The condition of the whole fabric.
    #[serde(default)]
    pub condition: Condition,
    /// Number of links by verdict, those included that the query does not select.
    pub verdicts: Verdicts,
    /// The links that the query selects.
    pub links: L,
}

models! {
    /// A link.
    pub struct Link {
        /// The id of the link: the value of the metrics' label `link`.
        pub link: String,
        /// The fabric of the link.
        pub fabric: String,
        /// The verdict: `ok`, `unknown`, `watch` (degraded) or `bad`.
        pub verdict: Label,
        /// Since when the link has had this verdict (RFC 3339); null before the first evaluation.
        pub since: Option<String>,
        /// The reasons of the verdict, the worst first.
        pub reasons: Vec<LinkReason>,
        /// The action to try first.
        pub repair: Option<SuggestedRepair>,
        /// Whether the link is up; null if that is not known.
        pub up: Option<bool>,
        /// The two ends, ordered by GUID and port number; of several planes, the ports of the lowest plane.
        pub ends: [End; 2],
        /// Data rate of the link in bytes per second, of all planes that are up; null while it is down.
        pub rate: Option<u64>,
        /// Signaling rate per lane: `NDR`.
        pub speed: Option<Label>,
        /// Width, the number of lanes in use: `4x`.
        pub width: Option<Label>,
        /// Unexpected link downs.
        pub flaps: u32,
        /// Lower bound of the time that the link was down because of them.
        pub down_seconds: f64,
        /// Upper bound of that time: from the last sweep that found the link up to the next one that did.
        pub down_max_seconds: f64,
        /// The latest link down or link up (RFC 3339).
        pub last_change: Option<String>,
        /// Where packets that are received marked bad were corrupted: the receiving port of that link.
        pub upstream: Option<String>,
        /// How far the observation is, if the link is `unknown` only because it was observed for too short a time.
        #[serde(default)]
        pub learning: Option<Learning>,
        /// The planes of a link of an XDR fabric, by number; empty if it has none. Rate, width, flaps and the counters
        /// of `ends` are of all planes together.
        #[serde(default)]
        pub planes: Vec<LinkPlane>,
        /// How the planes are known: `hierarchy_info` (both ends report them) or `guess` (equal ports of the four nodes
        /// of a switch lead to one peer); null without planes.
        #[serde(default)]
        pub planes_source: Option<Label>,
    }

    /// A plane of a link.
    pub struct LinkPlane {
        /// The number of the plane.
        pub plane: u8,
        /// The id of the plane's own link.
        pub link: Option<String>,
        /// Its ports, in the order of the link's ends.
        pub ports: [PortName; 2],
        /// Whether the plane is up; null if that is not known.
        pub up: Option<bool>,
        /// The verdict of the plane.
        pub verdict: Label,
        /// The reasons of that verdict.
        pub reasons: Vec<Label>,
        /// Data rate of the plane in bytes per second; null while it is down.
        pub rate: Option<u64>,
        /// Signaling rate per lane: `XDR`.
        pub speed: Option<Label>,
        /// Width, the number of lanes in use: `1x`.
        pub width: Option<Label>,
        /// The link errors of both ports; null if they were not read.
        pub errors: Option<u64>,
    }

    /// Links that were not observed for long enough: after a start, or after a link has trained.
    #[derive(Copy)]
    pub struct Learning {
        /// Number of links.
        pub links: usize,
        /// For how many seconds the link with the longest remaining time was observed.
        pub observed_seconds: f64,
        /// For how many seconds it has to be observed.
        pub needed_seconds: f64,
        /// Bit errors of all of them so far.
        pub errors: u64,
    }

    /// The data that a port sends, or receives.
    #[derive(Copy)]
    pub struct Flow {
        /// Bytes per second between the latest two readings.
        pub bytes_per_second: f64,
        /// The share of the bandwidth, 0 to 1.
        pub utilization: f32,
    }

    /// A reason of a verdict.
    pub struct LinkReason {
        /// The reason: the value of the metrics' label `reason`.
        pub reason: Label,
        /// The verdict that this reason alone would cause.
        pub verdict: Label,
        /// The evidence: a sentence with the numbers.
        pub evidence: String,
    }

    /// The suggested repair.
    pub struct SuggestedRepair {
        /// The repair: the value of the metrics' label `repair`.
        pub repair: Label,
        /// What to do.
        pub description: Label,
    }

    /// An end of a link.
    pub struct End {
        /// NodeGUID of the node.
        pub guid: String,
        /// The name of the node.
        pub node: String,
        /// The host of a channel adapter (`--fabric.host-regex`).
        #[serde(default)]
        pub host: Option<String>,
        /// The port number.
        pub port: u8,
        /// What is printed beside the port at the front panel, if the device reports it: `1/19/1`.
        #[serde(default)]
        pub front_panel: Option<String>,
        /// `ca`, `switch`, `router` or `aggregation_node`.
        pub node_type: Label,
        /// The active FEC mode, if the device or the dump reports it.
        #[serde(default)]
        pub fec: Option<Label>,
        /// Bit errors received at this port.
        pub bit_errors: BitErrors,
        /// Error, discard and link counters that are not 0, by the names of their metrics.
        pub counters: BTreeMap<Label, u64>,
        /// Counters that were saturated at least once: their totals are lower bounds.
        pub saturated: Vec<Label>,
        /// The share of time in which the port had data to send but sent none (PortXmitWait); null if that is not
        /// known: the counter was not read twice, is saturated, or was cleared in between.
        pub wait_ratio: Option<f32>,
        /// Whether PortXmitWait is saturated, so that the wait ratio is not known.
        #[serde(default)]
        pub wait_saturated: bool,
        /// The part number of the cable or module, if the device reports it.
        #[serde(default)]
        pub part_number: Option<String>,
        /// Its serial number: the same at both ends of a cable.
        #[serde(default)]
        pub serial_number: Option<String>,
    }

    /// The bit errors that a port received.
    pub struct BitErrors {
        /// The ratio compared with the limit: `unknown`, `fine`, `raised` or `over`.
        pub level: Label,
        /// The maximum bit error ratio, if there is a limit.
        pub limit: Option<f32>,
        /// The measurements, the shortest window first; windows without data are omitted.
        pub windows: Vec<WindowErrors>,
    }

    /// The bit errors of a time window.
    pub struct WindowErrors {
        /// The length of the window: `12m`.
        pub window: Label,
        /// Number of errors.
        pub errors: u32,
        /// The part of the window that was observed.
        pub seconds: f32,
        /// The bit error ratio; null if the observed part is too short.
        pub ratio: Option<f64>,
    }
}

/// The name of a link's fabric, and the node name and port number of each end.
pub type LinkPlace<'a> = (&'a str, [(&'a str, u8); 2]);

/// The first sort key of a list that begins with the worst link: verdict, whether an unknown link has errors, bit error
/// ratio, link errors. The second one is the place.
pub type Severity = Reverse<(Verdict, bool, u64, u64)>;

/// The severity by the highest bit error ratio and the link errors of both ends.
pub fn severity(verdict: Verdict, ratio: f64, errors: u64) -> Severity {
    // Unknown links with errors come before those without, whatever their ratios.
    let is_suspect = verdict == Verdict::Unknown && errors > 0;
    // Ratios are not negative, so their bits have the same order.
    Reverse((verdict, is_suspect, ratio.to_bits(), errors))
}

/// Whether a link is suspect: bad, watch, or unknown with link errors.
pub fn is_suspect(verdict: Verdict, errors: u64) -> bool {
    verdict >= Verdict::Watch || verdict == Verdict::Unknown && errors > 0
}

impl Link {
    /// The sort key of a list that begins with the worst link.
    pub fn rank(&self) -> (Severity, LinkPlace<'_>) {
        let ends = self.ends.each_ref().map(|end| (&*end.node, end.port));
        let (ratio, errors) = (self.worst_ratio(), self.local_errors());
        (severity(self.verdict(), ratio, errors), (&*self.fabric, ends))
    }

    /// The verdict; an unrecognized label, from a newer exporter, is `unknown`.
    pub fn verdict(&self) -> Verdict {
        Verdict::from_label(&self.verdict).unwrap_or(Verdict::Unknown)
    }

    /// Its verdict in a word, as on pages: `degraded`, and `learning` for one that only lacks time of observation.
    pub fn word(&self) -> &str {
        if self.learning.is_some() { LEARNING } else { Verdict::word(&self.verdict) }
    }

    /// The reasons that a reader needs: that the other end was not observed for long enough says nothing about a link
    /// that is degraded or bad.
    pub fn told_reasons(&self) -> impl Iterator<Item = &LinkReason> + Clone {
        let is_judged = self.verdict() >= Verdict::Watch;
        let lacks_time = Reason::InsufficientData.label();
        self.reasons.iter().filter(move |it| !is_judged || it.reason != lacks_time)
    }

    /// The sum of both ends' link errors.
    pub fn local_errors(&self) -> u64 {
        self.ends.iter().map(End::local_errors).fold(0, u64::saturating_add)
    }

    /// Whether the link is suspect: bad, watch, or unknown with link errors.
    pub fn is_suspect(&self) -> bool {
        is_suspect(self.verdict(), self.local_errors())
    }

    /// The highest bit error ratio of both ends.
    pub fn worst_ratio(&self) -> f64 {
        let windows = self.ends.iter().flat_map(|end| &end.bit_errors.windows);
        windows.filter_map(|window| window.ratio).fold(0.0, f64::max)
    }
}

impl End {
    /// The node's name and the port's number, of a switch also what is printed beside it.
    pub fn label(&self) -> String {
        label_of_port(&self.node, self.port, &self.node_type, self.front_panel.as_deref())
    }

    /// The link errors among its counters. An older exporter may leave some out.
    pub fn local_errors(&self) -> u64 {
        link_errors(|counter| self.counters.get(counter.row().metric).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(verdict: &'static str, counters: &[(&'static str, u64)]) -> Link {
        let counters = counters.iter().map(|&(name, count)| (name.into(), count)).collect();
        let ends = [End::default(), End { counters, ..End::default() }];
        Link { verdict: verdict.into(), ends, ..Link::default() }
    }

    #[test]
    fn bad_watch_and_unknown_links_with_errors_are_suspect() {
        for (verdict, counters, suspect) in [
            ("bad", &[][..], true),
            ("watch", &[], true),
            ("ok", &[("symbol_errors", 5)], false),
            ("unknown", &[], false),
            ("unknown", &[("symbol_errors", 5)], true),
            ("unknown", &[("link_downed", 1)], true),
            ("unknown", &[("fec_uncorrectable_blocks", 1)], true),
            ("unknown", &[("receive_switch_relay_errors", 9)], false),
            ("unknown", &[("receive_errors", 4), ("receive_remote_physical_errors", 4)], false),
            ("unknown", &[("receive_errors", 5), ("receive_remote_physical_errors", 4)], true),
            // More marked packets than receive errors.
            ("unknown", &[("link_downed", 1), ("receive_remote_physical_errors", 4)], true),
            ("a newer word", &[], false),
        ] {
            let link = link(verdict, counters);
            assert_eq!(link.is_suspect(), suspect, "{verdict} {counters:?}");
        }
    }

    #[test]
    fn links_survive_a_json_round_trip() {
        let mut link = link("bad", &[("symbol_errors", u64::MAX)]);
        link.ends[0].bit_errors.limit = Some(1e-14);
        link.ends[0].bit_errors.windows = vec![WindowErrors {
            window: "12m".into(),
            errors: 4,
            seconds: 720.0,
            ratio: Some(3.2e-13),
        }];
        link.reasons = vec![LinkReason {
            reason: "bit_errors".into(),
            verdict: "bad".into(),
            evidence: "\"quoted\" \u{1b}".into(),
        }];
        let fabric =
            FabricLinks { fabric: "f".into(), links: vec![link], ..FabricLinks::default() };
        let links = Links { fabrics: vec![fabric] };
        let text = serde_json::to_string(&links).unwrap();
        assert_eq!(serde_json::from_str::<Links>(&text).unwrap(), links);
        assert!((links.fabrics[0].links[0].worst_ratio() - 3.2e-13).abs() < 1e-20);
    }
}
