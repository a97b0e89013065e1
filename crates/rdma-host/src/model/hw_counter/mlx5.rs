//! mlx5 (ConnectX-4 and later, Connect-IB): queue, congestion, extended and optional counters, from
//! mlx5/counters.c. bnxt_re took many of these names over after 6.12 (bnxt_re/hw_counters.c).
//!
//! Queue counters are 32 bits wide and wrap.

super::rows! {
    Counter "rx_write_requests" = ["rx_write_requests", "rx_write_req"] ("mlx5, mana, bnxt_re")
        "RDMA write requests received.";
    Counter "rx_read_requests" = ["rx_read_requests", "rx_read_req"] ("mlx5, mana, bnxt_re")
        "RDMA read requests received.";
    Counter "rx_atomic_requests" = ["rx_atomic_requests", "rx_atomic_req"] ("mlx5, bnxt_re")
        "Atomic requests received.";
    Counter "rx_dct_connect" ("mlx5")
        "Connection requests received for dynamically connected transports.";
    Counter "out_of_buffer" = ["out_of_buffer", "rx_out_of_buffer"] ("mlx5, bnxt_re")
        "Packets dropped because the queue pair had no receive buffer posted.";
    // Broadcom's driver gave the drops of its responder (oos_drop_count) this name.
    Counter "out_of_sequence" = ["out_of_sequence", "oos_drop_count"] ("mlx5, bnxt_re")
        "Packets received out of order: others before them were lost or overtaken.";
    Counter "duplicate_request" = ["duplicate_request", "dup_req"] ("mlx5, rxe, bnxt_re")
        "Requests received that had been received before.";
    // The name says error, but a queue pair may retry after it.
    Counter "rnr_nak_retry_err" = ["rnr_nak_retry_err", "rnr_naks_rcvd"] ("mlx5, bnxt_re")
        "Receiver-not-ready NAKs received: the peer had no buffer posted, and the request is tried again.";
    Counter "packet_seq_err" = ["packet_seq_err", "seq_err_naks_rcvd"] ("mlx5, bnxt_re")
        "NAKs received for a sequence error: the peer missed packets, and the sender goes back to them.";
    Counter "implied_nak_seq_err" = ["implied_nak_seq_err", "missing_resp"] ("mlx5, bnxt_re")
        "Responses that the requester found missing because a later one arrived.";
    Counter "local_ack_timeout_err" = ["local_ack_timeout_err", "to_retransmits"] ("mlx5, bnxt_re")
        "Times that a sender's acknowledgement timer ran out, so that it sent again.";
    Counter "resp_local_length_error" = ["resp_local_length_error", "res_length_mismatch"]
        ("mlx5, bnxt_re")
        "Local length errors that the responder found.";
    Counter "resp_cqe_error" ("mlx5, bnxt_re")
        "Work requests of the responder that completed with an error.";
    Counter "req_cqe_error" ("mlx5, bnxt_re")
        "Work requests of the requester that completed with an error.";
    Counter "req_remote_invalid_request"
        = ["req_remote_invalid_request", "remote_invalid_req_err"] ("mlx5, bnxt_re")
        "Requests that the peer refused as invalid.";
    Counter "req_remote_access_errors" = ["req_remote_access_errors", "remote_access_err"]
        ("mlx5, bnxt_re")
        "Requests that the peer refused because they may not touch its memory.";
    Counter "resp_remote_access_errors" ("mlx5, bnxt_re")
        "Requests received and refused because they may not touch this memory.";
    Counter "resp_cqe_flush_error" ("mlx5, bnxt_re")
        "Work requests of the responder that were flushed; a connection that ends normally does this too.";
    Counter "req_cqe_flush_error" ("mlx5, bnxt_re")
        "Work requests of the requester that were flushed; a connection that ends normally does this too.";
    Counter "req_transport_retries_exceeded" ("mlx5")
        "Requests given up because the peer did not answer any of the retries.";
    Counter "req_rnr_retries_exceeded" ("mlx5")
        "Requests given up because the peer had no receive buffer at any of the retries.";
    Counter "roce_adp_retrans" ("mlx5, bnxt_re")
        "Adaptive retransmissions of RoCE traffic.";
    Counter "roce_adp_retrans_to" ("mlx5, bnxt_re")
        "Times that RoCE traffic reached the timeout of adaptive retransmission.";
    Counter "roce_slow_restart" ("mlx5, bnxt_re")
        "Times that RoCE slow restart was used.";
    Counter "roce_slow_restart_cnps" ("mlx5, bnxt_re")
        "Congestion notification packets that RoCE slow restart made.";
    Counter "roce_slow_restart_trans" ("mlx5, bnxt_re")
        "Times that RoCE slow restart changed its state to slow restart.";
    Counter "rx_icrc_encapsulated" ("mlx5, bnxt_re")
        "RoCE packets received with an invariant CRC that was wrong.";
    // Optional counters: each counts from when somebody enables it (`rdma statistic set`).
    Counter "cc_rx_ce_packets" = ["cc_rx_ce_pkts"] ("mlx5")
        "RoCE packets received that were marked as having met congestion; counts while it is enabled.";
    Counter "cc_rx_cnp_packets" = ["cc_rx_cnp_pkts"] ("mlx5")
        "Congestion notification packets received; counts while it is enabled.";
    Counter "cc_tx_cnp_packets" = ["cc_tx_cnp_pkts"] ("mlx5")
        "Congestion notification packets sent; counts while it is enabled.";
    Counter "rdma_tx_packets" ("mlx5")
        "RDMA packets sent; counts while it is enabled.";
    Counter "rdma_tx_bytes" ("mlx5")
        "RDMA bytes sent; counts while it is enabled.";
    Counter "rdma_rx_packets" ("mlx5")
        "RDMA packets received; counts while it is enabled.";
    Counter "rdma_rx_bytes" ("mlx5")
        "RDMA bytes received; counts while it is enabled.";
}

/// What a representor shows of the virtual port that it stands for: the queue counters of all its
/// queue pairs together.
pub(super) mod vport {
    use super::super::{HwRow, Kind};

    macro_rules! vport {
        ($($name:literal)+) => {
            pub(in super::super) const ROWS: &[HwRow] = &[$(HwRow {
                files: &[concat!("vport_", $name)],
                metric: concat!("vport_", $name),
                kind: Kind::Counter,
                scale: 1,
                help: concat!("What ", $name, " counts, of the virtual port that the device represents."),
                drivers: "mlx5",
            }),+];
        };
    }

    vport! {
        "rx_write_requests" "rx_read_requests" "rx_atomic_requests" "rx_dct_connect"
        "out_of_buffer" "out_of_sequence" "duplicate_request" "rnr_nak_retry_err"
        "packet_seq_err" "implied_nak_seq_err" "local_ack_timeout_err"
        "resp_local_length_error" "resp_cqe_error" "req_cqe_error"
        "req_remote_invalid_request" "req_remote_access_errors" "resp_remote_access_errors"
        "resp_cqe_flush_error" "req_cqe_flush_error" "req_transport_retries_exceeded"
        "req_rnr_retries_exceeded" "roce_adp_retrans" "roce_adp_retrans_to"
        "roce_slow_restart" "roce_slow_restart_cnps" "roce_slow_restart_trans"
    }
}
