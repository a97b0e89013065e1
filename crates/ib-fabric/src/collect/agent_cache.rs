//! What is remembered of the agents from sweep to sweep, so that each is queried once, and which field each counter
//! is taken from.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ib_mad::class_port_info::PmaCapabilities;
use ib_mad::clear::is_clearable;
use ib_mad::counter::{Attribute, CounterField};
use ib_mad::m_key::{MKey, MKeys};
use ib_mad::pma::{
    AgentProfile, AttributePlan, DetailPolicy, OptionalCounters, PortSamplesControl, read_plan,
};
use ib_mad::reading::{CounterSet, Raw, Reading};

use super::absent_nodes::AbsentNodes;
use super::confirmation::ConfirmationCache;
use super::fec_modes::FecModeCache;
use super::silent_adapters::SilentAdapters;
use super::state_tables::StateTableCache;
use super::switch_checks::RouteCache;
use super::unresponsive::HiddenNodes;
use super::{Outcome, take_turns};
use crate::{Fabric, PortIndex};
use ib_mad::{Counter, Moment, PortKey, PortNumber};
use ib_umad::RequestError;

/// Cached capabilities of the agents of a fabric, M_Keys, and hidden nodes.
#[derive(Debug, Default)]
pub struct AgentCache {
    pub(super) pma: PmaCapabilityCache,
    pub(super) fec_modes: FecModeCache,
    pub(super) state_tables: StateTableCache,
    pub(super) routes: RouteCache,
    /// The M_Keys for subnet management.
    pub keys: Arc<MKeys>,
    pub(super) hidden: HiddenNodes,
    pub(super) confirmation: ConfirmationCache,
    pub(super) absent: AbsentNodes,
    pub(super) adapters: SilentAdapters,
    /// Agents that did not clear counters of an attribute: it is not tried again before the next discovery.
    pub(super) uncleared: HashSet<(PortKey, Attribute)>,
}

/// The agent of a port: of a switch for all of its ports, of a CA for each port.
pub(super) fn agent_of(fabric: &Fabric, port: PortIndex) -> PortKey {
    let PortKey { guid, number } = fabric.port_key(port);
    PortKey { guid, number: if fabric.node_of(port).is_switch() { 0 } else { number } }
}

pub(super) fn m_key_of(keys: &MKeys, fabric: &Fabric, port: PortIndex) -> MKey {
    keys.get(fabric.port(fabric.management_port(port)).guid)
}

impl AgentCache {
    /// An empty cache for reading these optional counters.
    pub fn new(optional: OptionalCounters) -> Self {
        AgentCache {
            pma: PmaCapabilityCache { optional, ..PmaCapabilityCache::default() },
            fec_modes: FecModeCache::new(optional.fec),
            ..AgentCache::default()
        }
    }

    /// The counters of a port that may be cleared, and their fields. If a port has two fields for a
    /// counter, the classic one is cleared only if it is the source.
    pub(super) fn clearable(&self, agent: PortKey, port: PortKey) -> Vec<(Counter, CounterField)> {
        let plan = self.pma.get(agent).unwrap_or_default();
        let attributes =
            plan.iter().filter(|plan| !self.uncleared.contains(&(agent, plan.attribute)));
        let sources = &self.pma.sources;
        let counters = attributes.flat_map(|plan| {
            let is_source = |counter| !plan.is_fallback || sources.is_classic(port, counter);
            plan.counters.iter().copied().filter(move |(counter, _)| is_source(*counter))
        });
        counters.filter(|&(counter, field)| is_clearable(counter, field)).collect()
    }

    /// Forgets absent nodes, because a device that returns may be another one, and changed links.
    pub fn retain_present(&mut self, fabric: &Fabric) {
        self.pma.retain_present(fabric);
        self.fec_modes.retain_unchanged(fabric);
        self.state_tables.on_discovery(fabric);
        self.hidden.retain_hidden(fabric);
        self.confirmation.on_discovery(fabric);
        self.uncleared.clear();
    }
}

/// After this number of sweeps without a response an attribute counts as unsupported.
const MAX_UNANSWERED: u8 = 3;

/// What is read of each port of an agent.
pub(super) type ReadPlan = Arc<[AttributePlan]>;

#[derive(Debug, Default)]
struct AgentEntry {
    profile: AgentProfile,
    plan: ReadPlan,
    /// From PortSamplesControl: a tick is this + 1 symbol times.
    tick: Option<u8>,
    /// Sweeps without PortSamplesControl, although the agent responds to other queries.
    unsampled: u8,
}

/// Read plans of the performance management agents, and what is known of each.
#[derive(Debug, Default)]
pub(super) struct PmaCapabilityCache {
    pub optional: OptionalCounters,
    by_agent: HashMap<PortKey, AgentEntry>,
    /// Agents with the same profile share a plan.
    by_profile: HashMap<AgentProfile, ReadPlan>,
    /// Consecutive sweeps in which an agent responded, but not to this attribute.
    unanswered: HashMap<(PortKey, Attribute), u8>,
    /// Optional attributes that an agent of several ports has of some of them.
    pub supported: HashSet<(PortKey, Attribute)>,
    /// Where the sweeps of a slow or busy agent begin: at the first port that there was no time for.
    pub first_ports: HashMap<PortKey, PortNumber>,
    /// Ports of which an agent of several ones dropped what it was asked last.
    pub silent_ports: HashSet<PortKey>,
    /// When error details were last read, by port.
    details_read: HashMap<PortKey, Moment>,
    /// The field that each counter is taken from, of ports with two.
    pub sources: CounterSources,
}

