//! What each port has truly counted, whatever became of its counters.

use ib_mad::counter::COUNT;
use ib_mad::{Counter, Moment};
use ib_sim::net::{Net, PortId};
use ib_sim::simulation::Simulation;

use crate::totals::ledger::Tally;

/// The counters of one port.
pub type Values = [u64; COUNT];

/// What all ports showed at a moment, and what they had counted by then, by [`PortId`].
#[derive(Clone, Debug)]
pub struct Stop {
    pub at: Moment,
    pub shown: Vec<Values>,
    pub counted: Vec<Values>,
}

/// The truth. The world's own counters fall when somebody clears them or a node starts anew, and
/// that happens only when the test says so: what they showed just before is kept, so that what a
/// port has counted is the sum of what it lost and what it shows.
#[derive(Debug)]
pub struct Truth {
    lost: Vec<Values>,
    /// What had been counted when a counter fell last; 0 if it never did.
    pub fell_at: Vec<Values>,
    /// The latest moments, the latest at the end.
    stops: Vec<Stop>,
}

impl Truth {
    pub fn new(net: &Net) -> Truth {
        let zero = vec![[0; COUNT]; net.ports.len()];
        let stop = Stop { at: Moment::default(), shown: zero.clone(), counted: zero.clone() };
        Truth { lost: zero.clone(), fell_at: zero, stops: vec![stop] }
    }

    /// Takes down what the ports show now.
    pub fn note(&mut self, world: &Simulation) {
        let shown: Vec<Values> = world.net().port_ids().map(|port| shown_by(world, port)).collect();
        let counted = shown.iter().zip(&self.lost).map(|(shown, lost)| sum(shown, lost)).collect();
        self.stops.push(Stop { at: world.now(), shown, counted });
    }

    /// Takes down what fell since a moment in which nothing else passed.
    pub fn acted(&mut self, before: &Stop, world: &Simulation, tally: &mut Tally) {
        for (index, before) in before.shown.iter().enumerate() {
            let now = shown_by(world, PortId(index as u32));
            let fell = before.iter().zip(&now).map(|(before, now)| before.saturating_sub(*now));
            for (counter, fell) in fell.enumerate().filter(|(_, fell)| *fell > 0) {
                self.lost[index][counter] += fell;
                self.fell_at[index][counter] = self.lost[index][counter] + now[counter];
                tally.fell += 1;
            }
        }
        self.note(world);
    }

    pub fn latest(&self) -> &Stop {
        self.stops.last().unwrap()
    }

    /// Only the latest moment matters from now on.
    pub fn forget(&mut self) {
        self.stops.drain(..self.stops.len() - 1);
    }

    /// The moments next to a time in which something was read: what it read was shown between them.
    pub fn around(&self, began: Moment, ended: Moment) -> (&Stop, &Stop) {
        let before = self.stops.iter().rfind(|stop| stop.at <= began);
        let after = self.stops.iter().find(|stop| stop.at >= ended);
        (before.unwrap(), after.unwrap())
    }
}

fn sum(a: &Values, b: &Values) -> Values {
    std::array::from_fn(|counter| a[counter] + b[counter])
}

/// The blocks and the symbols that error correction mended are one count in the world: at the ratios of
/// a link that works, a block with two wrong symbols is rare.
fn shown_by(world: &Simulation, port: PortId) -> Values {
    let mut values = [0; COUNT];
    for counter in Counter::all() {
        values[counter as usize] = match counter {
            Counter::FecCorrectedBlocks | Counter::FecCorrectedSymbols => world.fec_corrected(port),
            counter => world.count(port, counter),
        };
    }
    values
}
