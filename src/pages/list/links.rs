//! `/links`: the links, the worst first, filtered by verdict, reason, speed, fabric and node name.

use std::cell::OnceCell;

use axum::extract::State;
use maud::{Markup, html};

use crate::api::history_service::QueryResult;
use crate::api::links::{LinkRow, ListFilter, ranked, select};
use crate::api::model::Link;
use crate::server::WebApp;
use fabric_history::local_clock::LocalClock;
use ib_health::Reason;
use ib_mad::Reading;
use ib_mad::port_state::PortStatus;
use ib_mad::rate::Speed;

use super::{Column, List, ListQuery, Value, fabric_names, refused, text_field, verdict_field};
use crate::pages::components::{self, link_verdict, or_all, select_field};
use crate::pages::{Answer, QueryParams, address, check_fabric, render};

type Col<'a> = Column<Row<'a>>;

const TITLE: &str = "Links";
const FIELDS: [&str; 5] = ["fabric", "verdict", "reason", "speed", "text"];

/// A row, with the model that is built for its cells.
struct Row<'a> {
    data: LinkRow<'a>,
    link: OnceCell<Link>,
    clock: &'a LocalClock,
}

impl<'a> Row<'a> {
    fn all(rows: Vec<LinkRow<'a>>, clock: &'a LocalClock) -> Vec<Self> {
        let row = |data| Row { data, link: OnceCell::new(), clock };
        rows.into_iter().map(row).collect()
    }

    fn link(&self) -> &Link {
        self.link.get_or_init(|| self.data.link())
    }

    /// The higher utilization of both directions.
    fn utilization(&self) -> Option<f64> {
        let sent = self.data.ports().map(|port| self.data.view.sent(port));
        let used = sent.into_iter().flatten().map(|flow| f64::from(flow.used));
        used.reduce(f64::max)
    }

    fn errors(&self) -> u64 {
        let reading = |port| self.data.view.snapshot.reading(port).map_or(0, Reading::link_errors);
        self.data.ports().into_iter().map(reading).fold(0, u64::saturating_add)
    }

    fn name(&self) -> String {
        let fabric = &self.data.view.snapshot.fabric;
        let end = |port| ib_mad::label::port(&fabric.node_of(port).name, fabric.port(port).number);
        self.data.ports().map(end).join(" – ")
    }
}

