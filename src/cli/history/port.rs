//! `history port` and `history link`: what a port went through, and what both ends of a cable did.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;

use fabric_history::clock::Clock;
use fabric_history::file::tier::Tier;
use fabric_history::model::time::millis;
use fabric_history::model::{Port, Series, Told as Event, Window};
use fabric_history::source::{Detail, Wanted, until_known};
use fabric_history::{Source, columns};
use ib_fabric::topology::End;
use ib_mad::Counter;
use ib_mad::label::plural;

use super::window::WindowArgs;
use super::{Fatal, Told, as_json, tame, unreadable};

/// How many columns a course has.
const COLUMNS: usize = 60;

/// The arguments of `history port`.
#[derive(Args, Debug)]
pub struct PortArgs {
    /// The port: NODE[PORT], or NODE for all of its ports; a node by its name or GUID
    #[arg(value_name = "PORT")]
    port: String,
    #[command(flatten)]
    how: How,
}

/// The arguments of `history link`.
#[derive(Args, Debug)]
pub struct LinkArgs {
    /// The link: its id, NODE[PORT], or NODE for all links of a node
    #[arg(value_name = "LINK")]
    link: String,
    #[command(flatten)]
    how: How,
}

/// How both are told.
#[derive(Args, Debug)]
struct How {
    #[command(flatten)]
    window: WindowArgs,
    /// Tell each reading with errors, too
    #[arg(long)]
    readings: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn port(
    ask: &PortArgs,
    source: &dyn Source,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let ports = super::ports(source, "PORT", &ask.port)?;
    tell(&ask.how, ports, source, clock, out)
}

pub(super) fn link(
    ask: &LinkArgs,
    source: &dyn Source,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let mut ports = super::ports(source, "LINK", &ask.link)?;
    let window = ask.how.window.window(clock, source)?;
    let named: Vec<End> = ports.iter().map(Port::end).collect();
    for cable in source.cables(&named, window).map_err(unreadable)? {
        for end in cable.ends {
            if !ports.iter().any(|known| known.is(&end)) {
                ports.push(end);
            }
        }
    }
    tell(&ask.how, ports, source, clock, out)
}

/// What is told of some ports.
struct Timeline {
    window: Window,
    ports: Vec<Port>,
    series: Vec<Series>,
    events: Vec<Event>,
}

fn tell(
    how: &How,
    ports: Vec<Port>,
    source: &dyn Source,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let window = how.window.window(clock, source)?;
    let window = until_known(source, window, clock.time()).map_err(unreadable)?;
    let ends: Vec<End> = ports.iter().map(Port::end).collect();
    let series = source.series(&ends, Detail::All, window).map_err(unreadable)?;
    let wanted = Wanted { ports: ends, ..Wanted::all(window) };
    let events = source.events(&wanted).map_err(unreadable)?;
    let timeline = Timeline { window, ports, series, events };
    let last = format!(
        "{} from {} to {}; times are of {}",
        plural(timeline.events.len(), "event"),
        clock.tell(window.from),
        clock.tell(window.to),
        clock.zone()
    );
    let written =
        if how.json { timeline.as_json(out) } else { timeline.as_text(how.readings, clock, out) };
    Ok(written.map(|()| last))
}

impl Timeline {
    fn as_json(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Timeline { window, ports, series, events } = self;
        let all = json!({"window": window, "ports": ports, "series": series, "events": events});
        as_json(&all, out)
    }

    fn as_text(&self, readings: bool, clock: &Clock, out: &mut impl Write) -> std::io::Result<()> {
        for port in &self.ports {
            self.courses(port, out)?;
        }
        let mut lines: Vec<(SystemTime, String, String)> = (self.events.iter())
            .map(|event| (event.at, event.place.clone(), format!("{}: {}", event.kind, event.text)))
            .collect();
        if readings {
            lines.extend(self.readings());
        }
        // As finely as every source tells times, in their own order within that: a file knows
        // nanoseconds, an answer in JSON milliseconds.
        lines.sort_by_key(|(at, ..)| millis(*at));
        let places = lines.iter().map(|(_, place, _)| place.chars().count()).max().unwrap_or(0);
        for (at, place, text) in lines {
            writeln!(out, "{}  {:places$}  {}", clock.tell(at), tame(&place), tame(&text))?;
        }
        Ok(())
    }

    /// The courses of a port's counters, a line each: errors first.
    fn courses(&self, port: &Port, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "{}  {}", tame(&port.label()), port.guid)?;
        let mut of: Vec<&Series> = self.series.iter().filter(|of| of.port.is(port)).collect();
        of.sort_by_key(|of| (Tier::of(of.counter) as u8, of.counter));
        if !of.iter().any(|of| Tier::of(of.counter) == Tier::Rare) {
            writeln!(out, "  no errors")?;
        }
        let wide = of.iter().map(|of| of.counter.row().metric.len()).max().unwrap_or(0);
        for of in of {
            let sum: u64 = of.steps.iter().fold(0, |sum, step| sum.saturating_add(step.by));
            let line = columns::bars(&columns::spread(&of.steps, self.window, COLUMNS));
            writeln!(out, "  {:wide$}  {line}  {sum}", of.counter.row().metric)?;
        }
        Ok(())
    }

    /// What each port's errors grew by from sweep to sweep.
    fn readings(&self) -> Vec<(SystemTime, String, String)> {
        let rare = |counter: Counter| Tier::of(counter) == Tier::Rare;
        let mut by: BTreeMap<(SystemTime, &Port), Vec<String>> = BTreeMap::new();
        for of in self.series.iter().filter(|of| rare(of.counter)) {
            for step in &of.steps {
                let told = format!("{} +{}", of.counter.row().metric, step.by);
                by.entry((step.to, &of.port)).or_default().push(told);
            }
        }
        by.into_iter().map(|((at, port), told)| (at, port.label(), told.join(", "))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use fabric_history::model::{Cable, Step};
    use fabric_history::source::Canned;
    use ib_health::Verdict;

    /// What nodes are called at present, and what they were called then, are the same nodes.
    #[test]
    fn ports_of_nodes_that_were_renamed_are_told_once_with_their_errors() {
        let [new, old] = ["leaf", "host"].map(|node| Canned::port("fab", node, 1));
        let renamed = |port: &Port| Port { node: format!("old-{}", port.node), ..port.clone() };
        let mut ends = [renamed(&new), renamed(&old)];
        ends.sort_by_key(Port::end);
        let (up, verdict, rate) = (Some(true), Verdict::Ok, None);
        let clock = Clock::now();
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
        let how = How { window: WindowArgs::default(), readings: false, json: false };
        let mut out = Vec::new();
        link(&LinkArgs { link: "leaf[1]".into(), how }, &source, &clock, &mut out)
            .unwrap()
            .unwrap();
        let told = String::from_utf8(out).unwrap();
        assert_eq!(told.matches("symbol_errors").count(), 2, "{told}");
        assert_eq!(told.matches("no errors").count(), 0, "{told}");
    }
}
