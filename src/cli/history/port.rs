//! `history port` and `history link`: counters and events of ports, and of both ends of cables.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;

use fabric_history::file::record_kind::RecordKind;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::time::millis;
use fabric_history::model::{Event, Port, Series, Window};
use fabric_history::source::{EventFilter, SeriesDetail, until_known};
use fabric_history::{Source, plot};
use ib_fabric::topology::End;
use ib_mad::label::plural;

use super::window::WindowArgs;
use super::{Fatal, Written, tame, unreadable, write_json};

/// Columns of a line of bars.
const COLUMNS: usize = 60;

/// The arguments of `history port`.
#[derive(Args, Debug)]
pub struct PortArgs {
    /// The port: NODE[PORT], or NODE for all of its ports; a node by its name or GUID
    #[arg(value_name = "PORT")]
    port: String,
    #[command(flatten)]
    options: TimelineOptions,
}

/// The arguments of `history link`.
#[derive(Args, Debug)]
pub struct LinkArgs {
    /// The link: its id, NODE[PORT], or NODE for all links of a node
    #[arg(value_name = "LINK")]
    link: String,
    #[command(flatten)]
    options: TimelineOptions,
}

/// The options of both.
#[derive(Args, Debug)]
struct TimelineOptions {
    #[command(flatten)]
    window: WindowArgs,
    /// Tell each reading with errors, too
    #[arg(long)]
    readings: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn write_port(
    args: &PortArgs,
    source: &dyn Source,
    clock: &LocalClock,
    out: &mut impl Write,
) -> Result<Written, Fatal> {
    let ports = super::ports(source, "PORT", &args.port)?;
    write_timeline(&args.options, ports, source, clock, out)
}

pub(super) fn write_link(
    args: &LinkArgs,
    source: &dyn Source,
    clock: &LocalClock,
    out: &mut impl Write,
) -> Result<Written, Fatal> {
    let mut ports = super::ports(source, "LINK", &args.link)?;
    let window = args.options.window.window(clock, source)?;
    let named: Vec<End> = ports.iter().map(Port::end).collect();
    for cable in source.cables(&named, window).map_err(unreadable)? {
        for end in cable.ends {
            if !ports.iter().any(|known| known.is_same(&end)) {
                ports.push(end);
            }
        }
    }
    write_timeline(&args.options, ports, source, clock, out)
}

/// The counters and events of some ports.
struct Timeline {
    window: Window,
    ports: Vec<Port>,
    series: Vec<Series>,
    events: Vec<Event>,
}

fn write_timeline(
    options: &TimelineOptions,
    ports: Vec<Port>,
    source: &dyn Source,
    clock: &LocalClock,
    out: &mut impl Write,
) -> Result<Written, Fatal> {
    let window = options.window.window(clock, source)?;
    let window = until_known(source, window, clock.time()).map_err(unreadable)?;
    let ends: Vec<End> = ports.iter().map(Port::end).collect();
    let series = source.series(&ends, SeriesDetail::All, window).map_err(unreadable)?;
    let wanted = EventFilter { ports: ends, ..EventFilter::all(window) };
    let events = source.events(&wanted).map_err(unreadable)?;
    let timeline = Timeline { window, ports, series, events };
    let summary = format!(
        "{} from {} to {}; times are of {}",
        plural(timeline.events.len(), "event"),
        clock.format(window.from),
        clock.format(window.to),
        clock.zone()
    );
    let written = if options.json {
        timeline.write_json(out)
    } else {
        timeline.write_text(options.readings, clock, out)
    };
    Ok(written.map(|()| summary))
}

impl Timeline {
    fn write_json(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Timeline { window, ports, series, events } = self;
        let all = json!({"window": window, "ports": ports, "series": series, "events": events});
        write_json(&all, out)
    }

    fn write_text(
        &self,
        readings: bool,
        clock: &LocalClock,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        for port in &self.ports {
            self.write_counters(port, out)?;
        }
        let mut lines: Vec<(SystemTime, String, String)> = (self.events.iter())
            .map(|event| (event.at, event.place.clone(), format!("{}: {}", event.kind, event.text)))
            .collect();
        if readings {
            lines.extend(self.readings());
        }
        // Sorted by millisecond, the resolution of every source, in the given order within that.
        lines.sort_by_key(|(at, ..)| millis(*at));
        let places = lines.iter().map(|(_, place, _)| place.chars().count()).max().unwrap_or(0);
        for (at, place, text) in lines {
            writeln!(out, "{}  {:places$}  {}", clock.format(at), tame(&place), tame(&text))?;
        }
        Ok(())
    }

    /// Writes a port's counters, a line of bars each, errors first.
    fn write_counters(&self, port: &Port, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "{}  {}", tame(&port.label()), port.guid)?;
        let mut all: Vec<&Series> =
            self.series.iter().filter(|series| series.port.is_same(port)).collect();
        all.sort_by_key(|series| (RecordKind::of(series.counter) as u8, series.counter));
        if !all.iter().any(|series| RecordKind::of(series.counter) == RecordKind::ErrorDeltas) {
            writeln!(out, "  no errors")?;
        }
        let name = |series: &Series| series.counter.row().metric;
        let width = all.iter().map(|series| name(series).len()).max().unwrap_or(0);
        for series in all {
            let sum: u64 = series.steps.iter().fold(0, |sum, step| sum.saturating_add(step.by));
            let bars = plot::bars(&plot::resample(&series.steps, self.window, COLUMNS));
            writeln!(out, "  {:width$}  {bars}  {sum}", name(series))?;
        }
        Ok(())
    }

    /// The increases of each port's error counters from sweep to sweep.
    fn readings(&self) -> Vec<(SystemTime, String, String)> {
        let mut by: BTreeMap<(SystemTime, &Port), Vec<String>> = BTreeMap::new();
        for series in &self.series {
            if RecordKind::of(series.counter) != RecordKind::ErrorDeltas {
                continue;
            }
            for step in &series.steps {
                let increase = format!("{} +{}", series.counter.row().metric, step.by);
                by.entry((step.to, &series.port)).or_default().push(increase);
            }
        }
        by.into_iter()
            .map(|((at, port), increases)| (at, port.label(), increases.join(", ")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use fabric_history::model::{Cable, Step};
    use fabric_history::source::Canned;
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
        let mut out = Vec::new();
        let args = LinkArgs { link: "leaf[1]".into(), options };
        write_link(&args, &source, &clock, &mut out).unwrap().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("symbol_errors").count(), 2, "{text}");
        assert_eq!(text.matches("no errors").count(), 0, "{text}");
    }
}
