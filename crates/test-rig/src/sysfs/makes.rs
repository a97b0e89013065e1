//! The device models: the files that their drivers create.

use super::device::{Content, Device, Netdev};

/// The kernel's files of PortCounters, since 2.6.12.
const CLASSIC: &[&str] = &[
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "port_rcv_constraint_errors",
    "port_rcv_data",
    "port_rcv_errors",
    "port_rcv_packets",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "port_xmit_packets",
    "symbol_error",
];

/// The files since Linux 4.5, where the device has PortCountersExtended.
const EXTENDED: &[&str] = &[
    "multicast_rcv_packets",
    "multicast_xmit_packets",
    "port_xmit_wait",
    "unicast_rcv_packets",
    "unicast_xmit_packets",
];

/// The files of mlx4 before that, in `counters_ext`.
const EXT: &[&str] = &[
    "port_multicast_rcv_packets",
    "port_multicast_xmit_packets",
    "port_rcv_data_64",
    "port_rcv_packets_64",
    "port_unicast_rcv_packets",
    "port_unicast_xmit_packets",
    "port_xmit_data_64",
    "port_xmit_packets_64",
];

/// The counters of mlx5's queues (kernel: drivers/infiniband/hw/mlx5/counters.c).
const MLX5: &[&str] = &[
    "duplicate_request",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "req_cqe_error",
    "req_cqe_flush_error",
    "req_remote_access_errors",
    "req_remote_invalid_request",
    "resp_cqe_error",
    "resp_cqe_flush_error",
    "resp_local_length_error",
    "resp_remote_access_errors",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rx_atomic_requests",
    "rx_dct_connect",
    "rx_icrc_encapsulated",
    "rx_read_requests",
    "rx_write_requests",
];

/// The additional ones of its Ethernet ports, for congestion.
const MLX5_ROCE: &[&str] =
    &["np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored"];

const ACTIVE: (&str, &str) = ("4: ACTIVE", "5: LinkUp");

impl Device {
    /// The files of every device.
    fn new(name: &str, node_type: &str, description: &str, firmware: &str) -> Self {
        Device::bare(name)
            .guid(0)
            .file("node_type", node_type)
            .file("node_desc", description)
            .file("fw_ver", firmware)
    }

    /// The model of the hardware, for devices that have hardware.
    pub(super) fn hardware(self, revision: &str, board: &str, kind: &str) -> Self {
        self.file("hw_rev", revision).file("board_id", board).file("hca_type", kind)
    }

    /// The counters of a port, as since Linux 4.5.
    pub(super) fn counters(self, port: u8) -> Self {
        let directory = format!("ports/{port}/counters");
        self.counts(&directory, CLASSIC).counts(&directory, EXTENDED)
    }

    fn lifespan(self, directory: &str) -> Self {
        self.file(&format!("{directory}/lifespan"), "10")
    }

    pub(super) fn mlx5(name: &str, rate: &str, layer: &str) -> Self {
        Device::new(name, "1: CA", &format!("node-1 {name}"), "28.39.1002")
            .hardware("0", "MT_0000000838", "MT4129")
            .port(1, ACTIVE.0, ACTIVE.1, rate, layer)
            .counters(1)
            .counts("ports/1/hw_counters", MLX5)
            .lifespan("ports/1/hw_counters")
    }

    /// ConnectX-7 on InfiniBand NDR, with IPoIB.
    pub fn mlx5_ndr(name: &str, index: u16) -> Self {
        Device::mlx5(name, "400 Gb/sec (4X NDR)", "InfiniBand")
            .on(&format!("0000:{:02x}:00.0", 0x10 + index), "mlx5_core")
            .guid(0xa088_c203_0040_0000 + u64::from(index))
            .lid(1, 0x100 + index, 1)
            .netdev(Netdev::ipoib(&format!("ib{index}")))
    }

    /// ConnectX-8 on InfiniBand XDR.
    pub fn mlx5_xdr(name: &str) -> Self {
        Device::mlx5(name, "800 Gb/sec (4X XDR)", "InfiniBand")
            .on("0000:d0:00.0", "mlx5_core")
            .hardware("0", "NVD0000000054", "MT4131")
            .guid(0xe09d_7303_0012_3456)
            .lid(1, 0x2ff, 1)
    }

