//! The history of a running exporter, over HTTP: its API has the same queries as the file.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fabric_history::HistoryError;
use fabric_history::cable_life::CableMatches;
use fabric_history::history_query::{self, DUMP, HistoryQuery, PATH};
use fabric_history::model::{
    Cable, Coverage, ErrorDelta, Event, FabricState, Port, Series, Span, Window,
};
use fabric_history::source::{
    Answer, EventFilter, Events, Page, SeriesDetail, Source, SourceError, for_each_event,
};
use ib_fabric::reference::Reference;
use ib_mad::{Guid, PortKey, PortNumber};
use serde::de::DeserializeOwned;

use crate::remote::{self, Access, Remote, one_line};
use fabric_api::model::{Hit, HitKind, Search};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(150);
/// Timeout until a copy is made: one of 1 GB takes some ten seconds.
const COPY_TIMEOUT: Duration = Duration::from_secs(1_800);
const MAX_RESPONSE: u64 = 256 << 20;
/// How many ports a request may have: proxies take addresses of 8 KiB.
const MAX_PORTS: usize = 200;
const ADVICE: &str = "is this an exporter with --history.file?";

/// An exporter at an address.
#[derive(Clone, Debug)]
pub struct HistoryClient {
    remote: Remote,
}

impl HistoryClient {
    /// The exporter at `http://host:10315`, or behind a path; the error says what is wrong with it.
    pub fn new(url: &str, access: &Access) -> Result<Self, String> {
        Ok(HistoryClient { remote: Remote::new(url, access, CONNECT_TIMEOUT, RESPONSE_TIMEOUT)? })
    }

    fn query<T: DeserializeOwned>(&self, query: &HistoryQuery) -> Answer<T> {
        let path = format!("{PATH}/{}", query.name());
        match self.get(&path, &query.pairs())? {
            (200, body) => serde_json::from_slice(&body).map_err(|error| {
                self.problem(format!("the response is not a history ({error}): {ADVICE}"))
            }),
            (status, body) => Err(self.refusal(status, &body)),
        }
    }

    /// Requests a copy of a window, and writes it into a local file while it arrives, without a timeout.
    pub fn dump(&self, window: Window, file: &Path) -> Answer<()> {
        let failed = HistoryError::io(file, "write it");
        let mut out = std::fs::File::create(file).map_err(failed)?;
        let config = self.remote.request(DUMP, &history_query::window(window)).config();
        let request = config.timeout_global(None).timeout_recv_response(Some(COPY_TIMEOUT)).build();
        let mut response = request.call().map_err(|error| self.failure(&error))?;
        if response.status() != 200 {
            let read = remote::body(&mut response, MAX_RESPONSE);
            let (status, body) = read.map_err(|error| self.failure(&error))?;
            return Err(self.refusal(status, &body));
        }
        let length = response.body().content_length();
        let copied = std::io::copy(&mut response.body_mut().as_reader(), &mut out)
            .map_err(|error| self.problem(format!("download failed: {error}")))?;
        if let Some(length) = length.filter(|length| *length != copied) {
            let problem = format!("download ended after {copied} of {length} bytes");
            return Err(self.problem(problem));
        }
        Ok(out.sync_all().map_err(failed)?)
    }

    /// The nodes and ports that a LID or GUID means at present, by the GUIDs of their nodes.
    fn present(&self, text: &str) -> Answer<Vec<String>> {
        let (status, body) = self.get("/api/v1/search", &[("q", text.to_owned())])?;
        if status != 200 {
            return Err(self.refusal(status, &body));
        }
        let found: Search = serde_json::from_slice(&body).map_err(|error| {
            self.problem(format!("the response is not a list of search results ({error})"))
        })?;
        let hits = found.hits.iter().filter(|hit| hit.quality == "exact");
        let called = hits.filter_map(place_of).map(|place| match place {
            (guid, None) => guid.to_string(),
            (guid, Some(number)) => format!("{guid}[{number}]"),
        });
        Ok(called.collect())
    }

    fn get(&self, path: &str, pairs: &[(&str, String)]) -> Answer<(u16, Vec<u8>)> {
        self.remote.read(path, pairs, MAX_RESPONSE).map_err(|error| self.failure(&error))
    }

    /// The error for a request without a response, or with one that cannot be read.
    fn failure(&self, error: &ureq::Error) -> SourceError {
        let hint = match error {
            ureq::Error::BodyExceedsLimit(_) => {
                let most = MAX_RESPONSE >> 20;
                let problem = format!("response larger than {most} MiB: use a shorter period");
                return self.problem(problem);
            }
            ureq::Error::Io(io) if io.kind() == ErrorKind::ConnectionRefused => {
                "; is an exporter running there?"
            }
            _ => "",
        };
        let reason = one_line(&Remote::reason(error));
        self.problem(format!("request failed: {reason}{hint}"))
    }

    /// The error for a response whose status is not 200.
    fn refusal(&self, status: u16, body: &[u8]) -> SourceError {
        self.problem(match status {
            401 => "login required: use https://USER@HOST and --source.password-file".into(),
            // Prometheus, Thanos and Mimir answer 404 to a path that they do not have, VictoriaMetrics 400.
            400 | 404 if self.is_prometheus() => {
                "this is Prometheus, not an exporter: use the address of an exporter that records, such as \
                 http://127.0.0.1:10315, or its file (--file)"
                    .into()
            }
            // An error in one line is the exporter's own.
            400..600 if is_ours(body) => one_line(&String::from_utf8_lossy(body)),
            status => format!("HTTP status {status}: {ADVICE}"),
        })
    }

