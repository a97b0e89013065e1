//! What a scrape asks for: groups of families (`collect[]`, `exclude[]`, `profile`), and a shard of the fabric
//! (`shard`). A fabric of 100,000 ports has millions of series, more than scrapers accept in one response.

use std::collections::BTreeSet;

use display_text::labeled_enum;
use ib_mad::Guid;

labeled_enum! {
    /// A group of metric families that can be scraped separately.
    #[derive(PartialOrd, Ord)]
    pub enum Group {
        Exporter, "self", "The exporter itself: sweeps, MADs, history, process.";
        Fabric, "fabric",
            "Each fabric in a few series: links by verdict, nodes by state, subnet managers, congestion regions.";
        Nodes, "nodes", "Names of nodes, and whether they respond.";
        Links, "links", "Names of the ends of each link, verdict, repair, flaps.";
        State, "state", "PortState of each port.";
        Traffic, "traffic", "Bytes sent and received.";
        Congestion, "congestion", "Wait ratio of each port, and roots and victims of congestion.";
        Counters, "counters", "Saturated and reset counters, impossible readings.";
        Ports, "ports", "Names of ports and their neighbors, physical state, rate and width.";
        Outages, "outages", "Link states, times of link changes, downtime.";
        Ber, "ber", "Bit error ratios and their limits.";
        Errors, "errors", "Counters of errors, discards and wait ticks.";
        Fec, "fec", "Counters of forward error correction.";
        Packets, "packets", "Packets sent and received; unicast and multicast.";
        Hardware, "hardware",
            "Firmware, temperatures, fans and power supplies of nodes; bit error ratios, lanes and link-down reasons that devices report.";
        Modules, "modules", "Cables and transceivers.";
        Host, "host", "The RDMA devices of the exporter's host.";
    }
}

labeled_enum! {
    /// A named list of groups.
    #[derive(Default, clap::ValueEnum, serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Profile {
        #[default]
        Full, "full", "All groups.";
        Lean, "lean",
            "What most alerts need: verdicts, names, states, bytes and wait ratios.";
    }
}

impl Profile {
    /// Its groups.
    pub fn groups(self) -> &'static [Group] {
        use Group::{Congestion, Exporter, Fabric, Host, Links, Nodes, State, Traffic};
        match self {
            Profile::Full => &Group::ALL,
            Profile::Lean => &[Exporter, Fabric, Nodes, Links, State, Traffic, Congestion, Host],
        }
    }
}

/// The most shards. A slice of 162,000 ports has 2,500 then, enough for a block that compresses well.
pub const MAX_SHARDS: usize = 64;

/// The part of the fabric to which a node belongs, of [`MAX_SHARDS`]. Fixed for all versions: otherwise series would
/// change their shard with an update. GUIDs of one batch of devices are consecutive, so the bits are mixed (the
/// finalizer of SplitMix64).
pub fn part_of(guid: Guid) -> usize {
    let mut bits = guid.0;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ bits >> 31) >> 58) as usize
}

/// Shard `index` of `count`: all nodes whose [part](part_of) modulo `count` is `index`. Shard 0 also has what belongs to
/// no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    /// From 0 on.
    pub index: usize,
    /// A power of two, at most [`MAX_SHARDS`].
    pub count: usize,
}

impl Default for Shard {
    /// The whole fabric.
    fn default() -> Self {
        Shard { index: 0, count: 1 }
    }
}

impl Shard {
    fn parse(text: &str) -> Result<Self, String> {
        // `parse` alone would accept a sign.
        let number =
            |text: &str| -> Option<usize> { text.parse().ok().filter(|_| !text.starts_with('+')) };
        let numbers = text.split_once('/').and_then(|it| Some((number(it.0)?, number(it.1)?)));
        match numbers {
            Some((index, count))
                if count.is_power_of_two() && count <= MAX_SHARDS && index < count =>
            {
                Ok(Shard { index, count })
            }
            _ => Err(format!(
                "shard: {text:?} is not K/N such as 0/8: N is a power of two up to {MAX_SHARDS}, and K is less than N"
            )),
        }
    }
}

/// What one scrape gets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    groups: BTreeSet<Group>,
    /// The shard of the fabrics.
    pub shard: Shard,
}

impl From<Profile> for Selection {
    fn from(profile: Profile) -> Self {
        let groups = profile.groups().iter().copied().collect();
        Selection { groups, shard: Shard::default() }
    }
}

impl Default for Selection {
    /// Everything.
    fn default() -> Self {
        Profile::Full.into()
    }
}

