//! PromQL: what an expression names, and what the exporter has.

use std::collections::{BTreeMap, BTreeSet};

use fabric_exporter::metrics::selection::{Group, Profile};
use promql_parser::label::MatchOp;
use promql_parser::parser::{self, Expr, VectorSelector};
use promql_parser::util::{ExprVisitor, walk_expr};

use crate::reference;

/// A selector of an expression: a metric, and the labels that are matched.
#[derive(Debug, PartialEq)]
pub struct Selector {
    /// The metric.
    pub metric: String,
    /// Label, operator (`=`, `!=`, `=~`, `!~`) and value.
    pub matchers: Vec<(String, String, String)>,
}

struct Selectors(Vec<Selector>);

impl Selectors {
    fn take(&mut self, selector: &VectorSelector) -> Result<(), String> {
        let Some(metric) = selector.name.clone() else {
            return Err(format!("{selector} names no metric"));
        };
        let matchers = selector
            .matchers
            .matchers
            .iter()
            .map(|it| {
                let operator = match it.op {
                    MatchOp::Equal => "=",
                    MatchOp::NotEqual => "!=",
                    MatchOp::Re(_) => "=~",
                    MatchOp::NotRe(_) => "!~",
                };
                (it.name.clone(), operator.to_owned(), it.value.clone())
            })
            .collect();
        self.0.push(Selector { metric, matchers });
        Ok(())
    }
}

impl ExprVisitor for Selectors {
    type Error = String;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, String> {
        match expression {
            Expr::VectorSelector(selector) => self.take(selector)?,
            Expr::MatrixSelector(selector) => self.take(&selector.vs)?,
            _ => {}
        }
        Ok(true)
    }
}

/// All selectors of an expression, in its order; an error if the expression is invalid, or
/// if a selector has no metric name.
pub fn selectors(expression: &str) -> Result<Vec<Selector>, String> {
    let parsed = parser::parse(expression).map_err(|error| format!("{expression}: {error}"))?;
    let mut found = Selectors(Vec::new());
    walk_expr(&mut found, &parsed).map_err(|error| format!("{expression}: {error}"))?;
    Ok(found.0)
}

/// The names of the metrics in an expression.
pub fn metrics(expression: &str) -> Result<BTreeSet<String>, String> {
    Ok(selectors(expression)?.into_iter().map(|it| it.metric).collect())
}

/// The queries in a template: `{{ range printf "…%q…" … | query }}`, the same with `with`, or `{{ with query "…" }}`.
pub fn queries(template: &str) -> Result<Vec<String>, String> {
    let actions = template.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    actions
        .filter(|action| action.split_whitespace().any(|word| word.trim_matches('-') == "query"))
        .map(|action| {
            let format = action
                .trim()
                .split_once(' ')
                .filter(|(keyword, _)| ["range", "with"].contains(keyword))
                .and_then(|(_, rest)| {
                    rest.strip_prefix("printf \"").or_else(|| rest.strip_prefix("query \""))
                })
                .and_then(|rest| rest.split('"').next())
                .ok_or_else(|| format!("no printf of a query in {action:?}"))?;
            Ok(format.replace("%q", "\"x\""))
        })
        .collect()
}

/// The exporter's metrics, as docs/metrics.md and the drivers' tables list them, by the names of their samples.
pub fn exported() -> BTreeSet<String> {
    groups().into_keys().collect()
}

/// The group of each of these metrics, where it is not that of a host's own device.
pub fn groups() -> BTreeMap<String, String> {
    let page = reference::page();
    let mut groups: BTreeMap<String, String> =
        reference::driver_names().map(|name| (name, Group::Host.label().to_owned())).collect();
    for line in page.lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let name = cells[0].strip_prefix("| `").and_then(|rest| rest.strip_suffix('`'));
        let (Some(name), [_, kind, group, ..]) = (name, &cells[..]) else { continue };
        if !["infiniband_", "fabric_exporter_", "process_"].iter().any(|it| name.starts_with(it)) {
            continue; // not a table of metrics
        }
        let parts: &[&str] =
            if *kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        groups.extend(parts.iter().map(|part| (format!("{name}{part}"), (*group).to_owned())));
    }
    groups
}

/// Whether a metric is one of the profile `lean`: all but those of some groups.
pub fn is_lean(group: &str) -> bool {
    Profile::Lean.groups().iter().any(|it| it.label() == group)
}
