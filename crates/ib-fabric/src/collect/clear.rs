//! Clears counters that are nearly full, where the operator has asked for that.
//!
//! A field of 4 to 32 bits sticks at its highest value, and what it would have counted since is lost.
//! With `--fabric.clear-saturated` those that are over three quarters full are set to zero after a
//! sweep. Each is read once more just before, and what it had counted then is handed on, so that totals
//! miss only what is counted in the microseconds between. That others see it fall is why it is not done
//! unasked. What error correction counts is cleared all together, as other tools do.
//!
//! A Set whose answer is lost is sent again like any question; if none is ever answered, it may have
//! been obeyed all the same. Then the counter is found lower in the next sweep, as if somebody else had
//! cleared it.

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};

use crate::snapshot::Cleared;
use crate::topology::End;
use crate::{PortIndex, Snapshot};
use ib_mad::clear::{CounterSelect, clear, clear_corrections};
use ib_mad::counter::{Attribute, Place};
use ib_mad::reading::Raw;
use ib_mad::{Counter, Lid, Moment};
use ib_mad::{Mad, pma};
use ib_umad::walk::Walk;
use ib_umad::{Address, Failure, Lane, Request};

use super::agents::{Agents, agent_of};

/// So many attributes of ports are cleared after a sweep at the most, the fullest first: the others have
/// their turn after the next.
const MOST_A_SWEEP: usize = 64;

/// A port with counters of an attribute that are nearly full.
#[derive(Debug)]
struct Job {
    port: PortIndex,
    attribute: Attribute,
    agent: End,
    lid: Lid,
    /// Its counters that may be cleared.
    narrow: Vec<(Counter, Place)>,
    /// What those that are to be cleared have counted.
    last: Vec<(Counter, u64)>,
}

/// What is asked of a port, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Look,
    Clear,
}

/// The walk; see the module.
#[derive(Debug)]
pub struct Clearing<'a> {
    swept: &'a Snapshot<Raw>,
    agents: &'a mut Agents,
    jobs: Vec<Job>,
    queue: VecDeque<(usize, Step)>,
    /// Agents that are at one of their ports: a Set waits behind nothing, and one that is refused is
    /// the last.
    busy: HashSet<End>,
    cleared: Vec<Cleared>,
    refusals: Vec<String>,
}

impl<'a> Clearing<'a> {
    /// A walk over the ports of which a sweep found that counters are nearly full.
    pub fn new(swept: &'a Snapshot<Raw>, agents: &'a mut Agents) -> Self {
        let mut jobs: Vec<(u64, Job)> =
            swept.fabric.port_indexes().flat_map(|port| jobs_of(swept, agents, port)).collect();
        jobs.sort_by_key(|(fill, _)| Reverse(*fill));
        jobs.truncate(MOST_A_SWEEP);
        let queue = (0..jobs.len()).map(|job| (job, Step::Look)).collect();
        let jobs = jobs.into_iter().map(|(_, job)| job).collect();
        Clearing {
            swept,
            agents,
            jobs,
            queue,
            busy: HashSet::new(),
            cleared: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// Where nothing can be cleared, a line each.
    pub fn refusals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refusals)
    }

    /// What was cleared, once the walk is at its end.
    pub fn finish(self) -> Vec<Cleared> {
        self.cleared
    }

    fn looked(&mut self, index: usize, answer: &Mad) {
        let job = &mut self.jobs[index];
        let values =
            job.narrow.iter().map(|&(counter, place)| (counter, place, place.read(answer.data())));
        let (full, others): (Vec<_>, Vec<_>) =
            values.partition(|&(_, place, value)| is_nearly_full(place, value));
        // Of these all are cleared together.
        let together = job.attribute == Attribute::PortExtendedSpeedsCounters && !full.is_empty();
        let others = others.into_iter().filter(|_| together);
        job.last =
            full.into_iter().chain(others).map(|(counter, _, value)| (counter, value)).collect();
        if !job.last.is_empty() {
            // At once: what is counted in between is lost.
            self.queue.push_front((index, Step::Clear));
        }
    }

