//! `serve`: watches the fabric and the host, and serves what it sees, until it is told to end.

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

use clap::Args;

use crate::config::Settings;
use crate::config::options::Options;
use ib_mad::clock::Clock;
use ib_mad::port_event::PortEvent;
use ib_umad::umad::Umad;

use super::daemon::{Daemon, Watcher};
use super::ending::Ending;
use super::{Exit, Fatal, files};

/// The arguments of `serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// YAML file with the same settings; a flag wins over its key
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// Runs until SIGTERM or SIGINT, or until something makes it pointless to go on.
pub fn run(args: ServeArgs) -> Result<(), Fatal> {
    let settings = Settings::load(args.options, args.config_file.as_deref())
        .map_err(|error| Fatal::new(Exit::Usage, error))?;
    // Also those that no collector needs: somebody relies on them.
    let wrong = files::examine(&settings).into_iter().filter_map(|file| file.result.err());
    let wrong = wrong.flatten().collect::<Vec<_>>();
    if !wrong.is_empty() {
        return Err(Fatal::new(Exit::Usage, wrong.join("\n")));
    }
    let mut daemon = Daemon::new(&settings)?;
    let clock = Clock::start();
    let prepared = (0..settings.fabrics.len())
        .map(|slot| prepare(&mut daemon, &settings, slot, clock))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut watchers, events): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
    watchers.extend(settings.host.as_ref().map(|host| daemon.host(host, clock, events)));
    daemon.run(watchers, Ending::caught()?, |_| {})
}

/// Finds and opens a fabric's port, so that what is wrong is told before anything is served.
fn prepare(
    daemon: &mut Daemon<'_>,
    settings: &Settings,
    slot: usize,
    clock: Clock,
) -> Result<(Watcher, SyncSender<PortEvent>), Fatal> {
    let fabric = &settings.fabrics[slot];
    let (sysfs, p_key) = (settings.sysfs.clone(), fabric.p_key);
    let (port, wire) =
        Umad::open_first(&sysfs, fabric.hca.as_deref(), fabric.port, fabric.p_key, clock)
            .map_err(|error| Fatal::new(Exit::NoDevice, error))?;
    let monitor = daemon.monitor(slot)?;
    tracing::info!(fabric = fabric.name, hca = port.hca, port = port.port, "asking the fabric");
    let events = monitor.event_sender();
    let watcher = Watcher {
        thread: format!("umad-{}-{}", port.hca, port.port),
        watch: Box::new(move || {
            monitor.run(wire, || {
                // The same port: another one may lead to another fabric.
                Umad::open_first(&sysfs, Some(&port.hca), Some(port.port), p_key, clock)
                    .map(|(_, wire)| wire)
            });
        }),
        wake: None,
    };
    Ok((watcher, events))
}
