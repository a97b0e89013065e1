//! What a panel shows at a moment: text and color, as Grafana derives them from the results of a panel's
//! queries. Follows `getDisplayProcessor` and `createNoValuesFieldDisplay` of @grafana/data: without a
//! value, `noValue` is shown in the color of the lowest threshold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::dashboards::{Prometheus, list, text};

/// A number as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    pub text: String,
    pub color: String,
}

impl Shown {
    pub fn is_green(&self) -> bool {
        self.color.contains("green")
    }
}

/// Everything that a panel shows: the numbers of a stat, or the number of rows of a table with the colors
/// of its cells.
pub fn panel(panel: &Value, ask: &dyn Fn(&str) -> Vec<Value>) -> Vec<Shown> {
    let defaults = &panel["fieldConfig"]["defaults"];
    if text(panel, "type") == "table" { table(panel, ask) } else { tiles(panel, defaults, ask) }
}

fn tiles(panel: &Value, defaults: &Value, ask: &dyn Fn(&str) -> Vec<Value>) -> Vec<Shown> {
    let named = text(&panel["options"], "textMode") == "name";
    let mut found = BTreeSet::new();
    for target in list(panel, "targets") {
        for series in ask(text(target, "expr")) {
            let value = number(&series);
            let mut shown = display(defaults, value);
            if named {
                shown.text = legend(text(target, "legendFormat"), &series["metric"]);
            }
            found.insert(shown);
        }
    }
    if found.is_empty() {
        let said = defaults["noValue"].as_str().unwrap_or("No data");
        found.insert(Shown { text: said.into(), color: color_of(defaults, f64::NEG_INFINITY) });
    }
    found.into_iter().collect()
}

/// The rows of a table, and the colors of its number cells.
fn table(panel: &Value, ask: &dyn Fn(&str) -> Vec<Value>) -> Vec<Shown> {
    let mut rows = BTreeSet::new();
    let mut colors = BTreeSet::new();
    let defaults = &panel["fieldConfig"]["defaults"];
    for target in list(panel, "targets") {
        let column = format!("Value #{}", text(target, "refId"));
        let own = list(&panel["fieldConfig"], "overrides").iter().find(|it| {
            let of = text(&it["matcher"], "options");
            of == column || of == "Value" || (of == "/^Value( #A)?$/" && column == "Value #A")
        });
        let properties: BTreeMap<&str, &Value> = (own.into_iter())
            .flat_map(|it| list(it, "properties"))
            .map(|it| (text(it, "id"), &it["value"]))
            .collect();
        let mut config = defaults.clone();
        for key in ["mappings", "thresholds"] {
            if let Some(&value) = properties.get(key) {
                config[key] = value.clone();
            }
        }
        let cells = properties.get("custom.cellOptions").map(|it| text(it, "type"));
        let colored = cells.is_some_and(|it| it.starts_with("color-"));
        for series in ask(text(target, "expr")) {
            let mut labels = series["metric"].clone();
            labels.as_object_mut().unwrap().remove("__name__");
            rows.insert(labels.to_string());
            if colored {
                colors.insert(display(&config, number(&series)).color);
            }
        }
    }
    if rows.is_empty() {
        let text = defaults["noValue"].as_str().unwrap_or("No data").to_owned();
        return vec![Shown { text, color: String::new() }];
    }
    let colors: Vec<String> = colors.into_iter().collect();
    vec![Shown { text: "rows".into(), color: colors.join("+") }]
}

fn number(series: &Value) -> f64 {
    series["value"][1].as_str().unwrap().parse().unwrap()
}

/// `{{node}} port {{port}}` with the labels filled in.
fn legend(format: &str, labels: &Value) -> String {
    let mut out = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, behind) = after.split_once("}}").unwrap();
        out += before;
        out += labels[name].as_str().unwrap_or_default();
        rest = behind;
    }
    out + rest
}

