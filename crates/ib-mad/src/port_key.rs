//! The identity of a port that stays the same when a fabric is discovered again.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::ids::{Guid, PortNumber};

/// A port by its node and number: `0x00aa000000000001:5`. Ordered by GUID, then number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortKey {
    /// The GUID of the node, not that of the port.
    pub guid: Guid,
    /// The number of the port in its node.
    pub number: PortNumber,
}

impl PortKey {
    /// The port with this number of the node with this GUID.
    pub const fn new(guid: Guid, number: PortNumber) -> Self {
        PortKey { guid, number }
    }
}

impl fmt::Display for PortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.guid, self.number)
    }
}

/// Not a port such as `0x00aa000000000001:5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a port such as 0x00aa000000000001:5")]
pub struct InvalidPortKey;

impl FromStr for PortKey {
    type Err = InvalidPortKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (guid, number) = text.rsplit_once(':').ok_or(InvalidPortKey)?;
        let guid = guid.parse().map_err(|_| InvalidPortKey)?;
        Ok(PortKey { guid, number: number.parse().map_err(|_| InvalidPortKey)? })
    }
}
