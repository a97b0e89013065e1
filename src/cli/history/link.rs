//! `history link`: what a cable went through.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::SystemTime;

use clap::Args;

use crate::history::Source;
use crate::history::model::{Port, Series, Step};
use crate::history::source::{Detail, Wanted};

use super::window::WindowArgs;
use super::{Fatal, Told, count, tame, unreadable};
use crate::history::clock::Clock;

/// How many columns a course of errors has.
const COLUMNS: usize = 60;

const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The arguments of `history link`.
#[derive(Args, Debug)]
pub struct LinkArgs {
    /// The link: its id, NODE[PORT], or NODE for all links of a node
    #[arg(value_name = "LINK")]
    link: String,
    #[command(flatten)]
    window: WindowArgs,
}

pub(super) fn tell(
    ask: &LinkArgs,
    source: &dyn Source,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let window = ask.window.window(clock)?;
    let mut ports = super::ports(source, "LINK", &ask.link)?;
    let named: Vec<_> = ports.iter().map(Port::end).collect();
    for cable in source.cables(&named, window).map_err(unreadable)? {
        for end in cable.ends {
            if !ports.contains(&end) {
                ports.push(end);
            }
        }
    }
    let ends: Vec<_> = ports.iter().map(Port::end).collect();
    let series = source.series(&ends, Detail::Errors, window).map_err(unreadable)?;
    let wanted = Wanted { ports: ends, ..Wanted::all(window) };
    let events = source.events(&wanted).map_err(unreadable)?;
    let mut lines: Vec<(SystemTime, String, String)> = events
        .iter()
        .map(|event| (event.at, event.place.clone(), format!("{}: {}", event.kind, event.text)))
        .collect();
    lines.extend(sweeps(&series));
    lines.sort();
    let last = format!(
        "{}, {} with errors since {}; times are of {}",
        count(events.len(), "event"),
        count(lines.len() - events.len(), "reading"),
        clock.tell(window.from),
        clock.zone()
    );
    Ok(write(&ports, &series, &lines, clock, out).map(|()| last))
}

/// What each port counted in each sweep, as a line.
fn sweeps(series: &[Series]) -> Vec<(SystemTime, String, String)> {
    let mut by: BTreeMap<(SystemTime, &Port), Vec<String>> = BTreeMap::new();
    for of in series {
        for step in &of.steps {
            let told = format!("{} +{}", of.counter.row().metric, step.by);
            by.entry((step.to, &of.port)).or_default().push(told);
        }
    }
    by.into_iter().map(|((at, port), told)| (at, port.label(), told.join(", "))).collect()
}

fn write(
    ports: &[Port],
    series: &[Series],
    lines: &[(SystemTime, String, String)],
    clock: &Clock,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let names = ports.iter().map(|port| port.label().chars().count()).max().unwrap_or(0);
    for port in ports {
        let of: Vec<&Series> = series.iter().filter(|of| of.port == *port).collect();
        let sums: Vec<String> = (of.iter())
            .map(|of| {
                let sum: u64 = of.steps.iter().map(|step| step.by).sum();
                format!("{} {sum}", of.counter.row().metric)
            })
            .collect();
        let told = if sums.is_empty() { "no errors".into() } else { sums.join(", ") };
        writeln!(out, "{:names$}  {}  {told}", tame(&port.label()), port.guid)?;
        if !of.is_empty() {
            let steps: Vec<&Step> = of.iter().flat_map(|of| &of.steps).collect();
            let all: Vec<&Step> = series.iter().flat_map(|of| &of.steps).collect();
            writeln!(out, "{:names$}  {}", "", course(&steps, &all))?;
        }
    }
    let places = lines.iter().map(|(_, place, _)| place.chars().count()).max().unwrap_or(0);
    for (at, place, text) in lines {
        writeln!(out, "{}  {:places$}  {}", clock.tell(*at), tame(place), tame(text))?;
    }
    Ok(())
}

/// The course of a port's errors, over the time in which any of the ports had some.
fn course(of: &[&Step], all: &[&Step]) -> String {
    let times = || all.iter().map(|step| step.to);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return String::new() };
    let since = |at: SystemTime| at.duration_since(first).unwrap_or_default().as_millis();
    let whole = since(last).max(1);
    let mut sums = [0u128; COLUMNS];
    for step in of {
        let column = since(step.to) * (COLUMNS as u128 - 1) / whole;
        let column = usize::try_from(column).unwrap_or(usize::MAX).min(COLUMNS - 1);
        sums[column] += u128::from(step.by);
    }
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let bar = |sum: u128| {
        let height = usize::try_from((sum * 8).div_ceil(most)).unwrap_or(8);
        BARS.get(height).copied().unwrap_or('█')
    };
    sums.into_iter().map(bar).collect()
}
