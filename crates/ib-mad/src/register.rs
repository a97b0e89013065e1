//! Registers of NVIDIA (Mellanox) devices, read by the AccessRegister attribute of the [vendor](crate::vendor) class.
//!
//! Only Get is sent, and a query has only the fields that select a port, a page or an index: the bits that act even
//! on a Get (PPCNT `clr`, MTMP `mtr`, the operations of SLRG) are no fields here, so no request can have them.
//!
//! Sources: mstflint's register tables (`tools_layouts/adb/prm`), its `mlxlink`, the kernel's mlxsw (`reg.h`), and
//! ibswinfo. Offsets are those of the tables, from the start of a register. Only the first block of a register is
//! read, 220 bytes. Not seen on hardware: newer fields are in space that older firmware leaves 0, so 0 means
//! "not reported", and what is implausible is left out.

mod module;

pub use module::{Module, monitor};

use crate::PortNumber;
use crate::layout::{Bits, attribute, bytes_at, dword_at};
use crate::mad::{Mad, Query};
use display_text::labeled_enum;

/// Offset of a register's data in the MAD: the class's data begins with the number of the block.
pub const START: usize = 36;

/// AttributeID of AccessRegister.
pub const ACCESS_REGISTER: u16 = 0x0051;

const fn dword(offset: usize, high: u8, low: u8) -> Bits {
    dword_at(START + offset, high, low)
}

const fn bytes(offset: usize, count: u8) -> Bits {
    bytes_at(START + offset, count)
}

/// Ports are selected by their InfiniBand numbers, not by the device's own (`pnat`).
const IB_PORT: u8 = 1;

/// What is read: a register, with the fields that select a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterQuery {
    /// [`PhysicalStatistics`] of a port.
    PhysicalStatistics(PortNumber),
    /// [`FecHistogram`] of a port.
    FecHistogram(PortNumber),
    /// [`Troubleshooting`] of a port.
    Troubleshooting(PortNumber),
    /// [`Module`] of a port.
    Module(PortNumber),
    /// [`LinkDown`] of a port.
    LinkDown(PortNumber),
    /// [`Temperature`] of a sensor: 0 is the ASIC.
    Temperature(u16),
    /// [`Temperatures`] of this many sensors from one on; modules begin at [`Temperatures::MODULES`].
    Temperatures {
        /// The first sensor.
        first: u16,
        /// How many, at most [`Temperatures::MAX`].
        count: u8,
    },
    /// [`Fans`]: which there are.
    Fans,
    /// [`FanSpeed`] of a fan.
    FanSpeed(u8),
    /// [`FanLimits`]: which are too slow or too fast.
    FanLimits,
    /// [`PowerSupplies`].
    PowerSupplies,
}

attribute! {
    /// The selection of a port's counters: PPCNT.
    pub struct CountersSelect = 0x5008 {
        port: u8 = dword(0x0, 23, 16), "Number of the port.";
        numbering: u8 = dword(0x0, 15, 14), "pnat: 1 for InfiniBand port numbers.";
        group: u8 = dword(0x0, 5, 0), "Group of counters.";
    }
}

attribute! {
    /// The selection of a port's page of diagnostic data: PDDR.
    pub struct DiagnosticSelect = 0x5031 {
        port: u8 = dword(0x0, 23, 16), "Number of the port.";
        numbering: u8 = dword(0x0, 15, 14), "pnat: 1 for InfiniBand port numbers.";
        microwatts: bool = dword(0x4, 29, 29), "Optical power in microwatts instead of whole dBm.";
        page: u8 = dword(0x4, 7, 0), "Page.";
    }
}

impl RegisterQuery {
    /// The register's ID, and the page, the group, the fan or the first sensor where it has several: what a device
    /// supports or not.
    pub fn kind(self) -> (u16, u8) {
        match self {
            Self::PhysicalStatistics(_) => (PhysicalStatistics::ID, 0x16),
            Self::FecHistogram(_) => (FecHistogram::ID, 0x23),
            Self::Troubleshooting(_) => (Troubleshooting::ID, 1),
            Self::Module(_) => (Module::ID, 3),
            Self::LinkDown(_) => (LinkDown::ID, 6),
            Self::Temperature(_) => (Temperature::ID, 0),
            Self::Temperatures { first, .. } => (Temperatures::ID, first as u8),
            Self::Fans => (Fans::ID, 0),
            Self::FanSpeed(fan) => (FanSpeed::ID, fan),
            Self::FanLimits => (FanLimits::ID, 0),
            Self::PowerSupplies => (PowerSupplies::ID, 0),
        }
    }

    /// The port that it is about, if any.
    pub fn port(self) -> Option<PortNumber> {
        match self {
            Self::PhysicalStatistics(port)
            | Self::FecHistogram(port)
            | Self::Troubleshooting(port)
            | Self::Module(port)
            | Self::LinkDown(port) => Some(port),
            _ => None,
        }
    }

