//! The transport of a real port: MADs through the kernel's umad devices.
//!
//! The header before each MAD and the ioctl numbers are ABI version 5 of the kernel
//! (include/uapi/rdma/ib_user_mad.h).

mod choice;
mod device;
mod error;
mod file;
mod header;
mod missing_qp0;
mod open_port;
mod pair;
mod partition;
mod planes;
mod sys;
mod system;

pub use choice::PortChoice;
pub use device::UmadPort;
pub use error::{DeviceError, Unsuitable};
pub use header::{HeaderFormat, decode};
pub use missing_qp0::MissingQp0;
pub use planes::{PlaneStatus, SmiSide};
pub use system::OpenDevice;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ib_mad::moment::Anchor;
use ib_mad::p_key::PKey;
use ib_mad::{Class, Guid, Moment};
use process_clock::Clock;

use crate::plane_set::PlaneSet;
use crate::transport::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};
use open_port::OpenPort;
use partition::Partitions;
use planes::Planes;
use sys::Waited;
use system::{System, ThisHost};

/// An open port: one descriptor, or, on a multi-plane HCA, one for GMPs and one for the SMPs of each plane.
#[derive(Debug)]
pub struct Umad {
    main: OpenPort,
    smi: Option<Smi>,
    partitions: Partitions,
    port_guid: Option<Guid>,
    sysfs: PathBuf,
    clock: Clock,
}

/// The descriptors of a multi-plane HCA beside the main one.
#[derive(Debug)]
struct Smi {
    planes: Planes,
    /// The descriptor that each request was sent through, by transaction id: 0 is the main one, the planes follow. The
    /// kernel reports each request once, by its response or its time-out.
    awaited: HashMap<u32, usize>,
    /// What arrived while the planes were checked.
    early: VecDeque<Received>,
    /// The descriptor that is read first, so that none waits for another one.
    first: usize,
}

impl Smi {
    fn new(planes: Planes) -> Self {
        Smi { planes, awaited: HashMap::new(), early: VecDeque::new(), first: 0 }
    }

    fn check(&mut self, clock: Clock) -> Result<(), TransportError> {
        let Smi { planes, awaited, early, .. } = self;
        planes.check(clock, |plane, received| early.extend(expected(awaited, plane + 1, received)))
    }
}

/// What a descriptor received, unless it ends a request that was sent through another one.
fn expected(
    awaited: &mut HashMap<u32, usize>,
    descriptor: usize,
    received: Received,
) -> Option<Received> {
    let transaction_id = match &received {
        Received::Mad { mad, .. } => mad.transaction_id(),
        Received::Expired { transaction_id, .. } => *transaction_id,
        Received::Malformed { .. } => return Some(received),
    };
    if awaited.get(&transaction_id) != Some(&descriptor) {
        tracing::debug!(descriptor, ?received, "response to no request of this descriptor dropped");
        return None;
    }
    awaited.remove(&transaction_id);
    Some(received)
}

impl Umad {
    /// Opens the chosen port, else the first usable one, with the P_Key for GMPs. An HCA that is `unsuitable` is opened
    /// only by its name.
    pub fn open_first(
        sysfs: &Path,
        choice: PortChoice<'_>,
        p_key: Option<PKey>,
        clock: Clock,
        unsuitable: &dyn Fn(&str) -> Option<Unsuitable>,
        opener: Option<&OpenDevice>,
    ) -> Result<(UmadPort, Umad), DeviceError> {
        let system = ThisHost { opener };
        Umad::open_chosen(&system, sysfs, choice, p_key, clock, unsuitable)
    }

    fn open_chosen(
        system: &dyn System,
        sysfs: &Path,
        choice: PortChoice<'_>,
        p_key: Option<PKey>,
        clock: Clock,
        unsuitable: &dyn Fn(&str) -> Option<Unsuitable>,
    ) -> Result<(UmadPort, Umad), DeviceError> {
        let sides = choice::open(system, sysfs, choice, unsuitable)?;
        let port = sides.main.port.clone();
        let mut umad = Umad::new(sysfs, sides.main, sides.planes, p_key, clock)?;
        if let Some(smi) = &mut umad.smi
            && let Err(error) = smi.check(clock)
        {
            tracing::debug!(%error, "states of the planes unknown");
        }
        if let Some(SmiSide { hca: smi_hca, planes }) = umad.smi_side() {
            let usable = planes.iter().filter(|status| status.is_usable()).count();
            let (hca, planes) = (&port.hca, planes.len());
            tracing::info!(
                hca,
                smi_hca,
                planes,
                usable,
                "multi-plane HCA: SMPs are sent through its SMI device"
            );
        }
        Ok((port, umad))
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
        let main = OpenPort::open(&ThisHost { opener }, sysfs, port, classes)?;
        Umad::new(sysfs, main, None, p_key, clock)
    }

