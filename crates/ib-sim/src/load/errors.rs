//! Bit errors: what they spoil, and what is sent again because of them.

/// How many packets are behind a lost one on their way, and are sent again with it: the reliable
/// transport goes back to the packet that was lost (IBTA 1.4, 9.7). 16 packets of 4 KiB are what
/// a 100 Gb/s link carries in 5 µs, the round trip of a message in a fabric at work.
const OUTSTANDING: f64 = 16.0;
/// What is sent again is at most as much as what would be sent anyhow. Worse losses make a sender
/// wait for its timeouts (4.096 µs × 2^14 = 67 ms with common settings), and not send more.
const MOST_AGAIN: f64 = 1.0;

/// The probability that a packet of so many bytes is spoilt where so large a share of bits is.
pub(super) fn spoilt(bit_errors: f64, bytes: u32) -> f64 {
    // 1 − (1 − b)^(8n); the plain formula loses all digits below b = 1e-16, where good cables are.
    if bit_errors > 0.0 {
        -(f64::from(bytes) * 8.0 * (-bit_errors.min(1.0)).ln_1p()).exp_m1()
    } else {
        0.0
    }
}

/// What becomes of a flow's packets hop by hop.
///
/// Switches cut through: a packet's head is on its way before its end, where the check sum stands,
/// has come. The switch that finds it wrong marks its end bad (EBP), so that all further ports
/// count it as somebody else's, down to the destination, which drops it. A packet that is spoilt
/// twice counts once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Damage {
    /// The share of packets that came bad over the link before.
    pub(super) marked: f64,
    /// The share that this link spoils.
    pub(super) spoilt: f64,
}

/// The damage at each hop of a way, by the bit error ratios of the ports that receive.
pub(super) fn damages(
    bit_errors: impl Iterator<Item = f64>,
    bytes: u32,
) -> impl Iterator<Item = Damage> {
    bit_errors.scan(0.0, move |marked, ratio| {
        let damage = Damage { marked: *marked, spoilt: (1.0 - *marked) * spoilt(ratio, bytes) };
        *marked += damage.spoilt;
        Some(damage)
    })
}

/// How much more a sender sends when this share of its packets is lost.
pub(super) fn growth(lost: f64) -> f64 {
    1.0 + (lost * OUTSTANDING).min(MOST_AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_spoilt_by_their_bits() {
        // (bit error ratio, bytes, share of packets): to first order 8nb.
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
            let got = spoilt(ratio, bytes);
            assert!((got - share).abs() <= share * 1e-5, "{ratio} × {bytes}: {got}");
        }
    }

    #[test]
    fn a_spoilt_packet_is_marked_from_there_on() {
        let got: Vec<Damage> = damages([0.0, 0.5, 0.0, 1.0].into_iter(), 1).collect();
        let half = 1.0 - 1.0 / 256.0;
        for (got, (marked, spoilt)) in
            got.iter().zip([(0.0, 0.0), (0.0, half), (half, 0.0), (half, 1.0 - half)])
        {
            assert!((got.marked - marked).abs() < 1e-12 && (got.spoilt - spoilt).abs() < 1e-12);
        }
    }

    #[test]
    fn losses_are_sent_again_up_to_a_limit() {
        for (lost, factor) in [(0.0, 1.0), (1e-3, 1.016), (0.5, 2.0), (1.0, 2.0)] {
            assert!((growth(lost) - factor).abs() < 1e-12);
        }
    }
}
