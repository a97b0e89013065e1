//! The table of counters: one row per counter. The decoder takes the field locations from it, the sysfs
//! reader the file names, the exposition metric names and help, and `docs/metrics.md` its rows.

use crate::layout::Bits;
use crate::mad::{DATA, Mad};
use display_text::labeled_enum;

labeled_enum! {
    /// A PerfMgt attribute that holds counters of one port (IBTA 1.4, 16.1.3 and 16.1.4), by its name there.
    #[derive(PartialOrd, Ord)]
    #[repr(u16)]
    pub enum Attribute {
        PortCounters = 0x12, "PortCounters",
            "The classic counters: 4 to 32 bits wide, saturating at their highest value.";
        PortRcvErrorDetails = 0x15, "PortRcvErrorDetails", "Receive errors by cause, 16 bits each.";
        PortXmitDiscardDetails = 0x16, "PortXmitDiscardDetails",
            "Discarded packets by cause, 16 bits each.";
        PortCountersExtended = 0x1d, "PortCountersExtended",
            "64-bit counters: traffic, and with AdditionalPortCountersExtended also errors.";
        PortExtendedSpeedsCounters = 0x1f, "PortExtendedSpeedsCounters",
            "FEC counters; the table has those of a Reed-Solomon link.";
    }
}

impl Attribute {
    /// Whether it has the causes of what counters of another attribute sum up.
    pub fn is_details(self) -> bool {
        matches!(self, Attribute::PortRcvErrorDetails | Attribute::PortXmitDiscardDetails)
    }
}

/// What a device must announce for a field to be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: every device with the attribute has the field.
    Nothing,
    /// CapabilityMask bit 12, PortXmitWaitSupported.
    XmitWait,
    /// CapabilityMask bit 14: PortExtendedSpeedsCounters of a Reed-Solomon link counts by port.
    RsFec,
    /// CapabilityMask bit 15, QP1DroppedSupported.
    Qp1Dropped,
    /// CapabilityMask bit 9, ExtendedWidthSupported with the unicast and multicast counters.
    UnicastMulticast,
    /// CapabilityMask2 bit 1, AdditionalPortCountersExtendedSupported.
    Errors64,
    /// Both bits.
    Errors64AndQp1Dropped,
    /// This bit of the OptionMask in PortSamplesControl, if the device announces any option.
    Option(u8),
}

/// The field of a counter in an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct CounterField {
    pub attribute: Attribute,
    /// Offset of its highest bit from the start of the attribute's data.
    pub bit: u16,
    /// Width in bits: 4, 8, 16, 32 or 64. A counter of fewer than 64 bits saturates at its highest value.
    pub width: u8,
    pub needs: Needs,
}

impl CounterField {
    fn bits(self) -> Bits {
        Bits { first: self.bit + DATA as u16 * 8, width: self.width }
    }

    /// The value in a response.
    pub fn read(self, mad: &Mad) -> u64 {
        mad.bits(self.bits())
    }

    /// Writes a value, or the highest that fits.
    pub fn write(self, mad: &mut Mad, value: u64) {
        mad.set_bits(self.bits(), value.min(self.max()));
    }

    /// The highest value that fits, at which a narrow counter saturates.
    pub fn max(self) -> u64 {
        self.bits().max()
    }

    /// Whether a field with this value is saturated. 64 bits never saturate.
    pub fn is_saturated(self, value: u64) -> bool {
        self.width < 64 && value == self.max()
    }
}

labeled_enum! {
    /// Category of a counter.
    pub enum CounterKind {
        Traffic, "traffic", "Packets and bytes.";
        Error, "error", "Errors.";
        Congestion, "congestion", "Waiting, and packets discarded because of it.";
        Link, "link", "Link state events.";
    }
}

