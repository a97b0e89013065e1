//! The table, in the order in which metrics are told. To add a counter is to add a row, or a
//! driver's string to its row.

use super::{EthernetRow, Index};

/// Rows: the metric, the label that the number fills, `micros` if the driver counts microseconds,
/// the drivers' strings, the help.
macro_rules! table {
    (@micros) => { false };
    (@micros micros) => { true };
    ($($metric:literal $index:ident $($micros:ident)?
       [$($driver:ident $string:literal),+ $(,)?] $help:literal;)+) => {
        /// The table, in the order in which metrics are told.
        pub const TABLE: &[EthernetRow] = &[$(EthernetRow {
            metric: $metric,
            index: Index::$index,
            micros: table!(@micros $($micros)?),
            help: $help,
            strings: &[$((stringify!($driver), $string)),+],
        }),+];
    };
}

table! {
    // Priority flow control. mlx5 shows a priority once PFC is enabled on it.
    "priority_receive_pause_frames" Priority
        [mlx5_core "rx_prio{}_pause", mlx4_en "rx_pause_prio_{}", bnxt_en "rx_pfc_ena_frames_pri{}",
         hns3 "mac_rx_pfc_pri{}_pkt_num"]
        "Pause frames of priority flow control received for the priority.";
    "priority_transmit_pause_frames" Priority
        [mlx5_core "tx_prio{}_pause", mlx4_en "tx_pause_prio_{}", bnxt_en "tx_pfc_ena_frames_pri{}",
         hns3 "mac_tx_pfc_pri{}_pkt_num"]
        "Pause frames of priority flow control sent for the priority.";
    // The Intel drivers count a pause and its end apart.
    "priority_receive_xoff_frames" Priority
        [ice "rx_priority_{}_xoff.nic", i40e "port.rx_priority_{}_xoff_rx"]
        "Pause frames of priority flow control received that stop the priority.";
    "priority_transmit_xoff_frames" Priority
        [ice "tx_priority_{}_xoff.nic", i40e "port.tx_priority_{}_xoff_tx"]
        "Pause frames of priority flow control sent that stop the priority.";
    "priority_receive_xon_frames" Priority
        [ice "rx_priority_{}_xon.nic", i40e "port.rx_priority_{}_xon_rx"]
        "Pause frames of priority flow control received that let the priority go on.";
    "priority_transmit_xon_frames" Priority
        [ice "tx_priority_{}_xon.nic", i40e "port.tx_priority_{}_xon_tx"]
        "Pause frames of priority flow control sent that let the priority go on.";
    // Without mlx4's (pause_duration), whose unit is not in the driver, and hns3's
    // (xoff_time), which counts cycles of a length that the driver does not tell.
    "priority_receive_pause_seconds" Priority micros
        [mlx5_core "rx_prio{}_pause_duration", bnxt_en "pfc_pri{}_rx_duration_us"]
        "Time for which pause frames received kept the port from sending on the priority.";
    "priority_transmit_pause_seconds" Priority micros
        [mlx5_core "tx_prio{}_pause_duration", bnxt_en "pfc_pri{}_tx_duration_us"]
        "Time for which the port kept its peer from sending on the priority.";
    // mlx5 counts from stopped to running, i40e (xon_2_xoff) from running to stopped.
    "priority_receive_pause_transitions" Priority
        [mlx5_core "rx_prio{}_pause_transition", mlx4_en "rx_pause_transition_prio_{}",
         bnxt_en "pfc_pri{}_rx_transitions", i40e "port.rx_priority_{}_xon_2_xoff"]
        "Times that pause frames received stopped the priority; a driver counts either its stops or its starts.";
    "priority_transmit_pause_transitions" Priority
        [mlx4_en "tx_pause_transition_prio_{}", bnxt_en "pfc_pri{}_tx_transitions"]
        "Times that the port stopped its peer on the priority; a driver counts either stops or starts.";
    "receive_pfc_frames" None
        [bnxt_en "rx_pfc_frames", qede "rx_pfc_frames", hns3 "mac_rx_pfc_pkt_num"]
        "Pause frames of priority flow control received, for whatever priority.";
    "transmit_pfc_frames" None
        [bnxt_en "tx_pfc_frames", qede "tx_pfc_frames", hns3 "mac_tx_pfc_pkt_num"]
        "Pause frames of priority flow control sent, for whatever priority.";
    // mana's statistics of the port came after 6.12.
    "class_receive_pause_frames" Class [mana "hc_tc{}_rx_pause_phy"]
        "Pause frames received for the traffic class.";
    "class_transmit_pause_frames" Class [mana "hc_tc{}_tx_pause_phy"]
        "Pause frames sent for the traffic class.";

    // Global pause.
    "receive_pause_frames" None
        [mlx5_core "rx_pause_ctrl_phy", mlx4_en "rx_pause", bnxt_en "rx_pause_frames",
         qede "rx_pause_frames", hns3 "mac_rx_mac_pause_num"]
        "Pause frames of the whole link received.";
    "transmit_pause_frames" None
        [mlx5_core "tx_pause_ctrl_phy", mlx4_en "tx_pause", bnxt_en "tx_pause_frames",
         qede "tx_pause_frames", hns3 "mac_tx_mac_pause_num"]
        "Pause frames of the whole link sent.";
    "receive_xoff_frames" None [ice "link_xoff_rx.nic", i40e "port.link_xoff_rx"]
        "Pause frames received that stop the whole link.";
    "transmit_xoff_frames" None [ice "link_xoff_tx.nic", i40e "port.link_xoff_tx"]
        "Pause frames sent that stop the whole link.";
    "receive_xon_frames" None [ice "link_xon_rx.nic", i40e "port.link_xon_rx"]
        "Pause frames received that let the whole link go on.";
    "transmit_xon_frames" None [ice "link_xon_tx.nic", i40e "port.link_xon_tx"]
        "Pause frames sent that let the whole link go on.";
    "receive_pause_seconds" None micros
        [mlx5_core "rx_global_pause_duration"]
        "Time for which pause frames received kept the port from sending.";
    "transmit_pause_seconds" None micros
        [mlx5_core "tx_global_pause_duration"]
        "Time for which the port kept its peer from sending.";
    "receive_pause_transitions" None
        [mlx5_core "rx_global_pause_transition", mlx4_en "rx_pause_transition"]
        "Times that the port was let go on after pause frames had stopped it.";
    "transmit_pause_transitions" None [mlx4_en "tx_pause_transition"]
        "Times that the port let its peer go on after having stopped it.";
    "transmit_pause_storm_warnings" None [mlx5_core "tx_pause_storm_warning_events"]
        "Times that the port had been sending pause frames for long.";
    "transmit_pause_storm_errors" None [mlx5_core "tx_pause_storm_error_events"]
        "Times that the port gave up sending pause frames after too long, and may have dropped packets.";
    "continuous_pause_events" None [bnxt_en "continuous_pause_events"]
        "Times that traffic was paused without a break for longer than the device's limit.";
    "continuous_roce_pause_events" None [bnxt_en "continuous_roce_pause_events"]
        "Times that RoCE traffic was paused without a break for longer than the device's limit.";

    // What a priority or class carried and lost.
    "priority_receive_bytes" Priority
        [mlx5_core "rx_prio{}_bytes", mlx4_en "rx_prio_{}_bytes", bnxt_en "rx_bytes_pri{}"]
        "Bytes received with the priority.";
    "priority_receive_packets" Priority
        [mlx5_core "rx_prio{}_packets", mlx4_en "rx_prio_{}_packets", bnxt_en "rx_packets_pri{}"]
        "Packets received with the priority.";
    "priority_transmit_bytes" Priority
        [mlx5_core "tx_prio{}_bytes", mlx4_en "tx_prio_{}_bytes", bnxt_en "tx_bytes_pri{}"]
        "Bytes sent with the priority.";
    "priority_transmit_packets" Priority
        [mlx5_core "tx_prio{}_packets", mlx4_en "tx_prio_{}_packets", bnxt_en "tx_packets_pri{}"]
        "Packets sent with the priority.";
    "priority_receive_discards" Priority [mlx5_core "rx_prio{}_discards"]
        "Packets received with the priority and discarded because the port had no buffer.";
    "priority_receive_buffer_discards" Priority [mlx5_core "rx_prio{}_buf_discard"]
        "Packets received with the priority and discarded because the host's share of the buffer was full.";
    "priority_receive_congestion_discards" Priority [mlx5_core "rx_prio{}_cong_discard"]
        "Packets received with the priority and discarded because the host was congested.";
    "priority_receive_ecn_marked_packets" Priority [mlx5_core "rx_prio{}_marked"]
        "Packets received with the priority that the device marked with ECN because the host was congested.";
    "class_receive_bytes" Class [mana "hc_tc{}_rx_byte_phy"]
        "Bytes received in the traffic class.";
    "class_receive_packets" Class [mana "hc_tc{}_rx_pkt_phy"]
        "Packets received in the traffic class.";
    "class_transmit_bytes" Class [mana "hc_tc{}_tx_byte_phy"]
        "Bytes sent in the traffic class.";
    "class_transmit_packets" Class [mana "hc_tc{}_tx_pkt_phy"]
        "Packets sent in the traffic class.";
    "class_receive_discards" Class [bnxt_en "rx_discard_packets_cos{}"]
        "Packets received and discarded in the class of service.";
    "class_receive_discarded_bytes" Class [bnxt_en "rx_discard_bytes_cos{}"]
        "Bytes received and discarded in the class of service.";

    // The link and what it corrects. Bits, blocks and symbols are different things to count.
    "link_down_events" None [mlx5_core "link_down_events_phy", bnxt_en "link_down_events"]
        "Times that the link went down.";
    "link_changes" None [qede "link_change_count"]
        "Times that the link went up or down.";
    "fec_corrected_bits" None [mlx5_core "rx_corrected_bits_phy", bnxt_en "rx_corrected_bits"]
        "Bits received that forward error correction corrected.";
    "fec_corrected_blocks" None [bnxt_en "rx_fec_corrected_blocks"]
        "Blocks received that forward error correction corrected.";
    "fec_uncorrectable_blocks" None [bnxt_en "rx_fec_uncorrectable_blocks"]
        "Blocks received that forward error correction could not correct.";
    "lane_errors" Lane [mlx5_core "rx_err_lane_{}_phy"]
        "Errors received on the lane, before forward error correction.";
    "symbol_errors" None [mlx5_core "rx_pcs_symbol_err_phy", bnxt_en "rx_pcs_symbol_err"]
        "Symbols received wrong that no forward error correction corrected.";
    "symbol_error_packets" None [mlx5_core "rx_symbol_err_phy"]
        "Packets dropped because of symbols received wrong.";
    // Documented for mlx5, but not in its driver as of 6.12.
    "receive_bits" None [mlx5_core "rx_bits_phy", bnxt_en "rx_bits"]
        "Bits that the link had room for; errors as part of them are the bit error rate.";
    "crc_errors" None
        [mlx5_core "rx_crc_errors_phy", bnxt_en "rx_fcs_err_frames", ice "rx_crc_errors.nic",
         i40e "port.rx_crc_errors", qede "rx_crc_errors", hns3 "mac_rx_fcs_err_pkt_num"]
        "Frames received with a wrong checksum.";
    "illegal_bytes" None [ice "illegal_bytes.nic", i40e "port.illegal_bytes"]
        "Bytes received that are no valid symbols, or errors signalled within a frame.";
    "local_faults" None [ice "mac_local_faults.nic", i40e "port.mac_local_faults"]
        "Faults that this end of the link saw.";
    "remote_faults" None [ice "mac_remote_faults.nic", i40e "port.mac_remote_faults"]
        "Faults that the other end of the link reported.";
    "align_errors" None [bnxt_en "rx_align_err_frames", qede "rx_align_errors"]
        "Frames received that did not end at a byte.";
    "oversize_frames" None
        [mlx5_core "rx_oversize_pkts_phy", bnxt_en "rx_ovrsz_frames", ice "rx_oversize.nic",
         i40e "port.rx_oversize", qede "rx_oversize_packets", hns3 "mac_rx_oversize_pkt_num"]
        "Frames received that were too long.";
    "undersize_frames" None
        [mlx5_core "rx_undersize_pkts_phy", bnxt_en "rx_undrsz_frames", ice "rx_undersize.nic",
         i40e "port.rx_undersize", qede "rx_undersize_packets", hns3 "mac_rx_undersize_pkt_num"]
        "Frames received that were too short.";
    "fragment_frames" None
        [mlx5_core "rx_fragments_phy", ice "rx_fragments.nic", i40e "port.rx_fragments",
         qede "rx_fragments", hns3 "mac_rx_fragment_pkt_num"]
        "Frames received that were too short and had a wrong checksum.";
    "jabber_frames" None
        [mlx5_core "rx_jabbers_phy", mlx4_en "rx_jabbers", bnxt_en "rx_jbr_frames",
         ice "rx_jabber.nic", i40e "port.rx_jabber", qede "rx_jabbers",
         hns3 "mac_rx_jabber_pkt_num"]
        "Frames received that were too long and had a wrong checksum.";

    // The port as a whole, RDMA included.
    "receive_bytes" None
        [mlx5_core "rx_bytes_phy", mlx4_en "rx_bytes_phy", bnxt_en "rx_bytes", ice "rx_bytes.nic",
         i40e "port.rx_bytes", hns3 "mac_rx_total_oct_num"]
        "Bytes that the physical port received, RDMA and everything else.";
    "transmit_bytes" None
        [mlx5_core "tx_bytes_phy", mlx4_en "tx_bytes_phy", bnxt_en "tx_bytes", ice "tx_bytes.nic",
         i40e "port.tx_bytes", hns3 "mac_tx_total_oct_num"]
        "Bytes that the physical port sent, RDMA and everything else.";
    "receive_packets" None
        [mlx5_core "rx_packets_phy", mlx4_en "rx_packets_phy", bnxt_en "rx_total_frames",
         hns3 "mac_rx_total_pkt_num"]
        "Packets that the physical port received, RDMA and everything else.";
    "transmit_packets" None
        [mlx5_core "tx_packets_phy", mlx4_en "tx_packets_phy", bnxt_en "tx_total_frames",
         hns3 "mac_tx_total_pkt_num"]
        "Packets that the physical port sent, RDMA and everything else.";
    "rdma_receive_bytes" None [mlx5_core "rx_vport_rdma_unicast_bytes"]
        "Bytes received in unicast RDMA packets.";
    "rdma_receive_packets" None [mlx5_core "rx_vport_rdma_unicast_packets"]
        "Unicast RDMA packets received.";
    "rdma_transmit_bytes" None [mlx5_core "tx_vport_rdma_unicast_bytes"]
        "Bytes sent in unicast RDMA packets.";
    "rdma_transmit_packets" None [mlx5_core "tx_vport_rdma_unicast_packets"]
        "Unicast RDMA packets sent.";

    // What was dropped on the way in or out.
    "receive_discards" None
        [mlx5_core "rx_discards_phy", bnxt_en "rx_stat_discard", ice "rx_dropped.nic",
         i40e "port.rx_discards", qede "brb_discards", mana "hc_rx_pkt_drop_phy"]
        "Packets that the physical port received and discarded, for want of buffers in the first place.";
    "transmit_discards" None
        [mlx5_core "tx_discards_phy", bnxt_en "tx_stat_discard", mana "hc_tx_pkt_drop_phy"]
        "Packets that the physical port discarded instead of sending, though nothing was wrong with them.";
    "transmit_errors" None
        [mlx5_core "tx_errors_phy", bnxt_en "tx_stat_error", ice "tx_errors.nic",
         i40e "port.tx_errors", hns3 "mac_tx_err_all_pkt_num"]
        "Packets that the physical port could not send because of an error.";
    "transmit_link_down_discards" None
        [ice "tx_dropped_link_down.nic", i40e "port.tx_dropped_link_down"]
        "Packets discarded instead of sent because the link was down.";
    "receive_truncated_packets" None [qede "brb_truncates"]
        "Packets received and cut short for want of buffers.";
    "receive_out_of_buffer" None
        [mlx5_core "rx_out_of_buffer", qede "no_buff_discards", mana "hc_rx_discards_no_wqe"]
        "Packets dropped because the network stack's queue had no buffer posted.";
    "receive_steering_discards" None [mlx5_core "rx_steer_missed_packets"]
        "Packets received and discarded because no flow rule matched.";
    "device_out_of_buffer" None [mlx5_core "dev_internal_queue_oob"]
        "Packets dropped because a queue of the device's own had no buffer.";
    "buffer_over_threshold_events" None
        [mlx5_core "rx_buffer_passed_thres_phy", bnxt_en "rx_buffer_passed_threshold"]
        "Times that the port's receive buffer filled up past a threshold, 85 % on mlx5.";
    "receive_ecn_marked_packets" None [mlx5_core "rx_ecn_mark"]
        "Packets received by the network stack, not by RDMA, that were marked with ECN.";

    // The host's side and the module.
    "pci_receive_errors" None [mlx5_core "rx_pci_signal_integrity"]
        "Times that the PCIe link recovered because this end saw errors.";
    "pci_transmit_errors" None [mlx5_core "tx_pci_signal_integrity"]
        "Times that the PCIe link recovered because the other end asked for it.";
    "pci_buffer_overflows" None [mlx5_core "outbound_pci_buffer_overflow"]
        "Packets dropped because PCIe took them more slowly than they came in.";
    "pci_stalled_read_seconds" None [mlx5_core "outbound_pci_stalled_rd_events"]
        "Seconds in more than 30 % of which reads of memory waited for PCIe credits.";
    "pci_stalled_write_seconds" None [mlx5_core "outbound_pci_stalled_wr_events"]
        "Seconds in more than 30 % of which writes to memory waited for PCIe credits.";
    "module_unplug_events" None [mlx5_core "module_unplug"]
        "Times that the cable's module was pulled out.";
    "module_bus_stuck_events" None [mlx5_core "module_bus_stuck"]
        "Times that the bus to the cable's module was stuck.";
    "module_high_temperature_events" None [mlx5_core "module_high_temp"]
        "Times that the cable's module was too hot.";
    "module_shorted_events" None [mlx5_core "module_bad_shorted"]
        "Times that the cable or its module was found shorted.";
}
