//! The file with the fabric's M_Keys, read again when it changes. What it has is never logged.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fabric_observation::SiteFileKind;
use ib_mad::m_key::MKeys;
use site_config::{ConfigError, file};

/// The file that OpenSM keeps beside guid2mkey: which port is behind which.
const NEIGHBORS: &str = "neighbors";

/// The files' contents, and what is to be said of them.
#[derive(Debug, Default)]
pub struct MKeyFile {
    /// The keys.
    pub keys: MKeys,
    /// What is wrong, though the keys can be used.
    pub warnings: Vec<String>,
}

/// Reads an M_Key file; where its keys differ, the file `neighbors` beside it, too.
pub fn m_keys_in(path: &Path) -> Result<MKeyFile, ConfigError> {
    let wrong = |path: &Path, problem: &dyn std::fmt::Display| {
        ConfigError::in_file(SiteFileKind::MKey.name(), path, [problem])
    };
    let mut warnings = Vec::new();
    let text = read(path, &mut warnings).map_err(|error| wrong(path, &error))?;
    let mut keys = MKeys::parse(&text).map_err(|error| wrong(path, &error))?;
    if keys.differ() {
        let neighbors = neighbors_of(path);
        match file::read(&neighbors, file::MOST_BYTES) {
            Ok(bytes) => {
                keys = keys
                    .with_neighbors(&String::from_utf8_lossy(&bytes))
                    .map_err(|error| wrong(&neighbors, &error))?;
            }
            Err(error) => warnings.push(format!(
                "the M_Keys in {} differ, and {} cannot be read ({error}): nodes that have not answered yet are asked \
                 without a key; copy OpenSM's file {NEIGHBORS} there, too",
                path.display(),
                neighbors.display()
            )),
        }
    }
    Ok(MKeyFile { keys, warnings })
}

/// The file beside an M_Key file that says which port is behind which.
pub(super) fn neighbors_of(path: &Path) -> PathBuf {
    path.with_file_name(NEIGHBORS)
}

fn read(path: &Path, warnings: &mut Vec<String>) -> std::io::Result<String> {
    let bytes = file::read(path, file::MOST_BYTES)?;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o007 != 0 {
        warnings.push(format!(
            "M_Key file {} is open to other users (mode {:04o}): chmod 0640, or 0600",
            path.display(),
            mode & 0o7777
        ));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::Guid;
    use ib_mad::m_key::MKey;

    fn written(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn different_keys_want_the_neighbors_file_of_opensm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("guid2mkey");
        written(&path, "0xa 0x0000000000000001\n0xb 0x0000000000000002\n", 0o600);
        let file = m_keys_in(&path).unwrap();
        assert!(file.warnings[0].contains("neighbors cannot be read"), "{:?}", file.warnings);
        assert_eq!(file.keys.get_neighbor(Guid(0xa), 1), MKey::NONE);
        written(&folder.path().join("neighbors"), "0xa:1 0xb:5\n", 0o600);
        let file = m_keys_in(&path).unwrap();
        assert!(file.warnings.is_empty(), "{:?}", file.warnings);
        assert_eq!(file.keys.get_neighbor(Guid(0xa), 1), MKey(2));
        written(&folder.path().join("neighbors"), "\nnonsense\n", 0o600);
        let error = m_keys_in(&path).unwrap_err().to_string();
        assert!(error.contains("neighbors: line 2: it must be two ports"), "{error}");
    }

    #[test]
    fn a_key_file_that_others_can_read_is_warned_of_without_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for (mode, warns) in [(0o600, false), (0o640, false), (0o644, true), (0o602, true)] {
            written(&path, "0x5ec2e7\n", mode);
            let warnings = m_keys_in(&path).unwrap().warnings;
            assert_eq!(!warnings.is_empty(), warns, "{mode:o}");
            assert!(warnings.iter().all(|text| text.contains("chmod") && !text.contains("5ec2e7")));
        }
        let error = m_keys_in(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.starts_with("M_Key file ") && error.contains("No such file"), "{error}");
    }
}