    /// ConnectX-6 Dx with both ports in a bond.
    pub fn mlx5_bond(name: &str, index: u16) -> Self {
        let address = format!("0000:{:02x}:00.0", 0x10 + index);
        Device::mlx5(name, "100 Gb/sec (2X HDR)", "Ethernet")
            .on(&address, "mlx5_core")
            .hardware("0", "MT_0000000359", "MT4125")
            .guid(0x0c42_a103_00b7_0000 + u64::from(index))
            .counts("ports/1/hw_counters", MLX5_ROCE)
            .gid_on(1, "bond0")
            .netdev(Netdev::ethernet("ens1f0np0").file("phys_port_name", "p0"))
            .netdev(Netdev::ethernet("ens1f1np1").file("phys_port_name", "p1"))
    }

    /// A virtual function without a GUID.
    pub fn mlx5_vf(name: &str, index: u16) -> Self {
        Device::mlx5(name, "200 Gb/sec (4X HDR)", "InfiniBand")
            .on(&format!("0000:c1:00.{index}"), "mlx5_core")
            .hardware("0", "MT_0000000223", "MT4124")
    }

    /// ConnectX-3 on an old kernel: its 64-bit counters apart, and the 32-bit ones saturated.
    pub fn mlx4(name: &str) -> Self {
        let mut device = Device::new(name, "1: CA", "node-1 HCA-1", "2.42.5000")
            .on("0000:04:00.0", "mlx4_core")
            .hardware("1", "MT_1090120019", "MT4099")
            .guid(0x0002_c903_0003_9400);
        for (port, rate) in [(1, "56 Gb/sec (4X FDR)"), (2, "40 Gb/sec (4X FDR10)")] {
            let counters = format!("ports/{port}/counters");
            device = device
                .port(port, ACTIVE.0, ACTIVE.1, rate, "InfiniBand")
                .lid(port, 0x10 + u16::from(port), 4)
                .counts(&counters, CLASSIC)
                .counts(&format!("ports/{port}/counters_ext"), EXT)
                .file(&format!("{counters}/port_xmit_wait"), "4294967295")
                .file(&format!("{counters}/port_xmit_data"), "4294967295")
                .file(&format!("{counters}/port_rcv_data"), "4294967295")
                .netdev(
                    Netdev::ipoib(&format!("ib{}", 20 + port))
                        .file("dev_port", &format!("{}", port - 1))
                        .file("dev_id", &format!("{:#x}", port - 1))
                        .file("mode", "connected")
                        .file("mtu", "65520"),
                );
        }
        device
    }

    /// InfiniHost III, on a kernel from before link layers and hw_counters; one port has no cable.
    pub fn mthca(name: &str) -> Self {
        Device::new(name, "1: CA", "InfiniHost III Ex", "5.3.0")
            .on("0000:05:00.0", "ib_mthca")
            .hardware("a0", "MT_0150000001", "MT25218")
            .guid(0x0002_c902_0020_1234)
            .port(1, ACTIVE.0, ACTIVE.1, "20 Gb/sec (4X DDR)", "")
            .lid(1, 0x21, 1)
            .counts("ports/1/counters", CLASSIC)
            .port(2, "1: DOWN", "2: Polling", "10 Gb/sec (4X)", "")
            .counts("ports/2/counters", CLASSIC)
    }

    /// Omni-Path: many counters, for the device too, some with the width in their name. Its LIDs
    /// may be wider than InfiniBand's.
    pub fn hfi1(name: &str) -> Self {
        Device::new(name, "1: CA", "node-1 hfi1_0", "1.27.0")
            .on("0000:af:00.0", "hfi1")
            .hardware("11", "Cornelis Omni-Path Host Fabric Interface Adapter 100 Series", "HFI1")
            .without("hca_type")
            .guid(0x0011_7501_0109_1234)
            .port(1, ACTIVE.0, ACTIVE.1, "100 Gb/sec (4X EDR)", "InfiniBand")
            .file("ports/1/lid", "0x10005")
            .file("ports/1/sm_lid", "0x1")
            .counters(1)
            .counts(
                "ports/1/hw_counters",
                &["TxPkt", "TxWords", "RxPktVL0", "SwLinkUp,32", "LinkDown,32"],
            )
            .lifespan("ports/1/hw_counters")
            .counts("hw_counters", &["RcvOverflow", "SDMAIdInt1,32", "SDMAIdInt2,32"])
            .lifespan("hw_counters")
            .netdev(Netdev::ipoib("ib30"))
    }

    /// Intel E810 with RoCE: no `counters` at all.
    pub fn irdma(name: &str) -> Self {
        Device::new(name, "1: CA", "irdma", "1.72")
            .on("0000:31:00.0", "ice")
            .hardware("2", "Intel(R) Ethernet", "IRDMA")
            .without("board_id")
            .guid(0x6a05_caff_fe12_3456)
            .port(1, ACTIVE.0, ACTIVE.1, "100 Gb/sec (4X EDR)", "Ethernet")
            .counts(
                "ports/1/hw_counters",
                &[
                    "cnpHandled",
                    "cnpIgnored",
                    "cnpSent",
                    "ip4InOctets",
                    "iwInRdmaReads",
                    "rxVlanErrors",
                ],
            )
            .lifespan("ports/1/hw_counters")
            .gid_on(1, "ens3f0")
            .netdev(Netdev::ethernet("ens3f0").file("mtu", "9000"))
    }

