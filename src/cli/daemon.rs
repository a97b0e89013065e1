//! The common part of `serve` and `demo`: monitors, each on a thread of its own, a renderer and a
//! server, until the program receives a signal to end.

use std::io::IsTerminal;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use sd_notify::NotifyState;
use signal_hook::consts::SIGHUP;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::config::{DataFrom, FabricSettings, HostSettings, JobsFrom, Settings};
use crate::jobs::JobsMonitor;
use crate::jobs::helper::Helper;
use crate::metrics::OwnMetrics;
use crate::monitor::host::{HostEventQueue, HostMonitor};
use crate::monitor::{CollectedMonitor, Monitor, replica};
use crate::notify::{Notifications, Queue};
use crate::published::{Published, publish_each};
use crate::remote::Remote;
use crate::sandbox::{self, User};
use crate::server::{PROBES, WebApp, request_class};
use crate::systemd::Notifier;
use crate::{log, memory, systemd};
use exporter_web::{AllowedHosts, Limits, Security, Server, listen};
use fabric_api::route_desk::{Question, RouteDesk};
use fabric_history::record::event_watch::EventWatch;
use fabric_history::record::listener::EventListener;
use fabric_history::settings::HOST_FABRIC;
use fabric_history::{HistoryError, Recorder, ensure_place};
use fabric_observation::{JobsObservation, Observation, RecorderMetrics, SharedState};
use ib_health::recorded::{RecordedErrors, RecordedFlaps};
use ib_health::totals::TotalsSeed;
use ib_mad::port_event::PortEvent;
use ib_umad::Heartbeat;
use ib_umad::capture::Capture;
use ib_umad::umad::{Umad, UmadPort};
use process_clock::Clock;
use rdma_host::reader::DeviceSource;

use super::{leftovers, terminal};
use crate::exit::{Exit, Fatal};

/// How long the end waits for monitors. They need a second at most, except with a device that
/// hangs, or a simulated fabric of thousands of hosts in which much happens at once.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the end waits for responses that are being sent. Most need a millisecond.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the end waits for a receiver of events, after all else: what it does not get by then is lost.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(2);

/// The nice values of threads: see [`lower_priority`].
const SERVE: i32 = 15;
const BUILD: i32 = 19;

/// A thread of the daemon that is ready to run.
pub struct Worker {
    pub thread: String,
    /// Runs it until it has to stop.
    pub run: Box<dyn FnOnce() + Send>,
}

/// The state that monitors publish, and the flag that ends them.
pub struct Daemon<'a> {
    pub settings: &'a Settings,
    pub states: Arc<watch::Sender<SharedState>>,
    pub stop: Arc<AtomicBool>,
    /// Those of the fabrics' monitors.
    heartbeats: Vec<Heartbeat>,
    pub recorder: Option<Recorder>,
    /// Who hears of events, if they are sent anywhere; and the worker that sends them, with its queue.
    listener: Option<EventListener>,
    sending: Option<(Worker, Arc<Queue>)>,
    /// Where the fabrics' monitors take questions about routes.
    pub questions: Vec<(String, SyncSender<Question>)>,
    own: OwnMetrics,
    /// The sockets, once they are open.
    listeners: Vec<TcpListener>,
    /// Wakes the host's monitor to stop: it may sleep for longer than a second.
    host_events: Option<HostEventQueue>,
    /// A folder that is removed at the end of the program; the sandbox has to permit that.
    pub temporary: Option<&'a Path>,
    /// The user that this process becomes once everything is open.
    pub user: Option<User>,
}

impl<'a> Daemon<'a> {
    /// Starts the log. An error if the path of the history is not a file.
    pub fn new(settings: &'a Settings) -> Result<Self, Fatal> {
        log::start(settings.log_filter.clone(), settings.log_format);
        Daemon::without_log(settings)
    }

