//! `demo`: monitors a simulated fabric and serves its metrics.

mod browser;
mod jobs;
mod mlx5;
mod own_host;
mod past;
mod roce;

use std::convert::Infallible;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Arg, Args};
use tempfile::TempDir;

use crate::config::options::{
    CollectorOptions, FabricOptions, HealthOptions, HistoryOptions, HostOptions, JobsOptions,
    LogOptions, NotifyOptions, Options, ProcessOptions, WebOptions,
};
use crate::config::{FabricSettings, Settings};
use crate::log::LogFilter;
use fabric_dumps::Format;
use ib_mad::Moment;
use ib_mad::node::NodeKind;
use ib_sim::net::Net;
use ib_sim::scenario::{
    MAX_TOPOLOGY_BYTES, Overrides, OwnHost, ResolvedScenario, Scenario, TimedChange,
};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, lock, share};
use process_clock::Clock;
use yaml_config::units::ByteSize;

use super::daemon::{Daemon, ShutdownSignals, Worker};
use crate::exit::Fatal;
use browser::Browser;
use own_host::SimulatedHost;
use past::Past;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter demo --open
  fabric-exporter demo --speedup 10 --clock 10
  fabric-exporter demo --hosts 5000
  fabric-exporter demo --topology my-fabric.topo    # written by ibnetdiscover
  fabric-exporter demo --topology xdr
  fabric-exporter demo --hosts 500 --scenario tests/scenarios/bad-cable.yml

Then run \"fabric-exporter links --url http://127.0.0.1:10315\". Ctrl-C stops the demo.";

const TOUR: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/tour.md");

/// The arguments of `demo`. Those of `serve` have other defaults here, and no device is used.
#[derive(Args, Debug)]
#[command(
    after_long_help = EXAMPLES,
    mut_arg("listen_address", |arg| other_default(arg, "Listen address [default: 127.0.0.1:10315]")),
    mut_arg("level", |arg| other_default(arg, "Minimum log level [default: warn]")),
    mut_arg("interval", |arg| other_default(arg, "Sweep interval [default: 5s]")),
    mut_arg("file", |arg| other_default(
        arg, "Record each sweep in this file [default: a temporary file]")),
    mut_arg("size", |arg| other_default(
        arg, "Size limit of that file [default: 1GiB; 64MiB if temporary]")),
    mut_arg("hca", |arg| arg.hide(true)),
    mut_arg("port", |arg| arg.hide(true)),
    mut_arg("smi_hca", |arg| arg.hide(true)),
    mut_arg("smi_port", |arg| arg.hide(true)),
)]
pub struct DemoArgs {
    /// YAML file with a fabric and a timeline of faults
    ///
    /// The built-in scenario has a bad cable, a flapping link, a slow receiver, a PFC storm, a reboot and cleared
    /// counters. With --topology FILE the default is traffic without faults.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Use the fabric of a dump or of an ibsim file, or a multi-plane one (xdr)
    ///
    /// Instead of the fabric of the scenario. Dumps: db_csv, lst and net_dump of ibdiagnet2, ibnetdiscover [-p], and
    /// iblinkinfo. xdr is a small fabric of XDR switches with faults of planes; no such fabric was observed.
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Number of hosts [default: as in the scenario]
    ///
    /// From 2 to 30000 for the built-in scenario, which has three switch levels above 1920 hosts. Other scenarios must
    /// have a fat tree.
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Play the events of the scenario X times as fast
    ///
    /// From 0.1 to 10000. Counters increase at their normal rates.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    speedup: f64,
    /// Let simulated time run X times as fast
    ///
    /// From 1 to 100. Speeds up events, counters and sweeps; timestamps run ahead of real time.
    #[arg(long, value_name = "X", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    clock: u32,
    /// Open the pages in a browser
    ///
    /// With xdg-open, or with the command in the environment variable BROWSER.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    fabric: FabricOptions,
    #[command(flatten)]
    health: HealthOptions,
    #[command(flatten)]
    history: HistoryOptions,
    /// Do not record a history
    #[arg(long, conflicts_with = "HistoryOptions")]
    no_history: bool,
    /// Do not record a past before the start
    ///
    /// By default the history begins two and a half hours before the start, a link flapped and a bad cable was replaced
    /// in that time, and all links are learned. There is no past either with another scenario or topology, more than 50
    /// hosts, --fabric.capture, --fabric.totals-from, --history.file or --no-history.
    #[arg(long)]
    no_past: bool,
    #[command(flatten)]
    jobs: JobsOptions,
    #[command(flatten)]
    notify: NotifyOptions,
    #[command(flatten)]
    web: WebOptions,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    process: ProcessOptions,
}

