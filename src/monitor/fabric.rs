//! The monitor of a fabric: discover, sweep, evaluate, publish, wait. One thread per fabric, which is its port's
//! I/O thread.
//!
//! The wait between two sweeps is interrupted when a port of this host reports that it lost its link or has it
//! again: the event is evaluated and published at once, without a sweep.
//!
//! The thread outlives its device: when the port's device disappears, that is published, and the thread waits
//! until it can be opened again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::watch;

use super::discovery_scheduler::{DiscoveryScheduler, has_unaddressed};
use super::judge::{Judge, span};
use super::replica::{self, Replica};
use super::report::{self, LogLimiter};
use super::route_desk::{Desk, RouteAnswers, Wire};
use super::site_files::KeyFile;
use crate::config::FabricSettings;
use crate::remote::Remote;
use fabric_api::route_desk::Question;
use fabric_observation::{Collector, MonitorStats, Observation, SharedState};
use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::clear::CounterClearing;
use ib_fabric::collect::discovery::{Discovery, DiscoveryLimits, DiscoveryResult, LimitReached};
use ib_fabric::collect::registers::{self, RegisterReader};
use ib_fabric::collect::sweep::{Sweep, SweepResult};
use ib_fabric::collect::unresponsive::{MKeySuspicion, UnresponsiveNeighbors, m_key_suspicion};
use ib_fabric::routes::RouteReason;
use ib_fabric::{Fabric, NodeMap, Snapshot};
use ib_health::Assessment;
use ib_health::recorded::{RecordedErrors, RecordedFlaps};
use ib_health::totals::TotalsSeed;
use ib_mad::m_key::MKeys;
use ib_mad::moment::Anchor;
use ib_mad::port_event::PortEvent;
use ib_mad::reading::Raw;
use ib_mad::{Guid, Lid, Moment, PortKey};
use ib_umad::Heartbeat;
use ib_umad::capture::{Capture, CapturingTransport};
use ib_umad::client::MadClient;
use ib_umad::plan::{self, QueryPlan, RunError};
use ib_umad::{MadTransport, RequestError, TransportError};
use yaml_config::ConfigError;

/// The CPU time of this thread.
fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// How often a device that disappeared is looked for.
const REOPEN_INTERVAL: Duration = Duration::from_secs(2);

/// How many port events wait for the monitor. It does not take them while it sweeps or has no device, so there must
/// be a limit. An event that does not fit is dropped by the sender, which counts it: the next sweep reads the state
/// and LinkDownedCounter of each port anyway, so the loss is evaluated, only without the time that the port reported.
const MAX_EVENTS: usize = 1024;
/// How often the wait between two sweeps checks for port events.
const EVENT_CHECK: Duration = Duration::from_millis(100);
/// The least time between two publications for port events, so that a flapping link does not have the
/// exposition rendered all the time. The first event after a quiet second is published at once.
const EVENT_PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

/// How long nothing is asked behind a switch behind which a discovery did not end.
const CUT: Duration = Duration::from_secs(3600);

/// The monitor of one fabric; see the module.
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
pub struct Monitor {
    settings: FabricSettings,
    judge: Judge,
    stop: Arc<AtomicBool>,
    client: MadClient,
    /// For registers: one request at a time to each device, with a long timeout.
    register_client: MadClient,
    registers: Option<RegisterReader>,
    capture: Option<Capture>,
    keys: Arc<MKeys>,
    log_limiter: LogLimiter,
    agents: AgentCache,
    fabric: Option<Arc<Fabric>>,
    replica: Option<Replica>,
    /// Where the durations of its sweeps are counted.
    pub sweep_durations: Histogram,
    /// Where it takes the events of this host's ports.
    pub event_sender: SyncSender<PortEvent>,
    events: Receiver<PortEvent>,
    /// What it answers about routes.
    routes: RouteAnswers,
    /// Events changed links, and the change is not published yet.
    has_changes: bool,
    /// Before this moment no change is published for events.
    publish_after: Moment,
    stats: MonitorStats,
    scheduler: DiscoveryScheduler,
    unanswered: UnresponsiveNeighbors,
    /// What the next discovery may take.
    limits: DiscoveryLimits,
    /// The latest discovery had too many requests.
    had_many: bool,
    /// Switches behind which a discovery did not end, and when.
    cut: HashMap<Guid, Moment>,
    suspicion: Option<MKeySuspicion>,
    /// Switches respond to subnet management in sweeps, as far as is known.
    reads_states: bool,
    /// The LID of our port when the latest discovery began, if the transport knows it.
    local_lid: Option<Lid>,
    /// LIDs have changed since then.
    lids_changed: bool,
}

