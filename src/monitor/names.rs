//! The node-name-map file, read again when it changes.

use std::path::Path;

use fabric_observation::SiteFileKind;
use ib_fabric::names::NodeNameMap;
use site_config::{ConfigError, file};

/// Reads a node-name-map.
pub fn names_in(path: &Path) -> Result<NodeNameMap, ConfigError> {
    let kind = SiteFileKind::NodeNameMap.name();
    let bytes = file::read(path, file::MOST_BYTES)
        .map_err(|error| ConfigError::in_file(kind, path, [error]))?;
    NodeNameMap::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|errors| ConfigError::in_file(kind, path, errors))
}
