//! The fields of a request that select a register, or a part of it.

use super::device::{FanLimits, FanSpeed, Fans, PowerSupplies, Temperature, Temperatures};
use super::fields::dword;
use super::module::Module;
use super::port::{FecHistogram, LinkDown, PhysicalStatistics, Troubleshooting};
use crate::ids::PortNumber;
use crate::layout::attribute;
use crate::mad::Mad;

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
            Self::Temperature(_)
            | Self::Temperatures { .. }
            | Self::Fans
            | Self::FanSpeed(_)
            | Self::FanLimits
            | Self::PowerSupplies => None,
        }
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
