//! The exporter's own monitor on the simulated fabric, in this process and in virtual time: it runs until the
//! moment that a test sets, and waits there.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use fabric_exporter::config::FabricSettings;
use fabric_exporter::config::Settings;
use fabric_exporter::config::options::{FabricOptions, Options};
use fabric_exporter::metrics::selection::Selection;
use fabric_exporter::metrics::{Format, OwnMetrics, RenderedMetrics};
use fabric_exporter::monitor::Monitor;
use fabric_observation::{Observation, SharedState};
use ib_mad::Moment;
use ib_mad::method;
use ib_mad::moment::Anchor;
use ib_sim::net::PortId;
use ib_sim::scenario::{FabricChange, Overrides, ResolvedScenario, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SharedSimulation, SimClock, SimTransport, lock, share};
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};
use tokio::sync::watch;

use super::Metrics;

/// Where the monitor waits for the test.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    until: Moment,
    reached: bool,
}

impl Gate {
    fn until(&self) -> Moment {
        self.state.lock().unwrap().until
    }

    /// Called by the monitor: waits until it may continue.
    fn wait(&self) {
        let mut state = self.state.lock().unwrap();
        let at = state.until;
        state.reached = true;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| state.until == at).unwrap());
    }

    /// Called by the test: lets the monitor continue to a moment.
    fn raise(&self, until: Moment) {
        // A test that failed with the lock held still has to stop the monitor.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A monitor that waits at this moment stays there.
        if state.until != until {
            *state = GateState { until, reached: false };
            self.changed.notify_all();
        }
    }

    /// Called by the test: waits until the monitor is there.
    fn wait_reached(&self) {
        let state = self.state.lock().unwrap();
        // Virtual time has no limit of its own; no test needs half a minute of real time. A bench with 162,000 ports has
        // needed more than one on a busy machine.
        let limit = Duration::from_secs(300);
        let (state, _) =
            self.changed.wait_timeout_while(state, limit, |state| !state.reached).unwrap();
        assert!(state.reached, "the monitor did not reach {:?}", state.until);
    }
}

/// A transport whose time stops at a gate.
struct Gated {
    transport: SimTransport,
    gate: Arc<Gate>,
    /// The number of sent MADs that were not Gets.
    sets: Arc<AtomicUsize>,
}

impl MadTransport for Gated {
    fn now(&self) -> Moment {
        self.transport.now()
    }

    fn anchor(&self) -> Anchor {
        self.transport.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.transport.local_port()
    }

    fn refresh(&mut self) {
        self.transport.refresh();
    }

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        if parcel.mad.method() != method::GET {
            self.sets.fetch_add(1, Ordering::Relaxed);
        }
        self.transport.send(parcel)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        let gate = self.gate.until();
        let received = self.transport.receive(until.min(gate))?;
        if received.is_none() && until > gate && self.transport.now() >= gate {
            self.gate.wait();
        }
        Ok(received)
    }
}

/// A running monitor over a simulated fabric.
pub struct Simulated {
    world: SharedSimulation,
    states: watch::Receiver<SharedState>,
    gate: Arc<Gate>,
    sets: Arc<AtomicUsize>,
    running: Option<MonitorThread>,
    story: ResolvedScenario,
    began: SystemTime,
    settings: FabricSettings,
}

/// The thread of a monitor, and the flag that ends it.
struct MonitorThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The wall time when virtual time begins.
pub const BEGAN: Duration = Duration::from_secs(1_700_000_000);

impl Simulated {
    /// A scenario of the library in tests/scenarios, swept every 15 s with details.
    pub fn library(name: &str) -> Self {
        let path = crate::paths::root().join("tests/scenarios").join(format!("{name}.yml"));
        Self::of(&Scenario::read(&path).unwrap_or_else(|error| panic!("{error}")))
    }

    /// A scenario written in a test.
    pub fn text(yaml: &str) -> Self {
        Self::of(&Scenario::parse("test", yaml).unwrap_or_else(|error| panic!("{error}")))
    }

    /// A parsed scenario.
    pub fn of(scenario: &Scenario) -> Self {
        Self::new(scenario.resolve(&Overrides::default()).unwrap_or_else(|error| panic!("{error}")))
    }

    /// A scenario, monitored as by `serve` with these options.
    pub fn new(story: ResolvedScenario) -> Self {
        Self::with(story, FabricOptions { details: Some(true), ..FabricOptions::default() })
    }

    /// A scenario, monitored with these settings.
    pub fn with(story: ResolvedScenario, fabric: FabricOptions) -> Self {
        Self::set(story, Options { fabric, ..Options::default() })
    }

