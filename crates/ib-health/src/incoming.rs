//! What a port receives, and what its errors are compared with.

use ib_fabric::{PortIndex, Snapshot};
use ib_mad::reading::Raw;

use super::limits::{Confidence, LimitTable, Limits};

/// What a port receives while its link is up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Incoming {
    pub bits_per_second: f32,
    pub lanes: u8,
    pub limits: Limits,
    pub confidence: Confidence,
}

impl Incoming {
    /// What a port receives, if it has a link and its rate is known.
    pub fn of(limits: &LimitTable, snapshot: &Snapshot<Raw>, port: PortIndex) -> Option<Self> {
        let peer = snapshot.fabric.port(port).connected_peer()?;
        // A sweep queries one end of each link; both have the same rate.
        let status = [port, peer].into_iter().find_map(|port| {
            let status = snapshot.status(port)?;
            Some((status.rate()?, status.speed?, status.width?))
        });
        let (rate, speed, width) = status?;
        let fec = snapshot.fec[port].or(snapshot.fec[peer]);
        Some(Incoming {
            bits_per_second: rate as f32 * 8.0,
            lanes: width.lanes(),
            limits: limits.limits(speed, fec),
            confidence: limits.confidence,
        })
    }
}
