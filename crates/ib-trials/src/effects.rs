//! What actions do to links and counters.

use ib_health::settings::{MaintenanceWindow, NodeSelector};
use ib_mad::{Counter, PortKey};

use crate::action::Action;
use crate::cell::between;
use crate::time::wall;
use crate::world::World;

/// A subnet manager configures a link within seconds.
const CONFIGURED: (f64, f64) = (0.5, 8.0);

/// Errors that an end may count while its lanes adapt to each other.
const TRAINING: u64 = 300;

impl World {
    pub(crate) fn apply(&mut self, now: f64, action: Action) {
        match action {
            Action::NodeDown(node, seconds) => self.node_down(node, now, seconds),
            Action::NodeUp(node) => self.node_up(node, now),
            Action::LinkDown { cable, seconds, counted } => {
                self.link_down(cable, now, seconds, counted);
            }
            Action::LinkUp { cable, transition } => {
                let known = &self.cell.cables[cable];
                if known.transition == transition && !known.up && self.cell.has_both_nodes(cable) {
                    self.set_link(cable, true, now);
                }
            }
            Action::ClearPort(port) => self.clear(port, now),
            Action::ClearFabric => {
                self.grow_all(now);
                for port in 0..self.cell.ports.len() {
                    self.clear(port, now);
                }
                if let Some(every) = self.cell.cleared_every {
                    self.at(now + every, Action::ClearFabric);
                }
            }
            Action::Silent(node, seconds) => self.cell.nodes[node].silent_until = now + seconds,
            Action::Impossible(port, counter, seconds) => {
                self.cell.ports[port].impossible = Some((counter, now + seconds));
            }
            Action::Congestion(cable, congestion) => {
                self.cell.grow(cable, now, &mut self.rng);
                self.cell.cables[cable].congestion = congestion;
            }
            Action::Burst(port, errors) => {
                let Some((cable, side)) = self.cell.ports[port].cable else { return };
                if self.cell.cables[cable].up && self.cell.has_both_nodes(cable) {
                    let load = self.cell.cables[cable].load[side];
                    self.cell.corrupt(port, errors, load, &mut self.rng);
                }
            }
            Action::Retrain(cable) => {
                if self.cell.cables[cable].up && self.cell.has_both_nodes(cable) {
                    for end in self.cell.cables[cable].ends {
                        self.cell.add(end, Counter::LinkErrorRecoveries, 1);
                    }
                }
            }
            Action::SmFailover(seconds) => {
                self.configured_from = now + seconds;
                self.discover = true;
            }
            Action::Gap(seconds) => self.gap_until = now + seconds,
            Action::Restart => self.restarted = true,
            Action::Errors(cable, ratios) => {
                self.cell.grow(cable, now, &mut self.rng);
                let known = &mut self.cell.cables[cable];
                (known.fault, known.drift) = (ratios, None);
            }
            Action::Drift(cable, rate) => self.cell.cables[cable].drift = Some((now, rate)),
            Action::PreFec(cable, ratios) => {
                self.cell.grow(cable, now, &mut self.rng);
                self.cell.cables[cable].pre_fec_fault = ratios;
            }
            Action::Lanes(cable, width) => {
                self.cell.cables[cable].trains_at = width;
                self.link_down(cable, now, 2.0, [true; 2]);
            }
            Action::Hot(cable, side) => self.cell.cables[cable].hot[side] = true,
            Action::Dark(cable, side) => self.cell.cables[cable].dark[side] = true,
            Action::Optics(cable, optics) => self.cell.cables[cable].optics = optics,
            Action::Announce(cable, seconds) => self.announce(cable, now, seconds),
            Action::Note(cable, event) => self.cell.cables[cable].truth.note(event, now),
        }
    }

