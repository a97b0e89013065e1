//! Device names by vendor and device id.

/// Whether the vendor is NVIDIA (Mellanox), by the OUI in NodeInfo, or by the PCI vendor id, which some devices
/// report instead.
pub fn is_mellanox(vendor_id: u32) -> bool {
    matches!(vendor_id, 0x02c9 | 0x15b3)
}

/// DeviceID of the SHARP aggregation node inside a switch (714 of 714 in public topologies).
pub const AGGREGATION_NODE: u16 = 53001;

/// DeviceID of Quantum-3 (XDR), of which four ASICs make one Q3400.
pub const QUANTUM_3: u16 = 54004;

/// DeviceID in NodeInfo, and the name in the PCI database.
const NAMES: [(u16, &str); 26] = [
    (4099, "ConnectX-3"),
    (4103, "ConnectX-3 Pro"),
    (4113, "Connect-IB"),
    (4115, "ConnectX-4"),
    (4117, "ConnectX-4 Lx"),
    (4119, "ConnectX-5"),
    (4121, "ConnectX-5 Ex"),
    (4123, "ConnectX-6"),
    (4125, "ConnectX-6 Dx"),
    (4127, "ConnectX-6 Lx"),
    (4129, "ConnectX-7"),
    (4131, "ConnectX-8"),
    (25204, "InfiniHost III Lx"),
    (25208, "InfiniHost III Ex"),
    (25218, "InfiniHost III Ex"),
    (41682, "BlueField"),
    (41686, "BlueField-2"),
    (41692, "BlueField-3"),
    (48438, "InfiniScale IV"),
    (51000, "SwitchX"),
    (52000, "Switch-IB"),
    (53000, "Switch-IB 2"),
    (AGGREGATION_NODE, "SHARP aggregation node"),
    (54000, "Quantum"),
    (54002, "Quantum-2"),
    (QUANTUM_3, "Quantum-3"),
];

/// The name of a device, if it is known.
pub fn name(vendor_id: u32, device_id: u16) -> Option<&'static str> {
    let (_, name) = NAMES.iter().find(|(id, _)| is_mellanox(vendor_id) && *id == device_id)?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_name_needs_matching_vendor() {
        assert_eq!(name(0x2c9, 4129), Some("ConnectX-7"));
        assert_eq!(name(0x15b3, 53001), Some("SHARP aggregation node"));
        assert_eq!(name(0x2c9, 9), None);
        assert_eq!(name(0x1234, 4129), None, "4129 of another vendor");
    }
}
