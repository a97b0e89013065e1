//! A real port's wire: MADs through the kernel's umad device.
//!
//! The header before each MAD and the numbers of the calls are the kernel's ABI, version 5
//! (include/uapi/rdma/ib_user_mad.h).

mod device;
mod partition;
mod sys;

pub use device::{DeviceError, UmadPort};

use std::io;
use std::path::Path;
use std::time::Duration;

use ib_mad::moment::Anchor;
use ib_mad::p_key::PKey;
use ib_mad::{Class, Mad};
use ib_mad::{Guid, Lid, Moment, PortNumber};

use super::{Parcel, Received, SendError, Wire, WireError};
use ib_mad::clock::Clock;
use partition::Partitions;
use sys::{Descriptor, RegisterAgent, RegisterAgent2};

/// Which form of the header the device speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// With the P_Key index: the kernel's since 2.6.24, switched on by REGISTER_AGENT2.
    Long,
    /// Without: what a device speaks until something switches the other form on. ibsim knows no
    /// REGISTER_AGENT2 and speaks only this.
    Short,
}

impl Header {
    fn len(self) -> usize {
        match self {
            Header::Long => 64,
            Header::Short => 56,
        }
    }
}

/// The kernel's number for a request that was not answered in time; the only one it reports.
const ETIMEDOUT: u32 = libc::ETIMEDOUT as u32;

/// What comes back of a request that was not answered: the MAD's first 24 bytes.
const ECHO: usize = 24;

/// Fields of the header that hold the same in both forms.
mod field {
    use std::ops::Range;
    pub const AGENT: Range<usize> = 0..4;
    pub const STATUS: Range<usize> = 4..8;
    pub const TIMEOUT_MS: Range<usize> = 8..12;
    pub const LENGTH: Range<usize> = 16..20;
    pub const QPN: Range<usize> = 20..24;
    pub const QKEY: Range<usize> = 24..28;
    pub const LID: Range<usize> = 28..30;
    pub const SL: usize = 30;
    pub const GRH_PRESENT: usize = 32;
    pub const GID_INDEX: usize = 33;
    pub const HOP_LIMIT: usize = 34;
    pub const TRAFFIC_CLASS: usize = 35;
    pub const GID: Range<usize> = 36..52;
    pub const FLOW_LABEL: Range<usize> = 52..56;
    /// Of the long form alone. It is the kernel's own number, not one of the wire.
    pub const PKEY_INDEX: Range<usize> = 56..58;
}

/// The kernel's numbers for us, by class; none for a class that is not spoken on this port.
type Agents = [Option<u32>; Class::ALL.len()];

/// An open port.
#[derive(Debug)]
pub struct Umad {
    name: String,
    descriptor: Descriptor,
    header: Header,
    agents: Agents,
    partitions: Partitions,
    port_guid: Option<Guid>,
    clock: Clock,
    buffer: Vec<u8>,
}

