//! The report as Markdown, for a ticket.

use std::fmt::Write;

use crate::local_clock::LocalClock;
use crate::plot;
use crate::report::suspects::list_errors;
use crate::report::{Report, Suspect, side_by_side};

/// Columns of a line of bars.
const COLUMNS: usize = 60;

/// Writes the report.
pub fn write(report: &Report, clock: &LocalClock) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut out, report, clock);
    out
}

fn write_report(out: &mut String, report: &Report, clock: &LocalClock) -> std::fmt::Result {
    let (from, to) = (clock.format(report.window.from), clock.format(report.window.to));
    writeln!(out, "# The fabric from {from} to {to}\n")?;
    writeln!(out, "Read from {}. Times are of {}.\n", escaped(&report.source), clock.zone())?;
    writeln!(out, "**{}**\n", report.summary())?;
    writeln!(out, "## Suspects\n")?;
    if report.suspects.is_empty() {
        writeln!(out, "None.\n")?;
    }
    for suspect in &report.suspects {
        write_suspect(out, suspect, report, clock)?;
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
            let (at, kind) = (clock.format(event.at), escaped(&event.kind));
            writeln!(
                out,
                "| {at} | {kind} | {} | {} |",
                escaped(&event.place),
                escaped(&event.text)
            )?;
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
            let counted = list_errors(moved, &|at| clock.format(at));
            writeln!(out, "| {} | {} |", escaped(&moved.port.label()), escaped(&counted))?;
        }
        writeln!(out)?;
        if report.more_others > 0 {
            writeln!(out, "{} more ports had fewer.\n", report.more_others)?;
        }
    }
    writeln!(out, "## The fabric then\n")?;
    if report.summaries.is_empty() {
        writeln!(out, "Not known.\n")?;
    }
    for (fabric, [before, after]) in &report.summaries {
        let fabric = escaped(fabric);
        writeln!(out, "| {fabric} | at the beginning | at the end |\n|---|---|---|")?;
        for (what, before, after) in side_by_side(before.as_ref(), after.as_ref()) {
            writeln!(out, "| {} | {before} | {after} |", escaped(&what))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "## What is not known\n")?;
    for sentence in &report.unknown {
        writeln!(out, "- {}", escaped(sentence))?;
    }
    if report.unknown.is_empty() {
        writeln!(out, "Nothing that could be told.")?;
    }
    Ok(())
}

fn write_suspect(
    out: &mut String,
    suspect: &Suspect,
    report: &Report,
    clock: &LocalClock,
) -> std::fmt::Result {
    let Suspect { place, worst, last, link, .. } = suspect;
    writeln!(out, "### {}: {worst}\n", escaped(place))?;
    writeln!(
        out,
        "`{link}`, conspicuous from {}, at the end {last}.\n",
        clock.format(suspect.since)
    )?;
    for line in &suspect.evidence {
        writeln!(out, "- {}", escaped(line))?;
    }
    if let Some(repair) = suspect.repair {
        writeln!(out, "- To try first: {repair}")?;
    }
    writeln!(out)?;
    for end in suspect.timeline().end_errors(report.window, COLUMNS) {
        for (what, columns) in [("link errors", end.link_errors), ("discards", end.discards)] {
            if columns.iter().any(|value| *value > 0.0) {
                let place = escaped(&end.port.label());
                writeln!(out, "`{}` {what} at {place}\n", plot::bars(&columns))?;
            }
        }
    }
    Ok(())
}

/// Escapes a text: names come from the fabric, and must not become markup.
fn escaped(text: &str) -> String {
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
