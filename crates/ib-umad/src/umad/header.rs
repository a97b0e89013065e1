//! The header before each MAD (kernel: include/uapi/rdma/ib_user_mad.h).

use std::ops::Range;

use ib_mad::{Lid, Mad};

use crate::transport::{OutgoingMad, Received};

/// Header format of a umad device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFormat {
    /// With the P_Key index: since kernel 2.6.24, enabled by REGISTER_AGENT2.
    Long,
    /// Without it: the default of a device, and the only one of ibsim, without REGISTER_AGENT2.
    Short,
}

impl HeaderFormat {
    pub(super) fn len(self) -> usize {
        match self {
            HeaderFormat::Long => 64,
            HeaderFormat::Short => 56,
        }
    }
}

/// Status of a request without a response in time; the only error that the kernel reports.
const ETIMEDOUT: u32 = libc::ETIMEDOUT as u32;

/// Length of the part of a timed-out request that the kernel returns: the first 24 bytes of the MAD.
const ECHO: usize = 24;

/// Fields of the header, the same in both formats.
const STATUS: Range<usize> = 4..8;
const LID: Range<usize> = 28..30;

/// A header (kernel: `struct ib_user_mad_hdr`; the fields have the same offsets in both formats) and the MAD.
pub(super) fn encode(
    outgoing: &OutgoingMad,
    header: HeaderFormat,
    agent: u32,
    pkey_index: u16,
) -> ([u8; 64 + ib_mad::LEN], usize) {
    let mut bytes = [0; 64 + ib_mad::LEN];
    let mut put = |offset: usize, field: &[u8]| {
        bytes[offset..offset + field.len()].copy_from_slice(field);
    };
    let millis = u32::try_from(outgoing.timeout.as_millis()).unwrap_or(u32::MAX).max(1);
    put(0, &agent.to_ne_bytes());
    put(8, &millis.to_ne_bytes());
    put(16, &(ib_mad::LEN as u32).to_ne_bytes());
    put(20, &outgoing.qp.to_be_bytes());
    put(24, &outgoing.qkey.to_be_bytes());
    put(LID.start, &outgoing.lid.0.to_be_bytes());
    put(30, &[outgoing.sl]);
    if let Some(route) = &outgoing.route {
        // The first byte says that there is a route.
        put(32, &[1, route.gid_index, route.hop_limit, route.traffic_class]);
        put(36, &route.gid.octets());
        put(52, &route.flow_label.to_be_bytes());
    }
    if header == HeaderFormat::Long {
        put(56, &pkey_index.to_ne_bytes());
    }
    put(header.len(), &outgoing.mad.0);
    (bytes, header.len() + ib_mad::LEN)
}

