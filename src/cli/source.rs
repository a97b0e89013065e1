//! Where commands get the state of fabrics from: a running exporter, sweeps of their own, or dumps of other tools.
//! All three have the models of the API.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use clap::{Args, Command, Id};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::config::options::{CollectorOptions, FabricOptions, LogOptions, Options, PathOptions};
use crate::config::{FabricSettings, Settings};
use crate::history_client::{HistoryClient, Place, place_of};
use crate::log::LogFilter;
use crate::monitor::Monitor;
use crate::remote::one_line;
use crate::remote::{Access, Remote};
use fabric_api::model::{Hit, NodeDetail, Search};
use fabric_api::nodes::node_by_guid;
use fabric_api::route_desk::{ANSWER_TIMEOUT, RouteDesk, Unanswered};
use fabric_api::search::search;
use fabric_api::{Fabrics, Filter};
use fabric_history::model::time;
use fabric_history::settings::HistorySettings;
use fabric_history::{Reader, Source};
use fabric_observation::{Observation, SharedState};
use ib_fabric::reference::{Reference, join_blanks};
use ib_fabric::topology::LinkId;
use ib_mad::{Guid, PortKey};
use ib_umad::umad::Umad;
use process_clock::Clock;
use yaml_config::units::HumanDuration;

use super::daemon::Daemon;
use super::dumps::{self, ReadingArgs};
use super::leftovers::TemporaryFolder;
use super::past::{self, PastArgs};
use super::terminal::{Progress, printable};
use crate::exit::Fatal;

/// The longest time of `--for`.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 3600);

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest response: 162,000 ports make some 100 MB.
const MAX_BODY: u64 = 1 << 30;

/// The address of an exporter, or the settings of sweeps.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceArgs {
    /// Show only this fabric
    #[arg(long = "fabric", value_name = "NAME")]
    of_fabric: Option<String>,
    /// Config file of the "serve" command
    ///
    /// Options override its keys.
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Query a running exporter instead
    ///
    /// Address of the exporter, such as http://127.0.0.1:10315. A running exporter knows more than a
    /// single sweep shows, because it has observed the links for longer.
    #[arg(long, value_name = "URL", help_heading = "Remote exporter",
          conflicts_with_all = sweep_options())]
    pub url: Option<String>,
    #[command(flatten)]
    pub access: Access,
    #[command(flatten)]
    fabric: FabricOptions,
    #[command(flatten)]
    path: PathOptions,
}

/// For how long is swept, or what is read instead.
#[derive(Args, Clone, Debug, Default)]
pub struct OnceArgs {
    /// Keep sweeping for this time [default: one sweep]
    ///
    /// Bit error ratios need several sweeps: a single sweep gives only counts and states. A
    /// verdict of ok takes about 4 minutes at EDR and 10 minutes at NDR, where fewer errors are allowed.
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "url")]
    watch_for: Option<HumanDuration>,
    /// Judge dumps of other tools instead of sweeping
    ///
    /// Files or directories: db_csv, lst, net_dump, pm and cables of ibdiagnet2, and the output of ibnetdiscover,
    /// iblinkinfo, ibqueryerrors and perfquery. Files of one directory are combined. If two dumps contain the same kinds
    /// of counters, error rates are computed. What a dump does not contain is unknown.
    #[arg(id = "dumps", long = "from", value_name = "PATH", num_args = 1.., conflicts_with_all = ["url", "watch_for"],
          help_heading = "Dumps")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    past: PastArgs,
}

/// The options of a sweep of its own, each by itself: for a group clap would list all of its members in an error.
fn sweep_options() -> Vec<Id> {
    let options = FabricOptions::augment_args(PathOptions::augment_args(Command::new("links")));
    let options = options.get_arguments().map(|option| option.get_id().clone());
    options.chain([Id::from("config_file")]).collect()
}

