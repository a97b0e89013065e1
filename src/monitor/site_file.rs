//! A file in which a site describes its fabric, read again when it changes.
//!
//! It is read on a thread of its own: the thread that sweeps must not wait for a file system that hangs, such as NFS
//! whose server is down. Each refresh has the reader check the file, and takes its result. While the reader hangs, the
//! earlier content stays in use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fabric_observation::SiteFileKind;
use yaml_config::ConfigError;
use yaml_config::file::{self, READ_TIMEOUT};

/// The file that OpenSM keeps beside guid2mkey: which port is connected to which.
pub(super) const NEIGHBORS: &str = "neighbors";

/// How long a refresh waits for the reader. A file on a local disk is checked within 1 ms, so a sweep uses the
/// content at its start; a reader that hangs is waited for once.
const WAIT: Duration = Duration::from_millis(100);
/// After this time a check that has not ended is logged.
const HANGS: Duration = Duration::from_secs(60);

/// A site file.
pub(super) struct SiteFile<T> {
    kind: SiteFileKind,
    path: PathBuf,
    /// The content that was read first, until the first refresh.
    first: Option<T>,
    /// Until the second one, which starts the reader.
    check: Option<Check<T>>,
    reader: Option<Reader<T>>,
    /// When the check that is in progress began.
    requested: Option<Instant>,
    hangs: bool,
    /// When the file was last checked and valid, in seconds since 1970; 0 if it never was.
    read_at: f64,
}

/// Whether the file is valid, and its content if it has changed.
type FileCheck<T> = (bool, Option<Result<T, ConfigError>>);
type Check<T> = Box<dyn FnMut() -> FileCheck<T> + Send>;

/// The thread that reads. It ends when this is dropped, or once a check that hangs has ended.
struct Reader<T> {
    requests: SyncSender<()>,
    results: Receiver<FileCheck<T>>,
}

impl<T: Send + 'static> SiteFile<T> {
    /// Reads a file for the first time, if there is one. Fails if it is invalid, or is not read in time.
    pub(super) fn open(
        kind: SiteFileKind,
        path: Option<&Path>,
        read: impl Fn(&Path) -> Result<T, ConfigError> + Send + 'static,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(path) = path else { return Ok(None) };
        let (mut file, content) = Self::begin(kind, path, read)?;
        file.first = Some(content?);
        Ok(Some(file))
    }

    /// The same for a file that a program writes, which may not have done so yet: if it is missing or invalid, that is
    /// logged, and it counts as empty until it is valid.
    pub(super) fn open_or_default(
        kind: SiteFileKind,
        path: Option<&Path>,
        read: impl Fn(&Path) -> Result<T, ConfigError> + Send + 'static,
    ) -> Result<Option<Self>, ConfigError>
    where
        T: Default,
    {
        let Some(path) = path else { return Ok(None) };
        let (mut file, content) = Self::begin(kind, path, read)?;
        file.first = Some(content.unwrap_or_else(|error| {
            for line in error.lines() {
                tracing::warn!("{line}; empty until it is valid");
            }
            file.read_at = 0.0;
            T::default()
        }));
        Ok(Some(file))
    }

    /// Reads a file for the first time. Fails if it is not read in time.
    fn begin(
        kind: SiteFileKind,
        path: &Path,
        read: impl Fn(&Path) -> Result<T, ConfigError> + Send + 'static,
    ) -> Result<(Self, Result<T, ConfigError>), ConfigError> {
        let beside = (kind == SiteFileKind::MKey).then(|| path.with_file_name(NEIGHBORS));
        let (own, mut known, mut is_valid) = (path.to_owned(), None, false);
        let mut check: Check<T> = Box::new(move || {
            // Before the file is read, so that a change meanwhile is noticed the next time.
            let current = Some((file::stamp(&own), beside.as_deref().map(file::stamp)));
            if current == known {
                return (is_valid, None);
            }
            known = current;
            let content = read_safely(&own, kind, &read);
            is_valid = content.is_ok();
            (is_valid, Some(content))
        });
        let first = move || (check().1, check);
        let (content, check): (Option<Result<T, ConfigError>>, Check<T>) =
            file::with_timeout(READ_TIMEOUT, first)
                .map_err(|error| ConfigError::in_file(kind.name(), path, [error]))?;
        let unread = || Err(ConfigError::in_file(kind.name(), path, ["it was not read"]));
        let file = SiteFile {
            kind,
            path: path.to_owned(),
            first: None,
            check: Some(check),
            reader: None,
            requested: None,
            hangs: false,
            read_at: unix_now(),
        };
        Ok((file, content.unwrap_or_else(unread)))
    }

    /// When the file was last checked and valid, in seconds since 1970; 0 if it never was.
    pub(super) fn read_at(&self) -> f64 {
        self.read_at
    }

    /// The new content, if the file changed, or the error in it.
    pub(super) fn refresh(&mut self) -> Option<Result<T, ConfigError>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        if let Some(mut check) = self.check.take() {
            let (requests, requested) = sync_channel::<()>(1);
            let (sender, results) = sync_channel(1);
            let span = tracing::Span::current();
            let run = move || {
                let _in_fabric = span.entered();
                while requested.recv().is_ok() && sender.send(check()).is_ok() {}
            };
            // The thread has the rights of this one.
            if let Err(error) = std::thread::Builder::new().name("site-file".into()).spawn(run) {
                let problem =
                    format!("cannot start its reader ({error}): changes will not be loaded");
                return Some(Err(ConfigError::in_file(self.kind.name(), &self.path, [problem])));
            }
            self.reader = Some(Reader { requests, results });
        }
        let reader = self.reader.as_ref()?;
        let wait = if self.requested.is_some() {
            Duration::ZERO
        } else {
            reader.requests.try_send(()).ok()?;
            WAIT
        };
        let requested = *self.requested.get_or_insert_with(Instant::now);
        let (is_valid, new) = match reader.results.recv_timeout(wait) {
            Ok(check) => check,
            Err(RecvTimeoutError::Timeout) if !self.hangs && requested.elapsed() >= HANGS => {
                self.hangs = true;
                tracing::warn!(
                    file = %self.path.display(),
                    "{} not readable for {HANGS:?}: its file system does not respond; keeping the previous \
                     content",
                    self.kind.name()
                );
                return None;
            }
            // After a panic: `read_safely` leaves none to its thread.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        self.requested = None;
        if std::mem::take(&mut self.hangs) {
            tracing::info!(file = %self.path.display(), "site file readable again");
        }
        if is_valid {
            self.read_at = unix_now();
        }
        new
    }
}

