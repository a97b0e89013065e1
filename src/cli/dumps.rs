//! Dumps of other tools as if the exporter had swept the fabric.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use display_text::grouped;
use fabric_dumps::{Dump, DumpError};
use fabric_history::model::time::clamped;
use fabric_observation::{Collector, MonitorStats, Observation};
use humantime::format_rfc3339_seconds;
use ib_fabric::names::Naming;
use ib_fabric::node_name_map::NodeNameMap;
use ib_health::LinkEvaluator;
use ib_mad::Moment;
use ib_mad::moment::Anchor;

use crate::config::Settings;
use crate::exit::Fatal;
use crate::monitor::names_in;

/// The longest name that is shown of a file.
const SHOWN: usize = 60;

/// Reads dumps, the oldest first. With `between` they are as far from each other, in the order of their times.
pub fn read(paths: &[PathBuf], between: Option<Duration>) -> Result<Vec<Dump>, Fatal> {
    let mut dumps = fabric_dumps::read(paths).map_err(|error| match error {
        DumpError::File { .. } => Fatal::failed(error),
        DumpError::Invalid(_) => Fatal::usage(error),
    })?;
    if let (Some(between), Some(first)) = (between, dumps.first().map(|dump| dump.taken_at)) {
        for (nth, dump) in dumps.iter_mut().enumerate() {
            dump.taken_at = first + between * nth as u32;
            dump.has_time = true;
        }
    }
    let same = dumps.windows(2).find(|pair| pair[0].taken_at >= pair[1].taken_at);
    if let Some([first, second]) = same {
        let (first, second) = (first.name(), second.name());
        return Err(Fatal::usage(format!(
            "{first} and {second} have the same time: error rates need the time between them: add --between"
        )));
    }
    Ok(dumps)
}

/// A line for each dump: its time, and what it contains.
pub fn notes(dumps: &[Dump]) -> Vec<String> {
    let note = |dump: &Dump| {
        let formats: Vec<&str> = dump.files.iter().map(|(_, format)| format.label()).collect();
        let time = format_rfc3339_seconds(clamped(dump.taken_at));
        let guessed = if dump.has_time { "" } else { " (modification time of the file)" };
        let mut name: String = dump.name();
        if name.chars().count() > SHOWN {
            let cut = name.chars().count() - SHOWN;
            name = format!("…{}", name.chars().skip(cut).collect::<String>());
        }
        let (nodes, links) = (grouped(dump.nodes.len()), grouped(dump.links.len()));
        let counted = grouped(dump.counted());
        let mut text = format!(
            "{name}: {time}{guessed}, {}: {nodes} nodes, {links} links, counters of {counted} ports",
            formats.join(", ")
        );
        if dump.unresolved > 0 {
            let entries = grouped(dump.unresolved);
            let _ = write!(
                text,
                "; ports or links left out: {entries} (their node is unknown, or they contradict others)"
            );
        }
        super::terminal::printable(&text)
    };
    dumps.iter().map(note).collect()
}

/// Evaluates dumps one after the other, and returns the last observation. `each` gets all of them.
pub fn judge(
    dumps: &[Dump],
    settings: &Settings,
    mut each: impl FnMut(&Observation),
) -> Result<Arc<Observation>, Fatal> {
    let settings =
        settings.fabrics.first().ok_or_else(|| Fatal::usage("no fabric is configured"))?;
    let map = match &settings.node_name_map {
        Some(path) => names_in(path).map_err(Fatal::usage)?,
        None => NodeNameMap::default(),
    };
    let naming = Naming { map, hosts: settings.hosts.clone() };
    let mut evaluator = LinkEvaluator::new(settings.limits.clone());
    let first = dumps.first().map_or(SystemTime::UNIX_EPOCH, |dump| dump.taken_at);
    let mut last = Observation { fabric: settings.name.clone(), ..Observation::default() };
    for (nth, dump) in dumps.iter().enumerate() {
        let since = dump.taken_at.duration_since(first).unwrap_or_default();
        // Not the start of the clock, which stands for never.
        let anchor = Anchor {
            moment: Moment::default() + Duration::from_secs(1) + since,
            wall: dump.taken_at,
        };
        let previous = last.snapshot.as_ref().map(|snapshot| Arc::clone(&snapshot.fabric));
        let (snapshot, assessment) =
            evaluator.evaluate(dump.snapshot(previous.as_deref(), &naming, anchor));
        let mut stats = MonitorStats::default();
        (stats.sweeps, stats.discoveries) = (nth as u64 + 1, nth as u64 + 1);
        for collector in Collector::ALL {
            stats.set_success(collector, true);
        }
        last = Observation { snapshot: Some(Arc::new(snapshot)), assessment, stats, ..last };
        each(&last);
    }
    Ok(Arc::new(last))
}
