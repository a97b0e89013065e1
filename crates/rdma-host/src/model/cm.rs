//! The counters of the kernel's connection manager: messages that establish and end reliable connections
//! (IBTA 1.4, chapter 12), among them those of IPoIB's connected mode, of Lustre and of NFS over RDMA.
//!
//! Linux 5.2 and later have them below each port that speaks the protocol (drivers/infiniband/core/cm.c,
//! `CM_COUNTER_GROUP`), once the module ib_cm is loaded. A read takes a number from memory without a query to
//! the firmware; but a port has 44 of them.

/// A directory of counters, one file for each kind of message.
#[derive(Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Group {
    pub directory: &'static str,
    /// Its metric, before `_total`.
    pub metric: &'static str,
    pub help: &'static str,
}

/// The directories.
pub const GROUPS: [Group; 4] = [
    Group {
        directory: "cm_tx_msgs",
        metric: "infiniband_cm_transmit_messages",
        help: "cm_tx_msgs: connection manager (CM) messages sent, by message type.",
    },
    Group {
        directory: "cm_tx_retries",
        metric: "infiniband_cm_transmit_retries",
        help: "cm_tx_retries: connection manager (CM) messages sent again after a timeout, by message type.",
    },
    Group {
        directory: "cm_rx_msgs",
        metric: "infiniband_cm_receive_messages",
        help: "cm_rx_msgs: connection manager (CM) messages received, by message type.",
    },
    Group {
        directory: "cm_rx_duplicates",
        metric: "infiniband_cm_receive_duplicates",
        help: "cm_rx_duplicates: duplicate connection manager (CM) messages received, by message type.",
    },
];

/// The kinds of messages, which are the files of each directory: request, message receipt acknowledgment,
/// reject, reply, ready to use, disconnect request and reply, service ID resolution request and reply, load
/// alternate path and alternate path response.
pub const MESSAGES: [&str; 11] =
    ["req", "mra", "rej", "rep", "rtu", "dreq", "drep", "sidr_req", "sidr_rep", "lap", "apr"];

/// The counters of a port, by [group](GROUPS) and [message](MESSAGES).
pub type CmReading = [[Option<u64>; MESSAGES.len()]; GROUPS.len()];