/// Decodes what was read from the device: a header, and a MAD or part of one.
pub fn decode(bytes: &[u8], header: HeaderFormat) -> Received {
    let malformed = Received::Malformed { bytes: bytes.len().saturating_sub(header.len()) };
    let Some((header, body)) = bytes.split_at_checked(header.len()) else {
        return malformed;
    };
    let expired = header[STATUS] == ETIMEDOUT.to_ne_bytes();
    if let Some(echo) = body.first_chunk::<ECHO>().filter(|_| expired) {
        let transaction_id = u32::from_be_bytes([echo[12], echo[13], echo[14], echo[15]]);
        return Received::Expired { class: echo[1], transaction_id };
    }
    match body.first_chunk::<{ ib_mad::LEN }>() {
        Some(whole) if header[STATUS] == [0; 4] => Received::Mad {
            from: Lid(u16::from_be_bytes([header[LID.start], header[LID.start + 1]])),
            mad: Mad(*whole),
        },
        _ => malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::request::{Address, GlobalRoute, Request};
    use ib_mad::{DirectedRoute, pma, smp};

    fn outgoing(to: Address) -> OutgoingMad {
        let request = Request { to, query: smp::node_info() };
        OutgoingMad::new(&request, None, 0x1234_5678, Duration::from_millis(250), 3)
    }

    #[test]
    fn encodes_both_header_formats() {
        let outgoing = outgoing(Address::Lid(Lid(0x0102)));
        for header in [HeaderFormat::Long, HeaderFormat::Short] {
            let (bytes, length) = encode(&outgoing, header, 7, 0);
            assert_eq!(length, header.len() + 256);
            assert_eq!(bytes[0..4], 7u32.to_ne_bytes());
            assert_eq!(bytes[8..12], 250u32.to_ne_bytes());
            assert_eq!(bytes[16..20], 256u32.to_ne_bytes());
            assert_eq!(bytes[20..30], [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
            assert_eq!(bytes[header.len()..header.len() + 4], [1, 0x01, 1, 0x01]);
        }
    }

    #[test]
    fn directed_smp_uses_permissive_lid() {
        let (bytes, _) =
            encode(&outgoing(Address::Directed(DirectedRoute::LOCAL)), HeaderFormat::Long, 0, 0);
        assert_eq!(bytes[28..30], [0xff, 0xff]);
    }

    #[test]
    fn service_level_is_that_of_gmps() {
        for (query, sl) in [(pma::class_port_info(), 5), (smp::node_info(), 0)] {
            let request = Request { to: Address::Lid(Lid(1)), query };
            let outgoing = OutgoingMad::new(&request, None, 1, Duration::ZERO, 5);
            for header in [HeaderFormat::Long, HeaderFormat::Short] {
                assert_eq!(encode(&outgoing, header, 7, 0).0[30], sl, "{query:?}");
            }
        }
    }

    #[test]
    fn encodes_global_route() {
        let route = GlobalRoute {
            lid: Lid(0x0304),
            gid: "fec0::2:c903:ab:cdef".parse().unwrap(),
            gid_index: 5,
            hop_limit: 63,
            traffic_class: 0x20,
            flow_label: 0x0f_edcb,
        };
        let request = Request { to: Address::Global(route), query: pma::class_port_info() };
        let outgoing = OutgoingMad::new(&request, None, 1, Duration::from_millis(250), 0);
        for header in [HeaderFormat::Long, HeaderFormat::Short] {
            let (bytes, length) = encode(&outgoing, header, 7, 0);
            assert_eq!(length, header.len() + 256);
            assert_eq!(bytes[20..30], [0, 0, 0, 1, 0x80, 1, 0, 0, 3, 4]);
            assert_eq!(bytes[30..36], [0, 0, 1, 5, 63, 0x20]);
            assert_eq!(bytes[36..44], [0xfe, 0xc0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(bytes[44..52], [0, 2, 0xc9, 3, 0, 0xab, 0xcd, 0xef]);
            assert_eq!(bytes[52..56], [0, 0x0f, 0xed, 0xcb]);
            assert_eq!(
                bytes[56..64],
                if header == HeaderFormat::Long { [0; 8] } else { GET_START },
                "P_Key"
            );
        }
        let plain = Request { to: Address::Lid(Lid(1)), ..request };
        let (bytes, _) =
            encode(&OutgoingMad::new(&plain, None, 1, Duration::ZERO, 0), HeaderFormat::Long, 7, 0);
        assert_eq!(bytes[30..64], [0; 34], "no route, no fields");
    }

    #[test]
    fn p_key_index_is_only_in_long_header() {
        let request = Request { to: Address::Lid(Lid(1)), query: pma::class_port_info() };
        let outgoing = OutgoingMad::new(&request, None, 1, Duration::ZERO, 0);
        let (long, _) = encode(&outgoing, HeaderFormat::Long, 7, 0x0102);
        assert_eq!(long[56..58], 0x0102_u16.to_ne_bytes());
        assert_eq!(long[58..64], [0; 6]);
        let (short, _) = encode(&outgoing, HeaderFormat::Short, 7, 0x0102);
        assert_eq!(short[56..64], GET_START, "the MAD itself");
    }

    /// The first bytes of a performance management Get.
    const GET_START: [u8; 8] = [1, 0x04, 1, 0x01, 0, 0, 0, 0];

    #[test]
    fn decodes_response_timeout_and_malformed() {
        let (mut bytes, length) = encode(&outgoing(Address::Lid(Lid(9))), HeaderFormat::Long, 0, 0);
        let bytes = &mut bytes[..length];
        assert!(matches!(decode(bytes, HeaderFormat::Long), Received::Mad { from: Lid(9), .. }));
        for short in [0, 30, 64, 64 + 255] {
            assert!(
                matches!(decode(&bytes[..short], HeaderFormat::Long), Received::Malformed { .. }),
                "{short}"
            );
        }
        bytes[4..8].copy_from_slice(&110u32.to_ne_bytes());
        for length in [64 + 24, 64 + 256] {
            assert!(matches!(
                decode(&bytes[..length], HeaderFormat::Long),
                Received::Expired { class: 0x01, transaction_id: 0x1234_5678 }
            ));
        }
        assert!(matches!(
            decode(&bytes[..64 + 23], HeaderFormat::Long),
            Received::Malformed { .. }
        ));
        bytes[4..8].copy_from_slice(&5u32.to_ne_bytes());
        assert!(
            matches!(decode(bytes, HeaderFormat::Long), Received::Malformed { .. }),
            "an unknown status"
        );
    }
}