    /// The Get of the register.
    pub fn get(self) -> Query {
        let modifier = self.kind().0.into();
        Query { register: Some(self), ..Query::vendor(ACCESS_REGISTER, modifier) }
    }

    /// The query of a request; `None` if it is of no register that is read here.
    pub fn decode(mad: &Mad) -> Option<Self> {
        let id = u16::try_from(mad.modifier()).ok()?;
        let CountersSelect { port, group, .. } = CountersSelect::decode(mad);
        Some(match (id, group, DiagnosticSelect::decode(mad).page) {
            (PhysicalStatistics::ID, 0x16, _) => Self::PhysicalStatistics(port),
            (FecHistogram::ID, 0x23, _) => Self::FecHistogram(port),
            (Troubleshooting::ID, _, 1) => Self::Troubleshooting(port),
            (Module::ID, _, 3) => Self::Module(port),
            (LinkDown::ID, _, 6) => Self::LinkDown(port),
            (Temperature::ID, ..) => Self::Temperature(Temperature::decode(mad).sensor),
            (Temperatures::ID, ..) => {
                let Temperatures { first, count, .. } = Temperatures::decode(mad);
                Self::Temperatures { first, count }
            }
            (Fans::ID, ..) => Self::Fans,
            (FanSpeed::ID, ..) => Self::FanSpeed(FanSpeed::decode(mad).fan),
            (FanLimits::ID, ..) => Self::FanLimits,
            (PowerSupplies::ID, ..) => Self::PowerSupplies,
            _ => return None,
        })
    }

    /// Writes the fields that select; what the device fills in is 0.
    pub(crate) fn encode(self, mad: &mut Mad) {
        let (numbering, page) = (IB_PORT, self.kind().1);
        match self {
            Self::PhysicalStatistics(port) | Self::FecHistogram(port) => {
                CountersSelect { port, numbering, group: page }.encode(mad);
            }
            Self::Troubleshooting(port) | Self::Module(port) | Self::LinkDown(port) => {
                let microwatts = matches!(self, Self::Module(_));
                DiagnosticSelect { port, numbering, microwatts, page }.encode(mad);
            }
            Self::Temperature(sensor) => Temperature { sensor, ..Default::default() }.encode(mad),
            Self::Temperatures { first, count } => {
                Temperatures { first, count, ..Default::default() }.encode(mad);
            }
            Self::FanSpeed(fan) => FanSpeed { fan, ..Default::default() }.encode(mad),
            Self::Fans | Self::FanLimits | Self::PowerSupplies => {}
        }
    }
}

/// Lanes of the widest port.
pub const LANES: usize = 8;

/// A bit error ratio as registers have it: coefficient times ten to the minus magnitude.
pub fn bit_error_ratio(coefficient: u8, magnitude: u8) -> Option<f64> {
    match (coefficient, magnitude) {
        // A magnitude of 0 is space that older firmware leaves 0: no ratio is 1 or more.
        (_, 0) => None,
        // 15e-255: no errors.
        (0, _) | (_, 255) => Some(0.0),
        (coefficient, magnitude) => Some(f64::from(coefficient) / 10f64.powi(magnitude.into())),
    }
}

attribute! {
    /// PPCNT, group 0x16: bits, errors and bit error ratios of a port's physical layer since its counters were last
    /// cleared, which tools and a new link do.
    pub struct PhysicalStatistics = 0x5008 {
        since_clear: u64 = bytes(0x08, 8), "Milliseconds since the last clear.";
        received_bits: u64 = bytes(0x10, 8), "Received bits.";
        symbol_errors: u64 = bytes(0x18, 8), "Errors that are left after FEC and retransmission (PLR).";
        corrected_bits: u64 = bytes(0x20, 8), "Bits that FEC corrected.";
        lane_errors: [u64; LANES] = bytes(0x28, 8), "Raw errors by lane, before FEC.";
        raw_magnitude: u8 = dword(0x68, 15, 8), "Magnitude of the raw BER.";
        raw_coefficient: u8 = dword(0x68, 3, 0), "Coefficient of the raw BER.";
        effective_magnitude: u8 = dword(0x6c, 15, 8), "Magnitude of the effective BER: after FEC.";
        effective_coefficient: u8 = dword(0x6c, 3, 0), "Coefficient of the effective BER.";
        symbol_magnitude: u8 = dword(0x70, 15, 8), "Magnitude of the symbol BER: after FEC and PLR.";
        symbol_coefficient: u8 = dword(0x70, 3, 0), "Coefficient of the symbol BER.";
        effective_errors: u64 = bytes(0x84, 8), "Errors that are left after FEC; 0 in older firmware.";
    }
}

