//! The file with the fabric's M_Keys, read again at each discovery. What it has is never logged.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::mad::m_key::{MKeys, MKeysError};

/// The file that OpenSM keeps beside guid2mkey: which port is behind which.
const NEIGHBORS: &str = "neighbors";

/// An M_Key file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MKeyFileError {
    /// It cannot be read.
    #[error("M_Key file {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// One of its lines is not what it has to be.
    #[error("M_Key file {path}: {error}")]
    Malformed {
        /// The file.
        path: String,
        /// Which line, and why.
        error: MKeysError,
    },
}

/// The files' contents, and what is to be said of them.
#[derive(Debug, Default)]
pub struct MKeyFile {
    /// The keys.
    pub keys: MKeys,
    /// What is wrong, though the keys can be used.
    pub warnings: Vec<String>,
}

/// Reads the file, if there is one.
pub(super) fn read_m_keys(path: Option<&PathBuf>) -> Result<MKeyFile, MKeyFileError> {
    path.map_or_else(|| Ok(MKeyFile::default()), |path| m_keys_in(path))
}

/// Reads an M_Key file; where its keys differ, the file `neighbors` beside it, too.
pub fn m_keys_in(path: &Path) -> Result<MKeyFile, MKeyFileError> {
    let mut warnings = Vec::new();
    let text = read(path, &mut warnings)?;
    let malformed =
        |path: &Path, error| MKeyFileError::Malformed { path: path.display().to_string(), error };
    let mut keys = MKeys::parse(&text).map_err(|error| malformed(path, error))?;
    if keys.differ() {
        let neighbors = path.with_file_name(NEIGHBORS);
        match std::fs::read(&neighbors) {
            Ok(bytes) => {
                keys = keys
                    .with_neighbors(&String::from_utf8_lossy(&bytes))
                    .map_err(|error| malformed(&neighbors, error))?;
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

fn read(path: &Path, warnings: &mut Vec<String>) -> Result<String, MKeyFileError> {
    let unreadable = |error| MKeyFileError::Unreadable { path: path.display().to_string(), error };
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode();
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
    use crate::fabric::Guid;
    use crate::mad::m_key::MKey;

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
        assert_eq!(file.keys.behind(Guid(0xa), 1), MKey::NONE);
        written(&folder.path().join("neighbors"), "0xa:1 0xb:5\n", 0o600);
        let file = m_keys_in(&path).unwrap();
        assert!(file.warnings.is_empty(), "{:?}", file.warnings);
        assert_eq!(file.keys.behind(Guid(0xa), 1), MKey(2));
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
