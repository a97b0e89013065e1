//! `/topology`: the switches of a fabric and the links between them, as a picture whose colors show what a mask chooses,
//! and as a table. The table has the worst switches by themselves, also where the picture puts several into one box, and
//! screen readers can read it. `/topology.svg` is the picture as a file.

mod card;
mod changes;
mod choice;
mod coloring;
mod file;
mod layout;
mod legend;
mod map;
mod masks;
mod over;
mod picture;
mod recorded_errors;

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use fabric_api as api;
use fabric_api::model::{CUT_OFF, Condition, DOWN, Suspect, Switch, Topology};
use fabric_api::topology::Wiring;
use fabric_api::{FabricView, LiveState, address};
use fabric_history::local_clock::LocalClock;
use fabric_observation::Observation;
use ib_health::Verdict;
use maud::{Markup, html};

use crate::changes::{DIFF, USUAL, find};
use crate::components;
use crate::history_queries;
use crate::page::{Answer, Live, NOT_YET, Page, Problem, check_fabric, not_swept, render};
use crate::query_params::{QueryParams, QueryResult};
use crate::state::PageState;
use changes::Compared;
use choice::{ErrorWindow, MAX_OPEN, MapChoice, Mask, Opened};
use layout::{Panel, level_name};
use map::Map;
use masks::{Errors, coloring};
use picture::Medium;
use recorded_errors::RecordedErrors;

/// The most suspect links listed. The list of links has all.
const MAX_SUSPECTS: usize = 40;
/// The most switches of the table. The list of switches has all.
const MAX_SWITCHES: usize = 100;
/// The most pairs of hosts without a switch.
const MAX_PAIRS: usize = 100;
/// How long the page waits for the errors of a window of the history.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(10);

/// What a request asks for.
struct Asked {
    live: Arc<LiveState>,
    fabric: Option<String>,
    choice: MapChoice,
    errors: Errors,
    compared: Compared,
}

impl Asked {
    /// Reads the address, and the errors if the mask needs those of the history.
    async fn read(app: &PageState, query: QueryResult) -> Result<Self, Problem> {
        let query = QueryParams::from(query);
        let live = Arc::clone(&app.live);
        let fabrics = &live.state.fabrics;
        check_fabric(fabrics, query.get("fabric"))?;
        let choice = MapChoice::parse(&query)
            .map_err(|text| Problem(StatusCode::BAD_REQUEST, "Invalid choice", text))?;
        let choice = if live.state.as_of.is_some() { choice.of_past() } else { choice };
        let fabric = api::selected(fabrics, query.get("fabric")).next().map(|it| it.fabric.clone());
        let errors = match (choice.window, fabric.clone()) {
            (ErrorWindow::Recorded(window), Some(fabric)) if choice.mask == Mask::Errors => {
                let end = app.end();
                let read = move |reader: &_| RecordedErrors::read(reader, &fabric, window, end);
                let history = &app.history;
                Errors::Recorded(history_queries::run_within(HISTORY_TIMEOUT, history, read).await)
            }
            (ErrorWindow::Evaluated(window), _) => Errors::Evaluated(window),
            (ErrorWindow::Recorded(_), _) => Errors::unused(),
        };
        let mut compared = Compared::default();
        if let (Mask::Changes, Some(fabric)) = (choice.mask, &fabric) {
            let diff = query.get(DIFF).unwrap_or(USUAL);
            let found = find(app, diff, Some(fabric.clone())).await?;
            compared = Compared::of(&found, fabric, &LocalClock::now());
        }
        Ok(Asked { live, fabric, choice, errors, compared })
    }

    fn observation(&self) -> Option<&Arc<Observation>> {
        api::selected(&self.live.state.fabrics, self.fabric.as_deref()).next()
    }

    /// The map, after the first sweep.
    fn map(&self) -> Option<Map<'_>> {
        let view = FabricView::new(self.observation()?)?;
        let clock = components::clock(&self.live.state);
        let mut coloring = coloring(view, self.choice.mask, &self.errors, &self.compared, &clock);
        if self.choice.is_past && self.choice.mask == Mask::Temperature {
            coloring.scale.unknown = "temperatures are not recorded";
        }
        Some(Map::new(Wiring::new(view), coloring, self.choice.clone()))
    }
}

/// The panels of what is open; what is too much is left out.
fn panels<'a>(map: &Map<'a>) -> Vec<Panel<'a>> {
    layout::panels(map, &map.choice.open)
}

