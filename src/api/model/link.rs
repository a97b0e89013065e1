//! The models of links and their ports, in `/api/v1/links`, `/api/v1/links/{id}` and `/api/v1/nodes/{guid}`, and the
//! order of links in lists.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use ib_health::Verdict;
use ib_mad::counter::link_errors;
use ib_mad::label;

use super::{Label, Verdicts, verdict_from};

/// The cables of all fabrics; `L` is a list of [`Link`]s, or what is written as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Links"))]
pub struct Links<L = Vec<Link>> {
    /// Fabric by fabric.
    pub fabrics: Vec<FabricLinks<L>>,
}

/// The cables of a fabric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "FabricLinks"))]
pub struct FabricLinks<L = Vec<Link>> {
    /// The fabric's name.
    pub fabric: String,
    /// When its latest sweep ended (RFC 3339); null before the first.
    pub swept_at: Option<String>,
    /// How many of its cables have which verdict, those included that were not asked for.
    pub verdicts: Verdicts,
    /// Its cables, or those of them that were asked for.
    pub links: L,
}

/// A cable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Link {
    /// Its id, as metrics have it.
    pub link: String,
    /// The fabric that it is in.
    pub fabric: String,
    /// What it comes to: `ok`, `unknown`, `watch` or `bad`.
    pub verdict: Label,
    /// Since when (RFC 3339); null where nothing was judged yet.
    pub since: Option<String>,
    /// Why, the gravest first.
    pub reasons: Vec<LinkReason>,
    /// What to try first.
    pub repair: Option<SuggestedRepair>,
    /// Whether it carries traffic; null where that is not known.
    pub up: Option<bool>,
    /// Its ends, the lower first.
    pub ends: [End; 2],
    /// What it carries, in bytes a second, while it has a link.
    pub rate: Option<u64>,
    /// The speed of a lane: `NDR`.
    pub speed: Option<Label>,
    /// The lanes: `4x`.
    pub width: Option<Label>,
    /// Losses of the link that nobody expected.
    pub flaps: u32,
    /// How long they kept it down at least: as it was seen.
    pub down_seconds: f64,
    /// How long they kept it down at most: from when it was last seen up to when it was seen up again.
    pub down_max_seconds: f64,
    /// When it went down or came up last (RFC 3339).
    pub last_change: Option<String>,
    /// The port into which the packets came that were spoilt before they came here.
    pub upstream: Option<String>,
}

/// A reason for a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Because"))]
pub struct LinkReason {
    /// The reason, as metrics have it.
    pub reason: Label,
    /// The verdict that it alone would bring.
    pub weight: Label,
    /// What speaks for it, in a sentence with numbers.
    pub evidence: String,
}

/// A repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ToTry"))]
pub struct SuggestedRepair {
    /// The repair, as metrics have it.
    pub repair: Label,
    /// What to do, in a sentence.
    pub what: Label,
}

/// An end of a cable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct End {
    /// The node's GUID.
    pub guid: String,
    /// What people call the node.
    pub node: String,
    /// The port's number.
    pub port: u8,
    /// `ca`, `switch`, `router` or `aggregation_node`.
    pub node_type: Label,
    /// The bits that came in here.
    pub bit_errors: BitErrors,
    /// Counters of errors, of discards and of the link that are not zero, by their metrics' names.
    pub counters: BTreeMap<Label, u64>,
    /// Counters whose fields were full at least once: their totals are lower bounds.
    pub saturated: Vec<Label>,
    /// The share of time in which the port had data and no credit to send it with.
    pub wait_ratio: Option<f32>,
}

/// The errors among the bits that came in at a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BitErrors {
    /// `unknown`, `fine`, `raised` or `over`.
    pub judgement: Label,
    /// The ratio that is too much, if there is a limit.
    pub limit: Option<f32>,
    /// What was measured, the shortest window first; those of which nothing is known are left out.
    pub windows: Vec<WindowErrors>,
}

