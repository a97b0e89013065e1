//! The counter sweep: reads the counters of each port of each switch and HCA.
//!
//! ClassPortInfo decides which attributes are read of a device. It is read once and cached as long as the device
//! stays, and so is PortSamplesControl: the tick of PortXmitWait, and the options that the device announces. It is
//! read of each agent and not once per device type: options may differ between firmware versions, which NodeInfo does
//! not report, and the tick of each agent is needed anyway. A node that does not respond does not delay the others.

use std::collections::{HashMap, HashSet, VecDeque};

use ib_mad::class_port_info::PmaCapabilities;
use ib_mad::counter::Attribute;
use ib_mad::node::NodeKind;
use ib_mad::pma::{self, AttributePlan, PortSamplesControl};
use ib_mad::reading::{Raw, Reading};
use ib_umad::{Address, Request, RequestError};

use super::agent_cache::{PmaCapabilityCache, ReadPlan, agent_of, has_wide_xmit_wait};
use super::silent_adapters::SilentAdapters;
use super::state_tables::Retrains;
use super::throttle::{ThrottledQueue, take_turns_after};
use super::unresponsive::MAX_SILENT;
use super::{Outcome, has_responded, is_unsupported};
use crate::{Fabric, NodeIndex, NodeMap, PortIndex, PortMap};
use ib_mad::{Counter, Lid, Moment, PortKey, Query};

/// A request that is sent once: it has a single try, whatever its destination did before.
fn probe() -> Query {
    Query { is_optional: true, ..pma::class_port_info() }
}

/// An agent: of a switch for all of its ports, of a CA for one port.
#[derive(Debug)]
struct Agent {
    end: PortKey,
    lid: Lid,
    plan: Option<ReadPlan>,
    ports: Vec<PortIndex>,
    /// It is only probed, because it is an adapter that is expected to be silent.
    is_probed: bool,
    /// A bit for each attribute of its plan that it had of some port in this sweep: the cache has it then.
    has: u8,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum CounterQuery {
    PmaCapabilities { agent: u32 },
    // `index` is that in the agent's read plan.
    Attribute { agent: u32, port: PortIndex, index: u8 },
    Sampling { agent: u32 },
    // Whether the absent node that last had this LID is back.
    Probe { lid: Lid },
}

#[derive(Debug)]
pub struct CounterSweep<'a> {
    fabric: &'a Fabric,
    cache: &'a mut PmaCapabilityCache,
    /// Whether the link has Reed-Solomon FEC.
    reed_solomon: PortMap<bool>,
    agents: Vec<Agent>,
    queue: VecDeque<CounterQuery>,
    /// Adapters, of which nearly none responded last time.
    pub adapters: &'a mut SilentAdapters,
    /// The agents to probe.
    probes: ThrottledQueue<u32>,
    began: Moment,
    pub readings: PortMap<Option<Reading<Raw>>>,
    /// Classic fields of ports that have the same counters in 64 bits.
    classic: HashMap<PortIndex, Reading<Raw>>,
    /// Whether error details are queried.
    detailed: PortMap<bool>,
    /// Whether a response is missing.
    pub failed: PortMap<bool>,
    /// An absent node responded.
    pub returned: bool,
    /// Agents of which the cache has learned something in this sweep.
    learned: HashSet<u32>,
    /// Agents that are so slow, or busy for so long, that there was no time for some ports.
    slow: HashSet<u32>,
    /// Optional attributes that were refused for a port.
    refused: HashSet<(u32, Attribute)>,
}

