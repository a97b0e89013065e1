//! The paths of a history's files, and what may be at them.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::HistoryError;

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// How many bytes of a file's disk are free.
pub fn free(path: &Path) -> Result<u64, HistoryError> {
    let failed = HistoryError::io(path, "query the free disk space");
    let disk = rustix::fs::statvfs(folder_of(path)).map_err(|error| failed(error.into()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// An error if less than `least` bytes are free.
pub(crate) fn ensure_free(path: &Path, free: u64, least: u64) -> Result<(), HistoryError> {
    if free < least { Err(HistoryError::Full(path.into(), free, least)) } else { Ok(()) }
}

/// An error if there is something other than a regular file. It is not opened for this: a FIFO would wait
/// for a writer, and a device may do something when it is opened.
pub(crate) fn ensure_regular(path: &Path) -> Result<(), HistoryError> {
    let found = metadata(path, "open the file")?;
    found.map_or(Ok(()), |found| regular(path, &found))
}

/// The metadata of a file; `None` if it does not exist.
pub(super) fn metadata(path: &Path, doing: &'static str) -> Result<Option<Metadata>, HistoryError> {
    match std::fs::metadata(path) {
        Ok(data) => Ok(Some(data)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(HistoryError::io(path, doing)(error)),
    }
}

pub(super) fn regular(path: &Path, data: &Metadata) -> Result<(), HistoryError> {
    let kind = data.file_type();
    let names = [
        (kind.is_dir(), "a directory"),
        (kind.is_fifo(), "a FIFO"),
        (kind.is_socket(), "a socket"),
        (kind.is_block_device() || kind.is_char_device(), "a device"),
    ];
    let found = names.into_iter().find(|(is_it, _)| *is_it);
    found.map_or(Ok(()), |(_, what)| Err(HistoryError::NotAFile(path.into(), what)))
}
