//! `docs/metrics.md`: every family, made from the tables that the exposition itself is made from.

use std::fmt::Write;

use ib_health::verdict::{Reason, Repair};
use ib_mad::counter::{CounterField, TABLE};
use rdma_host::model::{ethernet, hw_counter};

use super::family::Family;
use super::{about, fabrics, findings, host, subnet, summary};

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
- What this host's own kernel says of its own ports has the same metric as what the fabric says of
  them, and one label more: `device`. `max by (fabric, guid, port)` makes one of both. A virtual
  function may have a GUID of zeros; `device` still tells it from the others.
- Values are as fresh as `infiniband_sweep_timestamp_seconds` and
  `infiniband_host_read_timestamp_seconds` say: the exporter reads on its own intervals, and a scrape
  gets the latest.
- Counters are totals. They begin with what the device says when it is first read, and go on when it
  reboots or somebody clears them. The classic ones stick at their highest value (the width is in the
  table); from then on the total is a lower bound, and `infiniband_port_counter_saturated` says so.
- What is said of a link and why: [verdicts](verdicts.md).
";

/// The whole page.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str(
        "\n## A fabric in numbers\n\n\
         A few series of each fabric, at any size. They are there only while the exporter knows them:\n\
         a panel or an alert on them has no data, and not 0, when sweeps hang or bring nothing.\n\
         The verdicts and states are words here, and numbers on the series of each link and node.\n\n",
    );
    families(&mut page, summary::families());
    page.push_str("\n## Nodes and ports\n\n");
    families(&mut page, fabrics::families());
    page.push_str(
        "\n## Counters of ports\n\n\
         Where a device offers a wider place, that is read; the first of the places that it has. Of\n\
         the host's own ports the files of sysfs are read, below `counters` or `counters_ext`.\n\n\
         | metric | IBTA name | kind | read from | sysfs | what it counts |\n|---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let places: Vec<String> = row.fields.iter().copied().map(place).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| `{}_total` | {} | {} | {} | {} | {} |",
            fabrics::counter_family(row.counter),
            row.ibta,
            row.kind.label(),
            places.join(", else "),
            code(row.sysfs_files),
            row.help,
        );
    }
    page.push_str(
        "\nPortRcvErrorDetails and PortXmitDiscardDetails are read every 2 minutes of devices that announce\n\
         them (`--fabric.details-interval`), or in each sweep (`--fabric.details`); in between their last\n\
         values stand. A counter that a device does not announce in PortSamplesControl's OptionMask has\n\
         no sample. Of nodes that are not switches PortCounters is read as well: a 64-bit field that\n\
         stays 0 while the classic one counts is not used (SymbolErrorCounter and LinkDownedCounter of\n\
         ConnectX-7).\n\
         \n## What it comes to\n\n\
         Cables by `link`, as on `infiniband_port_info`; a direction of one by the port that receives.\n\
         Reasons and repairs: [verdicts](#verdicts). How counters fared is told of the host's own ports,\n\
         too, with the label `device`.\n\n",
    );
    families(&mut page, findings::families());
    page.push_str("\n### Verdicts\n\n| reason | what it says |\n|---|---|\n");
    for reason in Reason::ALL {
        let _ = writeln!(page, "| `{}` | {} |", reason.label(), reason.help());
    }
    page.push_str("\n| repair | what to do |\n|---|---|\n");
    for repair in Repair::ALL {
        let _ = writeln!(page, "| `{}` | {} |", repair.label(), repair.help());
    }
    page.push_str(
        "\n## Subnet managers\n\n\
         Asked with every sweep: the ports that said in the latest discovery that a subnet manager runs\n\
         there, and the one that our own port has for the master's. A standby that was started since is\n\
         heard after the next discovery. One that does not answer has no samples.\n\n",
    );
    families(&mut page, subnet::families());
    page.push_str("\n## This host's own devices\n\n");
    families(&mut page, host::families());
    drivers(&mut page);
    page.push_str("\n## The exporter's account of itself\n\n");
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

/// What drivers count besides, by their tables.
fn drivers(page: &mut String) {
    page.push_str(
        "\n## Drivers' own counters\n\n\
         Every file below `hw_counters` of a port or a device is told; those that are not known here\n\
         as `infiniband_hw_counter_total`. Labels: `fabric` `guid` `port` `device`; what is the whole\n\
         device's has no `port`.\n\n\
         | metric | files | drivers | what it counts |\n|---|---|---|---|\n",
    );
    for row in hw_counter::TABLE {
        let name = host::hw_head(row).sample_name();
        // Writing to a string does not fail.
        let _ =
            writeln!(page, "| `{name}` | {} | {} | {} |", code(row.files), row.drivers, row.help);
    }
    page.push_str(
        "\n## Ethernet below RoCE\n\n\
         What drivers tell as `ethtool -S`. Labels: `fabric` `guid` `port` `device` `netdev`, and\n\
         where it is told for each, `priority`, `lane` or `class`.\n\n\
         | metric | for each | drivers | what it counts |\n|---|---|---|---|\n",
    );
    for row in ethernet::TABLE {
        let mut drivers: Vec<_> = row.strings.iter().map(|(driver, _)| *driver).collect();
        drivers.dedup();
        let (name, each) = (host::ethernet_head(row).sample_name(), row.index.label());
        let (each, drivers) = (each.unwrap_or_default(), drivers.join(", "));
        let _ = writeln!(page, "| `{name}` | {each} | {drivers} | {} |", row.help);
    }
}

/// A list of names as code.
fn code(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

fn place(place: CounterField) -> String {
    format!("{} ({} bits)", place.attribute.name(), place.width)
}
