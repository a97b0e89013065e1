//! A directory of counters: one file each, some of which refuse.
//!
//! If all files of a directory did, as with a PMA that fails, one of them is asked when the time has
//! come, and the others only if that one answers: each that refuses can cost a line in the kernel's
//! log.

use super::asked::{Asked, Asking};
use super::file::Directory;

/// The counters of a directory, each with what it is known by.
#[derive(Debug)]
pub(super) struct Counters<K> {
    directory: Directory,
    files: Vec<(K, Asked)>,
}

impl<K: Copy> Counters<K> {
    /// Looks which files a directory has; `key` says by what each is known, or that it is none.
    pub(super) fn find(directory: Directory, mut key: impl FnMut(&str) -> Option<K>) -> Self {
        let names = directory.names().unwrap_or_default();
        let files = names.iter().filter_map(|name| Some((key(name)?, Asked::new(name)?))).collect();
        Counters { directory, files }
    }

    /// Reads each file that is not left alone at present.
    pub(super) fn read(&mut self, asking: Asking, mut take: impl FnMut(K, u64)) {
        // Nobody has answered since the last time: one is asked for all.
        let mut scout = !self.files.is_empty() && self.refused() == self.files.len();
        for (key, file) in &mut self.files {
            let may_ask = file.may_be_asked(asking);
            let value = file.ask(&self.directory, asking, |text| text.parse().ok());
            if let Ok(Some(value)) = value {
                take(*key, value);
                scout = false;
            } else if scout && may_ask {
                self.files.iter_mut().for_each(|(_, file)| file.leave_alone(asking));
                return;
            }
        }
    }

    /// How many of them gave no value when they were last asked.
    pub(super) fn refused(&self) -> usize {
        self.files.iter().filter(|(_, file)| file.refused()).count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fabric::Moment;

    const REST: Duration = Duration::from_secs(60);

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

        fn counters(&self) -> Counters<char> {
            Counters::find(Directory::open(self.0.path()).unwrap(), |name| {
                name.chars().next().filter(|&name| name != 'x')
            })
        }
    }

    fn read(counters: &mut Counters<char>, seconds: u64) -> Vec<(char, u64)> {
        let mut values = Vec::new();
        let now = Moment::default() + Duration::from_secs(seconds);
        counters.read(Asking { now, rest: REST }, |key, value| values.push((key, value)));
        values
    }

    #[test]
    fn one_that_refuses_is_left_alone_and_the_others_are_read() {
        let tree = Tree::new(&[("a", "1\n"), ("b", "N/A (no PMA)\n"), ("c", "3"), ("x", "9")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0), [('a', 1), ('c', 3)]);
        tree.put("b", "2\n");
        assert_eq!(read(&mut counters, 59), [('a', 1), ('c', 3)], "it is not asked");
        assert_eq!(counters.refused(), 1);
        assert_eq!(read(&mut counters, 60), [('a', 1), ('b', 2), ('c', 3)]);
        assert_eq!(counters.refused(), 0);
    }

    #[test]
    fn where_all_refuse_one_is_asked_for_all() {
        let tree = Tree::new(&[("a", ""), ("b", "-1"), ("c", "18446744073709551616")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0), []);
        tree.put("b", "2");
        assert_eq!(read(&mut counters, 60), [], "the first still refuses, so b is not asked");
        tree.put("a", "18446744073709551615");
        assert_eq!(read(&mut counters, 120), [('a', u64::MAX), ('b', 2)]);
        assert_eq!(counters.refused(), 1);
    }

    #[test]
    fn a_file_that_goes_is_one_that_refuses() {
        let tree = Tree::new(&[("a", "1"), ("b", "2")]);
        let mut counters = tree.counters();
        std::fs::remove_file(tree.0.path().join("a")).unwrap();
        assert_eq!(read(&mut counters, 0), [('b', 2)]);
    }
}