    /// A node is switched off: its neighbors count that their links went down.
    fn node_down(&mut self, node: usize, now: f64, seconds: f64) {
        // What is off does not reboot.
        if self.cell.nodes[node].away {
            return;
        }
        for (cable, side) in self.cell.cables_of(node) {
            self.cell.grow(cable, now, &mut self.rng);
            let far = self.cell.cables[cable].ends[1 - side];
            if self.cell.cables[cable].up {
                self.cell.add(far, Counter::LinkDowned, 1);
            }
            self.set_link(cable, false, now);
        }
        self.cell.nodes[node].away = true;
        self.at(now + seconds, Action::NodeUp(node));
    }

    fn node_up(&mut self, node: usize, now: f64) {
        self.cell.nodes[node].away = false;
        for port in self.cell.ports_of(node) {
            self.cell.reset(port);
        }
        for (cable, side) in self.cell.cables_of(node) {
            self.cell.grow(cable, now, &mut self.rng);
            if !self.cell.has_both_nodes(cable) {
                continue;
            }
            let transition = self.cell.cables[cable].transition;
            // Some adapters train twice while they boot; the other end counts that, and sometimes both.
            let mut up = now + between(&mut self.rng, 1.0, 20.0);
            if self.rng.next_f64() < 0.3 {
                let far = self.cell.cables[cable].ends[1 - side];
                self.cell.add(far, Counter::LinkDowned, 1);
                if self.rng.next_f64() < 0.3 {
                    let near = self.cell.cables[cable].ends[side];
                    self.cell.add(near, Counter::LinkDowned, 1);
                }
                up += 5.0;
            }
            self.at(up, Action::LinkUp { cable, transition });
        }
    }

    fn link_down(&mut self, cable: usize, now: f64, seconds: f64, counted: [bool; 2]) {
        self.cell.grow(cable, now, &mut self.rng);
        if !self.cell.cables[cable].up {
            return;
        }
        for (end, is_counted) in self.cell.cables[cable].ends.into_iter().zip(counted) {
            if is_counted {
                self.cell.add(end, Counter::LinkDowned, 1);
            }
        }
        self.set_link(cable, false, now);
        let transition = self.cell.cables[cable].transition;
        self.at(now + seconds, Action::LinkUp { cable, transition });
        if !self.in_maintenance(cable, now) {
            self.flaps += 1;
            let known = &mut self.cell.cables[cable];
            known.flaps.push(now + seconds);
            known.truth.on_flap(&known.flaps, now + seconds, self.interval);
        }
    }

    fn announce(&mut self, cable: usize, now: f64, seconds: f64) {
        let PortKey { guid: node, number } = self.cell.end(self.cell.cables[cable].ends[0]);
        self.maintenance.push(MaintenanceWindow {
            node: NodeSelector::Guid(node),
            port: Some(number),
            from: Some(wall(now)),
            until: Some(wall(now + seconds)),
        });
        self.maintenance.retain(|window| window.until.is_some_and(|until| until > wall(now)));
    }

    pub(crate) fn grow_all(&mut self, until: f64) {
        for cable in 0..self.cell.cables.len() {
            self.cell.grow(cable, until, &mut self.rng);
        }
    }

    fn clear(&mut self, port: usize, now: f64) {
        if let Some((cable, _)) = self.cell.ports[port].cable {
            self.cell.grow(cable, now, &mut self.rng);
        }
        if !self.cell.nodes[self.cell.ports[port].node].away {
            self.cell.reset(port);
        }
    }

    fn set_link(&mut self, cable: usize, up: bool, now: f64) {
        let configured = between(&mut self.rng, CONFIGURED.0, CONFIGURED.1);
        let training = self.rng.below(TRAINING);
        let known = &mut self.cell.cables[cable];
        if known.up != up {
            (known.up, known.since) = (up, now);
            known.transition += 1;
        }
        (known.grown, known.width) = (now, known.trains_at);
        if up {
            known.active_at = now.max(self.configured_from) + configured;
            // While the lanes adapt to each other they count errors.
            for end in known.ends {
                self.cell.add(end, Counter::SymbolErrors, training);
            }
        }
    }
}
