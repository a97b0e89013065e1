//! `/link/{id}`: a link, its evidence, both of its ends, and its past.

mod ports;

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::Path;
use axum::http::StatusCode;
use exporter_web::blocking;
use maud::{Markup, html};

use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_api::FabricView;
use fabric_api::model::{End, LinkDetail, PortName};
use fabric_api::ports::{link_by_id, ports_of};
use fabric_api::{Fabrics, LiveState, selected};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Cable, Event, Port as PastPort, Series, Window};
use fabric_history::plot::LinkTimeline;
use fabric_history::source::{EventFilter, SeriesDetail, SourceError};
use fabric_history::{Reader, Source, plot};
use ib_fabric::topology::LinkId;
use ib_mad::PortKey;

use crate::components;
use crate::history_queries;
use crate::history_queries::HistoryAnswer;
use crate::impact;
use crate::page::{Answer, Live, Page, Problem, check_fabric, not_swept};
use crate::query_params::QueryParams;
use crate::window_choice::WindowChoice;
use fabric_api::address;

pub async fn get(app: PageState, Path(id): Path<String>, query: QueryResult) -> Answer {
    let id = id.parse::<LinkId>().map_err(|_| {
        let text = format!(
            "{id:?} is not a link ID. A link ID has the GUID and port of both ends, such as \
             0x00aa000000000001:5-0x00aa000000000002:1."
        );
        Problem(StatusCode::NOT_FOUND, "Link not found", text)
    })?;
    let query = QueryParams::from(query);
    let live = app.live.clone();
    let fabrics = &live.state.fabrics;
    check_fabric(fabrics, query.get("fabric"))?;
    let link = link_by_id(fabrics, query.get("fabric"), id);
    let fabric = link.as_ref().map(|link| &*link.link.fabric).or(query.get("fabric"));
    let window = WindowChoice::parse(&query, DEFAULT_WINDOW)
        .map_err(|text| Problem(StatusCode::BAD_REQUEST, "Invalid window", text))?;
    let wanted_fabric = fabric.map(str::to_owned);
    let wanted = PastPorts::of(id, link.as_ref());
    let id = wanted.link;
    let end = app.end();
    let past = history_queries::run(&app.history, move |reader| {
        LinkPast::read(reader, &wanted, wanted_fabric.as_deref(), window, end)
    })
    .await;
    let clock = LocalClock::now();
    let past = history(&past, id, fabric.unwrap_or_default(), &clock);
    let Some(link) = link else {
        let main = html! { (missing_link(fabrics, query.get("fabric"), id)) (past) };
        let page = Page::new("Link not found", address::LINKS, main);
        return Ok(page.respond_with(StatusCode::NOT_FOUND));
    };
    let jobs = jobs(&live, &link).await;
    let title = link.link.ends.each_ref().map(End::label).join(" – ");
    let main = html! {
        (gist(&link, &clock, app.grafana.as_deref()))
        (reasons(&link))
        (crossing(fabrics, &link, &clock, live.state.as_of.is_some()))
        (jobs)
        (ports::planes(&link))
        (past)
        (ports::ends(&link, &clock))
        (ports::counters(&link, &clock))
    };
    Ok(Page::new(&title, address::LINKS, main).live(Live::Yes).respond())
}

/// The jobs that it may hurt, if jobs are read. Those of a large cluster take a while.
async fn jobs(live: &Arc<LiveState>, detail: &LinkDetail) -> Markup {
    if live.state.jobs.is_none() {
        return html! {};
    }
    let (live, link) = (Arc::clone(live), detail.link.clone());
    let section = move || impact::of_page(&live.state, &link, &LocalClock::now());
    blocking::run(section).await.unwrap_or_else(|_| html! {})
}

fn gist(detail: &LinkDetail, clock: &LocalClock, grafana: Option<&str>) -> Markup {
    let link = &detail.link;
    let now = detail.swept_at.as_deref();
    let state = match link.up {
        Some(true) => "up",
        Some(false) => "down",
        None => "state unknown",
    };
    html! {
        p .gist {
            (components::link_verdict(&link.verdict, link.learning.as_ref()))
            @if let Some(learning) = &link.learning { ": " (components::learning_text(learning)) }
            @else if let Some(since) = &link.since { " since " (components::timestamp_and_age(clock, since, now)) }
            " · " (state)
            @if let (Some(width), Some(speed)) = (&link.width, &link.speed) {
                " · " @if !link.planes.is_empty() { (link.planes.len()) " planes, " } (width) " " (speed)
                @if let Some(rate) = link.rate { ", " (components::link_rate(rate)) }
            }
        }
        p .quiet {
            "Fabric " a href=(address::with(address::TOPOLOGY, &[("fabric", &link.fabric)])) { (link.fabric) }
            " · link " code { (link.link) }
            @if let Some(url) = grafana {
                " · " a href=(address::dashboard(url, "cable", &[("fabric", &link.fabric), ("link", &link.link)])) { "Grafana" }
            }
            @if let Some(now) = now { " · as of " (components::timestamp_and_age(clock, now, None)) }
        }
    }
}

