//! The maintenance file: what a site works on, read anew whenever it changes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use crate::config::yaml;
use crate::fabric::PortNumber;
use crate::health::settings::{NodeRef, Work};

/// A maintenance file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("maintenance file {path}: {problem}")]
pub struct MaintenanceError {
    path: String,
    problem: String,
}

/// An entry as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    node: String,
    port: Option<PortNumber>,
    from: Option<Time>,
    until: Option<Time>,
    /// For people.
    #[serde(default, rename = "why")]
    _why: Option<String>,
}

/// A time as RFC 3339 has it, in UTC; its `T` may be a blank, and its `Z` be left out.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Time(SystemTime);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        humantime::parse_rfc3339_weak(&text).map(Time).map_err(|error| {
            format!("{text:?} is not a time such as 2026-12-01T18:00:00Z, in UTC ({error})")
        })
    }
}

fn parse(text: &str) -> Result<Vec<Work>, String> {
    let entries: Vec<Entry> = yaml::read(text)?;
    let work = |entry: Entry| Work {
        node: NodeRef::new(&entry.node),
        port: entry.port,
        from: entry.from.map(|time| time.0),
        until: entry.until.map(|time| time.0),
    };
    Ok(entries.into_iter().map(work).collect())
}

/// How much work a maintenance file tells of.
pub fn work_in(path: &Path) -> Result<usize, MaintenanceError> {
    Maintenance::new(path).news().map(|work| work.map_or(0, |work| work.len()))
}

/// The file, and what it was when it was read last.
#[derive(Debug)]
pub(super) struct Maintenance {
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
    /// It is not there, and that was told.
    missed: bool,
}

impl Maintenance {
    /// A file that was not read yet.
    pub(super) fn new(path: &Path) -> Self {
        Maintenance { path: path.to_owned(), seen: None, missed: false }
    }

    /// What is in it, if that is not what it was.
    pub(super) fn news(&mut self) -> Result<Option<Vec<Work>>, MaintenanceError> {
        let wrong =
            |problem: String| MaintenanceError { path: self.path.display().to_string(), problem };
        let unreadable = |error: std::io::Error| wrong(error.to_string());
        let about = match std::fs::metadata(&self.path) {
            Err(_) if self.missed => return Ok(None),
            Err(error) => {
                self.missed = true;
                return Err(unreadable(error));
            }
            Ok(about) => about,
        };
        self.missed = false;
        let is = about.modified().ok().map(|modified| (modified, about.len()));
        if self.seen.is_some() && self.seen == is {
            return Ok(None);
        }
        let bytes = std::fs::read(&self.path).map_err(unreadable)?;
        let work = parse(&String::from_utf8_lossy(&bytes)).map_err(wrong);
        // A file that is wrong is told of once, and not at each sweep.
        self.seen = is;
        work.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn entries_name_nodes_ports_and_times() {
        let work = parse(
            "# rack 7\n- {node: leaf-0-1, until: 2026-12-01T18:00:00Z, why: new firmware}\n\
             - {node: 0x0002c90300000001, port: 9, from: 2026-12-01 18:00:00}\n",
        )
        .unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_148_000);
        assert_eq!(work.len(), 2);
        assert_eq!((&work[0].node, work[0].until), (&NodeRef::Name("leaf-0-1".into()), Some(at)));
        assert!(matches!(work[1].node, NodeRef::Guid(_)));
        assert_eq!((work[1].port, work[1].from, work[1].until), (Some(9), Some(at), None));
        assert_eq!(parse(" \n# nothing\n").unwrap(), []);
        for (text, says) in
            [("- {nod: x}", "nod"), ("- {node: x, until: soon}", "soon"), ("node: x", "sequence")]
        {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(says) && !problem.contains('\n'), "{text}: {problem}");
        }
    }

    #[test]
    fn it_is_read_again_when_it_changes_and_a_mistake_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work.yml");
        let mut file = Maintenance::new(&path);
        assert!(file.news().unwrap_err().to_string().contains("work.yml"));
        assert!(file.news().unwrap().is_none(), "told once");
        std::fs::write(&path, "- {node: a}").unwrap();
        assert_eq!(file.news().unwrap().unwrap().len(), 1);
        assert!(file.news().unwrap().is_none());
        std::fs::write(&path, "- {node: [").unwrap();
        assert!(file.news().is_err());
        assert!(file.news().unwrap().is_none());
        std::fs::write(&path, "").unwrap();
        assert_eq!(file.news().unwrap().unwrap(), []);
    }
}
