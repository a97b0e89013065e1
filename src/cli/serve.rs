//! `serve`: watches the fabric and serves what it sees, until it is told to end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::config::options::{LogFormat, LogLevel, Options};
use crate::config::{FabricSettings, Settings};
use crate::monitor::{Board, Monitor, Observation};
use crate::transport::capture::Capture;
use crate::transport::clock::Clock;
use crate::transport::umad::{Umad, UmadPort};
use crate::web::exposition::about::Process;
use crate::web::exposition::{Exposition, Latest};
use crate::web::server::{self, Site};

use super::{Exit, Fatal};

/// The arguments of `serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// YAML file with the same settings; a flag wins over its key
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// A monitor that is ready to run, and how.
struct Watcher {
    monitor: Monitor,
    port: UmadPort,
    wire: Umad,
}

/// Runs until SIGTERM or SIGINT, or until something makes it pointless to go on.
pub fn run(args: ServeArgs) -> Result<(), Fatal> {
    let settings = Settings::load(args.options, args.config_file.as_deref())
        .map_err(|error| Fatal::new(Exit::Usage, error))?;
    start_log(settings.log_level, settings.log_format);
    let stop = Arc::new(AtomicBool::new(false));
    let (board, seen) = watch::channel(first_board(&settings));
    let board = Arc::new(board);
    let clock = Clock::start();
    let watchers = settings
        .fabrics
        .iter()
        .enumerate()
        .map(|(slot, fabric)| prepare(fabric, slot, &settings, clock, &board, &stop))
        .collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Fatal::new(Exit::Failed, format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(serve(&settings, seen, watchers, clock, &stop));
    // Nothing is served any more, so nobody waits for what is still being rendered.
    runtime.shutdown_background();
    result
}

fn first_board(settings: &Settings) -> Board {
    let blank = |fabric: &FabricSettings| {
        Arc::new(Observation { fabric: fabric.name.clone(), ..Observation::default() })
    };
    settings.fabrics.iter().map(blank).collect()
}

/// Finds and opens a fabric's port, so that what is wrong is told before anything is served.
fn prepare(
    fabric: &FabricSettings,
    slot: usize,
    settings: &Settings,
    clock: Clock,
    board: &Arc<watch::Sender<Board>>,
    stop: &Arc<AtomicBool>,
) -> Result<Watcher, Fatal> {
    let (port, wire) = Umad::open_first(&settings.sysfs, fabric.hca.as_deref(), fabric.port, clock)
        .map_err(|error| Fatal::new(Exit::NoDevice, error))?;
    let create = |(path, limit): &(PathBuf, u64)| {
        Capture::create(path, *limit).map_err(|error| {
            Fatal::new(Exit::Usage, format!("--fabric.capture {}: {error}", path.display()))
        })
    };
    let capture = fabric.capture.as_ref().map(create).transpose()?;
    let monitor = Monitor::new(fabric.clone(), capture, Arc::clone(board), slot, Arc::clone(stop))
        .map_err(|error| Fatal::new(Exit::Usage, error))?;
    tracing::info!(fabric = fabric.name, hca = port.hca, port = port.port, "asking the fabric");
    Ok(Watcher { monitor, port, wire })
}

/// Says that something ended which should not, whatever way it ended.
struct Farewell(mpsc::UnboundedSender<()>);

impl Drop for Farewell {
    fn drop(&mut self) {
        // Nobody listens any more while the program itself ends.
        let _ = self.0.send(());
    }
}

/// Runs a watcher on a thread of its own, which says farewell when it ends.
fn spawn(
    watcher: Watcher,
    sysfs: PathBuf,
    clock: Clock,
    farewell: Farewell,
) -> Result<JoinHandle<()>, Fatal> {
    let Watcher { monitor, port, wire } = watcher;
    std::thread::Builder::new()
        .name(format!("umad-{}-{}", port.hca, port.port))
        .spawn(move || {
            let _farewell = farewell;
            monitor.run(wire, || {
                // The same port: another one may lead to another fabric.
                Umad::open_first(&sysfs, Some(&port.hca), Some(port.port), clock)
                    .map(|(_, wire)| wire)
            });
        })
        .map_err(|error| Fatal::new(Exit::Failed, format!("cannot start a thread: {error}")))
}

async fn serve(
    settings: &Settings,
    mut seen: watch::Receiver<Board>,
    watchers: Vec<Watcher>,
    clock: Clock,
    stop: &AtomicBool,
) -> Result<(), Fatal> {
    let failed =
        |what: &str, error: std::io::Error| Fatal::new(Exit::Failed, format!("{what}: {error}"));
    let mut terminate =
        signal(SignalKind::terminate()).map_err(|error| failed("SIGTERM", error))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| failed("SIGINT", error))?;
    let (latest_sender, latest) =
        watch::channel(Arc::new(Exposition::render(seen.borrow_and_update().clone())));
    for &address in &settings.listen {
        let listener =
            server::listen(address).await.map_err(|error| Fatal::new(Exit::NoListener, error))?;
        let address = listener.local_addr().map_err(|error| failed("listener", error))?;
        tracing::info!(%address, "listening");
        let site = site(settings, &latest);
        tokio::spawn(async move { axum::serve(listener, site.router()).await });
    }
    let (ended_sender, mut ended) = mpsc::unbounded_channel();
    let threads = watchers
        .into_iter()
        .map(|watcher| {
            spawn(watcher, settings.sysfs.clone(), clock, Farewell(ended_sender.clone()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let farewell = Farewell(ended_sender);
    let render = tokio::spawn(async move {
        let _farewell = farewell;
        render(seen, latest_sender).await;
    });
    let told = tokio::select! {
        _ = terminate.recv() => Some("SIGTERM"),
        _ = interrupt.recv() => Some("SIGINT"),
        // What is served would not change any more, and nobody would see that.
        _ = ended.recv() => None,
    };
    tracing::info!(signal = told, "ending");
    stop.store(true, Ordering::Relaxed);
    render.abort();
    // What is in flight is waited for, but not long.
    let joined = tokio::task::spawn_blocking(move || {
        threads.into_iter().all(|thread| thread.join().is_ok())
    });
    if told.is_none() || !joined.await.unwrap_or(false) {
        let problem = "a thread that watches or renders ended by itself; its panic stands above";
        return Err(Fatal::new(Exit::Failed, problem));
    }
    Ok(())
}

fn site(settings: &Settings, latest: &Latest) -> Site {
    Site::new(latest.clone(), Process::new(&settings.procfs), &settings.telemetry_path)
}

/// Renders each board that is published, off the server's threads. A board that is replaced while
/// another is rendered is not missed: the newest is always next.
async fn render(mut seen: watch::Receiver<Board>, latest: watch::Sender<Arc<Exposition>>) {
    while seen.changed().await.is_ok() {
        let board = seen.borrow_and_update().clone();
        let Ok(exposition) = tokio::task::spawn_blocking(move || Exposition::render(board)).await
        else {
            return;
        };
        latest.send_replace(Arc::new(exposition));
    }
}

fn start_log(level: LogLevel, format: LogFormat) {
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