fn reasons(detail: &LinkDetail) -> Markup {
    let link = &detail.link;
    html! {
        @if !link.reasons.is_empty() && link.learning.is_none() {
            h2 { "Reasons" }
            ul .reasons { @for because in link.told_reasons() { li {
                span class={ "verdict " (because.verdict) } { (components::label_text(&because.reason)) }
                " " (because.evidence) "."
            } } }
        }
        @if let Some(repair) = &link.repair {
            p .repair { strong { "Try first: " } (repair.description) }
        }
    }
}

/// The hosts that cross a bad link, if they are published, and where to ask for those of any link.
fn crossing(fabrics: &Fabrics, detail: &LinkDetail, clock: &LocalClock, is_past: bool) -> Markup {
    let link = &detail.link;
    let observation = selected(fabrics, Some(&link.fabric)).next();
    let id = link.link.parse::<LinkId>().ok();
    let found = id.and_then(|id| observation?.crossing.get(&id));
    html! {
        @if let Some(found) = found { p #crossing {
            @let hosts = found.hosts();
            "Packets of " strong { (components::plural(hosts.len(), "host")) } " cross this link"
            @if found.is_incomplete() { " at least" }
            @if !hosts.is_empty() {
                @let list = hostlist::fold(hosts.iter().copied());
                @if list.len() <= MAX_LIST { ": " (list) } @else {
                    ": " (hostlist::fold(hosts.iter().take(MAX_HOSTS).copied()))
                    " and " (hosts.len().saturating_sub(MAX_HOSTS)) " more"
                }
            }
            "."
            @if found.may_differ { " With adaptive routing packets of others may cross it, too." }
            " " span .quiet { "Forwarding tables read at " (components::timestamp(clock, found.read_at)) "." }
        } }
        // While it is down nothing crosses it, and forwarding tables of the past are not recorded.
        @if link.up == Some(true) && !is_past {
            p { a href=(address::link_hosts(&link.fabric, &link.link)) { "Ask which hosts' packets cross this link" } }
        }
    }
}

/// The state of both ends now, in each of the selected fabrics.
fn missing_link(fabrics: &Fabrics, fabric: Option<&str>, id: LinkId) -> Markup {
    html! {
        p { "These two ports are not connected to each other now: " code { (id) } "." }
        @if let Some(why) = not_swept(fabrics, fabric) { p { (why) } }
        @for observation in selected(fabrics, fabric) {
            @if let Some(view) = FabricView::new(observation) {
                @if fabrics.len() > 1 { h2 { "In fabric " (view.name) } }
                ul { @for end in id.ends() { li { (end_now(view, end)) } } }
            }
        }
    }
}

fn end_now(view: FabricView<'_>, end: PortKey) -> Markup {
    let PortKey { guid, number } = end;
    let fabric = &view.snapshot.fabric;
    let Some(node) = fabric.node_by_guid(guid) else {
        return html! { "No node has the GUID " code { (guid) } "." };
    };
    let ports = ports_of(view, node);
    let Some(port) = ports.iter().find(|port| port.name.port == number) else {
        return html! {
            a href=(address::node(view.name, guid)) { (fabric.node(node).name) } " has no port " (number) "."
        };
    };
    html! {
        (components::port(view.name, &port.name)) " "
        @match (&port.peer, &port.link) {
            (Some(peer), Some(link)) => {
                @if peer.connected { "is connected to " } @else { "has no link now; it was connected to " }
                (peer.name.label()) ": "
                a href=(address::link(view.name, link)) { "link" }
                @if let Some(verdict) = &port.verdict { " (" (components::verdict(verdict)) ")" }
                "."
            }
            _ => "is not connected.",
        }
    }
}

const DEFAULT_WINDOW: WindowChoice = WindowChoice::HOURS_6;
/// The most hosts named.
const MAX_HOSTS: usize = 20;
/// The longest list of all of them, in characters.
const MAX_LIST: usize = 400;
/// The most events shown. They are marks in the plot, and more would hide it.
const MAX_EVENTS: usize = 100;

