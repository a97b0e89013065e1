//! The valid range of each total.

use std::collections::HashMap;

use fabric_observation::Observation;
use ib_health::counter_status::CounterStatus;
use ib_mad::{Counter, PortKey};
use ib_sim::net::{Net, PortId};

use crate::totals::truth::{Stop, Truth};

macro_rules! tally {
    ($($name:ident $about:literal;)+) => {
        /// What occurred, so that a run can assert that it did.
        #[derive(Clone, Debug, Default)]
        pub struct Tally { $(#[doc = $about] pub $name: u64),+ }

        impl Tally {
            pub fn add(&mut self, more: &Tally) {
                $(self.$name += more.$name;)+
            }

            pub fn is_of_all_kinds(&self) -> bool {
                $(self.$name > 0)&&+
            }
        }
    };
}

tally! {
    sweeps "Sweeps.";
    compared "Totals that were held against the truth.";
    exact "Of them, those that had to be the truth to the last digit.";
    fell "Counters that fell, by a clear or a reboot.";
    seen_to_fall "Those that the next reading must have seen.";
    passed "Those that had passed their old value by the next reading.";
    saturated "Totals of counters that were full once.";
    resets "Resets that the exporter reported.";
    missed "Ports that a sweep did not read, and had read before.";
    clears_of_some "Clears of some counters of a port and not of others.";
    clears_of_a_port "Clears of a port.";
    clears_of_a_node "Clears of a node.";
    clears_of_all "Clears of everything.";
    clears_repeated "Clears that came twice in a row.";
    reboots_of_hosts "Hosts that went off and on.";
    reboots_of_switches "Switches that did.";
    unplugs "Links that lost their signal for longer than an interval.";
    flaps "Links that lost it for less.";
    retrains "Links that trained by themselves.";
    degrades "Links that became narrower or slower.";
    bad_cables "Cables that went bad.";
    slow_hosts "Adapters that took in too little.";
    moves "Cables that were moved.";
    silences "Nodes that answered nothing, or not all.";
    losses "Times in which MADs were lost.";
    readdressings "Times that every port got another LID.";
    traffics "Changes of the traffic.";
}

/// The state of a counter at its latest reading.
#[derive(Clone, Copy, Debug)]
struct Entry {
    total: u64,
    /// The true count, at least and at most.
    counted: (u64, u64),
    /// The value that it showed, at least and at most.
    shown: (u64, u64),
    /// The true count when it fell last.
    fell_at: u64,
    /// The count that cannot be known, at most, since the start.
    hidden: u64,
}

/// All counters of all ports; see the module.
pub struct Ledger {
    ports: HashMap<PortKey, PortId>,
    entries: HashMap<(PortId, Counter), Entry>,
    countings: HashMap<PortId, CounterStatus>,
    /// The ports that the latest sweep read.
    read_last: Vec<PortId>,
    pub tally: Tally,
}

impl Ledger {
    pub fn new(net: &Net) -> Ledger {
        let end = |port: PortId| PortKey::new(net.node_of(port).guid, net.port(port).number);
        Ledger {
            ports: net.port_ids().map(|port| (end(port), port)).collect(),
            entries: HashMap::new(),
            countings: HashMap::new(),
            read_last: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Compares a sweep with the truth.
    pub fn audit(&mut self, truth: &Truth, seen: &Observation) -> Result<(), String> {
        let Some(snapshot) = &seen.snapshot else { return Ok(()) };
        self.tally.sweeps += 1;
        self.read_last.clear();
        for index in snapshot.fabric.port_indexes() {
            let port = self.ports[&snapshot.fabric.port_key(index)];
            let counting = seen.assessment.ports[index].counters;
            let Some(reading) = snapshot.reading(index) else {
                self.tally.missed += u64::from(self.countings.contains_key(&port));
                continue;
            };
            self.read_last.push(port);
            let (before, after) = truth.around(snapshot.began, reading.at);
            let mut fell = Fell::default();
            for counter in Counter::all() {
                if let Some(total) = reading.get(counter) {
                    let lossy = counting.ever_saturated.contains(counter);
                    let told = self.check(truth, (before, after), port, counter, total, lossy);
                    fell.add(told.map_err(|wrong| {
                        let end = snapshot.fabric.port_key(index);
                        format!("{counter:?} of {end:?} at {:?}: {wrong}", reading.at)
                    })?);
                }
            }
            let resets = counting.resets - self.countings.get(&port).map_or(0, |was| was.resets);
            self.tally.resets += u64::from(resets);
            self.countings.insert(port, counting);
            if u64::from(resets) < u64::from(fell.surely) || resets > u32::from(fell.perhaps) {
                return Err(format!("{index:?} at {:?}: {resets} resets, {fell:?}", reading.at));
            }
        }
        Ok(())
    }

    /// Compares one total with the truth. Returns whether the counter fell.
    fn check(
        &mut self,
        truth: &Truth,
        (before, after): (&Stop, &Stop),
        port: PortId,
        counter: Counter,
        total: u64,
        lossy: bool,
    ) -> Result<Fell, String> {
        let (at, nth) = (port.0 as usize, counter as usize);
        let truly = (before.counted[at][nth], after.counted[at][nth]);
        let shown = (before.shown[at][nth], after.shown[at][nth]);
        let fell_at = truth.fell_at[at][nth];
        let entry = Entry { total, counted: truly, shown, fell_at, hidden: truly.0 - shown.0 };
        let Some(last) = self.entries.insert((port, counter), entry) else {
            // The total starts with the value of the counter: earlier losses do not count.
            let (least, most) = if lossy { (0, shown.1) } else { shown };
            within("first total", total, least, most)?;
            return Ok(Fell::default());
        };
        let mut hidden = last.hidden;
        let mut fell = Fell::default();
        let growth = total.checked_sub(last.total).ok_or("it fell")?;
        within("growth", growth, 0, truly.1 - last.counted.0)?;
        if fell_at > last.fell_at {
            // Its count from the last reading until it fell was never read.
            hidden += fell_at - last.counted.0;
            fell.surely = shown.1 < last.shown.0 && !lossy;
            fell.perhaps = shown.0 < last.shown.1 || lossy;
            if fell.surely {
                // Its value is the count since then.
                within("growth after a clear", growth, shown.0, shown.1)?;
                self.tally.seen_to_fall += 1;
            } else {
                // Its value may be higher than before: then that much appears as counted already.
                hidden += last.shown.1;
                self.tally.passed += 1;
            }
        }
        self.entries.insert((port, counter), Entry { hidden, ..entry });
        let lowest = if lossy { 0 } else { truly.0.saturating_sub(hidden) };
        self.tally.compared += 1;
        self.tally.saturated += u64::from(lossy);
        self.tally.exact += u64::from(lowest == truly.1 && truly.1 > 0);
        within("total", total, lowest, truly.1)?;
        Ok(fell)
    }

    /// Whether the latest sweep read every port that was ever read.
    pub fn all_read(&self) -> Result<(), String> {
        let missing = self.countings.keys().find(|port| !self.read_last.contains(port));
        missing.map_or(Ok(()), |port| Err(format!("{port:?} was not read at the end")))
    }
}

/// Whether a counter of a port fell between two sweeps.
#[derive(Clone, Copy, Debug, Default)]
struct Fell {
    surely: bool,
    perhaps: bool,
}

impl Fell {
    fn add(&mut self, other: Fell) {
        self.surely |= other.surely;
        self.perhaps |= other.perhaps;
    }
}

fn within(what: &str, value: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!("{what} is {value}, not from {least} to {most}"))
    }
}
