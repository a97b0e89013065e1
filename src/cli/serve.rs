//! `serve`: monitors the fabric and the host, and serves the metrics, until a signal.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use clap::Args;

use crate::config::options::Options;
use crate::config::{FabricSettings, Settings};
use crate::sandbox::User;
use crate::sandbox::opener::DeviceOpener;
use ib_mad::port_event::PortEvent;
use ib_umad::umad::{OpenDevice, PortChoice, Umad};
use process_clock::Clock;

use super::check;
use super::daemon::{Daemon, ShutdownSignals, Worker};
use crate::exit::Fatal;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter serve
  fabric-exporter serve --config.file=/etc/fabric-exporter/config.yml
  fabric-exporter serve --fabric.hca=mlx5_0 --history.file=/var/lib/fabric-exporter/history.db
  fabric-exporter serve --fabric.from=http://ufm:9002/csv/xcset/low_freq_debug    # no MADs
  fabric-exporter serve --no-collector.fabric    # compute node: only this host's devices

SIGHUP reloads the web config file. SIGTERM and SIGINT stop the exporter.";

/// The arguments of `serve`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct ServeArgs {
    /// YAML file with settings
    ///
    /// Each option is a key of this file: --fabric.interval is the key "interval" in the section "fabric".
    /// Exceptions: --web.config.file is the key "config-file" in the section "web", and --no-collector.host is "host:
    /// false" in the section "collector". Options override the file. Check it with "fabric-exporter check".
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// Runs until SIGTERM or SIGINT, or until a thread ends unexpectedly.
pub fn run(args: ServeArgs) -> Result<(), Fatal> {
    let settings =
        Settings::load(args.options, args.config_file.as_deref()).map_err(Fatal::usage)?;
    // Also files that no collector needs: errors in them must be reported.
    let wrong = check::check_files(&settings).into_iter().filter_map(Result::err);
    let wrong: Vec<String> = wrong.map(|error| error.to_string()).collect();
    if !wrong.is_empty() {
        return Err(Fatal::usage(wrong.join("\n")));
    }
    let user = User::choose(settings.user.as_deref(), settings.allow_root).map_err(Fatal::usage)?;
    let mut daemon = Daemon::new(&settings)?;
    let opener = opener(&settings, user.as_ref());
    daemon.user = user;
    let clock = Clock::start();
    let prepared = (0..settings.fabrics.len())
        .map(|fabric_index| prepare(&mut daemon, &settings, fabric_index, clock, opener.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut workers, events): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
    let events = events.into_iter().flatten().collect();
    workers.extend(settings.host.as_ref().map(|host| {
        let devices = Box::new(host.reader(clock));
        daemon.host(host, devices, clock, events)
    }));
    daemon.run(workers, ShutdownSignals::install()?, |_| {})
}

/// The process that opens devices again once this one is no longer root, if that is needed. Logs what fails.
fn opener(settings: &Settings, user: Option<&User>) -> Option<Arc<DeviceOpener>> {
    if settings.allow_root && rustix::process::geteuid().is_root() {
        tracing::warn!("running as root: --process.allow-root is set");
    }
    user?;
    settings.fabrics.iter().find(|fabric| fabric.from.is_none())?;
    let started = DeviceOpener::start(&settings.sysfs).inspect_err(|error| {
        tracing::warn!(
            %error,
            "a device that returns may not be opened again: the process that opens devices did not start"
        );
    });
    started.ok().map(Arc::new)
}

/// The worker of a fabric, and where it takes the events of its port; nowhere if it has none.
fn prepare(
    daemon: &mut Daemon<'_>,
    settings: &Settings,
    fabric_index: usize,
    clock: Clock,
    opener: Option<Arc<DeviceOpener>>,
) -> Result<(Worker, Option<SyncSender<PortEvent>>), Fatal> {
    if let Some(from) = &settings.fabrics[fabric_index].from {
        return Ok((daemon.collected(fabric_index, from, clock)?, None));
    }
    let (port, transport, monitor) = daemon.open(fabric_index, clock)?;
    let fabric = settings.fabrics[fabric_index].clone();
    let FabricSettings { name, p_key, .. } = &fabric;
    tracing::info!(fabric = name, hca = port.hca, port = port.port, "fabric port opened");
    let (sysfs, p_key) = (settings.sysfs.clone(), *p_key);
    let events = monitor.event_sender.clone();
    let worker = Worker {
        thread: format!("umad-{}-{}", port.hca, port.port),
        run: Box::new(move || {
            let open = move |device: &Path| match &opener {
                Some(opener) => opener.open(device),
                None => Err(ErrorKind::PermissionDenied.into()),
            };
            let open: &OpenDevice = &open;
            monitor.run(transport, || {
                // The same port: another one may be of another fabric.
                let (hca, number) = (Some(&*port.hca), Some(port.port));
                let choice = PortChoice { hca, port: number, ..fabric.port_choice() };
                Umad::open_first(&sysfs, choice, p_key, clock, &|_| None, Some(open))
                    .map(|(_, transport)| transport)
            });
        }),
    };
    Ok((worker, Some(events)))
}
