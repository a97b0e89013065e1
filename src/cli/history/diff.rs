//! `history diff`: what changed on every link between two times.

use std::io::Write;

use clap::Args;

use fabric_history::Source;
use fabric_history::diff::{LinkDiff, diff_links};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Sum, Window};
use fabric_history::source::until_known;
use ib_mad::Counter;
use ib_mad::label::plural;

use super::window::parse_time;
use super::{Exit, Fatal, Written, tame, unreadable, write_json};

/// Counters in an end's line: those with the largest increases.
const MAX_COUNTERS: usize = 3;

/// The arguments of `history diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// The first moment: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339
    #[arg(value_name = "T1")]
    from: String,
    /// The second one; the same forms [default: now]
    #[arg(value_name = "T2")]
    to: Option<String>,
    /// Tell so many links, the worst
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn write(
    args: &DiffArgs,
    source: &dyn Source,
    clock: &LocalClock,
    out: &mut impl Write,
) -> Result<Written, Fatal> {
    let from = parse_time(clock, "T1", &args.from)?;
    let to = match &args.to {
        Some(to) => parse_time(clock, "T2", to)?,
        None => super::window::open_end(clock),
    };
    if to < from {
        return Err(Fatal::new(Exit::Usage, "T2: is before T1"));
    }
    let window = Window { from, to };
    let window = until_known(source, window, clock.time()).map_err(unreadable)?;
    let all = diff_links(source, window).map_err(unreadable)?;
    let diffs = &all[..all.len().min(args.limit)];
    let written = if args.json { write_json(&diffs, out) } else { write_table(diffs, out) };
    let summary = format!(
        "{} on which anything moved from {} to {}{}; times are of {}",
        plural(all.len(), "link"),
        clock.format(window.from),
        clock.format(window.to),
        if diffs.len() < all.len() {
            format!(", the worst {} are told", diffs.len())
        } else {
            String::new()
        },
        clock.zone()
    );
    Ok(written.map(|()| summary))
}

fn write_table(diffs: &[LinkDiff], out: &mut impl Write) -> std::io::Result<()> {
    for diff in diffs {
        let changes = diff.changes();
        let changes = if changes.is_empty() { "errors".into() } else { changes.join(", ") };
        writeln!(out, "{}: {}", tame(&diff.label()), tame(&changes))?;
        for (end, sums) in diff.ends.iter().zip(&diff.errors) {
            if !sums.is_empty() {
                writeln!(out, "  {}: {}", tame(&end.label()), list_increases(sums))?;
            }
        }
    }
    Ok(())
}

/// An end's increases, the largest first.
fn list_increases(sums: &[Sum]) -> String {
    let mut sums: Vec<(Counter, u64)> = sums.iter().map(|sum| (sum.counter, sum.by)).collect();
    sums.sort_by_key(|(counter, by)| (std::cmp::Reverse(*by), *counter));
    let largest = sums.iter().take(MAX_COUNTERS);
    let mut increases: Vec<String> =
        largest.map(|(counter, by)| format!("{} +{by}", counter.row().metric)).collect();
    if sums.len() > MAX_COUNTERS {
        increases.push(format!("{} more", plural(sums.len() - MAX_COUNTERS, "counter")));
    }
    increases.join(", ")
}
