//! What counters grew by, as the file answers it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rusqlite::OptionalExtension;

use crate::model::{Moved, Series, Step, Sum, Window};
use crate::source::Detail;
use crate::{HistoryError, micros_of, time_of};
use ib_fabric::topology::End;
use ib_mad::Counter;

use super::digest::Span;
use super::frame::{Entry, Frame};
use super::reader::{Place, Reader};
use super::rows::{Hour, between};
use super::tier::{Tier, part_of};

/// Windows up to so long are told by each sweep's traffic, where there is any: 720 sweeps of two parts
/// of 60,000 ports are unpacked in a fifth of a second.
const SHORT: Duration = Duration::from_secs(3 * 3600);

/// The steps of some ports' counters.
struct Steps<'a> {
    reader: &'a Reader,
    window: Window,
    by: BTreeMap<(u32, Counter), Vec<Step>>,
    count: usize,
}

impl Steps<'_> {
    fn see(&mut self, span: Span, frame: &Frame, entry: &Entry) {
        let (from, to) = between(span, entry);
        if self.window.has(to) {
            for (counter, by) in self.reader.values(frame, entry) {
                self.count = self.count.saturating_add(1);
                if self.count <= self.reader.most_steps {
                    self.by.entry((entry.port, counter)).or_default().push(Step { from, to, by });
                }
            }
        }
    }

    fn ensure_few(&self) -> Result<(), HistoryError> {
        let most = self.reader.most_steps;
        if self.count > most { Err(HistoryError::TooMuch { most }) } else { Ok(()) }
    }
}

impl Reader {
    pub(super) fn read_series(
        &self,
        ends: &[End],
        detail: Detail,
        window: Window,
    ) -> Result<Vec<Series>, HistoryError> {
        let mut steps = Steps { reader: self, window, by: BTreeMap::new(), count: 0 };
        let places = self.collect_steps(ends, detail, &mut steps).map_err(self.failed())?;
        steps.ensure_few()?;
        let of: HashMap<u32, _> = places.into_iter().map(|place| (place.id, place.port)).collect();
        let series = steps.by.into_iter().filter_map(|((port, counter), mut steps)| {
            steps.sort_by_key(|step| step.to);
            Some(Series { port: of.get(&port)?.clone(), counter, steps })
        });
        Ok(series.collect())
    }

    fn collect_steps(
        &self,
        ends: &[End],
        detail: Detail,
        steps: &mut Steps<'_>,
    ) -> rusqlite::Result<Vec<Place>> {
        let window = steps.window;
        let places = self.at(ends)?;
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let mut parts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for place in &places {
            parts.entry(part_of(place.id)).or_default().push(place.id);
        }
        let hours = self.hours(window)?;
        for (part, ports) in &parts {
            self.digested(Tier::Rare, &hours, Some(*part), ports, &mut |span, frame, entry| {
                steps.see(span, frame, entry);
            })?;
        }
        let all: Vec<u32> = places.iter().map(|place| place.id).collect();
        self.framed(Tier::Rare, window, None, &[], &all, &mut |span, frame, entry| {
            steps.see(span, frame, entry);
        })?;
        if detail == Detail::All {
            let thinned = self.thinned(&hours, window)?;
            for (part, ports) in &parts {
                let see = &mut |span, frame: &Frame, entry: &Entry| steps.see(span, frame, entry);
                let told = self.digested(Tier::Busy, &thinned, Some(*part), ports, see)?;
                let told: Vec<&Hour> =
                    thinned.iter().filter(|hour| told.contains(&hour.id)).collect();
                let see = &mut |span, frame: &Frame, entry: &Entry| steps.see(span, frame, entry);
                self.framed(Tier::Busy, window, Some(*part), &told, ports, see)?;
            }
        }
        Ok(places)
    }

