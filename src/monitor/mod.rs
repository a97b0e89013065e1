//! The loop: discover, sweep, publish, rest; one thread a fabric, which is its port's I/O thread.
//!
//! The thread outlives its device: when the port's device goes, everybody is told so, and the
//! thread waits for it to come back.

pub mod host;
mod judging;
mod m_keys;
mod maintenance;
mod movement;
mod names;
mod said;
mod site_file;

pub use judging::PortNews;
pub use m_keys::{MKeyFile, m_keys_in};
pub use maintenance::work_in;
pub use names::names_in;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::sync::watch;

use crate::config::FabricSettings;
use fabric_observation::{Board, Collector, Observation, SiteFileKind, Tally};
use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::clear::CounterClearing;
use ib_fabric::collect::discovery::Discovery;
use ib_fabric::collect::sweep::{Sweep, SweepResult};
use ib_fabric::collect::unresponsive::{MKeySuspicion, UnresponsiveNeighbors, m_key_suspicion};
use ib_fabric::names::NodeNameMap;
use ib_fabric::topology::End;
use ib_fabric::{Fabric, Snapshot, change};
use ib_health::settings::Work;
use ib_health::totals::Memory;
use ib_mad::Moment;
use ib_mad::m_key::MKeys;
use ib_mad::pma::OptionalCounters;
use ib_umad::capture::{Capture, CapturingTransport};
use ib_umad::client::{Heartbeat, MadClient};
use ib_umad::query;
use ib_umad::query::RunError;
use ib_umad::{MadTransport, RequestError, TransportError};
use judging::Judging;
use movement::{Movement, has_unaddressed};
use said::{News, Said};
use site_config::ConfigError;
use site_file::SiteFile;

/// How often a device that went away is looked for.
const REOPEN_INTERVAL: Duration = Duration::from_secs(2);

/// The files of the site that a fabric goes by.
#[derive(Debug, Default)]
struct SiteFiles {
    names: Option<SiteFile<NodeNameMap>>,
    keys: Option<SiteFile<MKeyFile>>,
    work: Option<SiteFile<Vec<Work>>>,
}

/// Opens a file, if there is one; without one, the content is the default.
fn open<T: Default + Send + 'static>(
    kind: SiteFileKind,
    path: Option<&PathBuf>,
    read: fn(&std::path::Path) -> Result<T, ConfigError>,
) -> Result<(Option<SiteFile<T>>, T), ConfigError> {
    let Some(path) = path else { return Ok((None, T::default())) };
    SiteFile::open(kind, path, read).map(|(file, content)| (Some(file), content))
}

/// What is new in a file; that it cannot be used any more is logged.
fn news<T: Send + 'static>(fabric: &str, file: &mut Option<SiteFile<T>>) -> Option<T> {
    let news = file.as_mut()?.refresh()?;
    news.map_err(|error| {
        for line in error.lines() {
            tracing::warn!(fabric, "{line}; what was read before stays in use");
        }
    })
    .ok()
}

/// Begins to look for changes of a file.
fn watch_file<T: Send + 'static>(fabric: &str, file: &mut Option<SiteFile<T>>) {
    if let Some(Err(error)) = file.as_mut().map(SiteFile::watch) {
        tracing::warn!(fabric, %error, "no thread to read a site file on: its changes are not seen");
    }
}

/// Watches one fabric; see the module.
#[derive(Debug)]
pub struct Monitor {
    settings: FabricSettings,
    board: Arc<watch::Sender<Board>>,
    /// Its place on the board.
    slot: usize,
    stop: Arc<AtomicBool>,
    client: MadClient,
    capture: Option<Capture>,
    files: SiteFiles,
    names: NodeNameMap,
    keys: Arc<MKeys>,
    said: Said,
    agents: AgentCache,
    fabric: Option<Arc<Fabric>>,
    judging: Judging,
    tally: Tally,
    movement: Movement,
    unanswered: UnresponsiveNeighbors,
    suspicion: Option<MKeySuspicion>,
    /// Switches answer subnet management by LID, as far as is known.
    states_by_lid: bool,
}

