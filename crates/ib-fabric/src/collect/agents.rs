//! What is remembered of the fabric's agents from sweep to sweep, so that each is asked once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::topology::End;
use crate::{Fabric, PortIndex};
use ib_mad::class_port_info::Capabilities;
use ib_mad::clear::may_be_cleared;
use ib_mad::counter::{Attribute, Place};
use ib_mad::m_key::{MKey, MKeys};
use ib_mad::pma;
use ib_mad::pma::{Details, Extras, Offer, Options, Page};
use ib_mad::{Counter, Moment};

use super::corrections::Corrections;
use super::hidden::HiddenNodes;
use super::sources::Sources;

/// What the agents of the fabric were found to offer.
#[derive(Debug, Default)]
pub struct Agents {
    pub(super) plans: Plans,
    pub(super) corrections: Corrections,
    pub(super) keys: Arc<MKeys>,
    pub(super) hidden: HiddenNodes,
    /// Those that did not let their counters of an attribute be cleared.
    uncleared: HashSet<(End, Attribute)>,
}

/// The agent that answers for a port: a switch's for all of its ports, a CA's for the one port that
/// it sits on.
pub(super) fn agent_of(fabric: &Fabric, port: PortIndex) -> End {
    let (guid, number) = fabric.end(port);
    (guid, if fabric.node_of(port).is_switch() { 0 } else { number })
}

/// The key of the agent that answers subnet management for a port.
pub(super) fn m_key_of(keys: &MKeys, fabric: &Fabric, port: PortIndex) -> MKey {
    let is_switch = fabric.node_of(port).is_switch();
    let zero = || fabric.ports_of(fabric.port(port).node).find(|&it| fabric.port(it).number == 0);
    let keeper = if is_switch { zero().unwrap_or(port) } else { port };
    keys.of(fabric.port(keeper).guid)
}

impl Agents {
    /// None known yet; `extras` are asked for, too.
    pub fn new(extras: Extras) -> Self {
        Agents {
            plans: Plans { extras, ..Plans::default() },
            corrections: Corrections::new(extras.fec),
            keys: Arc::default(),
            hidden: HiddenNodes::default(),
            uncleared: HashSet::new(),
        }
    }

    /// From now on subnet management is asked with these keys.
    pub fn set_keys(&mut self, keys: Arc<MKeys>) {
        self.keys = keys;
    }

    /// The counters of an agent's port that may be cleared when they are full, and where they stand.
    /// Where a port has two fields for a counter, the classic one matters only if it is the source.
    pub(super) fn clearable(&self, agent: End, port: End) -> Vec<(Counter, Place)> {
        let plan = self.plans.get(agent);
        let pages = plan.iter().flat_map(|plan| plan.iter());
        let pages = pages.filter(|page| !self.uncleared.contains(&(agent, page.attribute)));
        let sources = &self.plans.sources;
        let counters = pages.flat_map(|page| {
            let is_source = |counter| !page.is_second || sources.is_narrow(port, counter);
            page.counters.iter().copied().filter(move |(counter, _)| is_source(*counter))
        });
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
        self.hidden.keep_hidden(fabric);
        self.uncleared.clear();
    }
}

/// What an agent says of its sampling, in PortSamplesControl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampling {
    /// This.
    Told {
        /// A tick is this + 1 symbol times.
        tick: u8,
        /// OptionMask.
        options: u64,
    },
    /// That it does not have the attribute.
    NotTold,
    /// Nothing, so many times, though it answers others.
    Silence(u8),
}

/// After so much silence an agent is taken for one that does not have the attribute.
const ENOUGH_SILENCE: u8 = 3;

/// What an agent offers, and what to ask it for.
#[derive(Debug)]
struct Known {
    offer: Offer,
    plan: Arc<[Page]>,
}

/// What to ask each performance management agent for, and what it told once.
#[derive(Debug, Default)]
pub(super) struct Plans {
    extras: Extras,
    by_agent: HashMap<End, Known>,
    /// Devices of one kind share a plan.
    by_offer: HashMap<Offer, Arc<[Page]>>,
    sampling: HashMap<End, Sampling>,
    /// Sweeps in a row in which an agent answered, but not this attribute.
    silences: HashMap<(End, Attribute), u8>,
    /// When the causes of errors and discards were last read, by port.
    details_read: HashMap<End, Moment>,
    /// Which field each counter is taken from, of ports that have two.
    pub sources: Sources,
}

impl Plans {
    /// What to ask an agent for, if it has told what it can do.
    pub fn get(&self, agent: End) -> Option<Arc<[Page]>> {
        self.by_agent.get(&agent).map(|known| Arc::clone(&known.plan))
    }

    /// Takes down what an agent can do.
    pub fn learn(
        &mut self,
        agent: End,
        capabilities: Capabilities,
        is_switch: bool,
    ) -> Arc<[Page]> {
        let mut offer = Offer { capabilities, is_switch, ..Offer::default() };
        if !counts_waiting(&self.plan(&offer)) {
            // It is not asked for its options.
            offer.options = Options::Unannounced;
        }
        self.settle(agent, offer)
    }

