//! A site under construction, and what is drawn at random for it.

use std::time::Duration;

use ib_sim::net::{Net, NodeId, PortId};
use ib_sim::rng::Rng;
use ib_sim::scenario::{FabricChange, TimedChange};

use super::net;
use super::size::{Planted, Size};

/// A site under construction.
pub(super) struct Builder {
    pub(super) size: Size,
    pub(super) net: Net,
    pub(super) rng: Rng,
    /// The adapters of each host, in order of their place.
    pub(super) hosts: Vec<Vec<NodeId>>,
    pub(super) changes: Vec<TimedChange>,
    pub(super) planted: Vec<Planted>,
    pub(super) happenings: Vec<(&'static str, usize)>,
}

impl Builder {
    pub(super) fn push(&mut self, at: Duration, change: FabricChange) {
        self.changes.push(TimedChange { at, change });
    }

    /// Notes that something happens.
    pub(super) fn note(&mut self, what: &'static str, count: usize) {
        match self.happenings.iter_mut().find(|(known, _)| *known == what) {
            Some((_, known)) => *known += count,
            None => self.happenings.push((what, count)),
        }
    }

    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.rng.next_f64() < share
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    /// A moment between two shares of the length.
    pub(super) fn moment(&mut self, from: f64, to: f64) -> Duration {
        let share = from + (to - from) * self.rng.next_f64();
        Duration::from_secs_f64((self.size.length.as_secs_f64() * share).floor())
    }

    /// How often something happens that happens so often at a site of the real size in a day; at least once.
    pub(super) fn times(&self, in_a_day: f64) -> usize {
        let all = f64::from(Size::REAL.ndr_pods * Size::REAL.gpu_hosts * 8);
        let share = f64::from(self.size.ndr_pods * self.size.gpu_hosts * 8) / all
            * (self.size.length.as_secs_f64() / 86_400.0);
        #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
        let times = (in_a_day * share).round() as usize;
        times.max(1)
    }

    /// Any host but those of the monitor and the subnet managers.
    pub(super) fn any_host(&mut self) -> usize {
        let count = self.hosts.len() - net::MANAGERS;
        self.below(count)
    }

    /// The ports with a cable.
    pub(super) fn cabled(&self) -> Vec<PortId> {
        self.net.port_ids().filter(|port| self.net.port(*port).cable.is_some()).collect()
    }

    /// Both ends of the cable in a port.
    pub(super) fn ends(&self, port: PortId) -> Option<[PortId; 2]> {
        Some([port, self.net.port(port).cable?])
    }

    pub(super) fn label(&self, port: PortId) -> String {
        format!("{} port {}", self.net.node_of(port).description, self.net.port(port).number)
    }
}
