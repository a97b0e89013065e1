//! `/switches` and `/hosts`: the nodes of a kind, with their links and their traffic.

use axum::extract::State;
use maud::{Markup, html};

use crate::api::history_service::QueryResult;
use crate::api::ports::{NodeRow, node_rows};
use crate::server::WebApp;
use ib_health::Verdict;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortStatus;

use super::{Column, List, ListQuery, Value, fabric_names, refused, text_field, verdict_field};
use crate::pages::components;
use crate::pages::{Answer, QueryParams, address, check_fabric, render};

type Row<'a> = NodeRow<'a>;
type Col<'a> = Column<Row<'a>>;

impl NodeRow<'_> {
    /// What its ports send and receive together, in bytes per second.
    fn traffic(&self) -> [Option<f64>; 2] {
        let ports = || self.view.snapshot.fabric.ports_of(self.index);
        let sum = |rates: &mut dyn Iterator<Item = f32>| rates.map(f64::from).reduce(|a, b| a + b);
        [
            sum(&mut ports().filter_map(|port| self.view.sent(port)).map(|flow| flow.rate)),
            sum(&mut ports().filter_map(|port| self.view.received(port)).map(|flow| flow.rate)),
        ]
    }

    /// The highest utilization of its ports in either direction.
    fn utilization(&self) -> Option<f64> {
        let ports = self.view.snapshot.fabric.ports_of(self.index);
        let flows = ports.flat_map(|port| [self.view.sent(port), self.view.received(port)]);
        flows.flatten().map(|flow| f64::from(flow.used)).reduce(f64::max)
    }

    /// The highest data rate of its ports, in bytes per second.
    fn rate(&self) -> Option<u64> {
        let ports = self.view.snapshot.fabric.ports_of(self.index);
        ports.filter_map(|port| self.view.snapshot.status(port).and_then(PortStatus::rate)).max()
    }

    /// The ports that it is connected to, as text: of a host, those of its leaf.
    fn neighbor(&self) -> String {
        let fabric = &self.view.snapshot.fabric;
        let peers = fabric.ports_of(self.index).filter_map(|port| fabric.port(port).peer);
        let label =
            |port| ib_mad::label::port(&fabric.node_of(port).name, fabric.port(port).number);
        peers.map(|peer| label(peer.port)).collect::<Vec<_>>().join(", ")
    }
}

fn number(number: Option<f64>, text: impl Fn(f64) -> String) -> Markup {
    html! { @if let Some(number) = number { (text(number)) } }
}

fn count(count: usize) -> Markup {
    html! { @if count > 0 { (count) } @else { span .quiet { "0" } } }
}

/// Bytes per second as gigabits per second, for CSV.
fn gigabits(bytes: Option<f64>) -> Value {
    bytes.map(|bytes| bytes * 8.0 / 1e9).into()
}