/// The state of fabrics, as it is now or was at one time.
#[derive(Debug)]
pub struct FabricSource {
    kind: Kind,
    /// Only this fabric.
    pub fabric: Option<String>,
    history: Option<History>,
    /// What was read, for standard error.
    pub notes: Vec<String>,
    /// What was not used of it, which JSON does not say either.
    pub unused: Vec<String>,
    /// What to do to get more.
    pub hint: Option<&'static str>,
}

#[derive(Debug)]
enum Kind {
    Exporter {
        remote: Remote,
        /// The same, for questions that the exporter's monitor answers between sweeps.
        slow: Remote,
        is_live: bool,
        /// The moment of the past that is shown.
        at: Option<SystemTime>,
    },
    Sweeps(Sweeps),
    Dumps(SharedState),
    /// A moment of a history file.
    File(SharedState),
}

/// Where events are.
#[derive(Debug)]
enum History {
    Exporter(HistoryClient),
    /// In a file in this folder, which is deleted in the end.
    Own(TemporaryFolder),
    /// In a file.
    File(PathBuf),
}

fn bad_url(problem: impl std::fmt::Display) -> Fatal {
    Fatal::usage(format!("--url: {problem}"))
}

/// What to do after a single sweep.
pub(super) const SINGLE_SWEEP: &str =
    "for bit error ratios use --for 1m, or --url of a running exporter";

impl SourceArgs {
    /// An exporter, or sweeps that continue; the first one of each fabric has not ended yet. If `is_live`, with events:
    /// those of the exporter, or of what is swept from now on. Then nothing is logged, and no progress is shown: that would
    /// garble a screen.
    pub fn start(
        self,
        longest: Duration,
        is_live: bool,
        past: &PastArgs,
    ) -> Result<FabricSource, Fatal> {
        let fabric = self.of_fabric.clone();
        let at = past.at()?;
        let (kind, history) = if let Some((file, at)) = past.file.as_ref().zip(at) {
            let (state, notes) = past::read(file, at)?;
            let history = Some(History::File(file.clone()));
            let (kind, unused, hint) = (Kind::File(state), Vec::new(), None);
            return Ok(FabricSource { kind, fabric, history, notes, unused, hint });
        } else if let Some(url) = &self.url {
            let remote = Remote::new(url, &self.access, TIMEOUT, TIMEOUT).map_err(bad_url)?;
            let history = is_live.then(|| HistoryClient::new(url, &self.access)).transpose();
            let within = ANSWER_TIMEOUT + TIMEOUT;
            let slow = Remote::new(url, &self.access, TIMEOUT, within).map_err(bad_url)?;
            let kind = Kind::Exporter { remote, slow, is_live, at };
            (kind, history.map_err(bad_url)?.map(History::Exporter))
        } else if at.is_some() {
            let problem = "--at: needs --url of an exporter that records a history, or --file";
            return Err(Fatal::usage(problem));
        } else {
            let folder = is_live.then(|| TemporaryFolder::new("fabric-exporter-")).transpose()?;
            let history = folder.as_ref().map(|folder| HistorySettings {
                // A temporary folder may be in memory.
                size: 64 << 20,
                ..HistorySettings::new(folder.path().join("top.db"))
            });
            let settings = Settings { history, ..self.settings()? };
            (Kind::Sweeps(Sweeps::start(settings, longest, !is_live)?), folder.map(History::Own))
        };
        Ok(FabricSource {
            kind,
            fabric,
            history,
            notes: Vec::new(),
            unused: Vec::new(),
            hint: None,
        })
    }

    /// A state that is complete: dumps are evaluated, and each fabric was swept. With an interval, sweeps continue.
    pub fn read(self, once: &OnceArgs, watch: Option<Duration>) -> Result<FabricSource, Fatal> {
        if !once.from.is_empty() {
            return self.read_dumps(once);
        }
        let length = once.watch_for.map(Duration::from).unwrap_or_default();
        // Events are found by comparing sweeps: there have to be several in this time.
        let longest = if length.is_zero() { watch.unwrap_or(Duration::MAX) } else { length / 4 };
        let mut source = self.start(longest.max(Duration::from_secs(1)), false, &once.past)?;
        if let Kind::Sweeps(sweeps) = &mut source.kind {
            let _progress = match length {
                Duration::ZERO => Progress::start("discovering and sweeping the fabric", None),
                length => Progress::start("sweeping the fabric", Some(length)),
            };
            sweeps.wait(length)?;
            source.hint = (length.is_zero() && watch.is_none()).then_some(SINGLE_SWEEP);
        }
        Ok(source)
    }

