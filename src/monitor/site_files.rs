//! The site files of a fabric: node-name-map, M_Keys, maintenance windows; read again when they change.
//!
//! Each is read on a thread of its own: the thread that sweeps must not wait for a file system that hangs, such as NFS
//! whose server is down. Each refresh has the reader check the file, and takes its result. While the reader hangs, the
//! earlier content stays in use.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fabric_observation::SiteFileKind;
use ib_fabric::collect::unresponsive::UnresponsiveNeighbors;
use ib_fabric::names::NodeNameMap;
use ib_health::settings::{DrainedHosts, MaintenanceWindow};
use ib_mad::Moment;
use ib_mad::m_key::MKeys;
use site_config::ConfigError;
use site_config::file::{self, READ_TIMEOUT};

use super::Monitor;
use super::maintenance::{drained_hosts_in, maintenance_in};
use crate::config::FabricSettings;

pub(super) struct SiteFiles {
    names: Option<SiteFile<NodeNameMap>>,
    keys: Option<SiteFile<KeyFile>>,
    vs_keys: Option<SiteFile<KeyFile>>,
    pub(super) maintenance: Option<SiteFile<Vec<MaintenanceWindow>>>,
    pub(super) drained: Option<SiteFile<DrainedHosts>>,
}

impl SiteFiles {
    /// Reads all for the first time. Fails if one is invalid, or is not read in time.
    pub(super) fn open(settings: &FabricSettings) -> Result<Self, ConfigError> {
        let open_keys = |kind, path: &Option<PathBuf>| {
            SiteFile::open(kind, path.as_deref(), move |path| keys_in(kind, path))
        };
        let (map, maintenance) = (&settings.node_name_map, &settings.maintenance_file);
        Ok(SiteFiles {
            names: SiteFile::open(SiteFileKind::NodeNameMap, map.as_deref(), names_in)?,
            keys: open_keys(SiteFileKind::MKey, &settings.m_key_file)?,
            vs_keys: open_keys(SiteFileKind::VsKey, &settings.vs_key_file)?,
            maintenance: SiteFile::open(
                SiteFileKind::Maintenance,
                maintenance.as_deref(),
                maintenance_in,
            )?,
            drained: SiteFile::open_or_default(
                SiteFileKind::DrainedHosts,
                settings.drained_hosts_file.as_deref(),
                drained_hosts_in,
            )?,
        })
    }
}

impl Monitor {
    pub(super) fn refresh_names(&mut self) {
        if let Some(names) = refresh(&self.settings.name, &mut self.files.names) {
            self.naming.map = names;
        }
    }

    pub(super) fn refresh_keys(&mut self, now: Moment) {
        let new = refresh(&self.settings.name, &mut self.files.keys);
        if let Some(KeyFile { keys, warnings }) = new {
            // A node that refused the old key may accept the new one: all are queried at once. OpenSM rewrites
            // its file `neighbors` at each change of the topology, which is no reason to.
            if !keys.has_same_keys(&self.keys) {
                self.unanswered = UnresponsiveNeighbors::default();
            }
            self.keys = Arc::new(keys);
            self.warn(warnings, now, "further M_Key file warnings not logged");
        }
        self.agents.keys = Arc::clone(&self.keys);
        let new = refresh(&self.settings.name, &mut self.files.vs_keys);
        if let Some(KeyFile { keys, warnings }) = new {
            if let Some(registers) = &mut self.registers {
                registers.set_keys(keys);
            }
            self.warn(warnings, now, "further VSKey file warnings not logged");
        }
    }

    pub(super) fn refresh_maintenance(&mut self) {
        if let Some(windows) = refresh(&self.settings.name, &mut self.files.maintenance) {
            self.evaluator.maintenance = windows;
        }
        if let Some(drained) = refresh(&self.settings.name, &mut self.files.drained) {
            self.evaluator.set_drained(drained);
        }
        let SiteFiles { names, keys, vs_keys, maintenance, drained } = &self.files;
        self.stats.site_files = [
            names.as_ref().map(|file| file.read_at),
            keys.as_ref().map(|file| file.read_at),
            vs_keys.as_ref().map(|file| file.read_at),
            maintenance.as_ref().map(|file| file.read_at),
            drained.as_ref().map(|file| file.read_at),
        ];
    }
}

/// The new content of a file, if it changed; an error is logged.
fn refresh<T: Send + 'static>(fabric: &str, file: &mut Option<SiteFile<T>>) -> Option<T> {
    let content = file.as_mut()?.refresh()?;
    let log = |error: &ConfigError| {
        for line in error.lines() {
            tracing::warn!(fabric, "{line}; keeping the previous content");
        }
    };
    content.inspect_err(log).ok()
}

/// How long a refresh waits for the reader. A file on a local disk is checked within 1 ms, so a sweep uses the
/// content at its start; a reader that hangs is waited for once.
const WAIT: Duration = Duration::from_millis(100);
/// After this time a check that has not ended is logged.
const HANGS: Duration = Duration::from_secs(60);