/// What was measured over a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "InWindow"))]
pub struct WindowErrors {
    /// The window: `12m`.
    pub window: Label,
    /// How many errors.
    pub errors: u32,
    /// How much of it was watched.
    pub seconds: f32,
    /// The ratio, if that was long enough to tell.
    pub ratio: Option<f64>,
}

/// The position of a link in a list that begins with the worst: by verdict, by bit error ratio, by link errors,
/// and among equals by name. The lesser rank comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rank<'a> {
    /// The verdict.
    pub verdict: Verdict,
    /// The highest bit error ratio that was measured at an end.
    pub ratio: f64,
    /// The link errors of both ends.
    pub errors: u64,
    /// The name of the fabric.
    pub fabric: &'a str,
    /// The node name and the port number of each end.
    pub ends: [(&'a str, u8); 2],
}

impl Eq for Rank<'_> {}

impl PartialOrd for Rank<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Unknown links with errors come before those without, whatever their ratios.
        let is_suspect = |rank: &Self| rank.verdict == Verdict::Unknown && rank.errors > 0;
        (other.verdict.cmp(&self.verdict))
            .then_with(|| is_suspect(other).cmp(&is_suspect(self)))
            .then_with(|| other.ratio.total_cmp(&self.ratio))
            .then_with(|| other.errors.cmp(&self.errors))
            .then_with(|| (self.fabric, self.ends).cmp(&(other.fabric, other.ends)))
    }
}

impl Link {
    /// Its position in a list that begins with the worst.
    pub fn rank(&self) -> Rank<'_> {
        Rank {
            verdict: self.verdict(),
            ratio: self.worst_ratio(),
            errors: self.local_errors(),
            fabric: &self.fabric,
            ends: self.ends.each_ref().map(|end| (&*end.node, end.port)),
        }
    }

    /// Its verdict; a label that is not known, of a later version, is unknown.
    pub fn verdict(&self) -> Verdict {
        verdict_from(&self.verdict).unwrap_or(Verdict::Unknown)
    }

    /// The sum of both ends' link errors.
    pub fn local_errors(&self) -> u64 {
        self.ends.iter().map(End::local_errors).fold(0, u64::saturating_add)
    }

    /// Whether it is worth a look: bad, watch, or unknown with link errors.
    pub fn is_suspect(&self) -> bool {
        match self.verdict() {
            Verdict::Bad | Verdict::Watch => true,
            Verdict::Unknown => self.local_errors() > 0,
            Verdict::Ok => false,
        }
    }

    /// The highest bit error ratio that was measured at an end.
    pub fn worst_ratio(&self) -> f64 {
        let windows = self.ends.iter().flat_map(|end| &end.bit_errors.windows);
        windows.filter_map(|window| window.ratio).fold(0.0, f64::max)
    }
}

impl End {
    /// The node's name and the port's number.
    pub fn label(&self) -> String {
        label::port(&self.node, self.port)
    }

    /// The link errors among its counters. An older exporter may leave some out.
    fn local_errors(&self) -> u64 {
        link_errors(|counter| self.counters.get(counter.row().metric).copied().unwrap_or(0))
    }
}

/// A cable with all that is known of its ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkDetail {
    /// When the fabric's latest sweep ended (RFC 3339).
    pub swept_at: Option<String>,
    /// What `/api/v1/links` tells of it.
    #[serde(flatten)]
    pub link: Link,
    /// Losses of the link that were expected: reboots, and what the list of maintenance has.
    pub expected_losses: u32,
    /// How long those kept it down at least: as it was seen.
    pub expected_down_seconds: f64,
    /// How long those kept it down at most: from when it was last seen up to when it was seen up again.
    pub expected_down_max_seconds: f64,
    /// Times that it retrained by itself, as the end saw it that saw more.
    pub recoveries: u32,
    /// Its ends in full, the lower first.
    pub ports: [Port; 2],
}

