//! `history dump`: a copy of a window, to be taken elsewhere.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::history::clock::Clock;
use crate::history::model::Window;
use crate::history::{HistoryError, Reader};

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
    let reader = match origin {
        File::Here(reader) => {
            reader.dump(window, file, 0).map_err(|error| unreadable(error.into()))?;
            Reader::open(file)
        }
        File::There(api) => {
            let part = Scratch::beside(file);
            api.dump(window, part.path()).map_err(unreadable)?;
            // What is no history must not take the place of a file.
            Reader::open(part.path()).and_then(|_| {
                let failed =
                    |error| HistoryError::Io { path: file.into(), doing: "write it", error };
                std::fs::rename(part.path(), file).map_err(failed)?;
                Reader::open(file)
            })
        }
    };
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

/// A file for a while.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Beside another, so that it can be given its name.
    fn beside(file: &Path) -> Self {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".part-{}", std::process::id()));
        Scratch(name.into())
    }

    /// A new one where others may write, too: what somebody else put there under its name is an error.
    fn made() -> std::io::Result<Self> {
        let name = format!("fabric-exporter-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Scratch(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may have another name by now.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The file to export from: that of a running exporter is fetched for it, and kept as long as the
/// second is.
pub(super) fn reader(origin: File, window: Window) -> Result<(Reader, Option<Scratch>), Fatal> {
    match origin {
        File::Here(reader) => Ok((reader, None)),
        File::There(api) => {
            let copy = Scratch::made().map_err(|error| {
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
