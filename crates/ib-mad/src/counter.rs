//! THE table of counters: one row each, from which everything else that speaks of counters is made.
//!
//! The PMA decoder takes the places from it, the sysfs reader its files, the exposition its names and
//! help, `docs/metrics.md` its rows. To add a counter is to add a row.

use std::ops::Range;

/// A PerfMgt attribute that holds counters of one port (IBTA 1.4, 16.1.3 and 16.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Attribute {
    /// The classic counters: 4 to 32 bits wide, sticking at their highest value.
    PortCounters = 0x12,
    /// Received packets in error, by cause; 16 bits each.
    PortRcvErrorDetails = 0x15,
    /// Discarded packets, by cause; 16 bits each.
    PortXmitDiscardDetails = 0x16,
    /// 64-bit counters: traffic, and with AdditionalPortCountersExtended the errors too.
    PortCountersExtended = 0x1d,
    /// What forward error correction had to mend; as the table has it, that of a Reed-Solomon link.
    PortExtendedSpeedsCounters = 0x1f,
}

impl Attribute {
    /// Its name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Attribute::PortCounters => "PortCounters",
            Attribute::PortRcvErrorDetails => "PortRcvErrorDetails",
            Attribute::PortXmitDiscardDetails => "PortXmitDiscardDetails",
            Attribute::PortCountersExtended => "PortCountersExtended",
            Attribute::PortExtendedSpeedsCounters => "PortExtendedSpeedsCounters",
        }
    }
}

/// What a device must say of itself in ClassPortInfo before a place means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: whoever answers the attribute has it.
    Nothing,
    /// CapabilityMask bit 12, PortXmitWaitSupported.
    XmitWait,
    /// CapabilityMask bit 14: PortExtendedSpeedsCounters of a Reed-Solomon link counts for the port
    /// as a whole, too.
    RsFec,
    /// CapabilityMask bit 15, QP1DroppedSupported.
    Qp1Dropped,
    /// CapabilityMask bit 9, ExtendedWidthSupported with the unicast and multicast counters.
    UnicastMulticast,
    /// CapabilityMask2 bit 1, AdditionalPortCountersExtendedSupported.
    Errors64,
    /// Both of them.
    Errors64AndQp1Dropped,
    /// This bit of PortSamplesControl's OptionMask, where a device announces any: it says which of
    /// the optional counters the device implements.
    Option(u8),
}

/// Where a counter stands in an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The attribute.
    pub attribute: Attribute,
    /// Offset of its highest bit from the start of the attribute's data.
    pub bit: u16,
    /// Width in bits: 4, 8, 16, 32 or 64. A counter of fewer than 64 bits sticks at its highest value.
    pub width: u8,
    /// What the device must offer.
    pub needs: Needs,
}

impl Place {
    /// The counter's value in an attribute's data; 0 past its end.
    pub fn read(&self, data: &[u8]) -> u64 {
        let bytes = data.get(self.bytes()).unwrap_or_default();
        let value = bytes.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        value >> self.below() & self.most()
    }

    /// Writes the counter's value into an attribute's data, or the highest that fits; nothing
    /// past its end.
    pub fn write(&self, data: &mut [u8], value: u64) {
        let bytes = data.get_mut(self.bytes()).unwrap_or_default();
        let (value, most) = (value.min(self.most()) << self.below(), self.most() << self.below());
        for (lower, byte) in bytes.iter_mut().rev().enumerate() {
            let of = |bits: u64| (bits >> (8 * lower)) as u8;
            *byte = *byte & !of(most) | of(value);
        }
    }

    /// The highest value that fits, at which a narrow counter sticks.
    pub fn most(&self) -> u64 {
        u64::MAX >> (64 - u32::from(self.width))
    }

    /// Whether a field with this value is full, and counts no further. Nothing fills 64 bits.
    pub fn is_full_at(&self, value: u64) -> bool {
        self.width < 64 && value == self.most()
    }

    fn bytes(self) -> Range<usize> {
        let start = usize::from(self.bit / 8);
        start..start + usize::from(self.width).div_ceil(8)
    }