/// What a port is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortName {
    /// Its node's GUID.
    pub guid: String,
    /// What people call the node.
    pub node: String,
    /// `ca`, `switch`, `router` or `aggregation_node`.
    pub node_type: Label,
    /// Its number.
    pub port: u8,
}

impl PortName {
    /// The node's name and the port's number.
    pub fn label(&self) -> String {
        label::port(&self.node, self.port)
    }
}

/// A port, with all that is known of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Port {
    /// What it is called.
    #[serde(flatten)]
    pub name: PortName,
    /// Whether its node is there and answers.
    pub up: bool,
    /// PortState: `Active`; null where that is not known.
    pub state: Option<Label>,
    /// PortPhysicalState: `LinkUp`; null where that is not known.
    pub physical_state: Option<Label>,
    /// The speed of a lane: `NDR`.
    pub speed: Option<Label>,
    /// The lanes: `4x`.
    pub width: Option<Label>,
    /// What it carries, in bytes a second, while it has a link.
    pub rate: Option<u64>,
    /// The best that both ends can do, in bytes a second.
    pub supported_rate: Option<u64>,
    /// The error correction that it runs with, as far as it tells.
    pub fec: Option<Label>,
    /// The other end of its cable, if it ever had one.
    pub peer: Option<Peer>,
    /// The cable's id.
    pub link: Option<String>,
    /// What the cable comes to; null for a port without one.
    pub verdict: Option<Label>,
    /// Why, the gravest first.
    pub reasons: Vec<Label>,
    /// When its counters were read (RFC 3339); null where they were not.
    pub read_at: Option<String>,
    /// All counters that were read, by their metrics' names and in their units.
    pub counters: BTreeMap<Label, u64>,
    /// Counters whose fields were full at least once: their totals are lower bounds.
    pub saturated: Vec<Label>,
    /// Those of them that are full now, and count no further.
    pub stuck: Vec<Label>,
    /// Counters whose latest value is impossible, and is no reading.
    #[serde(default)]
    pub impossible: Vec<Label>,
    /// How many impossible values there were, of all counters.
    #[serde(default)]
    pub impossible_readings: u32,
    /// How often counters fell: somebody cleared them, or the device was reset.
    pub resets: u32,
    /// When that was seen last (RFC 3339).
    pub last_reset: Option<String>,
    /// Link errors: symbol errors, receive errors without those marked upstream, local link integrity errors,
    /// buffer overruns, uncorrectable FEC blocks, retrainings and link downs.
    pub errors: u64,
    /// Packets that the port discarded instead of sending them; null where that was not read.
    #[serde(default)]
    pub discards: Option<u64>,
    /// The bits that came in here.
    pub bit_errors: BitErrors,
    /// What error correction had to correct, if it tells.
    pub mended: Option<PreFecBer>,
    /// The share of time in which the port had data and no credit to send it with.
    pub wait_ratio: Option<f32>,
    /// Whether the device tells how long its tick is; else the usual one was assumed.
    pub tick_told: bool,
    /// Its part in a congestion.
    pub congestion: Option<Congestion>,
}

/// The other end of a port's cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peer {
    /// The port there.
    #[serde(flatten)]
    pub name: PortName,
    /// Whether there is a link to it. If not, this is where the cable led when there last was one.
    pub connected: bool,
}

/// The ratio of bits that error correction had to correct.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Mended"))]
pub struct PreFecBer {
    /// As it was measured.
    pub ratio: f32,
    /// The ratio that is too much.
    pub limit: f32,
    /// When it was measured last (RFC 3339).
    #[serde(default)]
    pub measured_at: Option<String>,
    /// Whether its counter has been full since: then it is no measurement of now.
    #[serde(default)]
    pub stale: bool,
}

/// A port's part in a congestion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Congestion {
    /// `root` or `victim`.
    pub role: Label,
    /// Of a victim: the root that it waits for.
    pub of: Option<PortName>,
    /// Of a root, what makes it one: `slow_receiver`, `full_link` or `unknown`.
    pub cause: Option<Label>,
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
            weight: "bad".into(),
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
