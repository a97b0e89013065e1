//! `demo`: monitors a simulated fabric and serves its metrics.

use std::convert::Infallible;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tempfile::TempDir;

use crate::config::options::{
    CollectorOptions, FabricOptions, HistoryOptions, LogLevel, LogOptions, Options, ProcessOptions,
    WebOptions,
};
use crate::config::{FabricSettings, Settings};
use ib_mad::clock::Clock;
use ib_mad::node::NodeKind;
use ib_sim::scenario::{Overrides, ResolvedScenario, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, share};
use site_config::units::ByteSize;

use super::Fatal;
use super::daemon::{Daemon, ShutdownSignals, Worker};

/// The arguments of `demo`. Those of `serve` have other defaults here, and no device is used.
#[derive(Args, Debug)]
#[command(
    mut_arg("listen_address", |arg| arg.help(
        "Address to listen on; may be repeated [default: 127.0.0.1:10315]")),
    mut_arg("level", |arg| arg.help("Log this and what is graver [default: warn]")),
    mut_arg("interval", |arg| arg.help(
        "From one sweep of all counters to the next [default: 5s]")),
    mut_arg("file", |arg| arg.help(
        "File to record each sweep in [default: a temporary one, which goes with the demo]")),
    mut_arg("size", |arg| arg.help(
        "Size that the file is kept below [default: 1GiB; of a temporary one 64MiB]")),
    mut_arg("hca", |arg| arg.hide(true)),
    mut_arg("port", |arg| arg.hide(true)),
)]
pub struct DemoArgs {
    /// YAML file with a scenario: a fabric and what happens to it [default: one cable going bad,
    /// one link flapping, one congested host; with --topology, nothing but traffic]
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Fabric to use instead of the scenario's: a file that ibnetdiscover printed, or ibsim's
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Number of hosts instead of the scenario's
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Let the story unfold so many times as fast; rates stay as they are
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    speedup: f64,
    /// Let the simulated clock run so many times as fast as ours: the story, the counters, the
    /// sweeps and what is made of them; times in metrics run ahead with it
    #[arg(long, value_name = "X", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    clock: u32,
    #[command(flatten)]
    web: WebOptions,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    process: ProcessOptions,
    #[command(flatten)]
    history: HistoryOptions,
    /// Record nothing
    #[arg(long, conflicts_with = "HistoryOptions")]
    no_history: bool,
    #[command(flatten)]
    fabric: FabricOptions,
}

/// Runs until SIGTERM or SIGINT.
pub fn run(args: DemoArgs) -> Result<(), Fatal> {
    if args.fabric.hca.is_some() || args.fabric.port.is_some() {
        let problem = "a fabric that is not there is asked from the scenario's seat";
        return Err(Fatal::usage(format!("--fabric.hca, --fabric.port: {problem}")));
    }
    let scenario = match (&args.scenario, &args.topology) {
        (Some(path), _) => Scenario::read(path),
        // The built-in scenario names nodes that another fabric may not have.
        (None, Some(path)) => Scenario::parse(
            &path.display().to_string(),
            "about: Traffic flows, and nothing goes wrong",
        ),
        (None, None) => Scenario::demo(),
    };
    let overrides = Overrides { fabric: args.topology, hosts: args.hosts, speedup: args.speedup };
    let scenario = scenario.map_err(Fatal::usage)?;
    let built_in = args.scenario.is_none() && overrides.fabric.is_none();
    let resolved = scenario.resolve(&overrides).map_err(|error| {
        let fewest = built_in.then(|| fewest_hosts(&scenario)).flatten();
        match fewest.filter(|fewest| overrides.hosts.is_some_and(|hosts| hosts < *fewest)) {
            Some(fewest) => {
                Fatal::usage(format!("--hosts: the built-in story needs at least {fewest} hosts"))
            }
            None => Fatal::usage(error),
        }
    })?;
    // Before the temporary folder is made: an early signal must not leave it behind.
    let signals = ShutdownSignals::install()?;
    let (history, folder) =
        if args.no_history { (args.history, None) } else { with_history(args.history) };
    let options = Options {
        web: args.web.over(WebOptions {
            listen_address: Some(vec!["127.0.0.1:10315".into()]),
            ..WebOptions::default()
        }),
        process: args.process,
        history,
        log: args.log.over(LogOptions { level: Some(LogLevel::Warn), ..LogOptions::default() }),
        fabric: args
            .fabric
            .over(FabricOptions { interval: "5s".parse().ok(), ..FabricOptions::default() }),
        // Without this host's own devices.
        collector: CollectorOptions { host: Some(false), ..CollectorOptions::default() },
        ..Options::default()
    };
    let mut settings = Settings::load(options, None).map_err(Fatal::usage)?;
    split_planes(&mut settings, resolved.local_ports.len())?;
    let about = scenario.about().to_owned();
    let mut daemon = Daemon::new(&settings)?;
    daemon.temporary = folder.as_ref().map(TempDir::path);
    run_daemon(daemon, resolved, &about, args.clock, signals)
}

