//! The file of a scenario: what can stand in it, and how it is read.
//!
//! Here it is only known what a thing is, not yet whether the fabric has such a node. Values keep
//! the line on which they stand, for what is said of them later.

use serde::Deserialize;

use super::error::Problem;
use super::value::{Key, Lane, Lanes, Named, OneOrMore, Ratio, Senders, Share, Size, Time};
use site_config::yaml;
use site_config::yaml::{Mistake, Spanned};

/// A value that need not be there, with its line.
pub type Given<T> = Option<Spanned<T>>;

/// A scenario as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct File {
    /// What it shows, in a sentence.
    pub about: Option<String>,
    /// What all chance is drawn from.
    pub seed: Option<u64>,
    /// What was built.
    pub fabric: Given<ShapeEntry>,
    /// Where the exporter sits.
    pub seat: Given<String>,
    /// Where the subnet manager sits.
    pub master: Given<String>,
    /// What flows from the beginning.
    pub traffic: Option<TrafficEntry>,
    /// How MADs travel from the beginning.
    pub way: Option<WayEntry>,
    /// What happens.
    pub timeline: Option<Vec<Spanned<Entry>>>,
}

/// What was built: one of these.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeEntry {
    /// A fat tree.
    FatTree(FatTreeEntry),
    /// Two hosts and a cable.
    BackToBack(BackToBackEntry),
    /// Groups of leaves and spines, each connected with each.
    DragonflyPlus(DragonflyPlusEntry),
    /// A topology file, as ibnetdiscover writes and ibsim reads it.
    File(Spanned<String>),
}

/// A fat tree.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "they are those of shapes::FatTree")]
pub struct FatTreeEntry {
    pub levels: Given<u8>,
    pub hosts: Given<u32>,
    pub radix: Given<u8>,
    pub down: Given<u8>,
    pub up: Given<u8>,
    pub ports: Given<u8>,
    pub planes: Given<u8>,
    pub aggregation_nodes: Given<bool>,
    pub switch: Given<String>,
    pub hca: Given<String>,
}

/// Two hosts and a cable.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "they are those of shapes::BackToBack")]
pub struct BackToBackEntry {
    pub hca: Given<String>,
}

/// Groups of leaves and spines, each connected with each.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "they are those of shapes::DragonflyPlus")]
pub struct DragonflyPlusEntry {
    pub groups: Given<u16>,
    pub leaves: Given<u8>,
    pub spines: Given<u8>,
    pub hosts_per_leaf: Given<u8>,
    pub global: Given<u8>,
    pub radix: Given<u8>,
    pub switch: Given<String>,
    pub hca: Given<String>,
}

/// What flows from the beginning.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrafficEntry {
    /// Who sends to whom.
    pub pattern: Option<PatternEntry>,
    /// What each sender offers, as a share of its link's rate.
    pub load: Option<Share>,
    /// The size of packets, headers included.
    pub packet: Option<Size>,
    /// Whom all send to, in the pattern of that name.
    pub to: Given<String>,
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatternEntry {
    /// Nobody sends.
    None,
    /// Each to the next.
    Neighbours,
    /// Each to the one half of the fabric away.
    Across,
    /// Each to another, drawn once.
    Random,
    /// All to one.
    AllToOne,
}

/// How MADs travel from the beginning.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct WayEntry {
    /// From the request to the answer at the next node.
    pub round_trip: Given<Time>,
    /// More for each hop.
    pub per_hop: Given<Time>,
    /// Up to so much more.
    pub jitter: Given<Time>,
    /// The share that is lost.
    pub loss: Option<Share>,
}

