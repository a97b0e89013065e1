//! A site file, read on a thread of its own: the thread that sweeps must not wait for a file system that hangs,
//! such as NFS whose server is gone.
//!
//! Each refresh has the reader check the file, and takes its result. While the reader hangs, the earlier content
//! stays in use.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fabric_observation::SiteFileKind;
use ib_fabric::names::NodeNameMap;
use site_config::ConfigError;
use site_config::file;
use site_config::file::{READ_TIMEOUT, Stamp};

use super::m_keys::neighbors_of;

/// How long a refresh waits for the reader. A file on a local disk is checked within 1 ms, so a sweep uses the
/// content at its start; a reader that hangs is waited for once.
const WAIT: Duration = Duration::from_millis(100);

/// After this time a check that has not ended is logged.
const HANGS: Duration = Duration::from_secs(60);

type Read<T> = Arc<dyn Fn(&Path) -> Result<T, ConfigError> + Send + Sync>;

/// One file; see the module.
pub(super) struct SiteFile<T> {
    file: FileChecker<T>,
    reader: Option<Reader<T>>,
    /// When the check that is in progress began.
    requested: Option<Instant>,
    hangs: bool,
    read_at: f64,
}

/// Checks and reads the file.
struct FileChecker<T> {
    kind: SiteFileKind,
    path: PathBuf,
    read: Read<T>,
    stamps: Vec<Option<Stamp>>,
    /// The latest content is valid.
    is_valid: bool,
}

impl<T> Clone for FileChecker<T> {
    fn clone(&self) -> Self {
        FileChecker {
            kind: self.kind,
            path: self.path.clone(),
            read: Arc::clone(&self.read),
            stamps: self.stamps.clone(),
            is_valid: self.is_valid,
        }
    }
}

/// The thread that reads. It ends when this is dropped, or once a check that hangs has ended.
struct Reader<T> {
    requests: SyncSender<()>,
    results: Receiver<FileCheck<T>>,
}

/// The result of a check.
enum FileCheck<T> {
    /// The file has not changed; whether it is valid.
    Same(bool),
    /// The file has changed: its content.
    New(Result<T, ConfigError>),
}

impl<T> std::fmt::Debug for SiteFile<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SiteFile").field("path", &self.file.path).finish_non_exhaustive()
    }
}

impl<T> FileChecker<T> {
    fn current_stamps(&self) -> Vec<Option<Stamp>> {
        let beside = (self.kind == SiteFileKind::MKey).then(|| neighbors_of(&self.path));
        std::iter::once(&self.path).chain(&beside).map(|path| file::stamp(path)).collect()
    }

    fn check(&mut self) -> FileCheck<T> {
        // Before it is read, so that a change meanwhile is noticed the next time.
        let stamps = self.current_stamps();
        if stamps == self.stamps {
            return FileCheck::Same(self.is_valid);
        }
        self.stamps = stamps;
        let content = (self.read)(&self.path);
        self.is_valid = content.is_ok();
        FileCheck::New(content)
    }
}

impl<T: Send + 'static> SiteFile<T> {
    /// Reads a file for the first time. Fails if it is invalid, or is not read in time.
    pub(super) fn open(
        kind: SiteFileKind,
        path: &Path,
        read: impl Fn(&Path) -> Result<T, ConfigError> + Send + Sync + 'static,
    ) -> Result<(Self, T), ConfigError> {
        let mut file = FileChecker {
            kind,
            path: path.to_owned(),
            read: Arc::new(read),
            stamps: Vec::new(),
            is_valid: false,
        };
        let first = move || {
            let check = file.check();
            (file, check)
        };
        let (file, check) = file::with_timeout(READ_TIMEOUT, first)
            .map_err(|error| ConfigError::in_file(kind.name(), path, [error]))?;
        let FileCheck::New(content) = check else {
            return Err(ConfigError::in_file(kind.name(), path, ["it was not read"]));
        };
        let read_at = unix_now();
        Ok((SiteFile { file, reader: None, requested: None, hangs: false, read_at }, content?))
    }

    /// Starts the thread that checks for changes, which has the rights of this one.
    pub(super) fn watch(&mut self) -> io::Result<()> {
        let (requests, requested) = sync_channel::<()>(1);
        let (sender, results) = sync_channel(1);
        let mut file = self.file.clone();
        std::thread::Builder::new().name("site-file".into()).spawn(move || {
            while requested.recv().is_ok() {
                if sender.send(file.check()).is_err() {
                    break;
                }
            }
        })?;
        self.reader = Some(Reader { requests, results });
        Ok(())
    }

    /// The content of the file, if it has changed.
    pub(super) fn refresh(&mut self) -> Option<Result<T, ConfigError>> {
        let reader = self.reader.as_ref()?;
        let wait = if self.requested.is_some() {
            Duration::ZERO
        } else {
            reader.requests.try_send(()).ok()?;
            WAIT
        };
        let requested = *self.requested.get_or_insert_with(Instant::now);
        let check = match reader.results.recv_timeout(wait) {
            Ok(check) => check,
            Err(RecvTimeoutError::Timeout) => {
                if !self.hangs && requested.elapsed() >= HANGS {
                    self.hangs = true;
                    tracing::warn!(
                        file = %self.file.path.display(),
                        "the {} has not been read for {HANGS:?}: its file system does not answer; what was read \
                         before stays in use",
                        self.file.kind.name()
                    );
                }
                return None;
            }
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        self.requested = None;
        if std::mem::take(&mut self.hangs) {
            tracing::info!(file = %self.file.path.display(), "its file system answers again");
        }
        let (is_valid, new) = match check {
            FileCheck::Same(is_valid) => (is_valid, None),
            FileCheck::New(content) => (content.is_ok(), Some(content)),
        };
        if is_valid {
            self.read_at = unix_now();
        }
        new
    }

    /// When the file was last checked and valid, in seconds since 1970.
    pub(super) fn read_at(&self) -> f64 {
        self.read_at
    }
}

