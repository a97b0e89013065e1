//! `links`: the state of each link as a table or as JSON, by a sweep of its own or from a running exporter.

mod table;

use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args, Command, Id};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::api::links::links;
use crate::api::model::{Link, Links, Verdicts};
use crate::api::{Fabrics, Filter, LINKS};
use crate::config::options::{
    CollectorOptions, FabricOptions, LogLevel, LogOptions, Options, PathOptions,
};
use crate::config::{FabricSettings, Settings};
use crate::history_client::one_line;
use crate::monitor::Monitor;
use crate::remote::{Access, Remote};
use fabric_observation::{Observation, SharedState};
use ib_health::Verdict;
use ib_mad::clock::Clock;
use ib_mad::label::grouped;
use ib_umad::umad::Umad;
use site_config::units::HumanDuration;

use super::daemon::Daemon;
use super::{Fatal, closed_pipe_is_no_error, dumps, printable};
use table::Style;

/// The longest time of `--for`.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 3600);

/// The time limit of the request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest response: 162,000 ports make some 100 MB.
const MAX_BODY: u64 = 1 << 30;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter links --url http://127.0.0.1:10315 --suspect
  fabric-exporter links --for 1m
  fabric-exporter links --fabric.hca=mlx5_1 --json
  fabric-exporter links --from /var/tmp/ibdiagnet2 --suspect
  fabric-exporter links --from monday/ tuesday/

The table is on standard output, worst links first; a summary is on standard error. REASON is the
worst reason; (+2) means two more. COUNTS has the error counters of the ends A and B; a + after a
value means that the counter is saturated. The exit code does not depend on the verdicts.";

/// The arguments of `links`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct LinksArgs {
    /// List only suspect links
    ///
    /// Links whose verdict is bad or watch (degraded), and unknown links whose ports counted errors.
    #[arg(long)]
    suspect: bool,
    /// List only the links of this fabric
    #[arg(long = "fabric", value_name = "NAME")]
    of_fabric: Option<String>,
    /// List only the links of this node or host
    ///
    /// A node by its name or GUID. The name of a host selects all of its HCAs.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Write JSON, in the format of /api/v1/links
    #[arg(long)]
    json: bool,
    /// Keep sweeping for this time [default: one sweep]
    ///
    /// Bit error ratios need several sweeps: a single sweep gives only counts and states. A
    /// verdict of ok takes about 4 minutes at EDR and 10 minutes at NDR, where fewer errors are allowed.
    #[arg(long = "for", value_name = "DURATION")]
    watch_for: Option<HumanDuration>,
    /// Judge dumps of other tools instead of sweeping
    ///
    /// Files or directories: db_csv, lst, net_dump, pm and cables of ibdiagnet2, and the output of ibnetdiscover,
    /// iblinkinfo, ibqueryerrors and perfquery. Files of one directory complete each other. Two dumps with the same
    /// counters give error rates. What a dump does not contain is unknown.
    #[arg(long = "from", value_name = "PATH", num_args = 1.., conflicts_with_all = ["url", "watch_for"],
          help_heading = "Dumps")]
    from: Vec<PathBuf>,
    /// Time between the dumps, if the files do not contain it
    #[arg(long, value_name = "DURATION", requires = "from", help_heading = "Dumps")]
    between: Option<HumanDuration>,
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
    url: Option<String>,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    fabric: FabricOptions,
    #[command(flatten)]
    path: PathOptions,
}

/// The options of a sweep of its own, each by itself: for a group clap would list all of its members in an error.
fn sweep_options() -> Vec<Id> {
    let options = FabricOptions::augment_args(PathOptions::augment_args(Command::new("links")));
    let options = options.get_arguments().map(|option| option.get_id().clone());
    options.chain(["watch_for", "config_file", "from"].map(Id::from)).collect()
}

