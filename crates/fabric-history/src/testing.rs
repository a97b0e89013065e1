//! A source with given answers, and how many sweeps of a file are damaged: for tests of this and other crates.
#![allow(missing_docs, reason = "for tests only")]

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use crate::file::frame::{Digest, Frame};
use crate::file::reader::Reader;
use crate::file::record_kind::RecordKind;
use crate::file::sql::Sql;
use crate::model::{
    Cable, Coverage, ErrorDelta, Event, FabricState, Port, Series, Span, Sum, Window,
};
use crate::source::{Answer, EventFilter, Events, Page, SeriesDetail, Source};
use crate::{EventKind, HistoryError, time_of};
use ib_fabric::topology::{End, LinkId};
use ib_mad::{Counter, Guid};

/// A source for tests: its results are its fields, whatever the query.
#[derive(Debug, Default)]
pub struct Canned {
    pub ports: Vec<Port>,
    pub events: Vec<Event>,
    pub cables: Vec<Cable>,
    pub moved: Vec<ErrorDelta>,
    pub series: Vec<Series>,
}

impl Canned {
    /// A port of a node, whose GUID is that of its name.
    pub fn port(fabric: &str, node: &str, number: u8) -> Port {
        let guid = Guid(node.bytes().fold(0, |guid, byte| guid << 8 | u64::from(byte)));
        Port { fabric: fabric.into(), guid, port: number, node: node.into(), host: None }
    }

    /// The symbol errors of a port.
    pub fn counted(port: &Port, peer: Option<&Port>, by: u64) -> ErrorDelta {
        let at = SystemTime::UNIX_EPOCH;
        let counter = Counter::SymbolErrors;
        let sums = vec![Sum { counter, by, first: at, last: at }];
        ErrorDelta { port: port.clone(), peer: peer.cloned(), sums }
    }

    /// An event of a cable.
    pub fn event(kind: EventKind, link: Option<LinkId>, port: &Port) -> Event {
        Event {
            at: SystemTime::UNIX_EPOCH,
            fabric: port.fabric.clone(),
            kind: kind.label().into(),
            node: link.is_none().then_some(port.guid),
            port: link.is_none().then_some(port.port),
            link,
            place: port.label(),
            text: String::new(),
            detail: serde_json::Value::Null,
        }
    }
}

impl Source for Canned {
    fn name(&self) -> String {
        "canned".into()
    }

    fn span(&self) -> Answer<Span> {
        Ok(Span::default())
    }

    fn ports(&self, _: &str) -> Answer<Vec<Port>> {
        Ok(self.ports.clone())
    }

    fn page(&self, _: &EventFilter, _: Page) -> Answer<Events> {
        Ok(Events { events: self.events.clone(), next: None })
    }

    fn cables(&self, _: &[End], _: Window) -> Answer<Vec<Cable>> {
        Ok(self.cables.clone())
    }

    fn error_deltas(&self, _: Window) -> Answer<Vec<ErrorDelta>> {
        Ok(self.moved.clone())
    }

    fn series(&self, _: &[End], _: SeriesDetail, _: Window) -> Answer<Vec<Series>> {
        Ok(self.series.clone())
    }

    fn fabrics(&self, _: SystemTime) -> Answer<Vec<FabricState>> {
        Ok(Vec::new())
    }

    fn coverage(&self, _: Window) -> Answer<Coverage> {
        Ok(Coverage::default())
    }
}

impl Reader {
    /// How many sweeps can be read of a kind of record, how many cannot, and when the latest ended.
    pub fn frames(
        &self,
        kind: RecordKind,
    ) -> Result<(usize, usize, Option<SystemTime>), HistoryError> {
        self.read(|| count_sweeps(self.sql(), kind))
    }
}

fn count_sweeps(
    sql: Sql<'_>,
    kind: RecordKind,
) -> rusqlite::Result<(usize, usize, Option<SystemTime>)> {
    let mut sweeps: HashMap<(i64, i64), bool> = HashMap::new();
    let (mut damaged_hours, mut last) = (HashSet::new(), None);
    for (fabric, _) in sql.fabrics()? {
        sql.frames(kind, Some(fabric), None, i64::MIN..=i64::MAX, &mut |row| {
            *sweeps.entry((fabric, row.began)).or_insert(true) &= Frame::unpack(row.data).is_ok();
            last = last.max(Some(row.ended));
            Ok(())
        })?;
    }
    let damaged = sweeps.values().filter(|is_whole| !**is_whole).count();
    let whole = sweeps.len() - damaged;
    if kind != RecordKind::ErrorDeltas {
        return Ok((whole, damaged, last.map(time_of)));
    }
    let mut digested: HashSet<(i64, i64)> = HashSet::new();
    for hour in sql.hours((i64::MIN, i64::MAX))? {
        sql.digests(kind, hour.id..=hour.id, None, &mut |_, data| {
            match Digest::unpack(data, *hour.sweeps.start()) {
                Ok(digest) => {
                    let began = digest.spans().iter().map(|span| span.began);
                    digested.extend(began.map(|began| (hour.fabric, began)));
                }
                Err(_) => drop(damaged_hours.insert(hour.id)),
            }
            last = last.max(Some(hour.ended));
            Ok(())
        })?;
    }
    Ok((whole + digested.len(), damaged + damaged_hours.len(), last.map(time_of)))
}
