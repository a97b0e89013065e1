//! The kind of a fabric, concluded from the responses of its switches.

use crate::backoff::Backoff;
use crate::fabric_kind::FabricKind;

/// What a discovery learns of the kind of the fabric.
#[derive(Debug, Default)]
pub(super) struct KindSurvey {
    /// It is asked for.
    pub(super) is_wanted: bool,
    /// How many switches may be asked, and were.
    pub(super) allowed: usize,
    pub(super) asked: usize,
    /// How long it is not asked for, since no switch has told.
    pub(super) backoff: Backoff,
    pub(super) is_infiniband: bool,
    pub(super) is_nvlink: bool,
}

impl KindSurvey {
    /// The kind, if a switch has told.
    pub(super) fn kind(&self) -> Option<FabricKind> {
        if self.is_infiniband {
            return Some(FabricKind::InfiniBand);
        }
        self.is_nvlink.then_some(FabricKind::NvLink)
    }

    /// When it is asked for again.
    pub(super) fn backoff(&self) -> Backoff {
        match self.kind() {
            Some(_) => Backoff::default(),
            None if self.asked > 0 => self.backoff.lost(),
            None => self.backoff,
        }
    }

    pub(super) fn on_capabilities(&mut self, is_nvlink: bool) {
        self.is_nvlink |= is_nvlink;
        self.is_infiniband |= !is_nvlink;
    }
}
