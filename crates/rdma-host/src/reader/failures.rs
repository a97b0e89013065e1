//! Logs which files of a device cannot be read: otherwise only missing samples would show it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ib_mad::Moment;

use super::backoff::Failure;

/// The least time between two lines about a device.
const PAUSE: Duration = Duration::from_secs(10 * 60);

/// How many names of a directory are in a line. A port has some 50 counters.
const MAX_NAMES: usize = 24;

/// A file of a device that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FailingFile {
    /// Below the device: `ports/1/counters`.
    pub directory: String,
    pub name: String,
    pub failure: Failure,
}

/// The files of a device that were logged, each once in the life of the device.
#[derive(Debug, Default)]
pub(super) struct FailureLog {
    logged: BTreeSet<(String, String)>,
    quiet_until: Moment,
}

impl FailureLog {
    /// What to log, if any of these files was not logged before.
    pub fn add(&mut self, failing: Vec<FailingFile>, now: Moment) -> Option<String> {
        let key = |file: &FailingFile| (file.directory.clone(), file.name.clone());
        if now < self.quiet_until || failing.iter().all(|file| self.logged.contains(&key(file))) {
            return None;
        }
        self.logged.extend(failing.iter().map(key));
        self.quiet_until = now + PAUSE;
        Some(grouped(failing))
    }
}

/// The files by directory and error: `ports/1/counters/{port_rcv_data,port_xmit_data}: Invalid argument`.
fn grouped(failing: Vec<FailingFile>) -> String {
    let mut groups: BTreeMap<(String, Failure), Vec<String>> = BTreeMap::new();
    for FailingFile { directory, name, failure } in failing {
        groups.entry((directory, failure)).or_default().push(name);
    }
    let group = |((directory, failure), mut names): ((String, Failure), Vec<String>)| {
        names.sort_unstable();
        let more = names.len().saturating_sub(MAX_NAMES);
        names.truncate(MAX_NAMES);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let path = match (&*names, &*directory) {
            ([name], "") => name.clone(),
            ([name], _) => format!("{directory}/{name}"),
            _ => format!("{directory}/{{{}}}", names.join(",")),
        };
        format!("{path}: {failure}")
    };
    groups.into_iter().map(group).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(directory: &str, name: &str, failure: Failure) -> FailingFile {
        FailingFile { directory: directory.to_owned(), name: name.to_owned(), failure }
    }

    fn counter(name: &str) -> FailingFile {
        file("ports/1/counters", name, Failure::Kernel(libc::EINVAL))
    }

    #[test]
    fn files_are_grouped_by_directory_and_error() {
        let text = grouped(vec![
            counter("port_xmit_data"),
            file("ports/1", "rate", Failure::Malformed),
            counter("port_rcv_data"),
            file("ports/1/counters", "symbol_error", Failure::Blocked),
        ]);
        assert_eq!(
            text,
            "ports/1/rate: not a valid value; ports/1/counters/{port_rcv_data,port_xmit_data}: Invalid argument; \
             ports/1/counters/symbol_error: the read hangs"
        );
        let many = (0..30).map(|number| counter(&format!("c{number}"))).collect();
        assert!(grouped(many).contains(",6 more}: Invalid"));
    }

    #[test]
    fn line_is_repeated_only_for_further_files_and_after_a_pause() {
        let mut log = FailureLog::default();
        let at = |seconds| Moment::default() + Duration::from_secs(seconds);
        let mut lines = |names: &[&str], seconds| {
            let failing = names.iter().map(|name| counter(name)).collect();
            log.add(failing, at(seconds)).is_some()
        };
        assert!(!lines(&[], 0));
        assert!(lines(&["a"], 1));
        assert!(!lines(&["a", "b"], 2), "too soon");
        assert!(lines(&["a", "b"], 601));
        assert!(!lines(&["b"], 2000) && !lines(&["a"], 4000), "both were logged");
    }
}
