//! mlx4 (ConnectX-3): diagnostic counters of the device, and of the port where the firmware keeps
//! them, from mlx4/main.c (diag_basic, diag_ext, diag_device_only). `sq` is the requester's side,
//! `rq` the responder's.

super::rows! {
    Counter "rq_num_lle" ("mlx4") "Local length errors of the responder.";
    Counter "sq_num_lle" ("mlx4") "Local length errors of the requester.";
    Counter "rq_num_lqpoe" ("mlx4") "Local errors of queue pair operation of the responder.";
    Counter "sq_num_lqpoe" ("mlx4") "Local errors of queue pair operation of the requester.";
    Counter "rq_num_lpe" ("mlx4") "Local protection errors of the responder.";
    Counter "sq_num_lpe" ("mlx4") "Local protection errors of the requester.";
    Counter "rq_num_wrfe" ("mlx4")
        "Work requests of the responder that were flushed; a connection that ends normally does this too.";
    Counter "sq_num_wrfe" ("mlx4")
        "Work requests of the requester that were flushed; a connection that ends normally does this too.";
    Counter "sq_num_mwbe" ("mlx4") "Memory windows that could not be bound.";
    Counter "sq_num_bre" ("mlx4") "Bad responses that the requester received.";
    Counter "sq_num_rire" ("mlx4") "Requests that the peer refused as invalid.";
    Counter "rq_num_rire" ("mlx4") "Requests received and refused as invalid.";
    Counter "sq_num_rae" ("mlx4")
        "Requests that the peer refused because they may not touch its memory.";
    Counter "rq_num_rae" ("mlx4")
        "Requests received and refused because they may not touch this memory.";
    Counter "sq_num_roe" ("mlx4") "Requests that the peer could not carry out.";
    Counter "sq_num_tree" ("mlx4")
        "Requests given up because the peer did not answer any of the retries.";
    Counter "sq_num_rree" ("mlx4")
        "Requests given up because the peer had no receive buffer at any of the retries.";
    Counter "rq_num_rnr" ("mlx4") "Receiver-not-ready NAKs sent: no receive buffer was posted.";
    Counter "sq_num_rnr" ("mlx4")
        "Receiver-not-ready NAKs received: the peer had no buffer posted.";
    Counter "rq_num_oos" ("mlx4") "Requests received out of sequence.";
    Counter "sq_num_oos" ("mlx4") "NAKs received for requests out of sequence.";
    Counter "rq_num_dup" ("mlx4") "Requests received that had been received before.";
    Counter "sq_num_to" ("mlx4")
        "Times that a sender's acknowledgement timer ran out, so that it sent again.";
    Counter "num_cqovf" ("mlx4") "Completion queues that overflowed.";
    Counter "rq_num_udsdprd" ("mlx4")
        "Datagrams dropped silently because the queue pair had no receive buffer posted.";
}
