//! The header of a file.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use crate::HistoryError;
use crate::file::lock::is_marked;
use crate::file::paths::{metadata, regular};
use crate::file::tables::is_history;

/// A file whose header is read again and again, kept open.
///
/// A process that closes any descriptor of a file loses all POSIX locks that it holds on it (fcntl(2)),
/// those of SQLite's connections as well, and SQLite does not notice. Then another program may believe
/// that it has the file alone, and delete the write-ahead log in use. So the descriptor has to stay
/// open for as long as the process may have connections to the file.
#[derive(Clone, Debug, Default)]
pub struct Header(Option<Arc<File>>);

impl Header {
    /// The header of the file at a path, as far as it exists; empty if the file does not exist yet.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Vec<u8>, HistoryError> {
        let failed = HistoryError::io(path, "read the file");
        let Some(found) = metadata(path, "read the file")? else { return Ok(Vec::new()) };
        regular(path, &found)?;
        let is_same = |file: &Arc<File>| {
            let held = file.metadata();
            held.is_ok_and(|held| (held.dev(), held.ino()) == (found.dev(), found.ino()))
        };
        // A file that has replaced another one is opened; nothing is written to the other.
        let file = match self.0.take().filter(is_same) {
            Some(file) => file,
            None => Arc::new(open(path, false)?),
        };
        let mut header = vec![0; 100];
        let length = file.read_at(&mut header, 0).map_err(failed)?;
        header.truncate(length);
        self.0 = Some(file);
        Ok(header)
    }

    /// The file at a path, which is created empty if it does not exist.
    pub(crate) fn file(&mut self, path: &Path) -> Result<Arc<File>, HistoryError> {
        if metadata(path, "open the file")?.is_none() {
            self.0 = Some(Arc::new(open(path, true)?));
        } else {
            self.read(path)?;
        }
        self.0
            .clone()
            .ok_or_else(|| HistoryError::io(path, "open the file")(ErrorKind::NotFound.into()))
    }
}

fn open(path: &Path, create: bool) -> Result<File, HistoryError> {
    let failed = HistoryError::io(path, if create { "create the file" } else { "read the file" });
    // A FIFO that has replaced the file since then must not block us either.
    let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY).bits().cast_signed();
    let mut options = File::options();
    // With the mode that SQLite gives a file.
    options.read(true).write(create).create(create).truncate(false).mode(0o644);
    let file = options.custom_flags(flags).open(path).map_err(failed)?;
    regular(path, &file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// An error if a file is not a history: a mistyped name must not cost a file.
pub(crate) fn ensure_ours(path: &Path, header: &[u8], lock: &Path) -> Result<(), HistoryError> {
    let is_ours = is_history(header) || is_marked(lock);
    if is_ours { Ok(()) } else { Err(HistoryError::foreign(path)) }
}
