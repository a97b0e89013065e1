//! `history events --follow`: prints events when they are recorded, until a signal ends it.
//!
//! It asks for events in the order in which they were recorded: one that happened before another may be recorded after
//! it. A file is opened for each query, and an exporter is asked again after it failed, so both may be replaced
//! meanwhile.

use std::io::Write;
use std::time::{Duration, SystemTime};

use exposition::unseen;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::arguments::{OriginArgs, open_end_at};
use super::hosts::Hosts;
use super::show::{EventColumns, EventsArgs};
use crate::cli::output::print;
use crate::cli::terminal::{ColorChoice, printable};
use crate::exit::Fatal;
use fabric_history::Source;
use fabric_history::cursor::Cursor;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Event, Window};
use fabric_history::source::{EventFilter, MAX_LIMIT, Page};

/// The time between two queries. Events come with sweeps, of which few are more often.
const INTERVAL: Duration = Duration::from_secs(2);

/// The shortest: each query of an exporter takes a permit and opens its file.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// What is followed, and how far.
struct Follower<'a> {
    args: &'a EventsArgs,
    origin: OriginArgs,
    clock: &'a LocalClock,
    hosts: Option<Hosts>,
    /// What is printed happened since then; `None` if only what is recorded from now on is wanted.
    since: Option<SystemTime>,
    /// Once names have been resolved.
    filter: Option<EventFilter>,
    after: Option<Cursor>,
    columns: EventColumns,
    colors: bool,
    /// Whether the latest query failed.
    is_failing: bool,
}

/// Whether the reader of standard output is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Open,
    Closed,
}

/// What failed in a query.
enum Failure {
    /// The source, or what is derived from it: it may be back later.
    Source(Fatal),
    /// The output. A second try would write the same events again.
    Output(Fatal),
}

impl<E: Into<Fatal>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Source(error.into())
    }
}

/// Prints events until the reader of standard output is gone. The first query has to succeed.
pub(super) fn run(
    args: &EventsArgs,
    origin: OriginArgs,
    clock: &LocalClock,
    color: ColorChoice,
) -> Result<(), Fatal> {
    if origin.has_dumps() {
        return Err(Fatal::usage("--follow: dumps do not change: use --file or --url"));
    }
    let interval = args.interval.map_or(INTERVAL, Duration::from);
    if interval < MIN_INTERVAL {
        let least = humantime::format_duration(MIN_INTERVAL);
        return Err(Fatal::usage(format!("--interval: less than the minimum of {least}")));
    }
    let mut follower = Follower {
        args,
        origin,
        clock,
        hosts: args.hosts.read()?,
        since: args.window.start(clock)?,
        filter: None,
        after: None,
        columns: EventColumns::of_stream(),
        colors: color.is_on(),
        is_failing: false,
    };
    while follower.poll()? == Output::Open && wait(interval) == Output::Open {}
    Ok(())
}

impl Follower<'_> {
    /// Prints the events since the last time. A failure of the source is an error only of the first query.
    fn poll(&mut self) -> Result<Output, Fatal> {
        match self.print_new() {
            Ok(output) => Ok(output),
            Err(Failure::Output(error)) => Err(error),
            Err(Failure::Source(error)) if self.after.is_none() => Err(error),
            Err(Failure::Source(error)) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    note(&format!("{}: retrying", error.message));
                }
                Ok(Output::Open)
            }
        }
    }

    fn print_new(&mut self) -> Result<Output, Failure> {
        let origin = self.origin.clone().open()?;
        let source = origin.source();
        let now = SystemTime::now();
        let is_first = self.filter.is_none();
        let from = match self.since {
            Some(since) => since,
            // A simulated clock may be ahead of the host's.
            None if is_first => source.span()?.last.map_or(now, |last| last.max(now)),
            // What is recorded from then on is new, whenever it happened.
            None => SystemTime::UNIX_EPOCH,
        };
        let window = Window { from, to: open_end_at(now) };
        let filter = match self.filter.take() {
            Some(filter) => EventFilter { window, ..filter },
            None => self.args.filter(source, window)?,
        };
        if is_first {
            let (name, zone) = (source.name(), self.clock.zone());
            note(&format!("following {name}; time zone: {zone}"));
        }
        let filter = self.filter.insert(filter).clone();
        loop {
            let page = source.page(&filter, Page::recorded(self.after))?;
            let is_full = page.events.len() == MAX_LIMIT.get();
            let events = self.wanted(page.events, source, now)?;
            // Before the events: they follow the gap.
            if std::mem::take(&mut self.is_failing) {
                note("following again");
            }
            if self.print(&events).map_err(Failure::Output)? == Output::Closed {
                return Ok(Output::Closed);
            }
            self.after = page.next.or(self.after);
            if !is_full {
                return Ok(Output::Open);
            }
        }
    }

    /// The events that are about the hosts, if there are any hosts.
    fn wanted(
        &self,
        mut events: Vec<Event>,
        source: &dyn Source,
        now: SystemTime,
    ) -> Result<Vec<Event>, Fatal> {
        // Without events only to find names that are wrong. Cables may be moved meanwhile, so they are looked up each
        // time.
        let is_needed = !events.is_empty() || self.after.is_none();
        if let Some(hosts) = self.hosts.as_ref().filter(|_| is_needed) {
            let from = self.since.unwrap_or(now);
            let scope = hosts.scope(source, Window { from: from.min(now), to: now })?;
            events.retain(|event| scope.relation_of_event(event).is_some());
        }
        Ok(events)
    }

    fn print(&mut self, events: &[Event]) -> Result<Output, Fatal> {
        let text = if self.args.json {
            let line = |event| serde_json::to_string(event).map(|json| format!("{json}\n"));
            let lines: String =
                events.iter().map(line).collect::<Result<_, _>>().map_err(Fatal::failed)?;
            unseen::json(&lines).into_owned()
        } else {
            self.columns.widen(events);
            self.columns.table(events, self.clock, self.colors)
        };
        let is_open = text.is_empty() || print(text.as_bytes())?;
        Ok(if is_open { Output::Open } else { Output::Closed })
    }
}

/// Waits so long, or until the reader of standard output is gone: there may be no event to notice it by.
fn wait(interval: Duration) -> Output {
    let stdout = std::io::stdout();
    let mut reader = [PollFd::new(&stdout, PollFlags::empty())];
    let limit = Timespec::try_from(interval).ok();
    // Interrupted, it is only sooner.
    let _ = poll(&mut reader, limit.as_ref());
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if reader[0].revents().intersects(gone) { Output::Closed } else { Output::Open }
}

/// A line on standard error, which need not be open.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}
