//! A directory of counters: one file each, some of which refuse.
//!
//! Files answer EINVAL, EPERM, EOPNOTSUPP or `N/A (no PMA)`, one or all, for ever or for a while. On
//! a restricted function of an mlx5 each such read also writes a line to the kernel's log, so what
//! refused is left alone for a while; and if all files of a directory did, one of them is asked, and
//! the others only if that one answers.

use std::ffi::{CStr, CString};
use std::time::Duration;

use crate::fabric::Moment;

use super::file::{Buffer, Directory};

/// The counters of a directory, each with what it is known by.
#[derive(Debug)]
pub(super) struct Counters<K> {
    directory: Directory,
    files: Vec<File<K>>,
}

#[derive(Debug)]
struct File<K> {
    key: K,
    name: CString,
    /// It refused, and is left alone until then.
    left_alone: Option<Moment>,
}

impl<K: Copy> Counters<K> {
    /// Looks which files a directory has; `key` says by what each is known, or that it is none.
    pub(super) fn find(directory: Directory, mut key: impl FnMut(&str) -> Option<K>) -> Self {
        let names = directory.names().unwrap_or_default();
        let files = names
            .into_iter()
            .filter_map(|name| {
                Some(File { key: key(&name)?, name: CString::new(name).ok()?, left_alone: None })
            })
            .collect();
        Counters { directory, files }
    }

    /// Reads each file that is not left alone at present. One that refuses is, for `rest`.
    pub(super) fn read(&mut self, now: Moment, rest: Duration, mut take: impl FnMut(K, u64)) {
        let until = Some(now + rest);
        // Nobody has answered since the last time: one is asked for all.
        let mut scout = !self.files.is_empty() && self.refused() == self.files.len();
        for file in &mut self.files {
            if file.left_alone.is_some_and(|until| now < until) {
                continue;
            }
            match value(&self.directory, &file.name) {
                Some(value) => {
                    take(file.key, value);
                    file.left_alone = None;
                    scout = false;
                }
                None if scout => {
                    self.files.iter_mut().for_each(|file| file.left_alone = until);
                    return;
                }
                None => file.left_alone = until,
            }
        }
    }

    /// How many of them gave no value when they were last asked.
    pub(super) fn refused(&self) -> usize {
        self.files.iter().filter(|file| file.left_alone.is_some()).count()
    }
}

fn value(directory: &Directory, name: &CStr) -> Option<u64> {
    directory.read(name, &mut Buffer::new()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        counters.read(Moment::default() + Duration::from_secs(seconds), REST, |key, value| {
            values.push((key, value));
        });
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
