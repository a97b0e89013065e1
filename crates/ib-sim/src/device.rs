//! Device models: what the agents of each generation of switches and adapters support, in one
//! table.

use ib_mad::class_port_info::PmaCapabilities;
use ib_mad::counter::Counter;
use ib_mad::node::NodeKind;
use ib_mad::rate::Speed;

/// A generation of switches or adapters.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent features")]
pub struct DeviceModel {
    /// Its name in scenarios.
    pub name: &'static str,
    /// The kind of node.
    pub kind: NodeKind,
    /// NodeInfo:VendorID.
    pub vendor_id: u32,
    /// NodeInfo:DeviceID.
    pub device_id: u16,
    /// The DeviceIDs of close relatives, which respond in the same way.
    pub related_ids: &'static [u16],
    /// The highest speed. It supports all lower ones but FDR10.
    pub fastest: Speed,
    /// LinkWidthSupported, a mask of codes.
    pub widths: u8,
    /// ClassPortInfo capabilities of its performance management agent.
    pub performance: PmaCapabilities,
    /// It has PortRcvErrorDetails and PortXmitDiscardDetails: the causes of receive errors and
    /// discards.
    pub details: bool,
    /// It has PortExtendedSpeedsCounters, and its PortInfoExtended has the FEC mode.
    pub fec: bool,
    /// PortSamplesControl:Tick, if it has the attribute: a tick of PortXmitWait is this + 1 symbol
    /// times.
    pub tick: Option<u8>,
    /// PortSamplesControl:OptionMask; 0 announces nothing.
    pub options: u64,
    /// Fields of PortCountersExtended that stay at 0, though ClassPortInfo announces them.
    pub unused64: &'static [Counter],
    /// A port that loses its link discards packets until its switch has other routes, whatever the
    /// traffic; a port that gets a link receives packets to destinations that have no route yet.
    pub counts_benign: bool,
    /// Its subnet management agent has MellanoxExtendedPortInfo, with bits for FDR10.
    pub mellanox_ext_port_info: bool,
}

const MELLANOX: u32 = 0x2c9;
/// LinkWidth masks: 1x and 4x; with 2x, as HDR has it for split cables; all widths.
const X1_4: u8 = 1 | 2;
const X1_2_4: u8 = 1 | 2 | 16;
const ALL_WIDTHS: u8 = 31;