impl<'a> CounterSweep<'a> {
    /// A sweep over the present nodes of a fabric, with probes of absent ones at these LIDs. Counters that are valid only
    /// with Reed-Solomon FEC are read if `reed_solomon` is set.
    pub(super) fn new(
        fabric: &'a Fabric,
        (cache, adapters): (&'a mut PmaCapabilityCache, &'a mut SilentAdapters),
        absent: Vec<Lid>,
        reed_solomon: PortMap<bool>,
        began: Moment,
    ) -> Self {
        let mut sweep = CounterSweep {
            began,
            readings: PortMap::filled(fabric.ports.len(), None),
            classic: HashMap::new(),
            detailed: PortMap::filled(fabric.ports.len(), false),
            failed: PortMap::filled(fabric.ports.len(), false),
            returned: false,
            learned: HashSet::new(),
            slow: HashSet::new(),
            refused: HashSet::new(),
            fabric,
            cache,
            reed_solomon,
            agents: Vec::new(),
            queue: VecDeque::new(),
            adapters,
            probes: ThrottledQueue::new(VecDeque::new(), MAX_SILENT),
        };
        for node in fabric.node_indexes() {
            sweep.add_agents_of(node);
        }
        sweep.order_ports();
        sweep.queue_known_ports();
        // The sampling comes last, so that the counters are read at about the same time.
        (0..sweep.agents.len() as u32).for_each(|agent| sweep.queue_sampling(agent));
        sweep.queue.extend(absent.into_iter().map(|lid| CounterQuery::Probe { lid }));
        sweep.queue_silent();
        sweep
    }

    /// Queues the agents that are only probed, in turns. Their counters are missing until they respond.
    fn queue_silent(&mut self) {
        let is_probed = |index: &u32| self.agents[*index as usize].is_probed;
        let mut probed: Vec<u32> = (0..self.agents.len() as u32).filter(is_probed).collect();
        // Sorted, as nodes and ports are.
        let end = |index: &u32| self.agents[*index as usize].end;
        let has_lapsed = |index: &&u32| self.adapters.has_lapsed(end(index).guid);
        let mut lapsed: Vec<u32> = probed.iter().filter(has_lapsed).copied().collect();
        take_turns_after(&mut lapsed, self.adapters.last_lapsed, end);
        take_turns_after(&mut probed, self.adapters.last_probe, end);
        // One of those that have responded before is the first.
        if let Some(&first) = lapsed.first() {
            self.adapters.last_lapsed = Some(end(&first));
            probed.retain(|&index| index != first);
            probed.insert(0, first);
        }
        for &port in probed.iter().flat_map(|index| &self.agents[*index as usize].ports) {
            self.failed[port] = true;
        }
        self.probes.queue = probed.into();
    }

    fn add_agents_of(&mut self, index: NodeIndex) {
        let fabric = self.fabric;
        let node = fabric.node(index);
        // Aggregation nodes may have no agent.
        if !node.present() || node.identity.kind == NodeKind::AggregationNode {
            return;
        }
        for port in fabric.ports_of(index).filter(|&port| fabric.is_monitored(port)) {
            let Some(lid) = fabric.lid_of(port) else { continue };
            let end = agent_of(fabric, port);
            match self.agents.last_mut().filter(|agent| agent.end == end) {
                Some(agent) => agent.ports.push(port),
                None => self.agents.push(Agent {
                    end,
                    lid,
                    plan: self.cache.get(end),
                    ports: vec![port],
                    is_probed: self.adapters.is_probed(fabric, index),
                    has: 0,
                }),
            }
        }
    }

    /// Orders the ports of agents that are given up in each sweep, or the same ports would never be read. If there was
    /// no time for all, the others come first; and last are those of which the agent drops what it is asked.
    fn order_ports(&mut self) {
        let (fabric, cache) = (self.fabric, &self.cache);
        for Agent { end, ports, .. } in self.agents.iter_mut().filter(|it| it.ports.len() > 1) {
            if let Some(first) = cache.first_ports.get(end) {
                let at = ports.iter().position(|&port| fabric.port(port).number == *first);
                ports.rotate_left(at.unwrap_or(0));
            }
            if !cache.silent_ports.is_empty() {
                ports.sort_by_key(|&port| cache.silent_ports.contains(&fabric.port_key(port)));
            }
        }
    }

