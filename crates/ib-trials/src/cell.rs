//! A cell: a small fabric of four switches, 28 hosts and 36 cables that is evaluated by itself.
//!
//! Two spines, two leaves with two cables to each spine, 14 hosts per leaf. It fits into a CPU's cache. The exporter runs
//! on the first host, whose cable and leaf never fail: what it cannot reach is unknown anyway.

use std::ops::Range;
use std::sync::Arc;

use ib_fabric::Fabric;
use ib_health::LimitTable;
use ib_health::limits::Limits;
use ib_mad::counter::COUNT;
use ib_mad::rate::{Width, bytes_per_second};
use ib_mad::reading::Raw;
use ib_mad::{Counter, Guid, PortKey, Reading};
use ib_sim::device::DeviceModel;
use ib_sim::rng::Rng;

use crate::devices::{Fields, GENERATIONS, Generation};
use crate::rates;
use crate::truth::Truth;

/// Switches of each level.
const SPINES: usize = 2;
const LEAVES: usize = 2;
/// Cables between a spine and a leaf.
const TRUNKS: usize = 2;
const HOSTS: usize = 14;
/// Switches of a cell.
pub const SWITCHES: usize = SPINES + LEAVES;
/// Cables of a cell.
pub const CABLES: usize = SPINES * LEAVES * TRUNKS + LEAVES * HOSTS;

/// A switch or a host.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Node {
    pub guid: Guid,
    pub is_switch: bool,
    /// The index of its first port: port 0 of a switch.
    pub first: usize,
    pub ports: u8,
    /// It is off.
    pub away: bool,
    /// It does not respond before this second.
    pub silent_until: f64,
}

/// A port; its index is that of the assembled fabric.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Port {
    pub node: usize,
    pub number: u8,
    /// Its cable and the side of it; `None` for port 0 of a switch.
    pub cable: Option<(usize, usize)>,
    /// What its counters show now.
    pub reading: Reading<Raw>,
    /// How much of the expected errors remains until the next one: exponentially distributed, with mean 1.
    pub until_error: f64,
    /// A counter that shows an impossible value until this second.
    pub impossible: Option<(Counter, f64)>,
    pub details_read: f64,
}

/// What a fault changes in the optical powers of a cable; by end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Optics {
    /// The module does not report powers.
    pub unreported: bool,
    /// The light that an end receives is so many dB less.
    pub loss: [f64; 2],
    /// The laser of an end is below its alarm threshold.
    pub weak: [bool; 2],
}

/// A cable with its transceivers.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Cable {
    pub ends: [usize; 2],
    /// It leads to a host, which is then its second end.
    pub to_host: bool,
    /// Lanes are trained.
    pub up: bool,
    /// When it went down or came up.
    pub since: f64,
    /// From when on it carries traffic, once it is up.
    pub active_at: f64,
    /// Something else may bring it up earlier or later: only the latest transition counts.
    pub transition: u32,
    pub width: Width,
    /// Its lanes by design.
    pub full: Width,
    /// After a fault it trains with these lanes only.
    pub trains_at: Width,
    /// The bit error ratio of what each end receives, as a multiple of its limit: always, and by a fault.
    pub steady: [f64; 2],
    pub fault: [f64; 2],
    /// The fault grows from when on by this factor per second (natural logarithm).
    pub drift: Option<(f64, f64)>,
    /// The pre-FEC ratio of each end as a multiple of its limit, and the same of a fault.
    pub pre_fec: [f64; 2],
    pub pre_fec_fault: [f64; 2],
    /// The share of the bandwidth that each end receives.
    pub load: [f64; 2],
    /// The first end waits for this share of the time, and whether its receiver drops packets.
    pub congestion: Option<(f64, bool)>,
    /// Until when its counters have grown.
    pub grown: f64,
    /// The module of each end is above its alarm temperature, or receives low optical power.
    pub hot: [bool; 2],
    pub dark: [bool; 2],
    /// What a fault changes in the optical powers.
    pub optics: Optics,
    /// When it went down unexpectedly, and how often.
    pub flaps: Vec<f64>,
    pub truth: Truth,
}

impl Cable {
    /// The bit error ratio of what an end receives, as a multiple of its limit.
    pub fn ratio(&self, side: usize, now: f64) -> f64 {
        let drift = self.drift.map_or(1.0, |(from, rate)| ((now - from).max(0.0) * rate).exp());
        self.steady[side] + self.fault[side] * drift
    }

    /// The same before forward error correction.
    pub fn pre_fec_ratio(&self, side: usize) -> f64 {
        self.pre_fec[side] + self.pre_fec_fault[side]
    }
}

/// A cell and its state.
#[derive(Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Cell {
    pub generation: Generation,
    pub limits: Limits,
    pub fields: [Fields; 2],
    pub ticks: [Option<u8>; 2],
    pub nodes: Vec<Node>,
    pub ports: Vec<Port>,
    pub cables: Vec<Cable>,
    pub fabric: Arc<Fabric>,
    /// A tool clears all counters at this interval, in seconds.
    pub cleared_every: Option<f64>,
}

