//! What traffic does to ports: who carries how much, who waits, what gets lost on the way.

use super::net::{Net, PortId};

/// Traffic from one adapter's port to another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The port that sends.
    pub from: PortId,
    /// The port that receives.
    pub to: PortId,
    /// What it would carry if nothing held it up, in bytes a second.
    pub offered: f64,
    /// The size of its packets, headers included.
    pub packet: u32,
}

/// The fabric as its traffic finds it. All slices are by [`PortId`].
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// What was built: which port is which node's.
    pub net: &'a Net,
    /// Where each port's cable leads now, if that link carries traffic.
    pub links: &'a [Option<PortId>],
    /// What each port's link carries, in bytes a second each way.
    pub capacity: &'a [f64],
    /// What an adapter takes in through the port, in bytes a second; infinite for a sound one.
    pub intake: &'a [f64],
    /// The bit error ratio of what comes in at the port, behind any forward error correction.
    pub bit_errors: &'a [f64],
}

/// What goes on at a port, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortLoad {
    /// Bytes sent, those of packets that are sent again included.
    pub xmit_bytes: f64,
    /// Packets sent.
    pub xmit_packets: f64,
    /// Bytes received.
    pub rcv_bytes: f64,
    /// Packets received.
    pub rcv_packets: f64,
    /// The share of time, 0 to 1, in which there was something to send and no credit to send it.
    pub waiting: f64,
    /// Packets discarded here because they stood at the head of the queue for too long.
    pub hoq_discards: f64,
    /// Packets discarded here because the way on is down.
    pub inactive_discards: f64,
    /// Packets that came in with an error that this link made.
    pub rcv_errors: f64,
    /// Packets that came in marked bad by an upstream switch.
    pub rcv_remote_physical_errors: f64,
}
