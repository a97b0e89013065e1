//! Days of trouble: keys refuse requests, agents hang, nodes reboot, and all LIDs change, also in the middle of sweeps.
//! The totals are those of the simulation for each port that responds, and what refuses is asked rarely.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use fabric_exporter::config::options::FabricOptions;
use ib_mad::Moment;
use ib_mad::m_key::MKey;
use ib_mad::node::NodeKind;
use ib_sim::net::{Net, NodeId, PortId};
use ib_sim::rng::Rng;
use ib_sim::scenario::{
    AgentBehavior, FabricChange, Overrides, RegisterBehavior, ResolvedScenario, Scenario,
};
use ib_sim::simulation::Refusals;
use test_rig::Simulated;

use crate::totals::ledger::Ledger;
use crate::totals::truth::Truth;

const INTERVAL: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3_600);

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The truth is recorded this often while a sweep runs.
const STEP: Duration = Duration::from_millis(250);

/// After the last trouble: a node that did not respond is looked for with increasing distance.
const QUIET: Duration = Duration::from_secs(1_800);

/// What happens, by time and number.
type Timeline = BTreeMap<(Duration, usize), FabricChange>;

/// Makes a timeline at random.
struct Trouble<'a> {
    net: &'a Net,
    rng: Rng,
    /// Without the exporter's and the subnet manager's.
    nodes: Vec<NodeId>,
    rebooted: BTreeSet<NodeId>,
    sm_port: PortId,
    timeline: Timeline,
}

impl<'a> Trouble<'a> {
    fn new(story: &'a ResolvedScenario, seed: u64) -> Self {
        let needed: Vec<NodeId> = [story.local_ports[0], story.sm_ports[0]]
            .map(|port| story.net.port(port).node)
            .to_vec();
        Trouble {
            nodes: story.net.node_ids().filter(|node| !needed.contains(node)).collect(),
            rng: Rng::new(seed),
            rebooted: BTreeSet::new(),
            sm_port: story.sm_ports[0],
            timeline: Timeline::new(),
            net: &story.net,
        }
    }

    fn push(&mut self, at: Duration, change: FabricChange) {
        self.timeline.insert((at, self.timeline.len()), change);
    }

    /// Some nodes; in one of three cases all.
    fn some_nodes(&mut self) -> Vec<NodeId> {
        if self.rng.below(3) == 0 {
            return self.nodes.clone();
        }
        let share = self.rng.next_f64() / 4.0;
        let picked = |_: &NodeId| self.rng.next_f64() < share;
        self.nodes.clone().into_iter().filter(picked).collect()
    }

    fn node(&mut self) -> NodeId {
        self.nodes[self.rng.below(self.nodes.len() as u64) as usize]
    }

    /// Events at random times before an end, and their ends.
    fn plan(mut self, events: usize, end: Duration) -> Timeline {
        for _ in 0..events {
            let at = end.mul_f64(self.rng.next_f64());
            let until = at + Duration::from_secs(60 + self.rng.below(7_000));
            let soon = at + Duration::from_secs(20 + self.rng.below(1_800));
            match self.rng.below(12) {
                0 | 1 => {
                    // Once each: a node that is on is not switched on.
                    let node = self.node();
                    if !self.rebooted.insert(node) {
                        continue;
                    }
                    self.push(at, FabricChange::SetPower { node, on: false });
                    self.push(soon, FabricChange::SetPower { node, on: true });
                }
                2 | 3 => {
                    let behavior = match self.rng.below(4) {
                        0 => AgentBehavior::Silent,
                        1 => AgentBehavior::Lossy(self.rng.next_f64()),
                        2 => AgentBehavior::Busy(self.rng.next_f64()),
                        _ => AgentBehavior::Delayed(Duration::from_millis(self.rng.below(700))),
                    };
                    for node in self.some_nodes() {
                        self.push(at, FabricChange::SetAgents { node, behavior });
                        let behavior = AgentBehavior::Normal;
                        self.push(soon, FabricChange::SetAgents { node, behavior });
                    }
                }
                4 | 5 => {
                    let (nodes, m_key) = (self.some_nodes(), MKey(self.rng.next_u64()));
                    let level = 2;
                    self.push(at, FabricChange::SetMKey { nodes: nodes.clone(), m_key, level });
                    self.push(until, FabricChange::SetMKey { nodes, m_key: MKey(0), level: 0 });
                }
                6 => {
                    let is_host = |node: &NodeId| self.net.node(*node).kind == NodeKind::Ca;
                    let nodes: Vec<NodeId> = self.net.node_ids().filter(is_host).collect();
                    let begin = FabricChange::SetMembership { nodes: nodes.clone(), full: false };
                    self.push(at, begin);
                    self.push(until, FabricChange::SetMembership { nodes, full: true });
                }
                7 => {
                    let nodes = self.some_nodes();
                    self.push(at, FabricChange::SetVsKey { nodes: nodes.clone(), key: 7 });
                    self.push(until, FabricChange::SetVsKey { nodes, key: 0 });
                }
                8 => {
                    for node in self.some_nodes() {
                        let behavior = RegisterBehavior::Hung;
                        self.push(at, FabricChange::SetRegisters { node, behavior });
                        let behavior = RegisterBehavior::Normal;
                        self.push(until, FabricChange::SetRegisters { node, behavior });
                    }
                }
                _ => {
                    // Two of three within a sweep.
                    let sweep = at.as_secs() / INTERVAL.as_secs() * INTERVAL.as_secs();
                    let in_sweep =
                        Duration::from_secs(sweep) + STEP.mul_f64(self.rng.next_f64() * 8.0);
                    let at = if self.rng.below(3) == 0 { at } else { in_sweep };
                    let port = self.sm_port;
                    self.push(at, FabricChange::SetMaster { port, reassign_lids: true });
                }
            }
        }
        self.timeline
    }
}

