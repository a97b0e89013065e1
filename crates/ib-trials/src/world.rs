//! What happens in a cell, and what a sweep of the exporter reads of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_fabric::assembly::{DiscoveredFabric, DiscoveredNode, DiscoveredPort};
use ib_fabric::hardware::Hardware;
use ib_fabric::names::Naming;
use ib_fabric::snapshot::PortRead;
use ib_fabric::topology::Presence;
use ib_fabric::{Fabric, NodeIndex, PortIndex, Snapshot};
use ib_health::settings::{MaintenanceWindow, NodeSelector};
use ib_mad::moment::Anchor;
use ib_mad::node::{NodeIdentity, NodeKind};
use ib_mad::port_state::{PhysicalState, PortState, PortStatus, SpeedFields};
use ib_mad::reading::Raw;
use ib_mad::{Guid, Moment, PortKey, Reading};
use ib_sim::rng::Rng;

use crate::action::Action;
use crate::cell::{Cell, SWITCHES};
use crate::rates::LOST_READING;
use crate::time::{moment, wall};

/// The exporter reads details at this interval by default.
const DETAILS: f64 = 120.0;

/// A cell with its future.
#[derive(Debug)]
pub struct World {
    /// The cell.
    pub cell: Cell,
    /// Its random numbers.
    pub rng: Rng,
    /// Seconds between sweeps.
    pub interval: f64,
    /// The maintenance file.
    pub maintenance: Vec<MaintenanceWindow>,
    /// No sweep before this second.
    pub gap_until: f64,
    /// The exporter restarted since this was last taken.
    pub restarted: bool,
    /// The number of true flaps so far, by cable, and of those that some reading can show.
    pub flaps: u64,
    /// By the bits of the second, which are in the order of seconds from 0 on; ties are in the order in which they were
    /// scheduled.
    future: BTreeMap<(u64, u64), Action>,
    scheduled: u64,
    /// A discovery is due before the next sweep.
    pub(crate) discover: bool,
    /// A subnet manager configures links from this second on.
    pub(crate) configured_from: f64,
    pub(crate) hardware: Arc<Hardware>,
    pub(crate) physical_read: f64,
    pub(crate) modules_read: f64,
    pub(crate) lane_errors: Vec<u64>,
}

impl World {
    /// A cell at second 0, discovered.
    pub fn new(cell: Cell, rng: Rng, interval: f64) -> World {
        let lane_errors = vec![0; cell.ports.len()];
        let mut world = World {
            cell,
            rng,
            interval,
            maintenance: Vec::new(),
            gap_until: 0.0,
            restarted: false,
            flaps: 0,
            future: BTreeMap::new(),
            scheduled: 0,
            discover: false,
            configured_from: 0.0,
            hardware: Arc::default(),
            physical_read: f64::NEG_INFINITY,
            modules_read: f64::NEG_INFINITY,
            lane_errors,
        };
        // Before anything happens: the indexes of ports are those of the fabric.
        let reached = world.cell.reached();
        world.discover(0.0, &reached);
        if let Some(every) = world.cell.cleared_every {
            let first = world.rng.next_f64() * every;
            world.at(first, Action::ClearFabric);
        }
        world
    }

    /// Schedules an action.
    pub fn at(&mut self, second: f64, action: Action) {
        self.scheduled += 1;
        self.future.insert((second.to_bits(), self.scheduled), action);
    }

    /// Lets everything happen until a moment.
    pub fn advance(&mut self, until: f64) {
        while let Some(next) = self.future.first_entry() {
            let second = f64::from_bits(next.key().0);
            if second > until {
                break;
            }
            let action = next.remove();
            self.apply(second, action);
        }
        self.grow_all(until);
    }

