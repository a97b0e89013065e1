//! What each port's totals came to when they were last recorded: what the next sweep is told against,
//! and what totals go on from when the exporter is started again.

use rusqlite::Connection;

use ib_mad::Counter;
use ib_mad::counter::COUNT;

use super::frame::Frame;
use super::numbers::Numbers;
use super::tier::Tier;

/// The latest totals of a port.
#[derive(Clone, Debug)]
pub struct Totals {
    /// The fabric that the port is in, as the file counts them.
    pub fabric: i64,
    known: u64,
    values: [u64; COUNT],
}

impl Totals {
    fn new(fabric: i64) -> Self {
        Totals { fabric, known: 0, values: [0; COUNT] }
    }

    /// A counter's total, if it is known.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        (self.known >> counter as usize & 1 == 1).then(|| self.values[counter as usize])
    }

    /// Takes down a counter's total.
    pub fn set(&mut self, counter: Counter, total: u64) {
        self.values[counter as usize] = total;
        self.known |= 1 << counter as usize;
    }

    /// Goes back to before a counter grew by so much.
    pub fn undo(&mut self, counter: Counter, by: u64) {
        let value = &mut self.values[counter as usize];
        *value = value.saturating_sub(by);
    }

    /// Forgets a counter's total.
    pub fn forget(&mut self, counter: Counter) {
        self.known &= !(1 << counter as usize);
    }

    /// All that are known.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::all().filter_map(|counter| Some((counter, self.get(counter)?)))
    }
}

/// The latest totals of all ports, by the port's number in the file.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    ports: Vec<Option<Box<Totals>>>,
}

impl Ledger {
    /// A port's totals, begun if there are none.
    pub fn port(&mut self, fabric: i64, port: u32) -> &mut Totals {
        let index = port as usize;
        if self.ports.len() <= index {
            self.ports.resize_with(index + 1, || None);
        }
        self.ports[index].get_or_insert_with(|| Box::new(Totals::new(fabric)))
    }

    /// A port's totals, if there are any.
    pub fn find(&self, port: u32) -> Option<&Totals> {
        self.ports.get(port as usize)?.as_deref()
    }

    /// The same, to be changed.
    pub fn find_mut(&mut self, port: u32) -> Option<&mut Totals> {
        self.ports.get_mut(port as usize)?.as_deref_mut()
    }

    /// Forgets a port's totals.
    pub fn remove(&mut self, port: u32) {
        if let Some(totals) = self.ports.get_mut(port as usize) {
            *totals = None;
        }
    }

    /// One past the highest port with totals.
    pub fn end(&self) -> u32 {
        self.ports.len() as u32
    }

    /// All ports of a fabric with totals.
    pub fn of(&self, fabric: i64) -> impl Iterator<Item = (u32, &Totals)> {
        let ports = self.ports.iter().zip(0u32..);
        ports
            .filter_map(|(totals, port)| Some((port, &**totals.as_ref()?)))
            .filter(move |(_, totals)| totals.fabric == fabric)
    }

    /// Takes a recorded frame in: `absolute` ones say what totals were, others what they grew by.
    /// Ports after the `last` that the file knows are passed over.
    pub fn replay(
        &mut self,
        fabric: i64,
        frame: &Frame,
        absolute: bool,
        numbers: &Numbers,
        last: u32,
    ) {
        for entry in frame.entries().iter().filter(|entry| entry.port <= last) {
            let totals = self.port(fabric, entry.port);
            for (number, value) in frame.values(entry) {
                let Some(counter) = numbers.counter(number) else { continue };
                if absolute {
                    totals.set(counter, value);
                } else if let Some(total) = totals.get(counter) {
                    totals.set(counter, total.saturating_add(value));
                }
            }
        }
    }
}

/// The latest totals, as the file has them.
pub fn latest(db: &Connection, numbers: &Numbers) -> rusqlite::Result<Ledger> {
    let last: u32 = db.query_row("SELECT coalesce(max(id), 0) FROM ports", [], |row| row.get(0))?;
    let mut statement = db.prepare(
        "SELECT fabric, tier, data FROM frames AS it WHERE tier <= 3 AND id >= coalesce(
             (SELECT min(id) FROM frames WHERE tier = 3 AND fabric = it.fabric), 0)
         ORDER BY id",
    )?;
    let mut ledger = Ledger::default();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (fabric, tier): (i64, u8) = (row.get(0)?, row.get(1)?);
        match Frame::unpack(row.get_ref(2)?.as_blob()?) {
            Ok(frame) => {
                let absolute = tier >= Tier::First as u8;
                ledger.replay(fabric, &frame, absolute, numbers, last);
            }
            // What it had is missed by the sums in the file alone: ports still show what they counted.
            Err(error) => tracing::warn!(%error, "a sweep of the history is passed over"),
        }
    }
    Ok(ledger)
}
