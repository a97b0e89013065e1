//! What the kernel hands over in a buffer: uevents, a driver's strings, and datagrams with their
//! header.

use fabric_exporter::collect::host::ethtool::strings;
use fabric_exporter::collect::host::events::uevent;
use fabric_exporter::fabric::host::ethernet;
use fabric_exporter::transport::umad::{Header, decode};

pub fn run(bytes: &[u8]) {
    let _ = uevent::change(bytes);
    for string in strings(bytes) {
        for driver in ["mlx5_core", "mlx4_core", "bnxt_en", "ice"] {
            if let Some(meaning) = ethernet::meaning(driver, &string) {
                assert!(meaning.row < ethernet::TABLE.len());
            }
        }
    }
    for header in [Header::Long, Header::Short] {
        let _ = decode(bytes, header);
    }
}