impl Umad {
    /// Opens the port that was named, else the first that will do, to ask in a partition.
    pub fn open_first(
        sysfs: &Path,
        hca: Option<&str>,
        port: Option<PortNumber>,
        p_key: Option<PKey>,
        clock: Clock,
    ) -> Result<(UmadPort, Umad), DeviceError> {
        let mut refusal = None;
        for port in UmadPort::candidates(sysfs, hca, port)? {
            match Umad::open(sysfs, &port, &Class::ALL, p_key, clock) {
                Ok(umad) => return Ok((port, umad)),
                // Another port may be one that can.
                Err(error @ DeviceError::NoSubnetManagement { .. }) => {
                    refusal.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refusal.unwrap_or(DeviceError::NoDevice { directory: sysfs.display().to_string() }))
    }

    /// Opens the port that was named for general management alone. Any port can send that: also a
    /// RoCE port, which has no QP0 and asks by GID.
    pub fn open_for_gmps(
        sysfs: &Path,
        hca: &str,
        port: Option<PortNumber>,
        clock: Clock,
    ) -> Result<(UmadPort, Umad), DeviceError> {
        let port = UmadPort::named(sysfs, hca, port)?;
        let umad = Umad::open(sysfs, &port, &[Class::Performance], None, clock)?;
        Ok((port, umad))
    }

    /// Opens a port and registers for the classes that are to be spoken.
    fn open(
        sysfs: &Path,
        port: &UmadPort,
        classes: &[Class],
        p_key: Option<PKey>,
        clock: Clock,
    ) -> Result<Umad, DeviceError> {
        let device = port.device.display().to_string();
        let descriptor = Descriptor::open(&port.device)
            .map_err(|error| DeviceError::of_open(device.clone(), error))?;
        let (header, agents) = register_all(&descriptor, classes).map_err(|error| {
            // The kernel has no QP0 there (ib_mad: no such special QP).
            if error.raw_os_error() == Some(libc::EPROTONOSUPPORT)
                && classes.iter().any(|class| class.is_smp())
            {
                DeviceError::NoSubnetManagement { hca: port.hca.clone(), port: port.port }
            } else {
                DeviceError::Unusable { device: device.clone(), action: "register", error }
            }
        })?;
        tracing::debug!(%device, header = header.len(), "opened and registered");
        Ok(Umad {
            name: format!("{} port {} ({device})", port.hca, port.port),
            descriptor,
            header,
            agents,
            partitions: Partitions::of(sysfs, port, p_key, header)?,
            port_guid: device::port_guid(sysfs, port),
            clock,
            buffer: vec![0; Header::Long.len() + ib_mad::LEN],
        })
    }

    fn gone(&self, error: &io::Error) -> WireError {
        WireError { device: self.name.clone(), problem: format!("the device is gone ({error})") }
    }

    /// One MAD from the device, if it has one.
    fn read(&mut self) -> Result<Option<Received>, WireError> {
        let length = match self.descriptor.read(&mut self.buffer) {
            Ok(0) => return Ok(None),
            Ok(length) => length,
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                    // Longer than any MAD that is asked for; the kernel keeps it, so take it away.
                    Some(libc::ENOSPC) => {
                        self.buffer.resize(self.buffer.len() * 2, 0);
                        Ok(None)
                    }
                    _ => Err(self.gone(&error)),
                };
            }
        };
        Ok(Some(decode(&self.buffer[..length], self.header)))
    }
}

/// Registers for each class. The first answer tells which form of the header is right.
fn register_all(descriptor: &Descriptor, classes: &[Class]) -> io::Result<(Header, Agents)> {
    let mut agents = Agents::default();
    let mut header = Header::Long;
    for (already, &class) in classes.iter().enumerate() {
        let qpn = u8::from(!class.is_smp());
        if header == Header::Long {
            let mut request = RegisterAgent2 {
                qpn: qpn.into(),
                class: class as u8,
                class_version: 1,
                ..RegisterAgent2::default()
            };
            match descriptor.register2(&mut request) {
                Ok(()) => {
                    agents[class.index()] = Some(request.id);
                    continue;
                }
                // Kernels before 3.18 and ibsim do not know the call.
                Err(error)
                    if already == 0
                        && matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) =>
                {
                    header = Header::Short;
                }
                Err(error) => return Err(error),
            }
        }
        let mut request =
            RegisterAgent { qpn, class: class as u8, class_version: 1, ..RegisterAgent::default() };
        descriptor.register(&mut request)?;
        agents[class.index()] = Some(request.id);
    }
    Ok((header, agents))
}