/// The device, for what is read of forwarding tables.
struct MonitorWire<'a, T> {
    client: &'a mut MadClient,
    transport: &'a mut T,
    capture: Option<&'a mut Capture>,
    stop: &'a AtomicBool,
}

impl<T: MadTransport> Wire for MonitorWire<'_, T> {
    fn now(&self) -> Moment {
        self.transport.now()
    }

    fn anchor(&self) -> Anchor {
        self.transport.anchor()
    }

    fn run(&mut self, plan: &mut impl QueryPlan) -> Result<(), RunError> {
        run(plan, self.client, self.transport, self.capture.as_deref_mut(), self.stop)
    }
}

/// Runs a plan. The capture, if there is one, is a complete file after each run.
fn run(
    plan: &mut impl QueryPlan,
    client: &mut MadClient,
    transport: &mut impl MadTransport,
    capture: Option<&mut Capture>,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    plan::run(plan, client, &mut CapturingTransport::new(transport, capture), stop)
}

impl Monitor {
    /// The monitor of a fabric, which publishes to a place of the shared state. Fails when a site file is
    /// invalid; later invalid versions are logged, and the earlier content stays in use.
    pub fn new(
        settings: FabricSettings,
        capture: Option<Capture>,
        shared: Arc<watch::Sender<SharedState>>,
        fabric_index: usize,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ConfigError> {
        let _in_fabric = span(&settings.name).entered();
        let judge = Judge::new(&settings, shared, fabric_index)?;
        let (event_sender, events) = mpsc::sync_channel(MAX_EVENTS);
        let client = MadClient::new(settings.pace);
        let register_client = client.beside(registers::send_config(settings.pace));
        let routes = RouteAnswers::new(settings.forwarding_smps_per_minute);
        let mut monitor = Monitor {
            client,
            register_client,
            registers: settings.registers.map(RegisterReader::new),
            judge,
            keys: Arc::default(),
            log_limiter: LogLimiter::default(),
            agents: AgentCache::new(settings.optional_counters()),
            scheduler: DiscoveryScheduler::new(&settings),
            unanswered: UnresponsiveNeighbors::default(),
            limits: DiscoveryLimits::default(),
            had_many: false,
            cut: HashMap::new(),
            suspicion: None,
            reads_states: true,
            local_lid: None,
            lids_changed: false,
            sweep_durations: Histogram::new([]),
            event_sender,
            events,
            routes,
            has_changes: false,
            publish_after: Moment::default(),
            settings,
            stop,
            capture,
            fabric: None,
            replica: None,
            stats: MonitorStats::default(),
        };
        monitor.refresh_keys(Moment::default());
        monitor.judge.refresh_maintenance(&mut monitor.stats);
        Ok(monitor)
    }

    /// Its heartbeat: several ticks per second, also while it waits or has no device.
    pub fn heartbeat(&self) -> Heartbeat {
        self.client.heartbeat.clone()
    }

    /// Where it takes questions about routes.
    pub fn question_sender(&self) -> SyncSender<Question> {
        self.routes.sender.clone()
    }

    /// Sets the totals and the errors of an earlier run, from which ports and links continue.
    pub fn restore(&mut self, seed: TotalsSeed, recorded: RecordedErrors, flaps: RecordedFlaps) {
        self.judge.restore(seed, recorded, flaps);
    }

    /// Keeps the totals equal to those of another exporter that sweeps the same fabric.
    pub fn follow(&mut self, remote: Remote) {
        let (name, interval) = (self.settings.name.clone(), self.settings.interval);
        self.replica = Some(Replica::new(remote, name, interval));
    }

    /// Starts to request the totals of the other exporter, and waits for the first, but not for long.
    fn start_replica(&mut self) {
        let Some(replica) = &mut self.replica else { return };
        replica.start();
        let began = Instant::now();
        while self.replica.as_ref().is_some_and(|it| !it.was_tried())
            && began.elapsed() < replica::START_TIMEOUT
            && !self.stop.load(Ordering::Relaxed)
        {
            self.pause(Duration::from_millis(100));
        }
    }

    /// Hands the latest totals of the other exporter to the evaluator. Before a sweep, so that all values of the sweep
    /// are later than those of the other exporter.
    fn refresh_replica(&mut self, now: Moment) {
        let latest = self.replica.as_ref().and_then(|replica| replica.take(now));
        if let Some((totals, received)) = latest {
            self.judge.evaluator.replica.update(totals);
            let since = received.duration_since(SystemTime::UNIX_EPOCH);
            self.stats.totals_received = since.ok().map(|since| since.as_secs_f64());
        }
    }

    /// Monitors until stopped, starting with an open transport; `open` opens another one when that fails.
    pub fn run<W: MadTransport, E: std::fmt::Display>(
        mut self,
        first: W,
        mut open: impl FnMut() -> Result<W, E>,
    ) {
        let _in_fabric = span(&self.settings.name).entered();
        let mut current = Some(first);
        let mut problem = None;
        self.start_replica();
        while !self.stop.load(Ordering::Relaxed) {
            if let Some(transport) = &mut current {
                match self.monitor(transport) {
                    Err(RunError::Stopped) => break,
                    Err(RunError::Transport(error)) => self.on_device_lost(&error),
                }
                // Closed before it is opened again: a device is removed only when no process holds it open.
                drop(current.take());
            } else {
                self.pause(REOPEN_INTERVAL);
                self.routes.refuse_all(&self.settings.name);
                match open() {
                    Ok(transport) => {
                        tracing::info!("device reopened");
                        (current, problem) = (Some(transport), None);
                    }
                    Err(error) => {
                        // Each 2 s, but said once: the driver may be back, and the permission lost.
                        let error = error.to_string();
                        if problem.as_ref() != Some(&error) {
                            tracing::warn!(%error, "device cannot be opened again yet");
                            problem = Some(error);
                        }
                    }
                }
            }
        }
        tracing::debug!("monitor stopped");
    }

    fn refresh_keys(&mut self, now: Moment) {
        if let Some(KeyFile { keys, warnings }) = self.judge.files.keys() {
            // A node that refused the old key may accept the new one: all are queried at once. OpenSM rewrites
            // its file `neighbors` at each change of the topology, which is no reason to.
            if !keys.has_same_keys(&self.keys) {
                self.unanswered = UnresponsiveNeighbors::default();
            }
            self.keys = Arc::new(keys);
            self.log_limiter.warn(warnings, now, "further M_Key file warnings not logged");
        }
        self.agents.keys = Arc::clone(&self.keys);
        if let Some(KeyFile { keys, warnings }) = self.judge.files.vs_keys() {
            if let Some(registers) = &mut self.registers {
                registers.set_keys(keys);
            }
            self.log_limiter.warn(warnings, now, "further VSKey file warnings not logged");
        }
    }

    fn pause(&self, time: Duration) {
        let step = Duration::from_millis(100);
        let steps = time.as_millis().div_ceil(step.as_millis());
        for _ in 0..steps {
            self.client.heartbeat.tick();
            if !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(step);
            }
        }
    }

