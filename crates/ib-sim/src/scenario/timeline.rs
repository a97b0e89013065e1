//! The timeline of a scenario: effects that begin and end, and the changes that they produce.
//!
//! Of several effects on one target the one that began last and has not ended is in force. When it ends, the one before
//! it is in force again, and without any the target is back to normal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::index::{EventTime, FabricIndex};
use super::overrides::Overrides;
use super::problem::{Lines, Problem};
use super::value;
use super::value::{LONGEST, Time};
use crate::change::{AgentBehavior, FabricChange, MadDelivery, RegisterBehavior};
use crate::load::Flow;
use crate::net::{Net, NodeId, PortId};
use yaml_config::suggestion::quoted;

/// The most changes of a timeline.
const MOST_CHANGES: u64 = 100_000;
/// The most ports in all changes: a fabric of 40,000 ports can be cleared 250 times.
const MOST_PORTS: u64 = 10_000_000;
/// A flow takes as much memory as this many ports.
pub const FLOW: usize = size_of::<Flow>() / size_of::<PortId>();

/// The target of an effect: it has one state at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The bits that come in at a port.
    Bits(PortId),
    /// The connector before a port's receiver.
    Connector(PortId),
    /// The temperature of a port's module.
    Module(PortId),
    /// A node's registers.
    Registers(NodeId),
    /// The signal of a link, by its lower port.
    Signal(PortId),
    /// The limit of a link's width and speed, by its lower port.
    Limit(PortId),
    /// The receive rate of a host at a port.
    Intake(PortId),
    Power(NodeId),
    Agents(NodeId),
    Delivery,
    /// The flows of a name.
    Flows(String),
}

impl Target {
    /// The change that resets it to normal.
    fn normal(self, delivery: MadDelivery) -> FabricChange {
        match self {
            Target::Bits(port) => FabricChange::CorruptBits { port, ratio: 0.0 },
            Target::Connector(port) => FabricChange::SetDirt { port, dirt: None },
            Target::Module(port) => FabricChange::SetModuleTemperature { port, degrees: None },
            Target::Registers(node) => {
                FabricChange::SetRegisters { node, behavior: RegisterBehavior::Normal }
            }
            Target::Signal(port) => FabricChange::SetSignal { port, up: true },
            Target::Limit(port) => FabricChange::LimitLink { port, width: None, speed: None },
            Target::Intake(port) => FabricChange::LimitIntake { port, fraction: 1.0 },
            Target::Power(node) => FabricChange::SetPower { node, on: true },
            Target::Agents(node) => {
                FabricChange::SetAgents { node, behavior: AgentBehavior::Normal }
            }
            Target::Delivery => FabricChange::SetDelivery(delivery),
            Target::Flows(name) => FabricChange::SetTraffic { name, flows: Vec::new() },
        }
    }
}

/// An effect on a target for some time.
#[derive(Clone, Debug)]
pub struct ActiveEffect {
    from: EventTime,
    /// `None` if it does not end.
    until: Option<EventTime>,
    start: FabricChange,
}

/// A timeline while the entries of a file are applied to it.
#[derive(Debug)]
pub struct Timeline<'a> {
    pub index: FabricIndex<'a>,
    pub lines: &'a Lines,
    pub seed: u64,
    /// How MADs are delivered without any entry.
    pub delivery: MadDelivery,
    /// The size of packets of entries that have none.
    pub packet: u32,
    /// All times are divided by this.
    pub speedup: f64,
    /// Times in words are divided by this, too.
    pub clock: u32,
    /// The time and the number of the entry that is applied.
    pub at: EventTime,
    /// The name of this entry.
    pub name: &'static str,
    effects: BTreeMap<Target, Vec<ActiveEffect>>,
    pub changes: Vec<(EventTime, FabricChange)>,
    change_count: u64,
    port_count: u64,
}