fn columns<'a>(has_fabrics: bool) -> Vec<Column<Row<'a>>> {
    let mut columns = vec![
        Col::text("link", "Link", |it| it.name().into(), |it| components::link(it.link())),
        Col::text(
            "verdict",
            "Verdict",
            |it| Value::Ranked(f64::from(it.data.verdict as u8), it.data.verdict.label().into()),
            |it| link_verdict(&it.link().verdict, it.link().learning.as_ref()),
        ),
        Col::text(
            "reason",
            "Reasons",
            |it| {
                let worst = it.data.assessment.and_then(|link| link.reasons.worst());
                worst.map_or(Value::None, |(reason, _)| reason.label().to_owned().into())
            },
            |it| {
                let reasons = it.link().reasons.iter().filter(|_| it.link().learning.is_none());
                html! { @if reasons.clone().next().is_some() {
                    ul .why { @for because in reasons { li { (because.evidence) } } }
                } }
            },
        ),
        Col::number(
            "rate",
            "Rate",
            |it| {
                it.data
                    .status()
                    .and_then(PortStatus::rate)
                    .map(|rate| rate as f64 * 8.0 / 1e9)
                    .into()
            },
            |it| {
                let link = it.link();
                html! { @if let Some(bytes) = link.rate {
                    span .whole { (components::bit_rate(bytes)) } " "
                    span .whole.quiet { @if let Some(width) = &link.width { (width) " " } @if let Some(speed) = &link.speed { (speed) } }
                } }
            },
        ),
        Col::number(
            "utilization",
            "Utilization",
            |it| it.utilization().into(),
            |it| {
                html! { @if let Some(used) = it.utilization() { (components::percent(used as f32)) } }
            },
        ),
        Col::number(
            "errors",
            "Errors",
            |it| Value::Number(it.errors() as f64),
            |it| {
                html! { (components::count(it.errors())) }
            },
        ),
        Col::number(
            "flaps",
            "Flaps",
            |it| it.data.assessment.map(|link| f64::from(link.outages.flaps)).into(),
            |it| html! { (it.link().flaps) },
        ),
        Col::text(
            "since",
            "Since",
            |it| match (
                it.data.assessment,
                it.data.assessment.and_then(|link| it.data.view.time(link.since)),
            ) {
                (Some(link), Some(text)) => Value::Ranked(link.since.0 as f64, text),
                _ => Value::None,
            },
            |it| html! { @if let Some(at) = &it.link().since { (components::ago(it.clock, at)) } },
        ),
        Col::only_csv("speed", |it| {
            let speed = it.data.status().and_then(|status| status.speed);
            speed.map_or(Value::None, |speed| speed.label().to_owned().into())
        }),
        Col::only_csv("width", |it| {
            it.link().width.clone().unwrap_or_default().into_owned().into()
        }),
        Col::only_csv("evidence", |it| {
            let evidence = it.link().reasons.iter().map(|because| &*because.evidence);
            evidence.collect::<Vec<_>>().join("; ").into()
        }),
        Col::only_csv("repair", |it| {
            it.link().repair.as_ref().map_or(Value::None, |repair| repair.repair.to_string().into())
        }),
        Col::only_csv("id", |it| it.link().link.clone().into()),
    ];
    let fabric: fn(&Row<'a>) -> Value = |it| it.data.view.name.to_owned().into();
    columns.push(if has_fabrics {
        Col::text("fabric", "Fabric", fabric, |it| html! { bdi { (it.data.view.name) } })
    } else {
        Col::only_csv("fabric", fabric)
    });
    columns
}

pub(in crate::pages) async fn get(State(app): State<WebApp>, query: QueryResult) -> Answer {
    let params = QueryParams::from(query);
    let reason = params.parse("reason", |label| {
        let known = Reason::ALL.into_iter().find(|reason| reason.label() == label);
        known.ok_or_else(|| "is not a reason".to_owned())
    });
    let speed = params.parse("speed", |label| {
        let known = Speed::ALL.into_iter().find(|speed| speed.label() == label);
        known.ok_or_else(|| "is not a speed such as NDR".to_owned())
    });
    let (reason, speed) = (reason.map_err(refused(TITLE))?, speed.map_err(refused(TITLE))?);
    let query = ListQuery::parse(address::LINKS, &params, &FIELDS, &columns(true));
    let query = query.map_err(refused(TITLE))?;
    let verdict = query.verdict().map_err(refused(TITLE))?;
    let exposition = app.exposition();
    check_fabric(&exposition.board().fabrics, query.filter("fabric"))?;
    let page = move || {
        let fabrics = &exposition.board().fabrics;
        let names = fabric_names(fabrics);
        let clock = components::clock(exposition.board());
        let filter = ListFilter {
            fabric: query.filter("fabric"),
            verdicts: verdict.as_slice(),
            reason,
            speed,
            text: query.filter("text").unwrap_or_default(),
        };
        let columns = columns(names.len() > 1);
        let list = List {
            title: TITLE,
            noun: "link",
            order: "worst first",
            fabrics,
            columns: &columns,
            form: form(&query, &names),
            nothing: "There are no links.",
        };
        if query.sort.is_some() {
            return list.respond(&query, Row::all(select(fabrics, &filter), &clock));
        }
        let (skip, most) =
            if query.is_csv { (0, usize::MAX) } else { (query.skip(), super::PAGE_LENGTH) };
        let (found, ranked) = ranked(fabrics, &filter, skip, most);
        list.respond_with_page(&query, found, &Row::all(ranked, &clock))
    };
    Ok(render(page).await)
}

fn form(query: &ListQuery, names: &[&str]) -> Markup {
    let chosen = |name| query.filter(name).unwrap_or_default();
    let reasons = or_all(&Reason::ALL.map(Reason::label), components::label_text);
    let speeds = or_all(&Speed::ALL.map(Speed::label), str::to_owned);
    html! {
        (verdict_field(query))
        (select_field("reason", "Reason", chosen("reason"), &reasons))
        (select_field("speed", "Speed", chosen("speed"), &speeds))
        (components::fabric_field(names, query.filter("fabric")))
        (text_field("Node", query))
    }
}