pub(super) async fn get(app: PageState, query: QueryResult) -> Answer {
    let asked = Asked::read(&app, query).await?;
    let page = move || {
        let fabrics = &asked.live.state.fabrics;
        let shown = asked.fabric.as_deref();
        let main = html! {
            (components::fabric_tabs(&asked.choice.of_fabrics(), fabrics, shown))
            @match not_swept(fabrics, shown) {
                Some(why) => p { (why) },
                None => @if let (Some(map), Some(observation)) = (asked.map(), asked.observation()) {
                    @let clock = components::clock(&asked.live.state);
                    (section(&map, &api::condition::condition(observation), &clock))
                },
            }
        };
        Page::new("Topology", address::TOPOLOGY, main).live(Live::Yes).respond()
    };
    Ok(render(page).await)
}

/// The picture as a file.
pub(super) async fn svg(app: PageState, query: QueryResult) -> Answer {
    let asked = Asked::read(&app, query).await?;
    let file = move || -> Response {
        let Some(map) = asked.map() else {
            let why = not_swept(&asked.live.state.fabrics, asked.fabric.as_deref());
            let why = why.unwrap_or(NOT_YET).to_owned();
            return Problem(StatusCode::NOT_FOUND, "No topology", why).into_response();
        };
        let swept_at = map.wiring.view.swept_at();
        file::respond(&map, &panels(&map), swept_at.as_deref())
    };
    Ok(render(file).await)
}

fn section(map: &Map<'_>, condition: &Condition, clock: &LocalClock) -> Markup {
    let topology = map.wiring.topology();
    html! {
        p .gist { (components::headline(condition)) }
        (gist(&topology))
        @if !topology.switches.is_empty() {
            (choices(map))
            (legend::on_page(map))
            (on_page(map))
        }
        (switchless_pairs(&topology))
        (suspects(&topology))
        @if !topology.switches.is_empty() { (table(map, &topology, clock)) }
    }
}

/// The masks, the windows of errors, and the file.
fn choices(map: &Map<'_>) -> Markup {
    let choice = &map.choice;
    html! { div .choices {
        nav .tabs aria-label="Mask" { ul { @for mask in Mask::ALL { li {
            a href=(choice.with_mask(mask)) aria-current=[(mask == choice.mask).then_some("true")] title=(mask.help()) {
                (components::capitalized(mask.label()))
            }
        } } } }
        p {
            a href=(choice.address(address::TOPOLOGY_SVG)) { "Download as SVG" }
            @if !choice.open.is_empty() { " · " a href=(choice.all_closed()) { "Close all" } }
            @if choice.mask == Mask::Changes { " · " a href=(choice.list_of_changes()) { "List of changes" } }
        }
        @if let Some(chosen) = choice.error_window() {
            nav .windows aria-label="Window" { ul { @for window in choice.windows() { li {
                a href=(choice.with_window(window)) aria-current=[(window == chosen).then_some("true")] { (window.label()) }
            } } } }
        }
    } }
}

fn on_page(map: &Map<'_>) -> Markup {
    let panels = panels(map);
    let (drawn, height) = picture::draw(map, &panels, Medium::Page, 0.0);
    let about = format!("{}. The table below has the switches.", file::title(map));
    html! {
        (unopened(map))
        a .unseen href="#switches" { "Skip the picture" }
        div #map .wide tabindex="0" role="group" aria-label="Picture" {
            svg .wiring viewBox={ "0 0 " (layout::WIDTH) " " (height) } role="group" aria-label=(about) { (drawn) }
        }
    }
}

/// What the address opens but the map does not show.
fn unopened(map: &Map<'_>) -> Markup {
    let open = &map.choice.open;
    let opened = open.iter().map(|opened| {
        let (Opened::Switch(guid) | Opened::Group(guid)) = opened;
        (opened, guid)
    });
    let missing = opened.filter(|(_, guid)| map.place(**guid).is_none());
    html! {
        @for (opened, guid) in missing {
            p .quiet {
                "No switch of this fabric has the GUID " code { (guid) } ". "
                a href=(map.choice.closed(*opened)) { "Remove it" }
            }
        }
        @if map.choice.not_opened > 0 {
            p .quiet { "At most " (MAX_OPEN) " parts are open at a time. Not shown: " (map.choice.not_opened) " of the address." }
        }
    }
}

fn gist(topology: &Topology) -> Markup {
    let (between, to_hosts) = (&topology.switch_links, &topology.host_links);
    html! {
        p .gist {
            (topology.fabric) ": " (components::plural(topology.switches.len(), "switch"))
            @if between.count() > 0 { " · between switches: " (card::links(between)) }
            @if to_hosts.count() > 0 { " · to hosts: " (card::links(to_hosts)) }
        }
        @if let Some(swept) = &topology.swept_at { p .quiet { "As of " (components::timestamp_and_age(&LocalClock::now(), swept, None)) "." } }
    }
}

