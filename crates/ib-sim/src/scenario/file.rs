//! The file of a scenario: its keys and their types.
//!
//! Values are parsed here; whether the fabric has such a node is checked later. The lines of keys
//! are kept apart, in [`Lines`], for later errors.

use serde::Deserialize;

use super::source::{FabricSource, Lines, Problem};
use super::timeline::Timeline;
use super::value::{
    Behavior, Fraction, Key, LinkSpeed, LinkWidth, Numbers, OneOrMore, PacketSize, Ratio, Time,
};
use super::{link_entries, node_entries};
use yaml_config::yaml::{self, Diagnostic};

/// A scenario as parsed. `docs/dev/scenarios.md` describes all keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct File {
    pub about: Option<String>,
    pub seed: Option<u64>,
    pub fabric: Option<FabricSource>,
    pub seat: Option<String>,
    pub master: Option<String>,
    pub traffic: Option<TrafficEntry>,
    pub way: Option<DeliveryEntry>,
    pub own_host: Option<OwnHostEntry>,
    pub timeline: Option<Vec<Entry>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrafficEntry {
    pub pattern: Option<Pattern>,
    pub load: Option<Fraction>,
    pub packet: Option<PacketSize>,
    pub to: Option<String>,
}

/// The pattern of senders and receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    None,
    Neighbours,
    Across,
    Random,
    AllToOne,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DeliveryEntry {
    pub round_trip: Option<Time>,
    pub per_hop: Option<Time>,
    pub jitter: Option<Time>,
    pub loss: Option<Fraction>,
}

/// The devices of the exporter's own host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OwnHostEntry {
    pub roce: Option<String>,
    pub pfc_storm: Option<Time>,
}

/// Makes the enum of the timeline's entries, and a structure for the keys of each. All have `at`,
/// the time of the entry. The function behind the name applies the entry to the timeline.
macro_rules! entries {
    ($($name:ident $label:literal $apply:path { $($key:ident: $type:ty,)* })+) => {
        /// An entry of the timeline.
        #[derive(Clone, Debug, Deserialize)]
        pub enum Entry { $(#[serde(rename = $label)] $name($name)),+ }

        impl Entry {
            /// Its name in the file.
            pub fn name(&self) -> &'static str {
                match self { $(Entry::$name(_) => $label),+ }
            }

            /// Its time; the start if the file does not say.
            pub fn at(&self) -> std::time::Duration {
                let at = match self { $(Entry::$name(entry) => entry.at),+ };
                at.map_or(std::time::Duration::ZERO, |at| at.0)
            }

            /// Applies it to the timeline, and describes it in a sentence.
            pub fn apply(&self, timeline: &mut Timeline) -> Result<String, Problem> {
                match self { $(Entry::$name(entry) => $apply(entry, timeline)),+ }
            }
        }

        /// The names of all entries of a timeline.
        pub const ENTRIES: &[&str] = &[$($label),+];

        $(#[derive(Clone, Debug, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $name {
            pub at: Option<Time>,
            $(pub $key: $type,)*
        })+
    };
}

entries! {
    BadCable "bad-cable" link_entries::bad_cable { into: String, ratio: Ratio, r#for: Option<Time>, }
    DirtyConnector "dirty-connector" link_entries::dirty_connector {
        into: String,
        lane: u8,
        ratio: Ratio,
        light: Option<Fraction>,
        r#for: Option<Time>,
    }
    HotModule "hot-module" link_entries::hot_module { port: String, celsius: u8, r#for: Option<Time>, }
    SwapCable "swap-cable" link_entries::swap_cable { link: String, down: Time, }
    Flap "flap" link_entries::flap {
        link: String,
        down: OneOrMore<Time>,
        every: Option<Time>,
        times: Option<u32>,
    }
    Unplug "unplug" link_entries::unplug { link: String, r#for: Option<Time>, }
    Degrade "degrade" link_entries::degrade {
        link: String,
        width: Option<LinkWidth>,
        speed: Option<LinkSpeed>,
        r#for: Option<Time>,
    }
    SlowReceiver "slow-receiver" node_entries::slow_receiver { host: String, takes: Fraction, r#for: Option<Time>, }
    Burst "burst" node_entries::burst {
        from: OneOrMore<String>,
        to: String,
        load: Fraction,
        packet: Option<PacketSize>,
        r#for: Option<Time>,
    }
    Reboot "reboot" node_entries::reboot { node: String, down: Time, }
    Clear "clear" node_entries::clear {
        node: Option<String>,
        port: Option<String>,
        every: Option<Time>,
        times: Option<u32>,
    }
    Set "set" node_entries::set { port: String, counters: Numbers, }
    Silent "silent" node_entries::silent { node: String, r#for: Option<Time>, }
    Slow "slow" node_entries::slow { node: String, by: Time, r#for: Option<Time>, }
    Busy "busy" node_entries::busy { node: String, share: Fraction, r#for: Option<Time>, }
    LoseMads "lose-mads" node_entries::lose_mads { share: Fraction, node: Option<String>, r#for: Option<Time>, }
    MKey "m-key" node_entries::m_key { key: Key, level: u8, node: Option<String>, }
    Registers "registers" node_entries::registers { node: String, behavior: Behavior, r#for: Option<Time>, }
    VsKey "vs-key" node_entries::vs_key { key: Key, node: Option<String>, }
    // A subnet manager makes its own host a full member.
    LimitedMember "limited-member" node_entries::limited_member { node: Option<String>, except: Option<String>, }
    MoveCable "move-cable" link_entries::move_cable { from: String, to: String, }
    NewMaster "new-master" node_entries::new_master { host: String, readdress: Option<bool>, }
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
        let Entry::BadCable(cable) = entry else { panic!("a bad cable") };
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
            let Entry::Flap(flap) = &timeline[0] else { panic!("a flap") };
            assert_eq!(flap.down.as_slice().len(), count);
        }
    }
}