/// Prints the links.
pub fn run(args: LinksArgs) -> Result<(), Fatal> {
    let filter = Filter {
        suspect: args.suspect,
        fabric: args.of_fabric.clone(),
        node: args.node.clone(),
        ..Filter::default()
    };
    let json = args.json;
    let watch_for = args.watch_for.map(Duration::from);
    let mut notes = Vec::new();
    let mut hint = None;
    let found = match &args.url {
        Some(url) => remote(url, &filter, &args.access)?,
        None if !args.from.is_empty() => {
            let (paths, between) = (args.from.clone(), args.between.map(Duration::from));
            let read = dumps::read(&paths, between)?;
            notes = dumps::notes(&read);
            hint = match &*read {
                [dump] if !dump.links.is_empty() => Some("for bit error ratios add a second dump"),
                dumps if dumps.iter().all(|dump| dump.links.is_empty()) => {
                    Some("add a file with cables, such as the output of ibnetdiscover")
                }
                _ => None,
            };
            local(&[dumps::judge(&read, &settings(args)?, |_| {})?], &filter)?
        }
        None => {
            hint = watch_for.is_none().then_some(SINGLE_SWEEP);
            local(&sweep(settings(args)?, watch_for.unwrap_or_default())?, &filter)?
        }
    };
    let is_written = closed_pipe_is_no_error(write(&found, json))?;
    if is_written && !json {
        // The output is complete: an error here does not matter.
        let mut stderr = std::io::stderr();
        for note in notes {
            let _ = writeln!(stderr, "{note}");
        }
        let _ = writeln!(stderr, "{}", summary(&found, &filter, hint));
    }
    Ok(())
}

/// What to do after a single sweep.
const SINGLE_SWEEP: &str = "for bit error ratios use --for 1m, or --url of a running exporter";

/// The links of a sweep of our own or of dumps.
fn local(fabrics: &Fabrics, filter: &Filter) -> Result<Links, Fatal> {
    filter.check(fabrics).map_err(|problem| Fatal::usage(format!("--{problem}")))?;
    Ok(links(fabrics, filter))
}

/// Requests the links of the exporter at an address.
fn remote(url: &str, filter: &Filter, access: &Access) -> Result<Links, Fatal> {
    let remote = Remote::new(url, access, TIMEOUT, TIMEOUT)
        .map_err(|problem| Fatal::usage(format!("--url: {problem}")))?;
    let suspect = filter.suspect.then_some(("suspect", "true"));
    let fabric = filter.fabric.as_deref().map(|fabric| ("fabric", fabric));
    let node = filter.node.as_deref().map(|node| ("node", node));
    let read = || {
        let request = remote.get(LINKS).query_pairs(suspect.into_iter().chain(fabric).chain(node));
        let mut response = request.call()?;
        let body = response.body_mut().with_config().limit(MAX_BODY).read_to_vec()?;
        Ok((response.status().as_u16(), body))
    };
    let (status, body) = read().map_err(|error: ureq::Error| {
        let (name, reason) = (remote.name(), Remote::reason(&error));
        Fatal::failed(format!("{name}: request failed: {reason}; is an exporter running there?"))
    })?;
    let advice = "--url must be the address of an exporter, such as http://127.0.0.1:10315";
    let problem = match status {
        200 => match serde_json::from_slice(&body) {
            Ok(links) => return Ok(links),
            Err(error) => format!("the response is not a list of links ({error}): {advice}"),
        },
        401 => "login required: use https://USER@HOST and --source.password-file".into(),
        // The exporter's own text says what is wrong with the request.
        400 => one_line(&String::from_utf8_lossy(&body)),
        status => format!("HTTP status {status}: {advice}"),
    };
    Err(Fatal::failed(format!("{}{LINKS}: {problem}", remote.name())))
}

/// The settings of `serve` for the requested fabrics only.
fn settings(args: LinksArgs) -> Result<Settings, Fatal> {
    let options = Options {
        log: LogOptions { level: Some(LogLevel::Warn), ..LogOptions::default() },
        path: args.path,
        collector: CollectorOptions {
            fabric: Some(true),
            no_fabric: Some(false),
            no_host: Some(true),
            ..CollectorOptions::default()
        },
        fabric: args.fabric,
        ..Options::default()
    };
    let mut settings =
        Settings::load(options, args.config_file.as_deref()).map_err(Fatal::usage)?;
    if let Some(wanted) = &args.of_fabric {
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

/// Sweeps each fabric at least once, and until the duration is over. Nothing is recorded: that is up to a
/// running exporter.
fn sweep(mut settings: Settings, duration: Duration) -> Result<Vec<Arc<Observation>>, Fatal> {
    settings.history = None;
    for fabric in &mut settings.fabrics {
        *fabric = for_single_run(fabric, duration);
    }
    let mut daemon = Daemon::new(&settings)?;
    let clock = Clock::start();
    let open = |fabric_index| {
        let (_, wire, monitor) = daemon.open(fabric_index, clock)?;
        Ok((monitor, wire))
    };
    let ready = (0..settings.fabrics.len()).map(open).collect::<Result<Vec<_>, Fatal>>()?;
    let (seen, stop) = daemon.into_observed();
    let run = |(monitor, wire): (Monitor, Umad)| {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            monitor.run(wire, || {
                // A daemon waits for its device to return; this run ends.
                stop.store(true, Ordering::Relaxed);
                Err::<Umad, _>("a single run does not wait for it")
            });
        })
    };
    let threads: Vec<_> = ready.into_iter().map(run).collect();
    let swept = wait(seen, duration);
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        // A panic is on standard error; `swept` has the result.
        let _ = thread.join();
    }
    swept
}

