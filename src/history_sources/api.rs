//! A running exporter as a source: its API has the same questions, and answers what its file says.

use std::path::Path;
use std::time::SystemTime;

use serde::de::DeserializeOwned;

use crate::remote::Access;
use ib_fabric::topology::End;

use super::http::{Address, line};
use fabric_history::HistoryError;
use fabric_history::model::{Cable, Coverage, ErrorDelta, Port, Series, Span, FabricState, Event, Window};
use fabric_history::page::{Cursor, Events, Page};
use fabric_history::history_query;
use fabric_history::history_query::{DUMP, PATH, HistoryQuery};
use fabric_history::source::{SourceError, SeriesDetail, PagedSource, Source, EventFilter};

/// What to check where nothing better is known.
const ADVICE: &str = "is it an exporter that records (--history.file)?";

/// How many ports are asked for at once: proxies take addresses of 8 KiB.
const AT_ONCE: usize = 200;

/// An exporter at an address.
#[derive(Clone, Debug)]
pub struct Api {
    address: Address,
}

impl Api {
    /// The exporter at `http://host:10315`, or behind a path; the error says what is wrong with it.
    pub fn new(url: &str, access: &Access) -> Result<Self, String> {
        Ok(Api { address: Address::new(url, access)? })
    }

    fn ask<T: DeserializeOwned>(&self, question: &HistoryQuery) -> Result<T, SourceError> {
        let path = format!("{PATH}/{}", question.name());
        let (status, body) = self.address.get(&path, &question.pairs())?;
        match status {
            200 => serde_json::from_slice(&body).map_err(|error| {
                let problem = format!("what it answers is no history ({error}): {ADVICE}");
                self.address.problem(problem)
            }),
            status => Err(self.refusal(status, &body)),
        }
    }

    /// The error for an answer whose status is not 200.
    fn refusal(&self, status: u16, body: &[u8]) -> SourceError {
        self.address.problem(match status {
            401 => "wants a login: https://USER@HOST with --source.password-file".into(),
            // Prometheus, Thanos and Mimir answer 404 to a path that they do not have, VictoriaMetrics 400.
            400 | 404 if self.is_prometheus() => {
                "is a Prometheus, not an exporter: name the address of an exporter that records, such as \
                 http://127.0.0.1:10315, or its file (--file)"
                    .into()
            }
            // One line that says what is the matter is the exporter's own.
            400..600 if is_ours(body) => line(&String::from_utf8_lossy(body)),
            status => format!("answers {status}: {ADVICE}"),
        })
    }

    /// Whether a Prometheus, or a server with the same API, answers at the address.
    fn is_prometheus(&self) -> bool {
        let Ok((200, body)) = self.address.get("/api/v1/status/buildinfo", &[]) else {
            return false;
        };
        let answer = serde_json::from_slice::<serde_json::Value>(&body);
        answer.is_ok_and(|answer| answer["status"] == "success")
    }
}

impl Api {
    /// All events that are wanted, page after page.
    fn pages(&self, wanted: &EventFilter) -> Result<Vec<Event>, SourceError> {
        let (mut told, mut after) = (Vec::new(), None::<Cursor>);
        loop {
            let Events { events, next } = self.page(wanted, Page::largest(after))?;
            told.extend(events);
            if next.is_none() {
                return Ok(told);
            }
            if next <= after {
                return Err(self
                    .address
                    .problem("returns the same page of events again and again"));
            }
            after = next;
        }
    }

    /// Has a copy of a window made there, and writes it into a file here.
    pub fn dump(&self, window: Window, file: &Path) -> Result<(), SourceError> {
        let failed = |error| HistoryError::Io { path: file.into(), doing: "write it", error };
        let mut out = std::fs::File::create(file).map_err(failed)?;
        let status = self.address.save(DUMP, &question::window(window), &mut out)?;
        out.sync_all().map_err(failed)?;
        status.map_err(|(status, body)| self.refusal(status, &body))
    }
}

/// Whether an error is in one line, as the exporter writes them, and no page of somebody else's.
fn is_ours(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_end();
    !text.is_empty() && text.lines().count() == 1 && !text.starts_with(['<', '{'])
}

impl PagedSource for Api {
    fn page(&self, wanted: &EventFilter, page: Page) -> Result<Events, SourceError> {
        self.ask(&HistoryQuery::Events(wanted.clone(), page))
    }
}

impl Source for Api {
    fn name(&self) -> String {
        self.address.name()
    }

    fn span(&self) -> Result<Span, SourceError> {
        self.ask(&HistoryQuery::Span)
    }

    fn ports(&self, called: &str) -> Result<Vec<Port>, SourceError> {
        self.ask(&HistoryQuery::Ports(called.to_owned()))
    }

    fn events(&self, wanted: &EventFilter) -> Result<Vec<Event>, SourceError> {
        if wanted.ports.len() + wanted.nodes.len() <= AT_ONCE {
            return self.pages(wanted);
        }
        let mut told: Vec<Event> = Vec::new();
        let blank = EventFilter { nodes: Vec::new(), ports: Vec::new(), ..wanted.clone() };
        let nodes = wanted.nodes.chunks(AT_ONCE);
        let nodes = nodes.map(|some| EventFilter { nodes: some.to_vec(), ..blank.clone() });
        let ports = wanted.ports.chunks(AT_ONCE);
        let ports = ports.map(|some| EventFilter { ports: some.to_vec(), ..blank.clone() });
        // The file wants both where both are said.
        let both = !wanted.nodes.is_empty() && !wanted.ports.is_empty();
        if both {
            return Err(self
                .address
                .problem("nodes and ports are too many to be asked for at once"));
        }
        for some in nodes.chain(ports) {
            told.extend(self.pages(&some)?);
        }
        // What is about two of the ports was told twice.
        told.sort_by_key(|event| event.at);
        let mut once: Vec<Event> = Vec::with_capacity(told.len());
        for event in told {
            let mut same = once.iter().rev().take_while(|before| before.at == event.at);
            if !same.any(|before| *before == event) {
                once.push(event);
            }
        }
        Ok(once)
    }

    fn cables(&self, ports: &[End], window: Window) -> Result<Vec<Cable>, SourceError> {
        let mut cables: Vec<Cable> = Vec::new();
        for some in ports.chunks(AT_ONCE) {
            cables.extend(self.ask::<Vec<Cable>>(&HistoryQuery::Cables(some.to_vec(), window))?);
        }
        let mut seen = std::collections::BTreeSet::new();
        cables.retain(|cable| seen.insert(cable.link()));
        Ok(cables)
    }

    fn error_deltas(&self, window: Window) -> Result<Vec<ErrorDelta>, SourceError> {
        self.ask(&HistoryQuery::ErrorDeltas(window))
    }

    fn series(
        &self,
        ports: &[End],
        detail: SeriesDetail,
        window: Window,
    ) -> Result<Vec<Series>, SourceError> {
        let mut series = Vec::new();
        for some in ports.chunks(AT_ONCE) {
            let question = HistoryQuery::Series(some.to_vec(), detail, window);
            series.extend(self.ask::<Vec<Series>>(&question)?);
        }
        Ok(series)
    }

    fn fabrics(&self, at: SystemTime) -> Result<Vec<FabricState>, SourceError> {
        self.ask(&HistoryQuery::Fabrics(at))
    }

    fn coverage(&self, window: Window) -> Result<Coverage, SourceError> {
        self.ask(&HistoryQuery::Coverage(window))
    }
}