    /// Alternates discoveries and sweeps, until it is stopped or the transport fails.
    fn monitor(&mut self, transport: &mut impl MadTransport) -> Result<Infallible, RunError> {
        loop {
            self.rounds(transport, self.settings.interval, |_, _| true)?;
        }
    }

    /// The same with another interval, before it [runs](Self::run): while a function of each observation and the time
    /// says so.
    pub fn monitor_while(
        &mut self,
        transport: &mut impl MadTransport,
        interval: Duration,
        goes_on: impl FnMut(Arc<Observation>, Moment) -> bool,
    ) -> Result<(), RunError> {
        let _in_fabric = span(&self.settings.name).entered();
        self.rounds(transport, interval, goes_on)
    }

    fn rounds(
        &mut self,
        transport: &mut impl MadTransport,
        interval: Duration,
        mut goes_on: impl FnMut(Arc<Observation>, Moment) -> bool,
    ) -> Result<(), RunError> {
        self.scheduler.reset();
        let mut due = transport.now();
        loop {
            self.round(transport, due)?;
            if !goes_on(self.latest(), transport.now()) {
                return Ok(());
            }
            // A round that took longer than the interval skips the sweeps that it missed.
            let now = transport.now();
            while due <= now {
                due = due + interval;
            }
            self.routes.on_sweep(&self.latest());
            let until = RouteAnswers::least_time(now, due, self.overrun());
            self.answer(transport, until, |routes, desk, wire| routes.answer_next(desk, wire))?;
            self.read_registers(transport, due)?;
            self.wait(transport, due)?;
        }
    }