#[derive(Debug)]
struct LinkPast {
    choice: WindowChoice,
    window: Window,
    series: Vec<Series>,
    /// The latest first.
    events: Vec<Event>,
    more: bool,
    /// The link as it was last seen in the window.
    last: Option<Cable>,
}

/// What is read of a link's past.
struct PastPorts {
    /// Its id: of a plane, that of the whole link, which has the events.
    link: LinkId,
    /// The ports of all planes, which have events.
    all: Vec<PortKey>,
    /// Those whose counters are drawn: of several planes, of the worst one.
    drawn: Vec<PortKey>,
}

impl PastPorts {
    fn of(id: LinkId, detail: Option<&LinkDetail>) -> Self {
        let link = detail.and_then(|detail| detail.link.link.parse().ok()).unwrap_or(id);
        let key = |port: &PortName| Some(PortKey::new(port.guid.parse().ok()?, port.port));
        let planes = detail.into_iter().flat_map(|detail| &detail.link.planes);
        let all: Vec<_> = planes.flat_map(|plane| &plane.ports).filter_map(key).collect();
        if all.is_empty() {
            let ends = link.ends().to_vec();
            return PastPorts { link, all: ends.clone(), drawn: ends };
        }
        let shown = detail.into_iter().flat_map(|detail| &detail.ports);
        let drawn = shown.filter_map(|port| key(&port.name)).collect();
        PastPorts { link, all, drawn }
    }
}

impl LinkPast {
    /// Reads it from the history; of one fabric, if that is known.
    fn read(
        reader: &Reader,
        wanted: &PastPorts,
        fabric: Option<&str>,
        choice: WindowChoice,
        end: Option<SystemTime>,
    ) -> Result<Self, SourceError> {
        let id = wanted.link;
        let window = choice.recorded(end, reader)?;
        let cables = reader.cables(&id.ends(), window)?;
        let in_fabric = |end: &PastPort| fabric.is_none_or(|fabric| fabric == end.fabric);
        let last =
            cables.into_iter().find(|cable| cable.link() == id && cable.ends.iter().all(in_fabric));
        // Several fabrics may have had a link with this id: show one of them.
        let fabric = fabric.or(last.as_ref().map(|cable| &*cable.ends[0].fabric));
        let is_its = |other: &str| fabric.is_none_or(|fabric| fabric == other);
        let filter = EventFilter { ports: wanted.all.clone(), ..EventFilter::all(window) };
        // Events of another link at one of these ports are not this link's.
        let matches = |it: &Event| is_its(&it.fabric) && it.link.is_none_or(|link| link == id);
        let (events, more) = reader.latest(&filter, &matches, 0, MAX_EVENTS)?;
        let mut series = reader.series(&wanted.drawn, SeriesDetail::All, window)?;
        series.retain(|series| is_its(&series.port.fabric));
        Ok(LinkPast { choice, window, series, events, more, last })
    }
}

fn history(past: &HistoryAnswer<LinkPast>, id: LinkId, fabric: &str, clock: &LocalClock) -> Markup {
    html! {
        h2 #history { "History" }
        @match past {
            Err(why) => (why),
            Ok(past) => {
                nav .windows aria-label="Period" { ul {
                    // Up to a week. Reports have longer windows.
                    @for WindowChoice { name, .. } in &WindowChoice::ALL[..4] { li {
                        a href=(address::with(&format!("/link/{id}"), &[("fabric", fabric), ("window", name)]))
                            aria-current=[(*name == past.choice.name).then_some("true")] { (name) }
                    } }
                } }
                @let earliest_first: Vec<Event> = past.events.iter().rev().cloned().collect();
                @let place = past.last.as_ref().map_or_else(|| id.to_string(), Cable::label);
                @let timeline = LinkTimeline { link: id, place: &place, series: &past.series, events: &earliest_first };
                @match plot::draw(timeline, past.window, clock) {
                    Some(picture) => {
                        div .wide tabindex="0" role="group" aria-label="Timeline" { (picture) }
                        p .quiet { "Time zone: " (clock.zone()) "." @if timeline.errors(past.window, 1).is_empty() { " No link errors or discards at either end in this period." } }
                    }
                    None => p .quiet { "No data in this period." },
                }
                h2 { "Events" }
                @if past.events.is_empty() {
                    p .quiet { "No events in this period." }
                } @else {
                    (components::event_table(clock, &past.events, false))
                }
                @if past.more {
                    @let id = id.to_string();
                    p { a href=(address::with(address::EVENTS, &[("fabric", fabric), ("q", &id), ("window", past.choice.name)])) { "All events of this link" } }
                }
            }
        }
    }
}
