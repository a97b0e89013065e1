//! The commands that print: `history events`, `port`, `link`, `diff` and `report`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use serde_json::json;

use display_text::plural;
use fabric_history::diff::{LinkDiff, diff_links};
use fabric_history::file::record_kind::RecordKind;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::time::millis;
use fabric_history::model::{Event, Port, Series, Sum, Window};
use fabric_history::outcomes::Outcomes;
use fabric_history::report::{Report, html, markdown};
use fabric_history::source::{EventFilter, SeriesDetail, until_known};
use fabric_history::{EventKind, Source, plot};
use ib_mad::{Counter, Guid, PortKey};
use yaml_config::units::HumanDuration;

use super::arguments::{Output, WindowArgs, open_end, parse_time, ports};
use super::hosts::{Hosts, HostsArgs, period};
use crate::cli::output::as_json;
use crate::cli::terminal::{Color, ColorChoice, printable};
use crate::exit::Fatal;

/// Columns of a line of bars.
const COLUMNS: usize = 60;

/// The help of `--since` where the default is the whole history.
const SINCE: &str = "Start of the period [default: the start of the data]";
const SINCE_LONG: &str = "\
Start of the period [default: the start of the data]

2h (ago), 03:12, \"2026-11-21 03:12\", or RFC 3339 as in 2026-11-21T03:12:00Z.";

/// Counters in an end's line of a diff: those with the largest increases.
const MAX_COUNTERS: usize = 3;

/// The arguments of `history events`.
#[derive(Args, Debug)]
pub struct EventsArgs {
    /// List only events of this node
    ///
    /// With its ports and links. A name or GUID.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// List only events of this link
    ///
    /// Its id, or one of its ports, such as leaf-0-1/9.
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// List only events of this kind
    ///
    /// Such as link_down; separate several with commas, or repeat the option.
    #[arg(long, value_name = "KIND", value_parser = kind, value_delimiter = ',')]
    kind: Vec<EventKind>,
    /// Write JSON; with --follow a line per event
    #[arg(long)]
    pub(super) json: bool,
    /// Print new events until Ctrl-C
    ///
    /// In the order in which they are recorded: what happened before --since is not printed, and without it only what
    /// is recorded from now on. An exporter that restarts and a file that is replaced are followed on.
    #[arg(long, short, conflicts_with_all = ["until", "at"])]
    pub(super) follow: bool,
    /// Time between two queries [default: 2s]
    ///
    /// At least 100ms.
    #[arg(long, value_name = "DURATION", requires = "follow")]
    pub(super) interval: Option<HumanDuration>,
    #[command(flatten)]
    pub(super) hosts: HostsArgs,
    #[command(flatten)]
    pub(super) window: WindowArgs,
}

/// The arguments of `history port`.
#[derive(Args, Debug)]
pub struct PortArgs {
    /// Port, such as leaf-0-1/9, or a node for all of its ports
    ///
    /// As it is printed anywhere: leaf-0-1/9, leaf-0-1:9, 'leaf-0-1[9]', "leaf-0-1 port 9", or with the GUID of the
    /// node. With --url also a LID.
    #[arg(value_name = "PORT")]
    port: String,
    #[command(flatten)]
    options: TimelineOptions,
}

/// The arguments of `history link`.
#[derive(Args, Debug)]
pub struct LinkArgs {
    /// Link: its id, one of its ports such as leaf-0-1/9, or a node for all of its links
    ///
    /// A port as it is printed anywhere: leaf-0-1/9, leaf-0-1:9, 'leaf-0-1[9]', "leaf-0-1 port 9", or with the GUID
    /// of the node. With --url also a LID.
    #[arg(value_name = "LINK", required_unless_present_any = ["nodes", "job"], conflicts_with_all = ["nodes", "job"])]
    link: Option<String>,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    options: TimelineOptions,
}

/// The options of both.
#[derive(Args, Debug)]
struct TimelineOptions {
    /// Also list each reading in which error counters increased
    #[arg(long)]
    readings: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    window: WindowArgs,
}

/// The arguments of `history diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// Start: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339
    #[arg(value_name = "T1")]
    from: String,
    /// End, in the same formats [default: now]
    #[arg(value_name = "T2")]
    to: Option<String>,
    /// Maximum number of links
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hosts: HostsArgs,
}