/// The changes by the effects on one target.
fn target_changes(
    normal: &FabricChange,
    mut effects: Vec<ActiveEffect>,
) -> Vec<(EventTime, FabricChange)> {
    effects.sort_by_key(|effect| effect.from);
    // An effect of no length does nothing.
    effects.retain(|effect| effect.until.is_none_or(|until| until.time > effect.from.time));
    // When effects begin and end, in order.
    let mut edges: Vec<(EventTime, usize)> = Vec::new();
    for (index, effect) in effects.iter().enumerate() {
        edges.push((effect.from, index));
        edges.extend(effect.until.map(|until| (until, index)));
    }
    edges.sort_unstable();
    let mut lasting: BTreeSet<usize> = BTreeSet::new();
    let mut in_force = normal;
    let mut made = Vec::new();
    for at_once in edges.chunk_by(|(a, _), (b, _)| a.time == b.time) {
        for (_, index) in at_once {
            // The first edge of an effect is its begin, the second its end.
            if !lasting.remove(index) {
                lasting.insert(*index);
            }
        }
        // Effects are sorted by their begin.
        let change = lasting.last().map_or(normal, |index| &effects[*index].start);
        if let Some((when, _)) = at_once.last().filter(|_| change != in_force) {
            made.push((*when, change.clone()));
            in_force = change;
        }
    }
    made
}

impl<'a> Timeline<'a> {
    /// A timeline without any entry.
    pub fn new(
        net: &'a Net,
        lines: &'a Lines,
        seed: u64,
        delivery: MadDelivery,
        packet: u32,
        overrides: &Overrides,
    ) -> Self {
        Timeline {
            index: FabricIndex::new(net),
            lines,
            seed,
            delivery,
            packet,
            speedup: overrides.speedup,
            clock: overrides.clock.max(1),
            at: EventTime::default(),
            name: "",
            effects: BTreeMap::new(),
            changes: Vec::new(),
            change_count: 0,
            port_count: 0,
        }
    }

    /// A time of the file with the speed-up.
    pub fn scaled(&self, time: Duration) -> Duration {
        // It always fits: the speed-up is checked.
        Duration::try_from_secs_f64(time.as_secs_f64() / self.speedup).unwrap_or(time)
    }

    /// All changes in order: those of one time in the order of the file.
    pub fn take_changes(&mut self) -> Vec<(EventTime, FabricChange)> {
        let mut changes = Vec::new();
        for (target, mut effects) in std::mem::take(&mut self.effects) {
            // A cable that is plugged in again has no effects on its link.
            if let Target::Signal(port) | Target::Limit(port) = target {
                for effect in &mut effects {
                    let moved = self.index.next_move(port, effect.from);
                    effect.until = moved.into_iter().chain(effect.until).min();
                }
            }
            changes.append(&mut target_changes(&target.normal(self.delivery), effects));
        }
        // Before a cable is moved, the effects on its link end.
        changes.append(&mut self.changes);
        changes.sort_by_key(|(when, _)| *when);
        changes
    }

