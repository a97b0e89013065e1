//! When to discover: at its time, and when something says that the fabric is not as it was found, but
//! not all the time.
//!
//! A port that loses its link makes for a discovery, which finds the node behind it gone. A cable that
//! comes and goes must not make for one each time, so the next ones have to wait. But a link that is
//! Active again in two sweeps in a row is no longer coming and going: its node is discovered without
//! that wait, once each time, or it would be reported as gone for minutes while its link works.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::config::FabricSettings;
use ib_fabric::collect::sweep::SweepResult;
use ib_fabric::snapshot::PortRead;
use ib_fabric::topology::{End, Presence};
use ib_fabric::{Fabric, Snapshot};
use ib_mad::port_state::state;
use ib_mad::{Guid, Moment};

/// So many intervals is the longest that a move waits for its discovery.
const MOST_HOLD: u32 = 8;

/// The pause after a discovery, in multiples of how long it took, before another one for returned links.
const PAUSE: u32 = 20;

/// What moves in a fabric, as far as it decides when to discover; see the module.
#[derive(Debug)]
pub(super) struct Movement {
    fabric: String,
    interval: Duration,
    discovery_interval: Duration,
    /// Something says that the fabric is not as it was found.
    restless: bool,
    /// Nobody has a LID yet.
    unaddressed: bool,
    /// A cable that comes and goes all the time must not make for a discovery each time: so long
    /// after one that was made for a move, another move has to wait.
    hold: Duration,
    held_until: Moment,
    /// Before this another change of LIDs does not end a sweep.
    readdress_after: Moment,
    /// When the next discovery is due even if nothing moves.
    due: Moment,
    /// How long after one with gaps the next discovery comes.
    gap_interval: Duration,
    /// Nodes that were silent in the last sweep.
    silent: HashSet<Guid>,
    /// Switches whose PortStateChange bit was set when last seen.
    state_changes: HashSet<Guid>,
    /// Ports that were Active in the latest sweep although the discovery found their cable without a
    /// link, and whether a discovery has looked behind them since.
    returned: HashMap<End, bool>,
    /// Such a port was so in two sweeps in a row.
    is_stable: bool,
    /// When the latest discovery ended.
    discovered: Moment,
    /// How long that took.
    took: Duration,
}

impl Movement {
    /// Of a fabric that nothing is known of.
    pub(super) fn new(settings: &FabricSettings) -> Self {
        Movement {
            fabric: settings.name.clone(),
            interval: settings.interval,
            discovery_interval: settings.discovery_interval,
            restless: false,
            unaddressed: false,
            hold: Duration::ZERO,
            held_until: Moment::default(),
            readdress_after: Moment::default(),
            due: Moment::default(),
            gap_interval: settings.interval,
            silent: HashSet::new(),
            state_changes: HashSet::new(),
            returned: HashMap::new(),
            is_stable: false,
            discovered: Moment::default(),
            took: Duration::ZERO,
        }
    }

    /// The wire is another one: whatever was found by the one before is to be found again.
    pub(super) fn begin(&mut self) {
        self.due = Moment::default();
    }

    /// Whether it is time to discover although nothing moves. Without a LID nobody can be asked: until
    /// a subnet manager has come, look each time.
    pub(super) fn is_due(&self, tick: Moment) -> bool {
        tick >= self.due || self.unaddressed
    }

    /// Whether to discover because something moved, unless that was done a moment ago.
    pub(super) fn is_restless(&self, now: Moment) -> bool {
        self.restless && now >= self.held_until
    }

    /// Whether to discover because links are back for good. Hosts may return one after the other for
    /// hours, as in a rolling reboot: discoveries for them take at most a twentieth of the time, and are
    /// at least an interval apart.
    pub(super) fn has_returned(&self, now: Moment) -> bool {
        let pause = self.took.saturating_mul(PAUSE).min(self.longest_hold());
        self.is_stable && now.since(self.discovered) >= pause.max(self.interval)
    }

    /// A discovery was made for a move: the next one has to wait.
    pub(super) fn settle(&mut self, now: Moment) {
        // Quiet for as long again as the last move had to wait: that is forgotten.
        if now > self.held_until + self.hold {
            self.hold = Duration::ZERO;
        }
        let (least, most) = (self.interval, self.longest_hold());
        self.hold = self.hold.saturating_mul(2).clamp(least.min(most), most);
        self.held_until = now + self.hold;
    }