/// The settings of a fabric for a single run. Counters are not cleared: their values would be lost
/// with this process, and be missing in the totals of a running exporter.
fn for_single_run(fabric: &FabricSettings, duration: Duration) -> FabricSettings {
    // Events are found by comparing sweeps: there have to be several in this time.
    let longest = if duration.is_zero() { Duration::MAX } else { duration / 4 };
    let longest = longest.max(Duration::from_secs(1));
    let interval = fabric.interval.min(longest);
    FabricSettings { interval, clear_saturated: false, totals_from: None, ..fabric.clone() }
}

/// Waits until each fabric was swept, and the time is over.
fn wait(
    mut seen: watch::Receiver<SharedState>,
    duration: Duration,
) -> Result<Vec<Arc<Observation>>, Fatal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Fatal::failed_to("cannot start the runtime"))?;
    runtime.block_on(async {
        // An instant has a maximum.
        let until = Instant::now() + duration.min(MAX_DURATION);
        let lost =
            |_| Fatal::failed("the device was lost during the sweep (see the log): try again");
        let is_swept = |fabric: &Arc<Observation>| fabric.stats.sweeps > 0;
        seen.wait_for(|board| board.fabrics.iter().all(is_swept)).await.map_err(lost)?;
        while let Ok(news) = timeout_at(until, seen.changed()).await {
            news.map_err(lost)?;
        }
        Ok(seen.borrow().fabrics.clone())
    })
}

fn write(found: &Links, json: bool) -> std::io::Result<()> {
    let stdout = std::io::stdout();
    let style = Style::for_output(&stdout);
    let mut out = BufWriter::new(stdout.lock());
    if json {
        serde_json::to_writer_pretty(&mut out, found)?;
        writeln!(out)?;
    } else {
        table::write(&mut out, &worst_first(found), found.fabrics.len() > 1, style)?;
    }
    out.flush()
}

impl Style {
    /// The style for a terminal, or for a file or pipe.
    fn for_output(stdout: &std::io::Stdout) -> Self {
        if !stdout.is_terminal() {
            return Style { width: None, colours: false };
        }
        let size = rustix::termios::tcgetwinsize(stdout).ok();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        // https://no-color.org: set and not empty.
        let no_colours = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Style { width, colours: !no_colours }
    }
}

/// The last line: the number of links by verdict, and what to do next.
fn summary(found: &Links, filter: &Filter, hint: Option<&str>) -> String {
    if found.fabrics.is_empty() {
        return "no links: this exporter does not sweep a fabric".into();
    }
    let verdicts = found.fabrics.iter().map(|fabric| fabric.verdicts);
    let all = verdicts.fold(Verdicts::default(), Verdicts::and);
    let count = all.count();
    let shown: usize = found.fabrics.iter().map(|fabric| fabric.links.len()).sum();
    let unswept = found.fabrics.iter().filter(|fabric| fabric.swept_at.is_none());
    let unswept: Vec<&str> = unswept.map(|fabric| &*fabric.fabric).collect();
    let mut parts = Vec::new();
    if !unswept.is_empty() {
        parts.push(format!("not swept yet: {}", unswept.join(", ")));
    }
    if count == 0 {
        parts.push("no links found".into());
    } else {
        let counts = all.worst_first().map(|(verdict, count)| {
            format!("{} {}", grouped(count), Verdict::word(verdict.label()))
        });
        // The counts are of all links.
        let part = format!("{} of {} links", grouped(shown), grouped(count));
        let listed = match (filter.suspect, &filter.node, shown) {
            (false, None, _) => String::new(),
            (false, Some(node), _) => format!("{part} at {node}; verdicts of all: "),
            (true, None, 0) => "no suspect links: ".into(),
            (true, Some(node), 0) => format!("no suspect links at {node}; verdicts of all: "),
            (true, _, _) => format!("{part} suspect; verdicts of all: "),
        };
        parts.push(format!("{listed}{}", counts.join(", ")));
        parts.extend(hint.map(str::to_owned));
    }
    printable(&parts.join("; "))
}

