//! The site files of a fabric: node-name-map, M_Keys and VSKeys, maintenance windows, drained hosts.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fabric_observation::SiteFileKind;
use ib_fabric::node_name_map::NodeNameMap;
use ib_health::settings::{DrainedHosts, MaintenanceWindow};
use ib_mad::m_key::MKeys;
use yaml_config::ConfigError;
use yaml_config::file;

use super::maintenance::{drained_hosts_in, maintenance_in};
use super::site_file::{NEIGHBORS, SiteFile};
use crate::config::FabricSettings;

pub(super) struct SiteFiles {
    names: Option<SiteFile<NodeNameMap>>,
    keys: Option<SiteFile<KeyFile>>,
    vs_keys: Option<SiteFile<KeyFile>>,
    pub(super) maintenance: Option<SiteFile<Vec<MaintenanceWindow>>>,
    drained: Option<SiteFile<DrainedHosts>>,
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

    /// The names, if they changed.
    pub(super) fn names(&mut self) -> Option<NodeNameMap> {
        changed(&mut self.names)
    }

    /// The M_Keys, if they changed.
    pub(super) fn keys(&mut self) -> Option<KeyFile> {
        changed(&mut self.keys)
    }

    /// The VSKeys, if they changed.
    pub(super) fn vs_keys(&mut self) -> Option<KeyFile> {
        changed(&mut self.vs_keys)
    }

    /// The windows of maintenance, if they changed.
    pub(super) fn maintenance(&mut self) -> Option<Vec<MaintenanceWindow>> {
        changed(&mut self.maintenance)
    }

    /// The drained hosts, if they changed.
    pub(super) fn drained(&mut self) -> Option<DrainedHosts> {
        changed(&mut self.drained)
    }

    /// When each file was read last, in seconds since 1970, in the order of [`SiteFileKind::ALL`].
    pub(super) fn read_at(&self) -> [Option<f64>; 5] {
        let SiteFiles { names, keys, vs_keys, maintenance, drained } = self;
        [
            names.as_ref().map(SiteFile::read_at),
            keys.as_ref().map(SiteFile::read_at),
            vs_keys.as_ref().map(SiteFile::read_at),
            maintenance.as_ref().map(SiteFile::read_at),
            drained.as_ref().map(SiteFile::read_at),
        ]
    }
}

/// The new content of a file, if it changed; an error is logged.
fn changed<T: Send + 'static>(file: &mut Option<SiteFile<T>>) -> Option<T> {
    let content = file.as_mut()?.refresh()?;
    let log = |error: &ConfigError| {
        for line in error.lines() {
            tracing::warn!("{line}; keeping the previous content");
        }
    };
    content.inspect_err(log).ok()
}

/// Reads a node-name-map.
pub fn names_in(path: &Path) -> Result<NodeNameMap, ConfigError> {
    let kind = SiteFileKind::NodeNameMap.name();
    let bytes = file::read(path, file::MAX_BYTES)
        .map_err(|error| ConfigError::in_file(kind, path, [error]))?;
    NodeNameMap::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|errors| ConfigError::in_file(kind, path, errors))
}

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
    use super::*;
    use ib_mad::Guid;
    use ib_mad::m_key::MKey;

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
