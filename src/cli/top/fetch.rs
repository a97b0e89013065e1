//! What `top` shows, requested from an exporter or from own sweeps: only what is on the screen.

use ib_mad::PortKey;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime};

use crate::cli::past::PastArgs;
use crate::cli::source::{FabricSource, SourceArgs, is_at};
use crate::exit::Fatal;
use crate::history_client::Place;
use fabric_api::links::links;
use fabric_api::model::{
    BusyLink, Label, Link, LinkDetail, Links, Overview, PortName, Region, Traffics,
};
use fabric_api::overview::overview;
use fabric_api::ports::link_by_id;
use fabric_api::traffic::traffics;
use fabric_api::{Filter, LINKS, TRAFFIC};
use fabric_history::cursor::Cursor;
use fabric_history::model::{Event, Window};
use fabric_history::source::{EventFilter, Page};
use ib_fabric::reference::Reference;
use ib_fabric::topology::LinkId;

use super::request::{Request, Tab, Target};

/// How many rows a view has: more do not help a person, and would cost the exporter time.
pub const MAX_ROWS: usize = 100;

/// How far back events are listed.
const EVENTS_SINCE: Duration = Duration::from_secs(3600);

/// A page is some 250 kB.
const EVENTS_PER_PAGE: NonZeroUsize = NonZeroUsize::new(500).unwrap();

/// How many events are kept: a filter may select few of them.
const MAX_EVENTS: usize = 5_000;

/// The response to a request.
#[derive(Debug)]
pub struct Response {
    pub request: Request,
    pub result: Result<Data, Fatal>,
}

/// What is shown.
#[derive(Debug, Default)]
pub struct Data {
    pub overview: Overview,
    pub body: Body,
}

/// The rows of a view.
#[derive(Debug)]
pub enum Body {
    /// The worst links.
    Cables(Vec<Link>),
    /// The busiest directions of links.
    Traffic(Vec<BusyLink>),
    /// Congestion regions.
    Congestion(Vec<Region>),
    /// Events, the latest first; or why there are none.
    Events(Vec<Event>, Option<String>),
    /// A link with both ports, and what each counter counted since the reading before.
    Detail(Box<LinkDetail>, [Deltas; 2]),
}

impl Default for Body {
    fn default() -> Self {
        Body::Cables(Vec::new())
    }
}

/// Increases of counters by their names.
pub type Deltas = BTreeMap<Label, u64>;

/// The counters of a port at its latest reading, and their increases since the one before.
#[derive(Debug, Default)]
struct LastReading {
    read_at: Option<String>,
    counters: BTreeMap<Label, u64>,
    deltas: Deltas,
}

impl LastReading {
    /// Compares a reading with the one before; the same reading again changes nothing.
    fn update(&mut self, read_at: Option<&String>, counters: &BTreeMap<Label, u64>) -> Deltas {
        if self.read_at.as_ref() != read_at {
            let increase = |(name, count): (&Label, &u64)| {
                let before = self.counters.get(name)?;
                Some((name.clone(), count.checked_sub(*before).filter(|by| *by > 0)?))
            };
            self.deltas = counters.iter().filter_map(increase).collect();
            (self.read_at, self.counters) = (read_at.cloned(), counters.clone());
        }
        self.deltas.clone()
    }
}

/// Requests what is requested, again and again.
#[derive(Debug)]
pub struct Fetcher {
    pub source: FabricSource,
    /// The events of complete pages, the earliest first.
    events: VecDeque<Event>,
    /// The end of these.
    after: Option<Cursor>,
    /// The events of the last page.
    latest: Vec<Event>,
    /// The ports whose details are shown.
    last_readings: BTreeMap<(String, u8), LastReading>,
}

impl Fetcher {
    /// Connects to the exporter, or starts to sweep.
    pub fn new(args: SourceArgs, past: &PastArgs, pause: Duration) -> Result<Self, Fatal> {
        let source = args.start(pause, true, past)?;
        let (events, latest, after) = (VecDeque::new(), Vec::new(), None);
        Ok(Fetcher { source, events, after, latest, last_readings: BTreeMap::new() })
    }

