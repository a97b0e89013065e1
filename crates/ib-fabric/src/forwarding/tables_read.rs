//! What a query has read, and why not more.

use ib_mad::Moment;
use ib_umad::RequestError;
use thiserror::Error;

use crate::NodeIndex;

/// Why the table of a switch was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unread {
    /// The switch did not respond, or refused.
    #[error("{0}")]
    Failed(RequestError),
    /// Nothing leads to the switch: it has no LID, or in a fabric with planes no directed route.
    #[error("the switch has no address")]
    NoAddress,
    /// A limit of SMPs was reached.
    #[error("{0}")]
    Limit(SmpLimit),
    /// The run ended before the table was read.
    #[error("the run ended")]
    Ended,
}

/// A limit of SMPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SmpLimit {
    /// That of one query.
    #[error("the query has reached its limit of SMPs")]
    Query,
    /// That of all queries per minute.
    #[error("the SMPs of this minute are used up")]
    Minute,
}

/// A switch whose table could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct UnreadSwitch {
    pub switch: NodeIndex,
    pub cause: Unread,
}

/// What a query has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TablesRead {
    /// The SMPs that it sent, without retries; 0 if all was known.
    pub requests: usize,
    /// When the oldest entry was read that the answer is based on; `None` without entries.
    pub oldest: Option<Moment>,
    /// Switches that did not respond, refused, or have no address, by node.
    pub failed: Vec<UnreadSwitch>,
    /// The limit that ended it, if one did.
    pub limit: Option<SmpLimit>,
}