    fn read_dumps(self, once: &OnceArgs) -> Result<FabricSource, Fatal> {
        let read = dumps::read(&once.from, &once.reading)?;
        let hint = match &*read.dumps {
            [dump] if !dump.links.is_empty() => Some("for bit error ratios add a second dump"),
            dumps if dumps.iter().all(|dump| dump.links.is_empty()) => {
                Some("add a file with cables, such as the output of ibnetdiscover")
            }
            _ => None,
        };
        let (fabric, mut notes) = (self.of_fabric.clone(), dumps::notes(&read));
        let observation = dumps::judge(&read.dumps, &self.settings()?, |_| {})?;
        notes.extend(dumps::unjudged_rates(&observation).map(|note| format!("note: {note}")));
        let state = SharedState::from(vec![observation]);
        let unused = dumps::unused(&read);
        Ok(FabricSource { kind: Kind::Dumps(state), fabric, history: None, notes, unused, hint })
    }

    /// The settings of `serve` for the requested fabrics only.
    fn settings(self) -> Result<Settings, Fatal> {
        let options = Options {
            log: LogOptions { level: Some(LogFilter::warnings()), ..LogOptions::default() },
            path: self.path,
            collector: CollectorOptions {
                fabric: Some(true),
                no_fabric: Some(false),
                no_host: Some(true),
                ..CollectorOptions::default()
            },
            fabric: self.fabric,
            ..Options::default()
        };
        let mut settings =
            Settings::load(options, self.config_file.as_deref()).map_err(Fatal::usage)?;
        if let Some(wanted) = &self.of_fabric {
            let names: Vec<_> = settings.fabrics.iter().map(|fabric| fabric.name.clone()).collect();
            settings.fabrics.retain(|fabric| fabric.name == *wanted);
            if settings.fabrics.is_empty() {
                let names = names.join(", ");
                let problem = format!("--fabric: unknown fabric {wanted:?}; known: {names}");
                return Err(Fatal::usage(problem));
            }
        }
        Ok(settings)
    }
}

