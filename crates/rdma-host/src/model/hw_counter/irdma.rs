//! irdma (E810, X722, and IPU with generation 3) and i40iw before it, from irdma/verbs.c
//! (irdma_hw_stat_names, irdma_hw_stat_descs). Generation 3's names came after 6.12, and
//! with them the names of all generations lost the prefixes iw and tcp.

super::rows! {
    Counter "ip4_in_discards" = ["ip4InDiscards"] ("irdma, i40iw")
        "IPv4 packets received and discarded.";
    Counter "ip4_in_truncated_packets" = ["ip4InTruncatedPkts"] ("irdma, i40iw")
        "IPv4 packets received that were cut short.";
    Counter "ip4_out_no_routes" = ["ip4OutNoRoutes"] ("irdma, i40iw")
        "IPv4 packets not sent because there was no route.";
    Counter "ip6_in_discards" = ["ip6InDiscards"] ("irdma, i40iw")
        "IPv6 packets received and discarded.";
    Counter "ip6_in_truncated_packets" = ["ip6InTruncatedPkts"] ("irdma, i40iw")
        "IPv6 packets received that were cut short.";
    Counter "ip6_out_no_routes" = ["ip6OutNoRoutes"] ("irdma, i40iw")
        "IPv6 packets not sent because there was no route.";
    Counter "rx_vlan_errors" = ["rxVlanErrors"] ("irdma, i40iw")
        "Packets received with a wrong VLAN.";
    Counter "ip4_in_bytes" = ["ip4InOctets"] ("irdma, i40iw") "Bytes received in IPv4 packets.";
    Counter "ip4_in_packets" = ["ip4InPkts"] ("irdma, i40iw") "IPv4 packets received.";
    Counter "ip4_in_reasm_rqd" = ["ip4InReasmRqd"] ("irdma, i40iw")
        "IPv4 fragments received, which had to be put together.";
    Counter "ip4_in_mcast_bytes" = ["ip4InMcastOctets"] ("irdma")
        "Bytes received in IPv4 multicast packets.";
    Counter "ip4_in_mcast_packets" = ["ip4InMcastPkts"] ("irdma, i40iw")
        "IPv4 multicast packets received.";
    Counter "ip4_out_bytes" = ["ip4OutOctets"] ("irdma, i40iw") "Bytes sent in IPv4 packets.";
    Counter "ip4_out_packets" = ["ip4OutPkts"] ("irdma, i40iw") "IPv4 packets sent.";
    Counter "ip4_out_seg_rqd" = ["ip4OutSegRqd"] ("irdma, i40iw")
        "IPv4 fragments sent, of packets that were too long.";
    Counter "ip4_out_mcast_bytes" = ["ip4OutMcastOctets"] ("irdma")
        "Bytes sent in IPv4 multicast packets.";
    Counter "ip4_out_mcast_packets" = ["ip4OutMcastPkts"] ("irdma, i40iw")
        "IPv4 multicast packets sent.";
    Counter "ip6_in_bytes" = ["ip6InOctets"] ("irdma, i40iw") "Bytes received in IPv6 packets.";
    Counter "ip6_in_packets" = ["ip6InPkts"] ("irdma, i40iw") "IPv6 packets received.";
    Counter "ip6_in_reasm_rqd" = ["ip6InReasmRqd"] ("irdma, i40iw")
        "IPv6 fragments received, which had to be put together.";
    Counter "ip6_in_mcast_bytes" = ["ip6InMcastOctets"] ("irdma")
        "Bytes received in IPv6 multicast packets.";
    Counter "ip6_in_mcast_packets" = ["ip6InMcastPkts"] ("irdma, i40iw")
        "IPv6 multicast packets received.";
    Counter "ip6_out_bytes" = ["ip6OutOctets"] ("irdma, i40iw") "Bytes sent in IPv6 packets.";
    Counter "ip6_out_packets" = ["ip6OutPkts"] ("irdma, i40iw") "IPv6 packets sent.";
    Counter "ip6_out_seg_rqd" = ["ip6OutSegRqd"] ("irdma, i40iw")
        "IPv6 fragments sent, of packets that were too long.";
    Counter "ip6_out_mcast_bytes" = ["ip6OutMcastOctets"] ("irdma")
        "Bytes sent in IPv6 multicast packets.";
    Counter "ip6_out_mcast_packets" = ["ip6OutMcastPkts"] ("irdma, i40iw")
        "IPv6 multicast packets sent.";
    // The transport is TCP with iWARP and UDP with RoCE; the hardware counts both here.
    Counter "retrans_segs" = ["RetransSegs", "tcpRetransSegs"] ("irdma, i40iw")
        "Segments of the transport that were sent again.";
    Counter "in_opt_errors" = ["InOptErrors", "tcpInOptErrors"] ("irdma, i40iw")
        "Segments received with a TCP option that was wrong or unknown.";
    Counter "in_proto_errors" = ["InProtoErrors", "tcpInProtoErrors"] ("irdma, i40iw")
        "Segments received that broke the transport's protocol.";
    Counter "in_segs" = ["InSegs", "tcpInSegs"] ("irdma, i40iw")
        "Segments of the transport received.";
    Counter "out_segs" = ["OutSegs", "tcpOutSegs"] ("irdma, i40iw")
        "Segments of the transport sent.";
    Counter "in_rdma_reads" = ["InRdmaReads", "iwInRdmaReads"] ("irdma, i40iw")
        "RDMA read messages received.";
    Counter "in_rdma_sends" = ["InRdmaSends", "iwInRdmaSends"] ("irdma, i40iw")
        "RDMA send messages received.";
    Counter "in_rdma_writes" = ["InRdmaWrites", "iwInRdmaWrites"] ("irdma, i40iw")
        "RDMA write messages received.";
    Counter "out_rdma_reads" = ["OutRdmaReads", "iwOutRdmaReads"] ("irdma, i40iw")
        "RDMA read messages sent.";
    Counter "out_rdma_sends" = ["OutRdmaSends", "iwOutRdmaSends"] ("irdma, i40iw")
        "RDMA send messages sent.";
    Counter "out_rdma_writes" = ["OutRdmaWrites", "iwOutRdmaWrites"] ("irdma, i40iw")
        "RDMA write messages sent.";
    Counter "rdma_bnd" = ["RdmaBnd", "iwRdmaBnd"] ("irdma, i40iw") "Memory windows bound.";
    Counter "rdma_inv" = ["RdmaInv", "iwRdmaInv"] ("irdma, i40iw")
        "Memory keys invalidated.";
    Counter "rx_udp" = ["RxUDP"] ("irdma") "UDP packets received.";
    Counter "tx_udp" = ["TxUDP"] ("irdma") "UDP packets sent.";
    Counter "rnr_sent" = ["RNR sent"] ("irdma")
        "Receiver-not-ready NAKs sent: no receive buffer was posted.";
    Counter "rnr_received" = ["RNR received"] ("irdma")
        "Receiver-not-ready NAKs received: the peer had no buffer posted.";
    Counter "ord_limit_count" = ["ord limit count"] ("irdma")
        "Times that a requester had as many reads and atomics under way as it may.";
    Counter "ird_limit_count" = ["ird limit count"] ("irdma")
        "Times that a responder had as many reads and atomics to answer as it may.";
    // Merged as "Rx atomics"; "Rx ATS" in the series as first posted and in Intel's own package.
    Counter "rx_atomics" = ["Rx atomics", "Rx ATS"] ("irdma") "Atomic requests received.";
    Counter "tx_atomics" = ["Tx atomics", "Tx ATS"] ("irdma") "Atomic requests sent.";
    Counter "nak_sequence_error" = ["Nak Sequence Error"] ("irdma")
        "NAKs for a sequence error: the responder missed packets.";
    Counter "nak_sequence_error_implied" = ["Nak Sequence Error Implied"] ("irdma")
        "Responses that the requester found missing because a later one arrived.";
    Counter "rto" = ["RTO"] ("irdma")
        "Times that a sender's retransmission timer ran out.";
    Counter "rcvd_out_of_order_packets" = ["Rcvd Out of order packets"] ("irdma")
        "Packets received out of order.";
    Counter "crc_errors" = ["CRC errors"] ("irdma")
        "Packets received with an invariant CRC that was wrong.";
}
