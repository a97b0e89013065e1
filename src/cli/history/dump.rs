//! `history dump`: copies a window to a file of its own.

use std::path::{Path, PathBuf};

use clap::Args;
use tempfile::NamedTempFile;

use fabric_history::Reader;
use fabric_history::file::dump::{Existing, temporary_beside};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::Window;

use super::origin::{Origin, OriginArgs};
use super::window::WindowArgs;
use super::{Exit, Fatal, unreadable};

/// The arguments of `history dump`.
#[derive(Args, Debug)]
pub struct DumpArgs {
    #[command(flatten)]
    window: WindowArgs,
    /// Write it there
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Write it there also if there is a file of that name
    #[arg(long)]
    force: bool,
}

/// Copies the window; returns the summary.
pub(super) fn run(
    args: &DumpArgs,
    origin: OriginArgs,
    clock: &LocalClock,
) -> Result<String, Fatal> {
    let file = &*args.output;
    args.ensure_free()?;
    let origin = origin.open()?;
    let window = args.window.window(clock, origin.source())?;
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    let written = match origin {
        Origin::File(reader) => reader.dump(window, file, existing, 0).map(drop),
        Origin::Exporter(api) => {
            let part = temporary_beside(file).map_err(|error| unreadable(error.into()))?;
            api.dump(window, part.path()).map_err(unreadable)?;
            // Only a valid history replaces a file.
            Reader::open(part.path()).and_then(|_| existing.give(part, file).map(drop))
        }
    };
    let reader = written.and_then(|()| Reader::open(file));
    let reader = reader.map_err(|error| unreadable(error.into()))?;
    let (sweeps, events) = reader.counts().map_err(|error| unreadable(error.into()))?;
    let bytes = std::fs::metadata(file).map_or(0, |data| data.len());
    Ok(format!(
        "{}: {sweeps} sweeps and {events} events from {} to {}, {:.1} MB; times are of {}",
        file.display(),
        clock.format(window.from),
        clock.format(window.to.min(clock.time())),
        bytes as f64 / 1e6,
        clock.zone()
    ))
}

impl DumpArgs {
    /// An error if the file exists, or is a history in use.
    fn ensure_free(&self) -> Result<(), Fatal> {
        let file = self.output.display();
        let exists_with = |suffix: &str| {
            let mut name = self.output.as_os_str().to_owned();
            name.push(suffix);
            Path::new(&name).exists()
        };
        if exists_with("-wal") || exists_with("-shm") {
            let problem = format!("--output: {file}: is a history that somebody writes or reads");
            return Err(Fatal::new(Exit::Usage, problem));
        }
        if self.output.exists() && !self.force {
            let problem = format!("--output: {file}: is there already (--force overwrites it)");
            return Err(Fatal::new(Exit::Usage, problem));
        }
        Ok(())
    }
}

/// The file to export from. That of a running exporter is fetched to a temporary file, which is deleted when
/// the second value is dropped.
pub(super) fn reader(
    origin: Origin,
    window: Window,
) -> Result<(Reader, Option<NamedTempFile>), Fatal> {
    match origin {
        Origin::File(reader) => Ok((reader, None)),
        Origin::Exporter(api) => {
            // In a folder where others may write: its name is random, and only its owner can read it.
            let created =
                tempfile::Builder::new().prefix("fabric-exporter-").suffix(".db").tempfile();
            let copy = created.map_err(|error| {
                let folder = std::env::temp_dir();
                let problem = format!("cannot make a file in {}: {error}", folder.display());
                Fatal::new(Exit::Failed, problem)
            })?;
            api.dump(window, copy.path()).map_err(unreadable)?;
            let reader = Reader::open(copy.path()).map_err(|error| unreadable(error.into()))?;
            Ok((reader, Some(copy)))
        }
    }
}