    /// What is true of every cable at the moment of a sweep.
    pub fn update_truth(&mut self, now: f64) {
        for cable in 0..self.cell.cables.len() {
            let both = self.cell.has_both_nodes(cable);
            let known = &mut self.cell.cables[cable];
            let worst = known.ratio(0, now).max(known.ratio(1, now));
            let is_degraded = known.pre_fec_ratio(0).max(known.pre_fec_ratio(1)) >= 1.0;
            let truth = &mut known.truth;
            if worst >= 0.5 {
                truth.on_bit_errors(worst, now, self.interval);
            }
            if is_degraded {
                truth.on_degraded(now, self.interval);
            }
            if known.hot.contains(&true) || known.dark.contains(&true) {
                truth.on_module(now);
            }
            if both && (!known.up || now < known.active_at) {
                truth.on_down(now, known.since, known.up, self.interval);
            }
            if known.up && known.width < known.full {
                truth.on_fewer_lanes(now, self.interval);
            }
        }
    }

    /// Whether a cable is in the maintenance file.
    pub(crate) fn in_maintenance(&self, cable: usize, now: f64) -> bool {
        let PortKey { guid, number } = self.cell.end(self.cell.cables[cable].ends[0]);
        self.maintenance.iter().any(|window| {
            window.node == NodeSelector::Guid(guid)
                && window.port == Some(number)
                && window.is_active(wall(now))
        })
    }

    /// The state that a port reports.
    fn status(&self, port: usize, now: f64) -> PortStatus {
        let status = self.cell.generation.status(self.cell.ports[port].node as u16 + 1);
        let Some((cable, _)) = self.cell.ports[port].cable else { return status };
        let known = &self.cell.cables[cable];
        let up = PortStatus { width: Some(known.width), ..status };
        if !known.up || !self.cell.has_both_nodes(cable) {
            let (state, physical_state) = (PortState::Down, PhysicalState::Polling);
            PortStatus { state, physical_state, width: None, speed: None, ..up }
        } else if now < known.active_at {
            PortStatus { state: PortState::Init, ..up }
        } else {
            up
        }
    }

    fn discover(&mut self, now: f64, reached: &[bool]) {
        let mut found = DiscoveredFabric::default();
        for (nth, node) in self.cell.nodes.iter().enumerate().filter(|(nth, _)| reached[*nth]) {
            let kind = if node.is_switch { NodeKind::Switch } else { NodeKind::Ca };
            let ports = self.cell.ports_of(nth).map(|port| DiscoveredPort {
                number: self.cell.ports[port].number,
                guid: Guid(node.guid.0 << 8 | u64::from(self.cell.ports[port].number)),
                status: Some(self.status(port, now)),
                role: None,
            });
            let identity = NodeIdentity {
                guid: node.guid,
                system_guid: node.guid,
                kind,
                description: format!("node-{nth}"),
                vendor_id: 0x2c9,
                device_id: if node.is_switch { 1 } else { 2 },
                port_count: node.ports,
                enhanced_port0: false,
                speed_fields: SpeedFields { extended: true, extended2: false },
                reports_fec: self.cell.generation.fec.is_some(),
            };
            found.nodes.push(DiscoveredNode { identity, ports: ports.collect() });
        }
        for cable in &self.cell.cables {
            let [a, b] = cable.ends.map(|end| self.cell.ports[end].node);
            if cable.up && reached[a] && reached[b] {
                found.links.push((self.cell.end(cable.ends[0]), self.cell.end(cable.ends[1])));
            }
        }
        found.local_port = Some(PortKey::new(self.cell.nodes[SWITCHES].guid, 1));
        let previous = Arc::clone(&self.cell.fabric);
        let known = (!previous.nodes.is_empty()).then_some((&*previous, Moment::default()));
        let fabric = Fabric::assemble(found, &Naming::default(), moment(now), known);
        self.cell.fabric = Arc::new(fabric);
    }