/// The columns of both lists; those of the other list are left out.
#[expect(clippy::too_many_lines, reason = "a table")]
fn columns<'a>(kind: NodeKind, has_fabrics: bool) -> Vec<Column<Row<'a>>> {
    let is_switch = kind == NodeKind::Switch;
    let fabric: fn(&Row<'a>) -> Value = |it| it.view.name.to_owned().into();
    let columns = [
        (
            true,
            Col::text(
                "name",
                if is_switch { "Switch" } else { "Host" },
                |it| it.node.node.clone().into(),
                |it| html! { bdi { (components::node(it.view.name, &it.node.guid, &it.node.node)) } @if !it.node.up { " " strong { "down" } } },
            ),
        ),
        (
            true,
            Col::text(
                "verdict",
                "Worst link",
                |it| {
                    it.node.verdicts.worst().map_or(Value::None, |worst| {
                        Value::Ranked(f64::from(worst as u8), worst.label().into())
                    })
                },
                |it| html! { @if let Some(worst) = it.node.verdicts.worst_shown() { (components::verdict(worst)) } },
            ),
        ),
        (
            is_switch,
            Col::number(
                "links",
                "Links",
                |it| Value::Number(it.node.verdicts.count() as f64),
                |it| count(it.node.verdicts.count()),
            ),
        ),
        (
            is_switch,
            Col::number(
                "bad",
                "Bad",
                |it| Value::Number(it.node.verdicts.bad as f64),
                |it| count(it.node.verdicts.bad),
            ),
        ),
        (
            is_switch,
            Col::number(
                "degraded",
                "Degraded",
                |it| Value::Number(it.node.verdicts.watch as f64),
                |it| count(it.node.verdicts.watch),
            ),
        ),
        (
            !is_switch,
            Col::text(
                "neighbor",
                "Neighbor",
                |it| it.neighbor().into(),
                |it| html! { bdi { (it.neighbor()) } },
            ),
        ),
        (
            !is_switch,
            Col::number(
                "rate",
                "Rate",
                |it| gigabits(it.rate().map(|rate| rate as f64)),
                |it| {
                    html! { @if let Some(rate) = it.rate() { (components::bit_rate(rate)) } }
                },
            ),
        ),
        (
            true,
            Col::number(
                "sends",
                "Sends",
                |it| gigabits(it.traffic()[0]),
                |it| number(it.traffic()[0], components::traffic),
            ),
        ),
        (
            true,
            Col::number(
                "receives",
                "Receives",
                |it| gigabits(it.traffic()[1]),
                |it| number(it.traffic()[1], components::traffic),
            ),
        ),
        (
            true,
            Col::number(
                "utilization",
                if is_switch { "Busiest port" } else { "Utilization" },
                |it| it.utilization().into(),
                |it| number(it.utilization(), |used| components::percent(used as f32)),
            ),
        ),
        (
            is_switch,
            Col::number(
                "temperature",
                "Temperature",
                |it| it.node.temperature.into(),
                |it| number(it.node.temperature, |celsius| format!("{celsius:.0} °C")),
            ),
        ),
        (
            true,
            Col::text(
                "device",
                "Device",
                |it| it.node.device.clone().unwrap_or_default().into_owned().into(),
                |it| html! { @if let Some(device) = &it.node.device { (device) } },
            ),
        ),
        (
            true,
            Col::text(
                "firmware",
                "Firmware",
                |it| it.node.firmware.clone().unwrap_or_default().into(),
                |it| html! { @if let Some(firmware) = &it.node.firmware { (firmware) } },
            ),
        ),
        (has_fabrics, Col::text("fabric", "Fabric", fabric, |it| html! { bdi { (it.view.name) } })),
        (!has_fabrics, Col::only_csv("fabric", fabric)),
        (!is_switch, Col::only_csv("host", |it| it.node.host.clone().unwrap_or_default().into())),
        (true, Col::only_csv("guid", |it| it.node.guid.clone().into())),
        (true, Col::only_csv("lid", |it| it.node.lid.map(f64::from).into())),
        (
            true,
            Col::only_csv("state", |it| (if it.node.up { "up" } else { "down" }).to_owned().into()),
        ),
    ];
    columns.into_iter().filter(|(has, _)| *has).map(|(_, column)| column).collect()
}

pub(in crate::pages) async fn switches(State(app): State<WebApp>, query: QueryResult) -> Answer {
    list(app, query, NodeKind::Switch).await
}

pub(in crate::pages) async fn hosts(State(app): State<WebApp>, query: QueryResult) -> Answer {
    list(app, query, NodeKind::Ca).await
}

async fn list(app: WebApp, query: QueryResult, kind: NodeKind) -> Answer {
    let (title, path, noun) = match kind {
        NodeKind::Switch => ("Switches", address::SWITCHES, "switch"),
        _ => ("Hosts", address::HOSTS, "HCA"),
    };
    let params = QueryParams::from(query);
    let query =
        ListQuery::parse(path, &params, &["fabric", "verdict", "text"], &columns(kind, true));
    let query = query.map_err(refused(title))?;
    let verdict = query.verdict().map_err(refused(title))?;
    let exposition = app.exposition();
    check_fabric(&exposition.board().fabrics, query.filter("fabric"))?;
    let page = move || {
        let fabrics = &exposition.board().fabrics;
        let names = fabric_names(fabrics);
        let columns = columns(kind, names.len() > 1);
        let list = List {
            title,
            noun,
            order: "by name",
            fabrics,
            columns: &columns,
            form: html! {
                (verdict_field(&query))
                (components::fabric_field(&names, query.filter("fabric")))
                (text_field("Name, GUID, device or firmware", &query))
            },
            nothing: "There are none in this fabric.",
        };
        let is_found = |row: &Row<'_>| {
            let node = &row.node;
            let has_verdict = |verdict: Verdict| node.verdicts.worst() == Some(verdict);
            let [device, firmware] =
                [node.device.as_deref(), node.firmware.as_deref()].map(Option::unwrap_or_default);
            verdict.is_none_or(has_verdict)
                && query.has_text(&[&node.node, &node.guid, device, firmware])
        };
        let mut rows = node_rows(fabrics, query.filter("fabric"), kind);
        rows.retain(is_found);
        list.respond(&query, rows)
    };
    Ok(render(page).await)
}
