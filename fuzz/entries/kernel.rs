//! What the kernel hands over in a buffer: uevents, a driver's strings, and datagrams with their
//! header.

use ib_umad::umad::{HeaderFormat, decode};
use rdma_host::model::ethernet;
use rdma_host::reader::ethtool::strings;
use rdma_host::reader::events::uevent;

pub fn run(bytes: &[u8]) {
    let _ = uevent::change(bytes);
    for string in strings(bytes) {
        for driver in ["mlx5_core", "mlx4_core", "bnxt_en", "ice"] {
            if let Some(meaning) = ethernet::meaning(driver, &string) {
                assert!(meaning.row < ethernet::TABLE.len());
            }
        }
    }
    for header in [HeaderFormat::Long, HeaderFormat::Short] {
        let _ = decode(bytes, header);
    }
}
