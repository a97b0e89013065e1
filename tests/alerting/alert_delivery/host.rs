//! A host in a guest with problems of its own devices, which no sweep of a fabric sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use test_rig::guest::{Guest, GuestExporter, TestHca};

/// The name of its fabric.
pub const FABRIC: &str = "host";

/// The device that is removed.
pub const LEAVING: &str = "ocgone";

/// PortState and event numbers from `<rdma/ib_verbs.h>`.
const DOWN: u32 = 1;
const INIT: u32 = 2;
const ACTIVE: u32 = 4;
const PORT_ACTIVE: u32 = 9;
const PORT_ERROR: u32 = 10;

/// The host, and what increases its counters.
pub struct Host {
    exporter: GuestExporter,
    stop: Arc<AtomicBool>,
    driver: Option<JoinHandle<()>>,
}

impl Host {
    /// Boots the guest and starts the faults: on InfiniBand (port 1 receives errors, 2 has one lane, 3 loses
    /// its link, 4 waits for a subnet manager; another port flaps, four more lose their links, and a device is removed)
    /// and on RoCE, also of a member of a bond.
    pub fn start() -> Self {
        let infiniband = Guest::get().testhca("ocib", 4, false);
        let flapping = Guest::get().testhca("ocflap", 1, false);
        let lost = Guest::get().testhca("oclost", 4, false);
        let roce = Guest::get().testhca("oceth", 1, true);
        let leaving = Guest::get().testhca(LEAVING, 1, false);
        infiniband.set(2, "width", 1);
        infiniband.set(4, "state", INIT);
        Guest::get().must(&format!("ip link set {} mtu 2044", infiniband.netdev(1)));
        // Soft RoCE on a bond of two, one of which loses its link.
        Guest::get().must(
            "# Those of a stage that was too fast for this machine.
            rdma link del ocbond 2>/dev/null
            for link in ocbond0 ocmem1 ocmem2; do ip link del $link 2>/dev/null; done
            set -e
            ip link add ocbond0 type bond mode active-backup miimon 100
            for member in 1 2; do
                ip link add ocmem$member type veth peer name ocpeer$member
                ip link set ocpeer$member up; ip link set ocmem$member master ocbond0
            done
            ip link set ocbond0 up
            rdma link add ocbond type rxe netdev ocbond0
            until [ $(cat /sys/class/net/ocmem1/carrier) = 1 ]; do sleep 0.1; done
            ip link set ocpeer1 down",
        );
        let name = format!("--fabric.name={FABRIC}");
        let exporter = GuestExporter::start(&[
            "--no-collector.fabric",
            "--host.interval=1s",
            "--host.device-include=oc(ib|eth|flap|lost|gone|bond)",
            &name,
        ]);
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let driver = std::thread::spawn(move || {
            drive([&infiniband, &flapping, &lost, &roce], leaving, &told);
        });
        Self { exporter, stop, driver: Some(driver) }
    }

    /// The address of its exporter.
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

/// InfiniBand counters that increase on a port with errors, and by how much each time.
const INFINIBAND: [(&str, u64); 7] = [
    ("symbol_error", 40),
    ("port_xmit_data", 250_000_000),
    ("port_rcv_data", 250_000_000),
    ("port_xmit_packets", 250_000),
    ("port_rcv_packets", 250_000),
    ("port_xmit_wait", 250_000),
    ("port_xmit_discards", 100),
];

/// RoCE counters that increase, and by how much each time.
const HW: [(&str, u64); 12] = [
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
    ("req_cqe_error", 5),
    ("req_transport_retries_exceeded", 5),
];

/// The same for the Ethernet side; durations are microseconds of the faster clock.
const ETHERNET: [(&str, u64); 26] = [
    ("rx_packets", 1_000_000),
    ("tx_packets", 1_000_000),
    ("rx_bytes", 4_000_000_000),
    ("tx_bytes", 4_000_000_000),
    ("rx_bits_phy", 32_000_000_000),
    ("rx_bytes_phy", 4_000_000_000),
    ("tx_bytes_phy", 4_000_000_000),
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
    ("rx_prio3_pause_duration", 80_000_000),
    ("tx_prio3_pause_duration", 80_000_000),
    ("rx_prio3_pause_transition", 50_000),
    ("rx_prio3_discards", 50),
    ("rx_prio3_bytes", 4_000_000_000),
];

fn drive([infiniband, flapping, lost, roce]: [&TestHca; 4], leaving: TestHca, stop: &AtomicBool) {
    let mut leaving = Some(leaving);
    let told = |kind: &str, steps: &[(&str, u64)], round: u64| -> Vec<String> {
        steps.iter().map(|(name, step)| format!("{kind} {name} {}", round * step)).collect()
    };
    for round in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        infiniband.set_all(1, &told("counter", &INFINIBAND, round));
        roce.set_all(1, &[told("hw", &HW, round), told("ethtool", &ETHERNET, round)].concat());
        if round == 5 {
            lose(infiniband, 3);
            for port in 1..=4 {
                lose(lost, port);
            }
            // As if its driver were unloaded.
            drop(leaving.take());
        }
        // Down and up, every other round.
        if round % 2 == 0 {
            lose(flapping, 1);
        } else {
            flapping.set(1, "state", ACTIVE);
            flapping.event(PORT_ACTIVE, 1);
        }
        // Each read of the host finds new values, and the guest has time for other work.
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn lose(device: &TestHca, port: u32) {
    device.set(port, "state", DOWN);
    device.event(PORT_ERROR, port);
}