    fn longest_hold(&self) -> Duration {
        self.interval.saturating_mul(MOST_HOLD).min(self.discovery_interval)
    }

    /// A discovery begins: what moved until now, it sees.
    pub(super) fn discovering(&mut self) {
        self.restless = false;
        self.is_stable = false;
    }

    /// A discovery is at its end. What is behind a gap is not known, and who has no LID yet cannot be
    /// asked, so look again soon; but a gap that stays must not keep the fabric busy, so each time a
    /// little later.
    pub(super) fn discovered(
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
        let rest = if has_gaps { self.gap_interval.min(usual) } else { usual };
        self.gap_interval = if has_gaps { rest.saturating_mul(2) } else { self.interval };
        self.due = now + rest;
    }

    /// Whether a sweep that met other LIDs than were found is to be made anew. Two nodes with one LID
    /// would make for this each time.
    pub(super) fn drops_readdressed(&self, now: Moment) -> bool {
        now >= self.readdress_after
    }

    /// It met them again.
    pub(super) fn readdressed_again(&mut self, now: Moment) {
        self.readdress_after = now + self.longest_hold();
    }

    /// Takes a sweep in: a port that is not as it was found, a switch that says that something
    /// changed, a node that fell silent, each only when that is new.
    pub(super) fn swept(&mut self, swept: &SweepResult) {
        let snapshot = &swept.snapshot;
        let silent: HashSet<Guid> = snapshot
            .fabric
            .nodes
            .iter()
            .zip(&snapshot.silent)
            .filter(|(_, silent)| **silent)
            .map(|(node, _)| node.identity.guid)
            .collect();
        // A node that the discovery could not reach is behind a gap, which has its own interval: it may be
        // asked in some sweeps only, and is no news in each of them.
        let is_found = |guid: &&Guid| {
            let node = snapshot.fabric.node_by_guid(**guid);
            node.is_some_and(|node| snapshot.fabric.node(node).presence == Presence::Found)
        };
        let newly_silent = silent.difference(&self.silent).filter(is_found).count();
        let newly_changed =
            swept.state_changes.difference(&self.state_changes).filter(is_found).count();
        // If LIDs are still changing, there is more to find.
        self.restless |= swept.lids_changed;
        if newly_silent > 0 || newly_changed > 0 || swept.changed {
            if !self.restless {
                let (fabric, moved) = (&self.fabric, swept.changed);
                tracing::info!(fabric, newly_silent, newly_changed, moved, "something moved");
            }
            self.restless = true;
        }
        let returned: HashMap<End, Option<bool>> =
            returned_ports(snapshot).map(|end| (end, self.returned.get(&end).copied())).collect();
        self.is_stable = returned.values().any(|before| *before == Some(false));
        self.returned =
            returned.into_iter().map(|(end, before)| (end, before.unwrap_or(false))).collect();
        // Where our own port did not answer at all, the next discovery comes as after any other gap.
        let fabric = &snapshot.fabric;
        self.unaddressed = !fabric.nodes.is_empty() && !is_addressed(fabric);
        self.silent = silent;
        self.state_changes.clone_from(&swept.state_changes);
    }
}

/// Whether anybody can be asked.
fn is_addressed(fabric: &Fabric) -> bool {
    fabric
        .port_indexes()
        .any(|port| fabric.node_of(port).present() && fabric.lid_of(port).is_some())
}

/// The ports that the sweep found Active although the discovery found their cable without a link.
fn returned_ports(snapshot: &Snapshot) -> impl Iterator<Item = End> {
    let fabric = &snapshot.fabric;
    let ports = fabric.port_indexes().filter(|&port| {
        let is_active = matches!(
            &snapshot.statuses[port.0 as usize],
            PortRead::Ok(status) if status.link_up() && status.state >= state::ACTIVE
        );
        is_active && fabric.port(port).peer.is_some_and(|peer| !peer.connected)
    });
    ports.map(|port| fabric.end(port))
}

/// Whether somebody has a link and no LID: it has just come up, and no subnet manager has seen it.
pub(super) fn has_unaddressed(fabric: &Fabric) -> bool {
    fabric.port_indexes().any(|port| {
        let linked = fabric.port(port).status.is_some_and(|status| status.link_up());
        linked && fabric.node_of(port).present() && fabric.lid_of(port).is_none()
    })
}