/// The arguments of `history verdicts`: by default of the whole history.
#[derive(Args, Debug)]
#[command(mut_arg("since", |arg| arg.help(SINCE).long_help(SINCE_LONG)))]
pub struct VerdictsArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    window: WindowArgs,
}

impl VerdictsArgs {
    pub(super) fn run(&self, source: &dyn Source, clock: &LocalClock) -> Result<Output, Fatal> {
        let mut window = self.window.window(clock, source)?;
        if let (None, None, Some(first)) =
            (&self.window.since, &self.window.at, source.span()?.first)
        {
            window.from = first;
        }
        let window = until_known(source, window, clock.time())?;
        let found = Outcomes::compute(source, window)?;
        let text = if self.json { as_json(&found)? } else { found.to_markdown() };
        let episodes: u64 = found.rows.iter().map(|row| row.episodes).sum();
        let summary = summarize(&plural(episodes, "episode"), window, "", clock);
        Ok(Output { text, summary })
    }
}

/// The arguments of `history report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Markdown)]
    format: ReportFormat,
    /// Output file [default: standard output]
    ///
    /// Its extension selects the format: .html, .md (or .txt) or .json.
    #[arg(long, short, value_name = "FILE", conflicts_with = "format")]
    output: Option<PathBuf>,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    window: WindowArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// A self-contained page
    Html,
    /// For tickets
    Markdown,
    /// For programs
    Json,
}

fn kind(label: &str) -> Result<EventKind, String> {
    EventKind::from_label(label)
        .ok_or_else(|| format!("unknown kind; known: {}", EventKind::labels()))
}

pub(super) fn text_of(lines: Vec<String>) -> String {
    lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// The summary: what was found, in which period, and other remarks.
pub(super) fn summarize(what: &str, window: Window, remarks: &str, clock: &LocalClock) -> String {
    let [from, to] = [window.from, window.to].map(|at| clock.format(at));
    format!("{what} from {from} to {to}{remarks}; time zone: {}", clock.zone())
}

/// The width of a column with these cells.
pub(super) fn column_width<'a>(cells: impl Iterator<Item = &'a str>) -> usize {
    cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
}

impl EventsArgs {
    pub(super) fn run(
        &self,
        source: &dyn Source,
        clock: &LocalClock,
        color: ColorChoice,
    ) -> Result<Output, Fatal> {
        let hosts = self.hosts.read()?;
        let window = period(&self.window, hosts.as_ref(), clock, source)?;
        let mut events = source.events(&self.filter(source, window)?)?;
        let known = until_known(source, window, clock.time())?;
        if let Some(hosts) = hosts {
            let scope = hosts.scope(source, known)?;
            events.retain(|event| scope.relation_of_event(event).is_some());
        }
        let summary = summarize(&plural(events.len(), "event"), known, "", clock);
        let text =
            if self.json { as_json(&events)? } else { event_table(&events, clock, color.is_on()) };
        Ok(Output { text, summary })
    }

    /// The events that are wanted of a window.
    pub(super) fn filter(&self, source: &dyn Source, window: Window) -> Result<EventFilter, Fatal> {
        let mut wanted = EventFilter { kinds: self.kind.clone(), ..EventFilter::all(window) };
        if let Some(node) = &self.node {
            let ports = ports(source, "--node", node)?;
            let guids: BTreeSet<Guid> = ports.iter().map(|port| port.guid).collect();
            wanted.nodes = guids.into_iter().collect();
        }
        if let Some(link) = &self.link {
            wanted.ports = ports(source, "--link", link)?.iter().map(Port::end).collect();
        }
        Ok(wanted)
    }
}

pub(super) fn event_table(events: &[Event], clock: &LocalClock, colors: bool) -> String {
    let mut columns = EventColumns::default();
    columns.widen(events);
    columns.table(events, clock, colors)
}

/// The widths of the columns of kinds and places.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventColumns {
    kinds: usize,
    places: usize,
}

impl EventColumns {
    /// Of events that are not known yet.
    pub(super) fn of_stream() -> Self {
        let kinds = column_width(EventKind::ALL.into_iter().map(EventKind::label));
        EventColumns { kinds, places: 0 }
    }

