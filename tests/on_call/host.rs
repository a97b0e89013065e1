//! A host in a guest, whose own devices are in trouble: what no sweep of a fabric sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::rig::guest::{Guest, GuestExporter, TestHca};

/// What its fabric is called.
pub const FABRIC: &str = "host";

/// PortState and the numbers of events, from `<rdma/ib_verbs.h>`.
const DOWN: u32 = 1;
const INIT: u32 = 2;
const PORT_ERROR: u32 = 10;

/// The host, and what makes its counters go up.
pub struct Host {
    exporter: GuestExporter,
    stop: Arc<AtomicBool>,
    driver: Option<JoinHandle<()>>,
}

impl Host {
    /// Boots the guest, and lets trouble begin: on InfiniBand (port 1 takes in errors, 2 has one lane,
    /// 3 loses its link, 4 waits for a subnet manager) and on RoCE.
    pub fn start() -> Self {
        let infiniband = Guest::get().testhca("ocib", 4, false);
        let roce = Guest::get().testhca("oceth", 1, true);
        infiniband.set(2, "width", 1);
        infiniband.set(4, "state", INIT);
        let name = format!("--fabric.name={FABRIC}");
        let exporter = GuestExporter::start(&[
            "--no-collector.fabric",
            "--host.interval=1s",
            "--host.device-include=oc(ib|eth)",
            &name,
        ]);
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let driver = std::thread::spawn(move || drive(&infiniband, &roce, &told));
        Self { exporter, stop, driver: Some(driver) }
    }

    /// Where its exporter is reached.
    pub fn address(&self) -> &str {
        self.exporter.address()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(driver) = self.driver.take() {
            let ended = driver.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the guest's devices");
        }
    }
}

/// What of RoCE goes up, and by how much each time.
const HW: [(&str, u64); 10] = [
    ("out_of_buffer", 500),
    ("out_of_sequence", 5_000),
    ("packet_seq_err", 5_000),
    ("local_ack_timeout_err", 500),
    ("rx_write_requests", 1_000_000),
    ("roce_adp_retrans", 500),
    ("rnr_nak_retry_err", 500),
    ("rp_cnp_handled", 500_000),
    ("np_cnp_sent", 500_000),
    ("np_ecn_marked_roce_packets", 500_000),
];

/// The same of its Ethernet side; durations are microseconds, and here most of the time.
const ETHERNET: [(&str, u64); 22] = [
    ("rx_packets", 1_000_000),
    ("tx_packets", 1_000_000),
    ("rx_bytes", 4_000_000_000),
    ("tx_bytes", 4_000_000_000),
    ("rx_crc_errors_phy", 50),
    ("rx_symbol_err_phy", 50),
    ("rx_discards_phy", 50),
    ("tx_discards_phy", 50),
    ("rx_pcs_symbol_err_phy", 50),
    ("rx_corrected_bits_phy", 50_000),
    ("link_down_events_phy", 1),
    ("outbound_pci_buffer_overflow", 50),
    ("module_unplug", 1),
    ("rx_global_pause", 5_000),
    ("tx_global_pause", 5_000),
    ("tx_pause_storm_warning_events", 1),
    ("rx_prio3_pause", 50_000),
    ("tx_prio3_pause", 50_000),
    ("rx_prio3_pause_duration", 8_000_000),
    ("tx_prio3_pause_duration", 8_000_000),
    ("rx_prio3_discards", 50),
    ("rx_prio3_bytes", 4_000_000_000),
];

fn drive(infiniband: &TestHca, roce: &TestHca, stop: &AtomicBool) {
    let mut round = 0;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        // A port of InfiniBand that carries something, and takes in errors.
        for (counter, step) in [
            ("symbol_error", 40),
            ("port_xmit_data", 250_000_000),
            ("port_rcv_data", 250_000_000),
            ("port_xmit_packets", 250_000),
            ("port_rcv_packets", 250_000),
            ("port_xmit_wait", 250_000),
            ("port_xmit_discards", 100),
        ] {
            infiniband.counter(1, counter, round * step);
        }
        for (name, step) in HW {
            roce.hw(1, name, round * step);
        }
        for (name, step) in ETHERNET {
            roce.ethtool(1, name, round * step);
        }
        if round == 20 {
            infiniband.set(3, "state", DOWN);
            infiniband.event(PORT_ERROR, 3);
        }
        // So that a look at the host finds something new, and the guest has time for other things.
        std::thread::sleep(Duration::from_millis(500));
    }
}
