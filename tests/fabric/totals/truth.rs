//! The true counts of each port, whatever happened to its counters.

use ib_mad::counter::COUNT;
use ib_mad::{Counter, Moment};
use ib_sim::net::{Net, NodeId, PortId};
use ib_sim::simulation::Simulation;

use crate::totals::ledger::Tally;

/// The counters of one port.
pub type Values = [u64; COUNT];

/// The counters of all ports at a moment, and their true counts, by [`PortId`].
#[derive(Clone, Debug)]
pub struct Stop {
    pub at: Moment,
    pub shown: Vec<Values>,
    pub counted: Vec<Values>,
}

/// The true counts. The counters of the simulation fall when they are cleared or a node reboots,
/// and only when the test does that: the values just before are kept, so that the true count is the
/// sum of the lost values and the present one.
#[derive(Debug)]
pub struct Truth {
    lost: Vec<Values>,
    /// The true count when a counter fell last; 0 if it never did.
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

    /// Records the present counters.
    pub fn record(&mut self, world: &Simulation) {
        let shown: Vec<Values> = world.net().port_ids().map(|port| shown_by(world, port)).collect();
        let counted = shown.iter().zip(&self.lost).map(|(shown, lost)| sum(shown, lost)).collect();
        self.stops.push(Stop { at: world.now(), shown, counted });
    }

    /// Records what fell by a change, since the moment before it.
    pub fn record_resets(&mut self, before: &Stop, world: &Simulation, tally: &mut Tally) {
        for (index, before) in before.shown.iter().enumerate() {
            let now = shown_by(world, PortId(index as u32));
            let fell = before.iter().zip(&now).map(|(before, now)| before.saturating_sub(*now));
            for (counter, fell) in fell.enumerate().filter(|(_, fell)| *fell > 0) {
                self.lost[index][counter] += fell;
                self.fell_at[index][counter] = self.lost[index][counter] + now[counter];
                tally.fell += 1;
            }
        }
        self.record(world);
    }

    /// Records that a node has restarted: the counters of its ports begin at 0, and may have counted since.
    pub fn record_restart(&mut self, node: NodeId, before: &Stop, world: &Simulation) {
        let net = world.net();
        for port in net.port_ids().filter(|port| net.port(*port).node == node) {
            let index = port.0 as usize;
            for (counter, before) in before.shown[index].iter().enumerate().filter(|it| *it.1 > 0) {
                self.lost[index][counter] += before;
                self.fell_at[index][counter] = self.lost[index][counter];
            }
        }
        self.record(world);
    }

    pub fn latest(&self) -> &Stop {
        self.stops.last().unwrap()
    }

    /// Drops all but the latest moment.
    pub fn forget(&mut self) {
        self.stops.drain(..self.stops.len() - 1);
    }

    /// The moments around the time of a reading.
    pub fn around(&self, began: Moment, ended: Moment) -> (&Stop, &Stop) {
        let before = self.stops.iter().rfind(|stop| stop.at <= began);
        let after = self.stops.iter().find(|stop| stop.at >= ended);
        (before.unwrap(), after.unwrap())
    }
}

fn sum(a: &Values, b: &Values) -> Values {
    std::array::from_fn(|counter| a[counter] + b[counter])
}

/// The counters of a port in the simulation. Corrected blocks and symbols are one count there: at
/// the error ratios of a working link, a block with two wrong symbols is rare.
fn shown_by(world: &Simulation, port: PortId) -> Values {
    let mut values = [0; COUNT];
    for counter in Counter::all() {
        values[counter as usize] = match counter {
            Counter::FecCorrectedBlocks | Counter::FecCorrectedSymbols => {
                world.count(port, Counter::FecCorrectedSymbols)
            }
            counter => world.count(port, counter),
        };
    }
    values
}