    /// Makes room for events.
    pub(super) fn widen(&mut self, events: &[Event]) {
        self.kinds = self.kinds.max(column_width(events.iter().map(|event| &*event.kind)));
        self.places = self.places.max(column_width(events.iter().map(|event| &*event.place)));
    }

    /// The lines of events.
    pub(super) fn table(self, events: &[Event], clock: &LocalClock, colors: bool) -> String {
        let EventColumns { kinds, places } = self;
        let line = |event: &Event| {
            let (kind, place) = (printable(&event.kind), printable(&event.place));
            let (at, text) = (clock.format(event.at), printable(&event.text));
            let kind = Color::paint(color_of(&event.kind), &format!("{kind:kinds$}"), colors);
            format!("{at}  {kind}  {place:places$}  {text}")
        };
        text_of(events.iter().map(line).collect())
    }
}

/// The color of a kind of event: what went wrong, and what is well again.
fn color_of(kind: &str) -> Option<Color> {
    use EventKind::{
        CableMoved, CongestionStart, DeviceFatal, Flap, LinkDown, LinkUp, MasterChanged, NodeDown,
        NodeUp, RateChanged, ReadsFailed, ReadsRecovered, SweepFailed, SweepRecovered,
        VerdictChanged,
    };
    match EventKind::from_label(kind)? {
        LinkDown | Flap | NodeDown | DeviceFatal | SweepFailed | ReadsFailed => Some(Color::Bad),
        VerdictChanged | RateChanged | CableMoved | CongestionStart | MasterChanged => {
            Some(Color::Warning)
        }
        LinkUp | NodeUp | SweepRecovered | ReadsRecovered => Some(Color::Good),
        _ => None,
    }
}

impl PortArgs {
    pub(super) fn run(&self, source: &dyn Source, clock: &LocalClock) -> Result<Output, Fatal> {
        let ports = ports(source, "PORT", &self.port)?;
        let window = self.options.window.window(clock, source)?;
        self.options.timeline(&ports, window, source, clock)
    }
}

impl LinkArgs {
    pub(super) fn run(&self, source: &dyn Source, clock: &LocalClock) -> Result<Output, Fatal> {
        let hosts = self.hosts.read()?;
        let window = period(&self.options.window, hosts.as_ref(), clock, source)?;
        if let Some(hosts) = hosts {
            let known = until_known(source, window, clock.time())?;
            let ports = hosts.scope(source, known)?.own_ports;
            return self.options.timeline(&ports, window, source, clock);
        }
        let mut ports = ports(source, "LINK", self.link.as_deref().unwrap_or_default())?;
        let named: Vec<PortKey> = ports.iter().map(Port::end).collect();
        for end in source.cables(&named, window)?.into_iter().flat_map(|cable| cable.ends) {
            if !ports.iter().any(|known| known.is_same(&end)) {
                ports.push(end);
            }
        }
        self.options.timeline(&ports, window, source, clock)
    }
}

impl TimelineOptions {
    /// The counters and events of some ports.
    fn timeline(
        &self,
        ports: &[Port],
        window: Window,
        source: &dyn Source,
        clock: &LocalClock,
    ) -> Result<Output, Fatal> {
        let window = until_known(source, window, clock.time())?;
        let ends: Vec<PortKey> = ports.iter().map(Port::end).collect();
        let series = source.series(&ends, SeriesDetail::All, window)?;
        let events = source.events(&EventFilter { ports: ends, ..EventFilter::all(window) })?;
        let summary = summarize(&plural(events.len(), "event"), window, "", clock);
        if self.json {
            let all = json!({"window": window, "ports": ports, "series": series, "events": events});
            return Ok(Output { text: as_json(&all)?, summary });
        }
        let mut lines: Vec<String> =
            ports.iter().flat_map(|port| counters(port, &series, window)).collect();
        let mut timed: Vec<(SystemTime, String, String)> = events
            .into_iter()
            .map(|event| (event.at, event.place, format!("{}: {}", event.kind, event.text)))
            .collect();
        if self.readings {
            timed.extend(readings(&series));
        }
        // Sorted by millisecond, the resolution of every source, in the given order within that.
        timed.sort_by_key(|(at, ..)| millis(*at));
        let places = column_width(timed.iter().map(|(_, place, _)| &**place));
        lines.extend(timed.iter().map(|(at, place, text)| {
            let (at, place, text) = (clock.format(*at), printable(place), printable(text));
            format!("{at}  {place:places$}  {text}")
        }));
        Ok(Output { text: text_of(lines), summary })
    }
}

