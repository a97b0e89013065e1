//! `history link`: what a cable went through.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, SystemTime};

use clap::Args;

use crate::fabric::Counter;
use crate::history::Reader;
use crate::history::file::reader::{Grown, Place, Wanted};
use crate::history::file::tier::Tier;

use super::events::far;
use super::time::Clock;
use super::{Exit, Fatal, Told, asked, count, tame, unreadable};

/// How many columns a course of errors has.
const COLUMNS: usize = 60;

const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The arguments of `history link`.
#[derive(Args, Debug)]
pub struct LinkArgs {
    /// The link: its id, NODE[PORT], or NODE for all links of a node
    #[arg(value_name = "LINK")]
    link: String,
    /// From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: 24h]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

pub(super) fn tell(
    ask: &LinkArgs,
    reader: &Reader,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let usual = clock.ago(Duration::from_secs(24 * 3600));
    let from = asked(clock, "--since", ask.since.as_deref(), usual)?;
    let mut ports = reader.ports(&ask.link).map_err(unreadable)?;
    if ports.is_empty() {
        let problem = format!("the history knows no link or node {:?}", ask.link);
        return Err(Fatal::new(Exit::Usage, problem));
    }
    for index in 0..ports.len() {
        for partner in reader.partners(ports[index].id).map_err(unreadable)? {
            if !ports.contains(&partner) {
                ports.push(partner);
            }
        }
    }
    let numbers: Vec<u32> = ports.iter().map(|port| port.id).collect();
    let to = far(clock);
    let (grown, damaged) = reader.grown(&numbers, Tier::Rare, from, to).map_err(unreadable)?;
    let wanted = Wanted { from, to, kinds: Vec::new(), nodes: None, ports: Some(numbers.clone()) };
    let events = reader.events(&wanted).map_err(unreadable)?;
    let mut lines: Vec<(SystemTime, String, String)> = events
        .iter()
        .map(|event| (event.at, event.place.clone(), format!("{}: {}", event.kind, event.text)))
        .collect();
    lines.extend(sweeps(&ports, &grown));
    lines.sort();
    let mut last = format!(
        "{}, {} with errors since {}; times are of {}",
        count(events.len(), "event"),
        count(lines.len() - events.len(), "reading"),
        clock.tell(from),
        clock.zone()
    );
    if damaged > 0 {
        last.push_str("; cannot be read: ");
        last.push_str(&count(damaged, "sweep"));
    }
    Ok(write(&ports, &grown, &lines, clock, out).map(|()| last))
}

fn label(place: &Place) -> String {
    format!("{} port {}", place.node, place.number)
}

/// What each port counted in each sweep, as a line.
fn sweeps(ports: &[Place], grown: &[Grown]) -> Vec<(SystemTime, String, String)> {
    let mut by: BTreeMap<(SystemTime, u32), Vec<String>> = BTreeMap::new();
    for grown in grown {
        let told = format!("{} +{}", grown.counter.row().metric, grown.by);
        by.entry((grown.at, grown.port)).or_default().push(told);
    }
    let name = |id: u32| ports.iter().find(|port| port.id == id).map(label).unwrap_or_default();
    by.into_iter().map(|((at, port), told)| (at, name(port), told.join(", "))).collect()
}

fn write(
    ports: &[Place],
    grown: &[Grown],
    lines: &[(SystemTime, String, String)],
    clock: &Clock,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let names = ports.iter().map(|port| label(port).chars().count()).max().unwrap_or(0);
    for port in ports {
        let of: Vec<&Grown> = grown.iter().filter(|grown| grown.port == port.id).collect();
        let mut sums: BTreeMap<Counter, u64> = BTreeMap::new();
        for grown in &of {
            let sum = sums.entry(grown.counter).or_default();
            *sum = sum.saturating_add(grown.by);
        }
        let sums: Vec<String> =
            (sums.iter()).map(|(counter, sum)| format!("{} {sum}", counter.row().metric)).collect();
        let told = if sums.is_empty() { "no errors".into() } else { sums.join(", ") };
        writeln!(out, "{:names$}  {}  {told}", tame(&label(port)), port.guid)?;
        if !of.is_empty() {
            writeln!(out, "{:names$}  {}", "", course(&of, grown))?;
        }
    }
    let places = lines.iter().map(|(_, place, _)| place.chars().count()).max().unwrap_or(0);
    for (at, place, text) in lines {
        writeln!(out, "{}  {:places$}  {}", clock.tell(*at), tame(place), tame(text))?;
    }
    Ok(())
}

/// The course of a port's errors, over the time in which any of the ports had some.
fn course(of: &[&Grown], all: &[Grown]) -> String {
    let times = || all.iter().map(|grown| grown.at);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return String::new() };
    let since = |at: SystemTime| at.duration_since(first).unwrap_or_default().as_millis();
    let whole = since(last).max(1);
    let mut sums = [0u128; COLUMNS];
    for grown in of {
        let column = since(grown.at) * (COLUMNS as u128 - 1) / whole;
        let column = usize::try_from(column).unwrap_or(usize::MAX).min(COLUMNS - 1);
        sums[column] += u128::from(grown.by);
    }
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let bar = |sum: u128| {
        let height = usize::try_from((sum * 8).div_ceil(most)).unwrap_or(8);
        BARS.get(height).copied().unwrap_or('█')
    };
    sums.into_iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_shows_when_there_were_how_many() {
        let at = |second| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let grown =
            |second, port, by| Grown { at: at(second), port, counter: Counter::SymbolErrors, by };
        let all = [grown(0, 1, 1), grown(59, 1, 8), grown(30, 2, 5)];
        let course = course(&[&all[0], &all[1]], &all);
        assert_eq!(course.chars().count(), COLUMNS);
        assert!(course.starts_with('▁') && course.ends_with('█'), "{course}");
        assert_eq!(course.chars().filter(|char| *char == '·').count(), COLUMNS - 2);
    }
}
