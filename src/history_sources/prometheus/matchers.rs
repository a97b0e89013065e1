//! Which series are asked for: label matchers, in portions that a server can chew.

use std::collections::{BTreeMap, BTreeSet};

use ib_fabric::topology::End;
use ib_mad::{Guid, PortNumber};

/// How much more than what is wanted may come along, so that there are fewer questions.
const WASTE: usize = 4;

/// A selector of a metric's series.
pub(super) fn selector(metric: &str, matchers: &[String]) -> String {
    let matchers: Vec<&str> =
        matchers.iter().map(String::as_str).filter(|matcher| !matcher.is_empty()).collect();
    if matchers.is_empty() {
        metric.to_owned()
    } else {
        format!("{metric}{{{}}}", matchers.join(","))
    }
}

/// A label that is this.
pub(super) fn is(label: &str, value: &str) -> String {
    format!("{label}={}", quoted(value))
}

/// A label that a regular expression describes as a whole.
pub(super) fn is_like(label: &str, pattern: &str) -> String {
    format!("{label}=~{}", quoted(pattern))
}

/// A label that is one of these, some at once.
pub(super) fn one_of(
    label: &str,
    values: impl IntoIterator<Item = impl AsRef<str>>,
    at_once: usize,
) -> Vec<Vec<String>> {
    let values: BTreeSet<String> =
        values.into_iter().map(|value| regex_lite::escape(value.as_ref())).collect();
    let values: Vec<String> = values.into_iter().collect();
    let portion = |some: &[String]| vec![format!("{label}=~{}", quoted(&some.join("|")))];
    values.chunks(at_once.max(1)).map(portion).collect()
}

/// Ports, some at once: of the nodes with the same ports. Others of these nodes may come along.
pub(super) fn ports(ends: &BTreeSet<End>, at_once: usize) -> Vec<Vec<String>> {
    let mut of: BTreeMap<Guid, BTreeSet<PortNumber>> = BTreeMap::new();
    for (guid, port) in ends {
        of.entry(*guid).or_default().insert(*port);
    }
    let mut nodes: Vec<(BTreeSet<PortNumber>, Guid)> =
        of.into_iter().map(|(guid, ports)| (ports, guid)).collect();
    nodes.sort();
    let mut portions = Vec::new();
    let (mut guids, mut numbers, mut wanted) = (BTreeSet::new(), BTreeSet::new(), 0);
    for (ports, guid) in nodes {
        let union: BTreeSet<PortNumber> = numbers.union(&ports).copied().collect();
        let cost = (guids.len() + 1) * union.len();
        let is_full = cost > at_once.max(1) || cost > WASTE * (wanted + ports.len());
        if is_full && !guids.is_empty() {
            portions.push(portion(&guids, &numbers));
            (guids, numbers, wanted) = (BTreeSet::new(), BTreeSet::new(), 0);
        }
        wanted += ports.len();
        numbers.extend(ports);
        guids.insert(guid);
    }
    if !guids.is_empty() {
        portions.push(portion(&guids, &numbers));
    }
    portions
}

fn portion(guids: &BTreeSet<Guid>, ports: &BTreeSet<PortNumber>) -> Vec<String> {
    let guids: Vec<String> = guids.iter().map(ToString::to_string).collect();
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    vec![
        format!("guid=~{}", quoted(&guids.join("|"))),
        format!("port=~{}", quoted(&ports.join("|"))),
    ]
}

/// A text as PromQL has it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_written() {
        assert_eq!(selector("up", &[]), "up");
        assert_eq!(selector("up", &[String::new()]), "up");
        let node = is("node", "a\"b\\c\nd");
        assert_eq!(selector("up", &[node, is("port", "1")]), r#"up{node="a\"b\\c\nd",port="1"}"#);
        let some = one_of("link", ["c", "a.b", "a.b"], 1);
        assert_eq!(some, [[r#"link=~"a\\.b""#], [r#"link=~"c""#]]);
    }

    #[test]
    fn ports_of_like_nodes_are_asked_for_together() {
        let hosts = (1..=5).map(|guid| (Guid(guid), 1));
        let ends: BTreeSet<End> = hosts.chain([(Guid(9), 3), (Guid(9), 4)]).collect();
        let portions = ports(&ends, 4);
        assert_eq!(portions.len(), 3, "{portions:?}");
        assert!(portions[0][0].matches('|').count() == 3 && portions[0][1] == "port=~\"1\"");
        assert_eq!(portions[2][1], "port=~\"3|4\"");
        assert!(ports(&BTreeSet::new(), 4).is_empty());
        assert_eq!(ports(&ends, 0).len(), 6, "each node by itself");
    }
}