/// A port's counters, a line of bars each, errors first.
fn counters(port: &Port, series: &[Series], window: Window) -> Vec<String> {
    let mut lines = vec![format!("{}  {}", printable(&port.label()), port.guid)];
    let mut all: Vec<&Series> = series.iter().filter(|it| it.port.is_same(port)).collect();
    all.sort_by_key(|series| (RecordKind::of(series.counter) as u8, series.counter));
    if !all.iter().any(|series| RecordKind::of(series.counter) == RecordKind::ErrorDeltas) {
        lines.push("  no errors".into());
    }
    let width = column_width(all.iter().map(|series| series.counter.row().metric));
    lines.extend(all.into_iter().map(|series| {
        let sum: u64 = series.steps.iter().fold(0, |sum, step| sum.saturating_add(step.by));
        let bars = plot::bars(&plot::resample(&series.steps, window, COLUMNS));
        format!("  {:width$}  {bars}  {sum}", series.counter.row().metric)
    }));
    lines
}

/// The increases of each port's error counters from sweep to sweep.
fn readings(series: &[Series]) -> Vec<(SystemTime, String, String)> {
    let mut by: BTreeMap<(SystemTime, &Port), Vec<String>> = BTreeMap::new();
    let errors = |series: &&Series| RecordKind::of(series.counter) == RecordKind::ErrorDeltas;
    for series in series.iter().filter(errors) {
        for step in &series.steps {
            let increase = format!("{} +{}", series.counter.row().metric, step.by);
            by.entry((step.to, &series.port)).or_default().push(increase);
        }
    }
    by.into_iter().map(|((at, port), increases)| (at, port.label(), increases.join(", "))).collect()
}

impl DiffArgs {
    pub(super) fn run(&self, source: &dyn Source, clock: &LocalClock) -> Result<Output, Fatal> {
        let from = parse_time(clock, "T1", &self.from)?;
        let to = match &self.to {
            Some(to) => parse_time(clock, "T2", to)?,
            None => open_end(clock),
        };
        if to < from {
            return Err(Fatal::usage("T2 is before T1"));
        }
        let window = until_known(source, Window { from, to }, clock.time())?;
        let mut all = diff_links(source, window)?;
        if let Some(hosts) = self.hosts.read()? {
            let scope = hosts.scope(source, window)?;
            all.retain(|diff| scope.relation_of_ends(&diff.ends).is_some());
        }
        let diffs = &all[..all.len().min(self.limit)];
        let mut remarks = match diffs.len() {
            count if count == all.len() => String::new(),
            1 => ", only the worst is listed".into(),
            count => format!(", only the worst {count} are listed"),
        };
        // Before it, the state of the links is not known.
        if let Some(first) = source.span()?.first.filter(|first| *first > window.from) {
            remarks += "; the history starts ";
            remarks += &clock.format(first);
        }
        let links = plural(all.len(), "link");
        let what = format!("{links} with changes, errors, or the verdict bad or degraded,");
        let summary = summarize(&what, window, &remarks, clock);
        let text = if self.json {
            as_json(&diffs)?
        } else {
            text_of(diffs.iter().flat_map(diff_lines).collect())
        };
        Ok(Output { text, summary })
    }
}

fn diff_lines(diff: &LinkDiff) -> Vec<String> {
    let changes = diff.changes();
    let is_discard = |sum: &Sum| sum.counter == Counter::XmitDiscards;
    let changes = match &changes[..] {
        [] if diff.errors.iter().flatten().all(is_discard) => "discards".into(),
        [] => "errors".into(),
        changes => changes.join(", "),
    };
    let head = format!("{}: {}", printable(&diff.label()), printable(&changes));
    let ends = diff.ends.iter().zip(&diff.errors).filter(|(_, sums)| !sums.is_empty());
    let line = |(end, sums): (&Port, &Vec<Sum>)| {
        format!("  {}: {}", printable(&end.label()), list_increases(sums))
    };
    std::iter::once(head).chain(ends.map(line)).collect()
}