impl Selection {
    /// Reads the parameters of a request; others than these four are ignored, because a scrape configuration may have
    /// its own. Groups are those of the profile and those that are collected, without the excluded ones; `default` applies
    /// if the request has neither.
    pub fn parse(parameters: &[(String, String)], default: Profile) -> Result<Self, String> {
        let (mut profile, mut shard) = (None, None);
        let (mut collect, mut exclude) = (BTreeSet::new(), BTreeSet::new());
        let twice = |name| Err(format!("{name}: given more than once"));
        for (name, value) in parameters {
            let unknown = |labels: &[&str]| {
                format!("{name}: {value:?} is unknown; choose from: {}", labels.join(", "))
            };
            let group =
                || Group::from_label(value).ok_or_else(|| unknown(&Group::ALL.map(Group::label)));
            let known_profile = || {
                Profile::from_label(value).ok_or_else(|| unknown(&Profile::ALL.map(Profile::label)))
            };
            match &**name {
                "collect[]" => drop(collect.insert(group()?)),
                "exclude[]" => drop(exclude.insert(group()?)),
                "profile" if profile.is_some() => return twice(name),
                "profile" => profile = Some(known_profile()?),
                "shard" if shard.is_some() => return twice(name),
                "shard" => shard = Some(Shard::parse(value)?),
                _ => (),
            }
        }
        if collect.is_empty() || profile.is_some() {
            collect.extend(profile.unwrap_or(default).groups());
        }
        let groups = collect.difference(&exclude).copied().collect();
        Ok(Selection { groups, shard: shard.unwrap_or_default() })
    }

    /// Whether it contains the families of a group.
    pub fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    /// Whether it contains what belongs to no node.
    pub fn is_first(&self) -> bool {
        self.shard.index == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(query: &[(&str, &str)]) -> Result<Selection, String> {
        let pairs: Vec<_> = query.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Selection::parse(&pairs, Profile::Lean)
    }

    #[test]
    fn groups_are_those_of_the_profile_and_the_collected_ones_without_the_excluded_ones() {
        let lean = Profile::Lean.groups();
        for (query, expected) in [
            (&[][..], lean.to_vec()),
            (&[("other", "x")], lean.to_vec()),
            (&[("profile", "full")], Group::ALL.to_vec()),
            (&[("collect[]", "ber"), ("collect[]", "ber")], vec![Group::Ber]),
            (&[("collect[]", "fec"), ("collect[]", "links")], vec![Group::Links, Group::Fec]),
            (&[("collect[]", "ber"), ("profile", "lean")], [lean, &[Group::Ber]].concat()),
            (&[("collect[]", "ber"), ("exclude[]", "ber")], vec![]),
            (&[("exclude[]", "host")], lean[..lean.len() - 1].to_vec()),
        ] {
            let have = selection(query).unwrap();
            assert_eq!(have.groups, expected.into_iter().collect(), "{query:?}");
            assert_eq!(have.shard, Shard { index: 0, count: 1 });
        }
    }

    #[test]
    fn wrong_parameters_are_named_with_what_is_accepted() {
        for (query, expected) in [
            (
                &[("collect[]", "nosuch")][..],
                r#"collect[]: "nosuch" is unknown; choose from: self, "#,
            ),
            (&[("exclude[]", "")], r#"exclude[]: "" is unknown; choose from: self, fabric"#),
            (&[("profile", "fat")], r#"profile: "fat" is unknown; choose from: full, lean"#),
            (&[("profile", "lean"), ("profile", "lean")], "profile: given more than once"),
            (&[("shard", "0/2"), ("shard", "1/2")], "shard: given more than once"),
        ] {
            let problem = selection(query).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn shard_is_below_a_power_of_two() {
        for (text, expected) in [
            ("0/1", Some((0, 1))),
            ("7/8", Some((7, 8))),
            ("63/64", Some((63, 64))),
            ("8/8", None),
            ("0/0", None),
            ("0/3", None),
            ("0/128", None),
            ("+0/8", None),
            ("/8", None),
            ("0/", None),
            ("0", None),
            ("0/8/8", None),
            ("99999999999999999999/8", None),
        ] {
            let have = selection(&[("shard", text)]).map(|it| (it.shard.index, it.shard.count));
            assert_eq!(have.as_ref().ok(), expected.as_ref(), "{text}");
            assert!(expected.is_some() || have.unwrap_err().contains("is not K/N"), "{text}");
        }
    }

    #[test]
    fn consecutive_guids_are_spread_evenly_over_parts_that_never_change() {
        let mut counts = [0; MAX_SHARDS];
        for guid in 0..64_000 {
            counts[part_of(Guid(0x0002_c903_0000_0000 + guid))] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        let fixed = [0, 1, 0x0002_c903_00a1_b2c3, u64::MAX].map(|guid| part_of(Guid(guid)));
        assert_eq!(fixed, [0, 21, 50, 45]);
    }
}
