//! The counter sweep: each port of each switch and HCA is asked for what it counted.
//!
//! What a device's ClassPortInfo offers decides what it is asked for; that is asked once and kept
//! for as long as the device stays. A node that does not answer costs the others nothing.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::fabric::counter::Attribute;
use crate::fabric::topology::{End, NodeKind};
use crate::fabric::{Fabric, Lid, Moment, NodeIndex, PortIndex, Reading};
use crate::mad::class_port_info::Capabilities;
use crate::mad::pma::{self, Page};
use crate::mad::{Mad, status};
use crate::transport::{Address, Failure, Request};

/// What the agents of the fabric were found to offer, kept from sweep to sweep.
#[derive(Debug, Default)]
pub struct Agents {
    details: bool,
    plans: HashMap<End, Arc<[Page]>>,
    /// Devices of one kind share a plan.
    by_capabilities: HashMap<Capabilities, Arc<[Page]>>,
}

impl Agents {
    /// None known yet. With `details` the causes of errors and discards are asked for, too.
    pub fn new(details: bool) -> Self {
        Agents { details, ..Agents::default() }
    }

    fn learn(&mut self, agent: End, capabilities: Capabilities) -> Arc<[Page]> {
        let details = self.details;
        let plan = self
            .by_capabilities
            .entry(capabilities)
            .or_insert_with(|| pma::plan(&capabilities, details).into());
        self.plans.insert(agent, Arc::clone(plan));
        Arc::clone(plan)
    }

    /// An agent does not have an attribute that it need not have: it is not asked for it again.
    fn leave_out(&mut self, agent: End, attribute: Attribute) {
        if let Some(plan) = self.plans.get_mut(&agent) {
            *plan = plan.iter().filter(|page| page.attribute != attribute).cloned().collect();
        }
    }

    /// Forgets who is not in the fabric any more, for a device that comes back may be another.
    pub fn keep_present(&mut self, fabric: &Fabric) {
        self.plans.retain(|(guid, _), _| {
            fabric.node_by_guid(*guid).is_some_and(|node| fabric.node(node).present())
        });
    }
}

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
    /// Is the absent node that last had this LID back?
    Probe {
        lid: Lid,
    },
}

/// The walk; see the module.
#[derive(Debug)]
pub struct CounterSweep<'a> {
    fabric: &'a Fabric,
    known: &'a mut Agents,
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
    /// Ports of which something that was asked for is missing.
    pub failed_ports: usize,
    /// Somebody answers where an absent node was.
    pub returned: bool,
}

impl<'a> CounterSweep<'a> {
    /// A sweep over the present nodes of a fabric.
    pub fn new(fabric: &'a Fabric, known: &'a mut Agents) -> Self {
        let mut sweep = CounterSweep {
            readings: vec![None; fabric.ports.len()],
            failed: vec![false; fabric.ports.len()],
            returned: false,
            fabric,
            known,
            agents: Vec::new(),
            queue: VecDeque::new(),
            asked: Vec::new(),
        };
        for node in fabric.node_indexes() {
            sweep.add_agents_of(node);
        }
        sweep.queue_known_ports();
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
            let number = if node.is_switch() { 0 } else { fabric.port(port).number };
            let end = (node.identity.guid, number);
            match self.agents.last_mut().filter(|agent| agent.end == end) {
                Some(agent) => agent.ports.push(port),
                None => self.agents.push(Agent {
                    end,
                    lid,
                    plan: self.known.plans.get(&end).cloned(),
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
                    push_pages(&mut self.queue, index as u32, port, plan);
                }
            }
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
            push_pages(&mut self.queue, index, port, &plan);
        }
        agent.plan = Some(plan);
    }

    /// What was read, once the walk is at its end.
    pub fn finish(self) -> Counters {
        Counters {
            readings: self.readings,
            failed_ports: self.failed.into_iter().filter(|failed| *failed).count(),
            returned: self.returned,
        }
    }
}

fn push_pages(queue: &mut VecDeque<Ask>, agent: u32, port: PortIndex, plan: &[Page]) {
    queue.extend((0..plan.len() as u8).map(|page| Ask::Page { agent, port, page }));
}