/// An end's increases, the largest first.
pub(super) fn list_increases(sums: &[Sum]) -> String {
    let mut sums: Vec<&Sum> = sums.iter().collect();
    sums.sort_by_key(|sum| (Reverse(sum.by), sum.counter));
    let increase = |sum: &&Sum| format!("{} +{}", sum.counter.row().metric, sum.by);
    let mut increases: Vec<String> = sums.iter().take(MAX_COUNTERS).map(increase).collect();
    if sums.len() > MAX_COUNTERS {
        increases.push(plural(sums.len() - MAX_COUNTERS, "more counter"));
    }
    increases.join(", ")
}

impl ReportArgs {
    /// Its format, if it is of the file's ending.
    fn format(&self) -> Result<ReportFormat, Fatal> {
        let Some(file) = &self.output else { return Ok(self.format) };
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("html" | "htm") => Ok(ReportFormat::Html),
            Some("md" | "markdown" | "txt") => Ok(ReportFormat::Markdown),
            Some("json") => Ok(ReportFormat::Json),
            _ => Err(Fatal::usage(format!(
                "--output: {}: unknown extension; known: .html, .md, .json",
                file.display()
            ))),
        }
    }

    pub(super) fn run(&self, source: &dyn Source, clock: &LocalClock) -> Result<Output, Fatal> {
        let format = self.format()?;
        let hosts = self.hosts.read()?;
        let window = period(&self.window, hosts.as_ref(), clock, source)?;
        let names = hosts.as_ref().map(Hosts::names);
        let report = Report::compute(source, window, names, clock.time(), &|at| clock.format(at))?;
        if let (Some(asked), Some(found)) = (&hosts, &report.hosts) {
            asked.ensure_found(!found.hosts.is_empty(), source)?;
        }
        let text = match format {
            ReportFormat::Html => html::write(&report, clock),
            ReportFormat::Markdown => markdown::write(&report, clock),
            ReportFormat::Json => as_json(&report)?,
        };
        let summary = summarize(&report.summary(), report.window, "", clock);
        let Some(file) = &self.output else { return Ok(Output { text, summary }) };
        let shown = file.display();
        std::fs::write(file, text)
            .map_err(Fatal::failed_to(&format!("--output: cannot write {shown}")))?;
        Ok(Output { text: String::new(), summary: format!("{shown}: {summary}") })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use fabric_history::model::{Cable, Step};
    use fabric_history::testing::Canned;
    use ib_health::Verdict;
    use ib_mad::Counter;

    /// A node is the same one under its present name and under its name then.
    #[test]
    fn ports_of_renamed_nodes_are_listed_once_with_their_errors() {
        let [new, old] = ["leaf", "host"].map(|node| Canned::port("fab", node, 1));
        let renamed = |port: &Port| Port { node: format!("old-{}", port.node), ..port.clone() };
        let mut ends = [renamed(&new), renamed(&old)];
        ends.sort_by_key(Port::end);
        let (up, verdict, rate) = (Some(true), Verdict::Ok, None);
        let clock = LocalClock::now();
        let (to, from) = (clock.time(), clock.ago(Duration::from_secs(60)));
        let series = |port: &Port| Series {
            port: port.clone(),
            counter: Counter::SymbolErrors,
            steps: vec![Step { from, to, by: 7 }],
        };
        let source = Canned {
            ports: vec![new.clone()],
            cables: vec![Cable { ends, up, verdict, rate }],
            series: vec![series(&new), series(&old)],
            ..Canned::default()
        };
        let window = WindowArgs::default();
        let options = TimelineOptions { window, readings: false, json: false };
        let args = LinkArgs { link: Some("leaf[1]".into()), hosts: HostsArgs::default(), options };
        let text = args.run(&source, &clock).unwrap().text;
        assert_eq!(text.matches("symbol_errors").count(), 2, "{text}");
        assert_eq!(text.matches("no errors").count(), 0, "{text}");
    }
}
