//! `/modules`: the cables and modules that devices report, the spares that are needed, and the part numbers.

use std::cmp::Reverse;

use maud::{Markup, html};

use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_api::Filter;
use fabric_api::model::{Module, PartSum, PortModule, Spare};
use fabric_api::modules::{ModuleRow, module_rows, spares_needed};
use fabric_api::spares::parts;
use ib_health::Verdict;

use super::{Column, List, ListQuery, fabric_field, refused, text_field};
use crate::components;
use crate::page::{Answer, not_recorded};
use crate::query_params::QueryParams;
use fabric_api::address;

const TITLE: &str = "Modules";

/// How many links of a spare are named.
const MAX_LINKS: usize = 20;

/// A row: the name of its fabric, and the module.
type Row = (String, PortModule);
type Col = Column<Row>;

fn lowest_power(port: &PortModule) -> Option<f64> {
    let powers = port.module.rx_power.iter();
    // A lane without light is darker than any other.
    powers.map(|power| power.unwrap_or(DARK)).min_by(f64::total_cmp)
}

/// The power of a lane without light, in dBm.
const DARK: f64 = -99.0;

fn raw_ber(port: &PortModule) -> Option<f64> {
    port.reported_ber.as_ref()?.raw
}

const COLUMNS: [Col; 12] = [
    Col::text("port", "Port", |(_, it)| it.name.label().into()).cell(|(fabric, it)| {
        html! { @match &it.link {
            Some(link) => a href=(address::link(fabric, link)) { (it.name.label()) },
            None => (components::port(fabric, &it.name)),
        } }
    }),
    Col::text("verdict", "Verdict", |(_, it)| it.verdict.as_deref().into()).cell(
        |(_, it)| html! { @if let Some(verdict) = &it.verdict { (components::verdict(verdict)) } },
    ),
    Col::text("vendor", "Vendor", |(_, it)| it.module.vendor.clone().into())
        .cell(|(_, it)| html! { span .whole { (it.module.vendor) } }),
    Col::text("part", "Part number", |(_, it)| it.module.part_number.clone().into())
        .cell(|(_, it)| html! { span .whole { (it.module.part_number) } }),
    Col::text("serial", "Serial number", |(_, it)| it.module.serial_number.clone().into())
        .cell(|(_, it)| html! { span .whole { (it.module.serial_number) } }),
    Col::text("kind", "Kind", |(_, it)| it.module.kind.to_string().into()),
    Col::number("length", "Length", |(_, it)| it.module.length_meters.into())
        .cell(|(_, it)| html! { @if let Some(meters) = it.module.length_meters { (meters) " m" } }),
    Col::number("temperature", "Temperature", |(_, it)| it.module.temperature.into()).cell(
        |(_, it)| html! {
            @if let Some(now) = it.module.temperature {
                @let is_hot = it.module.temperature_alarm.is_some_and(|alarm| now >= alarm);
                span .verdict[is_hot] .watch[is_hot] { (format!("{now:.0} °C")) }
            }
        },
    ),
    Col::number("rx", "Lowest rx power", |(_, it)| lowest_power(it).into()).lowest_first().cell(
        |(_, it)| html! {
            @if let Some(power) = lowest_power(it) {
                @let is_dark = it.module.rx_power_alarm.is_some_and(|alarm| power < alarm);
                span .verdict[is_dark] .watch[is_dark] {
                    @if power <= DARK { "none" } @else { (format!("{power:.1} dBm")) }
                }
            }
        },
    ),
    Col::number("ber", "Raw BER", |(_, it)| raw_ber(it).into()).cell(|(_, it)| html! {
        @match raw_ber(it) { Some(0.0) => "0", Some(ratio) => (format!("{ratio:.1e}")), None => "" }
    }),
    Col::only_csv("link", |(_, it)| it.link.as_deref().into()),
    Col::only_csv("fabric", |(fabric, _)| fabric.clone().into()),
];