    /// A scenario written in a test, in which virtual time begins at this time of day.
    pub fn text_at(yaml: &str, began: SystemTime) -> Self {
        let scenario = Scenario::parse("test", yaml).unwrap_or_else(|error| panic!("{error}"));
        let story =
            scenario.resolve(&Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        let fabric = FabricOptions { details: Some(true), ..FabricOptions::default() };
        Self::begun(story, Options { fabric, ..Options::default() }, began)
    }

    /// A scenario, monitored with all of these settings.
    pub fn set(story: ResolvedScenario, options: Options) -> Self {
        Self::begun(story, options, SystemTime::UNIX_EPOCH + BEGAN)
    }

    /// The same, in which virtual time begins at this time of day.
    pub fn begun(story: ResolvedScenario, options: Options, began: SystemTime) -> Self {
        let settings = Settings::load(options, None).unwrap().fabrics.remove(0);
        let world = share(Simulation::new(story.clone()));
        let (gate, sets) = (Arc::default(), Arc::default());
        let (running, states) =
            MonitorThread::start(&world, &story, &settings, began, &gate, &sets, |_| ());
        Simulated { world, states, gate, sets, running: Some(running), story, began, settings }
    }

    /// Ends the monitor and starts another one, as a restart of the exporter does, while the fabric goes on.
    pub fn restart(&mut self, prepare: impl FnOnce(&mut Monitor)) {
        let at = self.gate.until();
        self.end();
        self.gate = Arc::default();
        let Simulated { world, gate, sets, story, began, settings, .. } = self;
        let (running, states) =
            MonitorThread::start(world, story, settings, *began, gate, sets, prepare);
        (self.running, self.states) = (Some(running), states);
        self.gate.raise(at);
        self.gate.wait_reached();
    }

    fn end(&mut self) {
        let Some(MonitorThread { stop, thread }) = self.running.take() else { return };
        stop.store(true, Ordering::Relaxed);
        self.gate.raise(Moment::NEVER);
        let ended = thread.join();
        assert!(ended.is_ok() || std::thread::panicking(), "the monitor panicked");
    }

    /// Advances time to this long after the beginning.
    pub fn run_to(&self, at: Duration) {
        self.gate.raise(Moment::default() + at);
        self.gate.wait_reached();
    }

    /// Advances time by this much.
    pub fn run_for(&self, rest: Duration) {
        let until = self.gate.until() + rest;
        self.gate.raise(until);
        self.gate.wait_reached();
    }

    /// The virtual time that has passed.
    pub fn passed(&self) -> Duration {
        self.gate.until().since(Moment::default())
    }

    /// The latest published observation.
    pub fn observation(&self) -> Arc<Observation> {
        Arc::clone(&self.states.borrow().fabrics[0])
    }

    /// The number of sent MADs that set something.
    pub fn sets(&self) -> usize {
        self.sets.load(Ordering::Relaxed)
    }

    /// The same as a scrape has it.
    pub fn metrics(&self) -> Metrics {
        Metrics::parse(&self.scrape())
    }

    /// The response to a scrape at the present virtual time.
    pub fn scrape(&self) -> String {
        self.scrape_at(self.began + self.passed())
    }

    /// The response to a scrape at a time of day, independent of the virtual time.
    pub fn scrape_at(&self, now: SystemTime) -> String {
        self.scrape_of(&Selection::default(), now)
    }

    /// The same for a scrape that selects.
    pub fn scrape_of(&self, selection: &Selection, now: SystemTime) -> String {
        let metrics = RenderedMetrics::first(self.states.borrow().clone());
        let own = OwnMetrics::new(Path::new("/proc"));
        metrics.document_at(now, selection, Format::Text, &own).to_text().unwrap()
    }

    /// The simulated fabric as it is now, while its time stops.
    pub fn world(&self) -> MutexGuard<'_, Simulation> {
        let mut world = lock(&self.world);
        world.advance(self.gate.until());
        world
    }

    /// Applies an event now.
    pub fn act(&self, change: FabricChange) {
        lock(&self.world).apply(self.gate.until(), change);
    }

    /// The scenario as it was built.
    pub fn story(&self) -> &ResolvedScenario {
        &self.story
    }

    /// A port by its label: `leaf-0-1[7]`.
    pub fn port(&self, label: &str) -> PortId {
        let net = &self.story.net;
        net.port_ids()
            .find(|&port| net.label(port) == label)
            .unwrap_or_else(|| panic!("no port {label}"))
    }
}

impl MonitorThread {
    fn start(
        world: &SharedSimulation,
        story: &ResolvedScenario,
        settings: &FabricSettings,
        began: SystemTime,
        gate: &Arc<Gate>,
        sets: &Arc<AtomicUsize>,
        prepare: impl FnOnce(&mut Monitor),
    ) -> (Self, watch::Receiver<SharedState>) {
        let stop = Arc::new(AtomicBool::new(false));
        let blank = Observation { fabric: settings.name.clone(), ..Observation::default() };
        let (sender, states) = watch::channel(SharedState::from(vec![Arc::new(blank)]));
        let (sender, ends) = (Arc::new(sender), Arc::clone(&stop));
        let mut monitor = Monitor::new(settings.clone(), None, sender, 0, ends).unwrap();
        prepare(&mut monitor);
        let time = SimClock::Virtual { began };
        let (seat, first) = (story.local_ports[0], lock(world).now());
        let (of, at, counted) = (Arc::clone(world), Arc::clone(gate), Arc::clone(sets));
        let open = move || Gated {
            transport: SimTransport::new(of.clone(), seat, time).beginning_at(first),
            gate: at.clone(),
            sets: counted.clone(),
        };
        let thread =
            std::thread::spawn(move || monitor.run(open(), || Ok::<_, Infallible>(open())));
        (MonitorThread { stop, thread }, states)
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.end();
    }
}
