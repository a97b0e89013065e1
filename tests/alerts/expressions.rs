//! Which metrics an expression asks for, and what the exporter has.

use std::collections::BTreeSet;

use fabric_exporter::web::exposition::reference;
use promql_parser::parser::{self, Expr, VectorSelector};
use promql_parser::util::{ExprVisitor, walk_expr};

#[derive(Default)]
struct Names {
    found: BTreeSet<String>,
    nameless: Vec<String>,
}

impl Names {
    fn take(&mut self, selector: &VectorSelector) {
        match &selector.name {
            Some(name) => _ = self.found.insert(name.clone()),
            None => self.nameless.push(selector.to_string()),
        }
    }
}

impl ExprVisitor for Names {
    type Error = String;

    fn pre_visit(&mut self, expr: &Expr) -> Result<bool, String> {
        match expr {
            Expr::VectorSelector(selector) => self.take(selector),
            Expr::MatrixSelector(selector) => self.take(&selector.vs),
            _ => {}
        }
        Ok(true)
    }
}

/// The metrics that an expression names; each selector must name one.
pub fn metrics(expression: &str) -> Result<BTreeSet<String>, String> {
    let parsed = parser::parse(expression)?;
    let mut names = Names::default();
    walk_expr(&mut names, &parsed)?;
    match names.nameless.first() {
        Some(selector) => Err(format!("no metric is named by {selector}")),
        None => Ok(names.found),
    }
}

/// The queries in a template: all have the form `{{ range printf "…%q…" … | query }}`.
pub fn queries(template: &str) -> Result<Vec<String>, String> {
    let actions = template.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    actions
        .filter(|action| action.split_whitespace().any(|word| word.trim_matches('-') == "query"))
        .map(|action| {
            let format = action
                .trim()
                .strip_prefix("range printf \"")
                .and_then(|rest| rest.split('"').next())
                .ok_or_else(|| format!("cannot tell what {action:?} asks for"))?;
            Ok(format.replace("%q", "\"x\""))
        })
        .collect()
}

/// The metrics that the exporter has, by the page that is made from its tables.
pub fn exporter() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in reference::page().lines() {
        let mut cells = line.split(" | ").map(|cell| cell.trim_matches(['|', ' ']));
        let Some(name) = cells
            .next()
            .and_then(|cell| cell.strip_prefix('`')?.strip_suffix('`'))
            .filter(|name| {
                ["infiniband_", "fabric_exporter_", "process_"]
                    .iter()
                    .any(|head| name.starts_with(head))
            })
        else {
            continue;
        };
        if cells.next() == Some("histogram") {
            names.extend(["bucket", "sum", "count"].map(|end| format!("{name}_{end}")));
        } else {
            names.insert(name.to_owned());
        }
    }
    names
}