    /// Answers the latest request at once and then at intervals, until the receiver of responses is gone.
    pub fn run(
        mut self,
        requested: &Receiver<Request>,
        responses: &Sender<Response>,
        pause: Duration,
    ) {
        let Ok(mut request) = requested.recv() else { return };
        loop {
            while let Ok(later) = requested.try_recv() {
                request = later;
            }
            if !request.is_paused {
                let result = self.fetch(&request);
                if responses.send(Response { request: request.clone(), result }).is_err() {
                    return;
                }
            }
            match requested.recv_timeout(pause) {
                Ok(later) => request = later,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn fetch(&mut self, request: &Request) -> Result<Data, Fatal> {
        self.source.check()?;
        let mut overview: Overview =
            self.source.get("/api/v1/overview", &Filter::default(), overview)?;
        if let Some(fabric) = request.fabric.as_ref().or(self.source.fabric.as_ref()) {
            overview.fabrics.retain(|it| it.fabric == *fabric);
        }
        let body = match &request.target {
            Some(target) => self.detail(target)?,
            None => self.rows(request, &overview)?,
        };
        Ok(Data { overview, body })
    }

    fn rows(&mut self, request: &Request, overview: &Overview) -> Result<Body, Fatal> {
        let selected = Selected::new(&self.source, &request.filter);
        let fabric = request.fabric.clone().or_else(|| self.source.fabric.clone());
        let filter = Filter {
            limit: Some(MAX_ROWS),
            name: selected.name.clone(),
            fabric: fabric.clone(),
            ..Filter::default()
        };
        Ok(match request.tab {
            Tab::Cables => {
                let found: Links =
                    self.source.get(LINKS, &filter, |state| links(&state.fabrics, &filter))?;
                let links = found.fabrics.into_iter().flat_map(|fabric| fabric.links);
                let is_wanted = |link: &Link| {
                    selected.has(link.ends.each_ref().map(|end| (&*end.guid, end.port)))
                };
                Body::Cables(links.filter(is_wanted).collect())
            }
            Tab::Traffic => {
                let found: Traffics =
                    self.source.get(TRAFFIC, &filter, |state| traffics(&state.fabrics, &filter))?;
                let traffic = found.fabrics.into_iter().filter_map(|fabric| fabric.traffic);
                let is_wanted = |link: &BusyLink| {
                    selected.has([&link.from, &link.to].map(|port| (&*port.guid, port.port)))
                };
                let links = traffic.flat_map(|traffic| traffic.busiest);
                Body::Traffic(links.filter(is_wanted).collect())
            }
            Tab::Congestion => {
                let regions = overview.fabrics.iter().flat_map(|fabric| fabric.congestion.clone());
                let is_wanted = |region: &Region| {
                    let mut ends = std::iter::once(&region.root).chain(&region.peer);
                    ends.any(|end| selected.is_at(end))
                };
                Body::Congestion(regions.filter(is_wanted).collect())
            }
            Tab::Events => {
                let problem = self.read_events().err().map(|error| error.message);
                let text = request.filter.to_lowercase();
                let is_wanted = |event: &&Event| {
                    (fabric.as_ref().is_none_or(|fabric| *fabric == event.fabric))
                        && (selected.is_about(event) || has_text(event, &text))
                };
                let events = self.events.iter().chain(&self.latest).rev();
                let events = events.filter(is_wanted).take(MAX_ROWS);
                Body::Events(events.cloned().collect(), problem)
            }
        })
    }

    /// Reads the events since the latest ones.
    fn read_events(&mut self) -> Result<(), Fatal> {
        let Some(history) = self.source.history()? else { return Ok(()) };
        let now = self.source.at().unwrap_or_else(SystemTime::now);
        let from = now.checked_sub(EVENTS_SINCE).unwrap_or(SystemTime::UNIX_EPOCH);
        // A simulated clock may be ahead of the host's.
        let ahead = || now + Duration::from_secs(365 * 24 * 3600);
        let to = self.source.at().unwrap_or_else(ahead);
        let filter = EventFilter::all(Window { from, to });
        loop {
            let page = Page { limit: EVENTS_PER_PAGE, after: self.after, ..Page::default() };
            let found = history.page(&filter, page)?;
            let Some(next) = found.next else {
                // It has no cursor yet: it is read again, with the events that are added.
                self.latest = found.events;
                return Ok(());
            };
            self.after = Some(next);
            self.events.extend(found.events);
            let surplus = self.events.len().saturating_sub(MAX_EVENTS);
            self.events.drain(..surplus);
        }
    }

    fn detail(&mut self, target: &Target) -> Result<Body, Fatal> {
        let (fabric, id) = match target {
            Target::Link(fabric, id) => (Some(fabric.as_str()), *id),
            Target::Port(name) => (None, self.link_of(name)?),
        };
        let filter = Filter { fabric: fabric.map(str::to_owned), ..Filter::default() };
        let found = self.source.get(&format!("/api/v1/links/{id}"), &filter, |state| {
            link_by_id(&state.fabrics, fabric, id)
        })?;
        let Some(detail) = found else {
            return Err(Fatal::failed(format!("no link has the id {id}")));
        };
        let mut last_readings = std::mem::take(&mut self.last_readings);
        let deltas = detail.ports.each_ref().map(|port| {
            let mut it =
                last_readings.remove(&(port.name.guid.clone(), port.name.port)).unwrap_or_default();
            let deltas = it.update(port.read_at.as_ref(), &port.counters);
            self.last_readings.insert((port.name.guid.clone(), port.name.port), it);
            deltas
        });
        Ok(Body::Detail(Box::new(detail), deltas))
    }

    /// The link at a port.
    fn link_of(&self, name: &str) -> Result<LinkId, Fatal> {
        let reference = Reference::new(name);
        if let Some(id) = reference.link {
            return Ok(id);
        }
        // Of the two ends of a link one is enough.
        let first = match &*reference.ports {
            [first, _] => Some(format!("{}[{}]", first.node, first.number)),
            _ => None,
        };
        let places = self.source.places("port", first.as_deref().unwrap_or(name))?;
        let link = places.iter().find_map(|(guid, number)| {
            let ports = self.source.node(*guid, None).ok()?.ports.into_iter();
            let mut ports = ports.filter(|port| number.is_none_or(|it| it == port.name.port));
            ports.find_map(|port| port.link?.parse().ok())
        });
        link.ok_or_else(|| Fatal::failed(format!("{name} has no link")))
    }
}

/// What a filter selects: a part of a node's name, or a node, port or link in any spelling.
struct Selected {
    /// The part of the name that is requested; the exporter does not know the other meanings.
    name: String,
    /// Nodes and ports, if the text means some.
    places: Option<Vec<Place>>,
}

impl Selected {
    fn new(source: &FabricSource, text: &str) -> Self {
        let reference = Reference::new(text);
        let is_plain = reference.ports.is_empty()
            && reference.link.is_none()
            && reference.guid.is_none()
            && reference.lid.is_none();
        let places = if is_plain { None } else { source.places("filter", text).ok() };
        if places.is_none() {
            return Selected { name: text.trim().to_owned(), places };
        }
        // What has several slashes is a port at a front panel: its node is not the text before the last one.
        let has_front_panel = reference.text.matches('/').count() > 1;
        let name = match &*reference.ports {
            [port] if !has_front_panel && port.node.parse::<ib_mad::Guid>().is_err() => {
                port.node.clone()
            }
            _ => String::new(),
        };
        Selected { name, places }
    }

    /// Whether an end of a link is selected; the exporter has selected by the name.
    fn has(&self, ends: [(&str, u8); 2]) -> bool {
        let Some(places) = &self.places else { return true };
        let is_one = |(guid, port): (&str, u8)| {
            guid.parse().is_ok_and(|guid| is_at(places, PortKey::new(guid, port)))
        };
        ends.into_iter().any(is_one)
    }

    fn is_at(&self, port: &PortName) -> bool {
        match &self.places {
            Some(_) => self.has([(&port.guid, port.port); 2]),
            None => port.node.to_lowercase().contains(&self.name.to_lowercase()),
        }
    }

    fn is_about(&self, event: &Event) -> bool {
        let Some(places) = &self.places else { return false };
        let port = event.node.map(|guid| PortKey::new(guid, event.port.unwrap_or(0)));
        let mut ends = port.into_iter().chain(event.link.into_iter().flat_map(LinkId::ends));
        ends.any(|end| is_at(places, end))
    }
}

/// Whether an event has a text.
fn has_text(event: &Event, text: &str) -> bool {
    [&event.kind, &event.place, &event.text].iter().any(|it| it.to_lowercase().contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_those_of_two_readings() {
        let counters =
            |count: u64| [("symbol_errors".into(), count), ("link_downed".into(), 1)].into();
        let (first, second) = (Some("1".to_owned()), Some("2".to_owned()));
        let mut last_readings = LastReading::default();
        assert_eq!(last_readings.update(first.as_ref(), &counters(5)), Deltas::new());
        assert_eq!(last_readings.update(first.as_ref(), &counters(5)), Deltas::new());
        let by_three: Deltas = [("symbol_errors".into(), 3)].into();
        assert_eq!(last_readings.update(second.as_ref(), &counters(8)), by_three);
        assert_eq!(
            last_readings.update(second.as_ref(), &counters(8)),
            by_three,
            "the same reading"
        );
        let third = Some("3".to_owned());
        assert_eq!(last_readings.update(third.as_ref(), &counters(2)), Deltas::new(), "a reset");
    }
}