impl FabricSource {
    /// A model of the API: an exporter is queried for it; here `local` builds it.
    pub fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        filter: &Filter,
        local: impl FnOnce(&SharedState) -> T,
    ) -> Result<T, Fatal> {
        match &self.kind {
            Kind::Exporter { remote, is_live, at, .. } => {
                let waiting = || Progress::start(format!("waiting for {}", remote.name()), None);
                let _progress = (!is_live).then(waiting);
                let mut pairs = pairs(filter);
                pairs.extend(at.map(|at| ("at", time::text(at))));
                request(remote, path, &pairs)
            }
            Kind::Sweeps(sweeps) => Ok(local(&sweeps.states.borrow())),
            Kind::Dumps(state) | Kind::File(state) => Ok(local(state)),
        }
    }

    /// What the monitor of a fabric answers about routes: that of an exporter, or that of sweeps of this process. An error
    /// with dumps, which have no forwarding tables that could be asked for.
    pub fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        pairs: &[(&str, &str)],
        local: impl AsyncFnOnce(&RouteDesk, &Fabrics, Option<&str>) -> Result<T, Unanswered>,
    ) -> Result<T, Fatal> {
        let fabric = self.fabric.as_deref();
        match &self.kind {
            Kind::Exporter { at: Some(_), .. } | Kind::File(_) => Err(Fatal::usage(
                "--at: forwarding tables are not recorded: routes are known of the present only",
            )),
            Kind::Exporter { slow, .. } => {
                let of_fabric = fabric.map(|fabric| ("fabric", fabric));
                let pairs = pairs.iter().copied().chain(of_fabric);
                let pairs: Vec<_> = pairs.map(|(key, value)| (key, value.to_owned())).collect();
                let _progress = Progress::start(format!("waiting for {}", slow.name()), None);
                let read = slow.read(path, &pairs, MAX_BODY);
                asked(slow, path, read.map_err(|error| unreached(slow, &error))?)
            }
            Kind::Sweeps(sweeps) => {
                let runtime = runtime()?;
                let fabrics = sweeps.states.borrow().fabrics.clone();
                let _progress = Progress::start("reading forwarding tables", None);
                let answer = runtime.block_on(local(&sweeps.routes, &fabrics[..], fabric));
                answer.map_err(|why| match why {
                    Unanswered::NotFound(_) | Unanswered::TooMany(_) | Unanswered::Disabled(_) => {
                        Fatal::usage(printable(&why.to_string()))
                    }
                    why => Fatal::failed(why),
                })
            }
            Kind::Dumps(_) => Err(Fatal::usage(
                "--from: routes are read from the forwarding tables of switches, which dumps do not have: use --url of a \
                 running exporter, or sweep",
            )),
        }
    }

    /// A node with its ports, of one fabric or of all; empty if there is none.
    pub fn node(&self, guid: Guid, fabric: Option<&str>) -> Result<NodeDetail, Fatal> {
        let filter = Filter { fabric: fabric.map(str::to_owned), ..Filter::default() };
        self.get(&format!("/api/v1/nodes/{guid}"), &filter, |state| {
            node_by_guid(&state.fabrics, fabric, guid).unwrap_or_default()
        })
    }

    /// The name of an exporter, or what is read instead.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Exporter { remote, .. } => remote.name(),
            Kind::Sweeps(_) => "own sweeps",
            Kind::Dumps(_) => "dumps",
            Kind::File(_) => "history",
        }
    }

    /// Whether it is this program that sweeps.
    pub fn sweeps(&self) -> bool {
        matches!(self.kind, Kind::Sweeps(_))
    }

    /// The recorded events; none before the first sweep.
    pub fn history(&self) -> Result<Option<Box<dyn Source + '_>>, Fatal> {
        Ok(match &self.history {
            Some(History::Exporter(client)) => Some(Box::new(client.clone())),
            Some(History::Own(folder)) => {
                let file = folder.path().join("top.db");
                if file.exists() { Some(Box::new(Reader::open(&file)?)) } else { None }
            }
            Some(History::File(file)) => Some(Box::new(Reader::open(file)?)),
            None => None,
        })
    }

    /// The moment that is shown, if it is one of the past.
    pub fn at(&self) -> Option<SystemTime> {
        match &self.kind {
            Kind::Exporter { at, .. } => *at,
            Kind::File(state) => state.as_of,
            Kind::Sweeps(_) | Kind::Dumps(_) => None,
        }
    }

    /// Fails once a device of its own sweeps is gone.
    pub fn check(&self) -> Result<(), Fatal> {
        match &self.kind {
            Kind::Sweeps(sweeps) if sweeps.states.has_changed().is_err() => Err(device_lost()),
            _ => Ok(()),
        }
    }

    /// The nodes and ports that a text means, in any of its spellings. An error if there are none.
    pub fn places(&self, flag: &str, text: &str) -> Result<Vec<Place>, Fatal> {
        let reference = Reference::new(text);
        if let Some(LinkId { low: a, high: b }) = reference.link {
            return Ok([a, b].map(|port| (port.guid, Some(port.number))).to_vec());
        }
        let filter = Filter { q: text.to_owned(), ..Filter::default() };
        let found = match text {
            "" => Search::default(),
            text => self.get("/api/v1/search", &filter, |state| search(state, text))?,
        };
        let places = places_of(&reference, &found, self.fabric.as_deref());
        if places.is_empty() {
            let mut problem = format!("{flag}: {text:?} not found in {}", self.name());
            let similar: Vec<&str> = found.hits.iter().take(5).map(|hit| &*hit.name).collect();
            if !similar.is_empty() {
                problem = format!("{problem}; similar: {}", similar.join(", "));
            }
            return Err(Fatal::usage(printable(&problem)));
        }
        Ok(places)
    }
}