/// The value of --topology for the built-in multi-plane fabric. A file of that name is `./xdr`.
const XDR: &str = "xdr";

/// The nodes and cables of a dump or of an ibsim file.
fn topology(path: &Path) -> Result<Net, Fatal> {
    let wrong =
        |error: &dyn Display| Fatal::usage(format!("--topology: {}: {error}", path.display()));
    let bytes = yaml_config::file::read(path, MAX_TOPOLOGY_BYTES).map_err(|error| wrong(&error))?;
    let text = String::from_utf8_lossy(&bytes);
    let parsed = ib_sim::net::file::parse(&text);
    let formats = if parsed.is_ok() { Vec::new() } else { fabric_dumps::formats(&bytes) };
    if formats.is_empty() {
        return parsed.map_err(|error| wrong(&error));
    }
    match fabric_dumps::read(&[path.to_owned()]) {
        Ok(dumps) => ib_sim::net::file::parse(&dumps.dumps[0].to_ibnetdiscover())
            .map_err(|error| wrong(&error)),
        // A net file with a mistake: the simulator knows that format better.
        Err(_) if formats == [Format::IbNetDiscover] => parsed.map_err(|error| wrong(&error)),
        Err(error) => Err(Fatal::usage(format!("--topology: {error}"))),
    }
}

/// Runs until SIGTERM or SIGINT, or until the terminal is closed (SIGHUP).
pub fn run(args: DemoArgs) -> Result<(), Fatal> {
    let FabricOptions { from, hca, port, smi_hca, smi_port, .. } = &args.fabric;
    if from.is_some() {
        let problem = "the demo has a simulated fabric: run serve with this option";
        return Err(Fatal::usage(format!("--fabric.from: {problem}")));
    }
    if hca.is_some() || port.is_some() || smi_hca.is_some() || smi_port.is_some() {
        let problem = "the demo uses no HCA: its scenario selects the simulated port (seat)";
        let options = "--fabric.hca, --fabric.port, --fabric.smi-hca, --fabric.smi-port";
        return Err(Fatal::usage(format!("{options}: {problem}")));
    }
    let is_xdr = args.topology.as_deref() == Some(Path::new(XDR));
    let scenario = match (&args.scenario, &args.topology) {
        (Some(path), _) => Scenario::read(path),
        (None, Some(_)) if is_xdr => Scenario::demo_xdr(),
        // The built-in scenario names nodes that another fabric may not have.
        (None, Some(path)) => {
            Scenario::parse(&path.display().to_string(), "about: Traffic without faults")
        }
        (None, None) => Scenario::demo(args.hosts),
    };
    let is_built_in = args.scenario.is_none() && args.topology.is_none();
    // The built-in scenario has them already.
    let hosts = args.hosts.filter(|_| !is_built_in);
    let fabric = args.topology.filter(|_| !is_xdr);
    let overrides = Overrides { fabric, hosts, speedup: args.speedup, clock: args.clock };
    let scenario = scenario.map_err(Fatal::usage)?;
    // Wrong settings are reported before the file is read.
    scenario.source(&overrides).map_err(Fatal::usage)?;
    let resolved = match &overrides.fabric {
        Some(path) => scenario.resolve_on(topology(path)?, &overrides),
        None if is_xdr => {
            let net = Scenario::demo_xdr().and_then(|xdr| xdr.net(&overrides));
            net.and_then(|net| scenario.resolve_on(net, &overrides))
        }
        None => scenario.resolve(&overrides),
    };
    let mut resolved = resolved.map_err(Fatal::usage)?;
    let has_past = is_built_in
        && !args.no_past
        && !args.no_history
        && args.hosts.is_none_or(|hosts| hosts <= past::MOST_HOSTS)
        // That file may be of something else, and must be true.
        && args.history.file.is_none()
        && args.fabric.totals_from.is_none()
        // It is of what is sent while the demo runs.
        && args.fabric.capture.is_none();
    let jobs =
        if is_built_in { jobs::take_traffic(&mut resolved, past::LENGTH) } else { Vec::new() };
    let past = has_past.then(|| Scenario::demo_past(args.hosts));
    let past = past.map(|past| past?.resolve_on(resolved.net.clone(), &Overrides::default()));
    let past = past.transpose().map_err(Fatal::usage)?.map(|past| past.changes);
    // Before the temporary folder is made: an early signal must not leave it behind.
    let signals = match args.web.config_file {
        // SIGHUP reloads that file.
        Some(_) => ShutdownSignals::install()?,
        None => ShutdownSignals::of_terminal()?,
    };
    let browser = args.open.then(Browser::prepare);
    let (history, folder) =
        if args.no_history { (args.history, None) } else { with_history(args.history) };
    let fabric =
        args.fabric.over(FabricOptions { interval: "5s".parse().ok(), ..FabricOptions::default() });
    let options = Options {
        web: args.web.over(WebOptions {
            listen_address: Some(vec!["127.0.0.1:10315".into()]),
            ..WebOptions::default()
        }),
        process: args.process,
        history,
        log: args
            .log
            .over(LogOptions { level: Some(LogFilter::warnings()), ..LogOptions::default() }),
        // The simulated devices have no events. Those of the real host are not read.
        host: HostOptions { events: Some(false), ..HostOptions::default() },
        fabric,
        health: args.health,
        jobs: args.jobs,
        notify: args.notify,
        collector: CollectorOptions {
            host: Some(resolved.own_host.is_some()),
            ..CollectorOptions::default()
        },
        ..Options::default()
    };
    let mut settings = Settings::load(options, None).map_err(Fatal::usage)?;
    // The devices show the counters of the fabric. An interval that is too short is one mistake, not two.
    if let (Some(host), Some(fabric)) = (&mut settings.host, settings.fabrics.first()) {
        host.interval = fabric.interval;
    }
    split_planes(&mut settings, resolved.local_ports.len())?;
    let about = scenario.about().to_owned();
    let mut daemon = Daemon::new(&settings)?;
    daemon.temporary = folder.as_ref().map(TempDir::path);
    let story = Story { resolved, about, jobs, past: past.filter(|_| folder.is_some()) };
    run_daemon(daemon, story, args.clock, browser, signals)
}