    /// How long requests may take that are sent at the end of the time for a question: all tries of one that nobody
    /// answers, but no large part of a short interval.
    fn overrun(&self) -> Duration {
        let tries = u32::from(self.settings.pace.retries) + 1;
        (self.settings.pace.timeout * tries).min(self.settings.interval / 4)
    }

    /// Lets the answers about routes do something, until a moment. Returns whether there was something to do.
    fn answer<T: MadTransport>(
        &mut self,
        transport: &mut T,
        until: Moment,
        work: impl FnOnce(
            &mut RouteAnswers,
            &Desk<'_>,
            &mut MonitorWire<'_, T>,
        ) -> Result<bool, RunError>,
    ) -> Result<bool, RunError> {
        let (Some(fabric), observation) = (self.fabric.clone(), self.latest()) else {
            return Ok(false);
        };
        let desk = Desk { fabric: &fabric, observation: &observation, keys: &self.keys, until };
        let mut wire = MonitorWire {
            client: &mut self.client,
            transport,
            capture: self.capture.as_mut(),
            stop: &self.stop,
        };
        work(&mut self.routes, &desk, &mut wire)
    }

    /// Waits until the next sweep is due, and publishes what port events change meanwhile. Questions about routes are
    /// answered, and the hosts that cross bad links are read.
    fn wait(&mut self, transport: &mut impl MadTransport, due: Moment) -> Result<(), RunError> {
        loop {
            let now = transport.now();
            if now >= due {
                return Ok(());
            }
            self.handle_events();
            if self.has_changes && now >= self.publish_after {
                self.publish_changes(now);
            }
            let until = RouteAnswers::time_until(now, due, self.overrun());
            if let Some(until) = until
                && self.answer(transport, until, |routes, desk, wire| {
                    Ok(routes.answer_next(desk, wire)? || routes.read_next(desk, wire)?)
                })?
            {
                continue;
            }
            plan::drain_until(due.min(now + EVENT_CHECK), &mut self.client, transport, &self.stop)?;
        }
    }

    fn handle_events(&mut self) {
        for event in self.events.try_iter() {
            self.has_changes |= self.judge.evaluator.handle_event(&event);
        }
    }

