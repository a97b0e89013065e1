//! The files that a configuration was made of, and whether they are still the same.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// No file of ours is nearly as large: a chain of certificates is some 10 kB.
const MOST: u64 = 1 << 20;

/// What of a file is another when it has changed. Who replaces it, as a Kubernetes secret is, changes
/// the inode; who writes into it, the times.
type Stamp = [i128; 5];

fn stamp(path: &Path) -> Option<Stamp> {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let of = |about: Metadata| {
        [
            about.dev().into(),
            about.ino().into(),
            about.size().into(),
            nanos(about.mtime(), about.mtime_nsec()),
            nanos(about.ctime(), about.ctime_nsec()),
        ]
    };
    std::fs::metadata(path).ok().map(of)
}

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
        let mut bytes = Vec::new();
        let mut read = || File::open(path)?.take(MOST + 1).read_to_end(&mut bytes);
        match read() {
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
            Ok(length) if length as u64 > MOST => {
                Err(format!("cannot read {}: larger than {MOST} bytes", path.display()))
            }
            Ok(_) => Ok(bytes),
        }
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