impl Monitor {
    /// One for a fabric, publishing to a slot of the board. Fails when a file of the site's cannot be
    /// used; later versions of them that cannot be are logged, and what was read before stays in use.
    pub fn new(
        settings: FabricSettings,
        capture: Option<Capture>,
        board: Arc<watch::Sender<Board>>,
        slot: usize,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ConfigError> {
        let (kind, path) = (SiteFileKind::NodeNameMap, settings.node_name_map.as_ref());
        let (names_file, names) = open(kind, path, names_in)?;
        let (kind, path) = (SiteFileKind::MKey, settings.m_key_file.as_ref());
        let (keys_file, MKeyFile { keys, warnings }) = open(kind, path, m_keys_in)?;
        let (kind, path) = (SiteFileKind::Maintenance, settings.maintenance_file.as_ref());
        let (work_file, work) = open(kind, path, work_in)?;
        let mut said = Said::default();
        for warning in said.news(warnings, Moment::default()).each {
            tracing::warn!(fabric = settings.name, "{warning}");
        }
        let mut judging = Judging::new(&settings);
        judging.set_work(work);
        Ok(Monitor {
            client: MadClient::new(settings.pace),
            files: SiteFiles { names: names_file, keys: keys_file, work: work_file },
            names,
            keys: Arc::new(keys),
            said,
            agents: AgentCache::new(OptionalCounters {
                details: settings.details,
                fec: settings.fec,
            }),
            movement: Movement::new(&settings),
            unanswered: UnresponsiveNeighbors::default(),
            suspicion: None,
            states_by_lid: true,
            judging,
            settings,
            board,
            slot,
            stop,
            capture,
            fabric: None,
            tally: Tally::default(),
        })
    }

    /// Where it takes what ports of this host tell of their links.
    pub fn teller(&self) -> SyncSender<PortNews> {
        self.judging.teller()
    }

    /// What beats while the watch turns, several times a second, also while it waits or its device is
    /// gone.
    pub fn pulse(&self) -> Heartbeat {
        self.client.heartbeat().clone()
    }

    /// Lets the totals of ports go on where an earlier watch ended.
    pub fn remember(&mut self, memory: Memory) {
        self.judging.remember(memory);
    }

    /// Watches until it is to stop, beginning with an open wire; `open` gets another one when that
    /// is gone.
    pub fn run<W: MadTransport, E: std::fmt::Display>(
        mut self,
        first: W,
        mut open: impl FnMut() -> Result<W, E>,
    ) {
        // Only now: a thread has the rights of the one that starts it, and this one is confined.
        watch_file(&self.settings.name, &mut self.files.names);
        watch_file(&self.settings.name, &mut self.files.keys);
        watch_file(&self.settings.name, &mut self.files.work);
        let mut wire = Some(first);
        while !self.stop.load(Ordering::Relaxed) {
            if let Some(open) = &mut wire {
                match self.watch(open) {
                    RunError::Stopped => break,
                    RunError::Transport(error) => self.lost(&error),
                }
                // Closed before it is opened again: a device goes only when nobody holds it.
                drop(wire.take());
            } else {
                self.pause(REOPEN_INTERVAL);
                match open() {
                    Ok(open) => {
                        tracing::info!(fabric = self.settings.name, "the device is back");
                        wire = Some(open);
                    }
                    Err(error) => {
                        tracing::debug!(fabric = self.settings.name, %error, "still no device");
                    }
                }
            }
        }
        tracing::debug!(fabric = self.settings.name, "the watch ends");
    }

    fn pause(&self, rest: Duration) {
        let step = Duration::from_millis(100);
        let steps = rest.as_millis().div_ceil(step.as_millis());
        for _ in 0..steps {
            self.client.heartbeat().tick();
            if !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(step);
            }
        }
    }

    /// Discovers and sweeps in turn, until something ends it.
    fn watch(&mut self, wire: &mut impl MadTransport) -> RunError {
        self.movement.begin();
        let mut tick = wire.now();
        loop {
            if let Err(broken) = self.round(wire, tick) {
                return broken;
            }
            // A round that took longer than the interval leaves out the ticks that it missed.
            let now = wire.now();
            while tick <= now {
                tick = tick + self.settings.interval;
            }
            if let Err(broken) = query::drain_until(tick, &mut self.client, wire, &self.stop) {
                return broken;
            }
        }
    }

