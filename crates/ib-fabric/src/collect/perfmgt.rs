//! The counter sweep: each port of each switch and HCA is asked for what it counted.
//!
//! What a device's ClassPortInfo offers decides what it is asked for; that is asked once and kept
//! for as long as the device stays, and so is PortSamplesControl: the tick in which PortXmitWait counts,
//! and the options that the device announces. It is asked agent by agent and not once per device type:
//! options may differ between firmware versions, which NodeInfo does not tell, and the tick of each
//! agent is read anyway.
//! A node that does not answer costs the others nothing.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::topology::End;
use crate::{Fabric, NodeIndex, PortIndex};
use ib_mad::class_port_info::Capabilities;
use ib_mad::node::NodeKind;
use ib_mad::pma;
use ib_mad::pma::{Page, PortSamplesControl};
use ib_mad::reading::{Raw, Reading};
use ib_mad::{Lid, Moment};
use ib_mad::{Mad, status};
use ib_umad::{Address, Failure, Request};

use super::agents::{Plans, Sampling, agent_of, counts_waiting};

/// An agent: a switch's answers for all of its ports, a CA's for the one port that it sits on.
#[derive(Debug)]
struct Agent {
    end: End,
    lid: Lid,
    plan: Option<Arc<[Page]>>,
    ports: Vec<PortIndex>,
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    Capabilities {
        agent: u32,
    },
    Page {
        agent: u32,
        port: PortIndex,
        page: u8,
    },
    Sampling {
        agent: u32,
    },
    /// Is the absent node that last had this LID back?
    Probe {
        lid: Lid,
    },
}

/// The walk; see the module.
#[derive(Debug)]
pub struct CounterSweep<'a> {
    fabric: &'a Fabric,
    known: &'a mut Plans,
    /// The ports whose links run with Reed-Solomon error correction, by port index.
    reed_solomon: Vec<bool>,
    agents: Vec<Agent>,
    queue: VecDeque<Ask>,
    asked: Vec<Ask>,
    began: Moment,
    readings: Vec<Option<Reading<Raw>>>,
    /// What the classic fields show, of ports that have the same counters in 64 bits.
    classic: HashMap<PortIndex, Reading<Raw>>,
    /// The ports that were asked for the causes of errors and discards, by port index.
    detailed: Vec<bool>,
    failed: Vec<bool>,
    returned: bool,
}

/// What a counter sweep brought in.
#[derive(Debug)]
pub struct Counters {
    /// By port index; `None` where nothing was read.
    pub readings: Vec<Option<Reading<Raw>>>,
    /// Ticks of the sampling, by node index, as far as they are known.
    pub ticks: Vec<Option<u8>>,
    /// Ports of which something that was asked for is missing.
    pub failed_ports: usize,
    /// Somebody answers where an absent node was.
    pub returned: bool,
}

impl<'a> CounterSweep<'a> {
    /// A sweep over the present nodes of a fabric. What only a link with Reed-Solomon error correction
    /// counts is asked for where `reed_solomon`, by port index, says so.
    pub(super) fn new(
        fabric: &'a Fabric,
        known: &'a mut Plans,
        reed_solomon: Vec<bool>,
        began: Moment,
    ) -> Self {
        let mut sweep = CounterSweep {
            began,
            readings: vec![None; fabric.ports.len()],
            classic: HashMap::new(),
            detailed: vec![false; fabric.ports.len()],
            failed: vec![false; fabric.ports.len()],
            returned: false,
            fabric,
            known,
            reed_solomon,
            agents: Vec::new(),
            queue: VecDeque::new(),
            asked: Vec::new(),
        };
        for node in fabric.node_indexes() {
            sweep.add_agents_of(node);
        }
        sweep.queue_known_ports();
        sweep.queue_samplings();
        sweep.queue_probes();
        sweep
    }

    /// An absent node is asked where it last was: a host that hung keeps its link, so no port's
    /// state tells that it is back. Unless somebody else has its LID by now.
    fn queue_probes(&mut self) {
        let fabric = self.fabric;
        let present = |port: &PortIndex| fabric.node_of(*port).present();
        let taken: HashSet<u16> = fabric
            .port_indexes()
            .filter(present)
            .filter_map(|port| fabric.port(port).status)
            .flat_map(|status| {
                let first = status.lid.0;
                first..first.saturating_add(1 << status.lmc)
            })
            .collect();
        let absent = fabric.node_indexes().filter(|&node| !fabric.node(node).present());
        let lids =
            absent.filter_map(|node| fabric.ports_of(node).find_map(|port| fabric.lid_of(port)));
        self.queue.extend(lids.filter(|lid| !taken.contains(&lid.0)).map(|lid| Ask::Probe { lid }));
    }