    pub fn net(&self) -> &'a Net {
        self.index.net
    }

    /// A mistake in a key of the entry; in the entry as such if the key is empty.
    pub fn error(&self, key: &str, problem: impl Into<String>) -> Problem {
        // Entries are numbered from 1 on.
        let entry = format!("timeline[{}]", self.at.entry.saturating_sub(1));
        let line = self.lines.of(&format!("{entry}.{}.{key}", self.name));
        let line = line.filter(|_| !key.is_empty()).or_else(|| self.lines.of(&entry));
        Problem::new(line, problem)
    }

    /// The mistake in a key, unless a condition holds.
    pub fn require(
        &self,
        holds: bool,
        key: &str,
        problem: impl Into<String>,
    ) -> Result<(), Problem> {
        if holds { Ok(()) } else { Err(self.error(key, problem)) }
    }

    pub fn lookup<T>(
        &self,
        key: &str,
        text: &str,
        lookup: impl FnOnce(&FabricIndex<'a>, &str) -> Result<T, String>,
    ) -> Result<T, Problem> {
        lookup(&self.index, text).map_err(|problem| self.error(key, problem))
    }

    /// The port that a key names, if the file has it: of a host its first port with a cable.
    pub fn named_port(
        &self,
        path: &str,
        text: Option<&String>,
        lookup: impl Fn(&FabricIndex<'a>, &str) -> Result<(NodeId, Option<PortId>), String>,
    ) -> Result<Option<PortId>, Problem> {
        let Some(text) = text else { return Ok(None) };
        let found = lookup(&self.index, text).and_then(|place| {
            let port = self.index.cabled_port(place);
            port.ok_or_else(|| format!("{} has no cable", quoted(text)))
        });
        found.map(Some).map_err(|problem| self.lines.problem(path, problem))
    }

    pub fn node(&self, key: &str, text: &str) -> Result<NodeId, Problem> {
        self.lookup(key, text, FabricIndex::node)
    }

    /// The node of the key `node`, or else all, and that in words.
    pub fn nodes<'t>(&self, name: Option<&'t str>) -> Result<(Vec<NodeId>, &'t str), Problem> {
        Ok(match name {
            Some(name) => (vec![self.node("node", name)?], name),
            None => (self.net().node_ids().collect(), "all nodes"),
        })
    }

    /// The port that a key names, which has a cable now, and the cable's other end.
    pub fn link(&self, key: &str, text: &str) -> Result<(PortId, PortId), Problem> {
        let port = self.lookup(key, text, FabricIndex::port)?;
        let peer = self.index.peer(port, self.at).map(|peer| (port, peer));
        peer.ok_or_else(|| self.error(key, format!("{} has no cable", self.label(port))))
    }

    pub fn label(&self, port: PortId) -> String {
        self.net().label(port)
    }

    /// The time of a key, which must be more than 0.
    pub fn positive(&self, key: &str, time: Time) -> Result<Duration, Problem> {
        match time.0 {
            Duration::ZERO => Err(self.error(key, format!("{key}: must be more than 0"))),
            time => Ok(time),
        }
    }

    /// How long a time of the file takes, in words.
    pub fn time(&self, time: Duration) -> String {
        value::words(self.scaled(time) / self.clock)
    }

    /// The times of an entry by the keys `times` and `every`, each of which needs the other, and that in words: `, 5
    /// times, every 20s`, or nothing for once. `times` comes with the key that it is from. Charges so many changes each.
    pub fn repeats(
        &mut self,
        times: Option<(u32, &str)>,
        every: Option<Time>,
        changes: u64,
        ports_each: usize,
    ) -> Result<(Vec<EventTime>, String), Problem> {
        let (times, every) = match (times, every) {
            (Some((0, key)), _) => return Err(self.error(key, "times: must be more than 0")),
            (Some((times, key)), None) if times > 1 => {
                let problem = format!("times is {times}, but `every` (the interval) is missing");
                return Err(self.error(key, problem));
            }
            (None, Some(_)) => return Err(self.error("every", "`every` requires `times`")),
            (None | Some(_), None) => (1, Duration::ZERO),
            (Some((times, _)), Some(every)) => (times, self.positive("every", every)?),
        };
        if every.checked_mul(times).is_none_or(|all| all > LONGEST) {
            return Err(self.error("every", format!("{times} times are more than ten years")));
        }
        self.charge(u64::from(times) * changes, ports_each)?;
        let at = self.at;
        let turn = |turn| EventTime { time: at.time + every * turn, ..at };
        let turns = (0..times).map(turn).collect();
        let words = format!(", {times} times, every {}", self.time(every));
        Ok((turns, if times == 1 { String::new() } else { words }))
    }

    /// Counts the entry's changes against the limits, before they are created.
    pub fn charge(&mut self, changes: u64, ports_each: usize) -> Result<(), Problem> {
        self.change_count = self.change_count.saturating_add(changes);
        let ports = changes.saturating_mul(ports_each as u64);
        self.port_count = self.port_count.saturating_add(ports);
        if self.change_count > MOST_CHANGES {
            let problem = format!("the timeline has more than {MOST_CHANGES} steps");
            return Err(self.error("", problem));
        }
        if self.port_count > MOST_PORTS {
            let problem = format!(
                "the steps of the timeline name more than {MOST_PORTS} ports in total (a flow \
                 counts as {FLOW})"
            );
            return Err(self.error("", problem));
        }
        Ok(())
    }

    pub fn add_change(&mut self, change: FabricChange) -> Result<(), Problem> {
        self.charge(1, 0)?;
        self.changes.push((self.at, change));
        Ok(())
    }

    /// Adds an effect from the time of the entry on. How long it lasts in words: ` for 10m`, or nothing if it does not
    /// end.
    pub fn add_effect(
        &mut self,
        target: Target,
        start: FabricChange,
        lasts: Option<Time>,
    ) -> Result<String, Problem> {
        let lasts = lasts.map(|time| self.positive("for", time)).transpose()?;
        self.charge(2, 0)?;
        self.add_effect_at(self.at, target, start, lasts);
        Ok(lasts.map_or_else(String::new, |lasts| format!(" for {}", self.time(lasts))))
    }

    /// Adds an effect that is charged.
    pub fn add_effect_at(
        &mut self,
        from: EventTime,
        target: Target,
        start: FabricChange,
        lasts: Option<Duration>,
    ) {
        let until = lasts.map(|lasts| EventTime { time: from.time + lasts, ..from });
        self.effects.entry(target).or_default().push(ActiveEffect { from, until, start });
    }
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::super::overrides::SPEEDUPS;
    use super::super::tests::net;
    use super::*;

    const PORT: PortId = PortId(3);
    const DELIVERY: MadDelivery = MadDelivery {
        round_trip: Duration::ZERO,
        per_hop: Duration::ZERO,
        jitter: Duration::ZERO,
        loss: 0.0,
    };

    fn timeline<'a>(net: &'a Net, lines: &'a Lines, speedup: f64) -> Timeline<'a> {
        let overrides = Overrides { speedup, ..Overrides::default() };
        let mut timeline = Timeline::new(net, lines, 1, DELIVERY, 4096, &overrides);
        (timeline.at.entry, timeline.name) = (1, "clear");
        timeline
    }

    /// The changes by effects on one port, given as (begin, end, ratio in tenths).
    fn ratios(effects: &[(u64, Option<u64>, u8)]) -> Vec<(u64, String)> {
        let corrupt = |ratio| FabricChange::CorruptBits { port: PORT, ratio };
        let effects = effects
            .iter()
            .enumerate()
            .map(|(entry, &(from, until, ratio))| ActiveEffect {
                from: EventTime { time: Duration::from_secs(from), entry },
                until: until.map(|until| EventTime { time: Duration::from_secs(until), entry }),
                start: corrupt(f64::from(ratio) / 10.0),
            })
            .collect();
        let ratio = |change| match change {
            FabricChange::CorruptBits { port: PORT, ratio } => format!("{:.0}", ratio * 10.0),
            other => panic!("{other:?}"),
        };
        target_changes(&Target::Bits(PORT).normal(DELIVERY), effects)
            .into_iter()
            .map(|(at, change)| (at.time.as_secs(), ratio(change)))
            .collect()
    }

    #[test]
    fn last_effect_is_in_force_until_it_ends() {
        for (effects, expected) in [
            (&[(1, None, 5)][..], &[(1u64, 5u8)][..]),
            (&[(1, Some(4), 5)], &[(1, 5), (4, 0)]),
            // The first ends while the second is in force: nothing changes.
            (&[(1, Some(4), 5), (2, Some(9), 7)], &[(1, 5), (2, 7), (9, 0)]),
            // The second ends, and the first continues.
            (&[(1, None, 5), (2, Some(4), 7)], &[(1, 5), (2, 7), (4, 5)]),
            (&[(2, Some(4), 7), (1, None, 5)], &[(1, 5), (2, 7), (4, 5)]),
            // One after the other, without a gap.
            (&[(1, Some(4), 5), (4, Some(6), 5)], &[(1, 5), (6, 0)]),
            (&[(4, Some(6), 7), (1, Some(4), 5)], &[(1, 5), (4, 7), (6, 0)]),
            // At the same time, the later one in the file.
            (&[(1, Some(4), 5), (1, Some(3), 7)], &[(1, 7), (3, 5), (4, 0)]),
            (&[(1, Some(1), 5)], &[]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|(at, ratio)| (*at, ratio.to_string())).collect();
            assert_eq!(ratios(effects), expected, "{effects:?}");
        }
    }

    #[test]
    fn flows_count_as_ports() {
        assert_eq!(FLOW, 6);
        let net = net("{back-to-back: {}}");
        let (_, lines) = file::parse("\n\n\n\n\n\ntimeline: [clear: {}]").unwrap();
        let mut timeline = timeline(&net, &lines, 1.0);
        let most = MOST_PORTS as usize / FLOW;
        timeline.charge(1, most * FLOW).unwrap();
        let problem = timeline.charge(1, FLOW).unwrap_err();
        assert_eq!(problem.line, Some(7));
        assert!(problem.text.contains("more than 10000000 ports in total"), "{problem:?}");
    }

    #[test]
    fn slowest_timeline_fits_the_clock() {
        let net = net("{back-to-back: {}}");
        let (_, lines) = file::parse("").unwrap();
        let timeline = timeline(&net, &lines, *SPEEDUPS.start());
        // It begins late, is repeated for long, and lasts.
        let end = timeline.scaled(LONGEST * 3);
        assert!(end > LONGEST * 29 && end.as_nanos() < u128::from(u64::MAX) * 3 / 4, "{end:?}");
    }
}
