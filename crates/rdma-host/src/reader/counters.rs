//! Sysfs files that may refuse to be read: one with a backoff, and a directory of counters.
//!
//! A read may fail with EINVAL, EPERM or EOPNOTSUPP, or give `N/A (no PMA)`, for one file or for all, for
//! ever or for a while. On a restricted function of an mlx5 each such read also writes a line to the
//! kernel's log (ACCESS_REG 0x805), so a file that failed is not read again until its backoff is over.
//!
//! If all files of a directory failed, as with a PMA that does not respond, one of them is read as a probe
//! once its backoff is over, another one each time, and the others only if the probe succeeds.

use std::io;
use std::time::Duration;

use ib_mad::Moment;

use super::sysfs::Directory;

/// The time of a read, and how long to back off should it fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub now: Moment,
    pub error_backoff: Duration,
}

/// Whether the latest read failed, and until when not to read again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    pub until: Option<Moment>,
}

impl Backoff {
    pub(super) fn is_over(self, attempt: Attempt) -> bool {
        self.until.is_none_or(|until| attempt.now >= until)
    }

    pub(super) fn after_failure(attempt: Attempt) -> Self {
        Backoff { until: Some(attempt.now + attempt.error_backoff) }
    }

    /// After a read, of this outcome.
    pub(super) fn after<T>(attempt: Attempt, outcome: &io::Result<T>) -> Self {
        if outcome.is_ok() { Backoff::default() } else { Backoff::after_failure(attempt) }
    }
}

#[derive(Debug)]
pub(super) struct BackoffFile {
    pub name: Box<str>,
    backoff: Backoff,
    has_succeeded: bool,
}

impl BackoffFile {
    /// A file that has not been read yet.
    pub(super) fn new(name: &str) -> Self {
        BackoffFile { name: name.into(), backoff: Backoff::default(), has_succeeded: false }
    }

    /// Reads and parses the file; `None` if that fails, or while it is backing off. The error is the kernel's.
    pub(super) fn read<T>(
        &mut self,
        directory: &Directory,
        attempt: Attempt,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        if !self.backoff.is_over(attempt) {
            return Ok(None);
        }
        let value = directory.read(&self.name, parse);
        match &value {
            Ok(Some(_)) => (self.backoff, self.has_succeeded) = (Backoff::default(), true),
            // Not the file's failure: it is tried again at the next read.
            Err(error) if is_local_shortage(error) => {}
            _ => self.backoff = Backoff::after_failure(attempt),
        }
        value
    }

    fn read_number(&mut self, directory: &Directory, attempt: Attempt) -> Option<u64> {
        self.read(directory, attempt, |text| text.parse().ok()).ok().flatten()
    }

    /// Ends the backoff: something happened that may let the next read succeed.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff.until = self.backoff.until.map(|_| Moment::default());
    }

    /// Whether the latest read failed.
    pub(super) fn has_failed(&self) -> bool {
        self.backoff.until.is_some()
    }
}

/// Whether a read failed because this process lacks descriptors or memory, or was interrupted.
fn is_local_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR))
}

/// The counters of a directory, each with its key.
#[derive(Debug)]
pub(super) struct Counters<K> {
    directory: Directory,
    files: Vec<(K, BackoffFile)>,
    failed_probes: usize,
}

