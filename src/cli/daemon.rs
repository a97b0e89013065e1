//! What `serve` and `demo` have in common: watchers, each on a thread of its own, a renderer and a
//! server, until the program is told to end.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::config::options::{LogFormat, LogLevel};
use crate::config::{FabricSettings, HostSettings, Settings};
use crate::metrics::process::Process;
use crate::metrics::{Exposition, Latest};
use crate::monitor::Monitor;
use crate::monitor::host::HostMonitor;
use crate::server::{WebApp, request_class};
use crate::systemd::Watchdog;
use crate::{sandbox, systemd};
use exporter_web::{Limits, Security, Server, Sources, listen};
use fabric_history::settings::HOST_FABRIC;
use fabric_history::{HistoryError, Recorder, ensure_place};
use fabric_observation::{Observation, RecorderMetrics, SharedState};
use ib_mad::clock::Clock;
use ib_mad::port_event::PortEvent;
use ib_umad::capture::Capture;
use ib_umad::client::Heartbeat;

use super::ending::Ending;
use super::{Exit, Fatal, confined};

/// How long the end waits for watches that are to end: they need a second at the most, but for a
/// device that hangs, or a simulated fabric of thousands of hosts in which much happens at once.
const MOST_FAREWELL: Duration = Duration::from_secs(5);

/// How long the end waits for answers that are on their way. Most have a millisecond to go.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// How much those who serve stand back for those who sweep; see [`stand_back`].
const NICE: i32 = 15;

/// How often the line that the service manager shows is made anew, if anything is.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// A monitor that is ready to run.
pub struct Watcher {
    /// The name of its thread.
    pub thread: String,
    /// Runs it until it is to stop.
    pub watch: Box<dyn FnOnce() + Send>,
    /// Wakes it up to see that it is to stop, if it may sleep for longer than a second.
    pub wake: Option<Box<dyn FnOnce() + Send>>,
}

/// Where monitors publish, and how they are told to end.
pub struct Daemon<'a> {
    settings: &'a Settings,
    board: Arc<watch::Sender<SharedState>>,
    seen: watch::Receiver<SharedState>,
    stop: Arc<AtomicBool>,
    /// Those of the fabrics' monitors.
    pulses: Vec<Heartbeat>,
    recorder: Option<Recorder>,
    goes: Option<&'a Path>,
}

impl<'a> Daemon<'a> {
    /// One that has not begun yet: its log has. An error if the history cannot be a file where it is to be.
    pub fn new(settings: &'a Settings) -> Result<Self, Fatal> {
        if let Some(history) = &settings.history
            && let Err(error @ HistoryError::NotAFile { .. }) = ensure_place(&history.file)
        {
            return Err(Fatal::new(Exit::Usage, format!("--history.file: {error}")));
        }
        start_log(settings.log_level, settings.log_format);
        raise_descriptors();
        let blank = |fabric: &FabricSettings| {
            Arc::new(Observation { fabric: fabric.name.clone(), ..Observation::default() })
        };
        let host = settings.host.as_ref().map(|_| Arc::default());
        let fabrics = settings.fabrics.iter().map(blank).collect();
        let recording = settings.history.as_ref().map(|_| Arc::<RecorderMetrics>::default());
        let recorder = settings.history.clone().zip(recording.clone());
        // Before the monitors: what it has recorded is what their totals go on from.
        let recorder = recorder.map(|(history, recording)| Recorder::new(history, recording));
        let (board, seen) = watch::channel(SharedState { fabrics, host, recording });
        let stop = Arc::new(AtomicBool::new(false));
        Ok(Daemon {
            settings,
            board: Arc::new(board),
            seen,
            stop,
            pulses: Vec::new(),
            recorder,
            goes: None,
        })
    }

    /// Somebody removes this folder when the program has run: it may do so.
    #[must_use]
    pub fn with_folder(self, goes: Option<&'a Path>) -> Self {
        Daemon { goes, ..self }
    }

