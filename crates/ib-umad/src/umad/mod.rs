//! The transport of a real port: MADs through the kernel's umad device.
//!
//! The header before each MAD and the ioctl numbers are ABI version 5 of the kernel
//! (include/uapi/rdma/ib_user_mad.h).

mod device;
mod error;
mod header;
mod partition;
mod sys;

pub use device::UmadPort;
pub use error::{DeviceError, Unsuitable};
pub use header::{HeaderFormat, decode};

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use ib_mad::moment::Anchor;
use ib_mad::p_key::PKey;
use ib_mad::{Class, Guid, Moment, PortNumber};
use process_clock::Clock;

use crate::transport::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};
use header::encode;
use partition::Partitions;
use sys::Descriptor;

/// Agent ids of the kernel, by class; `None` for a class that is not registered on this port.
type AgentIds = [Option<u32>; Class::ALL.len()];

/// Opens a device with privileges that this process has given up, for reading and writing without waiting.
pub type OpenDevice = dyn Fn(&Path) -> io::Result<OwnedFd>;

/// An open umad port.
#[derive(Debug)]
pub struct Umad {
    name: String,
    descriptor: Descriptor,
    header: HeaderFormat,
    agents: AgentIds,
    partitions: Partitions,
    port_guid: Option<Guid>,
    clock: Clock,
    buffer: Vec<u8>,
}

impl Umad {
    /// Opens the named port, else the first usable one, with the P_Key for GMPs. An HCA that is `unsuitable` is opened
    /// only by its name.
    pub fn open_first(
        sysfs: &Path,
        hca: Option<&str>,
        port: Option<PortNumber>,
        p_key: Option<PKey>,
        clock: Clock,
        unsuitable: &dyn Fn(&str) -> Option<Unsuitable>,
        opener: Option<&OpenDevice>,
    ) -> Result<(UmadPort, Umad), DeviceError> {
        let mut refusal = None;
        for port in device::usable(UmadPort::all(sysfs), sysfs, hca, port, unsuitable)? {
            match Umad::open(sysfs, &port, &Class::ALL, p_key, clock, opener) {
                Ok(umad) => return Ok((port, umad)),
                // Another port may support it.
                Err(error @ DeviceError::NoSubnetManagement { .. }) => {
                    refusal.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refusal.unwrap_or(DeviceError::NoDevice { directory: sysfs.display().to_string() }))
    }

    /// Opens a port for these classes. A RoCE port, which has no QP0, can only send GMPs. If this process may not open
    /// the device, `opener` does.
    pub fn open(
        sysfs: &Path,
        port: &UmadPort,
        classes: &[Class],
        p_key: Option<PKey>,
        clock: Clock,
        opener: Option<&OpenDevice>,
    ) -> Result<Umad, DeviceError> {
        let device = port.device.display().to_string();
        let descriptor = match (Descriptor::open(&port.device), opener) {
            (Err(error), Some(open)) if error.kind() == io::ErrorKind::PermissionDenied => {
                open(&port.device).map(Descriptor::from)
            }
            (direct, _) => direct,
        };
        let descriptor =
            descriptor.map_err(|error| DeviceError::from_open(device.clone(), error))?;
        let (header, agents) = register_all(&descriptor, classes).map_err(|error| {
            // The port has no QP0 (kernel, ib_mad: no such special QP).
            if error.raw_os_error() == Some(libc::EPROTONOSUPPORT)
                && classes.iter().any(|class| class.is_smp())
            {
                DeviceError::NoSubnetManagement { hca: port.hca.clone(), port: port.port }
            } else {
                DeviceError::Unusable { device: device.clone(), action: "register", error }
            }
        })?;
        tracing::debug!(%device, header = header.len(), "umad device opened");
        Ok(Umad {
            name: format!("{} port {} ({device})", port.hca, port.port),
            descriptor,
            header,
            agents,
            partitions: Partitions::new(sysfs, port, p_key, header)?,
            port_guid: device::port_guid(sysfs, port),
            clock,
            buffer: vec![0; HeaderFormat::Long.len() + ib_mad::LEN],
        })
    }

    fn gone(&self, error: &io::Error) -> TransportError {
        TransportError {
            device: self.name.clone(),
            problem: format!("the device was removed ({error})"),
        }
    }

    fn read(&mut self) -> Result<Option<Received>, TransportError> {
        match self.descriptor.read(&mut self.buffer) {
            Ok(0) => Ok(None),
            Ok(length) => Ok(Some(decode(&self.buffer[..length], self.header))),
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
}

/// Registers for each class. The first result decides the header format.
fn register_all(
    descriptor: &Descriptor,
    classes: &[Class],
) -> io::Result<(HeaderFormat, AgentIds)> {
    let mut agents = AgentIds::default();
    let mut header = HeaderFormat::Long;
    for (already, &class) in classes.iter().enumerate() {
        let qpn = u8::from(!class.is_smp());
        let id = match header {
            HeaderFormat::Long => descriptor.register2(qpn, class as u8),
            HeaderFormat::Short => descriptor.register(qpn, class as u8),
        };
        let id = match id {
            // Kernels before 3.18 and ibsim do not support REGISTER_AGENT2.
            Err(error)
                if already == 0
                    && matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) =>
            {
                header = HeaderFormat::Short;
                descriptor.register(qpn, class as u8)?
            }
            id => id?,
        };
        agents[class.index()] = Some(id);
    }
    Ok((header, agents))
}

impl MadTransport for Umad {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn anchor(&self) -> Anchor {
        self.clock.anchor()
    }

    fn local_port(&self) -> LocalPort {
        LocalPort { guid: self.port_guid, has_p_key: self.partitions.has_wanted() }
    }

    fn refresh(&mut self) {
        self.partitions.refresh();
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        let Some(agent) = self.agents[outgoing.class.index()] else {
            return Err(SendError::Refused(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT)));
        };
        // SMPs have no partition (IBTA 1.4, 10.9.8).
        let index =
            if outgoing.class.is_smp() { Some(0) } else { self.partitions.index(outgoing.p_key) };
        let Some(index) = index else {
            return Err(SendError::Refused(io::Error::other("P_Key not in the port's table")));
        };
        let (bytes, length) = encode(outgoing, self.header, agent, index);
        match self.descriptor.write(&bytes[..length]) {
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

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        if let Some(received) = self.read()? {
            return Ok(Some(received));
        }
        let limit = until.since(self.now()).min(Duration::from_secs(1));
        match self.descriptor.wait_readable(limit) {
            Ok(true) => self.read(),
            Ok(false) => Ok(None),
            Err(error) => Err(self.gone(&error)),
        }
    }
}