impl PhysicalStatistics {
    /// The bit error ratio before FEC, if it is reported.
    pub fn raw_ber(&self) -> Option<f64> {
        bit_error_ratio(self.raw_coefficient, self.raw_magnitude)
    }

    /// The bit error ratio after FEC.
    pub fn effective_ber(&self) -> Option<f64> {
        bit_error_ratio(self.effective_coefficient, self.effective_magnitude)
    }

    /// The bit error ratio after FEC and retransmission (PLR).
    pub fn symbol_ber(&self) -> Option<f64> {
        bit_error_ratio(self.symbol_coefficient, self.symbol_magnitude)
    }
}

/// Bins of a histogram of FEC.
pub const BINS: usize = 16;

attribute! {
    /// PPCNT, group 0x23: Reed-Solomon blocks of a port by their number of corrected symbols. Newer devices have 21
    /// bins, of which the last five are not read.
    pub struct FecHistogram = 0x5008 {
        blocks: [u64; BINS] = bytes(0x08, 8), "Blocks by bin.";
    }
}

attribute! {
    /// PDDR, page 1: why a port has no link, or a bad one, as its firmware sees it. The sentence that follows the
    /// code is not read: the code says the same.
    pub struct Troubleshooting = 0x5031 {
        code: u16 = dword(0x0c, 15, 0), "Status code, see [`trouble`].";
    }
}

attribute! {
    /// PDDR, page 6: why a port's link last went down.
    pub struct LinkDown = 0x5031 {
        blame: u8 = dword(0x08, 3, 0), "1: the local side, 2: the remote side.";
        intent: u8 = dword(0x08, 7, 4), "1: intentional, 2: not.";
        local_reason: u8 = dword(0x0c, 7, 0), "Reason of the local side.";
        recovery_reason: u8 = dword(0x0c, 23, 16), "Reason of the last recovery.";
        remote_reason: u8 = dword(0x10, 7, 0), "Reason of the remote side.";
    }
}

attribute! {
    /// MTMP: the temperature of a sensor.
    pub struct Temperature = 0x900a {
        sensor: u16 = dword(0x0, 11, 0), "Number of the sensor.";
        degrees: u16 = dword(0x4, 15, 0), "An eighth of a degree Celsius, signed.";
        high: u16 = dword(0xc, 15, 0), "Threshold above which firmware acts.";
        name: [u8; 8] = bytes(0x18, 1), "Name, ASCII.";
    }
}

attribute! {
    /// MTBR: the temperatures of many sensors.
    pub struct Temperatures = 0x900f {
        first: u16 = dword(0x0, 11, 0), "The first sensor.";
        count: u8 = dword(0x4, 7, 0), "Number of records.";
        records: [u32; Temperatures::MAX] = bytes(0x10, 4), "Highest and current temperature, 16 bits each.";
    }
}

impl Temperatures {
    /// The sensor of module 0.
    pub const MODULES: u16 = 64;
    /// The most sensors that are read at once; the first block has room for 51.
    pub const MAX: usize = 32;

    /// The sensors that have a temperature, with their degrees Celsius.
    pub fn known(&self) -> impl Iterator<Item = (u16, f64)> {
        let records = self.records.into_iter().take(self.count.into()).enumerate();
        records.filter_map(|(nth, record)| {
            Some((self.first.checked_add(nth as u16)?, celsius(record as u16)?))
        })
    }
}

/// The temperature of a sensor in degrees Celsius, from eighths. The codes of sensors that have none (0x8000 and the
/// next), 0 and what is out of range are absent.
pub fn celsius(eighths: u16) -> Option<f64> {
    plausible_degrees(eighths, 8.0)
}

fn plausible_degrees(parts: u16, parts_per_degree: f64) -> Option<f64> {
    let degrees = f64::from(parts.cast_signed()) / parts_per_degree;
    // Temperatures that ibdiagnet accepts.
    (parts != 0 && (-40.0..=125.0).contains(&degrees)).then_some(degrees)
}

attribute! {
    /// MSPS: the power supplies of a switch. The register tables of mstflint have no layout: this one is ibswinfo's.
    pub struct PowerSupplies = 0x900d {
        first: [u32; PowerSupplies::WORDS] = bytes(0x0, 4), "The record of the first one.";
        second: [u32; PowerSupplies::WORDS] = bytes(0x50, 4), "The record of the second one.";
    }
}

/// What identifies a power supply. Managed switches report wrong states of theirs, so states are not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerSupply {
    /// ASCII.
    pub serial_number: [u8; 12],
    /// ASCII.
    pub part_number: [u8; 16],
}

impl PowerSupplies {
    /// The length of a record.
    pub const WORDS: usize = 20;
    /// The high half byte of the record of a power supply that is present.
    pub const PRESENT: u32 = 5;

