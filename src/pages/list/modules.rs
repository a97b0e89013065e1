//! `/modules`: the cables and modules that devices report, sorted by any column.

use std::cmp::Ordering;
use std::num::NonZeroUsize;

use axum::extract::State;
use maud::{Markup, html};

use crate::api::history_service::QueryResult;
use crate::api::model::PortModule;
use crate::api::modules::modules;
use crate::api::{Fabrics, Filter};
use crate::server::WebApp;

use super::components::{self, count, plural};
use super::{
    Answer, Live, Page, Problem, QueryParams, StatusCode, address, check_fabric, not_swept, render,
};

/// The modules on a page.
const PAGE_LENGTH: usize = 100;

/// A row: the name of its fabric, and the module.
type Row = (String, PortModule);

/// A column: its key in the address, its heading, whether it holds numbers, the order of two rows, and the cell.
struct Column {
    key: &'static str,
    heading: &'static str,
    is_number: bool,
    order: fn(&PortModule, &PortModule) -> Ordering,
    cell: fn(&str, &PortModule) -> Markup,
}

/// The highest value first, and what has none last.
fn highest_first(
    value: fn(&PortModule) -> Option<f64>,
) -> impl Fn(&PortModule, &PortModule) -> Ordering {
    move |a, b| match (value(a), value(b)) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

fn lowest_power(port: &PortModule) -> Option<f64> {
    let powers = port.module.rx_power.iter();
    // A lane without light is darker than any other.
    powers.map(|power| power.unwrap_or(-99.0)).min_by(f64::total_cmp)
}

fn raw_ber(port: &PortModule) -> Option<f64> {
    port.reported_ber.as_ref()?.raw
}

const COLUMNS: [Column; 9] = [
    Column {
        key: "port",
        heading: "Port",
        is_number: false,
        // As the API orders them.
        order: |_, _| Ordering::Equal,
        cell: |fabric, it| match &it.link {
            Some(link) => html! { a href=(address::link(fabric, link)) { (it.name.label()) } },
            None => components::port(fabric, &it.name),
        },
    },
    Column {
        key: "vendor",
        heading: "Vendor",
        is_number: false,
        order: |a, b| a.module.vendor.cmp(&b.module.vendor),
        cell: |_, it| html! { (it.module.vendor) },
    },
    Column {
        key: "part",
        heading: "Part number",
        is_number: false,
        order: |a, b| a.module.part_number.cmp(&b.module.part_number),
        cell: |_, it| html! { (it.module.part_number) },
    },
    Column {
        key: "serial",
        heading: "Serial number",
        is_number: false,
        order: |a, b| a.module.serial_number.cmp(&b.module.serial_number),
        cell: |_, it| html! { (it.module.serial_number) },
    },
    Column {
        key: "kind",
        heading: "Kind",
        is_number: false,
        order: |a, b| a.module.kind.cmp(&b.module.kind),
        cell: |_, it| html! { (it.module.kind) },
    },
    Column {
        key: "length",
        heading: "Length",
        is_number: true,
        order: |a, b| highest_first(|it| it.module.length_meters)(a, b),
        cell: |_, it| html! { @if let Some(meters) = it.module.length_meters { (meters) " m" } },
    },
    Column {
        key: "temperature",
        heading: "Temperature",
        is_number: true,
        order: |a, b| highest_first(|it| it.module.temperature)(a, b),
        cell: |_, it| {
            html! {
                @if let Some(now) = it.module.temperature {
                    @let is_hot = it.module.temperature_alarm.is_some_and(|alarm| now >= alarm);
                    span .verdict[is_hot] .watch[is_hot] { (format!("{now:.0} °C")) }
                }
            }
        },
    },
    Column {
        key: "rx",
        heading: "Lowest rx power",
        is_number: true,
        order: |a, b| highest_first(|it| lowest_power(it).map(|power| -power))(a, b),
        cell: |_, it| {
            html! {
                @if let Some(power) = lowest_power(it) {
                    @let is_dark = it.module.rx_power_alarm.is_some_and(|alarm| power < alarm);
                    span .verdict[is_dark] .watch[is_dark] {
                        @if power <= -99.0 { "none" } @else { (format!("{power:.1} dBm")) }
                    }
                }
            }
        },
    },
    Column {
        key: "ber",
        heading: "Raw BER",
        is_number: true,
        order: |a, b| highest_first(raw_ber)(a, b),
        cell: |_, it| {
            html! {
                @match raw_ber(it) { Some(0.0) => "0", Some(ratio) => (format!("{ratio:.1e}")), None => "" }
            }
        },
    },
];

struct ModulesQuery {
    fabric: Option<String>,
    column: &'static Column,
    text: String,
    page: usize,
}

impl ModulesQuery {
    fn parse(query: &QueryParams) -> Result<Self, String> {
        let column = query.parse("sort", |key| {
            let keys = || COLUMNS.each_ref().map(|column| column.key).join(", ");
            let column = COLUMNS.iter().find(|column| column.key == key);
            column.ok_or_else(|| format!("must be one of: {}", keys()))
        })?;
        let page = query.parse("page", |page| {
            page.parse().map_err(|_| "must be a positive integer".to_owned())
        })?;
        let (fabric, text) = (query.get("fabric").map(str::to_owned), query.text("text"));
        let page = page.map_or(1, NonZeroUsize::get);
        Ok(ModulesQuery { fabric, column: column.unwrap_or(&COLUMNS[0]), text, page })
    }

    fn address(&self, sort: &str, page: usize) -> String {
        let number = if page == 1 { String::new() } else { page.to_string() };
        let sort = if sort == COLUMNS[0].key { "" } else { sort };
        let fabric = self.fabric.as_deref().unwrap_or_default();
        let pairs = [("fabric", fabric), ("sort", sort), ("text", &self.text), ("page", &number)];
        address::with(address::MODULES, &pairs)
    }

    /// The rows that have the text in the name of the node, the vendor, the part or the serial number; sorted.
    fn rows(&self, fabrics: &Fabrics) -> Vec<Row> {
        let filter = Filter { fabric: self.fabric.clone(), ..Filter::default() };
        let text = self.text.to_lowercase();
        let is_found = |(_, port): &Row| {
            let module = &port.module;
            let fields =
                [&port.name.node, &module.vendor, &module.part_number, &module.serial_number];
            fields.iter().any(|field| field.to_lowercase().contains(&text))
        };
        let of_fabric = |it: crate::api::model::FabricModules| {
            let fabric = it.fabric;
            it.modules.into_iter().map(move |module| (fabric.clone(), module))
        };
        let mut rows: Vec<Row> = modules(fabrics, &filter)
            .fabrics
            .into_iter()
            .flat_map(of_fabric)
            .filter(is_found)
            .collect();
        // Stable: among equals the order of ports stays.
        rows.sort_by(|(_, a), (_, b)| (self.column.order)(a, b));
        rows
    }
}

pub(super) async fn get(State(app): State<WebApp>, query: QueryResult) -> Answer {
    let title = "Modules";
    let query = ModulesQuery::parse(&QueryParams::from(query))
        .map_err(|text| Problem(StatusCode::BAD_REQUEST, title, text))?;
    let exposition = app.exposition();
    check_fabric(&exposition.board().fabrics, query.fabric.as_deref())?;
    let page = move || {
        let fabrics = &exposition.board().fabrics;
        let rows = query.rows(fabrics);
        Page::new(title, address::MODULES, page(&query, fabrics, &rows))
            .live(Live::Offered)
            .respond()
    };
    Ok(render(page).await)
}

fn page(query: &ModulesQuery, fabrics: &Fabrics, rows: &[Row]) -> Markup {
    let names: Vec<&str> = fabrics.iter().map(|it| &*it.fabric).collect();
    let skipped = (query.page - 1).saturating_mul(PAGE_LENGTH).min(rows.len());
    let shown = &rows[skipped..rows.len().min(skipped + PAGE_LENGTH)];
    html! {
        (form(query, &names))
        @if let Some(why) = not_swept(fabrics, query.fabric.as_deref()) {
            p { (why) }
        } @else if rows.is_empty() && query.text.is_empty() {
            p { "No device reports its cables or modules yet. They are read of NVIDIA devices that announce registers, each every 10 minutes by default." }
        } @else if rows.is_empty() {
            p { "No modules match this filter." }
        } @else {
            p .quiet {
                (plural(rows.len(), "port")) ", by " (query.column.heading.to_lowercase())
                @if rows.len() > shown.len() {
                    ": " (count(skipped as u64 + 1)) " to " (count((skipped + shown.len()) as u64))
                }
            }
            (table(query, shown))
        }
        (components::list_pager(query.page, rows.len().div_ceil(PAGE_LENGTH), |page| query.address(query.column.key, page)))
    }
}

fn form(query: &ModulesQuery, names: &[&str]) -> Markup {
    html! { form .filter action=(address::MODULES) {
        @if query.column.key != COLUMNS[0].key { input type="hidden" name="sort" value=(query.column.key); }
        (components::fabric_field(names, query.fabric.as_deref()))
        p {
            label for="text" { "Node, vendor, part or serial number" }
            input #text type="search" name="text" value=(query.text) placeholder="Part of it" autocomplete="off" spellcheck="false";
        }
        p { button { "Apply" } }
    } }
}

fn table(query: &ModulesQuery, rows: &[Row]) -> Markup {
    html! { table .stack {
        thead { tr { @for column in &COLUMNS {
            @let is_sorted = column.key == query.column.key;
            th .n[column.is_number] scope="col" aria-sort=[is_sorted.then_some("other")] {
                a href=(query.address(column.key, 1)) { (column.heading) }
            }
        } } }
        tbody { @for (fabric, port) in rows { tr { @for column in &COLUMNS {
            td .n[column.is_number] data-label=(column.heading) { ((column.cell)(fabric, port)) }
        } } } }
    } }
}
