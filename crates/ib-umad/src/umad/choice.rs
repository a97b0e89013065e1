//! Which port the MADs are sent from, and, if it has no QP0, which device has it.

use std::path::Path;

use ib_mad::{Class, PortNumber};

use super::device::{self, UmadPort};
use super::error::{DeviceError, Unsuitable};
use super::missing_qp0::MissingQp0;
use super::open_port::OpenPort;
use super::pair::{Wanted, partners};
use super::planes::Planes;
use super::system::System;

/// What the settings say about the port; what they do not say is found.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortChoice<'a> {
    /// The HCA.
    pub hca: Option<&'a str>,
    /// Its port.
    pub port: Option<PortNumber>,
    /// The device through which SMPs are sent instead.
    pub smi_hca: Option<&'a str>,
    /// The only port of that device that is used.
    pub smi_port: Option<PortNumber>,
}

/// An open port, and the planes that have its QP0.
#[derive(Debug)]
pub(super) struct Sides {
    pub main: OpenPort,
    pub planes: Option<Planes>,
}

/// The ports of this host and what is asked of them.
struct Host<'a> {
    system: &'a dyn System,
    sysfs: &'a Path,
    all: Vec<UmadPort>,
    choice: PortChoice<'a>,
}

/// Opens the chosen port, or the first that can be used.
pub(super) fn open(
    system: &dyn System,
    sysfs: &Path,
    choice: PortChoice<'_>,
    unsuitable: &dyn Fn(&str) -> Option<Unsuitable>,
) -> Result<Sides, DeviceError> {
    let all = UmadPort::all(sysfs);
    let candidates = device::usable(all.clone(), sysfs, choice.hca, choice.port, unsuitable)?;
    let host = Host { system, sysfs, all, choice };
    let mut refusal = None;
    for port in candidates {
        match host.open_sides(&port) {
            // Another port may support it.
            Err(error @ (DeviceError::NoSubnetManagement { .. } | DeviceError::NoQp1 { .. })) => {
                refusal.get_or_insert(error);
            }
            result => return result,
        }
    }
    Err(refusal.unwrap_or(DeviceError::NoDevice { directory: sysfs.display().to_string() }))
}

impl Host<'_> {
    /// Opens a port with both queue pairs, or with the device that has the other one.
    fn open_sides(&self, port: &UmadPort) -> Result<Sides, DeviceError> {
        if let Some(smi_hca) = self.choice.smi_hca.filter(|hca| *hca != port.hca) {
            return self.open_pair(port, smi_hca);
        }
        match OpenPort::open(self.system, self.sysfs, port, &Class::ALL) {
            Ok(main) => Ok(Sides { main, planes: None }),
            Err(DeviceError::NoQp0 { .. }) => self.open_with_smi_side(port),
            // The SMI side is never chosen automatically. A user who names it gets its parent, too.
            Err(error @ DeviceError::NoQp1 { .. }) if self.choice.hca.is_some() => {
                self.open_with_gsi_side(port).unwrap_or(Err(error))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a port that has no QP0 with the device that has it.
    fn open_with_smi_side(&self, port: &UmadPort) -> Result<Sides, DeviceError> {
        let devices = self.system.smi_devices();
        let mut failure = None;
        for hca in partners(self.sysfs, &self.all, port, Wanted::Smi, &devices) {
            match self.open_pair(port, &hca) {
                // It is not the SMI side.
                Err(DeviceError::NoQp0 { .. }) => {}
                Err(error) => {
                    failure.get_or_insert(error);
                }
                opened => return opened,
            }
        }
        Err(failure.unwrap_or_else(|| {
            let kernel = self.system.kernel_release();
            let why = MissingQp0::find(self.sysfs, &port.hca, kernel.as_deref());
            DeviceError::NoSubnetManagement { hca: port.hca.clone(), port: port.port, why }
        }))
    }

    /// Opens the parent of an SMI device with it; `None` if there is none.
    fn open_with_gsi_side(&self, port: &UmadPort) -> Option<Result<Sides, DeviceError>> {
        let devices = self.system.smi_devices();
        let parents = partners(self.sysfs, &self.all, port, Wanted::Gsi, &devices);
        let ports = parents.iter().filter_map(|hca| self.all.iter().find(|it| it.hca == *hca));
        let mut opened = ports.map(|parent| self.open_pair(parent, &port.hca));
        opened.find(|opened| !matches!(opened, Err(DeviceError::NoQp1 { .. })))
    }

    /// Opens a port for GMPs, and the ports of another device for SMPs.
    fn open_pair(&self, port: &UmadPort, smi_hca: &str) -> Result<Sides, DeviceError> {
        let classes: Vec<Class> = Class::ALL.into_iter().filter(|class| !class.is_smp()).collect();
        let planes = Planes::open(self.system, self.sysfs, &self.planes_of(smi_hca)?)?;
        let main = OpenPort::open(self.system, self.sysfs, port, &classes)?;
        Ok(Sides { main, planes: Some(planes) })
    }

    /// The ports of an SMI device that may be used.
    fn planes_of(&self, smi_hca: &str) -> Result<Vec<UmadPort>, DeviceError> {
        let of_device = || self.all.iter().filter(|port| port.hca == smi_hca);
        let known = |names: Vec<String>| device::list(names);
        if of_device().next().is_none() {
            let names = self.all.iter().map(|port| port.hca.clone()).collect();
            let (option, requested) = ("--fabric.smi-hca", smi_hca.to_owned());
            return Err(DeviceError::UnknownHca { option, requested, known: known(names) });
        }
        let is_chosen =
            |port: &&UmadPort| self.choice.smi_port.is_none_or(|number| number == port.port);
        let planes: Vec<UmadPort> = of_device().filter(is_chosen).cloned().collect();
        match self.choice.smi_port.filter(|_| planes.is_empty()) {
            Some(requested) => {
                let known = known(of_device().map(|port| port.port.to_string()).collect());
                let (option, hca) = ("--fabric.smi-port", smi_hca.to_owned());
                Err(DeviceError::UnknownPort { option, hca, requested, known })
            }
            None => Ok(planes),
        }
    }
}
