//! Names of nodes: those of the site, from the node-name-map of infiniband-diags and OpenSM, and how they become
//! unique: nodes that share a name get the last digits of their GUIDs appended.
//!
//! All unmanaged switches have the description `Quantum-2 Mellanox Technologies`, aggregation nodes
//! share one description, and some sites give all HCAs of a host the host's name. An alert with such a
//! name does not identify the node. `NAME#a1b2c3` has no blank before the `#`, so it is no comment in
//! YAML, and it has no special character of regular expressions or shells.

use std::collections::HashMap;

use ib_mad::ids::Guid;
use thiserror::Error;

use super::hosts::HostRegex;
use super::topology::Node;

/// Names by node GUID, which replace the node descriptions of devices.
///
/// A line has a GUID and a name, preferably in double quotes; outside of quotes `#` starts a comment:
///
/// ```text
/// 0x0002c90200000001 "rack 12 leaf 3"   # by the door
/// ```
///
/// As in infiniband-diags (rdma-core, util/node_name_map.c), a GUID without a name is ignored, and the
/// first of several names wins. GUIDs are hexadecimal, with or without `0x`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeNameMap(pub HashMap<Guid, String>);

/// How nodes and their hosts are named.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// The site's names, which take precedence over the descriptions of devices.
    pub map: NodeNameMap,
    /// Which part of a name is the host's.
    pub hosts: HostRegex,
}

impl From<NodeNameMap> for Naming {
    fn from(map: NodeNameMap) -> Self {
        Naming { map, ..Naming::default() }
    }
}

/// Maximum number of reported lines: with more, it is another kind of file.
const MAX_ERRORS: usize = 100;

/// An invalid line of a node-name-map.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {problem}; expected: 0x0002c90200000001 \"node name\"")]
#[expect(missing_docs, reason = "the other name says it")]
pub struct NodeNameMapError {
    /// Line number, from 1 on.
    pub line: usize,
    pub problem: String,
}

impl NodeNameMap {
    /// Parses a node-name-map.
    pub fn parse(text: &str) -> Result<Self, Vec<NodeNameMapError>> {
        let (mut names, mut faults) = (HashMap::new(), Vec::new());
        let lines = (1..).zip(text.lines().map(str::trim));
        for (line, text) in lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#')) {
            match parse_line(text) {
                Ok((_, "")) => {}
                Ok((guid, name)) => {
                    names.entry(guid).or_insert_with(|| name.to_owned());
                }
                Err(problem) => faults.push(NodeNameMapError { line, problem }),
            }
            if faults.len() == MAX_ERRORS {
                break;
            }
        }
        if faults.is_empty() { Ok(NodeNameMap(names)) } else { Err(faults) }
    }

    /// The name of a node.
    pub fn get(&self, guid: Guid) -> Option<&str> {
        self.0.get(&guid).map(String::as_str)
    }
}

/// GUID and name of a line that is not blank; the name may be empty.
fn parse_line(line: &str) -> Result<(Guid, &str), String> {
    let (guid, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let guid = guid.parse().map_err(|error| format!("{guid:?} is not a GUID ({error})"))?;
    let rest = rest.trim_start();
    let name = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or("closing quote of the name is missing")?.0,
        None => rest.split('#').next().unwrap_or_default().trim_end(),
    };
    Ok((guid, name))
}

/// Minimum number of appended digits. Six hexadecimal digits are the part of a GUID that a vendor
/// assigns under one 24-bit company id, so devices of one vendor rarely collide; with four digits, four
/// pairs of 714 nodes with one name collide.
const MIN_DIGITS: usize = 6;
const MAX_DIGITS: usize = 16;

const SEPARATOR: char = '#';

fn with_digits(name: &str, guid: Guid, count: usize) -> String {
    let digits = format!("{:0MAX_DIGITS$x}", guid.0);
    match count {
        0 => name.to_owned(),
        _ => format!("{name}{SEPARATOR}{}", &digits[MAX_DIGITS - count..]),
    }
}

