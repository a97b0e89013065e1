//! `/switches` and `/hosts`: the nodes of a kind, with their links and their traffic.

use maud::{Markup, html};

use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_api::model::{CUT_OFF, DOWN, Node};
use fabric_api::nodes::{NodeRow, node_rows};
use fabric_api::traffic::bit_rate;
use fabric_history::local_clock::LocalClock;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortStatus;

use super::{Column, List, ListQuery, Value, fabric_field, refused, text_field, verdict_field};
use crate::components;
use crate::page::Answer;
use crate::query_params::QueryParams;
use fabric_api::address;

/// A row, with the model that is built for its cells. It is dropped once they are written.
struct Row<'a> {
    data: NodeRow<'a>,
    node: Node,
}

type Col<'a> = Column<Row<'a>>;

impl<'a> Row<'a> {
    fn new(data: &NodeRow<'a>) -> Self {
        Row { data: *data, node: data.node() }
    }
}

impl Row<'_> {
    /// The present, not before the sweep: a simulated clock may be ahead of ours.
    fn clock(&self) -> LocalClock {
        let snapshot = self.data.view.snapshot;
        LocalClock::now().not_before(snapshot.anchor.wall_of(snapshot.ended))
    }

    /// What its ports send and receive together, in bytes per second.
    fn traffic(&self) -> [Option<f64>; 2] {
        let ports = || self.data.view.snapshot.fabric.ports_of(self.data.index);
        let sum = |rates: &mut dyn Iterator<Item = f32>| rates.map(f64::from).reduce(|a, b| a + b);
        [
            sum(&mut ports().filter_map(|port| self.data.view.sent(port)).map(|flow| flow.rate)),
            sum(&mut ports()
                .filter_map(|port| self.data.view.received(port))
                .map(|flow| flow.rate)),
        ]
    }

    /// The highest utilization of its ports in either direction.
    fn utilization(&self) -> Option<f64> {
        let ports = self.data.view.snapshot.fabric.ports_of(self.data.index);
        ports.filter_map(|port| self.data.view.used(port)).map(f64::from).reduce(f64::max)
    }

    /// The highest data rate of its ports, in bytes per second.
    fn rate(&self) -> Option<u64> {
        let ports = self.data.view.snapshot.fabric.ports_of(self.data.index);
        ports
            .filter_map(|port| self.data.view.snapshot.status(port).and_then(PortStatus::rate))
            .max()
    }

    /// The ports that it is connected to, as text: of a host, those of its leaf.
    fn neighbor(&self) -> String {
        let fabric = &self.data.view.snapshot.fabric;
        let peers = fabric.ports_of(self.data.index).filter_map(|port| fabric.port(port).peer);
        let labels = peers.map(|peer| self.data.view.snapshot.fabric.port_label(peer.port));
        labels.collect::<Vec<_>>().join(", ")
    }
}

fn number(number: Option<f64>, text: impl Fn(f64) -> String) -> Markup {
    html! { @if let Some(number) = number { (text(number)) } }
}

fn grouped(count: usize) -> Markup {
    html! { @if count > 0 { (count) } @else { span .quiet { "0" } } }
}

/// Bytes per second as gigabits per second, for CSV.
fn gigabits(bytes: Option<f64>) -> Value {
    bytes.map(|bytes| bytes * 8.0 / 1e9).into()
}

/// The columns that only the list of switches has, and those that only the list of hosts has.
const OF_SWITCHES: [&str; 4] = ["links", "bad", "degraded", "temperature"];
const OF_HOSTS: [&str; 3] = ["neighbor", "rate", "host"];