/// Makes the entries of the timeline: the enum of all, and a structure for the keys of each. All
/// have `at`, when it happens.
macro_rules! entries {
    ($($(#[$about:meta])* $name:ident $label:literal {
        $($(#[$key_about:meta])* $key:ident: $type:ty,)+
    })+) => {
        /// One thing that happens: one of these.
        #[derive(Clone, Debug, Deserialize)]
        pub enum Entry { $($(#[$about])* #[serde(rename = $label)] $name($name)),+ }

        impl Entry {
            /// As the file calls it.
            pub fn name(&self) -> &'static str {
                match self { $(Entry::$name(_) => $label),+ }
            }

            /// When it happens.
            pub fn at(&self) -> Option<&Spanned<Time>> {
                match self { $(Entry::$name(entry) => entry.at.as_ref()),+ }
            }
        }

        /// The names of all entries.
        pub const ENTRIES: &[&str] = &[$($label),+];

        $($(#[$about])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $name {
            /// When it happens; at the beginning, if nothing says so.
            pub at: Given<Time>,
            $($(#[$key_about])* pub $key: $type,)+
        })+
    };
}

entries! {
    /// Bits that come in at a port go wrong.
    BadCable "bad-cable" {
        /// The port.
        into: Spanned<String>,
        /// Wrong bits a bit.
        ratio: Spanned<Ratio>,
        /// How long.
        r#for: Given<Time>,
    }
    /// A link loses its signal, and gets it back.
    Flap "flap" {
        /// One of its ends.
        link: Spanned<String>,
        /// For how long; of several, one after the other.
        down: Spanned<OneOrMore<Time>>,
        /// From one time to the next.
        every: Given<Time>,
        /// How often.
        times: Given<u32>,
    }
    /// A cable is pulled.
    Unplug "unplug" {
        /// One of its ends.
        link: Spanned<String>,
        /// How long.
        r#for: Given<Time>,
    }
    /// A link comes up narrower or slower.
    Degrade "degrade" {
        /// One of its ends.
        link: Spanned<String>,
        /// No wider than this.
        width: Given<Lanes>,
        /// No faster than this.
        speed: Given<Lane>,
        /// How long.
        r#for: Given<Time>,
    }
    /// A host takes in less than comes.
    SlowReceiver "slow-receiver" {
        /// The host, or one of its ports.
        host: Spanned<String>,
        /// What it takes in, as a share of its link's rate.
        takes: Spanned<Share>,
        /// How long.
        r#for: Given<Time>,
    }
    /// Many send to one.
    Burst "burst" {
        /// Who sends.
        from: Spanned<Senders>,
        /// To whom.
        to: Spanned<String>,
        /// What each offers, as a share of its link's rate.
        load: Spanned<Share>,
        /// The size of packets, if not that of the other traffic.
        packet: Option<Size>,
        /// How long.
        r#for: Given<Time>,
    }
    /// A node goes off and comes back.
    Reboot "reboot" {
        /// Which.
        node: Spanned<String>,
        /// How long it is off.
        down: Spanned<Time>,
    }
    /// Somebody clears counters.
    Clear "clear" {
        /// Whose: all, if neither node nor port is named.
        node: Given<String>,
        /// Of this port alone.
        port: Given<String>,
        /// From one time to the next.
        every: Given<Time>,
        /// How often.
        times: Given<u32>,
    }
    /// Somebody sets counters.
    Set "set" {
        /// Whose.
        port: Spanned<String>,
        /// Which, and to what.
        counters: Spanned<Named<u64>>,
    }
    /// A node's agents do not answer.
    Silent "silent" {
        /// Which.
        node: Spanned<String>,
        /// How long.
        r#for: Given<Time>,
    }
    /// A node's agents answer late.
    Slow "slow" {
        /// Which.
        node: Spanned<String>,
        /// How late.
        by: Spanned<Time>,
        /// How long.
        r#for: Given<Time>,
    }
    /// A node's agents say that they are busy.
    Busy "busy" {
        /// Which.
        node: Spanned<String>,
        /// To which share of requests.
        share: Spanned<Share>,
        /// How long.
        r#for: Given<Time>,
    }
    /// MADs get lost.
    LoseMads "lose-mads" {
        /// Which share of them.
        share: Spanned<Share>,
        /// At this node alone.
        node: Given<String>,
        /// How long.
        r#for: Given<Time>,
    }
    /// The subnet manager protects ports with an M_Key.
    MKey "m-key" {
        /// The key, as it stands in opensm.conf.
        key: Spanned<Key>,
        /// m_key_protection_level.
        level: Spanned<u8>,
        /// Of this node alone.
        node: Given<String>,
    }
    /// Ports become limited members of the default partition.
    LimitedMember "limited-member" {
        /// Of this node alone; else all hosts.
        node: Given<String>,
        /// Not of this host: the subnet manager makes its own a full member.
        except: Given<String>,
    }
    /// A cable's end is plugged into another port.
    MoveCable "move-cable" {
        /// Where it is.
        from: Spanned<String>,
        /// Where it will be.
        to: Spanned<String>,
    }
    /// Another subnet manager becomes the master.
    NewMaster "new-master" {
        /// Where it is.
        host: Spanned<String>,
        /// Whether it gives every port another LID.
        readdress: Option<bool>,
    }
}

/// Reads a scenario; one without a word is one, too. The error is the first mistake.
pub(super) fn parse(text: &str) -> Result<File, Problem> {
    let reading = yaml::read(text);
    reading.mistakes.first().map_or(Ok(reading.value), |mistake| Err(problem(mistake)))
}

/// A mistake, told by the entry of the timeline that it is in.
fn problem(mistake: &Mistake) -> Problem {
    let Mistake { line, key, problem, .. } = mistake;
    let entry = ENTRIES.iter().find_map(|entry| {
        let below = key.strip_prefix("timeline[")?.split_once("].")?.1.strip_prefix(entry)?;
        let key = below.strip_prefix('.').or_else(|| below.is_empty().then_some(""))?;
        Some((*entry, key))
    });
    let (entry, key) = entry.map_or((None, key.as_str()), |(entry, key)| (Some(entry), key));
    let colon = if key.is_empty() { "" } else { ": " };
    let problem = Problem::at(*line, yaml::in_a_line(&format!("{key}{colon}{problem}")));
    match entry {
        Some(entry) => problem.of(entry),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::value::line_of;

    #[test]
    fn values_know_their_lines() {
        let file = parse(
            "about: x\ntimeline:\n  - bad-cable:\n      into: leaf-0-1[7]\n      ratio: 1e-9\n",
        )
        .unwrap();
        let timeline = file.timeline.unwrap();
        let [entry] = &timeline[..] else { panic!("one entry") };
        let Entry::BadCable(cable) = &entry.value else { panic!("a bad cable") };
        assert_eq!((line_of(entry), line_of(&cable.into), line_of(&cable.ratio)), (3, 4, 5));
        assert_eq!((entry.value.name(), entry.value.at().is_none()), ("bad-cable", true));
    }

    #[test]
    fn nothing_is_a_scenario() {
        for text in ["", "\n", "# nothing\n", "timeline:\n"] {
            assert!(parse(text).unwrap().timeline.is_none(), "{text:?}");
        }
    }

    #[test]
    fn one_value_is_a_list_of_one() {
        for (down, count) in [("2s", 1), ("[5ms, 3s, 40s]", 3), ("[]", 0)] {
            let text = format!("timeline: [flap: {{link: x, down: {down}}}]");
            let timeline = parse(&text).unwrap().timeline.unwrap();
            let Entry::Flap(flap) = &timeline[0].value else { panic!("a flap") };
            assert_eq!(flap.down.value.0.len(), count);
        }
    }
}
