//! The files that a configuration was made of, and whether they are still the same.

use std::path::{Path, PathBuf};

use site_config::file;
use site_config::file::{Stamp, stamp};

/// No file of ours is nearly as large: a chain of certificates is some 10 kB.
const MOST: u64 = 1 << 20;

/// The files that a configuration was made of.
#[derive(Clone, Debug)]
pub struct Sources {
    folder: PathBuf,
    seen: Vec<(PathBuf, Option<Stamp>)>,
}

impl Sources {
    /// Those of the file at this path, of which nothing was read yet.
    pub(super) fn of(path: &Path) -> Self {
        Sources { folder: path.parent().unwrap_or(Path::new("")).to_owned(), seen: Vec::new() }
    }

    /// The path of a file that is named in the first one: relative names are of its folder.
    pub(super) fn resolve(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reads one, and remembers what it was like before: a change meanwhile is one.
    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        self.seen.push((path.to_owned(), stamp(path)));
        file::read(path, MOST).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    /// Where they are.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.seen.iter().map(|(path, _)| &**path)
    }

    /// Whether any of them is another than the one that was read.
    pub fn have_changed(&self) -> bool {
        self.seen.iter().any(|(path, seen)| stamp(path) != *seen)
    }
}