fn encode(
    parcel: &Parcel,
    header: Header,
    agent: u32,
    pkey_index: u16,
) -> ([u8; 64 + ib_mad::LEN], usize) {
    let mut bytes = [0; 64 + ib_mad::LEN];
    let millis = u32::try_from(parcel.timeout.as_millis()).unwrap_or(u32::MAX).max(1);
    bytes[field::AGENT].copy_from_slice(&agent.to_ne_bytes());
    bytes[field::TIMEOUT_MS].copy_from_slice(&millis.to_ne_bytes());
    bytes[field::LENGTH].copy_from_slice(&(ib_mad::LEN as u32).to_ne_bytes());
    bytes[field::QPN].copy_from_slice(&parcel.qp.to_be_bytes());
    bytes[field::QKEY].copy_from_slice(&parcel.qkey.to_be_bytes());
    bytes[field::LID].copy_from_slice(&parcel.lid.0.to_be_bytes());
    bytes[field::SL] = parcel.sl;
    if let Some(route) = &parcel.route {
        bytes[field::GRH_PRESENT] = 1;
        bytes[field::GID_INDEX] = route.gid_index;
        bytes[field::HOP_LIMIT] = route.hop_limit;
        bytes[field::TRAFFIC_CLASS] = route.traffic_class;
        bytes[field::GID].copy_from_slice(&route.gid.octets());
        bytes[field::FLOW_LABEL].copy_from_slice(&route.flow_label.to_be_bytes());
    }
    if header == Header::Long {
        bytes[field::PKEY_INDEX].copy_from_slice(&pkey_index.to_ne_bytes());
    }
    let start = header.len();
    bytes[start..start + ib_mad::LEN].copy_from_slice(&parcel.mad.0);
    (bytes, start + ib_mad::LEN)
}

/// What was read from the device: a header, and what it says of the datagram behind it.
pub fn decode(bytes: &[u8], header: Header) -> Received {
    let malformed = Received::Malformed { bytes: bytes.len().saturating_sub(header.len()) };
    let Some((header, body)) = bytes.split_at_checked(header.len()) else {
        return malformed;
    };
    let expired = header[field::STATUS] == ETIMEDOUT.to_ne_bytes();
    if let Some(echo) = body.first_chunk::<ECHO>().filter(|_| expired) {
        let transaction = u32::from_be_bytes([echo[12], echo[13], echo[14], echo[15]]);
        return Received::Expired { transaction };
    }
    match body.first_chunk::<{ ib_mad::LEN }>() {
        Some(whole) if header[field::STATUS] == [0; 4] => Received::Mad {
            from: Lid(u16::from_be_bytes([header[field::LID.start], header[field::LID.start + 1]])),
            mad: Mad(*whole),
        },
        _ => malformed,
    }
}

impl Wire for Umad {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn anchor(&self) -> Anchor {
        self.clock.anchor()
    }

    fn look_again(&mut self) {
        self.partitions.look_again();
    }

    fn port_guid(&self) -> Option<Guid> {
        self.port_guid
    }

    fn in_partition(&self) -> bool {
        self.partitions.has_wanted()
    }