/// Reads a node-name-map.
pub fn names_in(path: &Path) -> Result<NodeNameMap, ConfigError> {
    let kind = SiteFileKind::NodeNameMap.name();
    let bytes = file::read(path, file::MAX_BYTES)
        .map_err(|error| ConfigError::in_file(kind, path, [error]))?;
    NodeNameMap::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|errors| ConfigError::in_file(kind, path, errors))
}

fn unix_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;

    use super::*;

    fn text_in(path: &Path) -> Result<String, ConfigError> {
        let wrong = |error: &dyn std::fmt::Display| ConfigError::in_file("file", path, [error]);
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        if text.contains("wrong") { Err(wrong(&text)) } else { Ok(text) }
    }

    /// Refreshes until the file has changed. The reader has its own thread, so it may take a moment.
    fn changed<T: Send + 'static>(file: &mut SiteFile<T>) -> Result<T, ConfigError> {
        let limit = Instant::now() + Duration::from_secs(30);
        loop {
            match file.refresh() {
                Some(content) => return content,
                None => assert!(Instant::now() < limit, "the file has not changed"),
            }
        }
    }

    #[test]
    fn file_is_reread_on_change_and_errors_are_returned_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work.yml");
        let open = || SiteFile::open(SiteFileKind::Maintenance, &path, text_in);
        assert!(open().unwrap_err().to_string().contains("work.yml"), "it is not there");
        std::fs::write(&path, "a").unwrap();
        let (mut file, first) = open().unwrap();
        assert_eq!(first, "a");
        assert!(file.refresh().is_none(), "the reader is not started yet");
        file.watch().unwrap();
        std::fs::write(&path, "bc").unwrap();
        assert_eq!(changed(&mut file).unwrap(), "bc");
        let read_at = file.read_at();
        std::fs::write(&path, "wrong").unwrap();
        assert!(changed(&mut file).is_err());
        for _ in 0..3 {
            assert!(file.refresh().is_none(), "told once");
        }
        assert!(file.read_at() <= unix_now() && file.read_at() >= read_at);
        let before = file.read_at();
        std::fs::remove_file(&path).unwrap();
        assert!(changed(&mut file).is_err());
        assert!((file.read_at() - before).abs() < f64::EPSILON, "it could not be used");
        std::fs::write(&path, "d").unwrap();
        assert_eq!(changed(&mut file).unwrap(), "d");
    }

    #[test]
    fn hanging_reader_does_not_block_and_finishes_later() {
        let source = tempfile::NamedTempFile::new().unwrap();
        let (release, held) = mpsc::channel::<&str>();
        let held = Mutex::new(held);
        release.send("first").unwrap();
        let hangs = move |_: &Path| Ok(held.lock().unwrap().recv().unwrap());
        let (mut file, first) =
            SiteFile::open(SiteFileKind::Maintenance, source.path(), hangs).unwrap();
        assert_eq!(first, "first");
        file.watch().unwrap();
        let read_at = file.read_at();
        std::fs::write(source.path(), "changed").unwrap();
        let began = Instant::now();
        for _ in 0..1000 {
            assert!(file.refresh().is_none());
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert!((file.read_at() - read_at).abs() < f64::EPSILON, "nothing was read");
        release.send("second").unwrap();
        assert_eq!(changed(&mut file).unwrap(), "second");
    }
}
