//! What is remembered of the fabric's agents from sweep to sweep, so that each is asked once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::fabric::counter::{Attribute, Place};
use crate::fabric::topology::End;
use crate::fabric::{Counter, Fabric, PortIndex};
use crate::mad::class_port_info::Capabilities;
use crate::mad::clear::may_be_cleared;
use crate::mad::pma::{self, Extras, Page};

use super::corrections::Corrections;

/// What the agents of the fabric were found to offer.
#[derive(Debug, Default)]
pub struct Agents {
    pub(super) plans: Plans,
    pub(super) corrections: Corrections,
    /// Those that did not let their counters of an attribute be cleared.
    uncleared: HashSet<(End, Attribute)>,
}

/// The agent that answers for a port: a switch's for all of its ports, a CA's for the one port that
/// it sits on.
pub(super) fn agent_of(fabric: &Fabric, port: PortIndex) -> End {
    let (guid, number) = fabric.end(port);
    (guid, if fabric.node_of(port).is_switch() { 0 } else { number })
}

impl Agents {
    /// None known yet; `extras` are asked for, too.
    pub fn new(extras: Extras) -> Self {
        Agents {
            plans: Plans { extras, ..Plans::default() },
            corrections: Corrections::new(extras.fec),
            uncleared: HashSet::new(),
        }
    }

    /// The counters of an agent's ports that may be cleared when they are full, and where they stand.
    pub(super) fn clearable(&self, agent: End) -> Vec<(Counter, Place)> {
        let plan = self.plans.get(agent);
        let pages = plan.iter().flat_map(|plan| plan.iter());
        let pages = pages.filter(|page| !self.uncleared.contains(&(agent, page.attribute)));
        let counters = pages.flat_map(|page| &page.counters).copied();
        counters.filter(|&(counter, place)| may_be_cleared(counter, place)).collect()
    }

    /// An agent does not let its counters of an attribute be cleared: these are left alone until the next
    /// discovery.
    pub(super) fn leave_uncleared(&mut self, agent: End, attribute: Attribute) {
        self.uncleared.insert((agent, attribute));
    }

    /// Forgets who is not in the fabric any more, for a device that comes back may be another, and
    /// links that are not as they were.
    pub fn keep_present(&mut self, fabric: &Fabric) {
        self.plans.keep_present(fabric);
        self.corrections.keep_present(fabric);
        self.uncleared.clear();
    }
}

/// What an agent says of its tick, PortSamplesControl's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    /// This.
    Told(u8),
    /// That it does not have the attribute.
    NotTold,
    /// Nothing, so many times, though it answers others.
    Silence(u8),
}

/// After so much silence an agent is taken for one that does not have the attribute.
const ENOUGH_SILENCE: u8 = 3;

/// What to ask each performance management agent for, and what it told once.
#[derive(Debug, Default)]
pub(super) struct Plans {
    extras: Extras,
    by_agent: HashMap<End, Arc<[Page]>>,
    /// Devices of one kind share a plan.
    by_capabilities: HashMap<Capabilities, Arc<[Page]>>,
    ticks: HashMap<End, Tick>,
}

impl Plans {
    /// What to ask an agent for, if it has told what it can do.
    pub fn get(&self, agent: End) -> Option<Arc<[Page]>> {
        self.by_agent.get(&agent).cloned()
    }

    /// Takes down what an agent can do.
    pub fn learn(&mut self, agent: End, capabilities: Capabilities) -> Arc<[Page]> {
        let extras = self.extras;
        let plan = self
            .by_capabilities
            .entry(capabilities)
            .or_insert_with(|| pma::plan(&capabilities, extras).into());
        self.by_agent.insert(agent, Arc::clone(plan));
        Arc::clone(plan)
    }

    /// An agent does not have an attribute that it need not have: it is not asked for it again.
    pub fn leave_out(&mut self, agent: End, attribute: Attribute) {
        if let Some(plan) = self.by_agent.get_mut(&agent) {
            *plan = plan.iter().filter(|page| page.attribute != attribute).cloned().collect();
        }
    }

    /// Whether an agent is to be asked for its tick.
    pub fn needs_tick(&self, agent: End) -> bool {
        match self.ticks.get(&agent) {
            None => true,
            Some(Tick::Silence(times)) => *times < ENOUGH_SILENCE,
            Some(Tick::Told(_) | Tick::NotTold) => false,
        }
    }

    /// The tick that an agent told.
    pub fn tick(&self, agent: End) -> Option<u8> {
        match self.ticks.get(&agent) {
            Some(Tick::Told(tick)) => Some(*tick),
            _ => None,
        }
    }

    /// Takes down what an agent said of its tick; each further silence counts.
    pub fn learn_tick(&mut self, agent: End, said: Tick) {
        let said = match (said, self.ticks.get(&agent)) {
            (Tick::Silence(more), Some(Tick::Silence(times))) => {
                Tick::Silence(times.saturating_add(more))
            }
            (said, _) => said,
        };
        self.ticks.insert(agent, said);
    }

    fn keep_present(&mut self, fabric: &Fabric) {
        let present = |(guid, _): &End| {
            fabric.node_by_guid(*guid).is_some_and(|node| fabric.node(node).present())
        };
        self.by_agent.retain(|agent, _| present(agent));
        self.ticks.retain(|agent, _| present(agent));
    }
}