fn columns<'a>(kind: NodeKind, has_fabrics: bool) -> Vec<Column<Row<'a>>> {
    let is_switch = kind == NodeKind::Switch;
    let mut columns = vec![
        Col::text("name", if is_switch { "Switch" } else { "Host" }, |it| {
            it.node.node.clone().into()
        })
        .cell(|it| html! { bdi { (components::node(it.data.view.name, &it.node.guid, &it.node.node)) } @if !it.node.up {
                " " (components::state(if it.node.behind.is_some() { CUT_OFF } else { DOWN }))
                (components::down(&it.clock(), it.data.view.name, &it.node))
            } }),
        Col::text("verdict", "Worst link", |it| {
            it.node.verdicts.worst().into()
        })
        .cell(|it| {
            html! { (components::verdict(it.node.verdicts.worst_shown())) }
        }),
        Col::number("links", "Links", |it| Value::Number(it.node.verdicts.count() as f64))
            .cell(|it| grouped(it.node.verdicts.count())),
        Col::number("bad", "Bad", |it| Value::Number(it.node.verdicts.bad as f64))
            .cell(|it| grouped(it.node.verdicts.bad)),
        Col::number("degraded", "Degraded", |it| Value::Number(it.node.verdicts.watch as f64))
            .cell(|it| grouped(it.node.verdicts.watch)),
        Col::text("neighbor", "Neighbor", |it| it.neighbor().into())
            .cell(|it| html! { bdi { (it.neighbor()) } }),
        Col::number("rate", "Rate", |it| gigabits(it.rate().map(|rate| rate as f64))).cell(|it| {
            html! { @if let Some(rate) = it.rate() { (components::link_rate(rate)) } }
        }),
        Col::number("sends", "Sends", |it| gigabits(it.traffic()[0]))
            .cell(|it| number(it.traffic()[0], bit_rate)),
        Col::number("receives", "Receives", |it| gigabits(it.traffic()[1]))
            .cell(|it| number(it.traffic()[1], bit_rate)),
        Col::number(
            "utilization",
            if is_switch { "Busiest port" } else { "Utilization" },
            |it| it.utilization().into(),
        )
        .cell(|it| number(it.utilization(), |used| components::percent(used as f32))),
        Col::number("temperature", "Temperature", |it| it.node.temperature.into())
            .cell(|it| number(it.node.temperature, |celsius| format!("{celsius:.0} °C"))),
        Col::text("device", "Device", |it| it.node.device.as_deref().into()),
        Col::text("firmware", "Firmware", |it| it.node.firmware.as_deref().into()),
        Col::text("fabric", if has_fabrics { "Fabric" } else { "" }, |it| {
            it.data.view.name.to_owned().into()
        })
        .cell(|it| html! { bdi { (it.data.view.name) } }),
        Col::only_csv("host", |it| it.node.host.as_deref().into()),
        Col::only_csv("guid", |it| it.node.guid.clone().into()),
        Col::only_csv("lid", |it| it.node.lid.map(f64::from).into()),
        Col::only_csv("state", |it| Some(if it.node.up { "up" } else { "down" }).into()),
        Col::only_csv("down_since", |it| it.node.down_since.as_deref().into()),
        Col::only_csv("behind", |it| it.node.behind.as_ref().map(|by| &*by.node).into()),
    ];
    let of_others = if is_switch { &OF_HOSTS[..] } else { &OF_SWITCHES };
    columns.retain(|column| !of_others.contains(&column.key));
    columns
}

pub(crate) async fn switches(app: PageState, query: QueryResult) -> Answer {
    list(app, query, NodeKind::Switch).await
}

pub(crate) async fn hosts(app: PageState, query: QueryResult) -> Answer {
    list(app, query, NodeKind::Ca).await
}

async fn list(app: PageState, query: QueryResult, kind: NodeKind) -> Answer {
    let (title, path, noun) = match kind {
        NodeKind::Switch => ("Switches", address::SWITCHES, "switch"),
        _ => ("Hosts", address::HOSTS, "HCA"),
    };
    let params = QueryParams::from(query);
    let query =
        ListQuery::parse(path, &params, &["fabric", "verdict", "text"], &columns(kind, true));
    super::render_list(&app, query.map_err(refused(title))?, move |state, query| {
        let fabrics = &state.fabrics;
        let columns = columns(kind, fabrics.len() > 1);
        let list = List {
            title,
            noun,
            order: "by name",
            fabrics,
            columns: &columns,
            above: html! {},
            form: html! {
                (verdict_field(query))
                (fabric_field(query, fabrics))
                (text_field("Name, GUID, device or firmware", query))
            },
            nothing: "There are none in this fabric.",
        };
        let mut rows = node_rows(fabrics, query.filter("fabric"), kind);
        rows.retain(|row| {
            let node = row.node();
            let [device, firmware] =
                [node.device.as_deref(), node.firmware.as_deref()].map(Option::unwrap_or_default);
            query.verdict.is_none_or(|verdict| node.verdicts.worst() == verdict)
                && query.has_text(&[&node.node, &node.guid, device, firmware])
        });
        list.respond(query, rows, Row::new)
    })
    .await
}