/// A row of the table.
#[derive(Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct CounterRow {
    pub counter: Counter,
    /// Name in the IBTA specification.
    pub ibta: &'static str,
    /// Metric name between `infiniband_port_` and `_total`.
    pub metric: &'static str,
    pub kind: CounterKind,
    /// Metric units per count: 4 for data, which is counted in words of four bytes, else 1.
    pub scale: u64,
    /// Its fields, the widest first.
    pub fields: &'static [CounterField],
    /// File names in sysfs, below a port's `counters` or, with mlx4 of old kernels, `counters_ext`;
    /// none if the kernel does not export the counter.
    pub sysfs_files: &'static [&'static str],
    /// Help text: what it counts, in one sentence.
    pub help: &'static str,
}

/// A raw value in the metric's unit, by the [scale](CounterRow::scale) of its row. The product saturates:
/// a wrapped one would look like a counter reset. Metrics, the API and the history use this rule.
pub fn scaled(raw: u64, scale: u64) -> u64 {
    raw.saturating_mul(scale)
}

const fn at(attribute: Attribute, bit: u16, width: u8, needs: Needs) -> CounterField {
    CounterField { attribute, bit, width, needs }
}

const fn classic(byte: u16, width: u8) -> CounterField {
    at(Attribute::PortCounters, byte * 8, width, Needs::Nothing)
}

const fn extended(byte: u16, needs: Needs) -> CounterField {
    at(Attribute::PortCountersExtended, byte * 8, 64, needs)
}

const fn receive_detail(byte: u16, option: u8) -> CounterField {
    at(Attribute::PortRcvErrorDetails, byte * 8, 16, Needs::Option(option))
}

const fn discard_detail(byte: u16, option: u8) -> CounterField {
    at(Attribute::PortXmitDiscardDetails, byte * 8, 16, Needs::Option(option))
}

const fn fec(byte: u16) -> CounterField {
    at(Attribute::PortExtendedSpeedsCounters, byte * 8, 32, Needs::RsFec)
}

/// The counters that sum up to link errors, wherever a port has one number for its errors: in rankings, on pages, in
/// plots and in reports. Packets that were discarded, rejected by a rule or marked bad upstream do not indicate a bad
/// link. The causes of receive errors are parts of [`Counter::RcvErrors`] and would count twice.
pub const LINK_ERRORS: [Counter; 7] = [
    Counter::SymbolErrors,
    Counter::LinkErrorRecoveries,
    Counter::LinkDowned,
    Counter::RcvErrors,
    Counter::LocalLinkIntegrityErrors,
    Counter::ExcessiveBufferOverrunErrors,
    Counter::FecUncorrectableBlocks,
];

/// The link errors that corrupted data counts as: one corrupted block is a symbol error, an uncorrectable FEC block,
/// mostly a receive error, and sometimes an integrity error.
pub const CORRUPTION: [Counter; 4] = [
    Counter::SymbolErrors,
    Counter::RcvErrors,
    Counter::LocalLinkIntegrityErrors,
    Counter::FecUncorrectableBlocks,
];

/// Link errors of a port: the sum of [`LINK_ERRORS`], of which the largest of [`CORRUPTION`] stands for all four. Packets
/// that were marked bad upstream are no errors of this link, although the port counts them as receive errors.
pub fn link_errors(count: impl Fn(Counter) -> u64) -> u64 {
    let marked = count(Counter::RcvRemotePhysicalErrors);
    let corrupted = CORRUPTION.into_iter().map(|counter| match counter {
        Counter::RcvErrors => count(counter).saturating_sub(marked),
        _ => count(counter),
    });
    let others = LINK_ERRORS.into_iter().filter(|counter| !CORRUPTION.contains(counter));
    let corrupted = corrupted.max().unwrap_or(0);
    others.map(&count).fold(corrupted, u64::saturating_add)
}