/// An exponentially distributed number with mean 1.
pub fn exponential(rng: &mut Rng) -> f64 {
    // The logarithm is not of 0.
    -(1.0 - rng.next_f64()).ln()
}

/// A number between two, with an even distribution.
pub fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.next_f64()
}

/// The same with an even distribution of the logarithm.
pub fn log_between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    between(rng, low.ln(), high.ln()).exp()
}

/// One of several by their shares; `None` for what is left to 1.
pub fn share<T: Copy>(rng: &mut Rng, shares: impl Iterator<Item = (T, f64)>) -> Option<T> {
    let mut left = rng.next_f64();
    for (value, share) in shares {
        left -= share;
        if left < 0.0 {
            return Some(value);
        }
    }
    None
}

impl Cell {
    /// A cell of a random generation, or of this one. Without `marginal` no cable is near its limit.
    pub fn new(rng: &mut Rng, generation: Option<Generation>, marginal: bool) -> Cell {
        let generation = generation
            .or_else(|| share(rng, GENERATIONS.iter().map(|known| (*known, known.share))))
            .unwrap_or(GENERATIONS[GENERATIONS.len() - 1]);
        let models = [generation.switch, generation.adapter]
            .map(|name| DeviceModel::by_name(name).unwrap_or(&ib_sim::device::MODELS[0]));
        let can_be_half = generation.speed >= ib_mad::rate::Speed::Hdr;
        let half = can_be_half && marginal && rng.next_f64() < rates::HALF_WIDTH;
        let mut cell = Cell {
            generation,
            limits: LimitTable::default().limits(generation.speed, generation.fec),
            fields: models.map(Fields::of),
            ticks: models.map(|model| model.tick),
            nodes: Vec::new(),
            ports: Vec::new(),
            cables: Vec::new(),
            fabric: Arc::default(),
            cleared_every: marginal
                .then(|| share(rng, rates::CLEARED_REGULARLY.into_iter()))
                .flatten(),
        };
        for nth in 0..SPINES + LEAVES + LEAVES * HOSTS {
            let ports = match nth {
                _ if nth < SPINES => LEAVES * TRUNKS,
                _ if nth < SWITCHES => SPINES * TRUNKS + HOSTS,
                _ => 1,
            };
            cell.add_node(nth, ports as u8, rng);
        }
        for spine in 0..SPINES {
            for downlink in 0..LEAVES * TRUNKS {
                let (leaf, trunk) = (downlink / TRUNKS, downlink % TRUNKS);
                let up = cell.port(spine, downlink + 1);
                let down = cell.port(SPINES + leaf, spine * TRUNKS + trunk + 1);
                cell.add_cable([up, down], Width::X4, marginal, rng);
            }
        }
        for leaf in 0..LEAVES {
            for host in 0..HOSTS {
                let down = cell.port(SPINES + leaf, SPINES * TRUNKS + host + 1);
                let up = cell.port(SWITCHES + leaf * HOSTS + host, 1);
                let width = if half { Width::X2 } else { Width::X4 };
                cell.add_cable([down, up], width, marginal, rng);
            }
        }
        cell
    }

    fn add_node(&mut self, nth: usize, ports: u8, rng: &mut Rng) {
        let is_switch = nth < SWITCHES;
        let first = self.ports.len();
        let guid = Guid(0x10 + nth as u64);
        self.nodes.push(Node { guid, is_switch, first, ports, away: false, silent_until: 0.0 });
        for number in u8::from(!is_switch)..=ports {
            self.ports.push(Port {
                node: nth,
                number,
                cable: None,
                reading: Reading::empty(ib_mad::Moment(0)),
                until_error: exponential(rng),
                impossible: None,
                details_read: 0.0,
            });
            let port = self.ports.len() - 1;
            self.reset(port);
        }
    }

    /// The indices of a node's ports.
    pub fn ports_of(&self, node: usize) -> Range<usize> {
        let Node { first, ports, is_switch, .. } = self.nodes[node];
        first..first + usize::from(ports) + usize::from(is_switch)
    }

    /// The cables of a node, each with the node's side of it.
    pub fn cables_of(&self, node: usize) -> Vec<(usize, usize)> {
        self.ports[self.ports_of(node)].iter().filter_map(|port| port.cable).collect()
    }

    /// The index of a node's port.
    pub fn port(&self, node: usize, number: usize) -> usize {
        let Node { first, is_switch, .. } = self.nodes[node];
        first + number - usize::from(!is_switch)
    }

