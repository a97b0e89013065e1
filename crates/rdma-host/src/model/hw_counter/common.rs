//! Traffic and congestion that several drivers count alike.

super::rows! {
    // bnxt_re's are the unicast ones of the RoCE function's statistics context
    // (bnxt_re/hw_counters.c, bnxt_re_ib_get_hw_stats).
    Counter "tx_bytes" = ["tx_bytes", "tx_bytes_cnt"] ("efa, bnxt_re, mana, erdma")
        "Bytes that RDMA sent; bnxt_re counts unicast only.";
    Counter "rx_bytes" = ["rx_bytes", "rx_bytes_cnt"] ("efa, bnxt_re, mana, erdma")
        "Bytes that RDMA received; bnxt_re counts unicast only.";
    Counter "tx_packets" = ["tx_packets", "tx_pkts", "tx_pkt", "tx_packets_cnt", "sent_pkts"]
        ("efa, bnxt_re, mana, erdma, hns, rxe")
        "Packets that RDMA sent; bnxt_re counts unicast only.";
    Counter "rx_packets" = ["rx_packets", "rx_pkts", "rx_pkt", "rx_packets_cnt", "rcvd_pkts"]
        ("efa, bnxt_re, mana, erdma, hns, rxe")
        "Packets that RDMA received; bnxt_re counts unicast only.";
    Counter "np_ecn_marked_roce_packets"
        = ["np_ecn_marked_roce_packets", "RxECNMrkd", "rx_ecn_marked_pkts"] ("mlx5, irdma, bnxt_re")
        "RoCE packets received that a switch on the way had marked as having met congestion.";
    // bnxt_re calls it tx_cnp_pkts, after 6.12 np_cnp_pkts; Broadcom's own package, np_cnp_sent.
    Counter "np_cnp_sent"
        = ["np_cnp_sent", "cnpSent", "tx_cnp_pkts", "np_cnp_pkts", "tx_cnp_pkt", "sent_cnps"]
        ("mlx5, irdma, bnxt_re, hns, mana")
        "Congestion notification packets sent, asking a sender to slow down.";
    Counter "rp_cnp_handled" = ["rp_cnp_handled", "cnpHandled"] ("mlx5, irdma, bnxt_re")
        "Congestion notification packets received that slowed a flow down.";
    Counter "rp_cnp_ignored" = ["rp_cnp_ignored", "cnpIgnored"] ("mlx5, irdma, bnxt_re")
        "Congestion notification packets received that were ignored.";
    Counter "rx_cnp_packets" = ["rx_cnp_pkts", "rx_cnp_pkt", "received_cnps"]
        ("bnxt_re, hns, mana")
        "Congestion notification packets received.";
}
