//! What a device told of its ports, of its own accord.

use ib_mad::PortNumber;
use ib_mad::moment::Anchor;

macro_rules! kinds {
    ($($kind:ident $code:literal $label:literal $help:literal;)+) => {
        /// A kind of asynchronous event that concerns a port or a whole device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum EventKind { $(#[doc = $help] $kind),+ }

        impl EventKind {
            /// All of them.
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),+];

            /// The event with this number, if it is one of these: `enum ibv_event_type` of
            /// libibverbs (kernel: `enum ib_event_type`). The others speak of queues and QPs.
            pub fn from_code(code: u32) -> Option<EventKind> {
                match code {
                    $($code => Some(EventKind::$kind),)+
                    _ => None,
                }
            }

            /// As metrics write it.
            pub fn label(self) -> &'static str {
                match self { $(EventKind::$kind => $label),+ }
            }
        }
    };
}

kinds! {
    DeviceFatal 8 "device_fatal" "The device or its driver goes away.";
    PortActive 9 "port_active" "The port carries traffic again.";
    PortError 10 "port_error" "The port lost its link.";
    LidChange 11 "lid_change" "The subnet manager gave the port another LID.";
    PkeyChange 12 "pkey_change" "The port's table of partitions changed.";
    SmChange 13 "sm_change" "Another subnet manager is the master.";
    ClientReregister 17 "client_reregister" "The subnet manager wants all subscriptions anew.";
    GidChange 18 "gid_change" "The port's table of GIDs changed.";
}

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// When it came in.
    pub at: Anchor,
    /// The device: `mlx5_0`.
    pub device: String,
    /// The port; `None` for what concerns the whole device.
    pub port: Option<PortNumber>,
    /// What it was.
    pub kind: EventKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_libibverbs_and_others_are_none() {
        // infiniband/verbs.h: IBV_EVENT_CQ_ERR is 0, IBV_EVENT_WQ_FATAL 19.
        let known: Vec<u32> =
            (0..64).filter(|&code| EventKind::from_code(code).is_some()).collect();
        assert_eq!(known, [8, 9, 10, 11, 12, 13, 17, 18]);
        assert_eq!(EventKind::from_code(10), Some(EventKind::PortError));
        assert_eq!(EventKind::ALL.len(), known.len());
    }
}