    /// Whether a Prometheus, or a server with the same API, answers at the address.
    fn is_prometheus(&self) -> bool {
        let Ok((200, body)) = self.get("/api/v1/status/buildinfo", &[]) else {
            return false;
        };
        let answer = serde_json::from_slice::<serde_json::Value>(&body);
        answer.is_ok_and(|answer| answer["status"] == "success")
    }

    fn problem(&self, problem: impl Into<String>) -> SourceError {
        SourceError::Address(self.remote.name().to_owned(), problem.into())
    }
}

/// A place in a fabric: a node, or one of its ports.
pub(crate) type Place = (Guid, Option<PortNumber>);

/// The node or port that a search found.
pub(crate) fn place_of(hit: &Hit) -> Option<Place> {
    let guid = hit.id.parse().ok()?;
    match hit.hit_kind()? {
        HitKind::Node => Some((guid, None)),
        HitKind::Port => Some((guid, Some(Reference::new(&hit.name).ports.first()?.number))),
        HitKind::Link | HitKind::Device => None,
    }
}

/// Whether an error is in one line, as the exporter writes them, and not another server's page.
fn is_ours(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_end();
    !text.is_empty() && text.lines().count() == 1 && !text.starts_with(['<', '{'])
}

impl Source for HistoryClient {
    fn name(&self) -> String {
        self.remote.name().to_owned()
    }

    fn span(&self) -> Answer<Span> {
        self.query(&HistoryQuery::Span)
    }

    fn ports(&self, called: &str) -> Answer<Vec<Port>> {
        let ports: Vec<Port> = self.query(&HistoryQuery::Ports(called.to_owned()))?;
        let reference = Reference::new(called);
        // Names of ports at front panels have slashes or are a word of their own.
        let may_be_front_panel = || called.contains(['/', ' ', '[', ':']);
        let is_by_name = reference.lid.is_none() && reference.guid.is_none();
        if !ports.is_empty() || is_by_name && !may_be_front_panel() {
            return Ok(ports);
        }
        // A LID, the GUID of a port, or a name at a front panel: a history does not have them, but the exporter knows
        // the present ones.
        let mut ports = Vec::new();
        for called in self.present(called)? {
            ports.extend(self.query::<Vec<Port>>(&HistoryQuery::Ports(called))?);
        }
        Ok(ports)
    }

    fn events(&self, filter: &EventFilter) -> Answer<Vec<Event>> {
        let mut all: Vec<Event> = Vec::new();
        if filter.ports.len() + filter.nodes.len() <= MAX_PORTS {
            for_each_event(self, filter, &mut |event| all.push(event))?;
            return Ok(all);
        }
        // With both, the file selects the events that are about both.
        if !filter.nodes.is_empty() && !filter.ports.is_empty() {
            return Err(self.problem(
                "too many nodes and ports for one request: select by node or by link, not both",
            ));
        }
        let rest = EventFilter { nodes: Vec::new(), ports: Vec::new(), ..filter.clone() };
        let nodes = filter.nodes.chunks(MAX_PORTS);
        let nodes = nodes.map(|some| EventFilter { nodes: some.to_vec(), ..rest.clone() });
        let ports = filter.ports.chunks(MAX_PORTS);
        let ports = ports.map(|some| EventFilter { ports: some.to_vec(), ..rest.clone() });
        for part in nodes.chain(ports) {
            for_each_event(self, &part, &mut |event| all.push(event))?;
        }
        // An event about two of the ports was returned twice.
        all.sort_by_key(|event| event.at);
        let mut unique: Vec<Event> = Vec::with_capacity(all.len());
        for event in all {
            let mut same_time = unique.iter().rev().take_while(|before| before.at == event.at);
            if !same_time.any(|before| *before == event) {
                unique.push(event);
            }
        }
        Ok(unique)
    }

    fn page(&self, filter: &EventFilter, page: Page) -> Answer<Events> {
        self.query(&HistoryQuery::Events(filter.clone(), page))
    }

    fn cables(&self, ports: &[PortKey], window: Window) -> Answer<Vec<Cable>> {
        let mut cables: Vec<Cable> = Vec::new();
        for some in ports.chunks(MAX_PORTS) {
            cables.extend(self.query::<Vec<Cable>>(&HistoryQuery::Cables(window, some.to_vec()))?);
        }
        let mut seen = std::collections::BTreeSet::new();
        cables.retain(|cable| seen.insert(cable.link()));
        Ok(cables)
    }

    fn error_deltas(&self, window: Window) -> Answer<Vec<ErrorDelta>> {
        self.query(&HistoryQuery::ErrorDeltas(window))
    }

    fn series(
        &self,
        ports: &[PortKey],
        detail: SeriesDetail,
        window: Window,
    ) -> Answer<Vec<Series>> {
        let mut series = Vec::new();
        for some in ports.chunks(MAX_PORTS) {
            let query = HistoryQuery::Series(window, some.to_vec(), detail);
            series.extend(self.query::<Vec<Series>>(&query)?);
        }
        Ok(series)
    }

    fn fabrics(&self, at: SystemTime) -> Answer<Vec<FabricState>> {
        self.query(&HistoryQuery::Fabrics(at))
    }

    fn cable(&self, serial: &str) -> Answer<CableMatches> {
        self.query(&HistoryQuery::Cable(serial.to_owned()))
    }

    fn coverage(&self, window: Window) -> Answer<Coverage> {
        self.query(&HistoryQuery::Coverage(window))
    }
}