    fn set(&mut self, index: usize, outcome: Result<&Mad, Failure>, at: Moment) {
        let job = &self.jobs[index];
        match outcome {
            Ok(_) => self.cleared.extend(job.last.iter().map(|&(counter, last)| Cleared {
                port: job.port,
                counter,
                last,
                at,
            })),
            // A key that protects it makes for silence.
            Err(failure @ (Failure::Status(_) | Failure::TimedOut)) => {
                let (guid, port) = self.swept.fabric.end(job.port);
                self.refusals.push(format!(
                    "the counters of node {guid} port {port} cannot be cleared: {failure}; they are left alone until \
                     the next discovery"
                ));
                let (of, jobs) = ((job.agent, job.attribute), &self.jobs);
                self.queue.retain(|(other, _)| (jobs[*other].agent, jobs[*other].attribute) != of);
                self.agents.leave_uncleared(job.agent, job.attribute);
            }
            Err(_) => {}
        }
    }
}

/// What there is to do at a port, attribute by attribute.
fn jobs_of(
    swept: &Snapshot<Raw>,
    agents: &Agents,
    port: PortIndex,
) -> impl Iterator<Item = (u64, Job)> {
    let agent = agent_of(&swept.fabric, port);
    let narrow = agents.clearable(agent, swept.fabric.end(port));
    let of = [Attribute::PortCounters, Attribute::PortExtendedSpeedsCounters];
    of.into_iter().filter_map(move |attribute| {
        let narrow = narrow.iter().filter(|(_, place)| place.attribute == attribute);
        job(swept, agent, port, attribute, narrow.copied().collect())
    })
}

/// What there is to do at a port, and how full the fullest of its counters is, in thousandths.
fn job(
    swept: &Snapshot<Raw>,
    agent: End,
    port: PortIndex,
    attribute: Attribute,
    narrow: Vec<(Counter, Place)>,
) -> Option<(u64, Job)> {
    let fabric = &swept.fabric;
    let reading = swept.reading(port).filter(|_| swept.is_up(fabric.port(port).node))?;
    let lid = fabric.lid_of(port)?;
    let fills = narrow.iter().filter_map(|&(counter, place)| {
        let value = reading.get(counter).filter(|value| is_nearly_full(place, *value))?;
        // A device may answer more than fits in the field that it announces.
        Some(value.min(place.most()) * 1000 / place.most())
    });
    let fill = fills.max()?;
    Some((fill, Job { port, attribute, agent, lid, narrow, last: Vec::new() }))
}

/// Whether a field is over three quarters full.
fn is_nearly_full(place: Place, value: u64) -> bool {
    value >= place.most() - place.most() / 4
}

impl Walk for Clearing<'_> {
    fn next(&mut self, lane: Lane) -> Option<(Request, u64)> {
        if lane != Lane::Gmp {
            return None;
        }
        let is_free = |(index, step): &(usize, Step)| {
            *step == Step::Clear || !self.busy.contains(&self.jobs[*index].agent)
        };
        let at = self.queue.iter().position(is_free)?;
        let (index, step) = self.queue.remove(at)?;
        let job = &self.jobs[index];
        self.busy.insert(job.agent);
        let number = self.swept.fabric.port(job.port).number;
        let query = match step {
            Step::Look => pma::counters(job.attribute, number),
            Step::Clear if job.attribute == Attribute::PortExtendedSpeedsCounters => {
                clear_corrections(number)
            }
            Step::Clear => {
                clear(number, CounterSelect::of(job.last.iter().map(|(counter, _)| *counter)))
            }
        };
        let tag = (index as u64) << 1 | u64::from(step == Step::Clear);
        Some((Request { to: Address::Lid(job.lid), query }, tag))
    }

    fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>, at: Moment) {
        let index = (tag >> 1) as usize;
        self.busy.remove(&self.jobs[index].agent);
        if tag & 1 == 1 {
            self.set(index, outcome, at);
        } else if let Ok(answer) = outcome {
            self.looked(index, answer);
        }
    }
}