    /// The hours of which traffic is told as a whole: those that lie in the window, if it is long, and
    /// those that end in it of which the sweeps are not all there any more.
    fn thinned(&self, hours: &[Hour], window: Window) -> rusqlite::Result<Vec<Hour>> {
        let is_long = window.length() > SHORT;
        let (from, to) = (micros_of(window.from), micros_of(window.to));
        let mut is_there = self.db.prepare_cached(
            "SELECT 1 FROM frames WHERE tier = 1 AND fabric = ?1 AND began = ?2 LIMIT 1",
        )?;
        let mut thinned = Vec::new();
        for hour in hours {
            // The earliest goes first.
            let first = hour.traffic.map(|first| is_there.exists([hour.fabric, first]));
            let is_whole = first.transpose()?.unwrap_or(false);
            let is_in = hour.traffic.is_none_or(|first| from <= first);
            if hour.ended <= to && (is_long && is_in || !is_whole) {
                thinned.push(hour.clone());
            }
        }
        Ok(thinned)
    }

    /// When the earliest sweep was begun of which all traffic is there.
    pub(super) fn full_from(&self, fabric: i64) -> rusqlite::Result<Option<i64>> {
        let mut first = self.db.prepare_cached(
            "SELECT began FROM frames WHERE tier = 1 AND fabric = ?1 ORDER BY began LIMIT 1",
        )?;
        first.query_row([fabric], |row| row.get(0)).optional()
    }

    pub(super) fn read_moved(&self, window: Window) -> rusqlite::Result<Vec<Moved>> {
        let mut sums: BTreeMap<u32, BTreeMap<Counter, Sum>> = BTreeMap::new();
        let mut see = |span, frame: &Frame, entry: &Entry| {
            let (_, at) = between(span, entry);
            if !window.has(at) {
                return;
            }
            let of = sums.entry(entry.port).or_default();
            for (counter, by) in self.values(frame, entry) {
                let sum = of.entry(counter).or_insert(Sum { counter, by: 0, first: at, last: at });
                sum.by = sum.by.saturating_add(by);
                (sum.first, sum.last) = (sum.first.min(at), sum.last.max(at));
            }
        };
        self.digested(Tier::Rare, &self.hours(window)?, None, &[], &mut see)?;
        self.framed(Tier::Rare, window, None, &[], &[], &mut see)?;
        let peers = self.peers(window)?;
        let other = |port: &u32| peers.get(port).map(|(peer, _)| *peer);
        let numbers: BTreeSet<u32> =
            sums.keys().flat_map(|port| [Some(*port), other(port)]).flatten().collect();
        let ports = self.numbered(&Vec::from_iter(numbers))?;
        let moved = sums.into_iter().filter_map(|(port, sums)| {
            let peer = other(&port).and_then(|peer| ports.get(&peer).cloned());
            let sums = sums.into_values().collect();
            Some(Moved { port: ports.get(&port)?.clone(), peer, sums })
        });
        Ok(moved.collect())
    }

    /// Where each port's cable led, the latest in a window.
    fn peers(&self, window: Window) -> rusqlite::Result<HashMap<u32, (u32, i64)>> {
        let mut statement = self.db.prepare(
            "SELECT low, high, since FROM cables JOIN links ON links.id = link
             WHERE since <= ?2 AND (until IS NULL OR until > ?1)",
        )?;
        let mut rows = statement.query((micros_of(window.from), micros_of(window.to)))?;
        let mut peers: HashMap<u32, (u32, i64)> = HashMap::new();
        while let Some(row) = rows.next()? {
            let (low, high, since): (u32, u32, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            for (port, peer) in [(low, high), (high, low)] {
                let latest = peers.entry(port).or_insert((peer, since));
                if since >= latest.1 {
                    *latest = (peer, since);
                }
            }
        }
        Ok(peers)
    }

    /// From when on each sweep's traffic is there, of a fabric.
    pub(super) fn traffic_from(
        &self,
        fabric: i64,
    ) -> rusqlite::Result<Option<std::time::SystemTime>> {
        let from = self.full_from(fabric)?;
        // The earliest tells what was counted since the sweep before it.
        let mut before =
            self.db.prepare_cached("SELECT since FROM sweeps WHERE fabric = ?1 AND began = ?2")?;
        let Some(from) = from else { return Ok(None) };
        let since = before.query_row([fabric, from], |row| row.get(0)).optional()?.flatten();
        Ok(Some(time_of(since.unwrap_or(from))))
    }
}