    /// How many bits of its last byte belong to its neighbour: only the two 4-bit counters share
    /// a byte.
    fn below(self) -> u32 {
        if self.width < 8 { 8 - u32::from(self.width) - u32::from(self.bit % 8) } else { 0 }
    }
}

/// What a counter speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What was carried.
    Traffic,
    /// What went wrong.
    Error,
    /// What had to wait, or was given up because of waiting.
    Congestion,
    /// What the link went through.
    Link,
}

impl Kind {
    /// One word for tables.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Traffic => "traffic",
            Kind::Error => "error",
            Kind::Congestion => "congestion",
            Kind::Link => "link",
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// The counter.
    pub counter: Counter,
    /// Its name in the IBTA's specification.
    pub ibta: &'static str,
    /// Its metric, between `infiniband_port_` and `_total`.
    pub metric: &'static str,
    /// What it speaks of.
    pub kind: Kind,
    /// What one count is worth in the metric's unit: 4 for data, which is counted in words of four
    /// bytes, else 1.
    pub scale: u64,
    /// Where it stands, the widest place first.
    pub places: &'static [Place],
    /// What its files are called in sysfs, below a port's `counters` or, on the mlx4 of old
    /// kernels, `counters_ext`; none where the kernel does not read it.
    pub files: &'static [&'static str],
    /// What it counts, in a sentence.
    pub help: &'static str,
}

/// A raw value in its metric's unit, by the [scale](Row::scale) of its row. What does not fit in 64 bits
/// stays at the largest number (it saturates): a product that wraps would look like a counter that was
/// reset. Metrics, the API and the history all use this rule.
pub fn scaled(raw: u64, scale: u64) -> u64 {
    raw.saturating_mul(scale)
}

const fn at(attribute: Attribute, byte: u16, width: u8, needs: Needs) -> Place {
    Place { attribute, bit: byte * 8, width, needs }
}

const fn classic(byte: u16, width: u8) -> Place {
    at(Attribute::PortCounters, byte, width, Needs::Nothing)
}

const fn nibble(bit: u16) -> Place {
    Place { attribute: Attribute::PortCounters, bit, width: 4, needs: Needs::Nothing }
}

const fn extended(byte: u16, needs: Needs) -> Place {
    at(Attribute::PortCountersExtended, byte, 64, needs)
}

const fn receive_detail(byte: u16, option: u8) -> Place {
    at(Attribute::PortRcvErrorDetails, byte, 16, Needs::Option(option))
}

const fn discard_detail(byte: u16, option: u8) -> Place {
    at(Attribute::PortXmitDiscardDetails, byte, 16, Needs::Option(option))
}

const fn correction(byte: u16) -> Place {
    at(Attribute::PortExtendedSpeedsCounters, byte, 32, Needs::RsFec)
}

/// The counters whose sum is called link errors, wherever a port has one number for its errors: in the
/// order of links, on pages, in plots and in reports. Packets that are discarded, refused by a rule or
/// marked bad upstream say nothing against the link and have numbers of their own. The causes of receive
/// errors are parts of [`Counter::RcvErrors`] and would count twice.
pub const LINK_ERRORS: [Counter; 7] = [
    Counter::SymbolErrors,
    Counter::LinkErrorRecoveries,
    Counter::LinkDowned,
    Counter::RcvErrors,
    Counter::LocalLinkIntegrityErrors,
    Counter::ExcessiveBufferOverrunErrors,
    Counter::FecUncorrectableBlocks,
];

/// A port's link errors, from its counters: the sum of [`LINK_ERRORS`] without the packets that were marked
/// bad upstream, which a port counts as receive errors as well.
pub fn link_errors(count: impl Fn(Counter) -> u64) -> u64 {
    let sum = LINK_ERRORS.into_iter().map(&count).fold(0, u64::saturating_add);
    let marked = count(Counter::RcvRemotePhysicalErrors).min(count(Counter::RcvErrors));
    sum.saturating_sub(marked)
}

