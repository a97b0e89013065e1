//! A running exporter as a source: its API has the same questions, and answers what its file says.

use std::path::Path;
use std::time::SystemTime;

use serde::de::DeserializeOwned;

use crate::remote::Access;
use ib_fabric::topology::End;

use super::http::{Address, line};
use fabric_history::HistoryError;
use fabric_history::model::{Cable, Cover, Moved, Port, Series, Span, Then, Told, Window};
use fabric_history::page::{Cursor, Events, Page};
use fabric_history::question;
use fabric_history::question::{DUMP, PATH, Question};
use fabric_history::source::{AskError, Detail, Paged, Source, Wanted};

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

    fn ask<T: DeserializeOwned>(&self, question: &Question) -> Result<T, AskError> {
        let path = format!("{PATH}/{}", question.name());
        let (status, body) = self.address.get(&path, &question.pairs())?;
        let said = || line(&String::from_utf8_lossy(&body));
        let advice = "is it an exporter that records (--history.file)?";
        match status {
            200 => serde_json::from_slice(&body).map_err(|error| {
                let problem = format!("what it answers is no history ({error}): {advice}");
                self.address.problem(problem)
            }),
            401 => {
                let problem = "wants a login: https://USER@HOST with --source.password-file";
                Err(self.address.problem(problem))
            }
            // One line that says what is the matter is its own.
            400..600 if is_ours(&body) => Err(self.address.problem(said())),
            status => Err(self.address.problem(format!("answers {status}: {advice}"))),
        }
    }
}

impl Api {
    /// All events that are wanted, page after page.
    fn pages(&self, wanted: &Wanted) -> Result<Vec<Told>, AskError> {
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
    pub fn dump(&self, window: Window, file: &Path) -> Result<(), AskError> {
        let failed = |error| HistoryError::Io { path: file.into(), doing: "write it", error };
        let mut out = std::fs::File::create(file).map_err(failed)?;
        let status = self.address.save(DUMP, &question::window(window), &mut out)?;
        out.sync_all().map_err(failed)?;
        match status {
            Ok(()) => Ok(()),
            Err((_, body)) if is_ours(&body) => {
                Err(self.address.problem(line(&String::from_utf8_lossy(&body))))
            }
            Err((404, _)) => Err(self.address.problem(
                "makes no copies of its history: is it an exporter that records (--history.file)?",
            )),
            Err((status, _)) => Err(self.address.problem(format!("answers {status}"))),
        }
    }
}

/// Whether an error is in one line, as the exporter writes them, and no page of somebody else's.
fn is_ours(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_end();
    !text.is_empty() && text.lines().count() == 1 && !text.starts_with(['<', '{'])
}

impl Paged for Api {
    fn page(&self, wanted: &Wanted, page: Page) -> Result<Events, AskError> {
        self.ask(&Question::Events(wanted.clone(), page))
    }
}

impl Source for Api {
    fn name(&self) -> String {
        self.address.name()
    }

    fn span(&self) -> Result<Span, AskError> {
        self.ask(&Question::Span)
    }

    fn ports(&self, called: &str) -> Result<Vec<Port>, AskError> {
        self.ask(&Question::Ports(called.to_owned()))
    }

    fn events(&self, wanted: &Wanted) -> Result<Vec<Told>, AskError> {
        if wanted.ports.len() + wanted.nodes.len() <= AT_ONCE {
            return self.pages(wanted);
        }
        let mut told: Vec<Told> = Vec::new();
        let blank = Wanted { nodes: Vec::new(), ports: Vec::new(), ..wanted.clone() };
        let nodes = wanted.nodes.chunks(AT_ONCE);
        let nodes = nodes.map(|some| Wanted { nodes: some.to_vec(), ..blank.clone() });
        let ports = wanted.ports.chunks(AT_ONCE);
        let ports = ports.map(|some| Wanted { ports: some.to_vec(), ..blank.clone() });
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
        let mut once: Vec<Told> = Vec::with_capacity(told.len());
        for event in told {
            let mut same = once.iter().rev().take_while(|before| before.at == event.at);
            if !same.any(|before| *before == event) {
                once.push(event);
            }
        }
        Ok(once)
    }

    fn cables(&self, ports: &[End], window: Window) -> Result<Vec<Cable>, AskError> {
        let mut cables: Vec<Cable> = Vec::new();
        for some in ports.chunks(AT_ONCE) {
            cables.extend(self.ask::<Vec<Cable>>(&Question::Cables(some.to_vec(), window))?);
        }
        let mut seen = std::collections::BTreeSet::new();
        cables.retain(|cable| seen.insert(cable.link()));
        Ok(cables)
    }

    fn moved(&self, window: Window) -> Result<Vec<Moved>, AskError> {
        self.ask(&Question::Moved(window))
    }

    fn series(
        &self,
        ports: &[End],
        detail: Detail,
        window: Window,
    ) -> Result<Vec<Series>, AskError> {
        let mut series = Vec::new();
        for some in ports.chunks(AT_ONCE) {
            let question = Question::Series(some.to_vec(), detail, window);
            series.extend(self.ask::<Vec<Series>>(&question)?);
        }
        Ok(series)
    }

    fn fabrics(&self, at: SystemTime) -> Result<Vec<Then>, AskError> {
        self.ask(&Question::Fabrics(at))
    }

    fn cover(&self, window: Window) -> Result<Cover, AskError> {
        self.ask(&Question::Cover(window))
    }
}