    fn round(&mut self, transport: &mut impl MadTransport, due: Moment) -> Result<(), RunError> {
        if self.scheduler.is_due(due) {
            self.discover(transport)?;
        }
        self.discover_changes(transport)?;
        self.refresh_replica(transport.now());
        let confirms_each = self.scheduler.has_unsteady_lids(transport.now());
        let mut swept = self.sweep(transport, confirms_each)?;
        if (swept.lids_changed || swept.sm_lid_changed) && !confirms_each {
            let what = if swept.lids_changed { "LIDs" } else { "the LID of the subnet manager" };
            tracing::info!("{what} changed: repeating the discovery and the sweep");
            self.discover(transport)?;
            // They may change again meanwhile: only what this sweep confirms is published. A new master has not changed
            // them yet, and is found by the discovery.
            swept = self.sweep(transport, swept.lids_changed)?;
            // If they have, sweeps must not trigger discoveries all the time.
            if swept.lids_changed || swept.sm_lid_changed {
                self.scheduler.on_lids_changed_again(transport.now());
            }
        }
        self.count(&swept, transport);
        self.scheduler.on_sweep(&swept);
        if let Some(new) = self.stats.mastership.update(&swept.snapshot) {
            report::log_new_master(new, &swept.snapshot.fabric);
        }
        let cleared = self.clear(transport, &mut swept);
        // Cleared counters are published even if the transport failed: nothing else records them.
        self.publish(Some(swept.snapshot));
        cleared?;
        // At once, so that the next sweep queries the right ports by their current LIDs.
        self.discover_changes(transport)
    }

    fn discover_changes(&mut self, transport: &mut impl MadTransport) -> Result<(), RunError> {
        if self.scheduler.is_change_due(transport.now()) {
            self.discover(transport)?;
            self.scheduler.back_off(transport.now());
        } else if self.scheduler.is_return_due(transport.now()) {
            self.discover(transport)?;
        }
        Ok(())
    }

    fn discover(&mut self, transport: &mut impl MadTransport) -> Result<(), RunError> {
        self.scheduler.on_discovery_start();
        self.reads_states = true;
        self.judge.refresh_names();
        self.refresh_keys(transport.now());
        transport.refresh();
        let anchor = transport.anchor();
        let local_lid = transport.local_port().lid;
        let tries = self.settings.pace.retries.saturating_add(1);
        let skipped = self.unanswered.select_skipped(anchor.moment, tries);
        self.cut.retain(|_, since| anchor.moment.since(*since) < CUT);
        let hardware = self.registers.as_ref().map(|registers| &*registers.hardware);
        let mut discovery =
            Discovery::new(Arc::clone(&self.keys), transport.local_port().guid, skipped)
                .from_planes(transport.local_port().planes)
                .limited(self.limits, self.cut.keys().copied().collect())
                .with_kind(self.fabric.as_deref())
                .with_front_panels(self.fabric.as_deref(), hardware);
        run(&mut discovery, &mut self.client, transport, self.capture.as_mut(), &self.stop)?;
        let found = discovery.finish();
        let now = transport.now();
        self.stats.discoveries += 1;
        self.stats.discovery_gaps = found.failures;
        self.stats.discovery = Some((anchor, now));
        // Without any link our port has none, or does not respond to its own host.
        self.stats.set_success(Collector::Discovery, !found.fabric.links.is_empty());
        if found.local_error == Some(RequestError::Unsent) && !transport.local_port().is_present {
            // Kernels before 5.12 keep the descriptor of a removed device and refuse each send on it: it must
            // be opened again. The driver of a device that is there may refuse SMPs for its own port only.
            let device = self.settings.name.clone();
            let problem = "sending failed: the device was removed".to_owned();
            return Err(TransportError { device, problem }.into());
        }
        // Without our own PortInfo no neighbor of ours was queried: their known state stays.
        let (new, suspicion) = match (found.local_error, found.local_port_info) {
            (Some(_), _) => (Vec::new(), m_key_suspicion(&found, &self.keys)),
            (None, None) => (Vec::new(), self.suspicion),
            (None, Some(_)) => {
                (self.unanswered.update(&found, now), m_key_suspicion(&found, &self.keys))
            }
        };
        self.report_unresponsive(&new, suspicion, now);
        self.log_limiter.warn(found.gaps.clone(), now, "further discovery gaps not logged");
        let took = now.since(anchor.moment);
        self.limit_next_discovery(&found, took, now);
        let state_changes = found.state_changes.clone();
        let previous = self.fabric.as_deref();
        let forget_before = now.before(self.settings.forget_after);
        let known = previous.map(|fabric| (fabric, forget_before));
        let mut fabric = Fabric::assemble(found.fabric, &self.judge.naming, now, known);
        // Each of them is a gap. What is known of a port that was not reached stays.
        let ends = found.unanswered.iter().chain(&found.skipped);
        let known =
            ends.filter(|end| fabric.find(**end).is_some_and(|it| fabric.port(it).peer.is_some()));
        self.stats.known_gaps = known.count();
        // A node that this discovery did not reach must not be asked by a LID that may be another's now.
        let has_same_lids = |previous: &Fabric| previous.has_same_lids(&fabric);
        if self.lids_changed || self.local_lid != local_lid || !previous.is_none_or(has_same_lids) {
            fabric.forget_unreached_lids();
        }
        report::log_changes(&mut self.stats, previous, &fabric, took);
        self.agents.retain_present(&fabric);
        for client in [&mut self.client, &mut self.register_client] {
            client.clear_redirects();
            client.set_lmc(fabric.largest_lmc());
        }
        let has_gaps = self.stats.discovery_gaps > 0 || has_unaddressed(&fabric);
        self.scheduler.on_discovery_end(now, took, &state_changes, has_gaps);
        self.routes.on_discovery(&fabric, now);
        (self.fabric, self.local_lid, self.lids_changed) =
            (Some(Arc::new(fabric)), local_lid, false);
        Ok(())
    }

