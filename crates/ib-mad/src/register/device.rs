//! The temperatures, fans and power supplies of a device.

use super::fields::{bytes, dword, plausible_degrees};
use crate::layout::attribute;

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
