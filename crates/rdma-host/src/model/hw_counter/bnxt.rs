//! bnxt_re (NetXtreme-E), from bnxt_re/hw_counters.c; what it shares with mlx5, by one name or by
//! its older one, stands there. `res` is the responder's side.
//!
//! The counts of objects and of doorbell pacing are in 6.12 and were taken out of `hw_counters` later.

super::rows! {
    Gauge "active_pds" ("bnxt_re") "Protection domains in use.";
    Gauge "active_ahs" ("bnxt_re") "Address handles in use.";
    Gauge "active_qps" ("bnxt_re") "Queue pairs in use.";
    Gauge "active_rc_qps" ("bnxt_re") "Queue pairs in use that are reliable connections.";
    Gauge "active_ud_qps" ("bnxt_re") "Queue pairs in use that send unreliable datagrams.";
    Gauge "active_srqs" ("bnxt_re") "Shared receive queues in use.";
    Gauge "active_cqs" ("bnxt_re") "Completion queues in use.";
    Gauge "active_mrs" ("bnxt_re") "Memory regions in use.";
    Gauge "active_mws" ("bnxt_re") "Memory windows in use.";
    Gauge "watermark_pds" ("bnxt_re") "The most protection domains that were in use at once.";
    Gauge "watermark_ahs" ("bnxt_re") "The most address handles that were in use at once.";
    Gauge "watermark_qps" ("bnxt_re") "The most queue pairs that were in use at once.";
    Gauge "watermark_rc_qps" ("bnxt_re")
        "The most queue pairs of reliable connections that were in use at once.";
    Gauge "watermark_ud_qps" ("bnxt_re")
        "The most queue pairs of unreliable datagrams that were in use at once.";
    Gauge "watermark_srqs" ("bnxt_re") "The most shared receive queues that were in use at once.";
    Gauge "watermark_cqs" ("bnxt_re") "The most completion queues that were in use at once.";
    Gauge "watermark_mrs" ("bnxt_re") "The most memory regions that were in use at once.";
    Gauge "watermark_mws" ("bnxt_re") "The most memory windows that were in use at once.";
    Counter "resize_cq_count" = ["resize_cq_cnt"] ("bnxt_re")
        "Completion queues that were resized.";
    // hw_counters.c reads it from tx_bcast_pkts of the statistics context, where the RoCE firmware
    // seems to keep it.
    Counter "recoverable_errors" ("bnxt_re")
        "Errors that RoCE recovered from; the driver reads it where broadcasts sent are counted.";
    Counter "tx_roce_errors" ("bnxt_re") "RoCE packets to be sent that had an error.";
    Counter "tx_roce_discards" ("bnxt_re") "RoCE packets discarded instead of sent.";
    Counter "rx_roce_errors" ("bnxt_re") "RoCE packets received with an error.";
    Counter "rx_roce_discards" ("bnxt_re") "RoCE packets received and discarded.";
    Counter "max_retry_exceeded" ("bnxt_re")
        "Requests given up because the peer did not acknowledge any of the retries.";
    Counter "unrecoverable_err" ("bnxt_re")
        "Errors that RoCE could not recover from.";
    Counter "bad_resp_err" ("bnxt_re") "Bad responses that the requester received.";
    Counter "local_qp_op_err" ("bnxt_re") "Local errors of queue pair operation of the requester.";
    Counter "local_protection_err" ("bnxt_re") "Local protection errors of the requester.";
    Counter "mem_mgmt_op_err" ("bnxt_re")
        "Memory windows or regions that could not be bound, registered or invalidated.";
    Counter "remote_op_err" ("bnxt_re") "Requests that the peer could not carry out.";
    Counter "res_exceed_max" ("bnxt_re")
        "Requests received that were longer than the largest message.";
    Counter "res_exceeds_wqe" ("bnxt_re")
        "Requests received that were longer than the receive buffer posted.";
    Counter "res_opcode_err" ("bnxt_re")
        "Requests received with an operation that may not follow the one before.";
    Counter "res_rx_invalid_rkey" ("bnxt_re")
        "Requests received that write memory by a key that is not valid.";
    Counter "res_rx_domain_err" ("bnxt_re")
        "Requests received that write memory of another protection domain.";
    Counter "res_rx_no_perm" ("bnxt_re")
        "Requests received that write memory without permission.";
    Counter "res_rx_range_err" ("bnxt_re")
        "Requests received that write past the bounds of the memory.";
    Counter "res_tx_invalid_rkey" ("bnxt_re")
        "Requests received that read memory by a key that is not valid.";
    Counter "res_tx_domain_err" ("bnxt_re")
        "Requests received that read memory of another protection domain.";
    Counter "res_tx_no_perm" ("bnxt_re")
        "Requests received that read memory without permission.";
    Counter "res_tx_range_err" ("bnxt_re")
        "Requests received that read past the bounds of the memory.";
    Counter "res_irrq_oflow" ("bnxt_re")
        "Reads and atomics received beyond those that the responder can hold.";
    Counter "res_unsup_opcode" ("bnxt_re") "Requests received with an unsupported operation.";
    Counter "res_unaligned_atomic" ("bnxt_re") "Atomics received for an unaligned address.";
    Counter "res_rem_inv_err" ("bnxt_re")
        "Requests received to invalidate a key that could not be invalidated.";
    Counter "res_mem_err" ("bnxt_re") "Memory errors of the responder.";
    Counter "res_srq_err" ("bnxt_re") "Errors of the responder with a shared receive queue.";
    Counter "res_cmp_err" ("bnxt_re")
        "Completions that the responder could not deliver because the queue was full or not valid.";
    Counter "res_invalid_dup_rkey" ("bnxt_re")
        "Requests received again whose key is not valid any more.";
    Counter "res_wqe_format_err" ("bnxt_re") "Receive work requests that were malformed.";
    Counter "res_cq_load_err" ("bnxt_re")
        "Completion queues whose context the responder could not load.";
    Counter "res_srq_load_err" ("bnxt_re")
        "Shared receive queues whose context the responder could not load.";
    Counter "res_tx_pci_err" ("bnxt_re") "PCI errors of the responder while it sent.";
    Counter "res_rx_pci_err" ("bnxt_re") "PCI errors of the responder while it received.";
    Counter "tx_atomic_req" ("bnxt_re") "Atomic requests sent.";
    Counter "tx_read_req" ("bnxt_re") "RDMA read requests sent.";
    Counter "tx_read_resp" ("bnxt_re") "RDMA read responses sent.";
    Counter "tx_write_req" ("bnxt_re") "RDMA write requests sent.";
    Counter "tx_send_req" ("bnxt_re") "Send requests sent.";
    Counter "tx_roce_only_packets" = ["tx_roce_only_pkts"] ("bnxt_re") "RoCE packets sent.";
    Counter "tx_roce_only_bytes" ("bnxt_re") "Bytes sent in RoCE packets.";
    Counter "rx_read_resp" ("bnxt_re") "RDMA read responses received.";
    Counter "rx_send_req" = ["rx_send_req", "rx_send_requests"] ("bnxt_re, mana")
        "Send requests received.";
    Counter "rx_roce_only_packets" = ["rx_roce_only_pkts"] ("bnxt_re") "RoCE packets received.";
    Counter "rx_roce_only_bytes" ("bnxt_re") "Bytes received in RoCE packets.";
    Counter "rx_roce_good_packets" = ["rx_roce_good_pkts", "rx_good_pkts"] ("bnxt_re")
        "RoCE packets received without error.";
    Counter "rx_roce_good_bytes" = ["rx_roce_good_bytes", "rx_good_bytes"] ("bnxt_re")
        "Bytes received in RoCE packets without error.";
    Counter "pacing_reschedule" ("bnxt_re")
        "Times that doorbell pacing went on because the doorbell queue was still too full.";
    Counter "pacing_complete" ("bnxt_re") "Times that doorbell pacing came to its end.";
    Counter "pacing_alerts" ("bnxt_re")
        "Times that the doorbell queue filled up and pacing began.";
    // Not a count at all: hw_counters.c reads the register as it stands, its bits the firmware's.
    Gauge "db_fifo_register" ("bnxt_re")
        "Raw register of the doorbell queue's state, which is no count.";
}
