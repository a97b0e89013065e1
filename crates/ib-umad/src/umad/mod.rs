//! The transport of a real port: MADs through the kernel's umad device.
//!
//! The header before each MAD and the ioctl numbers are ABI version 5 of the kernel
//! (include/uapi/rdma/ib_user_mad.h).

mod device;
mod error;
mod partition;
mod sys;

pub use device::UmadPort;
pub use error::{DeviceError, Unsuitable};

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use ib_mad::moment::Anchor;
use ib_mad::p_key::PKey;
use ib_mad::{Class, Guid, Lid, Mad, Moment, PortNumber};
use process_clock::Clock;

use super::{MadTransport, OutgoingMad, Received, SendError, TransportError};
use partition::Partitions;
use sys::Descriptor;

/// Header format of a umad device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFormat {
    /// With the P_Key index: since kernel 2.6.24, enabled by REGISTER_AGENT2.
    Long,
    /// Without it: the default of a device, and the only one of ibsim, without REGISTER_AGENT2.
    Short,
}

impl HeaderFormat {
    fn len(self) -> usize {
        match self {
            HeaderFormat::Long => 64,
            HeaderFormat::Short => 56,
        }
    }
}

/// Status of a request without a response in time; the only error that the kernel reports.
const ETIMEDOUT: u32 = libc::ETIMEDOUT as u32;

/// Length of the part of a timed-out request that the kernel returns: the first 24 bytes of the MAD.
const ECHO: usize = 24;

/// Fields of the header, the same in both formats.
const STATUS: Range<usize> = 4..8;
const LID: Range<usize> = 28..30;

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

/// A header (kernel: `struct ib_user_mad_hdr`; the fields have the same offsets in both formats) and the MAD.
fn encode(
    outgoing: &OutgoingMad,
    header: HeaderFormat,
    agent: u32,
    pkey_index: u16,
) -> ([u8; 64 + ib_mad::LEN], usize) {
    let mut bytes = [0; 64 + ib_mad::LEN];
    let mut put = |offset: usize, field: &[u8]| {
        bytes[offset..offset + field.len()].copy_from_slice(field);
    };
    let millis = u32::try_from(outgoing.timeout.as_millis()).unwrap_or(u32::MAX).max(1);
    put(0, &agent.to_ne_bytes());
    put(8, &millis.to_ne_bytes());
    put(16, &(ib_mad::LEN as u32).to_ne_bytes());
    put(20, &outgoing.qp.to_be_bytes());
    put(24, &outgoing.qkey.to_be_bytes());
    put(LID.start, &outgoing.lid.0.to_be_bytes());
    put(30, &[outgoing.sl]);
    if let Some(route) = &outgoing.route {
        // The first byte says that there is a route.
        put(32, &[1, route.gid_index, route.hop_limit, route.traffic_class]);
        put(36, &route.gid.octets());
        put(52, &route.flow_label.to_be_bytes());
    }
    if header == HeaderFormat::Long {
        put(56, &pkey_index.to_ne_bytes());
    }
    put(header.len(), &outgoing.mad.0);
    (bytes, header.len() + ib_mad::LEN)
}

/// Decodes what was read from the device: a header, and a MAD or part of one.
pub fn decode(bytes: &[u8], header: HeaderFormat) -> Received {
    let malformed = Received::Malformed { bytes: bytes.len().saturating_sub(header.len()) };
    let Some((header, body)) = bytes.split_at_checked(header.len()) else {
        return malformed;
    };
    let expired = header[STATUS] == ETIMEDOUT.to_ne_bytes();
    if let Some(echo) = body.first_chunk::<ECHO>().filter(|_| expired) {
        let transaction_id = u32::from_be_bytes([echo[12], echo[13], echo[14], echo[15]]);
        return Received::Expired { transaction_id };
    }
    match body.first_chunk::<{ ib_mad::LEN }>() {
        Some(whole) if header[STATUS] == [0; 4] => Received::Mad {
            from: Lid(u16::from_be_bytes([header[LID.start], header[LID.start + 1]])),
            mad: Mad(*whole),
        },
        _ => malformed,
    }
}

impl MadTransport for Umad {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn anchor(&self) -> Anchor {
        self.clock.anchor()
    }

    fn refresh(&mut self) {
        self.partitions.refresh();
    }

    fn port_guid(&self) -> Option<Guid> {
        self.port_guid
    }

    fn has_p_key(&self) -> bool {
        self.partitions.has_wanted()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, GlobalRoute, Request};
    use ib_mad::{DirectedRoute, pma, smp};

    fn outgoing(to: Address) -> OutgoingMad {
        let request = Request { to, query: smp::node_info() };
        OutgoingMad::new(&request, None, 0x1234_5678, Duration::from_millis(250))
    }