    /// An agent does not have an attribute that it need not have: it is not asked for it again.
    pub fn leave_out(&mut self, agent: End, attribute: Attribute) {
        let Some(known) = self.by_agent.get(&agent) else { return };
        let mut offer = known.offer.clone();
        if !offer.refused.contains(&attribute) {
            offer.refused.push(attribute);
            self.settle(agent, offer);
        }
    }

    /// An agent was asked for an attribute that it need not have, and answered others. One that is
    /// silent to it in sweep after sweep is not asked for it again: each time costs all tries.
    pub fn was_asked(&mut self, agent: End, attribute: Attribute, answered: bool) {
        if answered {
            self.silences.remove(&(agent, attribute));
            return;
        }
        let silence = self.silences.entry((agent, attribute)).or_default();
        *silence += 1;
        if *silence >= ENOUGH_SILENCE {
            self.silences.remove(&(agent, attribute));
            self.leave_out(agent, attribute);
        }
    }

    fn settle(&mut self, agent: End, offer: Offer) -> Arc<[Page]> {
        let plan = self.plan(&offer);
        self.by_agent.insert(agent, Known { offer, plan: Arc::clone(&plan) });
        plan
    }

    fn plan(&mut self, offer: &Offer) -> Arc<[Page]> {
        if let Some(plan) = self.by_offer.get(offer) {
            return Arc::clone(plan);
        }
        let plan: Arc<[Page]> = pma::plan(offer, self.extras).into();
        self.by_offer.insert(offer.clone(), Arc::clone(&plan));
        plan
    }

    /// Whether an agent is to be asked for its sampling.
    pub fn needs_sampling(&self, agent: End) -> bool {
        match self.sampling.get(&agent) {
            None => true,
            Some(Sampling::Silence(times)) => *times < ENOUGH_SILENCE,
            Some(Sampling::Told { .. } | Sampling::NotTold) => false,
        }
    }

    /// The tick that an agent told.
    pub fn tick(&self, agent: End) -> Option<u8> {
        match self.sampling.get(&agent) {
            Some(Sampling::Told { tick, .. }) => Some(*tick),
            _ => None,
        }
    }

    /// Takes down what an agent said of its sampling; each further silence counts. Returns the
    /// agent's plan if its options are known by now.
    pub fn learn_sampling(&mut self, agent: End, said: Sampling) -> Option<Arc<[Page]>> {
        let said = match (said, self.sampling.get(&agent)) {
            (Sampling::Silence(more), Some(Sampling::Silence(times))) => {
                Sampling::Silence(times.saturating_add(more))
            }
            (said, _) => said,
        };
        self.sampling.insert(agent, said);
        let options = match said {
            Sampling::Told { options, .. } => Options::of_mask(options),
            Sampling::Silence(times) if times < ENOUGH_SILENCE => return None,
            Sampling::NotTold | Sampling::Silence(_) => Options::Unannounced,
        };
        let offer = Offer { options, ..self.by_agent.get(&agent)?.offer.clone() };
        Some(self.settle(agent, offer))
    }

    /// Whether the causes of errors and discards of a port are to be read in a sweep that began at
    /// this moment. Ports take turns, so that no sweep has to read those of all; what was asked for
    /// and not answered is asked for again.
    pub fn needs_details(&self, port: End, at: Moment) -> bool {
        let Details::Every(interval) = self.extras.details else {
            return self.extras.details == Details::EachSweep;
        };
        let interval = (interval.as_nanos() as u64).max(1);
        // Fibonacci hashing: neighboring GUIDs and ports get turns far apart.
        let mixed = (port.0.0 ^ u64::from(port.1) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let turn = |at: Moment| at.0.saturating_add((mixed >> 1) % interval) / interval;
        self.details_read.get(&port).is_none_or(|last| turn(*last) != turn(at))
    }

    /// The causes of errors and discards of a port were read in a sweep that began at this moment.
    pub fn has_read_details(&mut self, port: End, at: Moment) {
        if matches!(self.extras.details, Details::Every(_)) {
            self.details_read.insert(port, at);
        }
    }

    fn keep_present(&mut self, fabric: &Fabric) {
        let present = |(guid, _): &End| {
            fabric.node_by_guid(*guid).is_some_and(|node| fabric.node(node).present())
        };
        self.by_agent.retain(|agent, _| present(agent));
        self.by_offer.retain(|_, plan| Arc::strong_count(plan) > 1);
        self.sampling.retain(|agent, _| present(agent));
        self.details_read.retain(|port, _| present(port));
        self.silences.retain(|(agent, _), _| present(agent));
        self.sources.keep_known(fabric);
    }
}

/// Whether a plan has the waiting counted in 64 bits: only such agents are asked for their sampling. Of
/// older devices only some answer; and ibsim, which counts in 32 bits, hands the question to whatever
/// sits at the port, of which OpenSM dies.
pub(super) fn counts_waiting(plan: &[Page]) -> bool {
    let mut counters = plan.iter().flat_map(|page| &page.counters);
    counters.any(|(counter, place)| *counter == Counter::XmitWait && place.width == 64)
}