/// A node's name without appended digits, and the number of these.
fn split_digits(name: &str, guid: Guid) -> (&str, usize) {
    match name.rsplit_once(SEPARATOR) {
        Some((shared, tail))
            if tail.len() >= MIN_DIGITS && format!("{:0MAX_DIGITS$x}", guid.0).ends_with(tail) =>
        {
            (shared, tail.len())
        }
        _ => (name, 0),
    }
}

/// A node's name without appended digits.
pub fn shared_name(name: &str, guid: Guid) -> &str {
    split_digits(name, guid).0
}

/// Makes the names of nodes unique. A node that had digits before (`before` returns its previous name)
/// keeps them while another node with its name is remembered: a twin that reboots must not rename it.
/// An absent node does not rename its replacement, such as a new card in the same host: the new node
/// has the plain name, and the absent one gets the digits.
pub(super) fn make_unique<'a>(nodes: &mut [Node], before: impl Fn(Guid) -> Option<&'a str>) {
    // By name: number of nodes, and number of present nodes.
    let mut shared: HashMap<&str, (usize, usize)> = HashMap::new();
    for node in &*nodes {
        let (all, present) = shared.entry(&node.name).or_default();
        *all += 1;
        *present += usize::from(node.present());
    }
    let kept = |guid: Guid, name: &str| {
        let (shared, digits) = before(guid).map_or(("", 0), |old| split_digits(old, guid));
        if shared == name { digits } else { 0 }
    };
    let count_of = |node: &Node| match (kept(node.identity.guid, &node.name), shared[&*node.name]) {
        (_, (..2, _)) => 0,
        (0, (_, present)) if present >= 2 || !node.present() => MIN_DIGITS,
        (kept, _) => kept,
    };
    let mut counts: Vec<usize> = nodes.iter().map(count_of).collect();
    // Digits may collide, and a node's description may equal a generated name.
    loop {
        let with_count =
            |(node, count): (&Node, &usize)| with_digits(&node.name, node.identity.guid, *count);
        let names: Vec<String> = nodes.iter().zip(&counts).map(with_count).collect();
        let mut times: HashMap<&str, usize> = HashMap::new();
        for name in &names {
            *times.entry(name).or_default() += 1;
        }
        let mut is_unique = true;
        for (name, count) in names.iter().zip(&mut counts) {
            if (1..MAX_DIGITS).contains(count) && times[&**name] > 1 {
                *count += 1;
                is_unique = false;
            }
        }
        if is_unique {
            nodes.iter_mut().zip(names).for_each(|(node, name)| node.name = name);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::found;
    use crate::topology::Presence;
    use ib_mad::{Moment, NodeKind};

    #[test]
    fn parses_infiniband_diags_node_name_map() {
        let names = NodeNameMap::parse(concat!(
            "# switches\n",
            "\n",
            "0x0002c90200000001\t\"rack 12, leaf #3\" # by the door\n",
            "  2c90200000002   \"spine\"\n",
            "0x2c90200000002 \"spine 1\"\n",
            "0x3\n",
            "0x4 # nothing\n",
            "0x5 plain name # and more\n",
        ))
        .unwrap();
        assert_eq!(names.0.len(), 3);
        assert_eq!(names.get(Guid(0x2_c902_0000_0001)), Some("rack 12, leaf #3"));
        assert_eq!(names.get(Guid(0x2_c902_0000_0002)), Some("spine"));
        assert_eq!(names.get(Guid(3)), None);
        assert_eq!(names.get(Guid(5)), Some("plain name"));
    }

    #[test]
    fn bad_line_error_has_line_number() {
        for (text, line, problem) in
            [("leaf \"a\"\n", 1, "not a GUID"), ("\n0x1 \"leaf\n", 2, "closing quote")]
        {
            let errors = NodeNameMap::parse(text).unwrap_err();
            let [error] = &errors[..] else { panic!("one line: {errors:?}") };
            assert_eq!(error.line, line, "{text:?}");
            assert!(error.problem.contains(problem), "{text:?}: {error}");
        }
    }

    #[test]
    fn all_bad_lines_are_reported() {
        let errors = NodeNameMap::parse("leaf \"a\"\n0x1 \"good\"\n\n0x2 \"leaf\n").unwrap_err();
        assert_eq!(errors.iter().map(|error| error.line).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(NodeNameMap::parse(&"x\n".repeat(500)).unwrap_err().len(), MAX_ERRORS);
    }

    fn unique(nodes: &[(u64, &str)], before: &[(u64, &str)]) -> Vec<String> {
        unique_with(nodes, &[], before)
    }

    /// The same, with absent nodes behind the present ones.
    fn unique_with(
        nodes: &[(u64, &str)],
        absent: &[(u64, &str)],
        before: &[(u64, &str)],
    ) -> Vec<String> {
        let named = |presence| {
            move |(guid, name): &(u64, &str)| Node {
                identity: found(*guid, NodeKind::Ca, 1).identity,
                name: (*name).to_owned(),
                host: None,
                presence,
                last_found: Moment(0),
                first_port: 0,
                port_slots: 0,
            }
        };
        let absent = absent.iter().map(named(Presence::Absent));
        let mut nodes: Vec<_> = nodes.iter().map(named(Presence::Found)).chain(absent).collect();
        let before: HashMap<Guid, &str> =
            before.iter().map(|(guid, name)| (Guid(*guid), *name)).collect();
        make_unique(&mut nodes, |guid| before.get(&guid).copied());
        nodes.into_iter().map(|node| node.name).collect()
    }

    #[test]
    fn shared_name_gets_guid_digits() {
        let (a, b, c) = (0x9405_9300_00fc_2e44, 0x9405_9300_00fc_2e88, 0xb83f_d203_00fc_2e44);
        for (nodes, expected) in [
            (vec![(a, "leaf-1"), (b, "leaf-2")], vec!["leaf-1", "leaf-2"]),
            (vec![(a, "Q2"), (b, "Q2"), (7, "x")], vec!["Q2#fc2e44", "Q2#fc2e88", "x"]),
            // The last digits of two vendors' devices may be the same.
            (
                vec![(a, "Q2"), (b, "Q2"), (c, "Q2")],
                vec!["Q2#000fc2e44", "Q2#fc2e88", "Q2#300fc2e44"],
            ),
            // A host has the name of another node.
            (
                vec![(a, "Q2"), (b, "Q2"), (7, "Q2#fc2e44")],
                vec!["Q2#0fc2e44", "Q2#fc2e88", "Q2#fc2e44"],
            ),
        ] {
            let names = unique(&nodes, &[]);
            assert_eq!(names, expected);
            for ((guid, name), unique) in nodes.iter().zip(&names) {
                assert_eq!(shared_name(unique, Guid(*guid)), *name, "{unique}");
            }
        }
    }

    #[test]
    fn guid_digits_stay_while_twin_is_remembered() {
        let before = [(0xa1_b2c3, "Q2#a1b2c3"), (0xa1_b2c4, "Q2#a1b2c4"), (0xd4_e5f6, "leaf")];
        let gone = unique_with(&[(0xa1_b2c3, "Q2")], &[(0xa1_b2c4, "Q2")], &before);
        assert_eq!(gone, ["Q2#a1b2c3", "Q2#a1b2c4"]);
        assert_eq!(unique(&[(0xa1_b2c3, "Q2")], &before), ["Q2"], "the twin is forgotten");
        assert_eq!(unique(&[(0xa1_b2c3, "leaf-7")], &before), ["leaf-7"]);
        // A card that replaces another one has the host's name, and the one that is gone has not.
        let replaced = unique_with(&[(0xd4_e5f7, "leaf")], &[(0xd4_e5f6, "leaf")], &before);
        assert_eq!(replaced, ["leaf", "leaf#d4e5f6"]);
        // A new twin renames a node; nothing else does.
        let twins = [(0xd4_e5f6, "leaf"), (0xd4_e5f7, "leaf")];
        assert_eq!(unique(&twins[..1], &before), ["leaf"]);
        assert_eq!(unique(&twins, &before), ["leaf#d4e5f6", "leaf#d4e5f7"]);
    }
}
