//! The fabrics at the beginning and at the end of a period, counted.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;

use crate::model::FabricState;
use ib_health::Verdict;

/// Each fabric at the beginning and at the end of a period.
pub(super) fn summaries(
    before: &[FabricState],
    after: &[FabricState],
) -> BTreeMap<String, [Option<FabricSummary>; 2]> {
    let mut summaries: BTreeMap<String, [Option<FabricSummary>; 2]> = BTreeMap::new();
    for (index, fabrics) in [before, after].into_iter().enumerate() {
        for then in fabrics {
            let states = summaries.entry(then.fabric.clone()).or_default();
            states[index] = Some(FabricSummary::of(then));
        }
    }
    summaries
}

/// The nodes and cables of a fabric at a time, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FabricSummary {
    /// The time of the sweep.
    #[serde(with = "crate::model::text")]
    pub at: SystemTime,
    /// Nodes by kind: all, and those that responded.
    pub nodes: BTreeMap<String, (usize, usize)>,
    /// Cables: all, and those that carried traffic.
    pub cables: (usize, usize),
    /// Cables by verdict.
    pub verdicts: BTreeMap<&'static str, usize>,
    /// Cables by rate.
    pub rates: BTreeMap<String, usize>,
}

impl FabricSummary {
    /// Counts a fabric.
    pub fn of(then: &FabricState) -> Self {
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
        FabricSummary { at: then.at, nodes, cables: (then.cables.len(), up), verdicts, rates }
    }

    /// Table rows: a name, and a count.
    fn rows(&self) -> Vec<(String, String)> {
        let mut rows: Vec<(String, String)> = (self.nodes.iter())
            .map(|(kind, counts)| (format!("nodes: {kind}"), of_all(*counts, "unresponsive")))
            .collect();
        rows.push(("links".into(), of_all(self.cables, "not up")));
        rows.extend(
            self.rates.iter().map(|(rate, count)| (format!("links at {rate}"), count.to_string())),
        );
        rows.extend(self.verdicts.iter().map(|(label, count)| {
            (format!("links with verdict {}", Verdict::word(label)), count.to_string())
        }));
        rows
    }
}

fn of_all((all, up): (usize, usize), otherwise: &str) -> String {
    match all - up {
        0 => all.to_string(),
        down => format!("{all}, {down} {otherwise}"),
    }
}

/// The rows of two times side by side: a name, and both counts.
pub(super) fn side_by_side(states: &[Option<FabricSummary>; 2]) -> Vec<Vec<String>> {
    let tables = states.each_ref().map(|state| state.as_ref().map(FabricSummary::rows));
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in tables.iter().flatten().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let count = |rows: &Option<Vec<(String, String)>>, name: &String| {
        let Some(rows) = rows else { return "unknown".to_owned() };
        let found = rows.iter().find(|(known, _)| known == name);
        found.map_or("0".to_owned(), |(_, count)| count.clone())
    };
    let row = |name: &String| vec![name.clone(), count(&tables[0], name), count(&tables[1], name)];
    names.into_iter().map(row).collect()
}
