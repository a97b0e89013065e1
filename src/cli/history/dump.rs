//! `history dump`: a copy of a window, to be taken elsewhere.

use std::path::{Path, PathBuf};

use clap::Args;
use tempfile::NamedTempFile;

use fabric_history::Reader;
use fabric_history::clock::Clock;
use fabric_history::file::dump::{Existing, temporary_beside};
use fabric_history::model::Window;

use super::origin::{File, OriginArgs};
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

/// Copies what is asked for, and tells the line that ends it.
pub(super) fn run(ask: &DumpArgs, origin: OriginArgs, clock: &Clock) -> Result<String, Fatal> {
    let file = &*ask.output;
    ask.ensure_free()?;
    let origin = origin.file("dump")?;
    let window = ask.window.window(clock, origin.source())?;
    let existing = if ask.force { Existing::Replace } else { Existing::Keep };
    let written = match origin {
        File::Here(reader) => reader.dump(window, file, existing, 0).map(drop),
        File::There(api) => {
            let part = temporary_beside(file).map_err(|error| unreadable(error.into()))?;
            api.dump(window, part.path()).map_err(unreadable)?;
            // What is no history must not take the place of a file.
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
        clock.tell(window.from),
        clock.tell(window.to.min(clock.time())),
        bytes as f64 / 1e6,
        clock.zone()
    ))
}

impl DumpArgs {
    /// An error if the file is there, or somebody is using it.
    fn ensure_free(&self) -> Result<(), Fatal> {
        let file = self.output.display();
        let beside = |suffix: &str| {
            let mut name = self.output.as_os_str().to_owned();
            name.push(suffix);
            Path::new(&name).exists()
        };
        if beside("-wal") || beside("-shm") {
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

/// The file to export from: that of a running exporter is fetched for it, and kept as long as the
/// second is.
pub(super) fn reader(
    origin: File,
    window: Window,
) -> Result<(Reader, Option<NamedTempFile>), Fatal> {
    match origin {
        File::Here(reader) => Ok((reader, None)),
        File::There(api) => {
            // Where others may write, too: its name is random, and it is readable by its owner alone.
            let made = tempfile::Builder::new().prefix("fabric-exporter-").suffix(".db").tempfile();
            let copy = made.map_err(|error| {
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
