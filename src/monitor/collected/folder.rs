//! A directory that another program writes to again and again, such as the output of ibdiagnet. Its files are read when
//! they have changed, and they were not modified for some seconds.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fabric_dumps::{Dump, DumpError, Dumps};
use ib_mad::Moment;
use ib_mad::moment::Anchor;

use super::polled::{PollError, Polled};
use super::wait::{Pending, Waiting};

/// How long files that are complete were not modified. ibdiagnet writes its files one after the other, in less time.
const SETTLED: Duration = Duration::from_secs(5);

/// How long listing or reading the files may take until it is reported: the kernel waits for a file server without end.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The largest sum of files. That of ibdiagnet is some 5 KB per port.
const MAX_BYTES: u64 = 1 << 30;

/// The most files: a directory of archives is none that a program refills.
const MAX_FILES: usize = 1000;

/// The most dumps that are evaluated at once: what is older is no news.
const MAX_DUMPS: usize = 8;

/// Name, time and size of each file: what changes when one is written.
type Fingerprint = Vec<(PathBuf, SystemTime, u64)>;

/// What was read, and what the files were before and after.
struct Reading {
    before: Fingerprint,
    dumps: Result<Dumps, DumpError>,
    after: Result<Fingerprint, String>,
}

/// See the module.
pub(super) struct Folder {
    path: PathBuf,
    /// What was read, or could not be.
    read: Option<Fingerprint>,
    problem: Option<String>,
    /// What is there now, and since when.
    seen: Option<(Fingerprint, Moment)>,
    /// The time of the latest dump.
    taken: Option<SystemTime>,
    /// What takes longer than a poll.
    listing: Option<Pending<Result<Fingerprint, String>>>,
    reading: Option<Pending<Reading>>,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Folder {
            path,
            read: None,
            problem: None,
            seen: None,
            taken: None,
            listing: None,
            reading: None,
        }
    }

    pub(super) fn poll(&mut self, now: Anchor, waiting: &Waiting<'_>) -> Result<Polled, PollError> {
        let path = self.path.clone();
        let found = waiting.run_within(TIMEOUT, &mut self.listing, move || fingerprint(&path))?;
        let found = found.map_err(PollError::Problem)?;
        if self.read.as_ref() == Some(&found) {
            return match &self.problem {
                Some(problem) => Err(PollError::Problem(problem.clone())),
                None => Ok(Polled::Unchanged),
            };
        }
        if !self.is_settled(&found, now) && self.reading.is_none() {
            return Ok(Polled::Unsettled);
        }
        let (path, before) = (self.path.clone(), found.clone());
        let reading = waiting.run_within(TIMEOUT, &mut self.reading, move || {
            let dumps = fabric_dumps::read(std::slice::from_ref(&path));
            Reading { before, dumps, after: fingerprint(&path) }
        })?;
        if reading.before != found || reading.after.as_ref() != Ok(&found) {
            // It is being written: what was read may be half of it.
            return Ok(Polled::Unsettled);
        }
        let before = self.read.replace(found).unwrap_or_default();
        let dumps = reading.dumps.map_err(|error| {
            let hint = match &error {
                DumpError::File { .. } => "the user of the exporter must be able to read it",
                DumpError::Invalid(_) => "it is read again when its files change",
            };
            let problem = format!("{error}; {hint}");
            self.problem = Some(problem.clone());
            PollError::Problem(problem)
        })?;
        self.problem = None;
        let mut dumps: Vec<Dump> = dumps.dumps;
        for dump in &mut dumps {
            dump.ignore_times_ahead(now.wall);
        }
        dumps.sort_by_key(|dump| dump.taken_at);
        dumps.dedup_by_key(|dump| dump.taken_at);
        let most = if self.is_set_back(dumps.last(), &before) {
            1
        } else {
            dumps.retain(|dump| self.taken.is_none_or(|taken| dump.taken_at > taken));
            MAX_DUMPS
        };
        dumps.drain(..dumps.len().saturating_sub(most));
        let Some(last) = dumps.last() else { return Ok(Polled::Unchanged) };
        self.taken = Some(last.taken_at);
        Ok(Polled::New(dumps))
    }

    /// Whether the clock of the writer was set back: all dumps are older than the latest one, and the newest of them was
    /// written since. If only the latest one was removed, what is left was written before.
    fn is_set_back(&self, newest: Option<&Dump>, before: &Fingerprint) -> bool {
        let Some((newest, taken)) = newest.zip(self.taken) else { return false };
        let is_written = |file: &(PathBuf, SystemTime, u64)| {
            !before.contains(file) && newest.files.iter().any(|(path, _)| *path == file.0)
        };
        newest.taken_at < taken && self.read.iter().flatten().any(is_written)
    }

    /// Whether the files were not modified for some time: by the times of the files, or because they stay as they are.
    fn is_settled(&mut self, found: &Fingerprint, now: Anchor) -> bool {
        let newest = found.iter().map(|(_, modified, _)| *modified).max();
        let since = newest.and_then(|newest| now.wall.duration_since(newest).ok());
        let since_seen = match &self.seen {
            Some((seen, at)) if seen == found => now.moment.since(*at),
            _ => {
                self.seen = Some((found.clone(), now.moment));
                Duration::ZERO
            }
        };
        since.unwrap_or_default().max(since_seen) >= SETTLED
    }
}

fn fingerprint(folder: &Path) -> Result<Fingerprint, String> {
    let shown = folder.display();
    let failed = |error: std::io::Error| {
        format!("{shown}: {error}; create it, or let the user of the exporter read it")
    };
    let mut files = Fingerprint::new();
    let mut size = 0_u64;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // One that was removed meanwhile, or that a link leads to nowhere, is none.
        let Ok(about) = std::fs::metadata(&path) else { continue };
        if !about.is_file() {
            continue;
        }
        size = size.saturating_add(about.len());
        files.push((path, about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len()));
        if files.len() > MAX_FILES || size > MAX_BYTES {
            return Err(format!(
                "{shown}: more than {MAX_FILES} files or 1 GiB: only the output of the latest run belongs there"
            ));
        }
    }
    if files.is_empty() {
        return Err(format!(
            "{shown}: it has no files: let ibdiagnet write there (ibdiagnet -o {shown})"
        ));
    }
    files.sort();
    Ok(files)
}