    /// What it runs with.
    pub fn settings(&self) -> &'a Settings {
        self.settings
    }

    /// The monitor of a fabric, by its place in the settings.
    pub fn monitor(&mut self, slot: usize) -> Result<Monitor, Fatal> {
        let (board, stop) = (Arc::clone(&self.board), Arc::clone(&self.stop));
        let fabric = &self.settings.fabrics[slot];
        let mut monitor = capturing_monitor(fabric, board, slot, stop)?;
        if let Some(recorder) = &mut self.recorder {
            monitor.restore(recorder.totals(&fabric.name));
        }
        self.pulses.push(monitor.heartbeat());
        Ok(monitor)
    }

    /// The recorder's thread, if anything is recorded: it ends when the last monitor has.
    fn recorder(&mut self) -> Result<Option<Watcher>, Fatal> {
        let Some(recorder) = self.recorder.take() else { return Ok(None) };
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| {
            Fatal::new(Exit::Failed, format!("cannot start the recorder's runtime: {error}"))
        })?;
        let seen = self.seen.clone();
        let watch = Box::new(move || recorder.run(seen, &runtime));
        Ok(Some(Watcher { thread: "history".into(), watch, wake: None }))
    }

    /// The monitor of the host's own devices, which sends the events of their links to the monitors of fabrics.
    pub fn host(
        &mut self,
        host: &HostSettings,
        clock: Clock,
        fabrics: Vec<SyncSender<PortEvent>>,
    ) -> Watcher {
        let mut monitor = HostMonitor::new(host, clock, Arc::clone(&self.board));
        for fabric in fabrics {
            monitor.add_fabric(fabric);
        }
        if let Some(recorder) = &mut self.recorder {
            monitor.restore(recorder.totals(HOST_FABRIC));
        }
        let events = monitor.event_sender();
        Watcher {
            thread: "host".into(),
            watch: Box::new(move || monitor.run()),
            // If it has ended already, nobody has to be woken.
            wake: Some(Box::new(move || events.end())),
        }
    }

    /// Runs until it is told to end, or until something makes it pointless to go on; tells where it
    /// listens, as `http://127.0.0.1:10315`, once it does.
    pub fn run(
        mut self,
        mut watchers: Vec<Watcher>,
        ending: Ending,
        announce: impl FnOnce(&[String]),
    ) -> Result<(), Fatal> {
        let file = self.settings.web_config.as_deref();
        let security = Security::load(file).map_err(|error| Fatal::new(Exit::Usage, error))?;
        let listeners =
            listeners(self.settings).map_err(|error| Fatal::new(Exit::NoListener, error))?;
        // All is open, and no thread runs yet: they inherit it.
        if self.settings.confine {
            sandbox::enter(&confined::needs(self.settings, security.1.as_ref(), self.goes));
        }
        watchers.extend(self.recorder()?);
        // Each keeps what it once needed to compress an answer, some 800 KiB; a host's own devices
        // have little to tell, and a second one is for those who wait behind a fabric's.
        let sweeps = !self.settings.fabrics.is_empty();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(if sweeps { 2 } else { 1 })
            .on_thread_start(move || {
                if sweeps {
                    stand_back();
                }
            })
            .enable_all()
            .build()
            .map_err(|error| {
                Fatal::new(Exit::Failed, format!("cannot start the runtime: {error}"))
            })?;
        let result = runtime.block_on(self.serve(listeners, watchers, security, ending, announce));
        // Nothing is served any more, so nobody waits for what is still being rendered.
        runtime.shutdown_background();
        result
    }

    async fn serve(
        self,
        listeners: Vec<TcpListener>,
        watchers: Vec<Watcher>,
        (security, sources): (Security, Option<Sources>),
        mut ending: Ending,
        announce: impl FnOnce(&[String]),
    ) -> Result<(), Fatal> {
        let Daemon { settings, mut seen, stop, pulses, board, recorder: _, goes: _ } = self;
        // The monitors alone hold it from now on: with the last of them it closes.
        drop(board);
        let failed = |error: std::io::Error| Fatal::new(Exit::Failed, format!("listener: {error}"));
        let (latest_sender, latest) =
            watch::channel(Arc::new(Exposition::render(seen.borrow_and_update().clone())));
        // With or without a file to read anew: by itself the signal would end the program.
        let hangup = signal(SignalKind::hangup())
            .map_err(|error| Fatal::new(Exit::Failed, format!("SIGHUP: {error}")))?;
        let security = Arc::new(security);
        tokio::spawn(Arc::clone(&security).watch(sources, hangup));
        let scheme = if security.speaks_tls() { "https" } else { "http" };
        let process = Process::new(&settings.procfs).with_web_config(security.reload_status());
        let server = Server::new(security, Limits::default(), request_class);
        let mut addresses = Vec::new();
        for listener in listeners {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            tracing::info!(%address, "listening");
            addresses.push(format!("{scheme}://{address}"));
            server.serve(listener, site(settings, &latest, &process).router());
        }
        announce(&addresses);
        let (ended_sender, mut ended) = unbounded_channel();
        let mut threads = Vec::new();
        let mut wakes = Vec::new();
        for mut watcher in watchers {
            wakes.extend(watcher.wake.take());
            threads.push(spawn(watcher, Farewell(ended_sender.clone()))?);
        }
        systemd::ready();
        tokio::spawn(tell_manager(seen.clone(), Watchdog::new(pulses)));
        let farewell = Farewell(ended_sender);
        let render = tokio::spawn(async move {
            let _farewell = farewell;
            render(seen, latest_sender).await;
        });
        let told = tokio::select! {
            signal = ending.told() => Some(signal),
            // What is served would not change any more, and nobody would see that.
            _ = ended.recv() => None,
        };
        tracing::info!(signal = told, "ending");
        systemd::stopping();
        stop.store(true, Ordering::Relaxed);
        for wake in wakes {
            wake();
        }
        server.shutdown(LAST_ANSWERS).await;
        render.abort();
        // What is in flight is waited for, but not long.
        let joined = tokio::task::spawn_blocking(move || {
            threads.into_iter().all(|thread| thread.join().is_ok())
        });
        let well = if let Ok(joined) = tokio::time::timeout(MOST_FAREWELL, joined).await {
            joined.unwrap_or(false)
        } else {
            tracing::warn!(limit = ?MOST_FAREWELL, "a watch does not end: left as it is");
            true
        };
        if told.is_none() || !well {
            let problem =
                "a thread that watches or renders ended by itself; its panic stands above";
            return Err(Fatal::new(Exit::Failed, problem));
        }
        Ok(())
    }
}

