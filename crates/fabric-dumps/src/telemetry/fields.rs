//! The fields of UFM Telemetry by their names.
//!
//! Names: "Low-Frequency (Secondary) Telemetry Fields" and "High-Frequency (Primary) Telemetry Fields" of NVIDIA's UFM
//! Enterprise manual 6.24, "Ports Counters Info" of the UFM Telemetry manual 1.22, and the plug-ins of
//! Mellanox/ufm_sdk_3.0 (3e96418e). Counter sets rename fields: `port_num` is `Port_Number` in another one. So case and
//! underscores do not count.

use ib_mad::Counter;

use crate::counters::{self, plain};

/// What a field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// When the row was read.
    Timestamp,
    NodeGuid,
    PortGuid,
    PortNumber,
    SystemGuid,
    /// 1 adapter, 2 switch, 3 router.
    NodeType,
    /// `legacy`, `plane`, or `aggregated`: all planes together.
    PortType,
    Description,
    /// PCI device id, or the name of the device.
    Device,
    Lid,
    PhysicalState,
    LogicalState,
    Speed,
    Width,
    Fec,
    PeerNode,
    PeerPort,
    PeerDescription,
    /// Temperature of the ASIC.
    ChipTemperature,
    /// A field of the module, by the name that ibdiagnet has for it.
    Module(&'static str),
    /// A counter, and whether its name is that of a field of 64 bits.
    Counter(Counter, bool),
    /// A counter of which another field may have a better value.
    Fallback(Counter),
    /// Registers of the physical layer.
    Physical(Physical),
}

/// What a field says of the physical layer: PPCNT, group 0x16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Physical {
    SinceClearMinutes,
    SinceClear,
    ReceivedBits,
    SymbolErrors,
    EffectiveErrors,
    CorrectedBits,
    LaneErrors(u8),
    RawBer,
    EffectiveBer,
    SymbolBer,
}

const NAMES: [(&str, Field); 54] = [
    ("timestamp", Field::Timestamp),
    ("nodeguid", Field::NodeGuid),
    ("portguid", Field::PortGuid),
    ("portnum", Field::PortNumber),
    ("portnumber", Field::PortNumber),
    ("port", Field::PortNumber),
    ("sysimageguid", Field::SystemGuid),
    ("systemimageguid", Field::SystemGuid),
    ("nodetype", Field::NodeType),
    ("porttype", Field::PortType),
    ("nodedescription", Field::Description),
    ("nodedesc", Field::Description),
    ("deviceid", Field::Device),
    ("lid", Field::Lid),
    ("phystate", Field::PhysicalState),
    ("physicalstate", Field::PhysicalState),
    ("logicalstate", Field::LogicalState),
    ("linkspeedactive", Field::Speed),
    ("linkwidthactive", Field::Width),
    ("activefec", Field::Fec),
    ("fecmodeactive", Field::Fec),
    ("linkpartnernodeguid", Field::PeerNode),
    ("linkpartnerportnum", Field::PeerPort),
    ("linkpartnerportnumber", Field::PeerPort),
    ("linkpartnerdescription", Field::PeerDescription),
    ("chiptemp", Field::ChipTemperature),
    ("chiptemperature", Field::ChipTemperature),
    ("cablesn", Field::Module("sn")),
    ("cableserialnumber", Field::Module("sn")),
    ("cablepn", Field::Module("pn")),
    ("cablepartnumber", Field::Module("pn")),
    ("cablevendor", Field::Module("vendor")),
    ("cabletype", Field::Module("type")),
    ("cablelength", Field::Module("length")),
    ("cableidentifier", Field::Module("identifier")),
    ("vendorrev", Field::Module("rev")),
    ("moduletemperature", Field::Module("temperature")),
    ("temperature", Field::Module("temperature")),
    // That of performance management, which MADs read. "Link_Down" is it, too, or the count of the physical layer.
    ("linkdownib", Field::Counter(Counter::LinkDowned, false)),
    ("linkdown", Field::Fallback(Counter::LinkDowned)),
    // What is left after all corrections, as SymbolErrorCounter of these devices counts it.
    ("symbolerrors", Field::Physical(Physical::SymbolErrors)),
    ("physymbolerrors", Field::Physical(Physical::SymbolErrors)),
    ("effectiveerrors", Field::Physical(Physical::EffectiveErrors)),
    ("phyeffectiveerrors", Field::Physical(Physical::EffectiveErrors)),
    ("phycorrectedbits", Field::Physical(Physical::CorrectedBits)),
    ("phyreceivedbits", Field::Physical(Physical::ReceivedBits)),
    ("timesincelastclear", Field::Physical(Physical::SinceClear)),
    ("timesincelastclearmin", Field::Physical(Physical::SinceClearMinutes)),
    ("timesincelastclear[min]", Field::Physical(Physical::SinceClearMinutes)),
    ("totalrawber", Field::Physical(Physical::RawBer)),
    ("rawber", Field::Physical(Physical::RawBer)),
    ("effectiveber", Field::Physical(Physical::EffectiveBer)),
    ("symbolber", Field::Physical(Physical::SymbolBer)),
    ("fecuncorrectableblockctr", Field::Counter(Counter::FecUncorrectableBlocks, false)),
];

/// The field of a name.
pub fn by_name(name: &str) -> Option<Field> {
    let name = plain(name.trim());
    if let Some((_, field)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(*field);
    }
    let lane = name.strip_prefix("rawerrorslane").or_else(|| name.strip_prefix("phyrawerrorslane"));
    if let Some(lane) = lane {
        return Some(Field::Physical(Physical::LaneErrors(lane.parse().ok()?)));
    }
    counters::by_name(&name).map(|(counter, is_wide)| Field::Counter(counter, is_wide))
}