    fn round(&mut self, wire: &mut impl MadTransport, tick: Moment) -> Result<(), RunError> {
        if self.movement.is_due(tick) {
            self.discover(wire)?;
        }
        self.discover_moves(wire)?;
        let mut swept = self.sweep(wire)?;
        if swept.lids_changed && self.movement.drops_readdressed(wire.now()) {
            tracing::info!(
                fabric = self.settings.name,
                "LIDs have changed: what was read by the old ones is dropped"
            );
            self.discover(wire)?;
            swept = self.sweep(wire)?;
            // One more change is another matter: what it misleads must not be told either.
            if swept.lids_changed {
                self.movement.readdressed_again(wire.now());
            }
        }
        self.movement.swept(&swept);
        self.tally.mastership.saw(&self.settings.name, &swept.snapshot);
        let cleared = self.clear(wire, &mut swept);
        // What was cleared is told even if the wire broke over it: nobody else knows of it.
        self.publish(Some(swept.snapshot));
        cleared?;
        // At once, so that the next sweep asks the right ports by their right LIDs.
        self.discover_moves(wire)
    }

    fn discover_moves(&mut self, wire: &mut impl MadTransport) -> Result<(), RunError> {
        if self.movement.is_restless(wire.now()) {
            self.discover(wire)?;
            self.movement.settle(wire.now());
        } else if self.movement.has_returned(wire.now()) {
            self.discover(wire)?;
        }
        Ok(())
    }

    fn discover(&mut self, wire: &mut impl MadTransport) -> Result<(), RunError> {
        self.movement.discovering();
        self.states_by_lid = true;
        self.refresh_names();
        self.refresh_m_keys(wire.now());
        wire.refresh();
        let anchor = wire.anchor();
        let tries = self.settings.pace.retries.saturating_add(1);
        let mut discovery = Discovery::new()
            .with_keys(Arc::clone(&self.keys), wire.port_guid())
            .without(self.unanswered.select_skipped(anchor.moment, tries));
        {
            let mut wire = CapturingTransport::new(wire, self.capture.as_mut());
            query::run(&mut discovery, &mut self.client, &mut wire, &self.stop)?;
        }
        let found = discovery.finish();
        let now = wire.now();
        self.tally.discoveries += 1;
        self.tally.discovery_gaps = found.failures;
        self.tally.discovery = Some((anchor, now));
        // Alone on the wire: no link, or the port does not answer its own host.
        self.tally.set_success(Collector::Discovery, !found.fabric.links.is_empty());
        if found.local_error == Some(RequestError::Unsent) {
            // Kernels before 5.12 keep the descriptor of a removed device and refuse each send on it:
            // it must be opened again.
            let device = self.settings.name.clone();
            let problem = "the kernel refuses to send: the device was removed".to_owned();
            return Err(TransportError { device, problem }.into());
        }
        // Without our own PortInfo no neighbor of ours was asked: what is known of them stays.
        let (new, suspicion) = match (found.local_error, found.local_port_state) {
            (Some(_), _) => (Vec::new(), m_key_suspicion(&found, &self.keys)),
            (None, None) => (Vec::new(), self.suspicion),
            (None, Some(_)) => {
                (self.unanswered.update(&found, now), m_key_suspicion(&found, &self.keys))
            }
        };
        self.tell_unanswered(&new, suspicion, now);
        let gaps = self.said.news(found.gaps.iter().cloned(), now);
        self.warn(&gaps, "more questions of the discovery were not answered");
        let state_changes = found.state_changes.clone();
        let previous = self.fabric.as_deref();
        let forget_before = now.before(self.settings.forget_after);
        let fabric =
            found.assemble(&self.names, now, previous.map(|fabric| (fabric, forget_before)));
        let took = now.since(anchor.moment);
        Self::tell_changes(&mut self.tally, &self.settings.name, previous, &fabric, took);
        self.agents.retain_present(&fabric);
        self.client.clear_redirects();
        let has_gaps = self.tally.discovery_gaps > 0 || has_unaddressed(&fabric);
        self.movement.discovered(now, took, &state_changes, has_gaps);
        self.fabric = Some(Arc::new(fabric));
        Ok(())
    }

    /// Logs warnings that are news, and how many more there are.
    fn warn(&self, news: &News, what_more: &str) {
        let fabric = &self.settings.name;
        for warning in &news.each {
            tracing::warn!(fabric, "{warning}");
        }
        if news.more > 0 {
            tracing::warn!(fabric, more = news.more, "{what_more}");
        }
    }

