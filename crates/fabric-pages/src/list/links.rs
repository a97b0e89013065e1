//! `/links`: the links, the worst first, filtered by verdict, reason, speed, fabric and node name.

use std::cell::OnceCell;

use maud::html;

use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_api::Filter;
use fabric_api::LinkRow;
use fabric_api::links::{ranked, select};
use fabric_api::model::Link;
use fabric_history::local_clock::LocalClock;
use ib_health::Reason;
use ib_mad::rate::Speed;

use super::{Column, List, ListQuery, Value, fabric_field, refused, text_field, verdict_field};
use crate::components::{self, link_verdict, or_all, select_field};
use crate::page::Answer;
use crate::query_params::QueryParams;
use fabric_api::address;

type Col<'a> = Column<Row<'a>>;

const TITLE: &str = "Links";
const FIELDS: [&str; 5] = ["fabric", "verdict", "reason", "speed", "text"];

/// A row, with the model that is built for its cells. It is dropped once they are written.
struct Row<'a> {
    data: LinkRow<'a>,
    link: OnceCell<Link>,
    clock: &'a LocalClock,
}

impl<'a> Row<'a> {
    /// The row of a link, with this clock.
    fn with(clock: &'a LocalClock) -> impl Fn(&LinkRow<'a>) -> Self {
        move |data| Row { data: *data, link: OnceCell::new(), clock }
    }

    fn link(&self) -> &Link {
        self.link.get_or_init(|| self.data.link())
    }

    /// The higher utilization of both directions; of several planes, of the busiest.
    fn utilization(&self) -> Option<f64> {
        let sent = self.data.all_ports().filter_map(|port| self.data.view.sent(port));
        let used = sent.map(|flow| f64::from(flow.used));
        used.reduce(f64::max)
    }

    fn name(&self) -> String {
        let label = |port| self.data.view.snapshot.fabric.port_label(port);
        self.data.ports().map(label).join(" – ")
    }
}

fn columns<'a>(has_fabrics: bool) -> Vec<Col<'a>> {
    vec![
        Col::text("link", "Link", |it| it.name().into()).cell(|it| components::link(it.link())),
        Col::text("verdict", "Verdict", |it| it.data.verdict().into())
            .cell(|it| link_verdict(&it.link().verdict, it.link().learning.as_ref())),
        Col::text("reason", "Reasons", |it| {
            let worst = it.data.assessment.and_then(|link| link.reasons.worst());
            worst.map(|(reason, _)| reason.label()).into()
        })
        .cell(|it| {
            let reasons = it.link().told_reasons().filter(|_| it.link().learning.is_none());
            html! { @if reasons.clone().next().is_some() {
                ul .why { @for because in reasons { li { (because.evidence) } } }
            } }
        }),
        Col::number("rate", "Rate", |it| {
            it.data.rate().bytes.map(|rate| rate as f64 * 8.0 / 1e9).into()
        })
        .cell(|it| {
            let link = it.link();
            html! { @if let Some(bytes) = link.rate {
                span .whole { (components::link_rate(bytes)) } " "
                span .whole.quiet { @if let Some(width) = &link.width { (width) " " } @if let Some(speed) = &link.speed { (speed) } }
            } }
        }),
        Col::number("utilization", "Utilization", |it| it.utilization().into()).cell(|it| {
            html! { @if let Some(used) = it.utilization() { (components::percent(used as f32)) } }
        }),
        Col::number("errors", "Errors", |it| {
            it.data.counted_errors().map(|(errors, _)| errors as f64).into()
        })
        .cell(|it| {
            let (errors, is_least) = it.data.counted_errors().unzip();
            components::error_sum(errors, is_least == Some(true))
        }),
        Col::number("flaps", "Flaps", |it| {
            it.data.assessment.map(|link| f64::from(link.outages.flaps)).into()
        })
        .cell(|it| html! { (it.link().flaps) }),
        Col::text("since", "Since", |it| {
            let since = it.data.assessment.map(|link| link.since);
            let text = since.and_then(|since| it.data.view.time(since));
            since.zip(text).map_or(Value::None, |(at, text)| Value::Ranked(at.0 as f64, text))
        })
        .cell(|it| {
            html! { @if let Some(at) = &it.link().since { (components::ago(it.clock, at)) } }
        }),
        Col::only_csv("speed", |it| {
            it.data.rate().speed.map(Speed::label).into()
        }),
        Col::only_csv("width", |it| it.link().width.as_deref().into()),
        Col::only_csv("evidence", |it| {
            let evidence = it.link().reasons.iter().map(|because| &*because.evidence);
            evidence.collect::<Vec<_>>().join("; ").into()
        }),
        Col::only_csv("repair", |it| it.link().repair.as_ref().map(|it| &*it.repair).into()),
        Col::only_csv("id", |it| it.link().link.clone().into()),
        Col::text("fabric", if has_fabrics { "Fabric" } else { "" }, |it| {
            it.data.view.name.to_owned().into()
        })
        .cell(|it| html! { bdi { (it.data.view.name) } }),
    ]
}

pub(crate) async fn get(app: PageState, query: QueryResult) -> Answer {
    let params = QueryParams::from(query);
    let parse = || -> Result<_, String> {
        let reason = params.parse("reason", |label| {
            Reason::from_label(label).ok_or_else(|| "is not a reason".to_owned())
        })?;
        let speed = params.parse("speed", |label| {
            Speed::from_label(label).ok_or_else(|| "is not a speed such as NDR".to_owned())
        })?;
        let query = ListQuery::parse(address::LINKS, &params, &FIELDS, &columns(true))?;
        let filter = Filter {
            fabric: query.filter("fabric").map(str::to_owned),
            verdicts: query.verdict.into_iter().collect(),
            reason,
            speed,
            name: query.filter("text").unwrap_or_default().to_owned(),
            ..Filter::default()
        };
        Ok((query, filter))
    };
    let (query, filter) = parse().map_err(refused(TITLE))?;
    super::render_list(&app, query, move |state, query| {
        let (fabrics, clock) = (&state.fabrics, components::clock(state));
        let columns = columns(fabrics.len() > 1);
        let reasons = or_all(&Reason::ALL.map(Reason::label), components::label_text);
        let speeds = or_all(&Speed::ALL.map(Speed::label), str::to_owned);
        let list = List {
            title: TITLE,
            noun: "link",
            order: "worst first",
            fabrics,
            columns: &columns,
            above: html! {},
            form: html! {
                (verdict_field(query))
                (select_field("reason", "Reason", filter.reason.map_or("", Reason::label), &reasons))
                (select_field("speed", "Speed", filter.speed.map_or("", Speed::label), &speeds))
                (fabric_field(query, fabrics))
                (text_field("Node", query))
            },
            nothing: "There are no links.",
        };
        let row = Row::with(&clock);
        if query.sort.is_some() {
            return list.respond(query, select(fabrics, &filter), row);
        }
        let (skip, most) =
            if query.is_csv { (0, usize::MAX) } else { (query.skip(), super::PAGE_LENGTH) };
        let (found, ranked) = ranked(fabrics, &filter, skip, most);
        list.respond_with_page(query, found, &ranked, row)
    })
    .await
}
