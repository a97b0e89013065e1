//! A directory of counters: one file each, some of which refuse.
//!
//! If all files of a directory did, as with a PMA that fails, one of them is asked when the time has
//! come, another one each time, and the others only if that one answers: each that refuses can cost a
//! line in the kernel's log.

use super::asked::{Asked, Asking};
use super::file::Directory;

/// The counters of a directory, each with what it is known by.
#[derive(Debug)]
pub(super) struct Counters<K> {
    directory: Directory,
    files: Vec<(K, Asked)>,
    /// How often one was asked for all, in vain.
    in_vain: usize,
}

impl<K: Copy> Counters<K> {
    /// Looks which files a directory has; `key` says by what each is known, or that it is none.
    pub(super) fn find(directory: Directory, mut key: impl FnMut(&str) -> Option<K>) -> Self {
        let names = directory.names().unwrap_or_default();
        let files = names.iter().filter_map(|name| Some((key(name)?, Asked::new(name)?))).collect();
        Counters { directory, files, in_vain: 0 }
    }

    /// What it can tell.
    pub(super) fn keys(&self) -> impl Iterator<Item = K> {
        self.files.iter().map(|(key, _)| *key)
    }

    /// Reads each file that is not left alone at present.
    pub(super) fn read(&mut self, asking: Asking, mut take: impl FnMut(K, u64)) {
        if let Some(scout) = self.scout() {
            let (_, file) = &mut self.files[scout];
            if !file.may_be_asked(asking) {
                return;
            }
            if !matches!(number(file, &self.directory, asking), Ok(Some(_))) {
                self.in_vain += 1;
                self.files.iter_mut().for_each(|(_, file)| file.leave_alone(asking));
                return;
            }
            self.in_vain = 0;
            self.files.iter_mut().for_each(|(_, file)| file.forgive());
        }
        for (key, file) in &mut self.files {
            if let Ok(Some(value)) = number(file, &self.directory, asking) {
                take(*key, value);
            }
        }
    }

    /// Who is asked for all, if nobody has answered since the last time: one that once did, if there
    /// is one, for some files never do.
    fn scout(&self) -> Option<usize> {
        if self.refused() < self.files.len() {
            return None;
        }
        let answered = || (0..self.files.len()).filter(|&at| self.files[at].1.answered());
        let turn = |among: usize| self.in_vain.checked_rem(among);
        match turn(answered().count()) {
            Some(turn) => answered().nth(turn),
            None => turn(self.files.len()),
        }
    }

    /// How many of them gave no value when they were last asked.
    pub(super) fn refused(&self) -> usize {
        self.files.iter().filter(|(_, file)| file.refused()).count()
    }
}

fn number(file: &mut Asked, directory: &Directory, asking: Asking) -> std::io::Result<Option<u64>> {
    file.ask(directory, asking, |text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ib_mad::Moment;

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

        fn put_all(&self, names: &[&str], text: &str) {
            for name in names {
                self.put(name, text);
            }
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
    fn where_all_refuse_one_is_asked_for_all_and_another_one_each_time() {
        let tree = Tree::new(&[("a", ""), ("b", "-1"), ("c", "18446744073709551616")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0), []);
        tree.put("b", "2");
        assert_eq!(read(&mut counters, 59), [], "nobody is asked");
        assert_eq!(read(&mut counters, 60), [], "a is, and refuses");
        assert_eq!(read(&mut counters, 119), [], "nobody is asked");
        assert_eq!(read(&mut counters, 120), [('b', 2)], "b is, and then the others");
        assert_eq!(counters.refused(), 2);
    }

    #[test]
    fn one_that_has_never_answered_does_not_stand_for_those_that_have() {
        let tree = Tree::new(&[("a", "N/A"), ("b", "2"), ("c", "3")]);
        let mut counters = tree.counters();
        assert_eq!(read(&mut counters, 0), [('b', 2), ('c', 3)]);
        tree.put_all(&["b", "c"], "N/A");
        assert_eq!(read(&mut counters, 1), []);
        tree.put_all(&["b", "c"], "4");
        assert_eq!(read(&mut counters, 61), [('b', 4), ('c', 4)]);
    }

    #[test]
    fn a_file_that_goes_is_one_that_refuses() {
        let tree = Tree::new(&[("a", "1"), ("b", "2")]);
        let mut counters = tree.counters();
        std::fs::remove_file(tree.0.path().join("a")).unwrap();
        assert_eq!(read(&mut counters, 0), [('b', 2)]);
    }
}
