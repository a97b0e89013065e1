//! One name a node: where several nodes share a name, each gets the last digits of its GUID.
//!
//! Unmanaged switches all describe themselves as `Quantum-2 Mellanox Technologies`, aggregation nodes
//! share one description, and some sites give all HCAs of a host the host's name. An alert that prints
//! such a name says nothing about which node it is. `NAME#a1b2c3` has no blank before the `#`, so it is
//! no comment in YAML, and no character that a regular expression or a shell would interpret.

use std::collections::{HashMap, HashSet};

use super::ids::Guid;

/// The digits that are appended at least. Six hexadecimal digits are the part of a GUID that a vendor
/// counts up under one 24-bit company id, so that two tails of one vendor's devices rarely clash; of
/// 714 nodes with one name, four digits would be the same for four pairs.
const LEAST: usize = 6;
/// All digits of a GUID.
const MOST: usize = 16;

/// Separates a name from the digits.
const SEPARATOR: char = '#';

fn digits(guid: Guid) -> String {
    format!("{:0MOST$x}", guid.0)
}

fn with_digits(name: &str, guid: Guid, count: usize) -> String {
    let digits = digits(guid);
    format!("{name}{SEPARATOR}{}", &digits[MOST - count.min(MOST)..])
}

/// How many of its GUID's digits a name has appended; 0 if none.
fn appended(name: &str, guid: Guid) -> usize {
    let tail = name.rsplit_once(SEPARATOR).map_or("", |(_, tail)| tail);
    let is_own = tail.len() >= LEAST && digits(guid).ends_with(tail);
    if is_own { tail.len() } else { 0 }
}

/// A node's name without the digits of its GUID.
pub fn shared_name(name: &str, guid: Guid) -> &str {
    match appended(name, guid) {
        0 => name,
        digits => &name[..name.len() - digits - SEPARATOR.len_utf8()],
    }
}

/// Makes the names of nodes unique. A node that had digits appended before (`before` is what it was
/// called) keeps them while its own name stays the same: a twin that reboots must not rename it.
pub(super) fn make_unique<'a>(
    nodes: &mut [(Guid, String)],
    before: impl Fn(Guid) -> Option<&'a str>,
) {
    let mut shared: HashMap<&str, usize> = HashMap::new();
    for (_, name) in &*nodes {
        *shared.entry(name).or_default() += 1;
    }
    let kept = |guid: Guid, name: &str| {
        before(guid)
            .filter(|old| shared_name(old, guid) == name)
            .map_or(0, |old| appended(old, guid))
    };
    let mut counts: Vec<usize> = nodes
        .iter()
        .map(|(guid, name)| match (kept(*guid, name), shared.get(&**name)) {
            (0, Some(2..)) => LEAST,
            (kept, _) => kept,
        })
        .collect();
    if counts.iter().all(|&count| count == 0) {
        return;
    }
    // Two tails may be the same, and a node may describe itself as another one is called here.
    loop {
        let called = |at: usize| match (&nodes[at], counts[at]) {
            ((_, name), 0) => name.clone(),
            ((guid, name), count) => with_digits(name, *guid, count),
        };
        let mut times: HashMap<String, usize> = HashMap::new();
        for at in 0..nodes.len() {
            *times.entry(called(at)).or_default() += 1;
        }
        let clash = |at: &usize| {
            counts[*at] > 0 && counts[*at] < MOST && times.get(&called(*at)) > Some(&1)
        };
        let clashing: HashSet<usize> = (0..nodes.len()).filter(clash).collect();
        if clashing.is_empty() {
            break;
        }
        for at in clashing {
            counts[at] += 1;
        }
    }
    for ((guid, name), count) in nodes.iter_mut().zip(counts).filter(|(_, count)| *count > 0) {
        *name = with_digits(name, *guid, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unique(nodes: &[(u64, &str)], before: &[(u64, &str)]) -> Vec<String> {
        let mut nodes: Vec<_> =
            nodes.iter().map(|(guid, name)| (Guid(*guid), (*name).to_owned())).collect();
        let before: HashMap<Guid, &str> =
            before.iter().map(|(guid, name)| (Guid(*guid), *name)).collect();
        make_unique(&mut nodes, |guid| before.get(&guid).copied());
        nodes.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn a_name_that_several_nodes_share_gets_guid_digits() {
        let (a, b, c) = (0x9405_9300_00fc_2e44, 0x9405_9300_00fc_2e88, 0xb83f_d203_00fc_2e44);
        for (nodes, called) in [
            (vec![(a, "leaf-1"), (b, "leaf-2")], vec!["leaf-1", "leaf-2"]),
            (vec![(a, "Q2"), (b, "Q2"), (7, "x")], vec!["Q2#fc2e44", "Q2#fc2e88", "x"]),
            // The last digits of two vendors' devices may be the same.
            (
                vec![(a, "Q2"), (b, "Q2"), (c, "Q2")],
                vec!["Q2#000fc2e44", "Q2#fc2e88", "Q2#300fc2e44"],
            ),
            // A host chose to be called as another node is.
            (
                vec![(a, "Q2"), (b, "Q2"), (7, "Q2#fc2e44")],
                vec!["Q2#0fc2e44", "Q2#fc2e88", "Q2#fc2e44"],
            ),
        ] {
            let told = unique(&nodes, &[]);
            assert_eq!(told, called);
            for ((guid, name), told) in nodes.iter().zip(&told) {
                assert_eq!(shared_name(told, Guid(*guid)), *name, "{told}");
            }
        }
    }

    #[test]
    fn digits_stay_when_the_twin_goes_and_end_with_the_name() {
        let before = [(0xa1_b2c3, "Q2#a1b2c3"), (0xd4_e5f6, "leaf")];
        assert_eq!(unique(&[(0xa1_b2c3, "Q2")], &before), ["Q2#a1b2c3"]);
        assert_eq!(unique(&[(0xa1_b2c3, "leaf-7")], &before), ["leaf-7"]);
        // A new twin renames a node; nothing else does.
        let twins = [(0xd4_e5f6, "leaf"), (0xd4_e5f7, "leaf")];
        assert_eq!(unique(&twins[..1], &before), ["leaf"]);
        assert_eq!(unique(&twins, &before), ["leaf#d4e5f6", "leaf#d4e5f7"]);
    }
}
