//! What a fabric was like at a moment, in numbers.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;

use crate::model::Then;

/// A fabric at a moment, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// The sweep that it is told from.
    #[serde(with = "crate::model::time")]
    pub at: SystemTime,
    /// Nodes by kind: all, and those that answered.
    pub nodes: BTreeMap<String, (usize, usize)>,
    /// Cables: all, and those that carried traffic.
    pub cables: (usize, usize),
    /// Cables by verdict.
    pub verdicts: BTreeMap<&'static str, usize>,
    /// Cables by what they ran at.
    pub rates: BTreeMap<String, usize>,
}

impl Shape {
    /// Counts a fabric.
    pub fn of(then: &Then) -> Self {
        let mut nodes: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for node in &then.nodes {
            let (all, up) = nodes.entry(node.kind.clone()).or_default();
            *all += 1;
            *up += usize::from(node.up);
        }
        let up = then.cables.iter().filter(|cable| cable.up == Some(true)).count();
        let (mut verdicts, mut rates) = (BTreeMap::new(), BTreeMap::new());
        for cable in &then.cables {
            *verdicts.entry(cable.verdict.label()).or_default() += 1;
            if let Some(rate) = &cable.rate {
                *rates.entry(rate.clone()).or_default() += 1;
            }
        }
        Shape { at: then.at, nodes, cables: (then.cables.len(), up), verdicts, rates }
    }

    /// The same in rows of a table: what, and how many.
    pub fn rows(&self) -> Vec<(String, String)> {
        let mut rows: Vec<(String, String)> = (self.nodes.iter())
            .map(|(kind, counts)| (format!("nodes: {kind}"), of_all(*counts, "silent")))
            .collect();
        rows.push(("cables".into(), of_all(self.cables, "without traffic")));
        rows.extend(
            self.rates.iter().map(|(rate, count)| (format!("at {rate}"), count.to_string())),
        );
        let verdicts = self.verdicts.iter();
        rows.extend(verdicts.map(|(label, count)| (format!("verdict {label}"), count.to_string())));
        rows
    }
}

fn of_all((all, fine): (usize, usize), otherwise: &str) -> String {
    match all - fine {
        0 => all.to_string(),
        not => format!("{all}, {not} of them {otherwise}"),
    }
}

/// Two moments' rows beside each other: what, then, and later.
pub(super) fn side_by_side(
    before: Option<&Shape>,
    after: Option<&Shape>,
) -> Vec<(String, String, String)> {
    let rows = |shape: Option<&Shape>| shape.map(Shape::rows);
    let (before, after) = (rows(before), rows(after));
    let mut names: Vec<String> = Vec::new();
    for (name, _) in [&before, &after].into_iter().flatten().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let of = |rows: &Option<Vec<(String, String)>>, name: &str| match rows {
        None => "not known".to_owned(),
        Some(rows) => {
            let found = rows.iter().find(|(known, _)| known == name);
            found.map_or("0".to_owned(), |(_, count)| count.clone())
        }
    };
    names.into_iter().map(|name| (name.clone(), of(&before, &name), of(&after, &name))).collect()
}