    /// Queues the ports of known agents, all first ports before all second ones, so that the windows of
    /// many LIDs are filled and no switch gets a burst.
    fn queue_known_ports(&mut self) {
        for (index, agent) in self.agents.iter().enumerate() {
            if agent.plan.is_none() && !agent.is_probed {
                self.queue.push_back(CounterQuery::PmaCapabilities { agent: index as u32 });
            }
        }
        let max = self.agents.iter().map(|agent| agent.ports.len()).max();
        for nth in 0..max.unwrap_or(0) {
            for index in 0..self.agents.len() as u32 {
                if let Some(&port) = self.agents[index as usize].ports.get(nth) {
                    self.queue_attributes(index, port, 0);
                }
            }
        }
    }

    /// Queues the attributes of the agent's plan for a port, from index `first` on.
    fn queue_attributes(&mut self, agent: u32, port: PortIndex, first: usize) {
        let Agent { plan: Some(plan), is_probed: false, .. } = &self.agents[agent as usize] else {
            return;
        };
        let plan = ReadPlan::clone(plan);
        let has_details = plan.iter().skip(first).any(AttributePlan::is_detail);
        self.detailed[port] |=
            has_details && self.cache.needs_details(self.fabric.port_key(port), self.began);
        for (attribute, index) in plan.iter().zip(0..).skip(first) {
            let is_due = self.detailed[port] || !attribute.is_detail();
            if is_due && (self.reed_solomon[port] || !attribute.needs_reed_solomon()) {
                self.queue.push_back(CounterQuery::Attribute { agent, port, index });
            }
        }
    }

    fn queue_sampling(&mut self, index: u32) {
        let agent = &self.agents[index as usize];
        let is_safe = agent.plan.as_ref().is_some_and(|plan| has_wide_xmit_wait(plan));
        if is_safe && !agent.is_probed && self.cache.needs_sampling(agent.end) {
            self.queue.push_back(CounterQuery::Sampling { agent: index });
        }
    }

    /// The most MADs that it sends; only before the first request. Retries are not known in advance.
    pub fn max_mads(&self) -> usize {
        let optional = self.cache.optional;
        let ports = |agent: u32| self.agents[agent as usize].ports.len();
        let mads = |query: CounterQuery| match query {
            // Its response raises the attributes of each port, and the sampling.
            CounterQuery::PmaCapabilities { agent } => 2 + ports(agent) * optional.max_attributes(),
            CounterQuery::Sampling { agent } => 1 + ports(agent) * optional.detail_attributes(),
            CounterQuery::Attribute { .. } | CounterQuery::Probe { .. } => 1,
        };
        let probes = self.probes.queue.iter().map(|&agent| CounterQuery::PmaCapabilities { agent });
        self.queue.iter().copied().chain(probes).map(mads).sum()
    }

    pub fn poll_request(&mut self) -> Option<(Request, CounterQuery)> {
        loop {
            let next = self.queue.pop_front().or_else(|| self.pop_probe())?;
            if let Some(request) = self.request(next) {
                return Some((request, next));
            }
        }
    }

    /// Whether no request is left until there are more responses.
    pub fn is_done(&mut self) -> bool {
        while let Some(&next) = self.queue.front() {
            if self.request(next).is_some() {
                return false;
            }
            self.queue.pop_front();
        }
        self.probes.is_done()
    }

    /// Asks nothing of the agents of ports that `is_asked` excludes.
    pub fn leave_out(&mut self, is_asked: impl Fn(PortIndex) -> bool) {
        let agents = &self.agents;
        self.queue.retain(|query| match query {
            CounterQuery::PmaCapabilities { agent }
            | CounterQuery::Attribute { agent, .. }
            | CounterQuery::Sampling { agent } => {
                agents[*agent as usize].ports.iter().all(|&port| is_asked(port))
            }
            CounterQuery::Probe { .. } => true,
        });
        let is_probed =
            |&agent: &u32| agents[agent as usize].ports.iter().all(|&port| is_asked(port));
        self.probes.queue.retain(is_probed);
    }

