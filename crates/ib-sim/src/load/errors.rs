//! Bit errors: the packets that they corrupt, and the retransmissions.

/// The packets in transit after a lost one, which are sent again with it: the reliable transport
/// goes back to the lost packet (IBTA 1.4, 9.7). 16 packets of 4 KiB are what a 100 Gb/s link
/// carries in 5 µs, the round trip of a message in a fabric under load.
const OUTSTANDING: f64 = 16.0;
/// Retransmissions are at most as much as the other traffic. With more losses a sender waits for
/// its timeouts (4.096 µs × 2^14 = 67 ms with common settings), and does not send more.
const MAX_RETRANSMISSION: f64 = 1.0;

/// The probability that a packet of this size has a bit error.
fn error_probability(bit_errors: f64, bytes: u32) -> f64 {
    // 1 − (1 − b)^(8n); the plain formula loses all digits below b = 1e-16, as good cables have.
    if bit_errors > 0.0 {
        -(f64::from(bytes) * 8.0 * (-bit_errors.min(1.0)).ln_1p()).exp_m1()
    } else {
        0.0
    }
}

/// The fractions of a flow's packets with errors at one hop.
///
/// Switches cut through: they forward the head of a packet before its end, with the checksum,
/// arrives. The switch that finds an error marks the end bad (EBP), so that all further ports count
/// a remote physical error, down to the destination, which drops the packet. A packet with two
/// errors counts once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PacketErrors {
    /// Packets that were marked bad before.
    pub(super) remote: f64,
    /// Packets that this link corrupts.
    pub(super) local: f64,
}

/// The errors at each hop of a path, by the bit error ratios of the receiving ports.
pub(super) fn packet_errors(
    bit_errors: impl Iterator<Item = f64>,
    bytes: u32,
) -> impl Iterator<Item = PacketErrors> {
    bit_errors.scan(0.0, move |remote, ratio| {
        let local = (1.0 - *remote) * error_probability(ratio, bytes);
        let errors = PacketErrors { remote: *remote, local };
        *remote += local;
        Some(errors)
    })
}

/// The factor by which a sender sends more when this fraction of its packets is lost.
pub(super) fn retransmission_factor(lost: f64) -> f64 {
    1.0 + (lost * OUTSTANDING).min(MAX_RETRANSMISSION)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