macro_rules! counters {
    ($($counter:ident $ibta:literal $metric:literal $kind:ident x $scale:literal
       [$($place:expr),+] [$($file:literal),*] $help:literal;)+) => {
        /// A counter that a port keeps; its row in the table says the rest.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "the help of its row says what each counts")]
        pub enum Counter { $($counter),+ }

        /// How many counters there are. Not `TABLE.len()`: types are as large as this says, and rustc, when it
        /// optimizes, cannot know a type by a table that functions of this crate fill (E0391).
        pub const COUNT: usize = [$(Counter::$counter),+].len();

        /// The table, in the order in which metrics are told.
        pub const TABLE: &[Row] = {
            use Needs::{
                Errors64, Errors64AndQp1Dropped, Nothing, Qp1Dropped, UnicastMulticast, XmitWait,
            };
            &[$(Row {
                counter: Counter::$counter,
                ibta: $ibta,
                metric: $metric,
                kind: Kind::$kind,
                scale: $scale,
                places: &[$($place),+],
                files: &[$($file),*],
                help: $help,
            }),+]
        };
    };
}

// Files: drivers/infiniband/core/sysfs.c, and drivers/infiniband/hw/mlx4/sysfs.c of the mlx4 that had
// counters_ext. Offsets: IBTA 1.4 tables 251 (PortCounters), 255 (PortRcvErrorDetails), 256
// (PortXmitDiscardDetails) and 264 (PortCountersExtended); perfquery and tshark agree with each in
// the tests. Those of PortExtendedSpeedsCounters are libibmad's, see mad/fec.rs. Option bits: OptionMask
// of PortSamplesControl (IBTA 1.4, 16.1.3.2), 6 to 11 for PortRcvErrorDetails and 12 to 15 for
// PortXmitDiscardDetails.
counters! {
    XmitData "PortXmitData" "transmit_bytes" Traffic x 4
        [extended(8, Nothing), classic(24, 32)] ["port_xmit_data", "port_xmit_data_64"]
        "Bytes of data sent, without link overhead (counted in words of 4 bytes).";
    RcvData "PortRcvData" "receive_bytes" Traffic x 4
        [extended(16, Nothing), classic(28, 32)] ["port_rcv_data", "port_rcv_data_64"]
        "Bytes of data received, without link overhead (counted in words of 4 bytes).";
    XmitPkts "PortXmitPkts" "transmit_packets" Traffic x 1
        [extended(24, Nothing), classic(32, 32)] ["port_xmit_packets", "port_xmit_packets_64"]
        "Packets sent on all virtual lanes but 15.";
    RcvPkts "PortRcvPkts" "receive_packets" Traffic x 1
        [extended(32, Nothing), classic(36, 32)] ["port_rcv_packets", "port_rcv_packets_64"]
        "Packets received on all virtual lanes but 15.";
    UnicastXmitPkts "PortUnicastXmitPkts" "unicast_transmit_packets" Traffic x 1
        [extended(40, UnicastMulticast)] ["unicast_xmit_packets", "port_unicast_xmit_packets"]
        "Unicast packets sent.";
    UnicastRcvPkts "PortUnicastRcvPkts" "unicast_receive_packets" Traffic x 1
        [extended(48, UnicastMulticast)] ["unicast_rcv_packets", "port_unicast_rcv_packets"]
        "Unicast packets received.";
    MulticastXmitPkts "PortMulticastXmitPkts" "multicast_transmit_packets" Traffic x 1
        [extended(56, UnicastMulticast)] ["multicast_xmit_packets", "port_multicast_xmit_packets"]
        "Multicast packets sent.";
    MulticastRcvPkts "PortMulticastRcvPkts" "multicast_receive_packets" Traffic x 1
        [extended(64, UnicastMulticast)] ["multicast_rcv_packets", "port_multicast_rcv_packets"]
        "Multicast packets received.";
    SymbolErrors "SymbolErrorCounter" "symbol_errors" Error x 1
        [extended(72, Errors64), classic(4, 16)] ["symbol_error"]
        "Minor link errors on one or more lanes; with FEC, symbols that it could not correct.";
    LinkErrorRecoveries "LinkErrorRecoveryCounter" "link_error_recoveries" Link x 1
        [extended(80, Errors64), classic(6, 8)] ["link_error_recovery"]
        "Times the link retrained and recovered by itself.";
    LinkDowned "LinkDownedCounter" "link_downed" Link x 1
        [extended(88, Errors64), classic(7, 8)] ["link_downed"]
        "Times the link failed to recover and went down.";
    RcvErrors "PortRcvErrors" "receive_errors" Error x 1
        [extended(96, Errors64), classic(8, 16)] ["port_rcv_errors"]
        "Packets received with an error.";
    RcvRemotePhysicalErrors "PortRcvRemotePhysicalErrors" "receive_remote_physical_errors" Error x 1
        [extended(104, Errors64), classic(10, 16)] ["port_rcv_remote_physical_errors"]
        "Packets received that were marked bad further upstream: the fault is not on this link.";
    RcvSwitchRelayErrors "PortRcvSwitchRelayErrors" "receive_switch_relay_errors" Error x 1
        [extended(112, Errors64), classic(12, 16)] ["port_rcv_switch_relay_errors"]
        "Packets received that the switch could not forward; multicast sent back by its own group counts too.";
    XmitDiscards "PortXmitDiscards" "transmit_discards" Congestion x 1
        [extended(120, Errors64), classic(14, 16)] ["port_xmit_discards"]
        "Packets discarded instead of sent, because the port was down or congested.";
    XmitConstraintErrors "PortXmitConstraintErrors" "transmit_constraint_errors" Error x 1
        [extended(128, Errors64), classic(16, 8)] ["port_xmit_constraint_errors"]
        "Packets not sent because of a partition or raw-packet rule.";
    RcvConstraintErrors "PortRcvConstraintErrors" "receive_constraint_errors" Error x 1
        [extended(136, Errors64), classic(17, 8)] ["port_rcv_constraint_errors"]
        "Packets received and discarded because of a partition or raw-packet rule.";
    LocalLinkIntegrityErrors "LocalLinkIntegrityErrors" "local_link_integrity_errors" Error x 1
        [extended(144, Errors64), nibble(152)] ["local_link_integrity_errors"]
        "Times the local physical errors went over the port's threshold.";
    ExcessiveBufferOverrunErrors "ExcessiveBufferOverrunErrors" "excessive_buffer_overrun_errors" Error x 1
        [extended(152, Errors64), nibble(156)] ["excessive_buffer_overrun_errors"]
        "Times the receive buffer was overrun in consecutive flow-control periods.";
    Qp1Dropped "QP1Dropped" "qp1_dropped" Error x 1
        [extended(176, Errors64AndQp1Dropped), at(Attribute::PortCounters, 20, 16, Qp1Dropped)] []
        "Management packets to QP1 dropped for want of resources.";
    Vl15Dropped "VL15Dropped" "vl15_dropped" Error x 1
        [extended(160, Errors64), classic(22, 16)] ["VL15_dropped"]
        "Subnet management packets dropped for want of resources.";
    XmitWait "PortXmitWait" "transmit_wait_ticks" Congestion x 1
        [extended(168, Errors64), at(Attribute::PortCounters, 40, 32, XmitWait)] ["port_xmit_wait"]
        "Ticks in which the port had data to send and no credit to send it with; a tick's length is the device's.";
    RcvLocalPhysicalErrors "PortLocalPhysicalErrors" "receive_local_physical_errors" Error x 1
        [receive_detail(4, 6)] []
        "Of receive_errors: a bad CRC, a bad length or an error that the physical layer saw.";
    RcvMalformedPacketErrors "PortMalformedPacketErrors" "receive_malformed_packet_errors" Error x 1
        [receive_detail(6, 7)] []
        "Of receive_errors: a bad header.";
    RcvBufferOverrunErrors "PortBufferOverrunErrors" "receive_buffer_overrun_errors" Error x 1
        [receive_detail(8, 8)] []
        "Of receive_errors: no room in the receive buffer.";
    RcvDlidMappingErrors "PortDLIDMappingErrors" "receive_dlid_mapping_errors" Error x 1
        [receive_detail(10, 9)] []
        "Of receive_switch_relay_errors: the forwarding table had no port for the destination.";
    RcvVlMappingErrors "PortVLMappingErrors" "receive_vl_mapping_errors" Error x 1
        [receive_detail(12, 10)] []
        "Of receive_switch_relay_errors: the service level had no virtual lane on the way out.";
    RcvLoopingErrors "PortLoopingErrors" "receive_looping_errors" Error x 1
        [receive_detail(14, 11)] []
        "Of receive_switch_relay_errors: the way out was the way in.";
    XmitInactiveDiscards "PortInactiveDiscards" "transmit_inactive_discards" Congestion x 1
        [discard_detail(4, 12)] []
        "Of transmit_discards: the port was not active.";
    XmitNeighborMtuDiscards "PortNeighborMTUDiscards" "transmit_neighbor_mtu_discards" Congestion x 1
        [discard_detail(6, 13)] []
        "Of transmit_discards: the packet was larger than the neighbour takes.";
    XmitLifetimeLimitDiscards "PortSwLifetimeLimitDiscards" "transmit_lifetime_limit_discards" Congestion x 1
        [discard_detail(8, 14)] []
        "Of transmit_discards: the packet stayed in the switch for longer than its lifetime limit.";
    XmitHoqLimitDiscards "PortSwHOQLifetimeLimitDiscards" "transmit_hoq_limit_discards" Congestion x 1
        [discard_detail(10, 15)] []
        "Of transmit_discards: the packet stood at the head of the queue for longer than its limit.";
    FecCorrectedBlocks "PortFECCorrectableBlockCtr" "fec_corrected_blocks" Error x 1
        [correction(140)] []
        "Blocks received with errors that forward error correction mended.";
    FecUncorrectableBlocks "PortFECUncorrectableBlockCtr" "fec_uncorrectable_blocks" Error x 1
        [correction(144)] []
        "Blocks received with more errors than forward error correction could mend: their data is lost.";
    FecCorrectedSymbols "PortFECCorrectedSymbolCtr" "fec_corrected_symbols" Error x 1
        [correction(148)] []
        "Symbols that forward error correction mended; on links of HDR and faster some always are.";
}

