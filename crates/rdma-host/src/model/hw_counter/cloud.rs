//! The virtual devices of three clouds: efa (efa/efa_verbs.c), erdma (erdma/erdma_verbs.c) and mana
//! (mana/counters.c, which came after 6.12).

super::rows! {
    Counter "rx_drops" ("efa") "Packets received and dropped.";
    Counter "send_bytes" ("efa") "Bytes of send operations.";
    Counter "send_wrs" ("efa") "Send operations.";
    Counter "recv_bytes" ("efa") "Bytes of receive operations.";
    Counter "recv_wrs" ("efa") "Receive operations.";
    Counter "rdma_read_wrs" ("efa") "RDMA read operations completed.";
    Counter "rdma_read_bytes" ("efa") "Bytes that RDMA read operations brought.";
    Counter "rdma_read_wr_err" ("efa") "RDMA read operations that failed, here or at the peer.";
    Counter "rdma_read_resp_bytes" ("efa") "Bytes sent in answer to the peers' RDMA reads.";
    Counter "rdma_write_wrs" ("efa") "RDMA write operations completed.";
    Counter "rdma_write_bytes" ("efa") "Bytes that RDMA write operations sent.";
    Counter "rdma_write_wr_err" ("efa") "RDMA write operations that failed, here or at the peer.";
    Counter "rdma_write_recv_bytes" ("efa") "Bytes that the peers' RDMA writes brought.";
    // Nitro v4 and later, and a kernel after 6.12.
    Counter "retrans_bytes" ("efa") "Bytes that SRD sent again.";
    Counter "retrans_packets" = ["retrans_pkts"] ("efa") "Packets that SRD sent again.";
    Counter "retrans_timeout_events" ("efa")
        "Times that SRD traffic timed out and took another way through the network.";
    Counter "impaired_remote_conn_events" ("efa")
        "Times that an SRD connection became impaired and had its rate limited.";
    Counter "unresponsive_remote_events" ("efa")
        "Times that an SRD connection's peer did not respond.";
    Counter "submitted_cmds" ("efa") "Commands given to the device.";
    Counter "completed_cmds" ("efa") "Commands that the device completed.";
    Counter "cmds_err" ("efa") "Commands that failed.";
    Counter "no_completion_cmds" ("efa") "Commands that the device never completed.";
    Counter "keep_alive_rcvd" ("efa") "Signs of life that the device gave.";
    Counter "alloc_pd_err" ("efa") "Protection domains that could not be made.";
    Counter "create_qp_err" ("efa") "Queue pairs that could not be made.";
    Counter "create_cq_err" ("efa") "Completion queues that could not be made.";
    Counter "reg_mr_err" ("efa") "Memory regions that could not be registered.";
    Counter "alloc_ucontext_err" ("efa") "Programs that could not open the device.";
    Counter "create_ah_err" ("efa") "Address handles that could not be made.";
    Counter "mmap_err" ("efa") "Mappings of the device's memory that failed.";

    Counter "tx_reqs_count" = ["tx_reqs_cnt"] ("erdma") "Requests sent.";
    Counter "tx_disable_drop_count" = ["tx_disable_drop_cnt"] ("erdma")
        "Packets not sent because sending was disabled.";
    Counter "tx_bps_limit_drop_count" = ["tx_bps_limit_drop_cnt"] ("erdma")
        "Packets not sent because of the limit of bits a second.";
    Counter "tx_pps_limit_drop_count" = ["tx_pps_limit_drop_cnt"] ("erdma")
        "Packets not sent because of the limit of packets a second.";
    Counter "rx_disable_drop_count" = ["rx_disable_drop_cnt"] ("erdma")
        "Packets received and dropped because receiving was disabled.";
    Counter "rx_bps_limit_drop_count" = ["rx_bps_limit_drop_cnt"] ("erdma")
        "Packets received and dropped because of the limit of bits a second.";
    Counter "rx_pps_limit_drop_count" = ["rx_pps_limit_drop_cnt"] ("erdma")
        "Packets received and dropped because of the limit of packets a second.";

    Counter "requester_timeout" ("mana")
        "Times that a sender's acknowledgement timer ran out.";
    Counter "requester_oos_nak" ("mana")
        "NAKs received for a sequence error: the peer missed packets.";
    Counter "requester_rnr_nak" ("mana")
        "Receiver-not-ready NAKs received: the peer had no buffer posted.";
    Counter "responder_rnr_nak" ("mana")
        "Receiver-not-ready NAKs sent: no receive buffer was posted.";
    Counter "responder_oos" ("mana") "Requests received out of sequence.";
    Counter "responder_dup_request" ("mana") "Requests received that had been received before.";
    Counter "requester_implicit_nak" ("mana")
        "Responses that the requester found missing because a later one arrived.";
    Counter "requester_readresp_psn_mismatch" ("mana")
        "RDMA read responses received with an unexpected sequence number.";
    Counter "nak_inv_req" ("mana") "NAKs for an invalid request.";
    Counter "nak_access_error" ("mana") "NAKs for memory that the request may not touch.";
    Counter "nak_opp_error" ("mana") "NAKs for an operation that could not be carried out.";
    Counter "nak_inv_read" ("mana") "NAKs for an invalid read.";
    Counter "responder_local_len_error" ("mana") "Local length errors of the responder.";
    Counter "requestor_local_prot_error" ("mana") "Local protection errors of the requester.";
    Counter "responder_rem_access_error" ("mana")
        "Requests received and refused because they may not touch this memory.";
    Counter "responder_local_qp_error" ("mana") "Local queue pair errors of the responder.";
    Counter "responder_malformed_wqe" ("mana") "Receive work requests that were malformed.";
    Counter "general_hw_error" ("mana") "Hardware errors of no particular kind.";
    Counter "requester_rnr_nak_retries_exceeded" ("mana")
        "Requests given up because the peer had no receive buffer at any of the retries.";
    Counter "requester_retries_exceeded" ("mana")
        "Requests given up because the peer did not answer any of the retries.";
    Counter "total_fatal_error" ("mana") "Errors that ended a connection, of all kinds.";
    // The device's own, beside received_cnps of the port.
    Counter "received_cnp_count" ("mana")
        "Congestion notification packets received by the whole device.";
    Counter "received_ecns" ("mana")
        "Packets received that were marked as having met congestion, by the whole device.";
    // The driver says no more than the names: whether these two go down again is not known.
    Counter "num_qps_congested" ("mana") "Times that a queue pair was slowed down by congestion.";
    Counter "num_qps_recovered" ("mana")
        "Times that a queue pair was back at its full rate after congestion.";
    Counter "qp_congested_events" ("mana")
        "Times that a queue pair of the whole device was slowed down by congestion.";
    Counter "qp_recovered_events" ("mana")
        "Times that a queue pair of the whole device was back at its full rate.";
    Counter "rate_inc_events" ("mana") "Times that a rate was raised again after congestion.";
    Gauge "current_rate" ("mana")
        "Rate at which congestion control lets the function send, in the device's own unit.";
    Counter "dup_rx_requests" ("mana") "Requests received twice.";
}
