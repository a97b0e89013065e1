//! The counters by the names of other programs, written independently of the program's own table, which is
//! under test.

use super::topology;

/// A counter by its names on ibsim's console, in perfquery, and in our metrics.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The attribute that has it, such as PortCounters.
    pub attribute: &'static str,
    /// Its name on ibsim's console.
    pub console: &'static str,
    /// Its name in perfquery's output.
    pub perfquery: &'static str,
    /// The part of its metric's name between `infiniband_port_` and `_total`.
    pub metric: &'static str,
    /// The metric's value of one count.
    pub scale: u64,
    /// The largest value to set in ibsim: the counter's width, or the limit of its console.
    pub most: u64,
}

const fn counter(
    attribute: &'static str,
    console: &'static str,
    metric: &'static str,
    most: u64,
) -> Counter {
    Counter { attribute, console, perfquery: console, metric, scale: 1, most }
}

const fn named(perfquery: &'static str, counter: Counter) -> Counter {
    Counter { perfquery, ..counter }
}

const fn words(counter: Counter) -> Counter {
    Counter { scale: 4, ..counter }
}

const PC: &str = "PortCounters";
const PCX: &str = "PortCountersExtended";
const RED: &str = "PortRcvErrorDetails";
const XDD: &str = "PortXmitDiscardDetails";

/// Counters that only faults increase, and counters that nothing here increases.
pub const STILL: [Counter; 24] = [
    counter(PC, "SymbolErrorCounter", "symbol_errors", 0xffff),
    counter(PC, "LinkErrorRecoveryCounter", "link_error_recoveries", 0xff),
    counter(PC, "LinkDownedCounter", "link_downed", 0xff),
    counter(PC, "PortRcvErrors", "receive_errors", 0xffff),
    counter(PC, "PortRcvRemotePhysicalErrors", "receive_remote_physical_errors", 0xffff),
    counter(PC, "PortRcvSwitchRelayErrors", "receive_switch_relay_errors", 0xffff),
    counter(PC, "PortXmitDiscards", "transmit_discards", 0xffff),
    counter(PC, "PortXmitConstraintErrors", "transmit_constraint_errors", 0xff),
    counter(PC, "PortRcvConstraintErrors", "receive_constraint_errors", 0xff),
    counter(PC, "LocalLinkIntegrityErrors", "local_link_integrity_errors", 0xf),
    counter(PC, "ExcessiveBufferOverrunErrors", "excessive_buffer_overrun_errors", 0xf),
    counter(PC, "VL15Dropped", "vl15_dropped", 0xffff),
    counter(PC, "PortXmitWait", "transmit_wait_ticks", 0xffff_ffff),
    counter(RED, "PortLocalPhysicalErrors", "receive_local_physical_errors", 0xffff),
    named(
        "PortMalformedPktErrors",
        counter(RED, "PortMalformedPacketErrors", "receive_malformed_packet_errors", 0xffff),
    ),
    counter(RED, "PortBufferOverrunErrors", "receive_buffer_overrun_errors", 0xffff),
    counter(RED, "PortDLIDMappingErrors", "receive_dlid_mapping_errors", 0xffff),
    counter(RED, "PortVLMappingErrors", "receive_vl_mapping_errors", 0xffff),
    counter(RED, "PortLoopingErrors", "receive_looping_errors", 0xffff),
    counter(XDD, "PortInactiveDiscards", "transmit_inactive_discards", 0xffff),
    counter(XDD, "PortNeighborMTUDiscards", "transmit_neighbor_mtu_discards", 0xffff),
    counter(XDD, "PortSwLifetimeLimitDiscards", "transmit_lifetime_limit_discards", 0xffff),
    counter(XDD, "PortSwHOQLifetimeLimitDiscards", "transmit_hoq_limit_discards", 0xffff),
    counter(PCX, "PortUnicastXmitPkts", "unicast_transmit_packets", 0xffff_ffff_ffff),
];

/// Counters that the requests themselves increase: our value lies between two perfqueries.
pub const MOVING: [Counter; 7] = [
    words(counter(PCX, "PortXmitData", "transmit_bytes", 0x1234_5678_9abc)),
    words(counter(PCX, "PortRcvData", "receive_bytes", 0x1234_5678_9abc)),
    counter(PCX, "PortXmitPkts", "transmit_packets", 0x1234_5678_9abc),
    counter(PCX, "PortRcvPkts", "receive_packets", 0x1234_5678_9abc),
    counter(PCX, "PortUnicastRcvPkts", "unicast_receive_packets", 0x1234_5678_9abc),
    named(
        "PortMulticastXmitPkts",
        counter(PCX, "PortMultiCastXmitPkts", "multicast_transmit_packets", 0x1234_5678_9abc),
    ),
    named(
        "PortMulticastRcvPkts",
        counter(PCX, "PortMultiCastRcvPkts", "multicast_receive_packets", 0x1234_5678_9abc),
    ),
];

/// The counter of a port, and the value to set.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The node's id.
    pub node: String,
    /// The port.
    pub port: u8,
    /// The counter.
    pub counter: Counter,
    /// In the counter's own units.
    pub value: u64,
}

/// The counter of this metric, the part between `infiniband_port_` and `_total`.
pub fn of_metric(metric: &str) -> Counter {
    let found = STILL.iter().chain(&MOVING).find(|counter| counter.metric == metric);
    *found.unwrap_or_else(|| panic!("no counter has the metric {metric}"))
}

/// A different value for each counter of each port.
fn value(port: usize, counter: usize, most: u64) -> u64 {
    let mixed = (port as u64 * 31 + counter as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    1 + mixed % most
}

/// A different value for each counter of each port with a cable.
pub fn all_distinct(net: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (index, (node, port)) in topology::all_connected_ports(net).into_iter().enumerate() {
        for (nth, &counter) in STILL.iter().chain(&MOVING).enumerate() {
            let value = value(index, nth, counter.most);
            settings.push(Setting { node: node.clone(), port, counter, value });
        }
    }
    settings
}
