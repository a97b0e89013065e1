//! A file of the site's, read on a thread of its own: the thread that sweeps must not wait for a file
//! system that does not answer, such as NFS whose server is gone.
//!
//! Each refresh asks the reader for a look at the file, and takes what it has found. While the reader
//! hangs, what was read before stays in use.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fabric_observation::SiteFileKind;
use site_config::ConfigError;
use site_config::file;
use site_config::file::{PATIENCE, Stamp};

use super::m_keys::neighbors_of;

/// How long a refresh waits for the reader. A file on a local disk is looked at within 1 ms, so a sweep
/// goes by what the file says when the sweep begins; a reader that hangs is waited for once.
const WAIT: Duration = Duration::from_millis(100);

/// After this time a look that has not ended is logged.
const HANGS: Duration = Duration::from_secs(60);

type Read<T> = Arc<dyn Fn(&Path) -> Result<T, ConfigError> + Send + Sync>;

/// One file; see the module.
pub(super) struct SiteFile<T> {
    file: Looker<T>,
    reader: Option<Reader<T>>,
    /// When the look that is under way began.
    asked: Option<Instant>,
    hangs: bool,
    read_at: f64,
}

/// What the reader does with the file.
struct Looker<T> {
    kind: SiteFileKind,
    path: PathBuf,
    read: Read<T>,
    seen: Vec<Option<Stamp>>,
    /// What was seen last could be used.
    good: bool,
}

impl<T> Clone for Looker<T> {
    fn clone(&self) -> Self {
        Looker {
            kind: self.kind,
            path: self.path.clone(),
            read: Arc::clone(&self.read),
            seen: self.seen.clone(),
            good: self.good,
        }
    }
}

/// The thread that reads. It ends when this is dropped, or once a look that hangs has ended.
struct Reader<T> {
    ask: SyncSender<()>,
    looks: Receiver<Look<T>>,
}

/// What a look at the file has found.
enum Look<T> {
    /// The file has not changed; whether it can be used.
    Same(bool),
    /// It has.
    New(Result<T, ConfigError>),
}

impl<T> std::fmt::Debug for SiteFile<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SiteFile").field("path", &self.file.path).finish_non_exhaustive()
    }
}

impl<T> Looker<T> {
    fn stamps(&self) -> Vec<Option<Stamp>> {
        let beside = (self.kind == SiteFileKind::MKey).then(|| neighbors_of(&self.path));
        std::iter::once(&self.path).chain(&beside).map(|path| file::stamp(path)).collect()
    }

    fn look(&mut self) -> Look<T> {
        // Before it is read: a change meanwhile is one.
        let stamps = self.stamps();
        if stamps == self.seen {
            return Look::Same(self.good);
        }
        self.seen = stamps;
        let read = (self.read)(&self.path);
        self.good = read.is_ok();
        Look::New(read)
    }
}

impl<T: Send + 'static> SiteFile<T> {
    /// Reads a file for the first time. Fails where it cannot be used, or is not read in time.
    pub(super) fn open(
        kind: SiteFileKind,
        path: &Path,
        read: impl Fn(&Path) -> Result<T, ConfigError> + Send + Sync + 'static,
    ) -> Result<(Self, T), ConfigError> {
        let mut file = Looker {
            kind,
            path: path.to_owned(),
            read: Arc::new(read),
            seen: Vec::new(),
            good: false,
        };
        let first = move || {
            let look = file.look();
            (file, look)
        };
        let (file, look) = file::within(PATIENCE, first)
            .map_err(|error| ConfigError::in_file(kind.name(), path, [error]))?;
        let Look::New(content) = look else {
            return Err(ConfigError::in_file(kind.name(), path, ["it was not read"]));
        };
        let read_at = unix_now();
        Ok((SiteFile { file, reader: None, asked: None, hangs: false, read_at }, content?))
    }

    /// Begins to look for changes, on a thread that is confined as this one is.
    pub(super) fn watch(&mut self) -> io::Result<()> {
        let (ask, asked) = sync_channel::<()>(1);
        let (found, looks) = sync_channel(1);
        let mut file = self.file.clone();
        std::thread::Builder::new().name("site-file".into()).spawn(move || {
            while asked.recv().is_ok() {
                if found.send(file.look()).is_err() {
                    break;
                }
            }
        })?;
        self.reader = Some(Reader { ask, looks });
        Ok(())
    }

    /// What is in the file now, if that is new.
    pub(super) fn refresh(&mut self) -> Option<Result<T, ConfigError>> {
        let reader = self.reader.as_ref()?;
        let wait = if self.asked.is_some() {
            Duration::ZERO
        } else {
            reader.ask.try_send(()).ok()?;
            WAIT
        };
        let asked = *self.asked.get_or_insert_with(Instant::now);
        let look = match reader.looks.recv_timeout(wait) {
            Ok(look) => look,
            Err(RecvTimeoutError::Timeout) => {
                if !self.hangs && asked.elapsed() >= HANGS {
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
        self.asked = None;
        if std::mem::take(&mut self.hangs) {
            tracing::info!(file = %self.file.path.display(), "its file system answers again");
        }
        let (good, new) = match look {
            Look::Same(good) => (good, None),
            Look::New(content) => (content.is_ok(), Some(content)),
        };
        if good {
            self.read_at = unix_now();
        }
        new
    }

    /// When the file was last looked at and could be used, in seconds since 1970.
    pub(super) fn read_at(&self) -> f64 {
        self.read_at
    }
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

    /// Refreshes until there is news. The reader has a thread of its own, so it may take a moment.
    fn news<T: Send + 'static>(file: &mut SiteFile<T>) -> Result<T, ConfigError> {
        let limit = Instant::now() + Duration::from_secs(30);
        loop {
            match file.refresh() {
                Some(news) => return news,
                None => assert!(Instant::now() < limit, "waited in vain for news"),
            }
        }
    }

    #[test]
    fn it_is_read_again_when_it_changes_and_a_mistake_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work.yml");
        let open = || SiteFile::open(SiteFileKind::Maintenance, &path, text_in);
        assert!(open().unwrap_err().to_string().contains("work.yml"), "it is not there");
        std::fs::write(&path, "a").unwrap();
        let (mut file, first) = open().unwrap();
        assert_eq!(first, "a");
        assert!(file.refresh().is_none(), "nobody reads yet");
        file.watch().unwrap();
        std::fs::write(&path, "bc").unwrap();
        assert_eq!(news(&mut file).unwrap(), "bc");
        let read_at = file.read_at();
        std::fs::write(&path, "wrong").unwrap();
        assert!(news(&mut file).is_err());
        for _ in 0..3 {
            assert!(file.refresh().is_none(), "told once");
        }
        assert!(file.read_at() <= unix_now() && file.read_at() >= read_at);
        let before = file.read_at();
        std::fs::remove_file(&path).unwrap();
        assert!(news(&mut file).is_err());
        assert!((file.read_at() - before).abs() < f64::EPSILON, "it could not be used");
        std::fs::write(&path, "d").unwrap();
        assert_eq!(news(&mut file).unwrap(), "d");
    }

    #[test]
    fn a_reader_that_hangs_holds_nobody_up_and_what_it_finds_later_counts() {
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
        assert_eq!(news(&mut file).unwrap(), "second");
    }
}