/// The content of a file. A panic of its decoder, which the log has, is an error of this version of the file.
fn read_safely<T>(
    path: &Path,
    kind: SiteFileKind,
    read: &impl Fn(&Path) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    catch_unwind(AssertUnwindSafe(|| read(path))).unwrap_or_else(|_| {
        let problem = "internal error: see the panic message above, and report it as a bug";
        Err(ConfigError::in_file(kind.name(), path, [problem]))
    })
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
        let open = || SiteFile::open(SiteFileKind::Maintenance, Some(&path), text_in);
        assert!(open().err().unwrap().to_string().contains("work.yml"), "it is not there");
        std::fs::write(&path, "a").unwrap();
        let mut file = open().unwrap().unwrap();
        assert_eq!(changed(&mut file).unwrap(), "a");
        assert!(file.refresh().is_none(), "it has not changed");
        std::fs::write(&path, "bc").unwrap();
        assert_eq!(changed(&mut file).unwrap(), "bc");
        let read_at = file.read_at;
        std::fs::write(&path, "wrong").unwrap();
        assert!(changed(&mut file).is_err());
        for _ in 0..3 {
            assert!(file.refresh().is_none(), "reported once");
        }
        assert!(file.read_at <= unix_now() && file.read_at >= read_at);
        let before = file.read_at;
        std::fs::remove_file(&path).unwrap();
        assert!(changed(&mut file).is_err());
        assert!((file.read_at - before).abs() < f64::EPSILON, "it could not be used");
        std::fs::write(&path, "d").unwrap();
        assert_eq!(changed(&mut file).unwrap(), "d");
    }

    #[test]
    fn file_that_a_program_writes_may_be_missing_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drained");
        let open = || SiteFile::open_or_default(SiteFileKind::DrainedHosts, Some(&path), text_in);
        let mut file = open().unwrap().unwrap();
        assert!(file.read_at.abs() < f64::EPSILON);
        assert_eq!(changed(&mut file).unwrap(), "", "empty");
        std::fs::write(&path, "gpu1").unwrap();
        assert_eq!(changed(&mut file).unwrap(), "gpu1");
        assert!(file.read_at > 0.0);
        std::fs::write(&path, "wrong").unwrap();
        assert!(changed(&mut file).is_err(), "the caller keeps what it has");
        assert!(
            SiteFile::open_or_default(SiteFileKind::DrainedHosts, None, text_in).unwrap().is_none()
        );
        assert_eq!(changed(&mut open().unwrap().unwrap()).unwrap(), "", "damaged at the start");
    }

    #[test]
    fn hanging_reader_does_not_block_and_finishes_later() {
        let source = tempfile::NamedTempFile::new().unwrap();
        let (release, held) = mpsc::channel::<&str>();
        let held = Mutex::new(held);
        release.send("first").unwrap();
        let hangs = move |_: &Path| Ok(held.lock().unwrap().recv().unwrap());
        let file = SiteFile::open(SiteFileKind::Maintenance, Some(source.path()), hangs).unwrap();
        let mut file = file.unwrap();
        assert_eq!(changed(&mut file).unwrap(), "first");
        let read_at = file.read_at;
        std::fs::write(source.path(), "changed").unwrap();
        let began = Instant::now();
        for _ in 0..1000 {
            assert!(file.refresh().is_none());
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert!((file.read_at - read_at).abs() < f64::EPSILON, "nothing was read");
        release.send("second").unwrap();
        assert_eq!(changed(&mut file).unwrap(), "second");
    }

    #[test]
    fn decoder_that_panics_is_an_error_of_this_version_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names");
        std::fs::write(&path, "a").unwrap();
        let read = |path: &Path| match std::fs::read_to_string(path).unwrap().as_str() {
            "panic" => panic!("on purpose"),
            text => Ok(text.to_owned()),
        };
        let open = SiteFile::open(SiteFileKind::NodeNameMap, Some(&path), read);
        let mut file = open.unwrap().unwrap();
        assert_eq!(changed(&mut file).unwrap(), "a");
        std::fs::write(&path, "panic").unwrap();
        let error = changed(&mut file).unwrap_err().to_string();
        assert!(error.contains("internal error"), "{error}");
        std::fs::write(&path, "b").unwrap();
        assert_eq!(changed(&mut file).unwrap(), "b", "the reader goes on");
    }
}
