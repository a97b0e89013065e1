//! Generations of devices: what the agents of each can do, in one table.

use ib_mad::class_port_info::PmaCapabilities;
use ib_mad::counter::Counter;
use ib_mad::node::NodeKind;
use ib_mad::rate::Speed;

/// A generation of switches or adapters, as its agents tell it apart.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
pub struct Model {
    /// As a scenario names it.
    pub name: &'static str,
    /// What it is.
    pub kind: NodeKind,
    /// VendorID and DeviceID of NodeInfo.
    pub vendor_id: u32,
    /// DeviceID.
    pub device_id: u16,
    /// The ids of its near relations, which answer as it does.
    pub relations: &'static [u16],
    /// The fastest it can do; it can do all that is slower, but FDR10.
    pub fastest: Speed,
    /// LinkWidthSupported, a mask of codes.
    pub widths: u8,
    /// What its performance management agent offers.
    pub performance: PmaCapabilities,
    /// It keeps the causes of receive errors and discards (PortRcvErrorDetails and
    /// PortXmitDiscardDetails).
    pub details: bool,
    /// It keeps PortExtendedSpeedsCounters, and PortInfoExtended tells its FEC.
    pub fec: bool,
    /// Tick of PortSamplesControl, for devices that answer it: a tick of PortXmitWait is this + 1
    /// symbol times.
    pub tick: Option<u8>,
    /// OptionMask of PortSamplesControl; 0 announces nothing.
    pub options: u64,
    /// Fields of PortCountersExtended that stay at 0, though ClassPortInfo announces them.
    pub unused64: &'static [Counter],
    /// A port that loses its link discards packets until its switch has other routes, whatever the
    /// traffic; and a port that gets one sees packets to destinations that have no route yet.
    pub counts_benign: bool,
    /// Its subnet management agent has no bits for speeds beyond QDR.
    pub mellanox_ext_port_info: bool,
}

const MELLANOX: u32 = 0x2c9;
/// LinkWidth codes: 1x and 4x; with 2x, as HDR has it for split cables; all of them.
const X1_4: u8 = 1 | 2;
const X1_2_4: u8 = 1 | 2 | 16;
const ALL_WIDTHS: u8 = 31;

const fn row(
    name: &'static str,
    kind: NodeKind,
    device_id: u16,
    fastest: Speed,
    (mask, mask2): (u16, u32),
) -> Model {
    let modern = mask2 != 0;
    Model {
        name,
        kind,
        vendor_id: MELLANOX,
        device_id,
        relations: &[],
        fastest,
        widths: if matches!(fastest, Speed::Hdr | Speed::Ndr | Speed::Xdr) { X1_2_4 } else { X1_4 },
        performance: PmaCapabilities { mask, mask2 },
        details: mask != 0,
        fec: modern,
        tick: None,
        options: 0,
        unused64: &[],
        counts_benign: false,
        mellanox_ext_port_info: true,
    }
}

/// 64-bit traffic counters without the unicast and multicast ones (ConnectX-3 and its time).
const TRAFFIC64: (u16, u32) = (0x0400 | 0x1000, 0);
/// Those with them, XmitWait, and nothing else in 64 bits: ibsim's own, with AllPortSelect.
const IBSIM_SWITCH: (u16, u32) = (0x1300, 0);
const IBSIM_HCA: (u16, u32) = (0x1200, 0);
/// All in 64 bits, RS-FEC counters, QP1Dropped.
const ALL64: (u16, u32) = (0x0200 | 0x1000 | 0x4000 | 0x8000, 2);
const ALL64_SWITCH: (u16, u32) = (ALL64.0 | 0x0100, 2);

/// RS-FEC counters, extended-speed counters, XmitWait and 64-bit traffic, with all errors in
/// PortCounters alone.
const CONNECTX_4: (u16, u32) = (0x5a00, 0);
/// OptionMask as observed on ConnectX-7, and on Quantum-2 and its aggregation nodes.
const CONNECTX_7_OPTIONS: u64 = 0x01a6_0000_10cc_33c0;
const QUANTUM_2_OPTIONS: u64 = 0x0180_0000_008c_f7fc;