macro_rules! counters {
    ($($counter:ident $ibta:literal $metric:literal $kind:ident x $scale:literal
       [$($counter_field:expr),+] [$($file:literal),*] $help:literal;)+) => {
        /// A counter of a port; see its row in [`TABLE`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "the help text of each row")]
        pub enum Counter { $($counter),+ }

        /// Number of counters. Not `TABLE.len()`: types depend on it, and rustc cannot compute a type
        /// from a table that functions of this crate fill (E0391).
        pub const COUNT: usize = [$(Counter::$counter),+].len();

        /// The table, in the order of the exposition.
        pub const TABLE: &[CounterRow] = {
            use Attribute::PortCounters;
            use Needs::{
                Errors64, Errors64AndQp1Dropped, Nothing, Qp1Dropped, UnicastMulticast, XmitWait,
            };
            &[$(CounterRow {
                counter: Counter::$counter,
                ibta: $ibta,
                metric: $metric,
                kind: CounterKind::$kind,
                scale: $scale,
                fields: &[$($counter_field),+],
                sysfs_files: &[$($file),*],
                help: $help,
            }),+]
        };
    };
}

// Files: drivers/infiniband/core/sysfs.c, and drivers/infiniband/hw/mlx4/sysfs.c of the mlx4 that had counters_ext.
// Offsets: IBTA 1.4 tables 251 (PortCounters), 255 (PortRcvErrorDetails), 256 (PortXmitDiscardDetails) and 264
// (PortCountersExtended); the tests compare each with perfquery and tshark. Those of PortExtendedSpeedsCounters are
// libibmad's, see the module mad::fec. Option bits: OptionMask of PortSamplesControl (IBTA 1.4, 16.1.3.2), 6 to 11
// for PortRcvErrorDetails and 12 to 15 for PortXmitDiscardDetails.
counters! {
    XmitData "PortXmitData" "transmit_bytes" Traffic x 4
        [extended(8, Nothing), classic(24, 32)] ["port_xmit_data", "port_xmit_data_64"]
        "Data sent on all virtual lanes, in bytes (the device counts words of 4 bytes). Includes packet headers and may include packets with errors; excludes delimiters, VCRC and link packets.";
    RcvData "PortRcvData" "receive_bytes" Traffic x 4
        [extended(16, Nothing), classic(28, 32)] ["port_rcv_data", "port_rcv_data_64"]
        "Data received on all virtual lanes, in bytes (the device counts words of 4 bytes). Includes packet headers and may include packets with errors; excludes delimiters, VCRC and link packets.";
    XmitPkts "PortXmitPkts" "transmit_packets" Traffic x 1
        [extended(24, Nothing), classic(32, 32)] ["port_xmit_packets", "port_xmit_packets_64"]
        "Packets sent on all virtual lanes, without link packets.";
    RcvPkts "PortRcvPkts" "receive_packets" Traffic x 1
        [extended(32, Nothing), classic(36, 32)] ["port_rcv_packets", "port_rcv_packets_64"]
        "Packets received on all virtual lanes, without link packets.";
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
        "Minor link errors on one or more lanes; with FEC, symbols that FEC could not correct.";
    LinkErrorRecoveries "LinkErrorRecoveryCounter" "link_error_recoveries" Link x 1
        [extended(80, Errors64), classic(6, 8)] ["link_error_recovery"]
        "Times that the link retrained successfully without going down.";
    LinkDowned "LinkDownedCounter" "link_downed" Link x 1
        [extended(88, Errors64), classic(7, 8)] ["link_downed"]
        "Times that the link failed to recover and went down, also because the other end restarted or disabled its port.";
    RcvErrors "PortRcvErrors" "receive_errors" Error x 1
        [extended(96, Errors64), classic(8, 16)] ["port_rcv_errors"]
        "Packets received with an error.";
    RcvRemotePhysicalErrors "PortRcvRemotePhysicalErrors" "receive_remote_physical_errors" Error x 1
        [extended(104, Errors64), classic(10, 16)] ["port_rcv_remote_physical_errors"]
        "Packets received that were marked bad (EBP): they were corrupted on a link further upstream, not on this one.";
    RcvSwitchRelayErrors "PortRcvSwitchRelayErrors" "receive_switch_relay_errors" Error x 1
        [extended(112, Errors64), classic(12, 16)] ["port_rcv_switch_relay_errors"]
        "Packets received that the switch could not forward. Multicast packets whose egress port is their ingress port count too.";
    XmitDiscards "PortXmitDiscards" "transmit_discards" Congestion x 1
        [extended(120, Errors64), classic(14, 16)] ["port_xmit_discards"]
        "Packets discarded instead of sent because the port was down or congested.";
    XmitConstraintErrors "PortXmitConstraintErrors" "transmit_constraint_errors" Error x 1
        [extended(128, Errors64), classic(16, 8)] ["port_xmit_constraint_errors"]
        "Packets not sent because of partition enforcement or raw packet filtering.";
    RcvConstraintErrors "PortRcvConstraintErrors" "receive_constraint_errors" Error x 1
        [extended(136, Errors64), classic(17, 8)] ["port_rcv_constraint_errors"]
        "Packets received and discarded because of partition enforcement or raw packet filtering.";
    LocalLinkIntegrityErrors "LocalLinkIntegrityErrors" "local_link_integrity_errors" Error x 1
        [extended(144, Errors64), at(PortCounters, 152, 4, Nothing)] ["local_link_integrity_errors"]
        "Times that the local physical errors exceeded the port's threshold (LocalPhyErrors).";
    ExcessiveBufferOverrunErrors "ExcessiveBufferOverrunErrors" "excessive_buffer_overrun_errors" Error x 1
        [extended(152, Errors64), at(PortCounters, 156, 4, Nothing)] ["excessive_buffer_overrun_errors"]
        "Times that the receive buffer overran in too many consecutive flow control update periods (OverrunErrors).";
    Qp1Dropped "QP1Dropped" "qp1_dropped" Error x 1
        [extended(176, Errors64AndQp1Dropped), at(PortCounters, 20 * 8, 16, Qp1Dropped)] []
        "General management packets (QP1) dropped because the port lacked resources.";
    Vl15Dropped "VL15Dropped" "vl15_dropped" Error x 1
        [extended(160, Errors64), classic(22, 16)] ["VL15_dropped"]
        "Subnet management packets (VL15) dropped because the port lacked resources.";
    XmitWait "PortXmitWait" "transmit_wait_ticks" Congestion x 1
        [extended(168, Errors64), at(PortCounters, 40 * 8, 32, XmitWait)] ["port_xmit_wait"]
        "Ticks in which the port had data to send but sent none, for lack of credits or of arbitration. The device defines the tick; infiniband_port_transmit_wait_ratio is a share of time.";
    RcvLocalPhysicalErrors "PortLocalPhysicalErrors" "receive_local_physical_errors" Error x 1
        [receive_detail(4, 6)] []
        "Part of PortRcvErrors: CRC errors, length errors and errors of the physical layer.";
    RcvMalformedPacketErrors "PortMalformedPacketErrors" "receive_malformed_packet_errors" Error x 1
        [receive_detail(6, 7)] []
        "Part of PortRcvErrors: packets with an invalid header.";
    RcvBufferOverrunErrors "PortBufferOverrunErrors" "receive_buffer_overrun_errors" Error x 1
        [receive_detail(8, 8)] []
        "Part of PortRcvErrors: packets discarded because the receive buffer overran.";
    RcvDlidMappingErrors "PortDLIDMappingErrors" "receive_dlid_mapping_errors" Error x 1
        [receive_detail(10, 9)] []
        "Part of PortRcvSwitchRelayErrors: the forwarding table has no egress port for the destination LID.";
    RcvVlMappingErrors "PortVLMappingErrors" "receive_vl_mapping_errors" Error x 1
        [receive_detail(12, 10)] []
        "Part of PortRcvSwitchRelayErrors: the service level maps to no virtual lane of the egress port.";
    RcvLoopingErrors "PortLoopingErrors" "receive_looping_errors" Error x 1
        [receive_detail(14, 11)] []
        "Part of PortRcvSwitchRelayErrors: the egress port is the ingress port.";
    XmitInactiveDiscards "PortInactiveDiscards" "transmit_inactive_discards" Congestion x 1
        [discard_detail(4, 12)] []
        "Part of PortXmitDiscards: the port was not in PortState Active.";
    XmitNeighborMtuDiscards "PortNeighborMTUDiscards" "transmit_neighbor_mtu_discards" Congestion x 1
        [discard_detail(6, 13)] []
        "Part of PortXmitDiscards: the packet was larger than NeighborMTU.";
    XmitLifetimeLimitDiscards "PortSwLifetimeLimitDiscards" "transmit_lifetime_limit_discards" Congestion x 1
        [discard_detail(8, 14)] []
        "Part of PortXmitDiscards: the packet exceeded the switch lifetime limit.";
    XmitHoqLimitDiscards "PortSwHOQLifetimeLimitDiscards" "transmit_hoq_limit_discards" Congestion x 1
        [discard_detail(10, 15)] []
        "Part of PortXmitDiscards: the packet was at the head of the queue (HOQ) for longer than HOQLife, usually because of congestion.";
    FecCorrectedBlocks "PortFECCorrectableBlockCtr" "fec_corrected_blocks" Error x 1
        [fec(140)] []
        "Blocks received with errors that FEC corrected.";
    FecUncorrectableBlocks "PortFECUncorrectableBlockCtr" "fec_uncorrectable_blocks" Error x 1
        [fec(144)] []
        "Blocks received with errors that FEC could not correct. Their data is lost.";
    FecCorrectedSymbols "PortFECCorrectedSymbolCtr" "fec_corrected_symbols" Error x 1
        [fec(148)] []
        "Symbols that FEC corrected. A steady rate is normal on HDR and faster links.";
}