/// Binds, or takes what systemd has bound.
fn listeners(settings: &Settings) -> Result<Vec<TcpListener>, listen::ListenError> {
    if settings.systemd_socket {
        listen::systemd_sockets()
    } else {
        let bound = settings.listen.iter().map(|addresses| listen::bind(addresses));
        Ok(bound.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
}

/// Tells the service manager how things are, and that they go on: for as long as it wants to know.
async fn tell_manager(mut seen: watch::Receiver<SharedState>, mut watchdog: Option<Watchdog>) {
    if !systemd::is_enabled() {
        return;
    }
    let mut signs = watchdog.as_ref().map(|watchdog| {
        let interval = watchdog.interval();
        // Until then everything has had the time to begin.
        tokio::time::interval_at(tokio::time::Instant::now() + interval, interval)
    });
    let mut lines = tokio::time::interval(STATUS_INTERVAL);
    lines.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let sign = async {
            match &mut signs {
                Some(signs) => signs.tick().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = sign => if let Some(watchdog) = &mut watchdog { watchdog.check() },
            _ = lines.tick() => if seen.has_changed().unwrap_or(false) {
                let board = seen.borrow_and_update().clone();
                systemd::status(&board);
            },
        }
    }
}

/// The monitor of a fabric, with the capture that its settings want.
pub(super) fn capturing_monitor(
    fabric: &FabricSettings,
    board: Arc<watch::Sender<SharedState>>,
    slot: usize,
    stop: Arc<AtomicBool>,
) -> Result<Monitor, Fatal> {
    let capture = match &fabric.capture {
        None => None,
        Some((path, limit)) => Some(Capture::create(path, *limit).map_err(|error| {
            let path = path.display();
            Fatal::new(Exit::Usage, format!("--fabric.capture {path}: {error}"))
        })?),
    };
    Monitor::new(fabric.clone(), capture, board, slot, stop)
        .map_err(|error| Fatal::new(Exit::Usage, error))
}

/// Says that something ended which should not, whatever way it ended.
struct Farewell(UnboundedSender<()>);

impl Drop for Farewell {
    fn drop(&mut self) {
        // Nobody listens any more while the program itself ends.
        let _ = self.0.send(());
    }
}

/// Runs a watcher on a thread of its own, which says farewell when it ends.
fn spawn(watcher: Watcher, farewell: Farewell) -> Result<JoinHandle<()>, Fatal> {
    std::thread::Builder::new()
        .name(watcher.thread)
        .spawn(move || {
            let _farewell = farewell;
            (watcher.watch)();
        })
        .map_err(|error| Fatal::new(Exit::Failed, format!("cannot start a thread: {error}")))
}

fn site(settings: &Settings, latest: &Latest, process: &Process) -> WebApp {
    let history = settings.history.as_ref().map(|history| history.file.clone());
    WebApp::new(latest.clone(), process.clone(), &settings.telemetry_path).with_history(history)
}

/// Lets this thread, which serves or renders, stand back for those that sweep: sweeps are to be on time,
/// however many ask. A nice value of 15 is 36 of the usual weight of 1,024 (the kernel's
/// sched_prio_to_weight): two such threads take 7 % of a processor that a sweep wants, too. 10 would be 18 %,
/// and with 19 (1.5 % each) a scrape on a host that others keep busy would be late. Where nothing is swept nobody stands back:
/// a host that computes is busy for days, and is scraped all the same.
fn stand_back() {
    // Of this thread alone, as Linux has it; where that is not allowed all are alike.
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Renders each board that is published, off the server's threads. A board that is replaced while
/// another is rendered is not missed: the newest is always next.
async fn render(mut seen: watch::Receiver<SharedState>, latest: watch::Sender<Arc<Exposition>>) {
    while seen.changed().await.is_ok() {
        let board = seen.borrow_and_update().clone();
        let before = Arc::clone(&latest.borrow());
        let rendered =
            tokio::task::spawn_blocking(move || Exposition::after(Some(&before), board)).await;
        let Ok(exposition) = rendered else { return };
        latest.send_replace(Arc::new(exposition));
    }
}

/// Takes as many descriptors as the system lets us have. A device of this host takes eight with its
/// interface and its events, and a host may have hundreds of virtual functions; the usual 1,024 are
/// that low for the sake of programs that use select().
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) =
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
    {
        tracing::debug!(%error, "the limit of descriptors stays as it is");
    }
}

/// Logs to standard error from now on.
pub(super) fn start_log(level: LogLevel, format: LogFormat) {
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::LevelFilter;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;

    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let layer = match format {
        LogFormat::Logfmt => tracing_logfmt::builder().layer().with_writer(std::io::stderr).boxed(),
        LogFormat::Json => {
            tracing_subscriber::fmt::layer().json().with_writer(std::io::stderr).boxed()
        }
    };
    tracing_subscriber::registry().with(layer.with_filter(level)).init();
}
