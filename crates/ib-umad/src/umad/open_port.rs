//! A port whose umad device is open and registered for classes.

use std::io;
use std::path::Path;

use ib_mad::Class;

use super::device::{Identity, UmadPort};
use super::error::DeviceError;
use super::file::UmadFile;
use super::header::{HeaderFormat, decode, encode};
use super::sys;
use super::system::System;
use crate::transport::{OutgoingMad, Received, SendError, TransportError};

/// Agent ids of the kernel, by class; `None` for a class that is not registered on this port.
type AgentIds = [Option<u32>; Class::ALL.len()];

/// One descriptor. Only responses to what was sent through it are read from it.
#[derive(Debug)]
pub(super) struct OpenPort {
    pub port: UmadPort,
    name: String,
    file: Box<dyn UmadFile>,
    header: HeaderFormat,
    agents: AgentIds,
    /// When it was opened.
    identity: Identity,
    buffer: Vec<u8>,
}

impl OpenPort {
    /// Opens a port for these classes.
    pub fn open(
        system: &dyn System,
        sysfs: &Path,
        port: &UmadPort,
        classes: &[Class],
    ) -> Result<OpenPort, DeviceError> {
        check_abi_version(sysfs)?;
        let device = port.device.display().to_string();
        let file = system.open(&port.device);
        let file = file.map_err(|error| DeviceError::from_open(device.clone(), error))?;
        let register = |header, qpn, class: Class| file.register(header, qpn, class as u8);
        let registered = register_all(classes, &device, register);
        let (header, agents) = registered.map_err(|RefusedClass { class, error }| {
            // The port does not have the queue pair (kernel, ib_register_mad_agent: no such special QP).
            let (hca, port) = (port.hca.clone(), port.port);
            match error.raw_os_error() {
                Some(libc::EPROTONOSUPPORT) if class.is_smp() => DeviceError::NoQp0 { hca, port },
                Some(libc::EPROTONOSUPPORT) => DeviceError::NoQp1 { hca, port },
                _ => DeviceError::Unusable { device: device.clone(), action: "register", error },
            }
        })?;
        tracing::debug!(%device, header = header.len(), "umad device opened");
        Ok(OpenPort {
            name: format!("{} port {} ({device})", port.hca, port.port),
            identity: Identity::read(sysfs, port),
            port: port.clone(),
            file,
            header,
            agents,
            buffer: vec![0; HeaderFormat::Long.len() + ib_mad::LEN],
        })
    }

    /// The format of its headers.
    pub fn header(&self) -> HeaderFormat {
        self.header
    }

    /// Whether MADs of a class can be sent through it.
    pub fn is_registered(&self, class: Class) -> bool {
        self.agents[class.index()].is_some()
    }

    /// Whether its device is still the one that was opened.
    pub fn is_present(&self, sysfs: &Path) -> bool {
        Identity::read(sysfs, &self.port) == self.identity
    }

    /// The number of its descriptor.
    pub fn number(&self) -> libc::c_int {
        self.file.number()
    }

    /// Sends a MAD with the P_Key of this index.
    pub fn send(&self, outgoing: &OutgoingMad, p_key_index: u16) -> Result<(), SendError> {
        let Some(agent) = self.agents[outgoing.class.index()] else {
            return Err(SendError::Refused(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT)));
        };
        let (bytes, length) = encode(outgoing, self.header, agent, p_key_index);
        match self.file.write(&bytes[..length]) {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => SendError::Full,
                Some(libc::EIO | libc::ENODEV | libc::EBADF) => {
                    SendError::Transport(self.gone(&error))
                }
                _ => SendError::Refused(error),
            }),
        }
    }

    /// Reads what has arrived.
    pub fn read(&mut self) -> Result<Option<Received>, TransportError> {
        match self.file.read(&mut self.buffer) {
            Ok(0) => Ok(None),
            Ok(length) => {
                let read = self.buffer.get(..length).unwrap_or_default();
                Ok(Some(decode(read, self.header)))
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                // Longer than any requested MAD; the kernel keeps it until it is read.
                Some(libc::ENOSPC) => {
                    self.buffer.resize(self.buffer.len() * 2, 0);
                    Ok(None)
                }
                _ => Err(self.gone(&error)),
            },
        }
    }

    pub fn gone(&self, error: &io::Error) -> TransportError {
        TransportError {
            device: self.name.clone(),
            problem: format!("the device was removed ({error})"),
        }
    }
}

