//! The files that a configuration is read from.

use std::path::{Path, PathBuf};

use yaml_config::file::{self, Stamp, stamp};

/// The most bytes of a file: a chain of certificates is some 10 kB.
const MAX_BYTES: u64 = 1 << 20;

/// The files that a configuration was read from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The folder of the first one: relative names in it are names of files there.
    pub(super) folder: PathBuf,
    files: Vec<SourceFile>,
}

#[derive(Clone, Debug)]
struct SourceFile {
    path: PathBuf,
    /// Taken before the file was read, so that a change during the read is detected later.
    stamp: Option<Stamp>,
}

impl Sources {
    pub(super) fn new(path: &Path) -> Self {
        Sources { folder: path.parent().unwrap_or(Path::new("")).to_owned(), files: Vec::new() }
    }

    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        let is_main = self.files.is_empty();
        self.files.push(SourceFile { path: path.to_owned(), stamp: stamp(path) });
        // A message about the first one begins with its path.
        let name = if is_main { "the file".into() } else { path.to_string_lossy() };
        file::read(path, MAX_BYTES).map_err(|error| format!("cannot read {name}: {error}"))
    }

    /// Their paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.path)
    }

    /// Whether any of them has changed since it was read.
    pub fn have_changed(&self) -> bool {
        self.files.iter().any(|file| stamp(&file.path) != file.stamp)
    }
}
