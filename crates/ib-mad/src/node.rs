//! What a node says of itself, and what its device is.

use crate::ids::{Guid, PortNumber};
use crate::port_state::SpeedFields;
use display_text::labeled_enum;

labeled_enum! {
    /// Kind of a node.
    pub enum NodeKind {
        Ca, "ca", "A channel adapter of a host.";
        Switch, "switch", "A switch.";
        Router, "router", "A router to another subnet.";
        AggregationNode, "aggregation_node",
            "In-network computing unit of a switch (SHARP): appears as a CA on an internal port.";
    }
}

/// Properties of a node that do not change while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct NodeIdentity {
    /// NodeGUID: identifies the node in metrics.
    pub guid: Guid,
    /// SystemImageGUID: shared by the nodes of one chassis or card.
    pub system_guid: Guid,
    pub kind: NodeKind,
    /// NodeDescription as printable text.
    pub description: String,
    pub vendor_id: u32,
    pub device_id: u16,
    pub port_count: u8,
    /// EnhancedPort0: port 0 of the switch is an endpoint with counters of its own.
    pub enhanced_port0: bool,
    /// Valid speed fields of a switch's ports.
    pub speed_fields: SpeedFields,
    /// Its ports support PortInfoExtended, which reports the FEC mode.
    pub reports_fec: bool,
}

impl NodeIdentity {
    /// Number of the first port: a switch has a port 0.
    pub fn first_port(&self) -> PortNumber {
        u8::from(self.kind != NodeKind::Switch)
    }
}

/// Role of a switch port, from Mellanox ExtendedPortInfo (0xFF90).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRole {
    /// External port.
    Cable,
    /// Connects the ASICs of one multi-plane (XDR) switch: FNM.
    Fnm,
    /// Leads to the internal router.
    Router,
    /// Another internal port: to an aggregation node, an Ethernet gateway, or of an unknown type.
    Other,
}

impl PortRole {
    /// Whether its link is internal: no cable that a technician could replace.
    pub fn is_internal(self) -> bool {
        matches!(self, PortRole::Fnm | PortRole::Router)
    }
}

/// Converts the bytes of a NodeDescription to printable text.
///
/// They end at the first NUL if there is one, need not be UTF-8, and any root user of a host can set them:
/// control characters are replaced here, before they reach a log, a terminal or a page.
pub fn readable_description(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
        .trim()
        .chars()
        .map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char })
        .collect()
}

/// Devices by vendor and DeviceID.
pub mod device {
    use std::sync::LazyLock;

    /// Whether the vendor is NVIDIA (Mellanox), by its OUI, or its PCI vendor id, which some devices report.
    pub fn is_mellanox(vendor_id: u32) -> bool {
        matches!(vendor_id, 0x02c9 | 0x15b3)
    }

    /// DeviceID of the SHARP aggregation node inside a switch (714 of 714 in public topologies).
    pub const AGGREGATION_NODE: u16 = 53001;

    /// DeviceID of Quantum-3 (XDR), of which four ASICs make one Q3400.
    pub const QUANTUM_3: u16 = 54004;

    /// Whether a device is a switch of InfiniBand by its DeviceID. [`QUANTUM_3`] is not among them: which one the switches
    /// of NVLink fabrics have is not public.
    pub fn is_infiniband_switch(vendor_id: u32, device_id: u16) -> bool {
        is_mellanox(vendor_id) && matches!(device_id, 48438 | 51000 | 52000 | 53000 | 54000 | 54002)
    }

    pub(super) static NAMES: LazyLock<Vec<(u16, &str)>> = LazyLock::new(|| {
        let rows = include_str!("devices.tsv").lines().filter_map(|line| line.split_once('\t'));
        rows.filter_map(|(id, name)| Some((id.parse().ok()?, name))).collect()
    });

    /// The name of a device, if it is known; to add one, add a row to `devices.tsv`.
    pub fn name(vendor_id: u32, device_id: u16) -> Option<&'static str> {
        let (_, name) = NAMES.iter().find(|(id, _)| is_mellanox(vendor_id) && *id == device_id)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn node_description_is_sanitized() {
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

    #[test]
    fn every_row_of_the_file_has_an_id_of_its_own_and_a_name() {
        let rows = include_str!("devices.tsv").lines().filter(|line| !line.starts_with('#'));
        let ids: HashSet<u16> = device::NAMES.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), rows.count());
        assert!(device::NAMES.iter().all(|(_, name)| !name.is_empty() && name.trim() == *name));
    }

    #[test]
    fn device_name_needs_matching_vendor() {
        assert_eq!(device::name(0x2c9, 4129), Some("ConnectX-7"));
        assert_eq!(device::name(0x15b3, 53001), Some("SHARP aggregation node"));
        assert_eq!(device::name(0x2c9, 9), None);
        assert_eq!(device::name(0x1234, 4129), None, "4129 of another vendor");
    }
}