    /// Who does not answer is logged once a day, and what is the likely cause when that changes.
    fn tell_unanswered(&mut self, new: &[End], suspicion: Option<MKeySuspicion>, now: Moment) {
        self.tally.unanswered_ports = self.unanswered.count();
        self.tally.m_key_suspected = suspicion.is_some();
        let warnings = new.iter().map(|(node, port)| {
            format!(
                "the neighbor of node {node} port {port} has a link and answers no subnet management: its agent \
                 hangs, or an M_Key protects it"
            )
        });
        let news = self.said.news(warnings, now);
        self.warn(&news, "more neighbors answer no subnet management");
        let fabric = &self.settings.name;
        if suspicion == self.suspicion {
            return;
        }
        self.suspicion = suspicion;
        let remedy = if self.keys.is_empty() {
            "give the M_Key of the subnet manager with --fabric.m-key-file, or set m_key_protection_level 1 in \
             opensm.conf"
        } else {
            "the key of --fabric.m-key-file is not the one that its ports have: compare it with m_key in \
             opensm.conf"
        };
        match suspicion {
            None => tracing::info!(fabric, "an M_Key no longer seems to keep nodes from answering"),
            Some(MKeySuspicion::LocalPort) => tracing::error!(
                fabric,
                "our own port does not answer subnet management from its own host: M_Key protection \
                 (level 2 or 3) is the likely cause; {remedy}; if counters are not answered either, look \
                 at dmesg for an error of the adapter"
            ),
            Some(MKeySuspicion::FirstHop) => tracing::error!(
                fabric,
                "no node beyond our own port answers subnet management, though its link is active: M_Key \
                 protection (level 2 or 3) is the likely cause; {remedy}"
            ),
            Some(MKeySuspicion::ProtectBits(level)) => tracing::error!(
                fabric,
                level,
                unanswered = self.tally.unanswered_ports,
                "our own port has M_Key protection level {level}, and neighbors answer no subnet management: \
                 an M_Key is the likely cause; {remedy}"
            ),
        }
    }

    fn tell_changes(
        tally: &mut Tally,
        name: &str,
        before: Option<&Fabric>,
        after: &Fabric,
        took: Duration,
    ) {
        let known = before.map_or(&[][..], |before| &before.duplicates);
        for duplicate in after
            .duplicates
            .iter()
            .filter(|duplicate| known.iter().all(|it| it.guid != duplicate.guid))
        {
            let place = duplicate.location(after);
            tracing::warn!(fabric = name, guid = %duplicate.guid, "a second node with this GUID {place} is left out");
        }
        let present = after.nodes.iter().filter(|node| node.present());
        let switches = present.clone().filter(|node| node.is_switch()).count();
        let (nodes, links) = (present.count(), after.links().count());
        let Some(before) = before else {
            tracing::info!(fabric = name, nodes, switches, links, ?took, "discovered");
            return;
        };
        tracing::debug!(fabric = name, nodes, switches, links, ?took, "discovered");
        for change in change::diff(before, after) {
            tracing::info!(fabric = name, kind = change::CHANGE_KINDS[change.kind()], "{change}");
            tally.changes[change.kind()] += 1;
        }
    }

    fn sweep(&mut self, wire: &mut impl MadTransport) -> Result<SweepResult, RunError> {
        let fabric = self.fabric.clone().unwrap_or_default();
        let mut sweep = Sweep::new(&fabric, &mut self.agents, wire.anchor(), self.states_by_lid);
        {
            let mut wire = CapturingTransport::new(wire, self.capture.as_mut());
            query::run(&mut sweep, &mut self.client, &mut wire, &self.stop)?;
        }
        let swept = sweep.finish();
        if swept.states_unavailable {
            let warning = "no switch answers subnet management by LID: port states come from discoveries alone";
            if self.said.is_news(warning, wire.now()) {
                let discovery_interval = self.settings.discovery_interval;
                tracing::warn!(fabric = self.settings.name, ?discovery_interval, "{warning}");
            }
            self.states_by_lid = false;
        }
        let read = swept.snapshot.readings.iter().flatten().count();
        self.tally.sweeps += 1;
        self.tally.failed_ports = swept.failed_ports;
        self.tell_partition(swept.adapters_silent, wire.has_p_key());
        self.tally.set_success(Collector::Perfmgt, read > 0);
        let managers = swept.snapshot.managers.as_deref().unwrap_or_default();
        self.tally.set_success(Collector::Subnet, !managers.is_empty());
        let took = swept.snapshot.ended.since(swept.snapshot.began);
        tracing::debug!(
            fabric = self.settings.name,
            ports = read,
            failed = swept.failed_ports,
            ?took,
            "swept"
        );
        let warning = "a sweep took longer than its interval; this is logged once a day";
        if took > self.settings.interval && self.said.is_news(warning, wire.now()) {
            let interval = self.settings.interval;
            tracing::warn!(fabric = self.settings.name, ?took, ?interval, "{warning}");
        }
        Ok(swept)
    }

