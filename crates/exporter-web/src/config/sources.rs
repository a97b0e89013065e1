//! The files that a configuration was read from, and whether they have changed.

use std::path::{Path, PathBuf};

use site_config::file;
use site_config::file::{Stamp, stamp};

/// The most bytes of a file: a chain of certificates is some 10 kB.
const MAX_BYTES: u64 = 1 << 20;

/// The files that a configuration was read from.
#[derive(Clone, Debug)]
pub struct Sources {
    folder: PathBuf,
    seen: Vec<(PathBuf, Option<Stamp>)>,
}

impl Sources {
    /// Those of the file at this path, before anything was read.
    pub(super) fn new(path: &Path) -> Self {
        Sources { folder: path.parent().unwrap_or(Path::new("")).to_owned(), seen: Vec::new() }
    }

    /// The path of a file that is named in the first one: relative names are in its folder.
    pub(super) fn resolve(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reads a file. Its stamp is taken before, so that a change meanwhile is seen later.
    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        self.seen.push((path.to_owned(), stamp(path)));
        file::read(path, MAX_BYTES).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    /// Their paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.seen.iter().map(|(path, _)| &**path)
    }

    /// Whether any of them has changed since it was read.
    pub fn have_changed(&self) -> bool {
        self.seen.iter().any(|(path, seen)| stamp(path) != *seen)
    }
}
