//! The rule files and the documentation page, as the table defines them.

use std::fmt::Write;

use crate::compat::table::{Exporter, Per, Row, Rule, exporters};

/// The text of an exporter's rule file.
pub fn rules(exporter: &Exporter) -> String {
    let mut text = format!(
        "# The metric names of {}, for its dashboards.\n\
         # Generated from tests/alerting/compat/table.rs by `make docs`; README.md lists the differences and the cost.\n",
        exporter.title
    );
    let _ =
        write!(text, "groups:\n  - name: fabric-exporter-compat-{}\n    rules:\n", exporter.name);
    for (comment, rule) in &exporter.helpers {
        for line in comment.lines() {
            let _ = writeln!(text, "      # {line}");
        }
        push_rule(&mut text, rule);
    }
    for rule in exporter.rows.iter().flat_map(|row| &row.rules) {
        push_rule(&mut text, rule);
    }
    text
}

fn push_rule(text: &mut String, rule: &Rule) {
    let _ = writeln!(text, "      - record: {}", rule.record);
    if rule.expr.contains('\n') {
        text.push_str("        expr: |\n");
        for line in rule.expr.lines() {
            let _ = writeln!(text, "          {line}");
        }
    } else {
        let _ = writeln!(text, "        expr: {}", rule.expr);
    }
}

const INTRODUCTION: &str = "\
# Metric names of other exporters

Recording rules that give the metrics of another exporter their names and labels, computed from ours, so that
its dashboards and alerts keep working while you migrate. [Compare and migrate](../../docs/compare-and-migrate.md)
describes the migration. For new dashboards use [our own names](../../docs/metrics.md), which need no second series.

`make docs` generates this page and the rule files from `tests/alerting/compat/table.rs`.

## Load

Load the one file that you need. `alerts/*.rules.yml` does not include them, and they need none of those. They need the
metrics of the profile `full`, which is the default.

```yaml
rule_files:
- /etc/prometheus/fabric-exporter/compat/treydock.rules.yml
```

";

const HOW: &str = "\
## Properties of all files

- Every series also has the label `fabric`. A dashboard without it shows all fabrics together.
- Only the names of node_exporter have `instance` and `job`. The others merge what several exporters report of
  one port into one series with the highest value. A dashboard that filters by `job` gets no data: remove the
  filter, or add that label to the rules.
- `rate()` and `increase()` work: resets show in a recorded counter as in the original. A sample is up to one
  evaluation interval older than the scrape. Use ranges of at least four evaluation intervals. There is no data
  from before the rules were loaded.
- With two exporters on one fabric the traffic total comes from the one that read last. When it stops, the
  total falls to that of the other one, and `rate()` shows one peak. Permanently redundant exporters:
  `max by (fabric, guid, port) (rate(…))` over our own metrics has no such peak.
- In a fabric that was swept within the last hour only the sweep counts, because a total that switches between
  sweep and host could decrease. Without a sweep the rules have the InfiniBand ports of hosts, and no switches. The names
  of node_exporter always come from the host of the port.
- Names, neighbors and speeds may be five minutes old after a change.
- Counters that the other exporter reads only with an extra flag are read every 2 minutes from devices that
  support them, and with `--fabric.details` in each sweep from all devices. They are absent while they are 0.
- Stop scraping the other exporter in the same Prometheus (node_exporter: `--no-collector.infiniband`), or each
  of its series exists twice.

## Cost

";

/// The whole page.
pub fn page() -> String {
    let exporters = exporters();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("| file | exporter | names |\n|---|---|---|\n");
    for exporter in &exporters {
        let names: usize = exporter.rows.iter().map(|row| row.rules.len()).sum();
        let _ = writeln!(
            page,
            "| [`{name}.rules.yml`]({name}.rules.yml) | {} | {names} |",
            exporter.title,
            name = exporter.name
        );
    }
    page.push('\n');
    page.push_str(HOW);
    page.push_str(
        "Series that the rules add to Prometheus:\n\n\
         | file | per port | if the port counted some | if the driver has the counter | per node or device |\n\
         |---|---|---|---|---|\n",
    );
    for exporter in &exporters {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            exporter.name,
            cost(exporter, Per::Port),
            plus(cost(exporter, Per::DetailedPort)),
            plus(cost(exporter, Per::DriversPort)),
            cost(exporter, Per::Node)
        );
    }
    page.push_str(
        "\nThese are upper limits: a port without a link has no rate and no uplink. `treydock`: a port of a switch or an\n\
         HCA; the ports of an HCA have three series fewer, and switches two. `guilbaults`: Active ports. `node_exporter`:\n\
         ports of hosts that run the exporter.\n",
    );
    for exporter in &exporters {
        section(&mut page, exporter);
    }
    page
}

fn plus(count: usize) -> String {
    if count == 0 { String::new() } else { format!("+{count}") }
}

/// The number of series of each port or node: an object is either a switch or an HCA, and has the series of one.
pub fn cost(exporter: &Exporter, per: Per) -> usize {
    let is_side = |rule: &&Rule| !rule.record.starts_with("infiniband_hca_");
    let rows = exporter.rows.iter().filter(|row| row.per == per);
    let of_rules: usize = rows
        .map(|row| match (per, row.rules.iter().filter(is_side).count()) {
            // The rates of an HCA are its node's; those of a switch are its ports'.
            (Per::Node, _) => row.rules.iter().filter(|rule| !is_switch(rule)).count(),
            (_, count) => count,
        })
        .sum();
    let of_helpers = exporter.helpers.iter().filter(|(_, rule)| match per {
        Per::Port => rule.record.contains("_port:"),
        Per::Node => !rule.record.contains("_port:"),
        _ => false,
    });
    of_rules + of_helpers.count()
}

fn is_switch(rule: &Rule) -> bool {
    rule.record.starts_with("infiniband_switch_")
}

fn section(page: &mut String, exporter: &Exporter) {
    let _ = write!(page, "\n## {}\n\n", exporter.title);
    for line in exporter.differs {
        let _ = writeln!(page, "- {line}");
    }
    let rules = || exporter.rows.iter().flat_map(|row| &row.rules);
    let same = rules().next().map(|rule| rule.labels);
    let same = same.filter(|labels| rules().all(|rule| rule.labels == *labels));
    if let Some(labels) = same {
        let _ = write!(page, "\nLabels: {}.\n", code(labels));
    }
    let head = [
        "| theirs | labels | ours | difference |\n|---|---|---|---|",
        "| theirs | ours | difference |\n|---|---|---|",
    ];
    let _ = writeln!(page, "\n{}", head[usize::from(same.is_some())]);
    for row in &exporter.rows {
        let theirs: Vec<&str> = row.rules.iter().map(|rule| rule.record.as_str()).collect();
        let labels = if same.is_some() {
            String::new()
        } else {
            format!("{} | ", code(row.rules[0].labels))
        };
        let _ = writeln!(page, "| {} | {labels}`{}` | {} |", code(&theirs), row.ours, differs(row));
    }
    page.push_str("\n| no equivalent | reason, or the closest metric |\n|---|---|\n");
    for (theirs, why) in exporter.missing {
        let _ = writeln!(page, "| {theirs} | {why} |");
    }
}

fn code(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

fn differs(row: &Row) -> String {
    let details = match row.per {
        Per::DetailedPort => {
            "Absent while 0. If the device supports it (OptionMask), or with `--fabric.details`."
        }
        Per::DriversPort => "In releases after 1.5 (Debian 12).",
        _ => "",
    };
    [details, row.differs].iter().filter(|it| !it.is_empty()).copied().collect::<Vec<_>>().join(" ")
}
