//! `docs/metrics.md` and `docs/metrics-drivers.md`: every family, from the tables that the exposition is
//! rendered from.

use exposition::Family;
use fabric_exporter::metrics::fabric::{self, summary};
use fabric_exporter::metrics::selection::Group;
use fabric_exporter::metrics::{self, host, self_metrics};
use fabric_observation::families::counter_family;
use ib_mad::counter::{CounterField, TABLE};
use rdma_host::model::{ethernet, hw_counter};

/// The templates of the pages, with a mark for the rows of each table.
const FABRIC: &str = include_str!("reference.md");
const DRIVERS: &str = include_str!("reference_drivers.md");

/// The page of the fabric, the host and the exporter itself.
pub fn page() -> String {
    fill(
        FABRIC,
        [
            ("{{summary}}", families(summary::families())),
            ("{{nodes and ports}}", families(fabric::node_and_port_families())),
            ("{{counters}}", counters()),
            ("{{findings}}", families(fabric::findings_families())),
            ("{{subnet managers}}", families(fabric::manager_families())),
            ("{{host}}", families(host::families().map(|it| (it, Group::Host)))),
            ("{{self}}", families(self_metrics::families().map(|it| (it, Group::Exporter)))),
        ],
    )
}

/// The page of the drivers' counters.
pub fn drivers_page() -> String {
    fill(DRIVERS, [("{{hw_counters}}", hw_counters()), ("{{ethernet}}", ethernet())])
}

/// The metrics of the drivers, by the names of their samples.
pub fn driver_names() -> impl Iterator<Item = String> {
    let rdma = hw_counter::TABLE.iter().map(|it| host::hw_family(it).sample_name());
    rdma.chain(ethernet::TABLE.iter().map(|it| host::ethernet_family(it).sample_name()))
}

fn fill<const N: usize>(template: &str, tables: [(&str, String); N]) -> String {
    let replace =
        |page: String, (mark, rows): (&str, String)| page.replace(&format!("{mark}\n"), &rows);
    tables.into_iter().fold(template.to_owned(), replace)
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// The rows of families with their groups.
fn families(families: impl Iterator<Item = (Family, Group)>) -> String {
    let rows = families.map(|(family, group)| {
        let (name, kind, group) = (family.sample_name(), family.kind.label(), group.label());
        let help = family.help.into_owned();
        row(&[code(&[&name]), kind.to_owned(), group.to_owned(), code(family.labels), help])
    });
    rows.collect()
}

fn counters() -> String {
    let rows = TABLE.iter().map(|it| {
        let fields: Vec<String> = it.fields.iter().copied().map(field).collect();
        let family = counter_family(it.counter);
        row(&[
            code(&[&family.sample_name()]),
            it.ibta.into(),
            metrics::group(&family).map_or("", Group::label).to_owned(),
            fields.join(", else "),
            code(it.sysfs_files),
            it.help.into(),
        ])
    });
    rows.collect()
}

/// Counters that the same drivers share have a section of their own if there are at least as many.
const OWN_SECTION: usize = 7;

/// A table for each section, without the counters of representors, which the page describes in a sentence.
fn hw_counters() -> String {
    let rows = || hw_counter::TABLE.iter().filter(|it| !it.metric.starts_with("vport_"));
    let has_section =
        |drivers: &str| rows().filter(|it| it.drivers == drivers).count() >= OWN_SECTION;
    let mut text = "metric, files | drivers | meaning\n---|---|---\n".to_owned();
    for it in rows().filter(|it| !has_section(it.drivers)) {
        text += &line(&[&name_and_files(it), it.drivers, it.help]);
    }
    let mut own: Vec<&str> = Vec::new();
    for it in rows().filter(|it| has_section(it.drivers)) {
        if !own.contains(&it.drivers) {
            own.push(it.drivers);
        }
    }
    for drivers in own {
        text += &["\n### ", drivers, "\n\nmetric, files | meaning\n---|---\n"].concat();
        for it in rows().filter(|it| it.drivers == drivers) {
            text += &line(&[&name_and_files(it), it.help]);
        }
    }
    text
}

/// A row without outer bars.
fn line(cells: &[&str]) -> String {
    cells.join(" | ") + "\n"
}

/// The metric, and its files unless their name follows from it.
fn name_and_files(row: &hw_counter::HwRow) -> String {
    let name = host::hw_family(row).sample_name();
    if row.files == [row.metric] {
        return code(&[&name]);
    }
    [code(&[&name]), code(&row.files)].join(" ")
}

fn ethernet() -> String {
    let rows = ethernet::TABLE.iter().map(|it| {
        let name = host::ethernet_family(it).sample_name();
        line(&[&code(&[&name]), &host::ethtool_strings(it), it.help])
    });
    rows.collect()
}

fn code(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

fn field(field: CounterField) -> String {
    format!("{} ({} bits)", field.attribute.label(), field.width)
}
