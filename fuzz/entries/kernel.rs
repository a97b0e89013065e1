//! Buffers of the kernel: uevents, strings of drivers, and datagrams with their header.

use ib_umad::umad::{HeaderFormat, decode};
use rdma_host::model::ethernet;
use rdma_host::reader::ethtool::split_strings;
use rdma_host::reader::events::uevent;

pub fn run(bytes: &[u8]) {
    let _ = uevent::parse(bytes);
    for string in split_strings(bytes) {
        for driver in ["mlx5_core", "mlx4_core", "bnxt_en", "ice"] {
            if let Some(id) = ethernet::find(driver, &string) {
                assert!(id.row < ethernet::TABLE.len());
            }
        }
    }
    for header in [HeaderFormat::Long, HeaderFormat::Short] {
        let _ = decode(bytes, header);
    }
}
