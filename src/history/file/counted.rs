//! What counters grew by, and what the fabric was like, as the file answers it.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use rusqlite::types::Value;

use crate::fabric::Counter;
use crate::fabric::topology::End;
use crate::health::Verdict;
use crate::history::model::{Cable, Cover, Known, Moved, Port, Series, Step, Sum, Then, Window};
use crate::history::source::Detail;
use crate::history::{HistoryError, micros_of, time_of};

use super::frame::{Entry, Frame};
use super::reader::Reader;
use super::tier::Tier;

/// Tells when a sweep was, and what its frame says.
type Visit<'a> = dyn FnMut(Window, &Frame) + 'a;

impl Reader {
    /// Goes through the frames of a tier; tells how many are damaged.
    fn visit(&self, tier: Tier, window: Window, see: &mut Visit<'_>) -> rusqlite::Result<usize> {
        let mut statement = self.db.prepare(
            "SELECT began, ended, data, fabric FROM frames
             WHERE tier = ?1 AND ended >= ?2 AND began <= ?3 ORDER BY ended, id",
        )?;
        let mut last: HashMap<i64, SystemTime> = HashMap::new();
        let mut rows =
            statement.query((tier as u8, micros_of(window.from), micros_of(window.to)))?;
        let mut damaged = 0;
        while let Some(row) = rows.next()? {
            let began = time_of(row.get(0)?);
            let before = last.insert(row.get(3)?, began).unwrap_or(began);
            match Frame::unpack(row.get_ref(2)?.as_blob()?) {
                Ok(frame) => see(Window { from: before, to: began }, &frame),
                Err(_) => damaged += 1,
            }
        }
        Ok(damaged)
    }

    pub(super) fn read_series(
        &self,
        ends: &[End],
        detail: Detail,
        window: Window,
    ) -> rusqlite::Result<Vec<Series>> {
        let places = self.at(ends)?;
        let mut steps: BTreeMap<(usize, Counter), Vec<Step>> = BTreeMap::new();
        let tiers: &[Tier] = match detail {
            Detail::Errors => &[Tier::Rare],
            Detail::All => &[Tier::Rare, Tier::Busy],
        };
        for tier in tiers {
            self.visit(*tier, window, &mut |span, frame| {
                for (index, place) in places.iter().enumerate() {
                    let Some(entry) = frame.of(place.id) else { continue };
                    let (from, to) = (read(span.from, entry), read(span.to, entry));
                    for (counter, by) in self.values(frame, entry) {
                        steps.entry((index, counter)).or_default().push(Step { from, to, by });
                    }
                }
            })?;
        }
        let series = steps.into_iter().filter_map(|((index, counter), steps)| {
            Some(Series { port: places.get(index)?.port.clone(), counter, steps })
        });
        Ok(series.collect())
    }

    pub(super) fn read_moved(&self, window: Window) -> rusqlite::Result<Vec<Moved>> {
        let mut sums: BTreeMap<u32, BTreeMap<Counter, Sum>> = BTreeMap::new();
        self.visit(Tier::Rare, window, &mut |span, frame| {
            for entry in frame.entries() {
                let of = sums.entry(entry.port).or_default();
                let at = read(span.to, entry);
                for (counter, by) in self.values(frame, entry) {
                    let sum = Sum { counter, by: 0, first: at, last: at };
                    let sum = of.entry(counter).or_insert(sum);
                    sum.by = sum.by.saturating_add(by);
                    sum.last = at;
                }
            }
        })?;
        let mut moved = Vec::new();
        for (port, sums) in sums {
            let of = self.places(" WHERE ports.id = ?", [Value::from(port)])?;
            let Some(place) = of.into_iter().next() else { continue };
            let cables = self.read_cables(&[place.port.end()], window)?;
            let peer = cables
                .into_iter()
                .next()
                .and_then(|cable| cable.ends.into_iter().find(|end| end.end() != place.port.end()));
            moved.push(Moved { port: place.port, peer, sums: sums.into_values().collect() });
        }
        Ok(moved)
    }

    pub(super) fn read_cables(
        &self,
        ends: &[End],
        _window: Window,
    ) -> rusqlite::Result<Vec<Cable>> {
        let mut cables: Vec<Cable> = Vec::new();
        for place in self.at(ends)? {
            let partners = self.places(
                " WHERE ports.id IN (SELECT high FROM links WHERE low = ?1
                      UNION SELECT low FROM links WHERE high = ?1)",
                [Value::from(place.id)],
            )?;
            for partner in partners {
                let mut ends: [Port; 2] = [place.port.clone(), partner.port];
                ends.sort_by_key(Port::end);
                let cable = Cable { ends, up: None, verdict: Verdict::Unknown, rate: None };
                if !cables.contains(&cable) {
                    cables.push(cable);
                }
            }
        }
        Ok(cables)
    }

    pub(super) fn read_fabrics(&self, _at: SystemTime) -> rusqlite::Result<Vec<Then>> {
        Ok(Vec::new())
    }

    pub(super) fn read_cover(&self, window: Window) -> rusqlite::Result<Cover> {
        let mut known = Known { gaps: vec![window], ..Known::default() };
        let damaged = self.visit(Tier::Busy, window, &mut |_, _| known.sweeps += 1)?;
        let fabrics = [("default".to_owned(), known)].into();
        Ok(Cover { fabrics, damaged })
    }

    fn values<'a>(
        &'a self,
        frame: &'a Frame,
        entry: &Entry,
    ) -> impl Iterator<Item = (Counter, u64)> + use<'a> {
        frame.values(entry).filter_map(|(number, by)| {
            let counter = self.numbers.counter(number)?;
            Some((counter, by.saturating_mul(counter.row().scale)))
        })
    }

    /// How many sweeps can be read of a tier, how many cannot, and when the latest ended.
    pub fn frames(&self, tier: Tier) -> Result<(usize, usize, Option<SystemTime>), HistoryError> {
        let count = || {
            let mut statement =
                self.db.prepare("SELECT data, ended FROM frames WHERE tier = ?1")?;
            let mut rows = statement.query([tier as u8])?;
            let (mut whole, mut damaged, mut last) = (0, 0, None);
            while let Some(row) = rows.next()? {
                match Frame::unpack(row.get_ref(0)?.as_blob()?) {
                    Ok(_) => whole += 1,
                    Err(_) => damaged += 1,
                }
                last = last.max(Some(time_of(row.get(1)?)));
            }
            Ok((whole, damaged, last))
        };
        count().map_err(self.failed())
    }
}

/// When a port was read in a sweep.
fn read(began: SystemTime, entry: &Entry) -> SystemTime {
    began + Duration::from_millis(entry.after.into())
}
