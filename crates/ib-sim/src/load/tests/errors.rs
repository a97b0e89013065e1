//! The packets that bit errors corrupt.

use super::super::*;

#[test]
fn error_probability_follows_from_bit_errors() {
    // (bit error ratio, bytes, fraction of packets): to first order 8nb.
    for (ratio, bytes, share) in [
        (0.0, 4096, 0.0),
        (1e-20, 4096, 32768e-20),
        (1e-12, 256, 2048e-12),
        (1e-6, 4096, 0.032_236_9),
        (0.5, 1, 1.0 - 1.0 / 256.0),
        (1.0, 4096, 1.0),
        (7.0, 4096, 1.0),
        (-1.0, 4096, 0.0),
        (f64::NAN, 4096, 0.0),
    ] {
        let got = error_probability(ratio, bytes);
        assert!((got - share).abs() <= share * 1e-5, "{ratio} × {bytes}: {got}");
    }
}

#[test]
fn corrupt_packet_is_remote_error_at_later_hops() {
    let got: Vec<PacketErrors> = packet_errors([0.0, 0.5, 0.0, 1.0].into_iter(), 1).collect();
    let half = 1.0 - 1.0 / 256.0;
    for (got, (remote, local)) in
        got.iter().zip([(0.0, 0.0), (0.0, half), (half, 0.0), (half, 1.0 - half)])
    {
        assert!((got.remote - remote).abs() < 1e-12 && (got.local - local).abs() < 1e-12);
    }
}

#[test]
fn retransmissions_have_a_limit() {
    for (lost, factor) in [(0.0, 1.0), (1e-3, 1.016), (0.5, 2.0), (1.0, 2.0)] {
        assert!((retransmission_factor(lost) - factor).abs() < 1e-12);
    }
}
