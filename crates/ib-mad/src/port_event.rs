//! Asynchronous events of the host's own ports.

use std::sync::Arc;

use display_text::labeled_enum;

use crate::ids::{Guid, PortNumber};
use crate::moment::Anchor;
use crate::port_key::PortKey;

labeled_enum! {
    /// The kind of an asynchronous event that concerns a port or a whole device. The discriminants are its numbers in
    /// `enum ibv_event_type` of libibverbs (kernel: `enum ib_event_type`); the other numbers concern queues and QPs.
    #[derive(PartialOrd, Ord)]
    pub enum PortEventKind {
        DeviceFatal = 8, "device_fatal", "The device or its driver is removed.";
        PortActive = 9, "port_active", "The port carries traffic again.";
        PortError = 10, "port_error", "The link of the port went down.";
        LidChange = 11, "lid_change", "The subnet manager gave the port another LID.";
        PkeyChange = 12, "pkey_change", "The port's P_Key table changed.";
        SmChange = 13, "sm_change", "Another subnet manager is the master.";
        ClientReregister = 17, "client_reregister", "The subnet manager requests that all clients register again.";
        GidChange = 18, "gid_change", "The port's GID table changed.";
    }
}

/// An event as a device of this host reported it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct PortEvent {
    pub at: Anchor,
    /// The device: `mlx5_0`.
    pub device: Arc<str>,
    pub guid: Option<Guid>,
    /// The port; `None` for an event of the whole device.
    pub port: Option<PortNumber>,
    pub kind: PortEventKind,
}

impl PortEvent {
    /// The port by its node GUID and number, where both are known.
    pub fn port_key(&self) -> Option<PortKey> {
        Some(PortKey { guid: self.guid?, number: self.port? })
    }

    /// Whether it says that the port's link came up or went down; `None` if it says neither.
    pub fn link_up(&self) -> Option<bool> {
        match self.kind {
            PortEventKind::PortActive => Some(true),
            PortEventKind::PortError => Some(false),
            PortEventKind::DeviceFatal
            | PortEventKind::LidChange
            | PortEventKind::PkeyChange
            | PortEventKind::SmChange
            | PortEventKind::ClientReregister
            | PortEventKind::GidChange => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_libibverbs() {
        // infiniband/verbs.h: IBV_EVENT_CQ_ERR is 0, IBV_EVENT_WQ_FATAL 19.
        let known: Vec<u32> =
            (0..64_u32).filter(|&code| PortEventKind::from_discriminant(code).is_some()).collect();
        assert_eq!(known, [8, 9, 10, 11, 12, 13, 17, 18]);
        assert_eq!(PortEventKind::from_discriminant(10_u32), Some(PortEventKind::PortError));
        assert_eq!(PortEventKind::ALL.len(), known.len());
    }
}