impl Counter {
    /// Its row in the table.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Whether it counts a packet that could not be sent. The causes are parts of the sum, and no addition to it.
    pub fn is_discard(self) -> bool {
        self == Counter::XmitDiscards
    }

    /// Whether a value that comes without its width fills the narrowest field that the counter may
    /// stand in: the kernel does not tell which one it read.
    pub fn may_be_full_at(self, value: u64) -> bool {
        self.row().places.last().is_some_and(|narrowest| narrowest.is_full_at(value))
    }

    /// Whether it counts what a healthy fabric does as well: packets to a port without a link, to a
    /// destination without a route, or back where they came from. On real Quantum-2 switches these
    /// cover nearly all of XmitDiscards (262 of 279 ports) and RcvSwitchRelayErrors (267 of 279).
    pub fn is_benign(self) -> bool {
        use Counter::{RcvDlidMappingErrors, RcvLoopingErrors, XmitInactiveDiscards};
        matches!(self, RcvDlidMappingErrors | RcvLoopingErrors | XmitInactiveDiscards)
    }

    /// Whether a counter can show this value at all. No counter but those of traffic gets to 2^63: at
    /// 10^9 events a second that takes 292 years. A value from there on is a negative number that the
    /// device reports as an unsigned one, as the 2^64 - 40 receive errors of one ConnectX-7.
    pub fn can_show(self, value: u64) -> bool {
        self.row().kind == Kind::Traffic || value < 1 << 63
    }