/// What happens in a demo.
struct Story {
    resolved: ResolvedScenario,
    about: String,
    /// Changes of the traffic, from the begin of the past on.
    jobs: Vec<TimedChange>,
    /// The events of the past, if it is recorded.
    past: Option<Vec<TimedChange>>,
}

impl Story {
    /// What happens from the begin of the simulation on. Without a past it begins with the jobs that run at its end.
    fn take_actions(&mut self) -> Vec<TimedChange> {
        let mut actions = std::mem::take(&mut self.jobs);
        if let Some(past) = self.past.take() {
            actions.extend(past);
        } else {
            for job in &mut actions {
                job.at = job.at.saturating_sub(past::LENGTH);
            }
            actions.append(&mut self.resolved.changes);
        }
        actions.sort_by_key(|action| action.at);
        actions
    }
}

/// Sets the help of an option that has another default here.
fn other_default(arg: Arg, help: &'static str) -> Arg {
    arg.help(help).long_help(Resettable::Reset)
}

/// The history of a demo: pages show more with one. Without a file of the user's it is in a temporary folder,
/// which is removed when the second value is dropped. If there can be no such folder, there is no history.
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

/// Makes one fabric for each plane, with its number in the name.
fn split_planes(settings: &mut Settings, planes: usize) -> Result<(), Fatal> {
    let Some(one) = settings.fabrics.first().cloned().filter(|_| planes > 1) else { return Ok(()) };
    if one.capture.is_some() {
        let problem =
            "--fabric.capture: the scenario has several planes, and a capture file holds only one";
        return Err(Fatal::usage(problem));
    }
    settings.fabrics = (0..planes)
        .map(|plane| FabricSettings { name: format!("{}-{plane}", one.name), ..one.clone() })
        .collect();
    Ok(())
}