/// The hits of a search that are what a reference means.
fn places_of(reference: &Reference, found: &Search, fabric: Option<&str>) -> Vec<Place> {
    let hits = found.hits.iter().filter(|hit| fabric.is_none_or(|fabric| fabric == hit.fabric));
    // A name that several nodes share begins the names of all of them.
    let is_meant =
        |hit: &Hit, (guid, _): Place| hit.is_exact() || reference.is_node(&hit.name, guid);
    let meant = hits.filter_map(|hit| Some((hit, place_of(hit).filter(|it| is_meant(hit, *it))?)));
    let mut meant: Vec<(&Hit, Place)> = meant.collect();
    // Another name with more or fewer blanks is meant only if no node has this one.
    let text = &reference.text;
    let is_same = |hit: &Hit| hit.name.eq_ignore_ascii_case(text);
    if meant.iter().any(|(hit, _)| is_same(hit)) {
        let is_joined = |hit: &Hit| join_blanks(&hit.name).eq_ignore_ascii_case(&join_blanks(text));
        meant.retain(|(hit, _)| is_same(hit) || !is_joined(hit));
    }
    meant.into_iter().map(|(_, place)| place).collect()
}

/// Whether one of some places is this port.
pub fn is_at(places: &[Place], PortKey { guid, number: port }: PortKey) -> bool {
    places.iter().any(|(of, number)| *of == guid && number.is_none_or(|number| number == port))
}

/// The query parameters of a filter.
fn pairs(filter: &Filter) -> Vec<(&'static str, String)> {
    let flag = |is_set: bool| is_set.then(|| "true".to_owned());
    let one = [
        ("fabric", filter.fabric.clone()),
        ("node", filter.node.clone()),
        ("suspect", flag(filter.suspect)),
        ("down", flag(filter.down)),
        ("kind", filter.kind.map(str::to_owned)),
        ("q", Some(filter.q.clone()).filter(|text| !text.is_empty())),
        ("name", Some(filter.name.clone()).filter(|text| !text.is_empty())),
        ("limit", filter.limit.map(|limit| limit.to_string())),
    ];
    let one = one.into_iter().filter_map(|(key, value)| Some((key, value?)));
    one.chain(filter.verdicts.iter().map(|it| ("verdict", it.label().to_owned()))).collect()
}

/// Requests a model of an exporter by its address.
pub(super) fn query<T: DeserializeOwned>(
    url: &str,
    access: &Access,
    path: &str,
    filter: &Filter,
) -> Result<T, Fatal> {
    let remote = Remote::new(url, access, TIMEOUT, TIMEOUT).map_err(bad_url)?;
    let _progress = Progress::start(format!("waiting for {}", remote.name()), None);
    request(&remote, path, &pairs(filter))
}

/// Requests a model of an exporter.
fn request<T: DeserializeOwned>(
    remote: &Remote,
    path: &str,
    pairs: &[(&str, String)],
) -> Result<T, Fatal> {
    let read = remote.read(path, pairs, MAX_BODY);
    let (status, body) = read.map_err(|error| unreached(remote, &error))?;
    let advice = "--url must be the address of an exporter, such as http://127.0.0.1:10315";
    let what = path.rsplit('/').find(|part| !part.starts_with("0x")).unwrap_or(path);
    let problem = match status {
        200 => match serde_json::from_slice(&body) {
            Ok(model) => return Ok(model),
            Err(error) => format!("the response is not a list of {what} ({error}): {advice}"),
        },
        401 => "login required: use https://USER@HOST and --source.password-file".into(),
        // The exporter's own text says what is wrong with the request.
        400 => one_line(&String::from_utf8_lossy(&body)),
        // Nothing is recorded of a moment, or there is no history.
        404 if pairs.iter().any(|(key, _)| *key == "at") => {
            one_line(&String::from_utf8_lossy(&body))
        }
        status => format!("HTTP status {status}: {advice}"),
    };
    Err(Fatal::failed(format!("{}{path}: {problem}", remote.name())))
}

