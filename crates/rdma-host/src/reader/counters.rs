//! The counters of a directory of sysfs.
//!
//! If all files of a directory failed, as with a PMA that does not respond, one of them is read as a probe
//! once its backoff is over, another one each time, and the others only if the probe succeeds. If they all had worked,
//! the probe is at the next read, and the backoff begins when it fails, too.

use std::io;

use super::access::CounterAccess;
use super::backoff::{Attempt, BackoffFile, Failure};
use super::kept::KeepingDirectory;
use super::sysfs::Directory;
use super::watch;

/// The counters of a directory, each with its key.
#[derive(Debug)]
pub(super) struct Counters<K> {
    directory: KeepingDirectory,
    files: Vec<(K, BackoffFile)>,
    failed_probes: usize,
}

impl<K: Copy> Counters<K> {
    /// Lists the files of a directory; `key` returns the key of a file, or `None` to skip it.
    pub(super) fn open(directory: Directory, mut key: impl FnMut(&str) -> Option<K>) -> Self {
        let names = directory.names().unwrap_or_default();
        let files = names.iter().filter_map(|name| Some((key(name)?, BackoffFile::new(name))));
        let files = files.collect();
        Counters { directory: KeepingDirectory::new(directory), files, failed_probes: 0 }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = K> {
        self.files.iter().map(|(key, _)| *key)
    }

    /// Reads each file that is not backing off, and passes its value to `record`; none of a device that refuses it.
    pub(super) fn read(
        &mut self,
        attempt: Attempt<'_>,
        access: &CounterAccess,
        mut record: impl FnMut(K, u64),
    ) {
        self.directory.look();
        if let Some(probe) = self.probe() {
            let (_, file) = &mut self.files[probe];
            if access.is_refused() || !file.is_due(attempt) {
                return;
            }
            match read_number(file, &self.directory, attempt) {
                Ok(Some(_)) => {}
                // The watch decides when they are read again.
                Err(error) if watch::is_skipped(&error) => return,
                _ => {
                    self.failed_probes += 1;
                    self.files.iter_mut().for_each(|(_, file)| file.back_off(attempt));
                    return;
                }
            }
            self.failed_probes = 0;
            self.files.iter_mut().for_each(|(_, file)| file.reset_backoff());
        }
        for (key, file) in &mut self.files {
            if access.is_refused() {
                return;
            }
            if !file.is_due(attempt) {
                continue;
            }
            let value = read_number(file, &self.directory, attempt);
            access.add(&value);
            if let Ok(Some(value)) = value {
                record(*key, value);
            }
        }
    }

    /// The file to read for all, if all have failed: one that once succeeded, if any has.
    fn probe(&self) -> Option<usize> {
        if self.failed() < self.files.len() {
            return None;
        }
        let succeeded =
            || (0..self.files.len()).filter(|&index| self.files[index].1.has_succeeded());
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

    /// The files that are backing off, with their directory, and why.
    pub(super) fn backing_off(&self) -> impl Iterator<Item = (&Directory, &str, Failure)> {
        self.files.iter().filter_map(|(_, file)| backing_off(&self.directory, file))
    }
}

/// A file with its directory, and why it is backing off, if it is.
pub(super) fn backing_off<'a>(
    directory: &'a KeepingDirectory,
    file: &'a BackoffFile,
) -> Option<(&'a Directory, &'a str, Failure)> {
    Some((&directory.directory, file.name(), file.backs_off()?))
}

fn read_number(
    file: &mut BackoffFile,
    directory: &KeepingDirectory,
    attempt: Attempt<'_>,
) -> io::Result<Option<u64>> {
    file.read(directory, attempt, |text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ib_mad::Moment;

    use super::*;
    use crate::reader::kept::Allowance;

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
        let attempt = Attempt { now, error_backoff: BACKOFF, files: &Allowance::new(16) };
        counters.read(attempt, &CounterAccess::granted(), |key, value| values.push((key, value)));
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
    fn directory_that_fails_once_is_read_at_the_next_read() {
        let tree = Tree::new(&[("a", "N/A"), ("b", "2"), ("c", "3")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0), [('b', 2), ('c', 3)]);
        tree.put_all(&["b", "c"], "N/A");
        assert_eq!(read(&mut counters, 1), []);
        tree.put_all(&["b", "c"], "4");
        // The probe is one that has succeeded, and lets the others be read, too.
        assert_eq!(read(&mut counters, 2), [('b', 4), ('c', 4)]);
    }

    #[test]
    fn directory_that_fails_twice_is_probed_once_a_backoff() {
        let tree = Tree::new(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0).len(), 3);
        tree.put_all(&["a", "b", "c"], "N/A");
        assert_eq!(read(&mut counters, 1), []);
        // Only the probe is read, and it fails.
        tree.put_all(&["b", "c"], "4");
        assert_eq!(read(&mut counters, 2), []);
        assert_eq!(read(&mut counters, 61), [], "all back off");
        assert_eq!(read(&mut counters, 62), [('b', 4), ('c', 4)], "b is the next probe");
    }

    #[test]
    fn one_failed_read_costs_one_value() {
        let tree = Tree::new(&[("a", "1"), ("b", "2")]);
        let mut counters = tree.counters();
        let mut lost = 0;
        // Every 20th read of a file fails, as with firmware that is busy.
        for round in 0..200 {
            tree.put("a", if round % 20 == 7 { "" } else { "1" });
            lost += 2 - read(&mut counters, round).len();
        }
        assert_eq!(lost, 10);
    }

    #[test]
    fn removed_file_counts_as_failed() {
        let tree = Tree::new(&[("a", "1"), ("b", "2")]);
        let mut counters = tree.counters();
        std::fs::remove_file(tree.0.path().join("a")).unwrap();
        assert_eq!(read(&mut counters, 0), [('b', 2)]);
    }
}