    /// The power supplies that are present.
    pub fn supplies(&self) -> [Option<PowerSupply>; 2] {
        [self.first, self.second].map(|words| {
            let byte = |index: usize| words[index / 4].to_be_bytes()[index % 4];
            (words[0] >> 28 == PowerSupplies::PRESENT).then(|| PowerSupply {
                serial_number: std::array::from_fn(|index| byte(16 + index)),
                part_number: std::array::from_fn(|index| byte(48 + index)),
            })
        })
    }
}

attribute! {
    /// MFCR: the fans of a switch.
    pub struct Fans = 0x9001 {
        present: u16 = dword(0x4, 31, 16), "A bit for each fan with a tachometer.";
    }
}

attribute! {
    /// MFSM: the speed of a fan.
    pub struct FanSpeed = 0x9003 {
        fan: u8 = dword(0x0, 27, 24), "Number of the fan.";
        rpm: u16 = dword(0x4, 15, 0), "Rotations per minute.";
    }
}

attribute! {
    /// FORE: the fans that are out of range.
    pub struct FanLimits = 0x9007 {
        slow: u16 = dword(0x0, 31, 16), "Fans below their range, a bit each.";
        fast: u16 = dword(0x4, 31, 16), "Fans above their range.";
    }
}

/// Why a link went down, in the codes of [`LinkDown`]; `None` for 0 and codes without a known meaning.
pub fn down_reason(code: u8) -> Option<&'static str> {
    Some(match code {
        2 => "high bit error ratio",
        3 => "block lock lost",
        4 => "alignment lost",
        5 => "FEC synchronization lost",
        10 => "retransmission (PLR) timed out",
        12 => "credit watchdog expired",
        15..=18 => "link closed by command",
        22 => "disabled by management",
        23 => "module unplugged",
        25 => "module too hot",
        28..=31 => "fast recovery failed",
        32..=37 => "closed by the remote side",
        38 => "device reset",
        39 => "transmission of retransmission (PLR) packets failed",
        43 => "too many recoveries",
        47 => "high symbol error ratio",
        50 => "local fault",
        53 => "recovery by command",
        60 => "module in low power",
        _ => return None,
    })
}

/// Why a port has no link, or a bad one, in the codes of [`Troubleshooting`]; `None` for 0, which is no problem, and
/// codes without a known meaning.
pub fn trouble(code: u16) -> Option<&'static str> {
    Some(match code {
        1 => "closed by command",
        2..=8 => "negotiation or training fails",
        14 => "remote fault",
        15 | 17 | 42 | 48 => "bad signal integrity",
        34 | 35 => "link runs degraded",
        57 => "no signal from the remote side",
        70 => "bit error ratio too high",
        1024 => "module unplugged",
        1026 => "module's I2C bus is stuck",
        1027 => "module's EEPROM cannot be read",
        1028 => "module is not in the list of allowed part numbers",
        1029 => "module not supported",
        1030 => "module too hot",
        1031 => "module shorted",
        1032 | 1035 => "module exceeds the power budget",
        1033 => "forced down",
        1034 => "module disabled",
        1054 => "module in low power",
        _ => return None,
    })
}

labeled_enum! {
    /// Who caused that a link went down; the discriminants are the codes of [`LinkDown::blame`].
    #[repr(u8)]
    pub enum Side {
        Local = 1, "local", "The side that reports it.";
        Remote = 2, "remote", "The other side.";
    }
}

impl LinkDown {
    /// The reason in a few words: that of the side that caused it, or else of the other one. `None` if neither is
    /// reported; codes without a known meaning are shown as they are.
    pub fn reason(&self) -> Option<String> {
        let mut codes = [self.local_reason, self.remote_reason];
        if self.side() == Some(Side::Remote) {
            codes.reverse();
        }
        // 1: unknown.
        let code = codes.into_iter().find(|code| *code > 1)?;
        Some(down_reason(code).map_or_else(|| format!("code {code}"), str::to_owned))
    }

    /// The side and the reason: `remote side, device reset`.
    pub fn describe(&self) -> Option<String> {
        let side = self.side().map(|side| format!("{} side", side.label()));
        match (side, self.reason()) {
            (Some(side), Some(reason)) => Some(format!("{side}, {reason}")),
            (side, reason) => side.or(reason),
        }
    }

    /// The side that caused it, if it is known.
    pub fn side(&self) -> Option<Side> {
        Side::from_discriminant(self.blame)
    }
}

/// The text of a field: printable ASCII, without blanks and NULs at both ends, other characters replaced by `?`. What
/// a module says of itself is not trusted.
pub fn text(bytes: &[u8]) -> String {
    let is_blank = |byte: &u8| matches!(byte, 0 | b' ' | 0xff);
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    let bytes = &bytes[start..];
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let end = bytes[..end].iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
    let printable = |byte: &u8| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '?' };
    bytes[..end].iter().map(printable).collect()
}

#[cfg(test)]
mod tests;