fn display(config: &Value, value: f64) -> Shown {
    if let Some(mapped) = mapped(config, value) {
        let color = mapped["color"].as_str().map(str::to_owned);
        let text = mapped["text"].as_str().map(str::to_owned);
        return Shown {
            text: text.unwrap_or_else(|| written(config, value)),
            color: color.unwrap_or_else(|| color_of(config, value)),
        };
    }
    let color = color_of(config, if value.is_nan() { f64::NEG_INFINITY } else { value });
    Shown { text: written(config, value), color }
}

/// Integers as they are. Of measured values, which vary, only whether they are zero; and not even that where
/// no color judges them.
fn written(config: &Value, value: f64) -> String {
    let counts = ["short", "none"].contains(&text(config, "unit"));
    let judged = list(&config["thresholds"], "steps").len() > 1;
    if value.is_nan() {
        "NaN".into()
    } else if (value == 0.0 && judged) || (counts && value.fract() == 0.0) {
        format!("{value:.0}")
    } else {
        "…".into()
    }
}

fn mapped(config: &Value, value: f64) -> Option<Value> {
    list(config, "mappings").iter().find_map(|mapping| match text(mapping, "type") {
        "value" => mapping["options"].get(format!("{value}")).cloned(),
        "range" => {
            let options = &mapping["options"];
            let inside = value >= options["from"].as_f64()? && value <= options["to"].as_f64()?;
            inside.then(|| options["result"].clone())
        }
        "special" if value.is_nan() && text(&mapping["options"], "match").contains("nan") => {
            Some(mapping["options"]["result"].clone())
        }
        "special" => None,
        kind => panic!("a mapping by {kind}"),
    })
}

/// The color of the last threshold that a number has reached.
fn color_of(config: &Value, value: f64) -> String {
    let steps = list(&config["thresholds"], "steps");
    let mut reached =
        steps.iter().filter(|step| step["value"].as_f64().is_none_or(|it| value >= it));
    reached.next_back().map_or_else(|| "none".into(), |step| text(step, "color").into())
}

/// Prometheus' results for the expressions of a dashboard at a moment, with these variables.
pub fn asking<'a>(
    prometheus: &'a Prometheus,
    at: f64,
    variables: &'a BTreeMap<&str, String>,
) -> impl Fn(&str) -> Vec<Value> + 'a {
    move |raw| {
        let query = crate::dashboards::substituted(raw, |name| variables[name].clone());
        prometheus.query_at(&query, at).unwrap_or_else(|error| panic!("{query}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stat(defaults: &Value) -> Value {
        json!({"type": "stat", "targets": [{"expr": "x"}], "fieldConfig": {"defaults": defaults}})
    }

    #[test]
    fn number_has_the_color_of_its_threshold() {
        let defaults = json!({"unit": "short", "thresholds": {"steps": [
            {"color": "grey", "value": null}, {"color": "green", "value": 0}, {"color": "red", "value": 2},
        ]}});
        for (value, told) in [
            (Some("0"), ("0", "green")),
            (Some("1.5"), ("…", "green")),
            (Some("2"), ("2", "red")),
            (Some("NaN"), ("NaN", "grey")),
            (None, ("No data", "grey")),
        ] {
            let answer: Vec<Value> =
                value.into_iter().map(|it| json!({"metric": {}, "value": [0, it]})).collect();
            let shown = panel(&stat(&defaults), &|_| answer.clone());
            assert_eq!(shown, [Shown { text: told.0.into(), color: told.1.into() }], "{value:?}");
        }
    }

    #[test]
    fn mappings_come_before_thresholds() {
        let defaults = json!({"mappings": [
            {"type": "value", "options": {"0": {"color": "red", "text": "down"}}},
            {"type": "range", "options": {"from": 1, "to": 7, "result": {"color": "orange", "text": "some"}}},
        ], "thresholds": {"steps": [{"color": "green", "value": null}]}, "unit": "short"});
        for (value, text, color) in [
            ("0", "down", "red"),
            ("1", "some", "orange"),
            ("7", "some", "orange"),
            ("8", "8", "green"),
        ] {
            let shown =
                panel(&stat(&defaults), &|_| vec![json!({"metric": {}, "value": [0, value]})]);
            assert_eq!(shown, [Shown { text: text.into(), color: color.into() }], "{value}");
        }
    }
}
