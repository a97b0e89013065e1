//! The run: shards in parallel, each result a line in a file, so that an interrupted run continues.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use ib_health::LimitTable;
use ib_health::limits::{Confidence, LimitRow, Limits};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cell::CABLES;
use crate::devices::GENERATIONS;
use crate::score::Tally;
use crate::shard::Shard;

/// What determines the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Settings {
    /// The same seed has the same result
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Cables of the long run
    #[arg(long, default_value_t = 30_000)]
    pub cables: u64, // rounded up to whole cells
    /// Days of the long run
    #[arg(long, default_value_t = 100.0)]
    pub days: f64,
    /// Seconds between sweeps of the long run
    #[arg(long, default_value_t = 60)]
    pub interval: u32,
    /// Cells with injected faults, at each of their intervals
    #[arg(long, default_value_t = 4800)]
    pub trials: u64,
    /// Seconds between sweeps with injected faults
    #[arg(long, value_delimiter = ',', default_values_t = [15, 60])]
    pub trial_intervals: Vec<u32>,
    /// The setting health.ber-confidence
    #[arg(long, default_value = "high")]
    pub confidence: String,
    /// Limits of bit error ratios as multiples of the default ones
    #[arg(long, default_value_t = 1.0)]
    pub limit_factor: f32, // what is a fault does not change with it
}

/// Why a run failed, or its report could not be written.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error("{path}: line {line}: {error}")]
    Line { path: PathBuf, line: usize, error: serde_json::Error },
    #[error("{path} has results of other settings: remove it, or choose another file by --results")]
    OtherSettings { path: PathBuf },
}

/// A line of the file of results.
#[derive(Serialize, Deserialize)]
struct Line {
    shard: String,
    tally: Tally,
}

impl Settings {
    /// The limits that the evaluator has.
    pub fn limits(&self) -> LimitTable {
        let usual = LimitTable::default();
        let row = |speed, fec| {
            let Limits { symbol, pre_fec } = usual.limits(speed, fec);
            let limits = Limits { symbol: symbol * self.limit_factor, pre_fec };
            LimitRow { speed, fec, limits }
        };
        let rows = GENERATIONS.iter().map(|known| row(known.speed, known.fec)).collect();
        let confidence = Confidence::from_label(&self.confidence).unwrap_or_default();
        LimitTable { rows, confidence, ..usual }
    }

    /// The shards, the long ones first.
    pub fn shards(&self) -> Vec<Shard> {
        let cells = self.cables.div_ceil(CABLES as u64);
        let trials = self
            .trial_intervals
            .iter()
            .flat_map(|&interval| (0..self.trials).map(move |cell| Shard::Trial(cell, interval)));
        (0..cells).map(Shard::Long).chain(trials).collect()
    }
}

/// Runs what the file does not have yet, with so many threads; `progress` gets the number of finished shards.
pub fn run(
    settings: &Settings,
    threads: usize,
    path: &Path,
    mut progress: impl FnMut(usize, usize),
) -> Result<Tally, RunError> {
    let failed = |error| RunError::File { path: path.to_owned(), error };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut known: HashMap<String, Tally> = match lines(path)? {
        None => HashMap::new(),
        Some((same, lines)) if same == *settings => {
            lines.into_iter().map(|Line { shard, tally }| (shard, tally)).collect()
        }
        Some(_) => return Err(RunError::OtherSettings { path: path.to_owned() }),
    };
    // Written again: what an interruption left of the last line is gone.
    let mut file =
        OpenOptions::new().create(true).write(true).truncate(true).open(path).map_err(failed)?;
    write(&mut file, settings).map_err(failed)?;
    for (shard, tally) in &known {
        write(&mut file, &Line { shard: shard.clone(), tally: tally.clone() }).map_err(failed)?;
    }
    let shards = settings.shards();
    let todo: Vec<Shard> =
        shards.iter().copied().filter(|shard| !known.contains_key(&shard.name())).collect();
    let next = AtomicUsize::new(0);
    let limits = settings.limits();
    progress(known.len(), shards.len());
    std::thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..threads.max(1) {
            let (sender, todo, next, limits) = (sender.clone(), &todo, &next, &limits);
            scope.spawn(move || {
                while let Some(shard) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tally = shard.run(settings.seed, settings.days, settings.interval, limits);
                    if sender.send((shard.name(), tally)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for (shard, tally) in results {
            let line = Line { shard, tally };
            write(&mut file, &line).map_err(failed)?;
            known.insert(line.shard, line.tally);
            progress(known.len(), shards.len());
        }
        Ok(())
    })?;
    // In the order of the shards, whatever finished first.
    let mut all = Tally::default();
    for tally in shards.iter().filter_map(|shard| known.remove(&shard.name())) {
        all.add(tally);
    }
    Ok(all)
}

fn write(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// The settings of a file and the sum of its results; `None` if it does not exist.
pub fn load(path: &Path) -> Result<Option<(Settings, Tally)>, RunError> {
    let Some((settings, mut lines)) = lines(path)? else { return Ok(None) };
    lines.sort_by(|a, b| a.shard.cmp(&b.shard));
    let mut all = Tally::default();
    for line in lines {
        all.add(line.tally);
    }
    Ok(Some((settings, all)))
}

/// The settings and results in a file; `None` if it does not exist. An incomplete last line is left out: its shard runs
/// again.
fn lines(path: &Path) -> Result<Option<(Settings, Vec<Line>)>, RunError> {
    let failed = |error| RunError::File { path: path.to_owned(), error };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    let texts: Vec<String> =
        BufReader::new(file).lines().collect::<Result<_, _>>().map_err(failed)?;
    let Some((first, rest)) = texts.split_first() else { return Ok(None) };
    let at = |line| move |error| RunError::Line { path: path.to_owned(), line, error };
    let settings = serde_json::from_str(first).map_err(at(1))?;
    let mut known = Vec::new();
    for (nth, text) in rest.iter().enumerate() {
        match serde_json::from_str(text) {
            Ok(line) => known.push(line),
            Err(_) if nth + 1 == rest.len() => {}
            Err(error) => return Err(at(nth + 2)(error)),
        }
    }
    Ok(Some((settings, known)))
}