    /// The same without a log: standard error is the terminal that the program draws on.
    pub fn without_log(settings: &'a Settings) -> Result<Self, Fatal> {
        if let Some(history) = &settings.history
            && let Err(error @ HistoryError::NotAFile { .. }) = ensure_place(&history.file)
        {
            return Err(Fatal::usage(format!("--history.file: {error}")));
        }
        let notifications = settings.notify.as_ref().map(|notify| {
            Notifications::new(notify, settings.external_url.as_deref()).map_err(Fatal::usage)
        });
        let notifications = notifications.transpose()?;
        raise_descriptors();
        let host = settings.host.as_ref().map(|_| Arc::default());
        let fabrics = settings.fabrics.iter().map(|FabricSettings { name, .. }| {
            Arc::new(Observation { fabric: name.clone(), ..Observation::default() })
        });
        let fabrics = fabrics.collect();
        let recording = settings.history.as_ref().map(|_| Arc::<RecorderMetrics>::default());
        let recorder = settings.history.clone().zip(recording.clone());
        // Before the monitors: their totals continue from what it has recorded.
        let recorder = recorder.map(|(history, recording)| Recorder::new(history, recording));
        let jobs = settings
            .jobs
            .as_ref()
            .map(|jobs| Arc::new(JobsObservation::new(jobs.from.source(), jobs.interval)));
        let states = Arc::new(watch::Sender::new(SharedState {
            fabrics,
            host,
            recording,
            jobs,
            as_of: None,
        }));
        let mut own = OwnMetrics::new(&settings.procfs);
        let (mut listener, mut sending) = (None, None);
        if let Some(Notifications { queue, listener: input, sender }) = notifications {
            own = own.with_notifications(Arc::clone(&queue));
            let run = Box::new(move || sender.run());
            sending = Some((Worker { thread: "notify".into(), run }, queue));
            listener = Some(input);
        }
        let (stop, heartbeats, listeners) = (Arc::default(), Vec::new(), Vec::new());
        let (host_events, temporary, user) = (None, None, None);
        Ok(Daemon {
            settings,
            states,
            stop,
            heartbeats,
            recorder,
            listener,
            sending,
            questions: Vec::new(),
            own,
            listeners,
            host_events,
            temporary,
            user,
        })
    }

    /// Finds and opens a fabric's port, so that an error is reported before the server starts; with the monitor
    /// of the fabric.
    pub fn open(
        &mut self,
        fabric_index: usize,
        clock: Clock,
    ) -> Result<(UmadPort, Umad, Monitor), Fatal> {
        if self.settings.fabrics[fabric_index].from.is_some() {
            return Err(Fatal::usage(
                "--fabric.from is an option of serve; other commands: --url of that exporter, or --from FILE for dumps",
            ));
        }
        let opened = self.settings.fabrics[fabric_index].open_port(&self.settings.sysfs, clock);
        let (port, transport) = opened.map_err(|error| Fatal::new(Exit::NoDevice, error))?;
        Ok((port, transport, self.monitor(fabric_index)?))
    }

    /// The monitor of a fabric, by its index in the settings.
    pub fn monitor(&mut self, fabric_index: usize) -> Result<Monitor, Fatal> {
        let settings = self.settings;
        let fabric = &settings.fabrics[fabric_index];
        let create = |(path, limit): &(PathBuf, u64)| {
            Capture::create(path, *limit).map_err(|error| {
                let path = path.display();
                Fatal::usage(format!("--fabric.capture: cannot create {path}: {error}"))
            })
        };
        let capture = fabric.capture.as_ref().map(create).transpose()?;
        let remote = fabric.totals_from.as_ref().map(|(url, access)| {
            // These are the options of clients; ours have other names.
            Remote::new(url, access, replica::TIMEOUT, replica::TIMEOUT)
                .map_err(|problem| Fatal::usage(problem.replace("--source.", "--fabric.totals-")))
        });
        let remote = remote.transpose()?;
        let (states, stop) = (Arc::clone(&self.states), Arc::clone(&self.stop));
        let monitor = Monitor::new(fabric.clone(), capture, states, fabric_index, stop);
        let mut monitor = monitor.map_err(Fatal::usage)?;
        monitor.sweep_durations = self.own.sweeps_of(&fabric.name);
        if let Some((totals, errors, flaps)) = self.recorded(fabric) {
            monitor.restore(totals, errors, flaps);
        }
        if let Some(remote) = remote {
            monitor.follow(remote);
        }
        self.heartbeats.push(monitor.heartbeat());
        self.questions.push((fabric.name.clone(), monitor.question_sender()));
        Ok(monitor)
    }

