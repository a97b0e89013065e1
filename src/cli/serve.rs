//! `serve`: monitors the fabric and the host, and serves the metrics, until a signal.

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

use clap::Args;

use crate::config::options::Options;
use crate::config::{FabricSettings, Settings};
use ib_mad::clock::Clock;
use ib_mad::port_event::PortEvent;
use ib_umad::umad::Umad;

use super::Fatal;
use super::check;
use super::daemon::{Daemon, ShutdownSignals, Worker};

const EXAMPLES: &str = "\
Examples:
  fabric-exporter serve
  fabric-exporter serve --config.file=/etc/fabric-exporter/config.yml
  fabric-exporter serve --fabric.hca=mlx5_0 --history.file=/var/lib/fabric-exporter/history.db
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
    let mut daemon = Daemon::new(&settings)?;
    let clock = Clock::start();
    let prepared = (0..settings.fabrics.len())
        .map(|fabric_index| prepare(&mut daemon, &settings, fabric_index, clock))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut workers, events): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
    workers.extend(settings.host.as_ref().map(|host| {
        let devices = Box::new(host.reader(clock));
        daemon.host(host, devices, clock, events)
    }));
    daemon.run(workers, ShutdownSignals::install()?, |_| {})
}

/// The worker of a fabric, and where it takes the events of its port.
fn prepare(
    daemon: &mut Daemon<'_>,
    settings: &Settings,
    fabric_index: usize,
    clock: Clock,
) -> Result<(Worker, SyncSender<PortEvent>), Fatal> {
    let (port, wire, monitor) = daemon.open(fabric_index, clock)?;
    let FabricSettings { name, p_key, .. } = &settings.fabrics[fabric_index];
    tracing::info!(fabric = name, hca = port.hca, port = port.port, "fabric port opened");
    let (sysfs, p_key) = (settings.sysfs.clone(), *p_key);
    let events = monitor.event_sender.clone();
    let worker = Worker {
        thread: format!("umad-{}-{}", port.hca, port.port),
        run: Box::new(move || {
            monitor.run(wire, || {
                // The same port: another one may be of another fabric.
                Umad::open_first(&sysfs, Some(&port.hca), Some(port.port), p_key, clock, &|_| None)
                    .map(|(_, wire)| wire)
            });
        }),
    };
    Ok((worker, events))
}
