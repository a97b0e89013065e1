//! hfi1 (Omni-Path), of the device and of the port, from hfi1/chip.c (dev_cntrs, port_cntrs) and
//! hfi1/verbs.c (driver_cntr_names).
//!
//! Left to be told by their own names: what is counted for each virtual lane (DcRxFlitVl0, TxWaitVL15),
//! DMA engine (SDMAIdInt1,32) and receive context (RcvHdrOvr159), and some 250 kinds of internal
//! parity and encoding errors (CceMsixCsrParityErr), which are 0 on a sound chip.

super::rows! {
    Counter "driver_kern_intr" = ["DRIVER_KernIntr"] ("hfi1")
        "Interrupts that the kernel's driver handled.";
    Counter "driver_error_intr" = ["DRIVER_ErrorIntr"] ("hfi1") "Interrupts for errors.";
    Counter "driver_tx_errs" = ["DRIVER_Tx_Errs"] ("hfi1")
        "Errors while sending, as the driver saw them.";
    Counter "driver_rcv_errs" = ["DRIVER_Rcv_Errs"] ("hfi1")
        "Errors while receiving, as the driver saw them.";
    Counter "driver_hw_errs" = ["DRIVER_HW_Errs"] ("hfi1")
        "Hardware errors, as the driver saw them.";
    Counter "driver_no_pio_bufs" = ["DRIVER_NoPIOBufs"] ("hfi1")
        "Times that no buffer for programmed I/O was free.";
    Gauge "driver_ctxts_open" = ["DRIVER_CtxtsOpen"] ("hfi1") "Receive contexts that are open now.";
    Counter "driver_rcv_len_errs" = ["DRIVER_RcvLen_Errs"] ("hfi1")
        "Packets received with a wrong length.";
    Counter "driver_egr_buf_full" = ["DRIVER_EgrBufFull"] ("hfi1")
        "Times that an eager receive buffer was full.";
    Counter "driver_egr_hdr_full" = ["DRIVER_EgrHdrFull"] ("hfi1")
        "Times that a receive header queue was full.";

    Counter "rcv_overflow" = ["RcvOverflow"] ("hfi1")
        "Packets dropped because the receive buffer overflowed.";
    Counter "rx_len_err" = ["RxLenErr"] ("hfi1") "Packets received with a wrong length.";
    Counter "rx_shr_err" = ["RxShrErr"] ("hfi1") "Packets received that were too short.";
    Counter "rx_icrc_err" = ["RxICrcErr"] ("hfi1") "Packets received with a wrong invariant CRC.";
    Counter "rx_ebp_count" = ["RxEbpCnt"] ("hfi1")
        "Packets received that a device upstream had marked as bad.";
    Counter "rx_tid_full_err" = ["RxTIDFullEr"] ("hfi1")
        "Packets received for an expected buffer that was full.";
    Counter "rx_tid_invalid" = ["RxTIDInvalid"] ("hfi1")
        "Packets received for an expected buffer that is not valid.";
    Counter "rx_tid_flgms" = ["RxTidFLGMs"] ("hfi1")
        "Packets received with another flow generation than expected.";
    Counter "rx_tid_flsms" = ["RxTidFLSMs"] ("hfi1")
        "Packets received with another flow sequence than expected.";
    Counter "rx_ctx_egr_stall" = ["RxCtxEgrS"] ("hfi1")
        "Stalls of receive contexts for want of eager buffers.";
    Counter "cce_pci_cr_st" = ["CcePciCrSt"] ("hfi1") "Stalls for want of PCIe posted credits.";
    Counter "cce_pci_tr_st" = ["CcePciTrSt"] ("hfi1") "Stalls of PCIe accesses to the device.";
    Counter "cce_pio_wr_st" = ["CcePioWrSt"] ("hfi1") "Stalls of programmed I/O writes.";
    Counter "cce_err_int" = ["CceErrInt"] ("hfi1") "Interrupts for errors that the chip raised.";
    Counter "cce_sdma_int" = ["CceSdmaInt"] ("hfi1")
        "Interrupts for send DMA that the chip raised.";
    Counter "cce_misc_int" = ["CceMiscInt"] ("hfi1")
        "Miscellaneous interrupts that the chip raised.";
    Counter "cce_rcv_av_int" = ["CceRcvAvInt"] ("hfi1")
        "Interrupts for packets received that the chip raised.";
    Counter "cce_rcv_urg_int" = ["CceRcvUrgInt"] ("hfi1")
        "Interrupts for urgent packets received that the chip raised.";
    Counter "cce_snd_cr_int" = ["CceSndCrInt"] ("hfi1")
        "Interrupts for send credits returned that the chip raised.";

    Counter "dc_unctbl_err" = ["DcUnctblErr"] ("hfi1") "Link errors that could not be corrected.";
    Counter "dc_recv_err" = ["DcRecvErr"] ("hfi1") "Packets received with an error.";
    Counter "dc_fm_cfg_err" = ["DcFmCfgErr"] ("hfi1")
        "Packets that the fabric manager's configuration does not allow.";
    Counter "dc_rmt_phy_err" = ["DcRmtPhyErr"] ("hfi1")
        "Packets received that were marked bad further upstream.";
    Counter "dc_dropped_packets" = ["DcDroppedPkt"] ("hfi1")
        "Packets that the link's logic dropped.";
    Counter "dc_mc_xmit_packets" = ["DcMcXmitPkts"] ("hfi1") "Multicast packets sent.";
    Counter "dc_mc_rcv_packets" = ["DcMcRcvPkts"] ("hfi1") "Multicast packets received.";
    Counter "dc_xmit_corr" = ["DcXmitCorr"] ("hfi1") "Correctable errors while sending.";
    Counter "dc_rcv_corr" = ["DcRcvCorrCnt"] ("hfi1") "Correctable errors while receiving.";
    Counter "dc_rx_fcntl" = ["DcRxFCntl"] ("hfi1") "Flow-control messages received.";
    Counter "dc_xmit_fcntl" = ["DcXmitFCntl"] ("hfi1") "Flow-control messages sent.";
    // A flit is 8 bytes of data, the unit of Omni-Path's PortXmitData (hfi1/mad.c).
    Counter "dc_xmit_bytes" x 8 = ["DcXmitFlits"] ("hfi1")
        "Bytes of data sent (counted in flits of 8 bytes).";
    Counter "dc_rcv_bytes" x 8 = ["DcRcvFlits"] ("hfi1")
        "Bytes of data received (counted in flits of 8 bytes).";
    Counter "dc_xmit_packets" = ["DcXmitPkts"] ("hfi1") "Packets sent on the link.";
    Counter "dc_rcv_packets" = ["DcRcvPkts"] ("hfi1") "Packets received on the link.";
    Counter "dc_rcv_fcn" = ["DcRcvFcn"] ("hfi1")
        "Packets received with the mark of forward congestion (FECN).";
    Counter "dc_rcv_bcn" = ["DcRcvBcn"] ("hfi1")
        "Packets received with the mark of backward congestion (BECN).";
    Counter "dc_rcv_bbl" = ["DcRcvBbl"] ("hfi1")
        "Flit times in which a packet being received paused (bubbles).";
    Counter "dc_mark_fcn" = ["DcMarkFcn"] ("hfi1")
        "Packets that this port marked with forward congestion (FECN).";
    Counter "dc_tot_crc" = ["DcTotCrc"] ("hfi1") "CRC errors of the link, on any lane.";
    Counter "dc_crc_ln0" = ["DcCrcLn0"] ("hfi1") "CRC errors of the link on lane 0.";
    Counter "dc_crc_ln1" = ["DcCrcLn1"] ("hfi1") "CRC errors of the link on lane 1.";
    Counter "dc_crc_ln2" = ["DcCrcLn2"] ("hfi1") "CRC errors of the link on lane 2.";
    Counter "dc_crc_ln3" = ["DcCrcLn3"] ("hfi1") "CRC errors of the link on lane 3.";
    Counter "dc_mult_ln" = ["DcMultLn"] ("hfi1") "CRC errors of the link on several lanes at once.";
    Counter "dc_tx_replay" = ["DcTxReplay"] ("hfi1") "Replays sent: the peer saw a CRC error.";
    Counter "dc_rx_replay" = ["DcRxReplay"] ("hfi1") "Replays received: this end saw a CRC error.";
    Counter "dc_link_seq_crc" = ["DcLinkSeqCrc"] ("hfi1") "CRC errors of the link in sequence.";
    Counter "dc_esc0" = ["DcEsc0"] ("hfi1") "Escape codes received on one lane only.";
    Counter "dc_esc1" = ["DcEsc1"] ("hfi1")
        "Escape codes received on one lane and off on a second.";
    Counter "dc_esc0_plus2" = ["DcEsc0Plus2"] ("hfi1")
        "Escape codes received on one lane and off on two more.";
    Counter "dc_reinit_peer" = ["DcReinitPeer"] ("hfi1")
        "Times that the peer made the link start over.";
    Counter "dc_sbe" = ["DcSbe"] ("hfi1") "Single-bit errors that the link's logic corrected.";
    Counter "dc_misc_flg" = ["DcMiscFlg"] ("hfi1") "Miscellaneous flags of the link's logic.";
    Counter "dc_good_ltp" = ["DcGoodLTP"] ("hfi1") "Link transfer packets received without error.";
    Counter "dc_acc_ltp" = ["DcAccLTP"] ("hfi1") "Link transfer packets received and accepted.";
    Counter "dc_prf_rx_bytes" x 8 = ["DcPrfRxFlit"] ("hfi1")
        "Bytes received as the link's logic counts them (in flits of 8 bytes).";
    Counter "dc_prf_tx_bytes" x 8 = ["DcPrfTxFlit"] ("hfi1")
        "Bytes sent as the link's logic counts them (in flits of 8 bytes).";
    Counter "dc_prf_clk" = ["DcPrfClk"] ("hfi1") "Cycles of the clock of the link's logic.";
    Counter "dc_flt_crdts" = ["DcFltCrdts"] ("hfi1")
        "Flit credits, as the link's debug logic counts them.";
    Counter "dc_pause_comp" = ["DcPauseComp"] ("hfi1") "Pauses of the link that completed.";
    Counter "dc_sts_tx_sbe" = ["DcStsTxSbe"] ("hfi1")
        "Single-bit errors of the send memory, which were corrected.";
    Counter "dc_sts_tx_mbe" = ["DcStsTxMbe"] ("hfi1")
        "Errors of several bits of the send memory, which were not.";

    Counter "intr" = ["Intr"] ("hfi1") "Interrupts that the driver handled, on all processors.";
    Counter "rcv_limit" = ["RcvLimit"] ("hfi1")
        "Times that the receive interrupt left packets to its thread because there were so many.";
    Counter "seq_drop0" = ["SeqDrop0"] ("hfi1")
        "Packets of receive context 0 dropped because of their sequence number.";
    Counter "vtx_wait" = ["vTxWait"] ("hfi1") "Times that a send waited for a request structure.";
    Counter "pio_wait" = ["PioWait"] ("hfi1")
        "Times that a send waited for a buffer for programmed I/O.";
    Counter "pio_drain" = ["PioDrain"] ("hfi1")
        "Times that a send waited until programmed I/O had drained.";
    Counter "kmem_wait" = ["KmemWait"] ("hfi1") "Times that a send waited for memory.";
    Counter "tid_wait" = ["TidWait"] ("hfi1")
        "Times that a request waited for expected-receive entries.";
    Counter "send_sched" = ["SendSched"] ("hfi1") "Times that sending was scheduled.";

    Counter "tx_un_vl_err" = ["TxUnVLErr"] ("hfi1")
        "Packets not sent because their virtual lane is unsupported.";
    Counter "tx_inval_len" = ["TxInvalLen"] ("hfi1") "Packets not sent because of a wrong length.";
    Counter "tx_mm_len_err" = ["TxMMLenErr"] ("hfi1")
        "Packets not sent because they were shorter or longer than may be.";
    Counter "tx_underrun" = ["TxUnderrun"] ("hfi1")
        "Packets that ran out of data while they were sent.";
    Counter "tx_flow_stall" = ["TxFlowStall"] ("hfi1") "Stalls of sending for want of credits.";
    Counter "tx_dropped" = ["TxDropped"] ("hfi1") "Packets dropped instead of sent.";
    Counter "tx_hdr_err" = ["TxHdrErr"] ("hfi1") "Packets not sent because of a wrong header.";
    Counter "tx_data_packets" = ["TxPkt"] ("hfi1") "Data packets sent by the send engine.";
    Counter "tx_data_bytes" x 4 = ["TxWords"] ("hfi1")
        "Bytes sent by the send engine (counted in words of 4 bytes).";
    // Cycles of the send engine, which hfi1/mad.c (convert_xmit_counter) makes times of flits.
    Counter "tx_wait_ticks" = ["TxWait"] ("hfi1")
        "Clock cycles in which the send engine had data and no credit to send them with.";
    Counter "rx_data_packets" = ["RxPkt"] ("hfi1") "Data packets received by the receive engine.";
    Counter "rx_data_bytes" x 4 = ["RxWords"] ("hfi1")
        "Bytes received by the receive engine (counted in words of 4 bytes).";
    Counter "sw_link_down" = ["SwLinkDown"] ("hfi1") "Times that the link went down.";
    Counter "sw_link_up" = ["SwLinkUp"] ("hfi1") "Times that the link came up.";
    Counter "unknown_frame" = ["UnknownFrame"] ("hfi1")
        "Link control frames received that are not known.";
    Counter "xmit_dscd" = ["XmitDscd"] ("hfi1") "Packets discarded instead of sent.";
    Counter "xmit_cstr_err" = ["XmitCstrErr"] ("hfi1")
        "Packets not sent because of a partition or security rule.";
    Counter "rcv_cstr_err" = ["RcvCstrErr"] ("hfi1")
        "Packets received and discarded because of a partition or security rule.";
    Counter "loop_packets" = ["LoopPkts"] ("hfi1") "Packets that the port sent to itself.";
    Counter "rc_resend" = ["RcResend"] ("hfi1")
        "Packets of reliable connections that were sent again.";
    Counter "rnr_nak" = ["RnrNak"] ("hfi1") "Receiver-not-ready NAKs received.";
    Counter "other_nak" = ["OtherNak"] ("hfi1") "NAKs received of other kinds.";
    Counter "rc_timeout" = ["RcTimeOut"] ("hfi1") "Timeouts of reliable connections.";
    Counter "packet_drop" = ["PktDrop"] ("hfi1") "Packets received and dropped by the driver.";
    Counter "dma_wait" = ["DmaWait"] ("hfi1") "Times that a send waited for DMA.";
    Counter "rc_seq_nak" = ["RcSeqNak"] ("hfi1")
        "Sequence errors of requests received that were answered with a NAK.";
    // Spelled so in the driver; it counts duplicate requests (rc_dupreq).
    Counter "rc_dup_req" = ["RcDupRew"] ("hfi1") "Requests received that had been received before.";
    // rc.c: RcSeqNak and RcDupRew are the responder's, SeqNak and RdmaSeq the requester's.
    Counter "rdma_seq" = ["RdmaSeq"] ("hfi1") "RDMA read responses received out of sequence.";
    Counter "unaligned" = ["Unaligned"] ("hfi1") "Sends from unaligned memory.";
    Counter "seq_nak" = ["SeqNak"] ("hfi1")
        "NAKs received for a sequence error: the peer missed packets.";
    Counter "rc_cr_wait" = ["RcCrWait"] ("hfi1")
        "Times that a reliable connection waited for the peer's credits.";
    Counter "rc_acks" = ["RcAcks"] ("hfi1")
        "Acknowledgements of reliable connections sent, on all processors.";
    Counter "rc_qacks" = ["RcQacks"] ("hfi1")
        "Acknowledgements of reliable connections that had to be queued, on all processors.";
    Counter "rc_delay_comp" = ["RcDelayComp"] ("hfi1")
        "Completions of reliable connections that were delayed, on all processors.";
}