    fn responses(&self, port: PortIndex) -> impl Iterator<Item = &Reading<Raw>> {
        [self.readings[port].as_ref(), self.classic.get(&port)].into_iter().flatten()
    }

    /// Whether counters of a port were read.
    pub fn has_response(&self, port: PortIndex) -> bool {
        self.responses(port).next().is_some()
    }

    /// How often a port's link went down, as far as it was read.
    pub fn link_downs(&self, port: PortIndex) -> Option<u64> {
        self.responses(port).filter_map(|it| it.get(Counter::LinkDowned)).max()
    }

    /// How often a port's link trained again, if both counters were read and neither is saturated.
    pub fn retrains(&self, port: PortIndex) -> Option<Retrains> {
        const NAMES: [Counter; 2] = [Counter::LinkDowned, Counter::LinkErrorRecoveries];
        let [downs, recoveries] = NAMES.map(|counter| {
            let mut sum = None;
            for reading in self.responses(port) {
                if let Some(value) = reading.get(counter) {
                    // Of two fields that are the same counter the sum changes, too.
                    let known: u32 = sum.unwrap_or_default();
                    sum = Some(known.wrapping_add(value as u32));
                    if reading.saturated.contains(counter) {
                        return None;
                    }
                }
            }
            sum
        });
        Some(Retrains { downs: downs?, recoveries: recoveries? })
    }

    /// Remembers the attributes that agents refused and have of no port. What a switch has of others is refused for one
    /// port only, such as an internal one.
    fn learn_refusals(&mut self) {
        for (index, attribute) in self.refused.drain() {
            let end = self.agents[index as usize].end;
            if !self.cache.supported.contains(&(end, attribute)) {
                self.learned.insert(index);
                self.cache.mark_unsupported(end, attribute);
            }
        }
    }

    /// Drops what was read of ports that `is_valid` excludes: it may be another node's.
    pub fn discard(&mut self, is_valid: impl Fn(PortIndex) -> bool) {
        self.learn_refusals();
        for (agent, index) in self.agents.iter().zip(0..) {
            let mut invalid = agent.ports.iter().filter(|&&port| !is_valid(port)).peekable();
            if invalid.peek().is_some() && self.learned.contains(&index) {
                self.cache.forget(agent.end);
            }
            for &port in invalid {
                self.readings[port] = None;
                self.classic.remove(&port);
                self.failed[port] = true;
            }
        }
    }

    fn pop_probe(&mut self) -> Option<CounterQuery> {
        let agent = self.probes.pop()?;
        self.adapters.last_probe = Some(self.agents[agent as usize].end);
        Some(CounterQuery::PmaCapabilities { agent })
    }

    /// The request of a query; `None` if there is no port or attribute for it any more.
    fn request(&self, next: CounterQuery) -> Option<Request> {
        let (lid, query) = match next {
            CounterQuery::PmaCapabilities { agent } => {
                let Agent { lid, is_probed, .. } = self.agents[agent as usize];
                (lid, if is_probed { probe() } else { pma::class_port_info() })
            }
            CounterQuery::Attribute { agent, port, index } => {
                let agent = &self.agents[agent as usize];
                let attribute = agent.plan.as_ref()?[usize::from(index)].attribute;
                (agent.lid, pma::counters(attribute, self.fabric.port(port).number))
            }
            CounterQuery::Sampling { agent } => {
                let agent = &self.agents[agent as usize];
                let numbers = || agent.ports.iter().map(|&port| self.fabric.port(port).number);
                // Port 0 of a switch is internal, and may have another tick than its external ports.
                let number = numbers().find(|&number| number != 0).or_else(|| numbers().next())?;
                (agent.lid, pma::samples_control(number))
            }
            CounterQuery::Probe { lid } => (lid, probe()),
        };
        Some(Request { to: Address::Lid(lid), query })
    }

