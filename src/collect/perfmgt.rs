//! The counter sweep: each port of each switch and HCA is asked for what it counted.
//!
//! What a device's ClassPortInfo offers decides what it is asked for; that is asked once and kept
//! for as long as the device stays, and so is the tick of the sampling, in which PortXmitWait counts.
//! A node that does not answer costs the others nothing.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::fabric::topology::{End, NodeKind};
use crate::fabric::{Counter, Fabric, Lid, Moment, NodeIndex, PortIndex, Reading};
use crate::mad::class_port_info::Capabilities;
use crate::mad::pma::{self, Page, PortSamplesControl};
use crate::mad::{Mad, status};
use crate::transport::{Address, Failure, Request};

use super::agents::{Plans, Tick, agent_of};

/// An agent: a switch's answers for all of its ports, a CA's for the one port that it sits on.
#[derive(Debug)]
struct Agent {
    end: End,
    lid: Lid,
    plan: Option<Arc<[Page]>>,
    ports: Vec<PortIndex>,
}

impl Agent {
    /// Whether it is worth asking how long a tick is: whether it counts waiting, in 64 bits. Of older
    /// devices only some answer; and ibsim, which counts in 32 bits, hands the question to whoever sits
    /// at the port, of which OpenSM dies.
    fn counts_waiting(&self) -> bool {
        let pages = self.plan.iter().flat_map(|plan| plan.iter());
        let mut counters = pages.flat_map(|page| &page.counters);
        counters.any(|(counter, place)| *counter == Counter::XmitWait && place.width == 64)
    }
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
    Tick {
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
    readings: Vec<Option<Reading>>,
    failed: Vec<bool>,
    returned: bool,
}

/// What a counter sweep brought in.
#[derive(Debug)]
pub struct Counters {
    /// By port index; `None` where nothing was read.
    pub readings: Vec<Option<Reading>>,
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
    pub(super) fn new(fabric: &'a Fabric, known: &'a mut Plans, reed_solomon: Vec<bool>) -> Self {
        let mut sweep = CounterSweep {
            readings: vec![None; fabric.ports.len()],
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
        sweep.queue_ticks();
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
            for (index, agent) in self.agents.iter().enumerate() {
                if let (Some(&port), Some(plan)) = (agent.ports.get(nth), &agent.plan) {
                    push_pages(&mut self.queue, index as u32, port, plan, &self.reed_solomon);
                }
            }
        }
    }

    /// Ticks come last: nobody waits for them, and the counters are to be of one time.
    fn queue_ticks(&mut self) {
        for agent in 0..self.agents.len() as u32 {
            self.queue_tick(agent);
        }
    }

    fn queue_tick(&mut self, index: u32) {
        let agent = &self.agents[index as usize];
        if agent.counts_waiting() && self.known.needs_tick(agent.end) {
            self.queue.push_back(Ask::Tick { agent: index });
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
            Ask::Tick { agent } => {
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
            Ask::Tick { agent } => {
                self.learn_tick(agent, outcome);
                // Its silence to this says nothing of the node.
                outcome.is_ok().then(|| self.agents[agent as usize].ports.first().copied())?
            }
            Ask::Page { agent, port, page } => {
                let agent = &self.agents[agent as usize];
                let page = &agent.plan.as_ref()?[usize::from(page)];
                match outcome {
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
        let plan = self.known.learn(agent.end, capabilities);
        for &port in &agent.ports {
            push_pages(&mut self.queue, index, port, &plan, &self.reed_solomon);
        }
        agent.plan = Some(plan);
        self.queue_tick(index);
    }

    fn learn_tick(&mut self, index: u32, outcome: Result<&Mad, Failure>) {
        let agent = &self.agents[index as usize];
        let is_heard = || agent.ports.iter().any(|port| self.readings[port.0 as usize].is_some());
        let said = match outcome {
            Ok(mad) => Tick::Told(PortSamplesControl::decode(mad).tick),
            Err(Failure::Status(status)) if status::is_unsupported(status) => Tick::NotTold,
            Err(Failure::TimedOut) if is_heard() => Tick::Silence(1),
            // Another time.
            Err(_) => return,
        };
        self.known.learn_tick(agent.end, said);
    }

    /// What was read, once the walk is at its end.
    pub fn finish(self) -> Counters {
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

fn push_pages(
    queue: &mut VecDeque<Ask>,
    agent: u32,
    port: PortIndex,
    plan: &[Page],
    reed_solomon: &[bool],
) {
    for (page, number) in plan.iter().zip(0..) {
        if reed_solomon[port.0 as usize] || !page.is_for_reed_solomon() {
            queue.push_back(Ask::Page { agent, port, page: number });
        }
    }
}