/// Whether counters fall.
fn resets(change: &FabricChange) -> bool {
    matches!(change, FabricChange::SetPower { on: true, .. })
}

/// A fabric in trouble, and its monitor.
struct Days {
    simulated: Simulated,
    truth: Truth,
    ledger: Ledger,
    timeline: Timeline,
    now: Duration,
    /// The requests that were refused in each hour, and the total until then.
    refusals: Vec<Refusals>,
    refused: Refusals,
    /// Times that all LIDs changed while a sweep was published.
    changed_in_sweeps: u64,
    /// What happened last, to tell what a difference followed.
    recent: VecDeque<String>,
}

impl Days {
    fn new(fabric: &str, options: FabricOptions, events: usize, end: Duration) -> Days {
        let text = format!(
            "fabric: {fabric}\nseed: 44\ntraffic: {{load: 1%}}\nway: {{round-trip: 5ms}}\n"
        );
        let scenario = Scenario::parse("days", &text).unwrap();
        let story = scenario.resolve(&Overrides::default()).unwrap();
        let mut trouble = Trouble::new(&story, 44);
        // Some cables are bad all the time, so that errors are counted.
        for _ in 0..story.net.nodes.len() / 10 {
            let port = PortId(trouble.rng.below(story.net.ports.len() as u64) as u32);
            let ratio = 10f64.powf(-9.0 - 3.0 * trouble.rng.next_f64());
            trouble.push(Duration::ZERO, FabricChange::CorruptBits { port, ratio });
        }
        let timeline = trouble.plan(events, end);
        let interval = Some("60s".parse().unwrap());
        Days {
            truth: Truth::new(&story.net),
            ledger: Ledger::new(&story.net),
            simulated: Simulated::with(
                story,
                FabricOptions { interval, details: Some(true), ..options },
            ),
            timeline,
            now: Duration::ZERO,
            refusals: Vec::new(),
            refused: Refusals::default(),
            changed_in_sweeps: 0,
            recent: VecDeque::new(),
        }
    }

    fn go_on(&mut self, to: Duration) {
        self.now = self.now.max(to);
        self.simulated.run_to(self.now);
        let world = self.simulated.world();
        self.truth.record(&world);
        while self.now >= HOUR * (self.refusals.len() as u32 + 1) {
            let (now, was) = (world.refusals(), self.refused);
            self.refused = now;
            self.refusals.push(Refusals {
                m_key: now.m_key - was.m_key,
                p_key: now.p_key - was.p_key,
                vs_key: now.vs_key - was.vs_key,
            });
        }
    }

    /// The next change until a moment that may be made now.
    fn next(&mut self, until: Duration, sweeping: bool) -> Option<(Duration, FabricChange)> {
        let due = self.timeline.range(..=(until, usize::MAX));
        let key = *due.into_iter().find(|(_, change)| !sweeping || !resets(change))?.0;
        self.timeline.remove(&key).map(|change| (key.0, change))
    }