    /// Handles an outcome. Returns the port whose node's liveness it shows.
    pub fn on_outcome(
        &mut self,
        query: CounterQuery,
        outcome: Outcome<'_>,
        at: Moment,
    ) -> Option<PortIndex> {
        match query {
            CounterQuery::Probe { .. } => {
                self.returned |= outcome.is_ok();
                None
            }
            CounterQuery::PmaCapabilities { agent } => {
                if self.agents[agent as usize].is_probed {
                    self.handle_probe(agent, outcome);
                } else {
                    self.handle_capabilities(agent, outcome);
                }
                self.agents[agent as usize].ports.first().copied()
            }
            CounterQuery::Sampling { agent } => {
                self.handle_sampling(agent, outcome);
                // No response to this says nothing about the node.
                outcome.is_ok().then(|| self.agents[agent as usize].ports.first().copied())?
            }
            CounterQuery::Attribute { agent: index_of_agent, port, index } => {
                let agent = &mut self.agents[index_of_agent as usize];
                let plan = &agent.plan.as_ref()?[usize::from(index)];
                // What an agent does for one port and not for another. Most agents have one port.
                if agent.ports.len() > 1 && !plan.is_optional() {
                    self.cache.note_response(self.fabric, port, outcome);
                } else if agent.ports.len() > 1 && outcome.is_ok() {
                    let bit = 1_u8.checked_shl(index.into()).unwrap_or(0);
                    if agent.has & bit == 0 {
                        agent.has |= bit;
                        self.cache.supported.insert((agent.end, plan.attribute));
                    }
                }
                match outcome {
                    Ok(mad) if plan.is_fallback => {
                        let reading = self.classic.entry(port).or_insert(Reading::empty(at));
                        plan.read(mad, reading);
                        reading.at = at;
                    }
                    Ok(mad) => {
                        let reading = self.readings[port].get_or_insert_with(|| Reading::empty(at));
                        plan.read(mad, reading);
                        reading.at = at;
                    }
                    Err(failure) if plan.is_optional() && is_unsupported(failure) => {
                        self.refused.insert((index_of_agent, plan.attribute));
                    }
                    Err(failure) => {
                        self.failed[port] = true;
                        let is_slow = matches!(failure, RequestError::Slow | RequestError::Busy);
                        if is_slow && self.slow.insert(index_of_agent) {
                            let number = self.fabric.port(port).number;
                            self.cache.first_ports.insert(agent.end, number);
                        }
                    }
                }
                Some(port)
            }
        }
    }

    /// An adapter that responds is read like the others, and more are probed.
    fn handle_probe(&mut self, index: u32, outcome: Outcome<'_>) {
        if !has_responded(&outcome) {
            return;
        }
        self.probes.permit_more();
        let agent = &mut self.agents[index as usize];
        agent.is_probed = false;
        for &port in &agent.ports {
            self.failed[port] = false;
        }
        match agent.plan.clone() {
            Some(plan) => {
                self.set_plan(index, plan, 0);
                self.queue_sampling(index);
            }
            None => self.handle_capabilities(index, outcome),
        }
    }

    fn handle_capabilities(&mut self, index: u32, outcome: Outcome<'_>) {
        let agent = &self.agents[index as usize];
        let capabilities = match outcome {
            Ok(mad) => PmaCapabilities::decode(mad),
            // It responds, but not to this: then it has the mandatory counters.
            Err(failure) if is_unsupported(failure) => PmaCapabilities::default(),
            Err(_) => {
                agent.ports.iter().for_each(|port| self.failed[*port] = true);
                return;
            }
        };
        let is_switch = |&port: &PortIndex| self.fabric.node_of(port).is_switch();
        let is_switch = agent.ports.first().is_some_and(is_switch);
        self.learned.insert(index);
        let plan = self.cache.insert(agent.end, capabilities, is_switch);
        self.set_plan(index, plan, 0);
        self.queue_sampling(index);
    }