    fn send(&mut self, parcel: &Parcel) -> Result<(), SendError> {
        let Some(agent) = self.agents[parcel.class.index()] else {
            return Err(SendError::Refused(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT)));
        };
        // SMPs travel in no partition (IBTA 1.4, 10.9.8).
        let index =
            if parcel.class.is_smp() { Some(0) } else { self.partitions.index(parcel.p_key) };
        let Some(index) = index else {
            return Err(SendError::Refused(io::Error::other("not in our port's P_Key table")));
        };
        let (bytes, length) = encode(parcel, self.header, agent, index);
        match self.descriptor.write(&bytes[..length]) {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => SendError::Full,
                Some(libc::EIO | libc::ENODEV | libc::EBADF) => SendError::Wire(self.gone(&error)),
                _ => SendError::Refused(error),
            }),
        }
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, WireError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, GlobalRoute, Request};
    use ib_mad::{Path, pma, smp};

    fn parcel(to: Address) -> Parcel {
        let request = Request { to, query: smp::node_info() };
        Parcel::new(&request, None, 0x1234_5678, Duration::from_millis(250))
    }

    #[test]
    fn both_forms_of_the_header() {
        let parcel = parcel(Address::Lid(Lid(0x0102)));
        for header in [Header::Long, Header::Short] {
            let (bytes, length) = encode(&parcel, header, 7, 0);
            assert_eq!(length, header.len() + 256);
            assert_eq!(bytes[0..4], 7u32.to_ne_bytes());
            assert_eq!(bytes[8..12], 250u32.to_ne_bytes());
            assert_eq!(bytes[16..20], 256u32.to_ne_bytes());
            assert_eq!(bytes[20..30], [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
            assert_eq!(bytes[header.len()..header.len() + 4], [1, 0x01, 1, 0x01]);
        }
    }

    #[test]
    fn a_directed_smp_goes_to_the_permissive_lid() {
        let (bytes, _) = encode(&parcel(Address::Directed(Path::HERE)), Header::Long, 0, 0);
        assert_eq!(bytes[28..30], [0xff, 0xff]);
    }

    #[test]
    fn a_global_route_stands_between_the_service_level_and_the_pkey() {
        let route = GlobalRoute {
            lid: Lid(0x0304),
            gid: "fec0::2:c903:ab:cdef".parse().unwrap(),
            gid_index: 5,
            hop_limit: 63,
            traffic_class: 0x20,
            flow_label: 0x0f_edcb,
        };
        let request = Request { to: Address::Global(route), query: pma::class_port_info() };
        let parcel = Parcel::new(&request, None, 1, Duration::from_millis(250));
        for header in [Header::Long, Header::Short] {
            let (bytes, length) = encode(&parcel, header, 7, 0);
            assert_eq!(length, header.len() + 256);
            assert_eq!(bytes[20..30], [0, 0, 0, 1, 0x80, 1, 0, 0, 3, 4]);
            assert_eq!(bytes[30..36], [0, 0, 1, 5, 63, 0x20]);
            assert_eq!(bytes[36..44], [0xfe, 0xc0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(bytes[44..52], [0, 2, 0xc9, 3, 0, 0xab, 0xcd, 0xef]);
            assert_eq!(bytes[52..56], [0, 0x0f, 0xed, 0xcb]);
            assert_eq!(bytes[56..64], if header == Header::Long { [0; 8] } else { FIRST }, "P_Key");
        }
        let plain = Request { to: Address::Lid(Lid(1)), ..request };
        let (bytes, _) = encode(&Parcel::new(&plain, None, 1, Duration::ZERO), Header::Long, 7, 0);
        assert_eq!(bytes[30..64], [0; 34], "none where none is wanted");
    }

    #[test]
    fn the_place_of_the_p_key_stands_in_the_long_form_alone() {
        let request = Request { to: Address::Lid(Lid(1)), query: pma::class_port_info() };
        let parcel = Parcel::new(&request, None, 1, Duration::ZERO);
        let (long, _) = encode(&parcel, Header::Long, 7, 0x0102);
        assert_eq!(long[56..58], 0x0102_u16.to_ne_bytes());
        assert_eq!(long[58..64], [0; 6]);
        let (short, _) = encode(&parcel, Header::Short, 7, 0x0102);
        assert_eq!(short[56..64], FIRST, "the MAD itself");
    }

    /// How a Get of performance management begins.
    const FIRST: [u8; 8] = [1, 0x04, 1, 0x01, 0, 0, 0, 0];

    #[test]
    fn what_comes_in_is_an_answer_a_time_out_or_not_a_mad() {
        let (mut bytes, length) = encode(&parcel(Address::Lid(Lid(9))), Header::Long, 0, 0);
        let bytes = &mut bytes[..length];
        assert!(matches!(decode(bytes, Header::Long), Received::Mad { from: Lid(9), .. }));
        for short in [0, 30, 64, 64 + 255] {
            assert!(
                matches!(decode(&bytes[..short], Header::Long), Received::Malformed { .. }),
                "{short}"
            );
        }
        bytes[4..8].copy_from_slice(&110u32.to_ne_bytes());
        for length in [64 + 24, 64 + 256] {
            assert!(matches!(
                decode(&bytes[..length], Header::Long),
                Received::Expired { transaction: 0x1234_5678 }
            ));
        }
        assert!(matches!(decode(&bytes[..64 + 23], Header::Long), Received::Malformed { .. }));
        bytes[4..8].copy_from_slice(&5u32.to_ne_bytes());
        assert!(
            matches!(decode(bytes, Header::Long), Received::Malformed { .. }),
            "an unknown status"
        );
    }
}
