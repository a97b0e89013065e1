//! The rule files and the page, as the table has them.

use std::fmt::Write;

use crate::compat::table::{Exporter, Per, Row, Rule, exporters};

/// What a rule file needs of ours, if it needs any.
fn needs(exporter: &Exporter) -> &'static str {
    if exporter.helpers.is_empty() { "" } else { "ports.rules.yml" }
}

/// The text of an exporter's rule file.
pub fn rules(exporter: &Exporter) -> String {
    let mut text = format!(
        "# The metrics of {} by their names, for dashboards that ask for them.\n\
         # Made from tests/alerting/compat/table.rs by `make docs`; docs/compatibility.md says what differs, and what it costs.\n",
        exporter.title
    );
    if !needs(exporter).is_empty() {
        let _ = writeln!(text, "# Needs ../{}.", needs(exporter));
    }
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
# Other exporters' names

Made from `tests/alerting/compat/table.rs` by `make docs`; a test fails while the two differ.

Dashboards, and alerts, that a site has for another exporter go on with this one: recording rules in
`alerts/compat/` give its metrics their names and labels, made from ours. They are for going over
without a gap; what is new is better asked for by [our own names](metrics.md), which cost no second
series.

## How to load them

Each file stands by itself, and the usual `alerts/*.rules.yml` takes in none of them. Name the one that
is needed, and the one that it builds on:

```yaml
rule_files:
- /etc/prometheus/fabric-exporter/*.rules.yml
- /etc/prometheus/fabric-exporter/compat/treydock.rules.yml
```

Of `ports.rules.yml` they read `fabric_guid_port:infiniband_port_info:topk1` alone, its first rule: who wants none of our
alerts takes that rule into a file of their own.

";

const HOW: &str = "\
## What holds for all of them

- Every series has the label `fabric` besides theirs. A dashboard that does not know of it shows all
  fabrics together.
- `instance` and `job`: those of node_exporter's names have them, as theirs. The others have none, for
  what two exporters say of one port is one series, the greater value. A dashboard that asks for a `job` there
  gets nothing: take that out, or give the rules in question a label of that name.
- `rate()` and `increase()` over a recorded counter work, for resets are seen in it as in the original. A sample
  is as old as the evaluation that made it, up to an interval more than what was scraped, and the group's
  interval is the resolution: a range of four of them is the least that makes sense. Rules that were not
  loaded left nothing behind: history begins with the file.
- Of two exporters on one fabric the one that read last has the greater total of traffic. When it ends, the
  recorded total goes back to the other's, and `rate()` takes that for a reset and shows a peak once. Where
  two are scraped for good, `max by (fabric, guid, port) (rate(…))` over our own metrics has no such peak.
- Of a fabric that is swept, or was within the hour, the sweep alone is believed, for a total that comes from
  the sweep now and from the host then would go down in between. Where nobody sweeps, hosts' InfiniBand ports
  are told of, and no switches. node_exporter's names always come from the port's own host.
- What a port is called, where it leads and how fast it runs may be five minutes old after a change, as in
  the rule that it is taken from.
- What theirs reads only when told to is read by ours each 2 minutes from devices that announce it, and with
  `--fabric.details` in each sweep from all devices; where a device does not have it those rules record
  nothing, and cost nothing.
- Stop the other exporter from being scraped in the same Prometheus, or node_exporter's collector with
  `--no-collector.infiniband`: else each series of those names is there twice.

## What they cost

";

/// The whole page.
pub fn page() -> String {
    let exporters = exporters();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("| file | for | needs besides | names |\n|---|---|---|---|\n");
    for exporter in &exporters {
        let names: usize = exporter.rows.iter().map(|row| row.rules.len()).sum();
        let needs = match needs(exporter) {
            "" => "nothing".to_owned(),
            file => format!("[`{file}`](../alerts/{file})"),
        };
        let _ = writeln!(
            page,
            "| [`{name}.rules.yml`](../alerts/compat/{name}.rules.yml) | {} | {needs} | {names} |",
            exporter.title,
            name = exporter.name
        );
    }
    page.push('\n');
    page.push_str(HOW);
    page.push_str(
        "Series that the rules add to Prometheus; one of ours that they are made from is there anyway.\n\n\
         | file | a port | with `--fabric.details` | where the driver counts | a node or device |\n\
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
        "\nAt the most: a port without a link has neither rate nor uplink. Treydock's are those of a switch's port and of an HCA;\n\
         an HCA's port has two less, and so has a switch. Guilbaults' are of ports that are Active, node_exporter's of the\n\
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

/// How many series there are of each port or node: of two sides, switches and HCAs, it has one.
pub fn cost(exporter: &Exporter, per: Per) -> usize {
    let is_side = |rule: &&Rule| !rule.record.starts_with("infiniband_hca_");
    let rows = exporter.rows.iter().filter(|row| row.per == per);
    let of_rules: usize = rows
        .map(|row| match (per, row.rules.iter().filter(is_side).count()) {
            // An HCA's rates are its node's; a switch's are its ports'.
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
        "| theirs | labels | ours | what differs |\n|---|---|---|---|",
        "| theirs | ours | what differs |\n|---|---|---|",
    ];
    let _ = writeln!(page, "\n{}", head[usize::from(same.is_some())]);
    for row in &exporter.rows {
        let theirs: Vec<&str> = row.rules.iter().map(|rule| rule.record.as_str()).collect();
        let labels = if same.is_some() { "as above".into() } else { code(row.rules[0].labels) };
        let _ =
            writeln!(page, "| {} | {labels} | `{}` | {} |", code(&theirs), row.ours, differs(row));
    }
    page.push_str("\n| no equivalent | why, or the nearest |\n|---|---|\n");
    for (theirs, why) in exporter.missing {
        let _ = writeln!(page, "| {theirs} | {why} |");
    }
}

fn code(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

fn differs(row: &Row) -> String {
    let details = match row.per {
        Per::DetailedPort => "Where the device announces it, or with `--fabric.details`.",
        Per::DriversPort => "Told by releases newer than Debian's 1.5.",
        _ => "",
    };
    [details, row.differs].iter().filter(|it| !it.is_empty()).copied().collect::<Vec<_>>().join(" ")
}
