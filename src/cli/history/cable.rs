//! `history cable`: where a cable or module was, and what happened there.

use std::fmt::Write;

use clap::Args;

use display_text::{grouped, plural};
use fabric_history::Source;
use fabric_history::cable_life::{CableLife, CableMatches, CablePlace, MIN_PREFIX};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::Port;
use ib_health::Verdict;

use super::arguments::Output;
use super::show::{event_table, list_increases};
use crate::cli::output::as_json;
use crate::cli::table::{Fit, Style, Table};
use crate::cli::terminal::{Color, ColorChoice, printable};
use crate::exit::Fatal;

/// The arguments of `history cable`.
#[derive(Args, Debug)]
pub struct CableArgs {
    /// Serial number, in any case, or at least four characters with which it begins
    #[arg(value_name = "SERIAL")]
    serial: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

impl CableArgs {
    pub(super) fn run(
        &self,
        source: &dyn Source,
        clock: &LocalClock,
        color: ColorChoice,
    ) -> Result<Output, Fatal> {
        let found = source.cable(&self.serial)?;
        if found.found == 0 {
            let mut problem = format!(
                "SERIAL: {:?} not found in {}: no cable or module had it in the recorded period",
                self.serial,
                source.name()
            );
            if self.serial.len() < MIN_PREFIX {
                let _ =
                    write!(problem, "; the beginning of one has at least {MIN_PREFIX} characters");
            }
            return Err(Fatal::usage(problem));
        }
        let summary = summary(&self.serial, &found, clock);
        let text = match &found.life {
            _ if self.json => as_json(&found)?,
            Some(life) => text(life, source, clock, color)?,
            None => found.serials.iter().map(|serial| printable(serial) + "\n").collect(),
        };
        Ok(Output { text, summary })
    }
}

fn summary(called: &str, found: &CableMatches, clock: &LocalClock) -> String {
    let Some(life) = &found.life else {
        let count = plural(found.found, "serial number");
        return format!(
            "{count} begin with {called:?}: give one of them, or more of its characters"
        );
    };
    let part = match &life.part {
        Some(part) => format!("part number {}", printable(part)),
        None => "part number not recorded".into(),
    };
    let [places, events] = [(life.places.len(), "place"), (life.events.len(), "event")]
        .map(|(count, noun)| plural(count, noun));
    let serial = printable(&life.serial);
    format!("serial number {serial}, {part}: {places}, {events}; time zone: {}", clock.zone())
}

/// The places as a table, and the events.
fn text(
    life: &CableLife,
    source: &dyn Source,
    clock: &LocalClock,
    color: ColorChoice,
) -> Result<String, Fatal> {
    let columns = vec![
        ("VERDICT", Fit::Whole),
        ("WORST", Fit::Whole),
        ("PORT", Fit::Name),
        ("OTHER END", Fit::Name),
        ("SINCE", Fit::Whole),
        ("UNTIL", Fit::Whole),
        ("LINK DOWNS", Fit::Whole),
        ("ERRORS", Fit::Text),
    ];
    let last = source.span()?.last.map_or_else(|| "-".to_owned(), |last| clock.format(last));
    let rows = life.places.iter().map(|place| (worst(place), row(place, &last, clock)));
    let table = Table { columns, rows: rows.collect() };
    let mut text = Vec::new();
    table.write(&mut text, Style::for_output(color, false)).map_err(Fatal::failed)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if !life.events.is_empty() {
        text.push('\n');
        text += &event_table(&life.events, clock, color.is_on());
    }
    Ok(text)
}

fn worst(place: &CablePlace) -> Option<Color> {
    Color::of(place.worst_verdict.unwrap_or(Verdict::Unknown))
}

fn row(place: &CablePlace, last: &str, clock: &LocalClock) -> Vec<String> {
    let verdict = |it: Option<Verdict>| it.map_or("-", |it| Verdict::word(it.label())).to_owned();
    vec![
        verdict(place.verdict),
        verdict(place.worst_verdict),
        place.port.label(),
        place.peer.as_ref().map_or_else(|| "-".into(), Port::label),
        place.since.map_or_else(|| "not recorded".into(), |at| clock.format(at)),
        place.until.map_or_else(|| format!("still there {last}"), |at| clock.format(at)),
        grouped(place.link_downs),
        if place.errors.is_empty() { "none".into() } else { list_increases(&place.errors) },
    ]
}