    /// Sets the limits of the next discovery, and cuts off what this one did not end behind.
    fn limit_next_discovery(&mut self, found: &DiscoveryResult, took: Duration, now: Moment) {
        let DiscoveryResult { limit_reached: reached, steps, culprit, .. } = *found;
        self.limits = self.limits.next(reached, steps, took);
        let has_many = reached == Some(LimitReached::Steps);
        // A fabric that was extended has too many once: the next limit is four times as high.
        let is_endless = reached == Some(LimitReached::Time) || has_many && self.had_many;
        self.had_many = has_many;
        self.cut.extend(culprit.filter(|_| is_endless).map(|guid| (guid, now)));
    }

    fn report_unresponsive(
        &mut self,
        new: &[PortKey],
        suspicion: Option<MKeySuspicion>,
        now: Moment,
    ) {
        self.stats.unanswered_ports = self.unanswered.count();
        self.stats.m_key_suspected = suspicion.is_some();
        let warnings = report::unresponsive_neighbors(new);
        self.log_limiter.warn(warnings, now, "further unresponsive neighbors not logged");
        if suspicion != self.suspicion {
            self.suspicion = suspicion;
            let has_keys = !self.keys.is_empty();
            report::log_m_key_suspicion(suspicion, has_keys, self.stats.unanswered_ports);
        }
    }