    /// Sets the plan of an agent, and queues its attributes from index `first` on.
    fn set_plan(&mut self, agent: u32, plan: ReadPlan, first: usize) {
        self.agents[agent as usize].plan = Some(plan);
        for port in self.agents[agent as usize].ports.clone() {
            self.queue_attributes(agent, port, first);
        }
    }

    fn handle_sampling(&mut self, index: u32, outcome: Outcome<'_>) {
        let agent = &self.agents[index as usize];
        let has_response = || agent.ports.iter().any(|port| self.readings[*port].is_some());
        let sampling = match outcome {
            Ok(mad) => Some(PortSamplesControl::decode(mad)),
            Err(failure) if is_unsupported(failure) => None,
            Err(RequestError::TimedOut) if has_response() => {
                if !self.cache.count_unsampled(agent.end) {
                    return;
                }
                None
            }
            // Retried in another sweep.
            Err(_) => return,
        };
        self.learned.insert(index);
        let Some(full) = self.cache.insert_sampling(agent.end, sampling) else { return };
        // Attributes that are queued already keep their indexes.
        let queued = self.agents[index as usize].plan.as_deref().unwrap_or_default();
        let details = full.iter().filter(|plan| plan.is_detail() && !queued.contains(plan));
        let (plan, first) = (queued.iter().chain(details).cloned().collect(), queued.len());
        self.set_plan(index, plan, first);
    }

    /// Selects the field of each counter, and marks counters that were not due; after the run.
    pub fn select_fields(&mut self) {
        for agent in &self.agents {
            // The current plan: refused attributes are not missing.
            let Some(plan) = self.cache.get(agent.end) else { continue };
            let fallback = plan.iter().find(|plan| plan.is_fallback);
            let details = || plan.iter().filter(|plan| plan.is_detail());
            for detail in plan.iter().filter(|plan| plan.is_optional() && !plan.is_fallback) {
                let is_queried = |port: PortIndex| {
                    if detail.is_detail() { self.detailed[port] } else { self.reed_solomon[port] }
                };
                let queried = agent.ports.iter().filter(|port| is_queried(**port));
                let readings: Vec<_> =
                    queried.filter_map(|port| self.readings[*port].as_ref()).collect();
                let has = |reading: &&Reading<Raw>| {
                    detail.counters.iter().any(|(counter, _)| reading.get(*counter).is_some())
                };
                if !readings.is_empty() {
                    let answered = readings.iter().any(has);
                    self.cache.record_response(agent.end, detail.attribute, answered);
                }
            }
            let details: Vec<_> = details().flat_map(|plan| &plan.counters).collect();
            for &port in &agent.ports {
                let end = self.fabric.port_key(port);
                let classic = self.classic.get(&port);
                let slot = &mut self.readings[port];
                if let Some(fallback) = fallback {
                    let mut reading = match (slot.take(), classic) {
                        (Some(reading), _) => reading,
                        (None, Some(classic)) => Reading::empty(classic.at),
                        (None, None) => continue,
                    };
                    self.cache.sources.select(end, &fallback.counters, &mut reading, classic);
                    // A device that drops requests may have sent this one seconds after the others.
                    reading.at = classic.map_or(reading.at, |classic| reading.at.max(classic.at));
                    *slot = Some(reading).filter(|reading| !reading.is_empty());
                }
                let Some(reading) = slot else { continue };
                if !self.detailed[port] {
                    for (counter, _) in &details {
                        reading.not_due.insert(*counter);
                    }
                } else if details.iter().all(|(counter, _)| reading.get(*counter).is_some()) {
                    self.cache.record_details(end, self.began);
                }
            }
        }
    }

    /// A tick of PortXmitWait is this + 1 symbol times.
    pub fn ticks(&self) -> NodeMap<Option<u8>> {
        let mut ticks = NodeMap::filled(self.fabric.nodes.len(), None);
        for agent in &self.agents {
            if let (Some(&port), Some(tick)) = (agent.ports.first(), self.cache.tick(agent.end)) {
                ticks[self.fabric.port(port).node].get_or_insert(tick);
            }
        }
        ticks
    }
}
