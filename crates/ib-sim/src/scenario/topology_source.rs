//! Where a topology comes from.

use std::path::PathBuf;

use serde::Deserialize;

use crate::net::shapes::{BackToBack, DragonflyPlus, FatTree, Xdr};

/// Where the topology of a fabric comes from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the types describe themselves")]
pub enum TopologySource {
    FatTree(FatTree),
    BackToBack(BackToBack),
    DragonflyPlus(DragonflyPlus),
    Xdr(Xdr),
    /// A topology file, as ibnetdiscover writes and ibsim reads it.
    File(PathBuf),
}
