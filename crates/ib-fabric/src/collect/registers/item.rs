//! A request of the register reader.

use ib_mad::m_key::MKey;
use ib_mad::register::RegisterQuery;
use ib_mad::{Guid, Lid};

/// A request: of a register, or of GeneralInfo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub guid: Guid,
    pub lid: Lid,
    pub what: Option<RegisterQuery>,
    /// How often the link of its port has gone down or recovered.
    pub link_downs: u64,
    pub key: MKey,
}
