//! The report as Markdown, for a ticket.

use std::fmt::Write;

use crate::clock::Clock;
use crate::columns;

use super::{Report, Suspect, suspects};

/// How many columns a course has.
const COLUMNS: usize = 60;

/// Writes it.
pub fn write(report: &Report, clock: &Clock) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = page(&mut out, report, clock);
    out
}

fn page(out: &mut String, report: &Report, clock: &Clock) -> std::fmt::Result {
    let (from, to) = (clock.tell(report.window.from), clock.tell(report.window.to));
    writeln!(out, "# The fabric from {from} to {to}\n")?;
    writeln!(out, "Told from {}. Times are of {}.\n", text(&report.source), clock.zone())?;
    writeln!(out, "**{}**\n", report.gist())?;
    writeln!(out, "## Suspects\n")?;
    if report.suspects.is_empty() {
        writeln!(out, "None.\n")?;
    }
    for suspect in &report.suspects {
        one(out, suspect, report, clock)?;
    }
    if report.more_suspects > 0 {
        writeln!(out, "{} more are less grave.\n", report.more_suspects)?;
    }
    writeln!(out, "## What happened\n")?;
    if report.events.is_empty() {
        writeln!(out, "Nothing, as far as is known.\n")?;
    } else {
        writeln!(out, "| when | what | where | in words |\n|---|---|---|---|")?;
        for event in &report.events {
            let (at, kind) = (clock.tell(event.at), text(&event.kind));
            writeln!(out, "| {at} | {kind} | {} | {} |", text(&event.place), text(&event.text))?;
        }
        writeln!(out)?;
    }
    if report.more_events > 0 {
        writeln!(out, "{} more events are left out.\n", report.more_events)?;
    }
    if !report.others.is_empty() {
        writeln!(
            out,
            "## Counters of ports that are not suspect\n\n| port | counted |\n|---|---|"
        )?;
        for moved in &report.others {
            let counted = suspects::counted(moved, &|at| clock.tell(at));
            writeln!(out, "| {} | {} |", text(&moved.port.label()), text(&counted))?;
        }
        writeln!(out)?;
        if report.more_others > 0 {
            writeln!(out, "{} more ports had fewer.\n", report.more_others)?;
        }
    }
    writeln!(out, "## The fabric then\n")?;
    if report.shapes.is_empty() {
        writeln!(out, "Not known.\n")?;
    }
    for (fabric, [before, after]) in &report.shapes {
        let fabric = text(fabric);
        writeln!(out, "| {fabric} | at the beginning | at the end |\n|---|---|---|")?;
        for (what, before, after) in super::shape::side_by_side(before.as_ref(), after.as_ref()) {
            writeln!(out, "| {} | {before} | {after} |", text(&what))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "## What is not known\n")?;
    for sentence in &report.unknown {
        writeln!(out, "- {}", text(sentence))?;
    }
    if report.unknown.is_empty() {
        writeln!(out, "Nothing that could be told.")?;
    }
    Ok(())
}

fn one(out: &mut String, suspect: &Suspect, report: &Report, clock: &Clock) -> std::fmt::Result {
    let Suspect { place, worst, last, link, .. } = suspect;
    writeln!(out, "### {}: {worst}\n", text(place))?;
    writeln!(
        out,
        "`{link}`, conspicuous from {}, at the end {last}.\n",
        clock.tell(suspect.since)
    )?;
    for line in &suspect.evidence {
        writeln!(out, "- {}", text(line))?;
    }
    if let Some(repair) = suspect.repair {
        writeln!(out, "- To try first: {repair}")?;
    }
    writeln!(out)?;
    for end in suspect.course().lanes(report.window, COLUMNS) {
        for (what, columns) in [("link errors", end.link_errors), ("discards", end.discards)] {
            if columns.iter().any(|value| *value > 0.0) {
                let place = text(&end.port.label());
                writeln!(out, "`{}` {what} at {place}\n", columns::bars(&columns))?;
            }
        }
    }
    Ok(())
}

/// Names come from the fabric, and must not become markup.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '[' | ']' | '`' | '\\' | '#' | '!' => out.extend(['\\', char]),
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out
}