    /// The worker of a fabric whose data another program collects.
    pub fn collected(
        &mut self,
        fabric_index: usize,
        from: &DataFrom,
        clock: Clock,
    ) -> Result<Worker, Fatal> {
        let fabric = self.settings.fabrics[fabric_index].clone();
        let (states, stop) = (Arc::clone(&self.states), Arc::clone(&self.stop));
        let monitor = CollectedMonitor::new(fabric.clone(), from, states, fabric_index, stop);
        let mut monitor = monitor.map_err(Fatal::usage)?;
        monitor.sweep_durations = self.own.sweeps_of(&fabric.name);
        if let Some((totals, errors, flaps)) = self.recorded(&fabric) {
            monitor.restore(totals, errors, flaps);
        }
        self.heartbeats.push(monitor.heartbeat());
        let thread = format!("data-{fabric_index}");
        Ok(Worker { thread, run: Box::new(move || monitor.run(clock)) })
    }

    /// What an earlier run has recorded of a fabric.
    fn recorded(
        &mut self,
        fabric: &FabricSettings,
    ) -> Option<(TotalsSeed, RecordedErrors, RecordedFlaps)> {
        let recorder = self.recorder.as_mut()?;
        let (name, now) = (&*fabric.name, SystemTime::now());
        let flaps = recorder.flaps(name, now, fabric.limits.flap_days.within);
        Some((recorder.totals(name), recorder.link_errors(name, now), flaps))
    }

    /// The worker that detects events. It also records them if a history is configured. `None` if there is neither a
    /// history nor a receiver of notifications. It ends after the last monitor.
    pub fn recording(&mut self) -> Result<Option<Worker>, Fatal> {
        let (recorder, listener) = (self.recorder.take(), self.listener.take());
        if recorder.is_none() && listener.is_none() {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime
            .map_err(Fatal::failed_to("cannot start the runtime of the history recorder"))?;
        let states = self.states.subscribe();
        let listener = listener.unwrap_or_default();
        if let Some(mut recorder) = recorder {
            // Only now: the past of a demo is over.
            recorder.set_listener(listener);
            let run = Box::new(move || recorder.run(states, &runtime));
            return Ok(Some(Worker { thread: "history".into(), run }));
        }
        let watch = EventWatch::new(listener);
        let run = Box::new(move || watch.run(states, &runtime));
        Ok(Some(Worker { thread: "events".into(), run }))
    }

    /// The worker that reads running jobs, if they are read. It starts the process that runs the commands of a scheduler,
    /// which the sandbox forbids later.
    fn jobs(&self) -> Option<Worker> {
        let settings = self.settings.jobs.as_ref()?;
        let start = || {
            let started = Helper::start(settings, self.user.as_ref(), self.settings.confine);
            started.inspect_err(|error| {
                tracing::error!(%error, "jobs are not read: the process that runs squeue did not start");
            })
        };
        let helper = if settings.from == JobsFrom::Slurm { start().ok() } else { None };
        let (states, stop) = (Arc::clone(&self.states), Arc::clone(&self.stop));
        let monitor = JobsMonitor::new(settings.clone(), helper, states, stop);
        Some(Worker { thread: "jobs".into(), run: Box::new(move || monitor.run()) })
    }

    /// The monitor of the host's own devices. It also sends the events of their links to the monitors of fabrics.
    pub fn host(
        &mut self,
        host: &HostSettings,
        devices: Box<dyn DeviceSource>,
        clock: Clock,
        fabrics: Vec<SyncSender<PortEvent>>,
    ) -> Worker {
        let mut monitor = self.host_monitor(host, devices, clock);
        monitor.fabrics = fabrics;
        Daemon::run_host(monitor)
    }

    /// The same before it runs.
    pub fn host_monitor(
        &mut self,
        host: &HostSettings,
        devices: Box<dyn DeviceSource>,
        clock: Clock,
    ) -> HostMonitor {
        let mut monitor = HostMonitor::new(host, devices, clock, Arc::clone(&self.states));
        if let Some(recorder) = &mut self.recorder {
            monitor.restore(recorder.totals(HOST_FABRIC));
        }
        self.host_events = Some(monitor.queue.clone());
        monitor
    }

    /// The worker of the host's monitor.
    pub fn run_host(monitor: HostMonitor) -> Worker {
        Worker { thread: "host".into(), run: Box::new(move || monitor.run()) }
    }

    /// Opens the sockets, which [`run`](Self::run) does unless it is done: from then on clients wait for the server.
    pub fn listen(&mut self) -> Result<(), Fatal> {
        if self.listeners.is_empty() {
            let opened = listeners(self.settings);
            self.listeners = opened.map_err(|error| Fatal::new(Exit::NoListener, error))?;
        }
        Ok(())
    }

    /// Runs until a signal, or until a thread ends unexpectedly. `announce` gets the addresses,
    /// such as `http://127.0.0.1:10315`, once the server listens.
    pub fn run(
        mut self,
        mut workers: Vec<Worker>,
        signals: ShutdownSignals,
        announce: impl FnOnce(&[String]),
    ) -> Result<(), Fatal> {
        let file = self.settings.web_config.as_deref();
        let mut security = Security::load(file).map_err(Fatal::usage)?;
        if !self.settings.allowed_hosts.is_empty() {
            security = security.only_for(AllowedHosts::new(&self.settings.allowed_hosts, &PROBES));
        }
        self.listen()?;
        let listeners = std::mem::take(&mut self.listeners);
        let notifier = Notifier::connect();
        workers.extend(self.jobs());
        // All files are open, and no thread runs yet: threads inherit the sandbox.
        sandbox::enter(self.settings, &security.files(), self.temporary, self.user.as_ref());
        log::start_thread();
        memory::map_large_arrays();
        let sweeps = !self.settings.fabrics.is_empty();
        if !sweeps {
            memory::use_one_arena();
            memory::keep_some();
        }
        workers.extend(self.recording()?);
        // Each thread keeps the memory for compression, some 800 KiB. The metrics of a host are
        // small; a second thread is for requests that wait behind those of a fabric.
        let workers_of_server = if sweeps { 2 } else { 1 };
        // The runtime starts its workers first. Later threads build responses.
        let started = AtomicUsize::new(0);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers_of_server)
            .on_thread_start(move || {
                let is_worker = started.fetch_add(1, Ordering::Relaxed) < workers_of_server;
                if sweeps {
                    lower_priority(if is_worker { SERVE } else { BUILD });
                }
            })
            .enable_all()
            .build()
            .map_err(Fatal::failed_to("cannot start the runtime"))?;
        let result =
            runtime.block_on(self.serve(listeners, workers, security, notifier, signals, announce));
        // Nothing is served any more: a rendering in progress is not needed.
        runtime.shutdown_background();
        result
    }

