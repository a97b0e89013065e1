//! What a node says of itself.

use crate::ids::{Guid, PortNumber};
use crate::port_state::SpeedFields;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A channel adapter: a host's.
    Ca,
    /// A switch.
    Switch,
    /// A router to another subnet.
    Router,
    /// A switch's in-network computing unit (SHARP): shows as a CA on an internal port, and need
    /// not answer for counters.
    AggregationNode,
}

impl NodeKind {
    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            NodeKind::Ca => "ca",
            NodeKind::Switch => "switch",
            NodeKind::Router => "router",
            NodeKind::AggregationNode => "aggregation_node",
        }
    }
}

/// What a device told of itself and does not change while it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// NodeGUID: names the node in every metric.
    pub guid: Guid,
    /// SystemImageGUID: the same for the nodes of one chassis or one card.
    pub system_guid: Guid,
    /// What it is.
    pub kind: NodeKind,
    /// The description it tells, made readable.
    pub description: String,
    /// The vendor's 24-bit id.
    pub vendor_id: u32,
    /// The vendor's id of the device.
    pub device_id: u16,
    /// How many physical ports it has.
    pub port_count: u8,
    /// A switch whose port 0 is a full endpoint, with counters of its own.
    pub enhanced_port0: bool,
    /// Which speed fields of a switch's ports mean something.
    pub speed_fields: SpeedFields,
    /// Its ports tell which error correction they run with (PortInfoExtended).
    pub tells_fec: bool,
}

impl NodeIdentity {
    /// The number of its first port: a switch has a port 0.
    pub fn first_port(&self) -> PortNumber {
        u8::from(self.kind != NodeKind::Switch)
    }
}

/// What a switch port is for, as Mellanox's ExtPortInfo (0xFF90) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRole {
    /// A cable is plugged in here.
    Cable,
    /// Connects the ASICs of one multi-plane (XDR) switch: FNM.
    Fnm,
    /// Leads to the router inside the switch.
    Router,
    /// Another internal port: to an aggregation node, an Ethernet gateway, or of a type that is not
    /// known.
    Other,
}

impl PortRole {
    /// Whether its link is no cable that a technician could replace.
    pub fn is_internal(self) -> bool {
        matches!(self, PortRole::Fnm | PortRole::Router)
    }
}

/// Makes readable text of the bytes that a device tells as its description.
///
/// They are 64 at most, end at the first NUL or not at all, need not be UTF-8, and whoever has
/// root on a host chooses them: control characters are replaced here once, so that neither a log
/// nor a terminal nor a page meets one.
pub fn readable_description(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
        .trim()
        .chars()
        .map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_hostile() {
        for (bytes, text) in [
            (&b"MF0;leaf-1:MQM9700/U1\0junk"[..], "MF0;leaf-1:MQM9700/U1"),
            (b"host-1 mlx5_0  ", "host-1 mlx5_0"),
            (b"no end \xff\xfe", "no end \u{fffd}\u{fffd}"),
            (b"\x1b[31mred\nline", "\u{fffd}[31mred\u{fffd}line"),
            (b"quote\"back\\slash", "quote\"back\\slash"),
            (b"\0", ""),
            (&[b'a'; 64], &"a".repeat(64)),
        ] {
            assert_eq!(readable_description(bytes), text);
        }
    }
}