    fn sweep(
        &mut self,
        transport: &mut impl MadTransport,
        confirms_each: bool,
    ) -> Result<SweepResult, RunError> {
        let cpu = thread_cpu();
        transport.refresh();
        let fabric = self.fabric.clone().unwrap_or_default();
        let local_lid = self.local_lid;
        let mut sweep =
            Sweep::new(&fabric, &mut self.agents, transport.anchor(), self.reads_states);
        if confirms_each {
            sweep = sweep.confirming_each();
        }
        if self.settings.pace.max_mads_per_second.is_some() {
            let (settings, mads, now) = (&self.settings, sweep.max_mads(), transport.now());
            report::warn_of_limit(&mut self.log_limiter, settings, mads, now);
        }
        // Before it, too: LIDs that change twice are the old ones at its end, after reads by the others.
        if has_other_lid(transport, local_lid) {
            sweep.on_lids_changed();
        }
        // Not at shorter intervals: a few lost MADs, of three tries each, would use up the time of a destination.
        let time_limit = Some(self.settings.interval / 3);
        self.client.time_limit =
            time_limit.filter(|limit| *limit >= 10 * self.settings.pace.timeout);
        let result =
            run(&mut sweep, &mut self.client, transport, self.capture.as_mut(), &self.stop);
        self.client.time_limit = None;
        result?;
        if has_other_lid(transport, local_lid) {
            sweep.on_lids_changed();
        }
        let mut swept = sweep.finish();
        self.lids_changed |= swept.lids_changed;
        if let Some(registers) = &mut self.registers {
            registers.confirm(&fabric, swept.lids_changed);
            swept.snapshot.hardware = Arc::clone(&registers.hardware);
        }
        self.stats.sweeps += 1;
        // Without evaluation and rendering, which the CPU time of the process has, too.
        let cpu = thread_cpu().saturating_sub(cpu);
        tracing::debug!(?cpu, "all responses of a sweep handled");
        Ok(swept)
    }

    /// Counts and logs what a sweep says that is published.
    fn count(&mut self, swept: &SweepResult, transport: &impl MadTransport) {
        let now = transport.now();
        if swept.states_unavailable {
            let is_directed = swept.snapshot.fabric.routes.is_directed();
            let smps = if is_directed { "directed-route" } else { "LID-routed" };
            let warning = format!(
                "no switch responds to {smps} SMPs: port states are read only by discoveries"
            );
            if self.log_limiter.is_new(&warning, now) {
                let discovery_interval = self.settings.discovery_interval;
                tracing::warn!(?discovery_interval, "{warning}");
            }
            self.reads_states = false;
        }
        self.stats.route_reason = if self.reads_states {
            swept.snapshot.fabric.routes.reason()
        } else {
            RouteReason::NoResponse
        };
        let unconfirmed = swept.unconfirmed_switches;
        if unconfirmed > std::mem::replace(&mut self.stats.unconfirmed_switches, unconfirmed) {
            tracing::warn!(
                switches = unconfirmed,
                "switches do not respond by directed route: the states of their ports are unknown"
            );
        }
        let read = swept.snapshot.readings.iter().flatten().count();
        self.stats.failed_ports = swept.failed_ports;
        // Without the P_Key of requests the transport has logged it.
        let has_p_key = transport.local_port().has_p_key;
        let is_suspected = swept.adapters_silent || !has_p_key;
        let was_suspected = std::mem::replace(&mut self.stats.partition_suspected, is_suspected);
        if is_suspected != was_suspected && (has_p_key || was_suspected) {
            report::log_partition_suspicion(is_suspected);
        }
        self.stats.set_success(Collector::Perfmgt, read > 0);
        let managers = swept.snapshot.managers.as_deref().unwrap_or_default();
        self.stats.set_success(Collector::Subnet, !managers.is_empty());
        let took = swept.snapshot.ended.since(swept.snapshot.began);
        self.sweep_durations.observe(took.as_secs_f64());
        tracing::debug!(ports = read, failed = swept.failed_ports, ?took, "sweep finished");
        let warning = "sweep took longer than its interval (logged once a day)";
        if took > self.settings.interval && self.log_limiter.is_new(warning, now) {
            let interval = self.settings.interval;
            tracing::warn!(?took, ?interval, "{warning}");
        }
    }

    /// Reads the registers that are due, until the next sweep is. They are published with it.
    fn read_registers(
        &mut self,
        transport: &mut impl MadTransport,
        until: Moment,
    ) -> Result<(), RunError> {
        if !transport.local_port().has_vendor_class {
            // The transport has logged it.
            return Ok(());
        }
        let latest = self.latest();
        let Some((registers, snapshot)) = self.registers.as_mut().zip(latest.snapshot.as_ref())
        else {
            return Ok(());
        };
        let mut reading = registers.begin(snapshot, transport.now(), until);
        let (client, capture) = (&mut self.register_client, self.capture.as_mut());
        let result = run(&mut reading, client, transport, capture, &self.stop);
        let is_suspected = registers.is_vs_key_suspected();
        if std::mem::replace(&mut self.stats.vs_key_suspected, is_suspected) != is_suspected {
            report::log_vs_key_suspicion(is_suspected, registers.has_keys());
        }
        result
    }

