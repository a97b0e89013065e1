//! The node-name-map file, read anew at each discovery.

use std::path::{Path, PathBuf};

use crate::fabric::names::{NodeNames, NodeNamesError};

/// A node-name-map that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NamesError {
    /// It cannot be read.
    #[error("node-name-map {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// One of its lines is not what it should be.
    #[error("node-name-map {path}: {error}")]
    Malformed {
        /// The file.
        path: String,
        /// Which line, and why.
        error: NodeNamesError,
    },
}

/// Reads the file, if there is one.
pub(super) fn read_names(path: Option<&PathBuf>) -> Result<NodeNames, NamesError> {
    path.map_or_else(|| Ok(NodeNames::default()), |path| names_in(path))
}

/// Reads a node-name-map.
pub fn names_in(path: &Path) -> Result<NodeNames, NamesError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path)
        .map_err(|error| NamesError::Unreadable { path: name.clone(), error })?;
    NodeNames::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|error| NamesError::Malformed { path: name, error })
}