    fn new(
        sysfs: &Path,
        main: OpenPort,
        planes: Option<Planes>,
        p_key: Option<PKey>,
        clock: Clock,
    ) -> Result<Umad, DeviceError> {
        Ok(Umad {
            partitions: Partitions::new(sysfs, &main.port, p_key, main.header())?,
            port_guid: device::port_guid(sysfs, &main.port),
            sysfs: sysfs.to_owned(),
            smi: planes.map(Smi::new),
            main,
            clock,
        })
    }

    /// The device and the planes through which SMPs are sent, if the port itself has no QP0.
    pub fn smi_side(&self) -> Option<SmiSide> {
        self.smi.as_ref().map(|smi| smi.planes.side())
    }

    /// Reads from each descriptor in turn, until one has something.
    fn read(&mut self) -> Result<Option<Received>, TransportError> {
        let Some(smi) = &mut self.smi else { return self.main.read() };
        if let Some(received) = smi.early.pop_front() {
            return Ok(Some(received));
        }
        let count = 1 + smi.planes.ports.len();
        for turn in 0..count {
            let descriptor = (smi.first + turn) % count;
            let port = match descriptor.checked_sub(1) {
                None => &mut self.main,
                Some(plane) => &mut smi.planes.ports[plane],
            };
            while let Some(received) = port.read()? {
                if let Some(received) = expected(&mut smi.awaited, descriptor, received) {
                    smi.first = descriptor + 1;
                    return Ok(Some(received));
                }
            }
        }
        Ok(None)
    }

    /// Waits until a descriptor has something to read.
    fn wait(&self, limit: Duration) -> Result<bool, TransportError> {
        let planes = self.smi.iter().flat_map(|smi| &smi.planes.ports);
        let ports = || std::iter::once(&self.main).chain(planes.clone());
        match sys::wait_readable(ports().map(OpenPort::number), limit) {
            Ok(Waited::Gone(index)) => {
                let port = ports().nth(index).unwrap_or(&self.main);
                Err(port.gone(&io::Error::from_raw_os_error(libc::ENODEV)))
            }
            Ok(waited) => Ok(waited == Waited::Readable),
            Err(error) => Err(self.main.gone(&error)),
        }
    }
}

impl MadTransport for Umad {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn anchor(&self) -> Anchor {
        self.clock.anchor()
    }

    fn local_port(&self) -> LocalPort {
        let mut planes = self.smi.iter().flat_map(|smi| &smi.planes.ports);
        LocalPort {
            guid: self.port_guid,
            lid: device::port_lid(&self.sysfs, &self.main.port),
            has_p_key: self.partitions.has_wanted(),
            has_vendor_class: self.main.is_registered(Class::Vendor),
            is_present: self.main.is_present(&self.sysfs)
                && planes.all(|plane| plane.is_present(&self.sysfs)),
            planes: self.smi.as_ref().map_or(PlaneSet::EMPTY, |smi| smi.planes.usable()),
        }
    }

    fn refresh(&mut self) {
        self.partitions.refresh();
        if let Some(smi) = &mut self.smi
            && let Err(error) = smi.check(self.clock)
        {
            // The next MAD that is sent or received ends the transport.
            tracing::debug!(%error, "states of the planes unknown");
        }
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        let is_smp = outgoing.class.is_smp();
        // SMPs have no partition (IBTA 1.4, 10.9.8).
        let index = if is_smp { Some(0) } else { self.partitions.index(outgoing.p_key) };
        let Some(index) = index else {
            return Err(SendError::Refused(io::Error::other("P_Key not in the port's table")));
        };
        let Some(smi) = &mut self.smi else {
            if outgoing.plane > 0 {
                return Err(SendError::Refused(io::Error::other("the HCA has no planes")));
            }
            return self.main.send(outgoing, index);
        };
        let descriptor = if is_smp {
            let Some(plane) = smi.planes.find(outgoing.plane) else {
                return Err(SendError::Refused(io::Error::other("the plane is not Active")));
            };
            smi.planes.ports[plane].send(outgoing, index)?;
            plane + 1
        } else {
            self.main.send(outgoing, index)?;
            0
        };
        smi.awaited.insert(outgoing.mad.transaction_id(), descriptor);
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        if let Some(received) = self.read()? {
            return Ok(Some(received));
        }
        let limit = until.since(self.now()).min(Duration::from_secs(1));
        if self.wait(limit)? { self.read() } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests;