impl PmaCapabilityCache {
    pub fn get(&self, agent: PortKey) -> Option<ReadPlan> {
        self.by_agent.get(&agent).map(|entry| Arc::clone(&entry.plan))
    }

    /// Forgets an agent: what is known of it may be of another one.
    pub fn forget(&mut self, agent: PortKey) {
        self.by_agent.remove(&agent);
    }

    /// Records the capabilities of an agent, and returns its read plan.
    pub fn insert(
        &mut self,
        agent: PortKey,
        capabilities: PmaCapabilities,
        is_switch: bool,
    ) -> ReadPlan {
        let mut profile = AgentProfile { capabilities, is_switch, ..AgentProfile::default() };
        if !has_wide_xmit_wait(&self.plan(&profile)) {
            // Its PortSamplesControl is not read.
            profile.options = Some(0);
        }
        self.set_profile(agent, profile)
    }

    /// An agent does not support an optional attribute: it is not read again.
    pub fn mark_unsupported(&mut self, agent: PortKey, attribute: Attribute) {
        let Some(entry) = self.by_agent.get(&agent) else { return };
        let mut profile = entry.profile.clone();
        if !profile.refused.contains(&attribute) {
            profile.refused.push(attribute);
            self.set_profile(agent, profile);
        }
    }

    /// Records whether an agent that responds to others responded to an optional attribute. After
    /// several sweeps without a response the attribute is not read again: each time costs all retries.
    pub fn record_response(&mut self, agent: PortKey, attribute: Attribute, answered: bool) {
        let sweeps = self.unanswered.entry((agent, attribute)).or_default();
        *sweeps += 1;
        let is_unsupported = !answered && *sweeps >= MAX_UNANSWERED;
        if answered || is_unsupported {
            self.unanswered.remove(&(agent, attribute));
        }
        if is_unsupported {
            self.mark_unsupported(agent, attribute);
        }
    }

    /// Records whether an agent of several ports dropped a request for one of them.
    pub fn note_response(&mut self, fabric: &Fabric, port: PortIndex, outcome: Outcome<'_>) {
        match outcome {
            Err(RequestError::TimedOut) => drop(self.silent_ports.insert(fabric.port_key(port))),
            Ok(_) if !self.silent_ports.is_empty() => {
                self.silent_ports.remove(&fabric.port_key(port));
            }
            _ => {}
        }
    }

    fn set_profile(&mut self, agent: PortKey, profile: AgentProfile) -> ReadPlan {
        let plan = self.plan(&profile);
        let entry = self.by_agent.entry(agent).or_default();
        (entry.profile, entry.plan) = (profile, Arc::clone(&plan));
        plan
    }

    fn plan(&mut self, profile: &AgentProfile) -> ReadPlan {
        if let Some(plan) = self.by_profile.get(profile) {
            return Arc::clone(plan);
        }
        let plan: ReadPlan = read_plan(profile, self.optional).into();
        self.by_profile.insert(profile.clone(), Arc::clone(&plan));
        plan
    }

    /// Whether PortSamplesControl of an agent must be read.
    pub fn needs_sampling(&self, agent: PortKey) -> bool {
        self.by_agent.get(&agent).is_none_or(|entry| entry.unsampled < MAX_UNANSWERED)
    }

    pub fn tick(&self, agent: PortKey) -> Option<u8> {
        self.by_agent.get(&agent)?.tick
    }

    /// Counts a sweep without PortSamplesControl. Returns whether it counts as unsupported now.
    pub fn count_unsampled(&mut self, agent: PortKey) -> bool {
        let Some(entry) = self.by_agent.get_mut(&agent) else { return false };
        entry.unsampled += 1;
        entry.unsampled >= MAX_UNANSWERED
    }

    /// Records PortSamplesControl; `None` if it is not supported. Returns the read plan.
    pub fn insert_sampling(
        &mut self,
        agent: PortKey,
        sampling: Option<PortSamplesControl>,
    ) -> Option<ReadPlan> {
        let entry = self.by_agent.get_mut(&agent)?;
        entry.tick = sampling.map(|sampling| sampling.tick);
        entry.unsampled = MAX_UNANSWERED;
        let options = Some(sampling.map_or(0, |sampling| sampling.option_mask));
        let profile = AgentProfile { options, ..entry.profile.clone() };
        Some(self.set_profile(agent, profile))
    }

    /// Whether error details of a port are due in a sweep that began at this moment. Ports take turns, so that
    /// no sweep reads the details of all ports; unanswered queries are repeated in the next sweep.
    pub fn needs_details(&self, port: PortKey, at: Moment) -> bool {
        let DetailPolicy::Every(interval) = self.optional.details else {
            return self.optional.details == DetailPolicy::EachSweep;
        };
        take_turns(port, interval, self.details_read.get(&port).copied(), at)
    }