    fn add_cable(&mut self, ends: [usize; 2], width: Width, marginal: bool, rng: &mut Rng) {
        let nth = self.cables.len();
        for (side, end) in ends.into_iter().enumerate() {
            self.ports[end].cable = Some((nth, side));
            self.start_counters(end, marginal, rng);
        }
        let mut steady = || {
            let marginal = share(rng, rates::MARGINAL.into_iter()).filter(|_| marginal);
            marginal.unwrap_or_else(|| log_between(rng, 1e-4, 0.03))
        };
        let steady = [steady(), steady()];
        let mut ratio = || log_between(rng, 1e-5, 0.1);
        let pre_fec = [ratio(), ratio()];
        self.cables.push(Cable {
            ends,
            to_host: !self.nodes[self.ports[ends[1]].node].is_switch,
            up: true,
            since: 0.0,
            active_at: 0.0,
            transition: 0,
            width,
            full: width,
            trains_at: width,
            steady,
            fault: [0.0; 2],
            drift: None,
            pre_fec,
            pre_fec_fault: [0.0; 2],
            load: [0.1; 2],
            congestion: None,
            grown: 0.0,
            hot: [false; 2],
            dark: [false; 2],
            optics: Optics::default(),
            flaps: Vec::new(),
            truth: Truth::default(),
        });
    }

    /// What a port's counters show before the trial: most have counted something, a few are saturated.
    fn start_counters(&mut self, port: usize, marginal: bool, rng: &mut Rng) {
        for counter in [Counter::XmitData, Counter::RcvData, Counter::XmitPkts, Counter::RcvPkts] {
            self.add(port, counter, 1 << 30 | rng.next_u64() >> 24);
        }
        let is_switch = self.nodes[self.ports[port].node].is_switch;
        let mut add = |counter, share: f64, most: u64| {
            if rng.next_f64() < share {
                let count = rng.below(most) + 1;
                self.add(port, counter, count);
            }
        };
        // Shares of ports with counts in a public dump of ConnectX-7 and Quantum-2.
        if is_switch {
            add(Counter::LinkDowned, 0.94, 60);
            add(Counter::XmitDiscards, 0.94, 100_000);
            add(Counter::RcvSwitchRelayErrors, 0.96, 65_535);
        } else {
            add(Counter::SymbolErrors, 0.035, 20_000);
            add(Counter::LinkDowned, 0.004, 55);
            add(Counter::RcvErrors, 0.03, 10_000);
            if marginal {
                add(Counter::SymbolErrors, rates::STUCK_SYMBOLS, u64::MAX >> 8);
                add(Counter::RcvErrors, rates::STUCK_RECEIVE, 1 << 20);
            }
        }
    }

    /// The device's model: 0 of switches, 1 of adapters.
    pub fn model(&self, port: usize) -> usize {
        usize::from(!self.nodes[self.ports[port].node].is_switch)
    }

    /// Adds to a counter, if the device has it; a narrow one saturates.
    pub fn add(&mut self, port: usize, counter: Counter, count: u64) {
        let max = self.fields[self.model(port)].max[counter as usize];
        if max == 0 || count == 0 {
            return;
        }
        let reading = &mut self.ports[port].reading;
        let value = reading.get(counter).unwrap_or(0).saturating_add(count).min(max);
        reading.set(counter, value);
        if max < u64::MAX && value == max {
            reading.saturated.insert(counter);
        }
    }

    /// Sets all counters of a port to zero: a clear or a reset.
    pub fn reset(&mut self, port: usize) {
        let fields = &self.fields[self.model(port)];
        let mut reading = Reading::empty(ib_mad::Moment(0));
        for counter in Counter::all().take(COUNT).filter(|counter| fields.has(*counter)) {
            reading.set(counter, 0);
        }
        self.ports[port].reading = reading;
    }

    /// A port's GUID and number.
    pub fn end(&self, port: usize) -> PortKey {
        let Port { node, number, .. } = self.ports[port];
        PortKey::new(self.nodes[node].guid, number)
    }

    /// Bytes per second that a cable carries.
    pub fn bytes_per_second(&self, cable: usize) -> f64 {
        bytes_per_second(self.cables[cable].width, self.generation.speed) as f64
    }

    /// Whether both nodes of a cable are on.
    pub fn has_both_nodes(&self, cable: usize) -> bool {
        self.cables[cable].ends.iter().all(|&end| !self.nodes[self.ports[end].node].away)
    }

    /// The nodes that the exporter's host reaches.
    pub fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        let mut queue = vec![SWITCHES];
        reached[SWITCHES] = true;
        while let Some(node) = queue.pop() {
            for (cable, side) in self.cables_of(node) {
                let far = self.ports[self.cables[cable].ends[1 - side]].node;
                let passes = self.cables[cable].up && !self.nodes[far].away && !reached[far];
                // A host forwards nothing.
                if passes {
                    reached[far] = true;
                    if self.nodes[far].is_switch {
                        queue.push(far);
                    }
                }
            }
        }
        reached
    }
}
