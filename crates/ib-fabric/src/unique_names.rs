//! Unique names: nodes that share a name get the last digits of their GUIDs appended.
//!
//! All unmanaged switches have the description `Quantum-2 Mellanox Technologies`, aggregation nodes
//! share one description, and some sites give all HCAs of a host the host's name. An alert with such a
//! name does not identify the node. `NAME#a1b2c3` has no blank before the `#`, so it is no comment in
//! YAML, and it has no special character of regular expressions or shells.

use std::collections::HashMap;

use ib_mad::ids::Guid;

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

/// A node, and the name that it may share with others.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedNode<'a> {
    pub guid: Guid,
    pub name: &'a str,
    pub is_present: bool,
}

/// A unique name for each node. A node that had digits before (`before` returns its previous name)
/// keeps them while another node with its name is remembered: a twin that reboots must not rename it.
/// An absent node does not rename its replacement, such as a new card in the same host: the new node
/// has the plain name, and the absent one gets the digits.
pub(super) fn unique_names<'a>(
    nodes: &[NamedNode<'_>],
    before: impl Fn(Guid) -> Option<&'a str>,
) -> Vec<String> {
    // By name: number of nodes, and number of present nodes.
    let mut shared: HashMap<&str, (usize, usize)> = HashMap::new();
    for node in nodes {
        let (all, present) = shared.entry(node.name).or_default();
        *all += 1;
        *present += usize::from(node.is_present);
    }
    let kept = |guid: Guid, name: &str| {
        let (shared, digits) = before(guid).map_or(("", 0), |old| split_digits(old, guid));
        if shared == name { digits } else { 0 }
    };
    let count_of = |node: &NamedNode<'_>| match (kept(node.guid, node.name), shared[node.name]) {
        (_, (..2, _)) => 0,
        (0, (_, present)) if present >= 2 || !node.is_present => MIN_DIGITS,
        (kept, _) => kept,
    };
    let mut counts: Vec<usize> = nodes.iter().map(count_of).collect();
    // Digits may collide, and a node's description may equal a generated name.
    loop {
        let with_count =
            |(node, count): (&NamedNode<'_>, &usize)| with_digits(node.name, node.guid, *count);
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
            return names;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unique(nodes: &[(u64, &'static str)], before: &[(u64, &str)]) -> Vec<String> {
        unique_with(nodes, &[], before)
    }

    /// The same, with absent nodes behind the present ones.
    fn unique_with(
        nodes: &[(u64, &'static str)],
        absent: &[(u64, &'static str)],
        before: &[(u64, &str)],
    ) -> Vec<String> {
        let named = |is_present| {
            move |&(guid, name): &(u64, &'static str)| NamedNode {
                guid: Guid(guid),
                name,
                is_present,
            }
        };
        let absent = absent.iter().map(named(false));
        let nodes: Vec<_> = nodes.iter().map(named(true)).chain(absent).collect();
        let before: HashMap<Guid, &str> =
            before.iter().map(|(guid, name)| (Guid(*guid), *name)).collect();
        unique_names(&nodes, |guid| before.get(&guid).copied())
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
