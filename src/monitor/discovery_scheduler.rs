//! When to discover: periodically, and when there are signs of a change, but not all the time.
//!
//! A port that loses its link triggers a discovery, which finds that the node behind it is missing. A flapping cable must
//! not trigger one each time, so further discoveries are delayed (cooldown). But a link that is Active again in
//! two consecutive sweeps has stopped flapping: its node is discovered without the cooldown, once each time, or
//! it would be reported as missing for minutes while its link works.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::config::FabricSettings;
use ib_fabric::collect::sweep::SweepResult;
use ib_fabric::snapshot::PortRead;
use ib_fabric::topology::Presence;
use ib_fabric::{Fabric, Snapshot};
use ib_mad::reading::Raw;
use ib_mad::{Guid, Moment, PortKey};

/// The longest cooldown, in sweep intervals.
const MAX_COOLDOWN: u32 = 8;
/// The pause after a discovery before another one for returned links, in multiples of its duration.
const RETURN_PAUSE: u32 = 20;

#[derive(Debug, Default)]
pub(super) struct DiscoveryScheduler {
    interval: Duration,
    discovery_interval: Duration,
    /// There are signs that the fabric has changed since the discovery.
    change_pending: bool,
    /// No node has a LID yet.
    unaddressed: bool,
    /// The time after a discovery for a change in which there is no other one for a change.
    cooldown: Duration,
    cooldown_until: Moment,
    /// Until this moment LIDs may change again.
    unsteady_until: Moment,
    /// When the next periodic discovery is due.
    due: Moment,
    /// The time until the next discovery after one with gaps.
    gap_interval: Duration,
    /// Nodes that were silent in the latest sweep.
    silent: HashSet<Guid>,
    /// Switches whose PortStateChange bit was set when last seen.
    state_changes: HashSet<Guid>,
    /// Ports that were Active in the latest sweep where the discovery found no link, and whether there was a
    /// discovery since then.
    returned: HashMap<PortKey, bool>,
    /// Such a port was Active in two consecutive sweeps.
    return_pending: bool,
    /// When the latest discovery ended, and how long it took.
    discovered: Moment,
    took: Duration,
}

impl DiscoveryScheduler {
    /// For a fabric that was not discovered yet.
    pub(super) fn new(settings: &FabricSettings) -> Self {
        DiscoveryScheduler {
            interval: settings.interval,
            discovery_interval: settings.discovery_interval,
            gap_interval: settings.interval,
            ..DiscoveryScheduler::default()
        }
    }

    /// The transport was opened: a discovery is due at once.
    pub(super) fn reset(&mut self) {
        self.due = Moment::default();
    }

