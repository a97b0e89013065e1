//! `docs/metrics.md` and `docs/metrics-drivers.md`: every family, from the tables that the exposition is
//! rendered from.

use exposition::Family;
use fabric_observation::families::counter_family;
use ib_mad::counter::{CounterField, TABLE};
use rdma_host::model::{ethernet, hw_counter};

use super::fabric::{self, summary};
use super::{host, self_metrics};

/// The templates of the pages, with a mark for the rows of each table.
const FABRIC: &str = include_str!("reference.md");
const DRIVERS: &str = include_str!("reference_drivers.md");

/// The page of the fabric, the host and the exporter itself.
pub fn page() -> String {
    fill(
        FABRIC,
        [
            ("{{summary}}", families(summary::families())),
            ("{{nodes and ports}}", families(fabric::families())),
            ("{{counters}}", counters()),
            ("{{findings}}", families(fabric::findings_families())),
            ("{{subnet managers}}", families(fabric::manager_families())),
            ("{{host}}", families(host::families())),
            ("{{self}}", families(self_metrics::families())),
        ],
    )
}

/// The page of the drivers' counters.
pub fn drivers_page() -> String {
    fill(DRIVERS, [("{{hw_counters}}", hw_counters()), ("{{ethernet}}", ethernet())])
}

fn fill<const N: usize>(template: &str, tables: [(&str, String); N]) -> String {
    let replace =
        |page: String, (mark, rows): (&str, String)| page.replace(&format!("{mark}\n"), &rows);
    tables.into_iter().fold(template.to_owned(), replace)
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn families(families: impl Iterator<Item = Family>) -> String {
    let rows = families.map(|family| {
        let (name, kind) = (family.sample_name(), family.kind.label().to_owned());
        row(&[code(&[&name]), kind, code(family.labels), family.help.into_owned()])
    });
    rows.collect()
}

fn counters() -> String {
    let rows = TABLE.iter().map(|it| {
        let fields: Vec<String> = it.fields.iter().copied().map(field).collect();
        row(&[
            code(&[&counter_family(it.counter).sample_name()]),
            it.ibta.into(),
            it.kind.label().into(),
            fields.join(", else "),
            code(it.sysfs_files),
            it.help.into(),
        ])
    });
    rows.collect()
}

fn hw_counters() -> String {
    let rows = hw_counter::TABLE.iter().map(|it| {
        let name = host::hw_family(it).sample_name();
        row(&[code(&[&name]), code(&it.files), it.drivers.to_string(), it.help.to_string()])
    });
    rows.collect()
}

fn ethernet() -> String {
    let rows = ethernet::TABLE.iter().map(|it| {
        let name = host::ethernet_family(it).sample_name();
        let each = it.index.label().unwrap_or_default();
        row(&[code(&[&name]), each.into(), host::ethtool_strings(it), it.help.to_string()])
    });
    rows.collect()
}

fn code(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

fn field(field: CounterField) -> String {
    format!("{} ({} bits)", field.attribute.name(), field.width)
}