    /// The next generation, whose driver has names in words.
    pub fn irdma_gen3(name: &str) -> Self {
        Device::irdma(name)
            .on("0000:32:00.0", "idpf")
            .guid(0x6a05_caff_fe12_3457)
            .gid_on(1, "ens4f0")
            .named_anew("ens3f0", "ens4f0")
            .without("ports/1/hw_counters")
            .counts(
                "ports/1/hw_counters",
                &["Rcvd Out of order packets", "Rcvd ECN mark", "cnpSent"],
            )
            .lifespan("ports/1/hw_counters")
    }

    /// Amazon's adapter, which is neither InfiniBand nor Ethernet.
    pub fn efa(name: &str) -> Self {
        Device::new(name, "7: unspecified", "", "0.0.0.0")
            .on("0000:00:1e.0", "efa")
            .guid(0x0f4b_9dff_fe01_2345)
            .port(1, ACTIVE.0, ACTIVE.1, "100 Gb/sec (4X EDR)", "Unspecified")
            .counts(
                "ports/1/hw_counters",
                &[
                    "rdma_read_bytes",
                    "retrans_bytes",
                    "retrans_timeout_events",
                    "rx_bytes",
                    "rx_drops",
                    "tx_bytes",
                ],
            )
            .lifespan("ports/1/hw_counters")
            .counts("hw_counters", &["completed_cmds", "keep_alive_rcvd"])
            .lifespan("hw_counters")
    }

    /// Broadcom's: its counter of received data cannot be read, and is elsewhere.
    pub fn bnxt_re(name: &str) -> Self {
        Device::new(name, "1: CA", name, "229.2.48.0")
            .on("0000:61:00.0", "bnxt_en")
            .hardware("0x1750", "bnxt_re", "bnxt_re")
            .without("board_id")
            .guid(0xbe97_e1ff_fe12_3456)
            .port(1, ACTIVE.0, ACTIVE.1, "200 Gb/sec (4X HDR)", "Ethernet")
            .counters(1)
            .has("ports/1/counters/port_rcv_data", Content::Refuses)
            .counts(
                "ports/1/hw_counters",
                &["recoverable_errors", "rx_bytes", "rx_pkts", "tx_bytes"],
            )
            .lifespan("ports/1/hw_counters")
            .gid_on(1, "enp97s0np0")
            .netdev(Netdev::ethernet("enp97s0np0").file("phys_port_name", "p0"))
    }

    /// Intel X722 with iWARP, on a kernel that writes a sentence in place of each counter.
    pub fn i40iw(name: &str) -> Self {
        let device = Device::new(name, "4: RNIC", "", "0.2")
            .on("0000:3d:00.0", "i40e")
            .hardware("0", "I40IW Board ID", "I40IW")
            .guid(0xa4bf_01ff_fe12_3456)
            .port(1, ACTIVE.0, ACTIVE.1, "40 Gb/sec (4X QDR)", "Ethernet");
        CLASSIC.iter().fold(device, |device, name| {
            device.file(&format!("ports/1/counters/{name}"), "N/A (no PMA)")
        })
    }

    /// Soft RoCE on an interface.
    pub fn rxe(name: &str, netdev: &str) -> Self {
        Device::new(name, "1: CA", "rxe", "")
            .guid(0x5054_00ff_fe00_00a0)
            .file("parent", netdev)
            .port(1, ACTIVE.0, ACTIVE.1, "2.5 Gb/sec (1X)", "Ethernet")
            .counts(
                "ports/1/hw_counters",
                &[
                    "completer_retry_err",
                    "duplicate_request",
                    "link_downed",
                    "rcvd_pkts",
                    "sent_pkts",
                ],
            )
            .lifespan("ports/1/hw_counters")
            .gid_on(1, netdev)
            .netdev(Netdev::ethernet(netdev))
    }

    /// Soft iWARP: no counters at all.
    pub fn siw(name: &str) -> Self {
        Device::new(name, "4: RNIC", "Software iWARP stack", "")
            .guid(0x0200_00ff_fe00_0001)
            .port(1, ACTIVE.0, ACTIVE.1, "2.5 Gb/sec (1X)", "Ethernet")
            .without("ports/1/pkeys")
    }
}