    /// Whether a periodic discovery is due. While no node has a LID, none can be queried: then one is due before
    /// each sweep, until a subnet manager has come.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        now >= self.due || self.unaddressed
    }

    /// Whether a discovery is due because of a change, outside the cooldown.
    pub(super) fn is_change_due(&self, now: Moment) -> bool {
        self.change_pending && now >= self.cooldown_until
    }

    /// Whether a discovery is due because links are up again. Hosts may return one after the other for hours, as in a
    /// rolling reboot: discoveries for them take at most a twentieth of the time, and are at least an interval apart.
    pub(super) fn is_return_due(&self, now: Moment) -> bool {
        let pause = self.took.saturating_mul(RETURN_PAUSE).min(self.max_cooldown());
        self.return_pending && now.since(self.discovered) >= pause.max(self.interval)
    }

    /// There was a discovery for a change: starts the cooldown, twice as long as the last one.
    pub(super) fn back_off(&mut self, now: Moment) {
        // Without a change for another cooldown it starts from the shortest again.
        if now > self.cooldown_until + self.cooldown {
            self.cooldown = Duration::ZERO;
        }
        let (min, max) = (self.interval, self.max_cooldown());
        self.cooldown = self.cooldown.saturating_mul(2).clamp(min.min(max), max);
        self.cooldown_until = now + self.cooldown;
    }

    fn max_cooldown(&self) -> Duration {
        self.interval.saturating_mul(MAX_COOLDOWN).min(self.discovery_interval)
    }

    /// A discovery starts, and finds all changes until now.
    pub(super) fn on_discovery_start(&mut self) {
        self.change_pending = false;
        self.return_pending = false;
    }

    /// A discovery ended. Nodes behind a gap are unknown, and a node without a LID cannot be queried, so the
    /// next discovery comes soon; but a permanent gap must not keep the fabric busy, so each time later.
    pub(super) fn on_discovery_end(
        &mut self,
        now: Moment,
        took: Duration,
        state_changes: &HashSet<Guid>,
        has_gaps: bool,
    ) {
        self.state_changes.clone_from(state_changes);
        (self.discovered, self.took) = (now, took);
        self.returned.values_mut().for_each(|seen| *seen = true);
        let usual = self.discovery_interval;
        let wait = if has_gaps { self.gap_interval.min(usual) } else { usual };
        self.gap_interval = if has_gaps { wait.saturating_mul(2) } else { self.interval };
        self.due = now + wait;
    }

    /// Whether LIDs have changed all the time lately: a sweep with changed ones does not cause a discovery at once, and
    /// has only what it confirms. Two nodes with one LID would cause one each time.
    pub(super) fn has_unsteady_lids(&self, now: Moment) -> bool {
        now < self.unsteady_until
    }

    /// The repeated sweep had changed LIDs, too.
    pub(super) fn on_lids_changed_again(&mut self, now: Moment) {
        self.unsteady_until = now + self.max_cooldown();
    }

    /// Checks a sweep for signs of a change: a port in another state, a switch that reports a change, a node
    /// that stopped responding, each only when it is new.
    pub(super) fn on_sweep(&mut self, swept: &SweepResult) {
        let snapshot = &swept.snapshot;
        let nodes = snapshot.fabric.nodes.iter().zip(&snapshot.silent);
        let silent = nodes.filter(|(_, silent)| **silent).map(|(node, _)| node.identity.guid);
        let silent: HashSet<Guid> = silent.collect();
        // A node that the discovery could not reach is behind a gap, which has its own interval: it may be
        // queried in some sweeps only, and is no change in each of them.
        let is_found = |guid: &&Guid| {
            let node = snapshot.fabric.node_by_guid(**guid);
            node.is_some_and(|node| snapshot.fabric.node(node).presence == Presence::Found)
        };
        let newly_silent = silent.difference(&self.silent).filter(is_found).count();
        let newly_changed =
            swept.state_changes.difference(&self.state_changes).filter(is_found).count();
        // If LIDs are still changing, or a new subnet manager may change them, there is more to find.
        self.change_pending |= swept.lids_changed || swept.sm_lid_changed;
        if newly_silent > 0 || newly_changed > 0 || swept.changed {
            if !self.change_pending {
                tracing::info!(
                    unresponsive_nodes = newly_silent,
                    switches_changed = newly_changed,
                    ports_changed = swept.changed,
                    "fabric changed: discovery pending"
                );
            }
            self.change_pending = true;
        }
        let before = std::mem::take(&mut self.returned);
        let returned = returned_ports(snapshot).map(|end| (end, before.get(&end) == Some(&true)));
        self.returned = returned.collect();
        self.return_pending = self.returned.keys().any(|end| before.get(end) == Some(&false));
        // If our own port did not respond at all, the next discovery comes as after any other gap.
        let fabric = &snapshot.fabric;
        self.unaddressed = !fabric.nodes.is_empty() && !is_addressed(fabric);
        self.silent = silent;
        self.state_changes.clone_from(&swept.state_changes);
    }
}

fn is_addressed(fabric: &Fabric) -> bool {
    fabric
        .port_indexes()
        .any(|port| fabric.node_of(port).present() && fabric.lid_of(port).is_some())
}

/// The ports that the sweep found Active where the discovery found no link.
fn returned_ports(snapshot: &Snapshot<Raw>) -> impl Iterator<Item = PortKey> {
    let fabric = &snapshot.fabric;
    let ports = fabric.port_indexes().filter(|&port| {
        let is_active = matches!(
            &snapshot.statuses[port],
            PortRead::Ok(status) if status.link_up() && status.state.is_active()
        );
        is_active && fabric.port(port).peer.is_some_and(|peer| !peer.connected)
    });
    ports.map(|port| fabric.port_key(port))
}

/// Whether a port has a link and no LID: it has just come up, and no subnet manager has configured it.
pub(super) fn has_unaddressed(fabric: &Fabric) -> bool {
    fabric.port_indexes().any(|port| {
        let linked = fabric.port(port).status.is_some_and(|status| status.link_up());
        linked && fabric.node_of(port).present() && fabric.lid_of(port).is_none()
    })
}
