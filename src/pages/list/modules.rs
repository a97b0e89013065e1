//! `/modules`: the cables and modules that devices report.

use axum::extract::State;
use maud::html;

use crate::api::Filter;
use crate::api::history_service::QueryResult;
use crate::api::model::PortModule;
use crate::api::ports::{ModuleRow, module_rows};
use crate::server::WebApp;

use super::{Column, List, ListQuery, fabric_field, refused, text_field};
use crate::pages::components;
use crate::pages::{Answer, QueryParams, address};

const TITLE: &str = "Modules";

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

const COLUMNS: [Col; 11] = [
    Col::text("port", "Port", |(_, it)| it.name.label().into()).cell(|(fabric, it)| {
        html! { @match &it.link {
            Some(link) => a href=(address::link(fabric, link)) { (it.name.label()) },
            None => (components::port(fabric, &it.name)),
        } }
    }),
    Col::text("vendor", "Vendor", |(_, it)| it.module.vendor.clone().into()),
    Col::text("part", "Part number", |(_, it)| it.module.part_number.clone().into()),
    Col::text("serial", "Serial number", |(_, it)| it.module.serial_number.clone().into()),
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

pub(in crate::pages) async fn get(State(app): State<WebApp>, query: QueryResult) -> Answer {
    let params = QueryParams::from(query);
    let query = ListQuery::parse(address::MODULES, &params, &["fabric", "text"], &COLUMNS);
    super::render_list(&app, query.map_err(refused(TITLE))?, |board, query| {
        let fabrics = &board.fabrics;
        let list = List {
            title: TITLE,
            noun: "port",
            order: "by port",
            fabrics,
            columns: &COLUMNS,
            form: html! {
                (fabric_field(query, fabrics))
                (text_field("Node, vendor, part or serial number", query))
            },
            nothing: "No cables or modules have been read yet. The exporter reads them, by default every 10 minutes, \
                      from NVIDIA devices that announce registers.",
        };
        let filter =
            Filter { fabric: query.filter("fabric").map(str::to_owned), ..Filter::default() };
        let mut rows = module_rows(fabrics, &filter);
        rows.retain(|row| {
            let PortModule { name, module, .. } = row.module();
            query.has_text(&[
                &name.node,
                &module.vendor,
                &module.part_number,
                &module.serial_number,
            ])
        });
        list.respond(query, rows, row_of)
    })
    .await
}

fn row_of(row: &ModuleRow<'_>) -> Row {
    (row.view.name.to_owned(), row.module())
}
