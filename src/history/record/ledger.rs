//! What each port's totals came to when they were last recorded: what the next sweep is told against,
//! and what totals go on from when the exporter is started again.

use crate::fabric::Counter;
use crate::fabric::counter::COUNT;

use crate::history::file::frame::Frame;
use crate::history::file::numbers::Numbers;

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
