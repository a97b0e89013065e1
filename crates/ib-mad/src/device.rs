//! Device names by vendor and device id.

use std::sync::LazyLock;

/// Whether the vendor is NVIDIA (Mellanox), by its OUI, or its PCI vendor id, which some devices report.
pub fn is_mellanox(vendor_id: u32) -> bool {
    matches!(vendor_id, 0x02c9 | 0x15b3)
}

/// DeviceID of the SHARP aggregation node inside a switch (714 of 714 in public topologies).
pub const AGGREGATION_NODE: u16 = 53001;

/// DeviceID of Quantum-3 (XDR), of which four ASICs make one Q3400.
pub const QUANTUM_3: u16 = 54004;

static NAMES: LazyLock<Vec<(u16, &str)>> = LazyLock::new(|| {
    let rows = include_str!("devices.tsv").lines().filter_map(|line| line.split_once('\t'));
    rows.filter_map(|(id, name)| Some((id.parse().ok()?, name))).collect()
});

/// The name of a device, if it is known; to add one, add a row to `devices.tsv`.
pub fn name(vendor_id: u32, device_id: u16) -> Option<&'static str> {
    let (_, name) = NAMES.iter().find(|(id, _)| is_mellanox(vendor_id) && *id == device_id)?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_of_the_file_has_an_id_of_its_own_and_a_name() {
        let rows = include_str!("devices.tsv").lines().filter(|line| !line.starts_with('#'));
        let ids: HashSet<u16> = NAMES.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), rows.count());
        assert!(NAMES.iter().all(|(_, name)| !name.is_empty() && name.trim() == *name));
    }

    #[test]
    fn device_name_needs_matching_vendor() {
        assert_eq!(name(0x2c9, 4129), Some("ConnectX-7"));
        assert_eq!(name(0x15b3, 53001), Some("SHARP aggregation node"));
        assert_eq!(name(0x2c9, 9), None);
        assert_eq!(name(0x1234, 4129), None, "4129 of another vendor");
    }
}
