//! The totals of each port when they were last recorded: the next sweep is compared with them, and they
//! continue from there when the exporter is restarted.

use rusqlite::Connection;

use ib_mad::Counter;
use ib_mad::counter::COUNT;

use super::counter_ids::CounterIds;
use super::frame::Frame;
use super::sql::Sql;

/// The latest totals of a port.
#[derive(Clone, Debug)]
pub struct PortTotals {
    /// The id of the port's fabric in the file.
    pub fabric: i64,
    known: u64,
    values: [u64; COUNT],
}

impl PortTotals {
    fn new(fabric: i64) -> Self {
        PortTotals { fabric, known: 0, values: [0; COUNT] }
    }

    /// A counter's total, if it is known.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        (self.known >> counter as usize & 1 == 1).then(|| self.values[counter as usize])
    }

    /// Sets a counter's total.
    pub fn set(&mut self, counter: Counter, total: u64) {
        self.values[counter as usize] = total;
        self.known |= 1 << counter as usize;
    }

    /// Subtracts what a counter grew by.
    pub fn undo(&mut self, counter: Counter, by: u64) {
        let value = &mut self.values[counter as usize];
        *value = value.saturating_sub(by);
    }

    /// Forgets a counter's total.
    pub fn forget(&mut self, counter: Counter) {
        self.known &= !(1 << counter as usize);
    }

    /// All known totals.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::all().filter_map(|counter| Some((counter, self.get(counter)?)))
    }
}

/// The latest totals of all ports, by the port's number in the file.
#[derive(Clone, Debug, Default)]
pub struct TotalsTable {
    ports: Vec<Option<Box<PortTotals>>>,
}

impl TotalsTable {
    /// A port's totals, created if there are none.
    pub fn port(&mut self, fabric: i64, port: u32) -> &mut PortTotals {
        let index = port as usize;
        if self.ports.len() <= index {
            self.ports.resize_with(index + 1, || None);
        }
        self.ports[index].get_or_insert_with(|| Box::new(PortTotals::new(fabric)))
    }

    /// A port's totals, if there are any.
    pub fn find(&self, port: u32) -> Option<&PortTotals> {
        self.ports.get(port as usize)?.as_deref()
    }

    /// A port's totals, mutable.
    pub fn find_mut(&mut self, port: u32) -> Option<&mut PortTotals> {
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
    pub fn of(&self, fabric: i64) -> impl Iterator<Item = (u32, &PortTotals)> {
        let ports = self.ports.iter().zip(0u32..);
        ports
            .filter_map(|(totals, port)| Some((port, &**totals.as_ref()?)))
            .filter(move |(_, totals)| totals.fabric == fabric)
    }

    /// Applies a recorded frame: `absolute` ones have totals, others what totals grew by. Ports after the
    /// `last` one of the file are ignored.
    pub fn replay(
        &mut self,
        fabric: i64,
        frame: &Frame,
        absolute: bool,
        numbers: &CounterIds,
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
pub fn latest(db: &Connection, numbers: &CounterIds) -> rusqlite::Result<TotalsTable> {
    let sql = Sql(db);
    let last = sql.last_port()?;
    let mut table = TotalsTable::default();
    sql.frames_of_totals(&mut |fabric, is_absolute, data| match Frame::unpack(data) {
        Ok(frame) => table.replay(fabric, &frame, is_absolute, numbers, last),
        // What it had is missing in the sums of the file alone: ports still show what they counted.
        Err(error) => tracing::warn!(%error, "a sweep of the history is passed over"),
    })?;
    Ok(table)
}