    /// Records that error details of a port were read in a sweep that began at this moment.
    pub fn record_details(&mut self, port: PortKey, at: Moment) {
        if matches!(self.optional.details, DetailPolicy::Every(_)) {
            self.details_read.insert(port, at);
        }
    }

    fn retain_present(&mut self, fabric: &Fabric) {
        let present = |port: &PortKey| fabric.is_present(port.guid);
        self.by_agent.retain(|agent, _| present(agent));
        self.by_profile.retain(|_, plan| Arc::strong_count(plan) > 1);
        self.supported.retain(|(agent, _)| present(agent));
        self.first_ports.retain(|agent, _| present(agent));
        self.silent_ports.retain(present);
        self.details_read.retain(|port, _| present(port));
        self.unanswered.retain(|(agent, _), _| present(agent));
        self.sources.retain_known(fabric);
    }
}

/// Whether a plan reads a 64-bit PortXmitWait: PortSamplesControl is read only of such agents. Of older
/// devices only some support it; and ibsim, which has 32-bit counters, forwards the request to the
/// client at the port, which crashes OpenSM.
pub(super) fn has_wide_xmit_wait(plan: &[AttributePlan]) -> bool {
    let mut counters = plan.iter().flat_map(|plan| &plan.counters);
    counters.any(|(counter, field)| *counter == Counter::XmitWait && field.width == 64)
}

/// The field that each counter of a port is taken from, kept from sweep to sweep, if the port has two for it.
///
/// ClassPortInfo announces 64-bit error counters for all fields at once, and ConnectX-7 leaves some of them at
/// 0 (see [`pma::read_plan`](read_plan)). So the 64-bit value is used unless it is 0 while the classic one is
/// not. A 64-bit field that was above 0 is used, and its 0 is a reset, unless the classic field grows
/// meanwhile; before that it may be unused, and its 0 alone says nothing.
#[derive(Debug, Default)]
pub(super) struct CounterSources {
    by_port: HashMap<PortKey, PortSources>,
    /// Value of the classic field while the 64-bit one, which had counted before, was 0: if it grows
    /// and the other does not, new firmware may have stopped updating the other.
    suspects: HashMap<(PortKey, Counter), u64>,
}

/// Counters by the field that counts; neither set has a counter while both of its fields are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PortSources {
    wide: CounterSet,
    /// Only the classic field counts, as far as observed.
    classic: CounterSet,
}

impl CounterSources {
    /// Selects the field of each counter: `reading` holds the 64-bit values, as far as they were read,
    /// `classic` the others. If the right field was not read, the counter is absent: the value of the
    /// other field would look like a reset.
    pub fn select(
        &mut self,
        port: PortKey,
        counters: &[(Counter, CounterField)],
        reading: &mut Reading<Raw>,
        classic: Option<&Reading<Raw>>,
    ) {
        let before = self.by_port.get(&port).copied().unwrap_or_default();
        let mut source = before;
        for &(counter, _) in counters {
            let classic = classic.and_then(|classic| Some((classic, classic.get(counter)?)));
            match reading.get(counter) {
                // Not plausible: it says nothing about which field counts.
                Some(value) if !counter.is_plausible(value) => {}
                Some(1..) => {
                    // It counts, and was cleared when it was 0.
                    if source.classic.contains(counter) {
                        reading.rebased.insert(counter);
                    }
                    source.classic.set(counter, false);
                    source.wide.insert(counter);
                    if !self.suspects.is_empty() {
                        self.suspects.remove(&(port, counter));
                    }
                }
                Some(0) if source.wide.contains(counter) => {
                    let Some((classic, value @ 1..)) = classic else { continue };
                    let before = self.suspects.insert((port, counter), value);
                    if before.is_some_and(|before| value > before) {
                        self.suspects.remove(&(port, counter));
                        source.wide.set(counter, false);
                        source.classic.insert(counter);
                        reading.copy(counter, classic);
                        reading.rebased.insert(counter);
                    }
                }
                wide => match classic {
                    Some((_, 0)) if wide.is_some() => {}
                    Some((classic, _)) if wide.is_some() || source.classic.contains(counter) => {
                        source.classic.insert(counter);
                        reading.copy(counter, classic);
                    }
                    _ => reading.remove(counter),
                },
            }
        }
        if source != before {
            self.by_port.insert(port, source);
        }
    }

    /// Whether a counter of a port is taken from the classic field.
    pub fn is_classic(&self, port: PortKey, counter: Counter) -> bool {
        self.by_port.get(&port).is_some_and(|source| source.classic.contains(counter))
    }

    /// Forgets ports of forgotten nodes. An absent node keeps its counters and their fields.
    pub fn retain_known(&mut self, fabric: &Fabric) {
        let is_known = |port: &PortKey| fabric.node_by_guid(port.guid).is_some();
        self.by_port.retain(|port, _| is_known(port));
        self.suspects.retain(|(port, _), _| is_known(port));
    }
}
