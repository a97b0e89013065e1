//! `docs/metrics.md` and `docs/metrics-drivers.md`: every family, from the tables that the exposition is
//! rendered from.

use std::fmt::Write;

use exposition::Family;
use fabric_observation::families::counter_header;
use ib_mad::counter::{CounterField, TABLE};
use rdma_host::model::{ethernet, hw_counter};

use super::fabric::{self, subnet, summary};
use super::{host_families, self_metrics};

const INTRODUCTION: &str = "\
# Metrics

Look up a metric: its labels, its meaning, and where its value is read. This page covers the fabric, the host
and the exporter itself. Counters of RDMA and Ethernet drivers are in [driver metrics](metrics-drivers.md).

`make docs` generates both pages from the tables in the code, and a test fails if they differ. Names, labels
and meanings are a contract: each change has a line in CHANGELOG.md. The format is OpenMetrics 1.0 or the
Prometheus text format 0.0.4, whichever the scraper prefers.

- **Join for names.** Port counters have the labels `fabric`, `guid` (of the node) and `port`. Node names and
  the far end of the cable are on `infiniband_port_info` and `infiniband_node_info`:
  `infiniband_port_symbol_errors_total * on (fabric, guid, port) group_left (node, peer_node, peer_port) infiniband_port_info`.
- **Absent is not zero.** A value that was not read has no sample. A node that does not respond has
  `infiniband_node_up` 0, and its ports have no counters and no states. A switch port that lost its link keeps
  its series, and `infiniband_port_info` keeps the last far end.
- **Two sources.** Values that the kernel of this host reports for its own ports have the same metric names and
  one more label, `device`. `max by (fabric, guid, port)` merges the two. A virtual function may have a GUID of
  zeros; `device` identifies it.
- **Age.** The exporter reads at its own interval, and a scrape returns the latest values. Their time is
  `infiniband_sweep_timestamp_seconds` or `infiniband_host_read_timestamp_seconds`.
- **Totals.** A total starts with the value of the device counter at the first read, and continues after a
  reboot of the device or a clear of the counters. Classic counters saturate (their width is in the table).
  From then on the total is a lower bound, and `infiniband_port_counter_saturated` is 1.
";

const DRIVERS: &str = "\
# Driver metrics

Look up a counter that the driver of an RDMA device or of its Ethernet interface reports on this host. All
other metrics, and the rules that hold for both pages, are in [metrics](metrics.md). `make docs` generates this
page.
";

/// The page of the fabric, the host and the exporter itself.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str(
        "\n## Fabric summary\n\n\
         A few series per fabric, whatever its size. While sweeps hang or fail these have no samples: a panel\n\
         or an alert on them then shows no data, not 0. Verdicts and states are label values here; the series of\n\
         each link and node have them as numbers.\n\n",
    );
    families(&mut page, summary::families());
    page.push_str("\n## Nodes and ports\n\n");
    families(&mut page, fabric::families());
    page.push_str(
        "\n## Port counters\n\n\
         Each counter is read from the widest attribute that the device supports, in the order of the column\n\
         \"read from\". Counters of the host's own ports come from the named files in sysfs, below `counters` or\n\
         `counters_ext`.\n\n\
         | metric | IBTA name | kind | read from | sysfs | meaning |\n|---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let places: Vec<String> = row.fields.iter().copied().map(place).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            counter_header(row.counter).sample_name(),
            row.ibta,
            row.kind.label(),
            places.join(", else "),
            code(row.sysfs_files),
            row.help,
        );
    }
    page.push_str(
        "\nA counter that the OptionMask of PortSamplesControl does not announce has no sample.\n\
         [How the exporter reads PortRcvErrorDetails, PortXmitDiscardDetails, and the counters of ConnectX-7](configuration.md#causes-of-errors-and-discards).\n\
         \n## Links and findings\n\n\
         `link` identifies a cable, as on `infiniband_port_info`. One direction of a cable is identified by the\n\
         port that receives. [Reasons and repairs](verdicts-and-alerts.md#reasons). The metrics about the\n\
         counters themselves (saturated, reset, impossible values) also exist for the host's own ports, with the\n\
         label `device`.\n\n",
    );
    families(&mut page, fabric::findings_families());
    page.push_str(
        "\n## Subnet managers\n\n\
         Each sweep queries every port on which the latest discovery saw a subnet manager, and the master of the\n\
         exporter's own port. A standby that starts later appears after the next discovery. A subnet manager that does\n\
         not respond has no samples.\n\n",
    );
    families(&mut page, subnet::families());
    page.push_str("\n## Host devices\n\n");
    families(&mut page, host_families::families());
    page.push_str("\n## The exporter itself\n\n");
    families(&mut page, self_metrics::families());
    page
}

fn families(page: &mut String, families: impl Iterator<Item = Family>) {
    page.push_str("| metric | type | labels | meaning |\n|---|---|---|---|\n");
    for family in families {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind) = (family.sample_name(), family.kind.label());
        let _ = writeln!(page, "| `{name}` | {kind} | {} | {} |", labels.join(" "), family.help);
    }
}

/// The page of the drivers' counters.
pub fn drivers_page() -> String {
    let mut page = DRIVERS.to_owned();
    page.push_str(
        "\n## hw_counters\n\n\
         Every file below `hw_counters` of a port or a device is exported. Files that this table does not list\n\
         become `infiniband_hw_counter_total`. Labels: `fabric` `guid` `port` `device`; counters of the whole\n\
         device have no `port`.\n\n\
         | metric | files | drivers | meaning |\n|---|---|---|---|\n",
    );
    for row in hw_counter::TABLE.iter() {
        let name = host_families::hw_header(row).sample_name();
        // Writing to a string does not fail.
        let _ =
            writeln!(page, "| `{name}` | {} | {} | {} |", code(&row.files), row.drivers, row.help);
    }
    page.push_str(
        "\n## Ethernet statistics\n\n\
         Counters of the Ethernet interface below RoCE, as `ethtool -S` reports them. Labels: `fabric` `guid`\n\
         `port` `device` `netdev`; counters per priority, lane or class also have `priority`, `lane` or `class`.\n\n\
         | metric | per | drivers | meaning |\n|---|---|---|---|\n",
    );
    for row in ethernet::TABLE.iter() {
        let mut drivers: Vec<_> = row.strings.iter().map(|(driver, _)| *driver).collect();
        drivers.dedup();
        let (name, each) = (host_families::ethernet_header(row).sample_name(), row.index.label());
        let (each, drivers) = (each.unwrap_or_default(), drivers.join(", "));
        let _ = writeln!(page, "| `{name}` | {each} | {drivers} | {} |", row.help);
    }
    page
}

/// A list of names as code.
fn code(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

fn place(place: CounterField) -> String {
    format!("{} ({} bits)", place.attribute.name(), place.width)
}
