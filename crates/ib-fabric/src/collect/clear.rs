//! Clears nearly full counters, if the operator enables it.
//!
//! A field of 4 to 32 bits saturates at its highest value, and later events are lost. With
//! `--fabric.clear-saturated` counters that are over three quarters full are cleared after a sweep. Each is
//! read again just before, so that totals miss only the events of the microseconds between. It is off by
//! default, because other tools see the counters fall. FEC counters are cleared together, as other tools do.
//!
//! A Set is sent once: if only its response is lost, a second one would clear the events since the first. After silence
//! the counters are read again: those that are lower were cleared. If that read gets no response either, the next sweep
//! finds lower counters, as if another tool had cleared them.

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};

use ib_mad::clear::CounterSelect;
use ib_mad::counter::{Attribute, CounterField};
use ib_mad::pma::{clear_counters, clear_fec_counters};
use ib_mad::reading::Raw;
use ib_umad::plan::QueryPlan;
use ib_umad::{Address, QueuePair, Request, RequestError};

use super::Outcome;
use super::agent_cache::{AgentCache, agent_of};
use crate::snapshot::Cleared;
use crate::{PortIndex, Snapshot};
use ib_mad::{Counter, Lid, Mad, Moment, PortKey, pma};

/// How many port attributes are cleared after a sweep at most, the fullest first; the others come next.
const MAX_PER_SWEEP: usize = 64;

/// A port with nearly full counters of one attribute.
#[derive(Debug)]
struct ClearJob {
    port: PortIndex,
    attribute: Attribute,
    agent: PortKey,
    lid: Lid,
    narrow: Vec<(Counter, CounterField)>,
    /// Last values of the counters to clear; empty until they are read.
    last: Vec<(Counter, u64)>,
    step: Step,
}

/// What is sent next for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The read of the values just before.
    Read,
    Clear,
    /// The Set had no response: the read that shows whether it was executed.
    Verify,
}

impl ClearJob {
    /// The counters of a response.
    fn values<'a>(
        &'a self,
        response: &'a Mad,
    ) -> impl Iterator<Item = (Counter, CounterField, u64)> {
        self.narrow.iter().map(|&(counter, field)| (counter, field, field.read(response)))
    }
}

/// The query plan; see the [module](self).
#[derive(Debug)]
pub struct CounterClearing<'a> {
    swept: &'a Snapshot<Raw>,
    agents: &'a mut AgentCache,
    jobs: Vec<ClearJob>,
    /// Jobs to read, and to clear.
    queue: VecDeque<usize>,
    /// Agents with a job in progress: the Set follows the read at once, and a refused one is the last.
    busy: HashSet<PortKey>,
    cleared: Vec<Cleared>,
    refusals: Vec<String>,
}