fn switchless_pairs(topology: &Topology) -> Markup {
    let fabric = &topology.fabric;
    html! { @if !topology.switchless.is_empty() {
        h2 { "Links without a switch" }
        ul .pairs { @for pair in topology.switchless.iter().take(MAX_PAIRS) { li {
            @for (place, (guid, name)) in pair.nodes.iter().enumerate() {
                @if place > 0 {
                    " — "
                    @if let (Some(link), Some(verdict)) = (&pair.link, &pair.verdict) {
                        a href=(address::link(fabric, link)) { (components::verdict(verdict)) } " — "
                    }
                }
                (components::node(fabric, guid, name))
            }
        } } }
        @if topology.switchless.len() > MAX_PAIRS { p .quiet { (topology.switchless.len() - MAX_PAIRS) " more." } }
    } }
}

fn suspects(topology: &Topology) -> Markup {
    let between = topology.bundles.iter().flat_map(|bundle| &bundle.suspects);
    let to_hosts = topology.switches.iter().flat_map(|switch| &switch.host_suspects);
    let mut suspects: Vec<&Suspect> = between.chain(to_hosts).collect();
    suspects.sort_by_key(|suspect| {
        (std::cmp::Reverse(Verdict::from_label(&suspect.verdict)), &suspect.link)
    });
    // The planes of a link join several switches, each of which lists it.
    suspects.dedup_by_key(|suspect| &suspect.link);
    let fabric = &topology.fabric;
    html! {
        @if !suspects.is_empty() {
            h2 { "Bad and degraded links" }
            ul .pairs { @for suspect in suspects.iter().take(MAX_SUSPECTS) { li {
                (components::verdict(&suspect.verdict)) " "
                a href=(address::link(fabric, &suspect.link)) { (suspect.name) }
            } } }
            @if suspects.len() > MAX_SUSPECTS {
                p { a href=(address::with(address::LINKS, &[("fabric", fabric)])) { "All links" } }
            }
        }
    }
}

fn table(map: &Map<'_>, topology: &Topology, clock: &LocalClock) -> Markup {
    html! {
        h2 #switches { @if topology.switches.len() <= MAX_SWITCHES { "All switches" } @else { "Switches" } }
        div .wide tabindex="0" role="group" aria-label="Switches" { table .stack {
            thead { tr {
                th scope="col" { "Switch" } th scope="col" { "Level" } th .n scope="col" { "Uplinks" } th .n scope="col" { "Same level" }
                th .n scope="col" { "Downlinks" } th .n scope="col" { "HCAs" } th scope="col" { "Worst link" } th scope="col" { "Congestion on its links" }
            } }
            tbody { @for switch in worst_first(&topology.switches).into_iter().take(MAX_SWITCHES) { (row(map, switch, clock)) } }
        } }
        @if topology.switches.len() > MAX_SWITCHES { p {
            "These are the worst. " a href=(address::with(address::SWITCHES, &[("fabric", map.fabric())])) {
                "All " (components::grouped(topology.switches.len() as u64)) " switches"
            }
        } }
    }
}

/// What is down first, then by the worst link.
fn worst_first(switches: &[Switch]) -> Vec<&Switch> {
    let mut sorted: Vec<&Switch> = switches.iter().collect();
    let worst = |switch: &Switch| {
        switch.verdicts.worst_first().into_iter().position(|(_, links)| links > 0)
    };
    sorted.sort_by_key(|switch| (switch.up, worst(switch).unwrap_or(usize::MAX)));
    sorted
}

fn row(map: &Map<'_>, switch: &Switch, clock: &LocalClock) -> Markup {
    let fabric = map.fabric();
    let number = |name: &str, count: usize| {
        html! { td .n data-label=(name) { @if count > 0 { (count) } } }
    };
    html! {
        tr #(switch.guid) {
            th scope="row" data-label="Switch" {
                (components::node(fabric, &switch.guid, &switch.node))
                @if !switch.up {
                    " " (components::state(if switch.behind.is_some() { CUT_OFF } else { DOWN }))
                    @if let Some(at) = &switch.down_since { " " span .quiet { (components::lasting(clock, at)) } }
                    @if let Some(by) = &switch.behind { ", behind " (components::node(fabric, &by.guid, &by.node)) }
                    @if switch.hosts_down > 0 { ", " (components::plural(switch.hosts_down, "HCA")) " cut off" }
                }
            }
            td data-label="Level" { (level_name(switch.level, map.top_level())) }
            (number("Uplinks", switch.up_links)) (number("Same level", switch.side_links))
            (number("Downlinks", switch.down_links)) (number("HCAs", switch.hosts))
            td data-label="Worst link" { (components::verdict(switch.verdicts.worst_shown())) }
            td data-label="Congestion on its links" { @if switch.congestion.is_any() { (card::congestion(&switch.congestion)) } }
        }
    }
}

#[cfg(test)]
mod tests;