    /// `has_p_key`: our port has the P_Key that it is to ask with. If not, the carrier has logged it.
    fn tell_partition(&mut self, adapters_silent: bool, has_p_key: bool) {
        let fabric = &self.settings.name;
        let suspected = adapters_silent || !has_p_key;
        if suspected && has_p_key && !self.tally.partition_suspected {
            tracing::error!(
                fabric,
                "switches answer performance management, and at least 9 of 10 channel adapters do not: our port \
                 is likely a limited member of their partition, or a member of another; doctor shows its P_Keys, \
                 and --fabric.pkey chooses one"
            );
        } else if !suspected && self.tally.partition_suspected {
            tracing::info!(fabric, "channel adapters answer performance management again");
        }
        self.tally.partition_suspected = suspected;
    }

    /// Clears the counters that the sweep found nearly full, if that is wanted.
    fn clear(
        &mut self,
        wire: &mut impl MadTransport,
        swept: &mut SweepResult,
    ) -> Result<(), RunError> {
        // By LIDs that have changed it might be another port's counters.
        if !self.settings.clear_saturated || swept.lids_changed {
            return Ok(());
        }
        let mut clearing = CounterClearing::new(&swept.snapshot, &mut self.agents);
        let now = wire.now();
        let driven = {
            let mut wire = CapturingTransport::new(wire, self.capture.as_mut());
            query::run(&mut clearing, &mut self.client, &mut wire, &self.stop)
        };
        let refusals = clearing.refusals();
        let cleared = clearing.finish();
        let news = self.said.news(refusals, now);
        self.warn(&news, "the counters of more ports cannot be cleared");
        if !cleared.is_empty() {
            let (fabric, counters) = (&self.settings.name, cleared.len());
            tracing::debug!(fabric, counters, "cleared what was nearly full");
        }
        swept.snapshot.cleared = cleared;
        driven
    }

    fn refresh_names(&mut self) {
        if let Some(names) = news(&self.settings.name, &mut self.files.names) {
            self.names = names;
        }
    }

    fn refresh_m_keys(&mut self, now: Moment) {
        let new = news(&self.settings.name, &mut self.files.keys);
        if let Some(MKeyFile { keys, warnings }) = new {
            // Who refused the old key may admit the new one: all are asked at once. OpenSM rewrites
            // its file `neighbors` at each change of the topology, which is no reason to.
            if !keys.has_same_keys(&self.keys) {
                self.unanswered = UnresponsiveNeighbors::default();
            }
            self.keys = Arc::new(keys);
            let news = self.said.news(warnings, now);
            self.warn(&news, "more is wrong with the M_Key file");
        }
        self.agents.set_keys(Arc::clone(&self.keys));
    }

    fn refresh_work(&mut self) {
        if let Some(work) = news(&self.settings.name, &mut self.files.work) {
            self.judging.set_work(work);
        }
        let SiteFiles { names, keys, work } = &self.files;
        self.tally.site_files = [
            names.as_ref().map(SiteFile::read_at),
            keys.as_ref().map(SiteFile::read_at),
            work.as_ref().map(SiteFile::read_at),
        ];
    }

    /// The device is gone: nobody can be asked, so nobody is up.
    fn lost(&mut self, error: &TransportError) {
        tracing::error!(fabric = self.settings.name, %error, "waiting for the device to come back");
        for collector in Collector::ALL {
            self.tally.set_success(collector, false);
        }
        let last = self.board.borrow().fabrics[self.slot]
            .snapshot
            .as_ref()
            .map(|last| (last.anchor, last.began, last.ended));
        // The times stay those of the last sweep, so that what is served is seen to grow old.
        let blank = self.fabric.clone().zip(last).map(|(fabric, (anchor, began, ended))| {
            let silent = vec![true; fabric.nodes.len()];
            Snapshot { began, ended, silent, ..Snapshot::blank(fabric, anchor) }
        });
        self.publish(blank);
    }

    fn publish(&mut self, mut snapshot: Option<Snapshot>) {
        self.refresh_work();
        let findings = snapshot.as_mut().map(|snapshot| self.judging.judge(snapshot));
        let observation = Arc::new(Observation {
            fabric: self.settings.name.clone(),
            interval: self.settings.interval,
            snapshot,
            findings: findings.unwrap_or_default(),
            tally: self.tally.clone(),
            mads: self.client.stats().clone(),
        });
        self.board.send_modify(|board| board.fabrics[self.slot] = observation);
    }
}

#[cfg(test)]
mod tests;