    async fn serve(
        self,
        listeners: Vec<TcpListener>,
        workers: Vec<Worker>,
        security: Security,
        notifier: Notifier,
        mut signals: ShutdownSignals,
        announce: impl FnOnce(&[String]),
    ) -> Result<(), Fatal> {
        let Daemon {
            settings, own, stop, heartbeats, states, host_events, questions, sending, ..
        } = self;
        let mut published_states = states.subscribe();
        // Only the monitors hold it from now on: it closes with the last of them.
        drop(states);
        let failed = Fatal::failed_to("cannot use the listening socket");
        let (latest_sender, latest) = watch::channel(Arc::new(Published::first(
            published_states.borrow_and_update().clone(),
        )));
        // Also without a file to reload: unhandled, the signal would end the program.
        let hangup = signal(SignalKind::hangup())
            .map_err(Fatal::failed_to("cannot install the handler of SIGHUP"))?;
        let security = Arc::new(security);
        tokio::spawn(Arc::clone(&security).watch(hangup));
        let scheme = if security.speaks_tls() { "https" } else { "http" };
        let mut own = own.with_security(&security);
        own.external_url = settings.external_url.clone().unwrap_or_default();
        let own = Arc::new(own);
        let history = settings.history.as_ref().map(|history| history.file.clone());
        let mut app = WebApp::new(latest, Arc::clone(&own), &settings.telemetry_path, history);
        app.profile = settings.profile;
        app.routes = RouteDesk::new(questions);
        app.grafana = settings.grafana_url.as_deref().map(Into::into);
        let telemetry_path = settings.telemetry_path.clone();
        let class = move |path: &str| request_class(&telemetry_path, path);
        let limits = Limits::default();
        // More than one per processor would not be faster, but delay sweeps. Two at least: a history query may take long.
        let processors = std::thread::available_parallelism().map_or(1, usize::from).max(2);
        let concurrent_builds = limits.concurrent_builds.min(processors);
        let limits = Limits { concurrent_builds, ..limits };
        let server = Server::new(security, app.router(), limits, own.web.clone(), class);
        let mut addresses = Vec::new();
        for listener in listeners {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(&failed)?;
            let address = listener.local_addr().map_err(&failed)?;
            tracing::info!(%address, "listening");
            addresses.push(format!("{scheme}://{address}"));
            server.serve(listener);
        }
        announce(&addresses);
        let (ended_sender, mut ended) = unbounded_channel();
        let spawned = workers.into_iter().map(|it| spawn(it, ExitGuard(ended_sender.clone())));
        let threads = spawned.collect::<Result<Vec<_>, _>>()?;
        // Not only after the first sweep: on a fabric that is down it takes long, and that state has to be exported.
        notifier.notify(&NotifyState::Ready);
        tokio::spawn(systemd::keep_notified(
            notifier.clone(),
            published_states.clone(),
            heartbeats,
        ));
        let renderer = tokio::runtime::Builder::new_current_thread().build();
        let renderer =
            renderer.map_err(Fatal::failed_to("cannot start the runtime of the renderer"))?;
        // It is not waited for: nothing is served any more at the end.
        let sweeps = !settings.fabrics.is_empty();
        let run = Box::new(move || {
            if sweeps {
                lower_priority(SERVE);
            }
            renderer.block_on(publish_each(published_states, latest_sender, own));
        });
        spawn(Worker { thread: "render".into(), run }, ExitGuard(ended_sender.clone()))?;
        // Nor is this: a receiver may take its time.
        let sending = sending.map(|(worker, queue)| {
            let run = Box::new(move || {
                if sweeps {
                    lower_priority(SERVE);
                }
                (worker.run)();
            });
            spawn(Worker { run, ..worker }, ExitGuard(ended_sender)).map(|_| queue)
        });
        let sending = sending.transpose()?;
        let signal = tokio::select! {
            signal = signals.recv() => Some(signal),
            // The exporter would go on to serve stale data.
            _ = ended.recv() => None,
        };
        tracing::info!(signal, "shutting down");
        notifier.notify(&NotifyState::Stopping);
        stop.store(true, Ordering::Relaxed);
        if let Some(events) = host_events {
            // If the monitor has ended already, this does nothing.
            events.end();
        }
        // Requests in flight are waited for, but not long.
        let joined = tokio::task::spawn_blocking(move || join_all(threads));
        let joined = tokio::time::timeout(SHUTDOWN_TIMEOUT, joined);
        let ((), joined) = tokio::join!(server.shutdown(DRAIN_TIMEOUT), joined);
        if joined.is_err() {
            tracing::warn!(timeout = ?SHUTDOWN_TIMEOUT, "shutdown timed out: a monitor is still running");
        }
        if let Some(queue) = sending {
            let left = tokio::task::spawn_blocking(move || queue.finish(NOTIFY_TIMEOUT)).await;
            if let Some(events) = left.ok().filter(|events| *events > 0) {
                tracing::warn!(events, "notifications are lost: they were not sent before the end");
            }
        }
        let is_clean = joined.map_or(true, |joined| joined.unwrap_or(false));
        if signal.is_some() && is_clean {
            return Ok(());
        }
        Err(Fatal::failed(
            "worker thread ended unexpectedly: see the panic message above, and report it as a bug",
        ))
    }
}

