//! rxe (rxe/rxe_hw_counters.c), hns (hns/hns_roce_main.c) and cxgb4 (cxgb4/provider.c).

super::rows! {
    // rxe_resp.c, check_psn: once until the requester has come back to the missing packet.
    Counter "out_of_seq_request" ("rxe")
        "Times that a responder missed a packet and sent a NAK for it.";
    Counter "rcvd_rnr_err" ("rxe")
        "Receiver-not-ready NAKs received: the peer had no buffer posted.";
    Counter "send_rnr_err" ("rxe") "Receiver-not-ready NAKs sent: no receive buffer was posted.";
    Counter "rcvd_seq_err" ("rxe") "NAKs received for a sequence error: the peer missed packets.";
    // The name lies: rxe_comp.c, rxe_comp_queue_pkt, counts each packet that it queues for the
    // requester's completer, whether it then has to wait or not.
    Counter "ack_deferred" ("rxe")
        "Acknowledgements and responses received, each of which goes through a queue.";
    Counter "retry_exceeded_err" ("rxe")
        "Requests given up because the peer did not answer any of the retries.";
    Counter "retry_rnr_exceeded_err" ("rxe")
        "Requests given up because the peer had no receive buffer at any of the retries.";
    // rxe_comp.c: for a timeout as for a NAK.
    Counter "completer_retry_err" ("rxe")
        "Times that a requester went back to send again, after a NAK or a timeout.";
    Counter "send_err" ("rxe") "Packets that the network stack did not take.";
    Counter "link_downed" ("rxe") "Times that the network device below went down.";
    Counter "rdma_sends" ("rxe") "Send operations completed.";
    // rxe_resp.c, do_complete: RDMA writes with immediate data complete a receive, too.
    Counter "rdma_recvs" ("rxe") "Receive operations completed without error.";

    // The driver says no more than the names; the last six are the chip's inner workings.
    Counter "rx_rc_packets" = ["rx_rc_pkt"] ("hns") "Packets received of reliable connections.";
    Counter "rx_uc_packets" = ["rx_uc_pkt"] ("hns") "Packets received of unreliable connections.";
    Counter "rx_ud_packets" = ["rx_ud_pkt"] ("hns") "Packets received of unreliable datagrams.";
    Counter "rx_xrc_packets" = ["rx_xrc_pkt"] ("hns")
        "Packets received of extended reliable connections.";
    Counter "rx_err_packets" = ["rx_err_pkt"] ("hns") "Packets received with an error.";
    Counter "tx_rc_packets" = ["tx_rc_pkt"] ("hns") "Packets sent of reliable connections.";
    Counter "tx_uc_packets" = ["tx_uc_pkt"] ("hns") "Packets sent of unreliable connections.";
    Counter "tx_ud_packets" = ["tx_ud_pkt"] ("hns") "Packets sent of unreliable datagrams.";
    Counter "tx_xrc_packets" = ["tx_xrc_pkt"] ("hns")
        "Packets sent of extended reliable connections.";
    Counter "tx_err_packets" = ["tx_err_pkt"] ("hns") "Packets to be sent that had an error.";
    Counter "trp_get_mpt_err_packets" = ["trp_get_mpt_err_pkt"] ("hns")
        "Packets whose memory region's entry could not be read.";
    Counter "trp_get_irrl_err_packets" = ["trp_get_irrl_err_pkt"] ("hns")
        "Packets whose entry in the list of outstanding reads could not be read.";
    Counter "ecn_doorbell" ("hns") "Doorbells rung because of congestion notification.";
    Counter "rx_buffer" ("hns") "The chip's counter rx_buffer, of its receive buffer.";
    Counter "trp_rx_sof" ("hns") "Starts of frames that the transport received.";
    Counter "cq_cqe" ("hns") "Completions written.";
    Counter "cq_poe" ("hns") "Completions pushed to the processor by the chip's order engine.";
    Counter "cq_notify" ("hns") "Notifications of completion queues.";

    Counter "ip4_in_segs" = ["ip4InSegs"] ("cxgb4")
        "TCP segments received over IPv4, by the adapter's offload.";
    Counter "ip4_out_segs" = ["ip4OutSegs"] ("cxgb4")
        "TCP segments sent over IPv4, by the adapter's offload.";
    Counter "ip4_retrans_segs" = ["ip4RetransSegs"] ("cxgb4") "TCP segments sent again over IPv4.";
    Counter "ip4_out_rsts" = ["ip4OutRsts"] ("cxgb4") "TCP resets sent over IPv4.";
    Counter "ip6_in_segs" = ["ip6InSegs"] ("cxgb4")
        "TCP segments received over IPv6, by the adapter's offload.";
    Counter "ip6_out_segs" = ["ip6OutSegs"] ("cxgb4")
        "TCP segments sent over IPv6, by the adapter's offload.";
    Counter "ip6_retrans_segs" = ["ip6RetransSegs"] ("cxgb4") "TCP segments sent again over IPv6.";
    Counter "ip6_out_rsts" = ["ip6OutRsts"] ("cxgb4") "TCP resets sent over IPv6.";
}