const fn row(
    name: &'static str,
    kind: NodeKind,
    device_id: u16,
    fastest: Speed,
    (mask, mask2): (u16, u32),
) -> DeviceModel {
    let modern = mask2 != 0;
    DeviceModel {
        name,
        kind,
        vendor_id: MELLANOX,
        device_id,
        related_ids: &[],
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

/// 64-bit traffic counters without those of unicast and multicast packets (ConnectX-3 and its
/// time).
const TRAFFIC64: (u16, u32) = (0x0400 | 0x1000, 0);
/// 64-bit traffic counters with those of unicast and multicast packets, and XmitWait: ibsim's own,
/// with AllPortSelect on switches.
const IBSIM_SWITCH: (u16, u32) = (0x1300, 0);
const IBSIM_HCA: (u16, u32) = (0x1200, 0);
/// All counters in 64 bits, RS-FEC counters, QP1Dropped.
const ALL64: (u16, u32) = (0x0200 | 0x1000 | 0x4000 | 0x8000, 2);
const ALL64_SWITCH: (u16, u32) = (ALL64.0 | 0x0100, 2);

/// RS-FEC counters, extended-speed counters, XmitWait and 64-bit traffic; errors in PortCounters
/// only.
const CONNECTX_4: (u16, u32) = (0x5a00, 0);
/// OptionMask as observed on ConnectX-7, and on Quantum-2 and its aggregation nodes.
const CONNECTX_7_OPTIONS: u64 = 0x01a6_0000_10cc_33c0;
const QUANTUM_2_OPTIONS: u64 = 0x0180_0000_008c_f7fc;

/// All models. The ids are those of the PCI database and of public `ibnetdiscover` output. The last
/// three stand for all unknown devices and respond as ibsim 0.10 does.
///
/// ConnectX-4, ConnectX-7 with firmware 28.40 and 28.41, Quantum-2 with firmware 31.2012 and its
/// aggregation nodes respond as in public ibdiagnet dumps of such devices. ConnectX-5, -6 and -8
/// were not observed: that they fill all fields is what they announce.
pub static MODELS: [DeviceModel; 17] = [
    // mthca: the narrow, saturating counters and nothing else.
    DeviceModel { details: false, ..row("infinihost-3", NodeKind::Ca, 25218, Speed::Ddr, (0, 0)) },
    // And ConnectX-3 Pro.
    DeviceModel {
        related_ids: &[4103],
        ..row("connectx-3", NodeKind::Ca, 4099, Speed::Fdr, TRAFFIC64)
    },
    DeviceModel { fec: true, ..row("connectx-4", NodeKind::Ca, 4115, Speed::Edr, CONNECTX_4) },
    // And ConnectX-5 Ex and BlueField.
    DeviceModel {
        related_ids: &[4121, 41682],
        ..row("connectx-5", NodeKind::Ca, 4119, Speed::Edr, ALL64)
    },
    // And BlueField-2.
    DeviceModel {
        related_ids: &[41686],
        ..row("connectx-6", NodeKind::Ca, 4123, Speed::Hdr, ALL64)
    },
    // And BlueField-3.
    DeviceModel {
        related_ids: &[41692],
        tick: Some(7),
        options: CONNECTX_7_OPTIONS,
        unused64: &[Counter::SymbolErrors, Counter::LinkDowned],
        ..row("connectx-7", NodeKind::Ca, 4129, Speed::Ndr, ALL64)
    },
    row("connectx-8", NodeKind::Ca, 4131, Speed::Xdr, ALL64),
    // The part of a Quantum or Quantum-2 that reduces data (SHARP), behind a port of its own.
    DeviceModel {
        tick: Some(7),
        options: QUANTUM_2_OPTIONS,
        ..row("aggregation-node", NodeKind::Ca, 53001, Speed::Ndr, ALL64)
    },
    DeviceModel {
        tick: Some(31),
        ..row("infiniscale-4", NodeKind::Switch, 48438, Speed::Qdr, (0x0300, 0))
    },
    DeviceModel {
        tick: Some(31),
        ..row("switchx", NodeKind::Switch, 51000, Speed::Fdr, (0x1300, 0))
    },
    DeviceModel {
        tick: Some(31),
        // And Switch-IB.
        related_ids: &[52000],
        ..row("switch-ib-2", NodeKind::Switch, 53000, Speed::Edr, ALL64_SWITCH)
    },
    DeviceModel {
        tick: Some(7),
        ..row("quantum", NodeKind::Switch, 54000, Speed::Hdr, ALL64_SWITCH)
    },
    DeviceModel {
        tick: Some(7),
        options: QUANTUM_2_OPTIONS,
        counts_benign: true,
        ..row("quantum-2", NodeKind::Switch, 54002, Speed::Ndr, ALL64_SWITCH)
    },
    DeviceModel {
        tick: Some(7),
        ..row("quantum-3", NodeKind::Switch, 54004, Speed::Xdr, ALL64_SWITCH)
    },
    DeviceModel { widths: ALL_WIDTHS, ..row("any-hca", NodeKind::Ca, 0, Speed::Hdr, IBSIM_HCA) },
    DeviceModel {
        widths: ALL_WIDTHS,
        ..row("any-router", NodeKind::Router, 0, Speed::Hdr, IBSIM_HCA)
    },
    DeviceModel {
        widths: ALL_WIDTHS,
        ..row("any-switch", NodeKind::Switch, 0, Speed::Hdr, IBSIM_SWITCH)
    },
];

impl DeviceModel {
    /// The model with this name.
    pub fn by_name(name: &str) -> Option<&'static DeviceModel> {
        MODELS.iter().find(|model| model.name == name)
    }

    /// Its index in the table.
    pub fn index(&'static self) -> usize {
        MODELS.iter().position(|row| std::ptr::eq(row, self)).unwrap_or_default()
    }

    /// The model of a DeviceID, or that of unknown devices of the kind.
    pub fn for_device(kind: NodeKind, device_id: u16) -> &'static DeviceModel {
        let kind = if kind == NodeKind::AggregationNode { NodeKind::Ca } else { kind };
        let of_kind = || MODELS.iter().filter(move |model| model.kind == kind);
        let is = |model: &&DeviceModel| {
            model.device_id == device_id || model.related_ids.contains(&device_id)
        };
        let found = of_kind().find(is);
        // The last row of each kind is for unknown devices.
        found.or_else(|| of_kind().next_back()).unwrap_or(&MODELS[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_name_identify_each_model() {
        for (index, model) in MODELS.iter().enumerate() {
            assert_eq!(model.index(), index, "{}", model.name);
            assert_eq!(DeviceModel::by_name(model.name).map(DeviceModel::index), Some(index));
        }
    }

    #[test]
    fn device_id_selects_the_model() {
        assert_eq!(DeviceModel::for_device(NodeKind::Ca, 4129).name, "connectx-7");
        assert_eq!(DeviceModel::for_device(NodeKind::Ca, 41692).name, "connectx-7");
        assert_eq!(DeviceModel::for_device(NodeKind::Ca, 4115).name, "connectx-4");
        assert_eq!(
            DeviceModel::for_device(NodeKind::AggregationNode, 53001).name,
            "aggregation-node"
        );
        assert_eq!(DeviceModel::for_device(NodeKind::Switch, 54004).name, "quantum-3");
        assert_eq!(DeviceModel::for_device(NodeKind::Switch, 52000).name, "switch-ib-2");
        for (kind, name) in [
            (NodeKind::Ca, "any-hca"),
            (NodeKind::AggregationNode, "any-hca"),
            (NodeKind::Switch, "any-switch"),
            (NodeKind::Router, "any-router"),
        ] {
            assert_eq!(DeviceModel::for_device(kind, 9).name, name);
        }
    }
}
