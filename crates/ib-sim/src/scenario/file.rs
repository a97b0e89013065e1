//! The file of a scenario: its keys and their types.
//!
//! Values are parsed here; whether the fabric has such a node is checked later. The lines of keys
//! are kept apart, in [`Lines`], for later errors.

use serde::Deserialize;

use super::entries::{ENTRIES, TimelineEntry};
use super::initial_traffic::TrafficKeys;
use super::problem::{Lines, Problem};
use super::topology_source::TopologySource;
use super::value::{Fraction, Time};
use yaml_config::yaml::{self, Diagnostic};

/// A scenario as parsed. `docs/dev/scenarios.md` describes all keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct File {
    pub about: Option<String>,
    pub seed: Option<u64>,
    pub fabric: Option<TopologySource>,
    pub seat: Option<String>,
    pub master: Option<String>,
    pub traffic: Option<TrafficKeys>,
    pub way: Option<DeliveryKeys>,
    pub own_host: Option<OwnHostKeys>,
    pub timeline: Option<Vec<TimelineEntry>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DeliveryKeys {
    pub round_trip: Option<Time>,
    pub per_hop: Option<Time>,
    pub jitter: Option<Time>,
    pub loss: Option<Fraction>,
}

/// The devices of the exporter's own host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OwnHostKeys {
    pub roce: Option<String>,
    pub pfc_storm: Option<Time>,
}

/// Reads a scenario; an empty file is valid. The error is the first mistake: one that can be seen, before a key that is
/// missing.
pub fn parse(text: &str) -> Result<(File, Lines), Problem> {
    let parsed = yaml::parse(text);
    match parsed.diagnostics.iter().min_by_key(|it| it.is_missing) {
        Some(diagnostic) => Err(problem(diagnostic)),
        None => Ok((parsed.value, Lines(parsed.document))),
    }
}

/// A mistake with the name of the timeline's entry before it instead of its path.
fn problem(diagnostic: &Diagnostic) -> Problem {
    let Diagnostic { line, key, problem, .. } = diagnostic;
    let below = key.strip_prefix("timeline[").and_then(|key| key.split_once("]."));
    let entry = below.map(|(_, below)| below.split_once('.').unwrap_or((below, "")));
    let entry = entry.filter(|(name, _)| ENTRIES.contains(name));
    let key = entry.map_or(key.as_str(), |(_, key)| key);
    let colon = if key.is_empty() { "" } else { ": " };
    let problem = Problem::new(Some(*line), yaml::single_line(&format!("{key}{colon}{problem}")));
    match entry {
        Some((name, _)) => problem.within(name),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_values_are_known() {
        let (file, lines) = parse(
            "about: x\ntimeline:\n  - bad-cable:\n      into: leaf-0-1[7]\n      ratio: 1e-9\n",
        )
        .unwrap();
        let timeline = file.timeline.unwrap();
        let [entry] = &timeline[..] else { panic!("one entry") };
        let line = |path| lines.of(path).unwrap();
        assert_eq!(line("timeline[0]"), 3);
        assert_eq!(line("timeline[0].bad-cable.into"), 4);
        assert_eq!(line("timeline[0].bad-cable.ratio"), 5);
        let TimelineEntry::BadCable(cable) = entry else { panic!("a bad cable") };
        assert_eq!((entry.name(), cable.at.is_none()), ("bad-cable", true));
    }

    #[test]
    fn empty_file_is_a_scenario() {
        for text in ["", "\n", "# nothing\n", "timeline:\n"] {
            assert!(parse(text).unwrap().0.timeline.is_none(), "{text:?}");
        }
    }

    #[test]
    fn one_value_is_a_list_of_one() {
        for (down, count) in [("2s", 1), ("[5ms, 3s, 40s]", 3), ("[]", 0)] {
            let text = format!("timeline: [flap: {{link: x, down: {down}}}]");
            let timeline = parse(&text).unwrap().0.timeline.unwrap();
            let TimelineEntry::Flap(flap) = &timeline[0] else { panic!("a flap") };
            assert_eq!(flap.down.as_slice().len(), count);
        }
    }
}
