//! What a shard found, and how several are added up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::rules::Rule;
use crate::time::DAY;

/// The result of a part of the trial. Adding two does not depend on their order but for the list of trials, which is
/// sorted by shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Simulated time of the long run, in cable-seconds. Whole numbers: JSON does not keep the last bit of others.
    pub cable_seconds: u64,
    /// Of these, at NDR.
    pub ndr_seconds: u64,
    /// Of these, with the verdict `unknown`.
    pub unknown_seconds: u64,
    /// Evaluations of links.
    pub evaluations: u64,
    /// False verdicts of the long run, by reason and what last happened to the cable.
    pub false_bad: BTreeMap<String, u64>,
    /// The same of `watch`.
    pub false_watch: BTreeMap<String, u64>,
    /// Verdicts that were right and stayed for an hour longer than documented.
    pub stale_bad: BTreeMap<String, u64>,
    /// Where to find false verdicts again: shard, second, cable, text.
    pub examples: Vec<(u64, u64, usize, String)>,
    /// The same counts by how near cables always are to their limit.
    pub classes: BTreeMap<String, Class>,
    /// False alarms of the rules of other tools.
    pub others: [u64; Rule::ALL.len()],
    /// True losses of links in the long run.
    pub flaps: u64,
    /// What the evaluator counted as flaps.
    pub counted_flaps: u64,
    /// Injected faults.
    pub trials: Vec<Trial>,
    /// False alarms in trials, on cables without a fault.
    pub bystanders: u64,
    /// Seconds of one CPU.
    pub seconds: f64,
}

/// A injected fault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Index in [`KINDS`](crate::trials::KINDS).
    pub kind: usize,
    /// Index in [`GENERATIONS`](crate::devices::GENERATIONS).
    pub generation: usize,
    /// Seconds between sweeps.
    pub interval: u32,
    /// Of a host's cable.
    pub to_host: bool,
    /// Seconds until `watch` or worse, and until `bad`.
    pub watch: Option<u32>,
    /// See `watch`.
    pub bad: Option<u32>,
    /// Seconds until the rules of other tools alert.
    pub others: [Option<u32>; Rule::ALL.len()],
    /// Index in [`CAUSES`](crate::trials::CAUSES), where there is one.
    pub cause: Option<usize>,
    /// The modules report optical powers.
    pub has_powers: bool,
    /// Whether what was advised first, or first and then second, helped.
    pub first_right: Option<bool>,
    /// See `first_right`.
    pub second_right: Option<bool>,
}

/// Cables that are always as near to their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Simulated time, in cable-seconds.
    pub cable_seconds: u64,
    /// False verdicts.
    pub false_bad: u64,
    /// False verdicts.
    pub false_watch: u64,
}

/// How many examples a report keeps.
const EXAMPLES: usize = 100;

impl Tally {
    /// Adds another part.
    pub fn add(&mut self, more: Tally) {
        self.cable_seconds += more.cable_seconds;
        self.ndr_seconds += more.ndr_seconds;
        self.unknown_seconds += more.unknown_seconds;
        self.evaluations += more.evaluations;
        for (known, more) in [
            (&mut self.false_bad, more.false_bad),
            (&mut self.false_watch, more.false_watch),
            (&mut self.stale_bad, more.stale_bad),
        ] {
            for (key, count) in more {
                *known.entry(key).or_default() += count;
            }
        }
        for (key, more) in more.classes {
            let known = self.classes.entry(key).or_default();
            known.cable_seconds += more.cable_seconds;
            known.false_bad += more.false_bad;
            known.false_watch += more.false_watch;
        }
        for (known, more) in self.others.iter_mut().zip(more.others) {
            *known += more;
        }
        self.examples.extend(more.examples);
        self.examples.truncate(EXAMPLES);
        self.flaps += more.flaps;
        self.counted_flaps += more.counted_flaps;
        self.trials.extend(more.trials);
        self.bystanders += more.bystanders;
        self.seconds += more.seconds;
    }

    /// Simulated cable-days of the long run.
    pub fn cable_days(&self) -> f64 {
        self.cable_seconds as f64 / DAY
    }

    /// The sum of false verdicts.
    pub fn sum(counts: &BTreeMap<String, u64>) -> u64 {
        counts.values().sum()
    }
}