/// The ABI version whose header and ioctls this crate has; libibumad wants the same.
const ABI_VERSION: u32 = 5;

/// Refuses another ABI version: its header may have other fields. A sysfs without the file is accepted, because the
/// header was the same before the file was.
fn check_abi_version(sysfs: &Path) -> Result<(), DeviceError> {
    let path = sysfs.join("class/infiniband_mad/abi_version");
    let found = sys::read_text(&path).ok().and_then(|text| text.trim().parse().ok());
    match found.filter(|found| *found != ABI_VERSION) {
        Some(found) => Err(DeviceError::AbiVersion { found }),
        None => Ok(()),
    }
}

/// Why a class could not be registered.
#[derive(Debug)]
struct RefusedClass {
    class: Class,
    error: io::Error,
}

/// Registers for each class. The first result decides the header format. The vendor class is optional: without it no
/// registers are read, and all else works.
fn register_all(
    classes: &[Class],
    device: &str,
    register: impl Fn(HeaderFormat, u8, Class) -> io::Result<u32>,
) -> Result<(HeaderFormat, AgentIds), RefusedClass> {
    let mut agents = AgentIds::default();
    let mut header = HeaderFormat::Long;
    for (already, &class) in classes.iter().enumerate() {
        let qpn = u8::from(!class.is_smp());
        let id = match register(header, qpn, class) {
            // Kernels before 3.18 and ibsim do not support REGISTER_AGENT2.
            Err(error)
                if already == 0
                    && matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) =>
            {
                header = HeaderFormat::Short;
                register(header, qpn, class)
            }
            id => id,
        };
        match id {
            Ok(id) => agents[class.index()] = Some(id),
            Err(error) if class == Class::Vendor && already > 0 => {
                tracing::warn!(
                    device, %error,
                    "registration for the vendor-specific management class failed: no registers are read"
                );
            }
            Err(error) => return Err(RefusedClass { class, error }),
        }
    }
    Ok((header, agents))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is registered if the registrations for a class fail.
    fn registered(refused: Class, code: i32) -> Result<(HeaderFormat, Vec<Class>), RefusedClass> {
        let register = |_, _, class: Class| match class {
            _ if class == refused => Err(io::Error::from_raw_os_error(code)),
            _ => Ok(class as u32),
        };
        let (header, agents) = register_all(&Class::ALL, "umad0", register)?;
        let classes = Class::ALL.into_iter();
        Ok((header, classes.filter(|class| agents[class.index()].is_some()).collect()))
    }

    #[test]
    fn vendor_class_is_optional() {
        for code in [libc::EPERM, libc::EINVAL, libc::ENOMEM] {
            let (header, classes) = registered(Class::Vendor, code).unwrap();
            assert_eq!(header, HeaderFormat::Long);
            let all_but_it = [Class::SubnetDirected, Class::SubnetLid, Class::Performance];
            assert_eq!(classes, all_but_it, "{code}");
            for class in all_but_it {
                let refused = registered(class, code).unwrap_err();
                assert_eq!((refused.class, refused.error.raw_os_error()), (class, Some(code)));
            }
        }
    }

    #[test]
    fn header_is_short_if_agents_have_the_old_form_only() {
        let register = |header, qpn, class: Class| match header {
            HeaderFormat::Long => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            HeaderFormat::Short => Ok(u32::from(qpn) << 8 | class as u32),
        };
        let (header, agents) = register_all(&Class::ALL, "umad0", register).unwrap();
        assert_eq!(header, HeaderFormat::Short);
        assert_eq!(agents, [Some(0x81), Some(0x01), Some(0x104), Some(0x10a)]);
    }

    #[test]
    fn other_abi_version_is_refused() {
        let sysfs = tempfile::tempdir().unwrap();
        assert!(check_abi_version(sysfs.path()).is_ok(), "no file");
        let directory = sysfs.path().join("class/infiniband_mad");
        std::fs::create_dir_all(&directory).unwrap();
        // An empty file says nothing.
        for (text, accepted) in [("5\n", true), ("6\n", false), ("", true)] {
            std::fs::write(directory.join("abi_version"), text).unwrap();
            let checked = check_abi_version(sysfs.path()).map_err(|error| error.to_string());
            assert_eq!(checked.is_ok(), accepted, "{text:?}");
            let error = checked.err().unwrap_or_default();
            assert!(accepted || error.contains("--no-collector.fabric"), "{error}");
        }
    }
}