impl<K: Copy> Counters<K> {
    /// Lists the files of a directory; `key` returns the key of a file, or `None` to skip it.
    pub(super) fn open(directory: Directory, mut key: impl FnMut(&str) -> Option<K>) -> Self {
        let names = directory.names().unwrap_or_default();
        let files = names.iter().filter_map(|name| Some((key(name)?, BackoffFile::new(name))));
        Counters { files: files.collect(), directory, failed_probes: 0 }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = K> {
        self.files.iter().map(|(key, _)| *key)
    }

    /// Reads each file that is not backing off, and passes its value to `record`.
    pub(super) fn read(&mut self, attempt: Attempt, mut record: impl FnMut(K, u64)) {
        if let Some(probe) = self.probe() {
            let (_, file) = &mut self.files[probe];
            if !file.backoff.is_over(attempt) {
                return;
            }
            if file.read_number(&self.directory, attempt).is_none() {
                self.failed_probes += 1;
                let failed = Backoff::after_failure(attempt);
                self.files.iter_mut().for_each(|(_, file)| file.backoff = failed);
                return;
            }
            self.failed_probes = 0;
            self.files.iter_mut().for_each(|(_, file)| file.reset_backoff());
        }
        for (key, file) in &mut self.files {
            if let Some(value) = file.read_number(&self.directory, attempt) {
                record(*key, value);
            }
        }
    }

    /// The file to read for all, if all have failed: one that once succeeded, if any has.
    fn probe(&self) -> Option<usize> {
        if self.failed() < self.files.len() {
            return None;
        }
        let succeeded = || (0..self.files.len()).filter(|&index| self.files[index].1.has_succeeded);
        let turn = |count: usize| self.failed_probes.checked_rem(count);
        match turn(succeeded().count()) {
            Some(turn) => succeeded().nth(turn),
            None => turn(self.files.len()),
        }
    }

    /// How many files gave no value at their latest read.
    pub(super) fn failed(&self) -> usize {
        self.files.iter().filter(|(_, file)| file.has_failed()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Duration = Duration::from_secs(60);

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Tree(tempfile::tempdir().unwrap());
            for (name, text) in files {
                tree.put(name, text);
            }
            tree
        }

        fn put(&self, name: &str, text: &str) {
            std::fs::write(self.0.path().join(name), text).unwrap();
        }

        fn put_all(&self, names: &[&str], text: &str) {
            for name in names {
                self.put(name, text);
            }
        }

        fn counters(&self) -> Counters<char> {
            Counters::open(Directory::open(self.0.path()).unwrap(), |name| {
                name.chars().next().filter(|&name| name != 'x')
            })
        }
    }

    fn read(counters: &mut Counters<char>, seconds: u64) -> Vec<(char, u64)> {
        let mut values = Vec::new();
        let now = Moment::default() + Duration::from_secs(seconds);
        counters
            .read(Attempt { now, error_backoff: BACKOFF }, |key, value| values.push((key, value)));
        values
    }

    #[test]
    fn failed_file_backs_off_and_others_are_read() {
        let tree = Tree::new(&[("a", "1\n"), ("b", "N/A (no PMA)\n"), ("c", "3"), ("x", "9")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0), [('a', 1), ('c', 3)]);
        tree.put("b", "2\n");
        assert_eq!(read(&mut counters, 59), [('a', 1), ('c', 3)], "b backs off");
        assert_eq!(counters.failed(), 1);
        assert_eq!(read(&mut counters, 60), [('a', 1), ('b', 2), ('c', 3)]);
        assert_eq!(counters.failed(), 0);
    }

    #[test]
    fn one_file_in_turn_probes_for_all_failed() {
        let tree = Tree::new(&[("a", ""), ("b", "-1"), ("c", "18446744073709551616")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0), []);
        tree.put("b", "2");
        assert_eq!(read(&mut counters, 59), [], "all back off");
        assert_eq!(read(&mut counters, 60), [], "a is read, and fails");
        assert_eq!(read(&mut counters, 119), [], "all back off");
        assert_eq!(read(&mut counters, 120), [('b', 2)], "b is read, then the others");
        assert_eq!(counters.failed(), 2);
    }

    #[test]
    fn file_that_never_succeeded_does_not_probe() {
        let tree = Tree::new(&[("a", "N/A"), ("b", "2"), ("c", "3")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0), [('b', 2), ('c', 3)]);
        tree.put_all(&["b", "c"], "N/A");
        assert_eq!(read(&mut counters, 1), []);
        tree.put_all(&["b", "c"], "4");
        assert_eq!(read(&mut counters, 61), [('b', 4), ('c', 4)]);
    }

    #[test]
    fn removed_file_counts_as_failed() {
        let tree = Tree::new(&[("a", "1"), ("b", "2")]);
        let mut counters = tree.counters();
        std::fs::remove_file(tree.0.path().join("a")).unwrap();
        assert_eq!(read(&mut counters, 0), [('b', 2)]);
    }

    #[test]
    fn failed_file_is_not_read_until_backoff_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let (path, open) = (dir.path().join("rate"), Directory::open(dir.path()).unwrap());
        let mut file = BackoffFile::new("rate");
        let mut read = |seconds| {
            let now = Moment::default() + Duration::from_secs(seconds);
            let attempt = Attempt { now, error_backoff: Duration::from_secs(60) };
            file.read(&open, attempt, |text| text.parse::<u8>().ok()).map_err(|error| error.kind())
        };
        assert_eq!(read(0), Err(io::ErrorKind::NotFound));
        std::fs::write(&path, "7\n").unwrap();
        assert_eq!(read(59), Ok(None), "it backs off");
        assert_eq!(read(60), Ok(Some(7)));
        std::fs::write(&path, "fast\n").unwrap();
        assert_eq!(read(61), Ok(None), "it does not parse");
        assert!(file.has_failed());
    }
}