/// Binds sockets, or takes those of systemd.
fn listeners(settings: &Settings) -> Result<Vec<TcpListener>, String> {
    if settings.systemd_socket {
        listen::systemd_sockets()
    } else {
        let bound = settings.listen.iter().map(|addresses| listen::bind(addresses));
        Ok(bound.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
}

/// Runs a worker on a thread of its own; the guard reports its end.
fn spawn(worker: Worker, guard: ExitGuard) -> Result<JoinHandle<()>, Fatal> {
    std::thread::Builder::new()
        .name(worker.thread)
        .spawn(move || {
            let _guard = guard;
            (worker.run)();
        })
        .map_err(Fatal::failed_to("cannot start a thread"))
}

/// Waits for all threads, also after one that panicked: the recorder writes its last events when the monitors have
/// ended. Returns whether none panicked.
fn join_all(threads: impl IntoIterator<Item = JoinHandle<()>>) -> bool {
    // Not `all`, which stops at the first.
    threads.into_iter().map(JoinHandle::join).filter(Result::is_err).count() == 0
}

/// Lowers the priority of this thread, which serves, renders or builds, below that of sweeps: sweeps have
/// to be on time, whatever the number of requests. A nice value of 15 is 36 of the usual weight of
/// 1,024 (the kernel's sched_prio_to_weight): two such threads take 7% of a processor that a sweep
/// needs, too. 10 would be 18%, and with 19 (1.5% each) a scrape on a busy host would be late. Pages and
/// lists may be late, and there are more of their threads: with 15, sweeps took 1.34 times as long while
/// all of these were busy.
/// Without sweeps the priority stays: a compute host is busy for days, and has to be scraped, too.
fn lower_priority(nice: i32) {
    // Linux changes this thread only; where that is not allowed all threads are equal.
    let _ = rustix::process::setpriority_process(None, nice);
}

/// Raises the soft limit of descriptors to the hard limit. A device of this host takes eight with its interface and
/// its events, and some 60 for the files of each port that stay open; and a host may have hundreds of virtual
/// functions. The usual 1,024 are for programs that use select().
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "raising the file descriptor limit failed");
    }
}