    /// Clears the counters that the sweep found nearly full, if that is enabled.
    fn clear(
        &mut self,
        transport: &mut impl MadTransport,
        swept: &mut SweepResult,
    ) -> Result<(), RunError> {
        // By LIDs that have changed it might be another port's counters.
        if !self.settings.clear_saturated || swept.lids_changed {
            return Ok(());
        }
        let mut clearing = CounterClearing::new(&swept.snapshot, &mut self.agents);
        let now = transport.now();
        let result =
            run(&mut clearing, &mut self.client, transport, self.capture.as_mut(), &self.stop);
        let (cleared, refusals) = clearing.finish();
        self.log_limiter.warn(refusals, now, "further failures to clear counters not logged");
        if !cleared.is_empty() {
            tracing::debug!(counters = cleared.len(), "counters cleared");
        }
        swept.snapshot.cleared = cleared;
        result
    }

    /// The device is lost: no node can be queried, so none is up.
    fn on_device_lost(&mut self, error: &TransportError) {
        tracing::error!(%error, "device lost: trying to reopen it every 2 s");
        for collector in Collector::ALL {
            self.stats.set_success(collector, false);
        }
        let last = self.latest().snapshot.clone();
        // The times stay those of the last sweep, so that the data is visibly stale.
        let blank = self.fabric.clone().zip(last).map(|(fabric, last)| Snapshot {
            began: last.began,
            ended: last.ended,
            silent: NodeMap::filled(fabric.nodes.len(), true),
            ..Snapshot::blank(fabric, last.anchor)
        });
        self.publish(blank);
    }

    /// Evaluates a sweep, with the events until now, and publishes it.
    fn publish(&mut self, snapshot: Option<Snapshot<Raw>>) {
        self.judge.refresh_maintenance(&mut self.stats);
        self.handle_events();
        self.has_changes = false;
        let evaluated = snapshot.map(|snapshot| self.judge.evaluator.evaluate(snapshot));
        let (snapshot, assessment) = evaluated.unzip();
        self.send(snapshot.map(Arc::new), assessment.unwrap_or_default());
    }

    /// Publishes what port events have changed since the latest sweep.
    fn publish_changes(&mut self, now: Moment) {
        (self.has_changes, self.publish_after) = (false, now + EVENT_PUBLISH_INTERVAL);
        let latest = self.latest();
        let Some(snapshot) = &latest.snapshot else { return };
        let mut assessment = latest.assessment.clone();
        self.judge.evaluator.reassess(snapshot, &mut assessment, now);
        self.send(Some(Arc::clone(snapshot)), assessment);
    }

    fn latest(&self) -> Arc<Observation> {
        self.judge.latest()
    }

    fn send(&self, snapshot: Option<Arc<Snapshot>>, assessment: Assessment) {
        self.judge.publish(Observation {
            fabric: self.settings.name.clone(),
            interval: self.settings.interval,
            snapshot,
            assessment,
            stats: self.stats.clone(),
            mads: self.client.stats().clone().with(self.register_client.stats()),
            crossing: Arc::clone(&self.routes.crossing),
            ..Observation::default()
        });
    }
}

/// Whether the LID of the local port is not that of the discovery: the others may have changed, too. It is known also
/// where an M_Key keeps all nodes from confirming theirs.
fn has_other_lid(transport: &impl MadTransport, discovered: Option<Lid>) -> bool {
    let now = transport.local_port().lid;
    now.is_some() && discovered.is_some_and(|before| now != Some(before))
}

#[cfg(test)]
mod tests;