/// The table. The ids are those of the PCI database and of what `ibnetdiscover` prints in the
/// field; the last three answer for devices that no row knows, as ibsim 0.10 does for all.
///
/// ConnectX-4, ConnectX-7 with firmware 28.40 and 28.41, Quantum-2 with firmware 31.2012 and its
/// aggregation nodes answer as in public ibdiagnet dumps of such devices. ConnectX-5, -6 and -8 were
/// not observed: that they fill all fields is what they announce.
pub static MODELS: [Model; 17] = [
    // mthca: the narrow, sticking counters and nothing else.
    Model { details: false, ..row("infinihost-3", NodeKind::Ca, 25218, Speed::Ddr, (0, 0)) },
    // And ConnectX-3 Pro.
    Model { relations: &[4103], ..row("connectx-3", NodeKind::Ca, 4099, Speed::Fdr, TRAFFIC64) },
    Model { fec: true, ..row("connectx-4", NodeKind::Ca, 4115, Speed::Edr, CONNECTX_4) },
    // And ConnectX-5 Ex and BlueField.
    Model { relations: &[4121, 41682], ..row("connectx-5", NodeKind::Ca, 4119, Speed::Edr, ALL64) },
    // And BlueField-2.
    Model { relations: &[41686], ..row("connectx-6", NodeKind::Ca, 4123, Speed::Hdr, ALL64) },
    // And BlueField-3.
    Model {
        relations: &[41692],
        tick: Some(7),
        options: CONNECTX_7_OPTIONS,
        unused64: &[Counter::SymbolErrors, Counter::LinkDowned],
        ..row("connectx-7", NodeKind::Ca, 4129, Speed::Ndr, ALL64)
    },
    row("connectx-8", NodeKind::Ca, 4131, Speed::Xdr, ALL64),
    // A part of a Quantum or Quantum-2 that reduces data (SHARP), behind a port of its own.
    Model {
        tick: Some(7),
        options: QUANTUM_2_OPTIONS,
        ..row("aggregation-node", NodeKind::Ca, 53001, Speed::Ndr, ALL64)
    },
    Model {
        tick: Some(31),
        ..row("infiniscale-4", NodeKind::Switch, 48438, Speed::Qdr, (0x0300, 0))
    },
    Model { tick: Some(31), ..row("switchx", NodeKind::Switch, 51000, Speed::Fdr, (0x1300, 0)) },
    Model {
        tick: Some(31),
        // And Switch-IB.
        relations: &[52000],
        ..row("switch-ib-2", NodeKind::Switch, 53000, Speed::Edr, ALL64_SWITCH)
    },
    Model { tick: Some(7), ..row("quantum", NodeKind::Switch, 54000, Speed::Hdr, ALL64_SWITCH) },
    Model {
        tick: Some(7),
        options: QUANTUM_2_OPTIONS,
        counts_benign: true,
        ..row("quantum-2", NodeKind::Switch, 54002, Speed::Ndr, ALL64_SWITCH)
    },
    Model { tick: Some(7), ..row("quantum-3", NodeKind::Switch, 54004, Speed::Xdr, ALL64_SWITCH) },
    Model { widths: ALL_WIDTHS, ..row("any-hca", NodeKind::Ca, 0, Speed::Hdr, IBSIM_HCA) },
    Model { widths: ALL_WIDTHS, ..row("any-router", NodeKind::Router, 0, Speed::Hdr, IBSIM_HCA) },
    Model {
        widths: ALL_WIDTHS,
        ..row("any-switch", NodeKind::Switch, 0, Speed::Hdr, IBSIM_SWITCH)
    },
];

impl Model {
    /// The generation of this name.
    pub fn named(name: &str) -> Option<&'static Model> {
        MODELS.iter().find(|model| model.name == name)
    }

    /// Its place in the table.
    pub fn place(&'static self) -> usize {
        MODELS.iter().position(|row| std::ptr::eq(row, self)).unwrap_or_default()
    }

    /// The generation with this id, or the one that stands for all unknown ones of its kind.
    pub fn of_device(kind: NodeKind, device_id: u16) -> &'static Model {
        let kind = if kind == NodeKind::AggregationNode { NodeKind::Ca } else { kind };
        let of_kind = || MODELS.iter().filter(move |model| model.kind == kind);
        let is =
            |model: &&Model| model.device_id == device_id || model.relations.contains(&device_id);
        let found = of_kind().find(is);
        // Each kind has a last row for all others.
        found.or_else(|| of_kind().next_back()).unwrap_or(&MODELS[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stands_in_its_place() {
        for (place, model) in MODELS.iter().enumerate() {
            assert_eq!(model.place(), place, "{}", model.name);
            assert_eq!(Model::named(model.name).map(Model::place), Some(place));
        }
    }

    #[test]
    fn a_device_is_known_by_its_id_and_an_unknown_one_by_its_kind() {
        assert_eq!(Model::of_device(NodeKind::Ca, 4129).name, "connectx-7");
        assert_eq!(Model::of_device(NodeKind::Ca, 41692).name, "connectx-7");
        assert_eq!(Model::of_device(NodeKind::Ca, 4115).name, "connectx-4");
        assert_eq!(Model::of_device(NodeKind::AggregationNode, 53001).name, "aggregation-node");
        assert_eq!(Model::of_device(NodeKind::Switch, 54004).name, "quantum-3");
        assert_eq!(Model::of_device(NodeKind::Switch, 52000).name, "switch-ib-2");
        for (kind, name) in [
            (NodeKind::Ca, "any-hca"),
            (NodeKind::AggregationNode, "any-hca"),
            (NodeKind::Switch, "any-switch"),
            (NodeKind::Router, "any-router"),
        ] {
            assert_eq!(Model::of_device(kind, 9).name, name);
        }
    }
}