pub(crate) async fn get(app: PageState, query: QueryResult) -> Answer {
    if app.end().is_some() {
        let what = "Modules and their readings are not recorded, only where serial numbers were: search for one.";
        return Ok(not_recorded(TITLE, address::MODULES, what, address::MODULES));
    }
    let params = QueryParams::from(query);
    let query = ListQuery::parse(address::MODULES, &params, &["fabric", "text"], &COLUMNS);
    super::render_list(&app, query.map_err(refused(TITLE))?, |state, query| {
        let fabrics = &state.fabrics;
        let filter =
            Filter { fabric: query.filter("fabric").map(str::to_owned), ..Filter::default() };
        let mut rows = module_rows(fabrics, &filter);
        rows.retain(|row| {
            if query.filter("text").is_none() {
                return true;
            }
            let PortModule { name, module, .. } = row.module();
            query.has_text(&[
                &name.node,
                &module.vendor,
                &module.part_number,
                &module.serial_number,
            ])
        });
        rows.sort_by_cached_key(worst_first);
        let modules: Vec<PortModule> = rows.iter().map(ModuleRow::module).collect();
        let parts = parts(modules.iter());
        let list = List {
            title: TITLE,
            noun: "port",
            order: "worst first",
            above: above(&spares_needed(fabrics, &filter), &parts),
            fabrics,
            columns: &COLUMNS,
            form: html! {
                (fabric_field(query, fabrics))
                (text_field("Node, vendor, part or serial number", query))
            },
            nothing: "No cables or modules have been read yet. The exporter reads them, by default every 10 minutes, \
                      from NVIDIA devices that announce registers.",
        };
        list.respond(query, rows, row_of)
    })
    .await
}

/// The key of a row: the verdict of its link, then how close it is to its own alarm thresholds.
fn worst_first(row: &ModuleRow<'_>) -> (Reverse<Option<Verdict>>, Reverse<u64>) {
    // A ratio that is not negative has the order of its bits.
    (
        Reverse(row.verdict.map(|it| it.verdict)),
        Reverse(strain(&row.module().module).max(0.0).to_bits()),
    )
}

/// How much of what it bears a module has: 1 is its alarm threshold.
fn strain(module: &Module) -> f64 {
    let heat = module.temperature.zip(module.temperature_alarm.filter(|alarm| *alarm > 0.0));
    let heat = heat.map_or(0.0, |(now, alarm)| now / alarm);
    let is_dark = |power: &Option<f64>| {
        module.rx_power_alarm.is_some_and(|alarm| power.unwrap_or(DARK) < alarm)
    };
    if module.rx_power.iter().any(is_dark) { heat.max(1.0) } else { heat }
}

/// The spares that are needed, and all part numbers.
fn above(spares: &[Spare], parts: &[PartSum]) -> Markup {
    html! {
        @if !spares.is_empty() { section aria-labelledby="spares" {
            h2 #spares { "Spares needed now" }
            table .stack {
                thead { tr {
                    th scope="col" { "Part number" } th scope="col" { "Piece" } th .n scope="col" { "Needed" }
                    th scope="col" { "Links" }
                } }
                tbody { @for spare in spares { tr {
                    th scope="row" data-label="Part number" { bdi { (spare.part_number.as_deref().unwrap_or("not reported")) } }
                    td data-label="Piece" { (spare.what) }
                    td .n data-label="Needed" { (spare.needed) }
                    td data-label="Links" {
                        @for (place, it) in spare.links.iter().take(MAX_LINKS).enumerate() {
                            @if place > 0 { "; " }
                            a href=(address::link(&it.fabric, &it.link)) { bdi { (it.ends[0]) } " – " bdi { (it.ends[1]) } }
                        }
                        @if spare.links.len() > MAX_LINKS { "; and " (spare.links.len() - MAX_LINKS) " more" }
                    }
                } } }
            }
        } }
        @if !parts.is_empty() { details {
            summary { (components::plural(parts.len(), "part number")) }
            table .stack {
                thead { tr {
                    th scope="col" { "Part number" } th scope="col" { "Vendor" } th scope="col" { "Kind" }
                    th .n scope="col" { "Ports" } th .n scope="col" { "Serial numbers" } th .n scope="col" { "Bad" }
                    th .n scope="col" { "Degraded" }
                } }
                tbody { @for sum in parts { tr {
                    th scope="row" data-label="Part number" { bdi { (sum.part_number) } }
                    td data-label="Vendor" { bdi { (sum.vendor) } }
                    td data-label="Kind" { (sum.kind) }
                    td .n data-label="Ports" { (sum.ports) }
                    td .n data-label="Serial numbers" { (sum.pieces) }
                    td .n data-label="Bad" { (sum.bad) }
                    td .n data-label="Degraded" { (sum.watch) }
                } } }
            }
        } }
    }
}

fn row_of(row: &ModuleRow<'_>) -> Row {
    (row.view.name.to_owned(), row.module())
}