/// One file; see the module.
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
    pub(super) read_at: f64,
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
            let content = read(&own);
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

    pub(super) fn refresh(&mut self) -> Option<Result<T, ConfigError>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        if let Some(mut check) = self.check.take() {
            let (requests, requested) = sync_channel::<()>(1);
            let (sender, results) = sync_channel(1);
            let run = move || while requested.recv().is_ok() && sender.send(check()).is_ok() {};
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
            Err(_) => return None,
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

/// The file that OpenSM keeps beside guid2mkey: which port is connected to which.
const NEIGHBORS: &str = "neighbors";

/// The content of the files, and warnings about them.
#[derive(Debug, Default)]
pub struct KeyFile {
    /// The keys.
    pub keys: MKeys,
    /// Problems that do not keep the keys from being used.
    pub warnings: Vec<String>,
}

/// Reads a file of M_Keys or VSKeys. Where M_Keys differ, the file `neighbors` beside it is read, too: the VSKey of a
/// device is sent only once the device is known.
pub fn keys_in(kind: SiteFileKind, path: &Path) -> Result<KeyFile, ConfigError> {
    let wrong = |path: &Path, problem: &dyn std::fmt::Display| {
        let problem = problem.to_string();
        let problem = match kind {
            // The format is the same.
            SiteFileKind::VsKey => problem
                .replace("M_Key", "VSKey")
                .replace("guid2mkey", "guid2vskey")
                .replace("m-key-file", "vs-key-file"),
            _ => problem,
        };
        ConfigError::in_file(kind.name(), path, [problem])
    };
    let mut warnings = Vec::new();
    let bytes = file::read(path, file::MAX_BYTES).map_err(|error| wrong(path, &error))?;
    let mode = std::fs::metadata(path).map_err(|error| wrong(path, &error))?.permissions().mode();
    if mode & 0o007 != 0 {
        warnings.push(format!(
            "{2} {0} is accessible to other users (mode {1:04o}): run chmod 0640 {0}",
            path.display(),
            mode & 0o7777,
            kind.name()
        ));
    }
    let mut keys =
        MKeys::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| wrong(path, &error))?;
    if keys.differ() && kind == SiteFileKind::MKey {
        let neighbors = path.with_file_name(NEIGHBORS);
        match file::read(&neighbors, file::MAX_BYTES) {
            Ok(bytes) => {
                keys = keys
                    .with_neighbors(&String::from_utf8_lossy(&bytes))
                    .map_err(|error| wrong(&neighbors, &error))?;
            }
            Err(error) => warnings.push(format!(
                "M_Keys in {} differ, and {} cannot be read ({error}): nodes that have not responded yet are \
                 queried without a key; copy OpenSM's file {NEIGHBORS} there",
                path.display(),
                neighbors.display()
            )),
        }
    }
    Ok(KeyFile { keys, warnings })
}

/// How many entries a site file has, and warnings about it.
pub fn inspect_site_file(
    kind: SiteFileKind,
    path: &Path,
) -> Result<(usize, Vec<String>), ConfigError> {
    match kind {
        SiteFileKind::NodeNameMap => names_in(path).map(|names| (names.0.len(), Vec::new())),
        SiteFileKind::MKey | SiteFileKind::VsKey => {
            keys_in(kind, path).map(|file| (file.keys.len(), file.warnings))
        }
        SiteFileKind::Maintenance => maintenance_in(path).map(|it| (it.len(), Vec::new())),
        // The program that writes it may not have done so yet: `serve` starts without it.
        SiteFileKind::DrainedHosts => Ok(match drained_hosts_in(path) {
            Ok(hosts) => (hosts.len(), Vec::new()),
            Err(error) => (0, error.lines().to_vec()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;

    use super::*;
    use ib_mad::Guid;
    use ib_mad::m_key::MKey;

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

    fn write(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn different_keys_require_opensm_neighbors_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("guid2mkey");
        write(&path, "0xa 0x0000000000000001\n0xb 0x0000000000000002\n", 0o600);
        let file = keys_in(SiteFileKind::MKey, &path).unwrap();
        assert!(file.warnings[0].contains("neighbors cannot be read"), "{:?}", file.warnings);
        assert_eq!(file.keys.get_neighbor(Guid(0xa), 1), MKey::NONE);
        write(&folder.path().join("neighbors"), "0xa:1 0xb:5\n", 0o600);
        let file = keys_in(SiteFileKind::MKey, &path).unwrap();
        assert!(file.warnings.is_empty(), "{:?}", file.warnings);
        assert_eq!(file.keys.get_neighbor(Guid(0xa), 1), MKey(2));
        write(&folder.path().join("neighbors"), "\nnonsense\n", 0o600);
        let error = keys_in(SiteFileKind::MKey, &path).unwrap_err().to_string();
        assert!(error.contains("neighbors: line 2: it must be two ports"), "{error}");
    }

    #[test]
    fn world_readable_key_file_warns_without_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for (mode, warns) in [(0o600, false), (0o640, false), (0o644, true), (0o602, true)] {
            write(&path, "0x5ec2e7\n", mode);
            let warnings = keys_in(SiteFileKind::MKey, &path).unwrap().warnings;
            assert_eq!(!warnings.is_empty(), warns, "{mode:o}");
            assert!(warnings.iter().all(|text| text.contains("chmod") && !text.contains("5ec2e7")));
        }
        let error =
            keys_in(SiteFileKind::MKey, &folder.path().join("none")).unwrap_err().to_string();
        assert!(error.starts_with("M_Key file ") && error.contains("No such file"), "{error}");
    }
}