    #[test]
    fn encodes_both_header_formats() {
        let outgoing = outgoing(Address::Lid(Lid(0x0102)));
        for header in [HeaderFormat::Long, HeaderFormat::Short] {
            let (bytes, length) = encode(&outgoing, header, 7, 0);
            assert_eq!(length, header.len() + 256);
            assert_eq!(bytes[0..4], 7u32.to_ne_bytes());
            assert_eq!(bytes[8..12], 250u32.to_ne_bytes());
            assert_eq!(bytes[16..20], 256u32.to_ne_bytes());
            assert_eq!(bytes[20..30], [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
            assert_eq!(bytes[header.len()..header.len() + 4], [1, 0x01, 1, 0x01]);
        }
    }

    #[test]
    fn directed_smp_uses_permissive_lid() {
        let (bytes, _) =
            encode(&outgoing(Address::Directed(DirectedRoute::LOCAL)), HeaderFormat::Long, 0, 0);
        assert_eq!(bytes[28..30], [0xff, 0xff]);
    }

    #[test]
    fn encodes_global_route() {
        let route = GlobalRoute {
            lid: Lid(0x0304),
            gid: "fec0::2:c903:ab:cdef".parse().unwrap(),
            gid_index: 5,
            hop_limit: 63,
            traffic_class: 0x20,
            flow_label: 0x0f_edcb,
        };
        let request = Request { to: Address::Global(route), query: pma::class_port_info() };
        let outgoing = OutgoingMad::new(&request, None, 1, Duration::from_millis(250));
        for header in [HeaderFormat::Long, HeaderFormat::Short] {
            let (bytes, length) = encode(&outgoing, header, 7, 0);
            assert_eq!(length, header.len() + 256);
            assert_eq!(bytes[20..30], [0, 0, 0, 1, 0x80, 1, 0, 0, 3, 4]);
            assert_eq!(bytes[30..36], [0, 0, 1, 5, 63, 0x20]);
            assert_eq!(bytes[36..44], [0xfe, 0xc0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(bytes[44..52], [0, 2, 0xc9, 3, 0, 0xab, 0xcd, 0xef]);
            assert_eq!(bytes[52..56], [0, 0x0f, 0xed, 0xcb]);
            assert_eq!(
                bytes[56..64],
                if header == HeaderFormat::Long { [0; 8] } else { GET_START },
                "P_Key"
            );
        }
        let plain = Request { to: Address::Lid(Lid(1)), ..request };
        let (bytes, _) =
            encode(&OutgoingMad::new(&plain, None, 1, Duration::ZERO), HeaderFormat::Long, 7, 0);
        assert_eq!(bytes[30..64], [0; 34], "no route, no fields");
    }

    #[test]
    fn p_key_index_is_only_in_long_header() {
        let request = Request { to: Address::Lid(Lid(1)), query: pma::class_port_info() };
        let outgoing = OutgoingMad::new(&request, None, 1, Duration::ZERO);
        let (long, _) = encode(&outgoing, HeaderFormat::Long, 7, 0x0102);
        assert_eq!(long[56..58], 0x0102_u16.to_ne_bytes());
        assert_eq!(long[58..64], [0; 6]);
        let (short, _) = encode(&outgoing, HeaderFormat::Short, 7, 0x0102);
        assert_eq!(short[56..64], GET_START, "the MAD itself");
    }

    /// The first bytes of a performance management Get.
    const GET_START: [u8; 8] = [1, 0x04, 1, 0x01, 0, 0, 0, 0];

    #[test]
    fn decodes_response_timeout_and_malformed() {
        let (mut bytes, length) = encode(&outgoing(Address::Lid(Lid(9))), HeaderFormat::Long, 0, 0);
        let bytes = &mut bytes[..length];
        assert!(matches!(decode(bytes, HeaderFormat::Long), Received::Mad { from: Lid(9), .. }));
        for short in [0, 30, 64, 64 + 255] {
            assert!(
                matches!(decode(&bytes[..short], HeaderFormat::Long), Received::Malformed { .. }),
                "{short}"
            );
        }
        bytes[4..8].copy_from_slice(&110u32.to_ne_bytes());
        for length in [64 + 24, 64 + 256] {
            assert!(matches!(
                decode(&bytes[..length], HeaderFormat::Long),
                Received::Expired { transaction_id: 0x1234_5678 }
            ));
        }
        assert!(matches!(
            decode(&bytes[..64 + 23], HeaderFormat::Long),
            Received::Malformed { .. }
        ));
        bytes[4..8].copy_from_slice(&5u32.to_ne_bytes());
        assert!(
            matches!(decode(bytes, HeaderFormat::Long), Received::Malformed { .. }),
            "an unknown status"
        );
    }
}