    /// What the exporter reads at a moment.
    pub fn sweep(&mut self, now: f64) -> Snapshot<Raw> {
        let reached = self.cell.reached();
        if std::mem::take(&mut self.discover) {
            self.discover(now, &reached);
        }
        self.read_hardware(now);
        let fabric = Arc::clone(&self.cell.fabric);
        let anchor = Anchor { moment: moment(now), wall: wall(now) };
        let mut snapshot = Snapshot::blank(Arc::clone(&fabric), anchor);
        snapshot.ended = moment(now + 1.0);
        snapshot.hardware = Arc::clone(&self.hardware);
        if let Some(fec) = self.cell.generation.fec {
            snapshot.fec.fill(Some(fec));
        }
        let responds: Vec<bool> = (self.cell.nodes.iter().zip(&reached))
            .map(|(node, reached)| *reached && node.silent_until <= now)
            .collect();
        for (nth, node) in self.cell.nodes.iter().enumerate() {
            let index = NodeIndex(nth as u32);
            let is_found = fabric.nodes.get(index).is_some_and(|it| it.presence == Presence::Found);
            snapshot.silent[index] = is_found && !responds[nth];
            snapshot.ticks[index] = self.cell.ticks[usize::from(!node.is_switch)];
        }
        for port in 0..self.cell.ports.len() {
            let node = self.cell.ports[port].node;
            let is_found = fabric.nodes[NodeIndex(node as u32)].presence == Presence::Found;
            if responds[node] && is_found && self.cell.ports[port].cable.is_some() {
                self.read(port, now, &mut snapshot.readings[PortIndex(port as u32)]);
                if self.is_queried(&fabric, port) {
                    self.read_state(&mut snapshot, port, now, &responds);
                }
            }
        }
        for _ in 0..self.rng.poisson(LOST_READING * self.cell.ports.len() as f64) {
            let lost = PortIndex(self.rng.below(self.cell.ports.len() as u64) as u32);
            snapshot.readings[lost] = None;
        }
        snapshot
    }

    /// Whether a sweep queries the state of a port: of one end of each link, and of ports without a link.
    fn is_queried(&self, fabric: &Fabric, port: usize) -> bool {
        let here = self.cell.nodes[self.cell.ports[port].node].is_switch;
        match fabric.port(PortIndex(port as u32)).connected_peer() {
            None => true,
            Some(peer) => {
                let far = self.cell.nodes[self.cell.ports[usize::from(peer)].node].is_switch;
                if far == here { port as u32 <= peer.0 } else { here }
            }
        }
    }

    fn read_state(
        &mut self,
        snapshot: &mut Snapshot<Raw>,
        port: usize,
        now: f64,
        responds: &[bool],
    ) {
        let status = self.status(port, now);
        let index = PortIndex(port as u32);
        let known = snapshot.fabric.port(index).status;
        let link = |it: &PortStatus| (it.state, it.physical_state, it.width, it.speed);
        snapshot.statuses[index] = PortRead::Ok(status);
        if known.is_none_or(|known| link(&known) == link(&status)) {
            return;
        }
        self.discover = true;
        let Some(peer) = snapshot.fabric.port(index).connected_peer() else { return };
        let node = self.cell.ports[usize::from(peer)].node;
        let is_switch = self.cell.nodes[node].is_switch;
        if is_switch && responds[node] {
            snapshot.statuses[peer] = PortRead::Ok(self.status(peer.into(), now));
        } else if is_switch || !status.link_up() {
            snapshot.statuses[peer] = PortRead::Unknown;
        }
    }

    /// Reads the counters of a port.
    fn read(&mut self, port: usize, now: f64, into: &mut Option<Reading<Raw>>) {
        let later = self.rng.next_f64() * 0.9;
        let model = self.cell.model(port);
        let is_due = now - self.cell.ports[port].details_read >= DETAILS - 1.0;
        let known = &mut self.cell.ports[port];
        known.reading.at = moment(now + 0.1 + later);
        let reading = into.insert(known.reading.clone());
        if is_due {
            known.details_read = now;
        } else {
            for counter in &self.cell.fields[model].details {
                reading.remove(*counter);
                reading.not_due.insert(*counter);
            }
        }
        if let Some((counter, until)) = known.impossible {
            if now < until && reading.get(counter).is_some() {
                // As one ConnectX-7 of a public dump showed.
                reading.set(counter, u64::MAX - 39);
            } else {
                known.impossible = None;
            }
        }
    }
}