/// Handlers of SIGTERM and SIGINT. Until they are installed the signals end the program at once;
/// from then on it has time to clean up.
#[derive(Debug)]
pub struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
    /// SIGHUP, which a closed terminal sends. It ends a program that somebody watches; a service reloads files.
    hangup: Option<Signal>,
    /// Standard output is a terminal, and its end is that of the program: it sends SIGHUP only to its own session.
    watches_terminal: bool,
}

impl ShutdownSignals {
    /// Installs the handlers. A signal before the first [`recv`](Self::recv) is kept.
    pub fn install() -> Result<Self, Fatal> {
        Self::with(false)
    }

    /// The same, and SIGHUP ends the program as well.
    pub fn of_terminal() -> Result<Self, Fatal> {
        // nohup ignores it.
        Self::with(!leftovers::is_ignored(SIGHUP))
    }

    fn with(hangup: bool) -> Result<Self, Fatal> {
        let failed = Fatal::failed_to("cannot install the handlers of SIGTERM and SIGINT");
        // They are for the whole process: any later runtime receives them. This one starts no thread.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(&failed)?;
        let _within = runtime.enter();
        let handler = |kind| signal(kind).map_err(&failed);
        Ok(ShutdownSignals {
            terminate: handler(SignalKind::terminate())?,
            interrupt: handler(SignalKind::interrupt())?,
            hangup: hangup.then(|| handler(SignalKind::hangup())).transpose()?,
            watches_terminal: hangup && std::io::stdout().is_terminal(),
        })
    }

    /// Waits for a signal, and returns its name.
    pub async fn recv(&mut self) -> &'static str {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let gone = async {
            if !self.watches_terminal {
                std::future::pending::<()>().await;
            }
            while !terminal::is_gone() {
                tokio::time::sleep(terminal::GONE_CHECK).await;
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = hangup => "SIGHUP",
            () = gone => "none: the terminal is gone",
        }
    }
}

/// Reports the end of a thread or task that should not end, also by a panic.
struct ExitGuard(UnboundedSender<()>);

impl Drop for ExitGuard {
    fn drop(&mut self) {
        // Without a receiver the program is ending itself.
        let _ = self.0.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_after_one_that_panicked_are_waited_for() {
        let panicked = std::thread::spawn(|| panic!("on purpose"));
        let (sender, receiver) = std::sync::mpsc::channel();
        // Ends only once the thread before it was joined: its handle is taken from the iterator after that.
        let others = std::iter::once_with(move || {
            std::thread::spawn(move || {
                let _ = sender.send("recorded");
            })
        });
        assert!(!join_all(std::iter::once(panicked).chain(others)));
        assert_eq!(receiver.recv(), Ok("recorded"), "the recorder was waited for");
        assert!(join_all([std::thread::spawn(|| {})]));
    }
}