impl<'a> CounterClearing<'a> {
    /// A plan for the ports with nearly full counters in a sweep.
    pub fn new(swept: &'a Snapshot<Raw>, agents: &'a mut AgentCache) -> Self {
        let mut jobs: Vec<(u64, ClearJob)> =
            swept.fabric.port_indexes().flat_map(|port| jobs_of(swept, agents, port)).collect();
        jobs.sort_by_key(|(fill, _)| Reverse(*fill));
        jobs.truncate(MAX_PER_SWEEP);
        CounterClearing {
            swept,
            agents,
            queue: (0..jobs.len()).collect(),
            jobs: jobs.into_iter().map(|(_, job)| job).collect(),
            busy: HashSet::new(),
            cleared: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// The cleared counters, and messages about refused Sets, after the run.
    pub fn finish(self) -> (Vec<Cleared>, Vec<String>) {
        (self.cleared, self.refusals)
    }

    fn handle_read(&mut self, index: usize, response: &Mad) {
        let job = &mut self.jobs[index];
        // FEC counters are cleared together.
        let together = job.attribute == Attribute::PortExtendedSpeedsCounters
            && job.values(response).any(|(_, field, value)| is_nearly_full(field, value));
        let is_cleared = |field, value| together || is_nearly_full(field, value);
        let values = job.values(response).filter(|&(_, field, value)| is_cleared(field, value));
        job.last = values.map(|(counter, _, value)| (counter, value)).collect();
        if !job.last.is_empty() {
            // At once: events in between are lost.
            self.continue_with(index, Step::Clear);
        }
    }

    /// Goes on with a job before all others.
    fn continue_with(&mut self, index: usize, step: Step) {
        self.jobs[index].step = step;
        self.queue.push_front(index);
    }

    fn handle_set(&mut self, index: usize, outcome: Outcome<'_>, at: Moment) {
        let job = &self.jobs[index];
        match outcome {
            Ok(_) => self.cleared.extend(job.last.iter().map(|last| cleared(job.port, *last, at))),
            Err(RequestError::TimedOut) => self.continue_with(index, Step::Verify),
            Err(failure @ RequestError::Status(_)) => self.refuse(index, failure),
            Err(_) => {}
        }
    }

    /// Handles the read after a Set without a response.
    fn handle_verification(&mut self, index: usize, response: &Mad, at: Moment) {
        let (job, before) = (&self.jobs[index], self.cleared.len());
        let is_lower = |&&(counter, last): &&(Counter, u64)| {
            job.values(response).any(|(read, _, value)| read == counter && value < last)
        };
        let lower = job.last.iter().filter(is_lower);
        self.cleared.extend(lower.map(|last| cleared(job.port, *last, at)));
        if self.cleared.len() == before {
            // A device that requires a key does not respond.
            self.refuse(index, RequestError::TimedOut);
        }
    }

    /// Leaves out what an agent refused to clear.
    fn refuse(&mut self, index: usize, failure: RequestError) {
        let job = &self.jobs[index];
        let PortKey { guid, number: port } = self.swept.fabric.port_key(job.port);
        self.refusals.push(format!(
            "cannot clear counters of node {guid} port {port}: {failure}; not tried again until the next discovery"
        ));
        let (refused, jobs) = ((job.agent, job.attribute), &self.jobs);
        self.queue.retain(|&other| (jobs[other].agent, jobs[other].attribute) != refused);
        self.agents.uncleared.insert(refused);
    }
}

fn cleared(port: PortIndex, (counter, last): (Counter, u64), at: Moment) -> Cleared {
    Cleared { port, counter, last, at }
}

/// The jobs of a port, by attribute, with the fill level of the fullest counter of each in thousandths.
fn jobs_of(
    swept: &Snapshot<Raw>,
    agents: &AgentCache,
    port: PortIndex,
) -> impl Iterator<Item = (u64, ClearJob)> {
    let fabric = &swept.fabric;
    let agent = agent_of(fabric, port);
    let clearable = agents.clearable(agent, fabric.port_key(port));
    let reading = swept.reading(port).filter(|_| swept.is_up(fabric.port(port).node));
    let attributes = [Attribute::PortCounters, Attribute::PortExtendedSpeedsCounters];
    attributes.into_iter().filter_map(move |attribute| {
        let (reading, lid) = (reading?, fabric.lid_of(port)?);
        let narrow = clearable.iter().filter(|(_, field)| field.attribute == attribute);
        let narrow: Vec<(Counter, CounterField)> = narrow.copied().collect();
        let fills = narrow.iter().filter_map(|&(counter, field)| {
            let value = reading.get(counter).filter(|value| is_nearly_full(field, *value))?;
            // The value may come from a wider field.
            Some(value.min(field.max()) * 1000 / field.max())
        });
        let fill = fills.max()?;
        let (last, step) = (Vec::new(), Step::Read);
        Some((fill, ClearJob { port, attribute, agent, lid, narrow, last, step }))
    })
}

/// Whether a field is over three quarters full.
fn is_nearly_full(field: CounterField, value: u64) -> bool {
    value >= field.max() - field.max() / 4
}

impl QueryPlan for CounterClearing<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if qp != QueuePair::Qp1 {
            return None;
        }
        let is_free = |&index: &usize| {
            let job = &self.jobs[index];
            job.step != Step::Read || !self.busy.contains(&job.agent)
        };
        let at = self.queue.iter().position(is_free)?;
        let index = self.queue.remove(at)?;
        let job = &self.jobs[index];
        self.busy.insert(job.agent);
        let number = self.swept.fabric.port(job.port).number;
        let query = if job.step != Step::Clear {
            pma::counters(job.attribute, number)
        } else if job.attribute == Attribute::PortExtendedSpeedsCounters {
            clear_fec_counters(number)
        } else {
            clear_counters(number, CounterSelect::new(job.last.iter().map(|(counter, _)| *counter)))
        };
        Some((Request { to: Address::Lid(job.lid), query }, index as u64))
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Outcome<'_>, at: Moment) {
        let index = tag as usize;
        self.busy.remove(&self.jobs[index].agent);
        match (self.jobs[index].step, outcome) {
            (Step::Clear, outcome) => self.handle_set(index, outcome, at),
            (Step::Read, Ok(response)) => self.handle_read(index, response),
            (Step::Verify, Ok(response)) => self.handle_verification(index, response, at),
            (Step::Read | Step::Verify, Err(_)) => {}
        }
    }
}