    fn add_agents_of(&mut self, index: NodeIndex) {
        let fabric = self.fabric;
        let node = fabric.node(index);
        // Aggregation nodes need not have an agent.
        if !node.present() || node.identity.kind == NodeKind::AggregationNode {
            return;
        }
        for port in fabric.ports_of(index).filter(|&port| fabric.is_watched(port)) {
            let Some(lid) = fabric.lid_of(port) else { continue };
            let end = agent_of(fabric, port);
            match self.agents.last_mut().filter(|agent| agent.end == end) {
                Some(agent) => agent.ports.push(port),
                None => self.agents.push(Agent {
                    end,
                    lid,
                    plan: self.known.get(end),
                    ports: vec![port],
                }),
            }
        }
    }

    /// Ports of known agents, all first ports before all second ones, so that the windows of many
    /// LIDs are filled and no switch gets a burst.
    fn queue_known_ports(&mut self) {
        let most = self.agents.iter().map(|agent| agent.ports.len()).max().unwrap_or(0);
        for (index, agent) in self.agents.iter().enumerate() {
            if agent.plan.is_none() {
                self.queue.push_back(Ask::Capabilities { agent: index as u32 });
            }
        }
        for nth in 0..most {
            for index in 0..self.agents.len() as u32 {
                let agent = &self.agents[index as usize];
                if let (Some(&port), Some(plan)) = (agent.ports.get(nth), agent.plan.clone()) {
                    self.queue_pages(index, port, &plan, 0);
                }
            }
        }
    }

    /// Queues the pages of a port's plan from the first one on that is not queued yet.
    fn queue_pages(&mut self, agent: u32, port: PortIndex, plan: &[Page], first: usize) {
        let index = port.0 as usize;
        let has_details = plan.iter().skip(first).any(Page::is_detail);
        self.detailed[index] |=
            has_details && self.known.needs_details(self.fabric.end(port), self.began);
        for (page, number) in plan.iter().zip(0..).skip(first) {
            let is_due = self.detailed[index] || !page.is_detail();
            if is_due && (self.reed_solomon[index] || !page.is_for_reed_solomon()) {
                self.queue.push_back(Ask::Page { agent, port, page: number });
            }
        }
    }

    /// The sampling comes last: the counters are to be of one time.
    fn queue_samplings(&mut self) {
        for agent in 0..self.agents.len() as u32 {
            self.queue_sampling(agent);
        }
    }

    fn queue_sampling(&mut self, index: u32) {
        let agent = &self.agents[index as usize];
        let is_safe = agent.plan.as_ref().is_some_and(|plan| counts_waiting(plan));
        if is_safe && self.known.needs_sampling(agent.end) {
            self.queue.push_back(Ask::Sampling { agent: index });
        }
    }

    /// The next question.
    pub fn next_request(&mut self) -> Option<(Request, u64)> {
        let ask = self.queue.pop_front()?;
        let (lid, query) = match ask {
            Ask::Capabilities { agent } => {
                (self.agents[agent as usize].lid, pma::class_port_info())
            }
            Ask::Page { agent, port, page } => {
                let agent = &self.agents[agent as usize];
                let attribute = agent.plan.as_ref()?[usize::from(page)].attribute;
                (agent.lid, pma::counters(attribute, self.fabric.port(port).number))
            }
            Ask::Sampling { agent } => {
                let agent = &self.agents[agent as usize];
                let numbers = || agent.ports.iter().map(|&port| self.fabric.port(port).number);
                // A switch's port 0 leads into it, and need not tick as its cables do.
                let number = numbers().find(|&number| number != 0).or_else(|| numbers().next())?;
                (agent.lid, pma::samples_control(number))
            }
            Ask::Probe { lid } => (lid, pma::class_port_info()),
        };
        self.asked.push(ask);
        Some((Request { to: Address::Lid(lid), query }, self.asked.len() as u64 - 1))
    }

    /// Takes an outcome in. Tells the port, for its node's sign of life.
    pub fn finished(
        &mut self,
        tag: u64,
        outcome: Result<&Mad, Failure>,
        at: Moment,
    ) -> Option<PortIndex> {
        let ask = *self.asked.get(tag as usize)?;
        match ask {
            Ask::Probe { .. } => {
                self.returned |= outcome.is_ok();
                None
            }
            Ask::Capabilities { agent } => {
                self.learn(agent, outcome);
                self.agents[agent as usize].ports.first().copied()
            }
            Ask::Sampling { agent } => {
                self.learn_sampling(agent, outcome);
                // Its silence to this says nothing of the node.
                outcome.is_ok().then(|| self.agents[agent as usize].ports.first().copied())?
            }
            Ask::Page { agent, port, page } => {
                let agent = &self.agents[agent as usize];
                let page = &agent.plan.as_ref()?[usize::from(page)];
                match outcome {
                    Ok(mad) if page.is_second => {
                        let reading = self.classic.entry(port).or_insert(Reading::empty(at));
                        page.read(mad, reading);
                    }
                    Ok(mad) => {
                        let reading = self.readings[port.0 as usize]
                            .get_or_insert_with(|| Reading::empty(at));
                        page.read(mad, reading);
                        reading.at = at;
                    }
                    Err(Failure::Status(status))
                        if page.is_optional() && status::is_unsupported(status) =>
                    {
                        self.known.leave_out(agent.end, page.attribute);
                    }
                    Err(_) => self.failed[port.0 as usize] = true,
                }
                Some(port)
            }
        }
    }