fn unreached(remote: &Remote, error: &ureq::Error) -> Fatal {
    let (name, reason) = (remote.name(), Remote::reason(error));
    Fatal::failed(format!("{name}: request failed: {reason}; is an exporter running there?"))
}

/// The answer of an exporter to a question about routes. Its own text says why there is none.
fn asked<T: DeserializeOwned>(
    remote: &Remote,
    path: &str,
    (status, body): (u16, Vec<u8>),
) -> Result<T, Fatal> {
    let text = || printable(&one_line(&String::from_utf8_lossy(&body)));
    match status {
        200 => serde_json::from_slice(&body).map_err(|error| {
            Fatal::failed(format!("{}{path}: unexpected response: {error}", remote.name()))
        }),
        401 => Err(Fatal::failed(format!(
            "{}{path}: login required: use https://USER@HOST and --source.password-file",
            remote.name()
        ))),
        400 | 404 => Err(Fatal::usage(format!("{}: {}", remote.name(), text()))),
        _ => Err(Fatal::failed(format!("{}: {}", remote.name(), text()))),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Fatal> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Fatal::failed_to("cannot start the runtime"))
}

/// Sweeps of this process, on threads of their own. Nothing is recorded: that is up to a running exporter.
#[derive(Debug)]
struct Sweeps {
    states: watch::Receiver<SharedState>,
    routes: RouteDesk,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Sweeps {
    /// Starts to sweep, at intervals of at most `longest`, and to record if the settings say so.
    fn start(mut settings: Settings, longest: Duration, logs: bool) -> Result<Self, Fatal> {
        for fabric in &mut settings.fabrics {
            *fabric = for_single_run(fabric, longest);
        }
        let mut daemon =
            if logs { Daemon::new(&settings)? } else { Daemon::without_log(&settings)? };
        let clock = Clock::start();
        let open = |fabric_index| {
            let (_, transport, monitor) = daemon.open(fabric_index, clock)?;
            Ok((monitor, transport))
        };
        let ready = (0..settings.fabrics.len()).map(open).collect::<Result<Vec<_>, Fatal>>()?;
        // Only the monitors hold the board after this: it closes with the last of them.
        let recording = daemon.recording()?;
        let Daemon { states: sender, stop, questions, .. } = daemon;
        let states = sender.subscribe();
        let run = |(monitor, transport): (Monitor, Umad)| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                monitor.run(transport, || {
                    // A daemon waits for its device to return; this run ends.
                    stop.store(true, Ordering::Relaxed);
                    Err::<Umad, _>("a single run does not wait for it")
                });
            })
        };
        let mut threads: Vec<_> = ready.into_iter().map(run).collect();
        threads.extend(recording.map(|worker| std::thread::spawn(worker.run)));
        Ok(Sweeps { states, routes: RouteDesk::new(questions), stop, threads })
    }

    /// Waits until each fabric was swept, and the time is over.
    fn wait(&mut self, duration: Duration) -> Result<(), Fatal> {
        let runtime = runtime()?;
        let states = &mut self.states;
        runtime.block_on(async {
            // An instant has a maximum.
            let until = Instant::now() + duration.min(MAX_DURATION);
            let is_swept = |fabric: &Arc<Observation>| fabric.stats.sweeps > 0;
            let swept = states.wait_for(|state| state.fabrics.iter().all(is_swept)).await;
            swept.map_err(|_| device_lost())?;
            while let Ok(news) = timeout_at(until, states.changed()).await {
                news.map_err(|_| device_lost())?;
            }
            Ok(())
        })
    }
}

