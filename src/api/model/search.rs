//! What `/api/v1/search` says.

use serde::{Deserialize, Serialize};

use super::Word;

/// What goes by a name, a GUID or a LID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Search {
    /// What was searched for.
    pub sought: String,
    /// How much was found; no more than the best hundred are told.
    pub found: usize,
    /// What was found, the best first.
    pub hits: Vec<Hit>,
}

/// Something that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hit {
    /// `node`, `port`, `link` or `device`.
    pub kind: Word,
    /// The fabric that it is in; of a device, that of its node, if that is known.
    pub fabric: String,
    /// What people call it.
    pub name: String,
    /// Its GUID, or a cable's id.
    pub id: String,
    /// What of it was found: `name`, `guid`, `port_guid`, `lid`, `link`, `port`.
    pub by: Word,
    /// How well that fits: `exact`, `prefix` or `substring`.
    pub fits: Word,
    /// The address of its page.
    pub page: String,
}