fn run_daemon(
    mut daemon: Daemon<'_>,
    mut story: Story,
    speed: u32,
    browser: Option<Browser>,
    mut signals: ShutdownSignals,
) -> Result<(), Fatal> {
    let has_past = story.past.is_some();
    let actions = story.take_actions();
    let Story { resolved: mut scenario, about, .. } = story;
    let (local_ports, settings) = (scenario.local_ports.clone(), daemon.settings);
    let nodes = &scenario.net.nodes;
    let switches = nodes.iter().filter(|node| node.kind == NodeKind::Switch).count();
    let about = if about.is_empty() { String::new() } else { format!("{about}.\n") };
    let mut own_host = settings.host.as_ref().zip(scenario.own_host.take());
    let begin = format!(
        "\n{about}Simulated fabric: {switches} switches, {} HCAs. Open in a browser:\n",
        nodes.len() - switches
    );
    // The simulation takes the scenario; its flows are too many for a copy.
    let descriptions = std::mem::take(&mut scenario.descriptions);
    // With a past, what happens from now on is scheduled when that is over.
    let later = std::mem::replace(&mut scenario.changes, actions);
    let mut monitors = (0..local_ports.len())
        .map(|fabric_index| daemon.monitor(fabric_index))
        .collect::<Result<Vec<_>, Fatal>>()?;
    // The scenario starts with this clock.
    let mut clock = Clock::accelerated(speed);
    if has_past {
        clock = clock.beginning_at(Moment::default() + past::LENGTH);
    }
    let simulation = share(Simulation::new(scenario));
    let devices =
        |own_host: &OwnHost| SimulatedHost::new(simulation.clone(), own_host.clone(), clock);
    let mut host = own_host
        .as_ref()
        .map(|(host, own_host)| daemon.host_monitor(host, Box::new(devices(own_host)), clock));
    if let Some((monitor, &port)) =
        monitors.first_mut().zip(local_ports.first()).filter(|_| has_past)
    {
        // So that an address that is not free is reported at once.
        daemon.listen()?;
        let calm = |own_host: &OwnHost| devices(&OwnHost { pfc_storm: None, ..own_host.clone() });
        let host = host.as_mut().zip(own_host.as_ref().map(|(_, own_host)| calm(own_host)));
        let interval = settings.fabrics[0].interval;
        let past = Past { simulation: simulation.clone(), port, clock, monitor, interval, host };
        if !past.record(&mut daemon, &mut signals)? {
            return Ok(());
        }
        let now = clock.now();
        lock(&simulation).schedule(now, later);
        if let Some((_, OwnHost { pfc_storm: Some(storm), .. })) = &mut own_host {
            *storm += now.since(Moment::default());
        }
    }
    let mut workers: Vec<Worker> = (monitors.into_iter().zip(local_ports).enumerate())
        .map(|(fabric_index, (monitor, port))| {
            let simulation = simulation.clone();
            let open = move || SimTransport::new(simulation.clone(), port, SimClock::Real(clock));
            Worker {
                thread: format!("sim-{fabric_index}"),
                run: Box::new(move || monitor.run(open(), || Ok::<_, Infallible>(open()))),
            }
        })
        .collect();
    if let Some((mut monitor, (_, own_host))) = host.zip(own_host) {
        // The storm is in the future now.
        monitor.devices = Box::new(devices(&own_host));
        workers.push(Daemon::run_host(monitor));
    }
    daemon.run(workers, signals, |addresses| {
        // With a closed pipe the demo still runs.
        let _ = introduce(&begin, &descriptions, speed, addresses, settings);
        if let Some((browser, address)) = browser.zip(addresses.first()) {
            browser.open(&format!("{address}/"));
        }
    })
}

/// Prints what is monitored, the addresses, and what will happen.
fn introduce(
    begin: &str,
    descriptions: &[(Duration, String)],
    speed: u32,
    addresses: &[String],
    settings: &Settings,
) -> io::Result<()> {
    let metrics = &settings.telemetry_path;
    let mut out = BufWriter::new(io::stdout().lock());
    out.write_all(begin.as_bytes())?;
    for address in addresses {
        writeln!(out, "  {address}/          overview and worst links")?;
        writeln!(out, "  {address}/topology  topology")?;
        writeln!(out, "  {address}/events    recorded events")?;
        if settings.host.is_some() {
            writeln!(out, "  {address}/host      devices of the host that it runs on")?;
        }
        writeln!(out, "  {address}{metrics:<9}  metrics for Prometheus")?;
    }
    if !descriptions.is_empty() {
        writeln!(out, "Timeline of faults (minutes:seconds from now):")?;
    }
    for (at, what) in descriptions {
        let seconds = (*at / speed).as_secs();
        let clock = format!("{}:{:02}", seconds / 60, seconds % 60);
        writeln!(out, "  {clock:>6}  {what}")?;
    }
    if let Some(address) = addresses.first() {
        write!(
            out,
            "List suspect links:\n  fabric-exporter links --suspect --url {address}\n\
             Tour: {TOUR}\nPress Ctrl-C to stop.\n\n"
        )?;
    }
    out.flush()
}