impl Drop for Sweeps {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic is on standard error.
            let _ = thread.join();
        }
    }
}

fn device_lost() -> Fatal {
    Fatal::failed("the device was lost during the sweep (see the log): try again")
}

/// The settings of a fabric for a run of this process. Counters are not cleared: their values would be lost
/// with this process, and be missing in the totals of a running exporter.
fn for_single_run(fabric: &FabricSettings, longest: Duration) -> FabricSettings {
    let interval = fabric.interval.min(longest);
    FabricSettings { interval, clear_saturated: false, totals_from: None, ..fabric.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    #[test]
    fn error_names_only_the_options_that_url_excludes() {
        for (given, says) in [
            (&["--fabric.hca=mlx5_0"][..], "'--fabric.hca <HCA>'"),
            (&["--path.sysfs=/sys"], "'--path.sysfs <DIR>'"),
            (&["--for=1m"], "'--for <DURATION>'"),
            (&["--config.file=c.yml"], "'--config.file <FILE>'"),
        ] {
            let url = ["fabric-exporter", "links", "--url=http://127.0.0.1:10315"];
            let error = Cli::try_parse_from([&url[..], given].concat()).unwrap_err().to_string();
            let line = format!("error: the argument '--url <URL>' cannot be used with {says}");
            assert_eq!(error.lines().next(), Some(&*line), "{error}");
            assert!(!error.contains("--fabric.gmp-window"), "{error}");
        }
    }

    #[test]
    fn single_run_does_not_clear_counters() {
        let fabric = FabricOptions { clear_saturated: Some(true), ..FabricOptions::default() };
        let options = Options { fabric, ..Options::default() };
        let settings = Settings::load(options, None).unwrap();
        let fabric = &settings.fabrics[0];
        assert!(fabric.clear_saturated);
        assert!(!for_single_run(fabric, Duration::MAX).clear_saturated);
        assert_eq!(for_single_run(fabric, Duration::MAX).interval, fabric.interval);
        let short = Duration::from_secs(2);
        assert_eq!(for_single_run(fabric, short).interval, short);
    }

    #[test]
    fn places_are_exact_hits_and_all_nodes_of_a_shared_name() {
        let hit = |kind: &'static str, name: &str, guid: u64, quality: &'static str| Hit {
            kind: kind.into(),
            fabric: "f".into(),
            name: name.into(),
            id: Guid(guid).to_string(),
            quality: quality.into(),
            ..Hit::default()
        };
        let hits = vec![
            hit("node", "Q2#a1b2c3", 0xa1_b2c3, "prefix"),
            hit("node", "Q2-x", 2, "prefix"),
            hit("port", "host port 3", 4, "exact"),
            Hit { fabric: "g".into(), ..hit("node", "Q2", 5, "exact") },
        ];
        let found = Search { found: hits.len(), hits, ..Search::default() };
        let places = |fabric| places_of(&Reference::new("q2"), &found, fabric);
        let of_f = [(Guid(0xa1_b2c3), None), (Guid(4), Some(3))];
        assert_eq!(places(Some("f")), of_f);
        assert_eq!(places(None)[2], (Guid(5), None));
        let twins = [hit("node", "a b", 7, "exact"), hit("node", "a  b", 8, "exact")];
        let twins = Search { found: twins.len(), hits: twins.to_vec(), ..Search::default() };
        for (text, guids) in [("a b", &[7][..]), ("A  b", &[8]), ("a   b", &[7, 8])] {
            let places = places_of(&Reference::new(text), &twins, None);
            let found: Vec<u64> = places.iter().map(|(guid, _)| guid.0).collect();
            assert_eq!(found, guids, "{text}");
        }
        assert!(is_at(&of_f, PortKey::new(Guid(4), 3)) && !is_at(&of_f, PortKey::new(Guid(4), 1)));
        assert!(
            is_at(&of_f, PortKey::new(Guid(0xa1_b2c3), 7))
                && !is_at(&of_f, PortKey::new(Guid(9), 3))
        );
    }
}
