//! `docs/metrics.md`: every family, made from the tables that the exposition itself is made from.

use std::fmt::Write;

use crate::fabric::counter::{Place, TABLE};

use super::family::Family;
use super::{about, bulk};

const INTRODUCTION: &str = "\
# Metrics

Made from the tables in the code by `make docs`; a test fails while the two differ.

Served as OpenMetrics 1.0 or as Prometheus's text format 0.0.4, whichever the scraper likes better.
Names, labels and meanings are a contract: a change of one is a line in CHANGELOG.md.

- Counters of ports carry `fabric`, `guid` (of the node) and `port`. Names and the other end of the
  cable are on `infiniband_port_info` and `infiniband_node_info`, to be joined where they are wanted:
  `infiniband_port_symbol_errors_total * on (fabric, guid, port) group_left (node, peer_node, peer_port) infiniband_port_info`.
- What was not read has no sample: absent is not zero. A node that does not answer has
  `infiniband_node_up` 0, and its ports have neither counters nor states. A switch's port that lost its
  link keeps its series, and on `infiniband_port_info` the end that its cable led to.
- Values are as fresh as `infiniband_sweep_timestamp_seconds` says: the exporter sweeps on its own
  interval, and a scrape gets the latest sweep.
- Counters are what the device says. The classic ones stick at their highest value (the width is in
  the table), and all of them start anew when a switch or HCA reboots or somebody clears them.
";

/// The whole page.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Nodes and ports\n\n");
    families(&mut page, bulk::families());
    page.push_str(
        "\n## Counters of ports\n\n\
         Where a device offers a wider place, that is read; the first of the places that it has.\n\n\
         | metric | IBTA name | kind | read from | what it counts |\n|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let places: Vec<String> = row.places.iter().copied().map(place).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| `{}_total` | {} | {} | {} | {} |",
            bulk::counter_family(row.counter),
            row.ibta,
            row.kind.label(),
            places.join(", else "),
            row.help,
        );
    }
    page.push_str(
        "\nPortRcvErrorDetails and PortXmitDiscardDetails are read with `--fabric.details`.\n\
         \n## The exporter's account of itself\n\n",
    );
    families(&mut page, about::families());
    page
}

fn families(page: &mut String, families: impl Iterator<Item = Family>) {
    page.push_str("| metric | type | labels | what it tells |\n|---|---|---|---|\n");
    for family in families {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind) = (family.sample_name(), family.kind.label());
        let _ = writeln!(page, "| `{name}` | {kind} | {} | {} |", labels.join(" "), family.help);
    }
}

fn place(place: Place) -> String {
    format!("{} ({} bits)", place.attribute.name(), place.width)
}