    fn change(&mut self, at: Duration, change: FabricChange) {
        self.go_on(at);
        let text: String = format!("{:?}: {change:?}", self.now).chars().take(60).collect();
        // A change of many nodes is one.
        let kind = |text: &str| text.split(['{', '}']).next().map(str::to_owned);
        if self.recent.back().is_none_or(|last| kind(last) != kind(&text)) {
            self.recent.push_back(text);
        }
        if self.recent.len() > 40 {
            self.recent.pop_front();
        }
        let before = self.truth.latest().clone();
        let restarted = match change {
            FabricChange::SetPower { node, on: true } => Some(node),
            _ => None,
        };
        self.simulated.act(change);
        let world = self.simulated.world();
        match restarted {
            Some(node) => self.truth.record_restart(node, &before, &world),
            None => self.truth.record_resets(&before, &world, &mut self.ledger.tally),
        }
    }

    /// The sweep that begins at a moment, and all that happens until it is published.
    fn sweep(&mut self, tick: Duration) -> Result<(), String> {
        self.truth.forget();
        let began = Moment::default() + tick;
        for _ in 0..4_000 {
            let to = self.now + STEP;
            while let Some((at, change)) = self.next(to, true) {
                let is_new_lids = matches!(change, FabricChange::SetMaster { .. });
                self.changed_in_sweeps += u64::from(is_new_lids);
                self.change(at, change);
            }
            self.go_on(to);
            let seen = self.simulated.observation();
            if seen.snapshot.as_ref().is_some_and(|snapshot| snapshot.began >= began) {
                return self.ledger.audit(&self.truth, &seen);
            }
        }
        Err(format!("no sweep from {tick:?} until {:?}", self.now))
    }

    fn run(&mut self, end: Duration) -> Result<(), String> {
        let mut tick = Duration::ZERO;
        let mut days = 0;
        while tick < end {
            // A week takes long: its log shows how far it is.
            if tick >= DAY * days {
                println!("day {days}: {:?}", self.ledger.tally);
                days += 1;
            }
            self.sweep(tick).map_err(|error| format!("sweep at {tick:?}: {error}"))?;
            tick = INTERVAL * (self.now.as_nanos() / INTERVAL.as_nanos() + 1) as u32;
            let before = tick.saturating_sub(Duration::from_millis(1));
            while let Some((at, change)) = self.next(before, false) {
                self.change(at, change);
            }
            self.go_on(before);
        }
        Ok(())
    }

    fn run_all(&mut self, end: Duration) {
        // Some trouble that begins before the end lasts longer: keys are unset up to two hours later.
        let last = self.timeline.last_key_value().map_or(end, |((at, _), _)| end.max(*at));
        let result = self.run(last + QUIET).and_then(|()| self.ledger.all_read());
        let most = |of: fn(&Refusals) -> u64| self.refusals.iter().map(of).max().unwrap_or(0);
        println!(
            "{:?}\nrefused at most in an hour: M_Key {}, P_Key {}, VSKey {}; in all {:?}",
            self.ledger.tally,
            most(|it| it.m_key),
            most(|it| it.p_key),
            most(|it| it.vs_key),
            self.refused
        );
        result.unwrap_or_else(|wrong| panic!("{wrong}; before it: {:#?}", self.recent));
        // What an hour allows, and of two events in it the first requests to each node: three tries; of counters 4, 2
        // and 1 in flight, before the partition is suspected.
        let nodes = self.simulated.story().net.nodes.len() as u64;
        let limits = [most(|it| it.m_key), most(|it| it.p_key), most(|it| it.vs_key)];
        let allowed = [900 + 540 + 6 * nodes, 180 + 14 * nodes, 180 + 6 * nodes];
        assert!(limits.iter().zip(allowed).all(|(most, allowed)| *most <= allowed), "{allowed:?}");
        assert!(limits.iter().all(|most| *most > 0) && self.changed_in_sweeps > 0);
        let tally = &self.ledger.tally;
        assert!(tally.exact > 0 && tally.seen_to_fall > 0 && tally.missed > 0 && tally.resets > 0);
    }
}

#[test]
fn day_of_50_nodes_has_the_true_totals() {
    let fabric = "{fat-tree: {hosts: 38, radix: 16, down: 5, up: 4}}";
    let mut days = Days::new(fabric, FabricOptions::default(), 150, DAY);
    days.run_all(DAY);
}

#[test]
#[ignore = "an hour with optimization: make week"]
fn week_of_1000_nodes_has_the_true_totals() {
    let fabric = "{fat-tree: {hosts: 900, radix: 40, down: 20, up: 20}}";
    let mut days = Days::new(fabric, FabricOptions::default(), 1_000, DAY * 7);
    days.run_all(DAY * 7);
}