    /// The counter that a file of sysfs holds, if it holds one.
    pub fn from_file(name: &str) -> Option<Counter> {
        TABLE.iter().find(|row| row.files.contains(&name)).map(|row| row.counter)
    }

    /// All of them, in the table's order.
    pub fn all() -> impl Iterator<Item = Counter> {
        TABLE.iter().map(|row| row.counter)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_stand_where_their_counters_point_and_names_are_unique() {
        let (mut names, mut files) = (HashSet::new(), HashSet::new());
        for row in TABLE {
            assert_eq!(row.counter.row().ibta, row.ibta);
            assert!(names.insert(row.metric), "{} twice", row.metric);
            assert!(names.insert(row.ibta), "{} twice", row.ibta);
            for file in row.files {
                assert!(files.insert(file), "{file} twice");
                assert_eq!(Counter::from_file(file), Some(row.counter));
            }
            assert!(row.help.ends_with('.') && !row.help.contains(['\n', '\\']), "{}", row.help);
        }
    }

    #[test]
    fn no_two_counters_share_a_bit() {
        let mut taken = HashSet::new();
        for row in TABLE {
            for place in row.places {
                for bit in place.bit..place.bit + u16::from(place.width) {
                    assert!(
                        taken.insert((place.attribute, bit)),
                        "{} overlaps at bit {bit}",
                        row.ibta
                    );
                }
            }
        }
    }

    #[test]
    fn only_traffic_may_pass_half_of_64_bits() {
        for (counter, value, possible) in [
            (Counter::RcvErrors, u64::MAX - 39, false),
            (Counter::RcvErrors, 1 << 63, false),
            (Counter::RcvErrors, (1 << 63) - 1, true),
            (Counter::XmitWait, 1 << 63, false),
            (Counter::LinkDowned, 255, true),
            (Counter::XmitData, u64::MAX, true),
        ] {
            assert_eq!(counter.can_show(value), possible, "{counter:?} {value}");
        }
    }

    #[test]
    fn the_widest_place_comes_first() {
        for row in TABLE {
            assert!(
                row.places.is_sorted_by_key(|place| std::cmp::Reverse(place.width)),
                "{}",
                row.ibta
            );
        }
    }

    #[test]
    fn each_width_is_read_from_its_bits_alone() {
        let mut data = [0xffu8; 192];
        for (width, bit, bytes, value) in [
            (4, 152, &[0x5a][..], 0x5),
            (4, 156, &[0x5a], 0xa),
            (8, 48, &[0x12], 0x12),
            (16, 32, &[0x12, 0x34], 0x1234),
            (32, 192, &[0x12, 0x34, 0x56, 0x78], 0x1234_5678),
            (64, 64, &[1, 2, 3, 4, 5, 6, 7, 8], 0x0102_0304_0506_0708),
        ] {
            let start = usize::from(bit / 8u16);
            data[start..start + bytes.len()].copy_from_slice(bytes);
            let place =
                Place { attribute: Attribute::PortCounters, bit, width, needs: Needs::Nothing };
            assert_eq!(place.read(&data), value, "{width} bits at {bit}");
            assert_eq!(place.read(&[]), 0, "past the end");
            data.fill(0xff);
        }
    }

    #[test]
    fn most_is_all_ones() {
        for (width, most) in
            [(4, 15), (8, 255), (16, 65_535), (32, u32::MAX.into()), (64, u64::MAX)]
        {
            let place =
                Place { attribute: Attribute::PortCounters, bit: 0, width, needs: Needs::Nothing };
            assert_eq!(place.most(), most);
            place.write(&mut [], 1);
        }
    }

    proptest! {
        #[test]
        fn each_place_reads_what_was_written_and_no_other_bit_changes(
            data in proptest::collection::vec(any::<u8>(), 192), value: u64, shift in 0u32..64,
        ) {
            // Small values, too: of 64 random bits nearly all are above any narrow place.
            let value = value >> shift;
            for place in TABLE.iter().flat_map(|row| row.places) {
                let mut written = data.clone();
                place.write(&mut written, value);
                prop_assert_eq!(place.read(&written), value.min(place.most()), "{:?}", place);
                let own = place.bit..place.bit + u16::from(place.width);
                for bit in (0..192 * 8).filter(|bit| !own.contains(bit)) {
                    let of = |data: &[u8]| data[usize::from(bit / 8)] >> (7 - bit % 8) & 1;
                    prop_assert_eq!(of(&written), of(&data), "bit {} beside {:?}", bit, place);
                }
            }
        }
    }
}