/// The history of a demo: pages show more with one. Without a file of the user's it is in a
/// temporary folder, which is removed when the second value is dropped. If there can be no such
/// folder, there is no history.
fn with_history(history: HistoryOptions) -> (HistoryOptions, Option<TempDir>) {
    if history.file.is_some() {
        return (history, None);
    }
    let folder = tempfile::Builder::new().prefix("fabric-exporter-demo-").tempdir().ok();
    let file = folder.as_ref().map(|folder| folder.path().join("history.db"));
    // A temporary folder may be in memory.
    let usual =
        HistoryOptions { file, size: Some(ByteSize(64 << 20)), ..HistoryOptions::default() };
    (history.over(usual), folder)
}

/// The least number of hosts with which all names of a scenario exist.
fn fewest_hosts(scenario: &Scenario) -> Option<u32> {
    let is_resolved = |hosts: &u32| {
        let overrides = Overrides { hosts: Some(*hosts), ..Overrides::default() };
        scenario.resolve(&overrides).is_ok()
    };
    (1..=100).find(is_resolved)
}

/// Makes one fabric for each plane, with its number in the name.
fn split_planes(settings: &mut Settings, planes: usize) -> Result<(), Fatal> {
    let Some(one) = settings.fabrics.first().cloned().filter(|_| planes > 1) else { return Ok(()) };
    if one.capture.is_some() {
        let problem = "--fabric.capture: the scenario has several planes, and a capture holds one";
        return Err(Fatal::usage(problem));
    }
    settings.fabrics = (0..planes)
        .map(|plane| FabricSettings { name: format!("{}-{plane}", one.name), ..one.clone() })
        .collect();
    Ok(())
}

fn run_daemon(
    mut daemon: Daemon<'_>,
    mut scenario: ResolvedScenario,
    about: &str,
    speed: u32,
    signals: ShutdownSignals,
) -> Result<(), Fatal> {
    let (local_ports, settings) = (scenario.local_ports.clone(), daemon.settings);
    // The simulation takes the scenario; its flows are too many for a copy.
    let begin = beginning(&scenario, about);
    let descriptions = std::mem::take(&mut scenario.descriptions);
    // The scenario starts with this clock.
    let clock = SimClock::Real(Clock::accelerated(speed));
    let simulation = share(Simulation::new(scenario));
    let workers = local_ports
        .iter()
        .enumerate()
        .map(|(fabric_index, &port)| {
            let (monitor, simulation) = (daemon.monitor(fabric_index)?, simulation.clone());
            let open = move || SimTransport::new(simulation.clone(), port, clock);
            Ok(Worker {
                thread: format!("sim-{fabric_index}"),
                run: Box::new(move || monitor.run(open(), || Ok::<_, Infallible>(open()))),
                wake: None,
            })
        })
        .collect::<Result<_, Fatal>>()?;
    daemon.run(workers, signals, |addresses| {
        // With a closed pipe the demo still runs.
        let _ = introduce(&begin, &descriptions, speed, addresses, &settings.telemetry_path);
    })
}

/// The first lines: what is monitored.
fn beginning(scenario: &ResolvedScenario, about: &str) -> String {
    let is_switch = |kind| kind == NodeKind::Switch;
    let switches = scenario.net.nodes.iter().filter(|node| is_switch(node.kind)).count();
    let adapters = scenario.net.nodes.len() - switches;
    let about = if about.is_empty() { String::new() } else { format!("{about}.\n") };
    format!(
        "\n{about}A simulated fabric of {adapters} adapters and {switches} switches is being \
         watched; nothing of it is real. See\n"
    )
}

/// Prints what is monitored, the addresses, and what will happen.
fn introduce(
    begin: &str,
    descriptions: &[(Duration, String)],
    speed: u32,
    addresses: &[String],
    metrics: &str,
) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    out.write_all(begin.as_bytes())?;
    for address in addresses {
        writeln!(out, "  {address}/          the fabric at a glance, and its worst cables")?;
        writeln!(out, "  {address}/topology  how it is wired")?;
        writeln!(out, "  {address}/events    what happened")?;
        writeln!(out, "  {address}{metrics:<9}  everything that is known, for Prometheus")?;
    }
    if !descriptions.is_empty() {
        writeln!(out, "What will happen, in minutes from now:")?;
    }
    for (at, what) in descriptions {
        let seconds = (*at / speed).as_secs();
        let clock = format!("{}:{:02}", seconds / 60, seconds % 60);
        writeln!(out, "  {clock:>6}  {what}")?;
    }
    if let Some(address) = addresses.first() {
        write!(
            out,
            "Which cables are it:\n  fabric-exporter links --suspect --url {address}\n\
             Watch what goes wrong:\n  curl -s {address}{metrics} | grep -E \
             '^infiniband.*(symbol_errors|link_downed|transmit_wait)' | grep -v ' 0$'\nCtrl-C ends \
             it.\n\n"
        )?;
    }
    out.flush()
}