/// Only traffic counters reach 2^63: 10^9 events a second take 292 years. Such a value is a negative number, for
/// example the 2^64 - 40 receive errors of one ConnectX-7.
pub const IMPLAUSIBLE: u64 = 1 << 63;

impl Counter {
    /// Its row in the table.
    pub fn row(self) -> &'static CounterRow {
        &TABLE[self as usize]
    }

    /// Whether a value fills the counter's narrowest field: the kernel does not report which one it read.
    pub fn may_be_saturated(self, value: u64) -> bool {
        self.row().fields.last().is_some_and(|narrowest| narrowest.is_saturated(value))
    }

    /// Whether it counts events of a healthy fabric: packets to a port without a link, to a destination
    /// without a route, or back to their ingress port. On real Quantum-2 switches these cover nearly
    /// all of XmitDiscards (262 of 279 ports) and RcvSwitchRelayErrors (267 of 279).
    pub fn is_benign(self) -> bool {
        use Counter::{RcvDlidMappingErrors, RcvLoopingErrors, XmitInactiveDiscards};
        matches!(self, RcvDlidMappingErrors | RcvLoopingErrors | XmitInactiveDiscards)
    }

    /// Whether the value is possible: below [`IMPLAUSIBLE`], or of a traffic counter.
    pub fn is_plausible(self, value: u64) -> bool {
        value < IMPLAUSIBLE || self.row().kind == CounterKind::Traffic
    }

    /// The counter in this sysfs file.
    pub fn from_file(name: &str) -> Option<Counter> {
        TABLE.iter().find(|row| row.sysfs_files.contains(&name)).map(|row| row.counter)
    }

    /// All counters, in table order.
    pub fn all() -> impl Iterator<Item = Counter> {
        TABLE.iter().map(|row| row.counter)
    }
}

#[cfg(test)]
mod tests;