    fn learn(&mut self, index: u32, outcome: Result<&Mad, Failure>) {
        let fabric = self.fabric;
        let agent = &mut self.agents[index as usize];
        let capabilities = match outcome {
            Ok(mad) => Capabilities::decode(mad),
            // It answers, but not this: then it has the counters that every agent must have.
            Err(Failure::Status(status)) if status::is_unsupported(status) => {
                Capabilities::default()
            }
            Err(_) => {
                agent.ports.iter().for_each(|port| self.failed[port.0 as usize] = true);
                return;
            }
        };
        let is_switch = agent.ports.first().is_some_and(|&port| fabric.node_of(port).is_switch());
        let plan = self.known.learn(agent.end, capabilities, is_switch);
        agent.plan = Some(Arc::clone(&plan));
        for port in agent.ports.clone() {
            self.queue_pages(index, port, &plan, 0);
        }
        self.queue_sampling(index);
    }

    fn learn_sampling(&mut self, index: u32, outcome: Result<&Mad, Failure>) {
        let agent = &self.agents[index as usize];
        let is_heard = || agent.ports.iter().any(|port| self.readings[port.0 as usize].is_some());
        let said = match outcome {
            Ok(mad) => {
                let PortSamplesControl { tick, option_mask, .. } = PortSamplesControl::decode(mad);
                Sampling::Told { tick, options: option_mask }
            }
            Err(Failure::Status(status)) if status::is_unsupported(status) => Sampling::NotTold,
            Err(Failure::TimedOut) if is_heard() => Sampling::Silence(1),
            // Another time.
            Err(_) => return,
        };
        let Some(full) = self.known.learn_sampling(agent.end, said) else { return };
        // Pages that are queued already keep their places.
        let agent = &mut self.agents[index as usize];
        let asked = agent.plan.as_deref().unwrap_or_default();
        let first = asked.len();
        let details = full.iter().filter(|page| page.is_detail() && !asked.contains(page));
        let plan: Arc<[Page]> = asked.iter().chain(details).cloned().collect();
        agent.plan = Some(Arc::clone(&plan));
        for port in agent.ports.clone() {
            self.queue_pages(index, port, &plan, first);
        }
    }

    /// Takes each counter from the right field, and marks those that were not due.
    fn settle(&mut self) {
        for agent in &self.agents {
            // As it is by now: what an agent refused is not missing.
            let Some(plan) = self.known.get(agent.end) else { continue };
            let second = plan.iter().find(|page| page.is_second);
            let details = || plan.iter().filter(|page| page.is_detail());
            for page in details() {
                let ports = agent.ports.iter().map(|port| port.0 as usize);
                let asked = ports.filter(|&port| self.detailed[port]);
                let readings: Vec<_> =
                    asked.filter_map(|port| self.readings[port].as_ref()).collect();
                let has = |reading: &&Reading<Raw>| {
                    page.counters.iter().any(|(counter, _)| reading.get(*counter).is_some())
                };
                if !readings.is_empty() {
                    let answered = readings.iter().any(has);
                    self.known.was_asked(agent.end, page.attribute, answered);
                }
            }
            let details: Vec<_> = details().flat_map(|page| &page.counters).collect();
            for &port in &agent.ports {
                let (index, end) = (port.0 as usize, self.fabric.end(port));
                let classic = self.classic.get(&port);
                let place = &mut self.readings[index];
                if let Some(page) = second {
                    let mut reading = match (place.take(), classic) {
                        (Some(reading), _) => reading,
                        (None, Some(classic)) => Reading::empty(classic.at),
                        (None, None) => continue,
                    };
                    self.known.sources.select(end, &page.counters, &mut reading, classic);
                    *place = Some(reading).filter(|reading| !reading.is_empty());
                }
                let Some(reading) = place else { continue };
                if !self.detailed[index] {
                    for (counter, _) in &details {
                        reading.set_not_due(*counter);
                    }
                } else if details.iter().all(|(counter, _)| reading.get(*counter).is_some()) {
                    self.known.has_read_details(end, self.began);
                }
            }
        }
    }

    /// What was read, once the walk is at its end.
    pub fn finish(mut self) -> Counters {
        self.settle();
        let mut ticks = vec![None; self.fabric.nodes.len()];
        for agent in &self.agents {
            if let (Some(&port), Some(tick)) = (agent.ports.first(), self.known.tick(agent.end)) {
                ticks[self.fabric.port(port).node.0 as usize].get_or_insert(tick);
            }
        }
        Counters {
            ticks,
            readings: self.readings,
            failed_ports: self.failed.into_iter().filter(|failed| *failed).count(),
            returned: self.returned,
        }
    }
}
