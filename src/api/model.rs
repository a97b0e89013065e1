//! What `/api/v1/links` says, for those who write it and those who read it; what the other paths say is in
//! the files below.

pub mod node;
pub mod overview;
pub mod port;
pub mod search;
pub mod topology;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use ib_health::Verdict;
use ib_mad::counter::link_errors;
use ib_mad::label;

/// A word of a small vocabulary: the writer need not copy it.
pub type Word = Cow<'static, str>;

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

/// How many cables have which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the verdicts say it")]
pub struct Verdicts {
    pub ok: usize,
    pub unknown: usize,
    pub watch: usize,
    pub bad: usize,
}

impl Verdicts {
    /// Counts one more.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Ok => &mut self.ok,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Watch => &mut self.watch,
            Verdict::Bad => &mut self.bad,
        } += 1;
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ok + self.unknown + self.watch + self.bad
    }

    /// The worst; nothing if there are none.
    pub fn worst(&self) -> Option<Verdict> {
        let counts = [self.bad, self.watch, self.unknown, self.ok];
        let worst_first = Verdict::ALL.into_iter().rev().zip(counts);
        worst_first.into_iter().find(|(_, count)| *count > 0).map(|(verdict, _)| verdict)
    }

    /// Those of several together.
    #[must_use]
    pub fn and(self, other: Verdicts) -> Verdicts {
        Verdicts {
            ok: self.ok + other.ok,
            unknown: self.unknown + other.unknown,
            watch: self.watch + other.watch,
            bad: self.bad + other.bad,
        }
    }
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
    pub verdict: Word,
    /// Since when (RFC 3339); null where nothing was judged yet.
    pub since: Option<String>,
    /// Why, the gravest first.
    pub reasons: Vec<Because>,
    /// What to try first.
    pub repair: Option<ToTry>,
    /// Whether it carries traffic; null where that is not known.
    pub up: Option<bool>,
    /// Its ends, the lower first.
    pub ends: [End; 2],
    /// What it carries, in bytes a second, while it has a link.
    pub rate: Option<u64>,
    /// The speed of a lane: `NDR`.
    pub speed: Option<Word>,
    /// The lanes: `4x`.
    pub width: Option<Word>,
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Because {
    /// The reason, as metrics have it.
    pub reason: Word,
    /// The verdict that it alone would bring.
    pub weight: Word,
    /// What speaks for it, in a sentence with numbers.
    pub evidence: String,
}

/// A repair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToTry {
    /// The repair, as metrics have it.
    pub repair: Word,
    /// What to do, in a sentence.
    pub what: Word,
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
    pub node_type: Word,
    /// The bits that came in here.
    pub bit_errors: BitErrors,
    /// Counters of errors, of discards and of the link that are not zero, by their metrics' names.
    pub counters: BTreeMap<Word, u64>,
    /// Counters whose fields were full at least once: their totals are lower bounds.
    pub saturated: Vec<Word>,
    /// The share of time in which the port had data and no credit to send it with.
    pub wait_ratio: Option<f32>,
}

/// The errors among the bits that came in at a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BitErrors {
    /// `unknown`, `fine`, `raised` or `over`.
    pub judgement: Word,
    /// The ratio that is too much, if there is a limit.
    pub limit: Option<f32>,
    /// What was measured, the shortest window first; those of which nothing is known are left out.
    pub windows: Vec<InWindow>,
}

/// What was measured over a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InWindow {
    /// The window: `12m`.
    pub window: Word,
    /// How many errors.
    pub errors: u32,
    /// How much of it was watched.
    pub seconds: f32,
    /// The ratio, if that was long enough to tell.
    pub ratio: Option<f64>,
}

/// Where a cable stands among others: the greater, the worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rank {
    /// Its verdict; unknown ones that have counted errors stand before those that have not.
    pub suspicion: (Verdict, bool),
    /// The greatest ratio that was measured.
    pub ratio: f64,
    /// How many errors were counted that are of the link.
    pub errors: u64,
}

impl Rank {
    /// By what was found out about it.
    pub fn new(verdict: Verdict, ratio: f64, errors: u64) -> Self {
        Rank { suspicion: (verdict, verdict == Verdict::Unknown && errors > 0), ratio, errors }
    }
}

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.suspicion.cmp(&other.suspicion))
            .then(self.ratio.total_cmp(&other.ratio))
            .then(self.errors.cmp(&other.errors))
    }
}

impl Link {
    /// Where it stands among others.
    pub fn rank(&self) -> Rank {
        Rank::new(self.verdict(), self.worst_ratio(), self.local_errors())
    }

    /// Its verdict; a word that is not known says nothing.
    pub fn verdict(&self) -> Verdict {
        let known = Verdict::ALL.into_iter().find(|verdict| verdict.label() == self.verdict);
        known.unwrap_or(Verdict::Unknown)
    }

    /// How many errors were counted that are of this link.
    pub fn local_errors(&self) -> u64 {
        self.ends.iter().map(End::local_errors).fold(0, u64::saturating_add)
    }

    /// Whether it is worth a look: it is not as it should be, or nobody knows and it has counted errors.
    pub fn is_suspect(&self) -> bool {
        match self.verdict() {
            Verdict::Bad | Verdict::Watch => true,
            Verdict::Unknown => self.local_errors() > 0,
            Verdict::Ok => false,
        }
    }

    /// The greatest ratio that was measured.
    pub fn worst_ratio(&self) -> f64 {
        let windows = self.ends.iter().flat_map(|end| &end.bit_errors.windows);
        windows.filter_map(|window| window.ratio).fold(0.0, f64::max)
    }
}

impl End {
    /// As people call the port.
    pub fn label(&self) -> String {
        label::port(&self.node, self.port)
    }

    fn local_errors(&self) -> u64 {
        local_errors(&self.counters)
    }
}

/// The link errors among a port's counters, by their metrics' names. A writer may be older and leave some out.
fn local_errors(counters: &BTreeMap<Word, u64>) -> u64 {
    link_errors(|counter| counters.get(counter.row().metric).copied().unwrap_or(0))
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
    fn suspects_are_what_is_not_as_it_should_be_and_unknown_links_with_errors() {
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
            // A device that counts more of the one than of the other.
            ("unknown", &[("link_downed", 1), ("receive_remote_physical_errors", 4)], true),
            ("a newer word", &[], false),
        ] {
            let link = link(verdict, counters);
            assert_eq!(link.is_suspect(), suspect, "{verdict} {counters:?}");
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let mut link = link("bad", &[("symbol_errors", u64::MAX)]);
        link.ends[0].bit_errors.limit = Some(1e-14);
        link.ends[0].bit_errors.windows = vec![InWindow {
            window: "12m".into(),
            errors: 4,
            seconds: 720.0,
            ratio: Some(3.2e-13),
        }];
        link.reasons = vec![Because {
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