/// All links, the worst first: by verdict, then by error ratios and counts, then by name.
fn worst_first(found: &Links) -> Vec<&Link> {
    let mut links: Vec<&Link> = found.fabrics.iter().flat_map(|fabric| &fabric.links).collect();
    links.sort_by_cached_key(|link| link.rank());
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::{End, FabricLinks, WindowErrors};
    use crate::cli::Cli;
    use clap::Parser;

    #[test]
    fn summary_counts_links_by_verdict() {
        let swept = |verdicts| FabricLinks {
            fabric: "f".into(),
            swept_at: Some("1970-01-01T00:00:00Z".into()),
            verdicts,
            ..FabricLinks::default()
        };
        let some = Verdicts { bad: 3, watch: 1, unknown: 20, ok: 4_000_000, learning: 0 };
        let unswept = FabricLinks { fabric: "g".into(), ..FabricLinks::default() };
        for (fabrics, suspect, is_single_sweep, says) in [
            (vec![], false, false, "no links: this exporter does not sweep a fabric"),
            (vec![swept(Verdicts::default())], false, true, "no links found"),
            (vec![unswept.clone()], false, false, "not swept yet: g; no links found"),
            (vec![swept(some)], false, false, "3 bad, 1 degraded, 20 unknown, 4,000,000 ok"),
            (
                vec![swept(some), unswept],
                true,
                false,
                "not swept yet: g; no suspect links: 3 bad, 1 degraded, 20 unknown, 4,000,000 ok",
            ),
            (
                vec![swept(Verdicts { ok: 999, ..Verdicts::default() })],
                false,
                true,
                "0 bad, 0 degraded, 0 unknown, 999 ok; for bit error ratios use --for 1m, or --url of a \
                 running exporter",
            ),
        ] {
            let filter = Filter { suspect, ..Filter::default() };
            let hint = is_single_sweep.then_some(SINGLE_SWEEP);
            assert_eq!(summary(&Links { fabrics }, &filter, hint), says);
        }
    }

    fn link(verdict: &'static str, errors: u64, ratio: Option<f64>, node: &str, port: u8) -> Link {
        let mut end = End { node: node.into(), port, ..End::default() };
        if errors > 0 {
            end.counters.insert("symbol_errors".into(), errors);
        }
        end.bit_errors.windows =
            vec![WindowErrors { window: "12m".into(), errors: 0, seconds: 1.0, ratio }];
        Link { verdict: verdict.into(), ends: [end, End::default()], ..Link::default() }
    }

    #[test]
    fn worst_links_come_first() {
        let wanted = [
            link("bad", 0, Some(1e-9), "z", 1),
            link("bad", 7, Some(1e-12), "a", 1),
            link("bad", 9, None, "b", 1),
            link("bad", 8, None, "a", 1),
            link("watch", 0, None, "a", 1),
            link("unknown", 5, None, "a", 1),
            link("unknown", 1, None, "a", 1),
            link("unknown", 0, None, "a", 2),
            link("unknown", 0, None, "a", 10),
            link("unknown", 0, None, "b", 1),
            link("ok", 1_000, None, "a", 1),
            link("ok", 0, None, "a", 1),
        ];
        let mut links = wanted.to_vec();
        links.reverse();
        links.swap(2, 7);
        let found = Links { fabrics: vec![FabricLinks { links, ..FabricLinks::default() }] };
        let sorted: Vec<Link> = worst_first(&found).into_iter().cloned().collect();
        assert_eq!(sorted, wanted);
    }

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
        assert!(!for_single_run(fabric, Duration::ZERO).clear_saturated);
        assert_eq!(for_single_run(fabric, Duration::ZERO).interval, fabric.interval);
        assert!(for_single_run(fabric, Duration::from_secs(8)).interval <= Duration::from_secs(2));
    }
}
