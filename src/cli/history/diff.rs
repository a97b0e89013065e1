//! `history diff`: what moved on every link between two moments.

use std::io::Write;

use clap::Args;

use fabric_history::Source;
use fabric_history::clock::Clock;
use fabric_history::diff::{LinkDiff, between};
use fabric_history::model::{Sum, Window};
use fabric_history::source::until_known;
use ib_mad::Counter;
use ib_mad::label::plural;

use super::window::asked;
use super::{Exit, Fatal, Told, as_json, tame, unreadable};

/// How many counters of an end stand in a line: those that tell the most.
const MOST_COUNTERS: usize = 3;

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

pub(super) fn tell(
    ask: &DiffArgs,
    source: &dyn Source,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<Told, Fatal> {
    let from = asked(clock, "T1", &ask.from)?;
    let to = match &ask.to {
        Some(to) => asked(clock, "T2", to)?,
        None => super::window::far(clock),
    };
    if to < from {
        return Err(Fatal::new(Exit::Usage, "T2: is before T1"));
    }
    let window = Window { from, to };
    let window = until_known(source, window, clock.time()).map_err(unreadable)?;
    let all = between(source, window).map_err(unreadable)?;
    let told = &all[..all.len().min(ask.limit)];
    let written = if ask.json { as_json(&told, out) } else { as_table(told, out) };
    let last = format!(
        "{} on which anything moved from {} to {}{}; times are of {}",
        plural(all.len(), "link"),
        clock.tell(window.from),
        clock.tell(window.to),
        if told.len() < all.len() {
            format!(", the worst {} are told", told.len())
        } else {
            String::new()
        },
        clock.zone()
    );
    Ok(written.map(|()| last))
}

fn as_table(told: &[LinkDiff], out: &mut impl Write) -> std::io::Result<()> {
    for diff in told {
        let changes = diff.changes();
        let changes = if changes.is_empty() { "errors".into() } else { changes.join(", ") };
        writeln!(out, "{}: {}", tame(&diff.label()), tame(&changes))?;
        for (end, sums) in diff.ends.iter().zip(&diff.errors) {
            if !sums.is_empty() {
                writeln!(out, "  {}: {}", tame(&end.label()), counted(sums))?;
            }
        }
    }
    Ok(())
}

/// What an end counted, the most first.
fn counted(sums: &[Sum]) -> String {
    let mut sums: Vec<(Counter, u64)> = sums.iter().map(|sum| (sum.counter, sum.by)).collect();
    sums.sort_by_key(|(counter, by)| (std::cmp::Reverse(*by), *counter));
    let told = sums.iter().take(MOST_COUNTERS);
    let mut told: Vec<String> =
        told.map(|(counter, by)| format!("{} +{by}", counter.row().metric)).collect();
    if sums.len() > MOST_COUNTERS {
        told.push(format!("{} more", plural(sums.len() - MOST_COUNTERS, "counter")));
    }
    told.join(", ")
}
