//! What the kernel itself says of RDMA devices by netlink: RDMA_NLDEV_CMD_GET, which `rdma dev show` sends. Any user may.
//!
//! Sysfs does not show whether a device is the SMI device of a multi-plane HCA (Linux 6.11 and later;
//! drivers/infiniband/core/nldev.c: `fill_dev_info`).

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use ib_mad::Guid;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink as protocol,
};

use crate::message::{DONE, DUMP, attributes, finish, malformed, messages, request};

/// RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET) of include/uapi/rdma/rdma_netlink.h.
const GET_DEVICES: u16 = (5 << 10) + 1;

/// The attributes of a device, `RDMA_NLDEV_ATTR_…` there.
mod attribute {
    pub const DEV_NAME: u16 = 2;
    pub const NODE_GUID: u16 = 6;
    pub const DEV_TYPE: u16 = 99;
    pub const PARENT_NAME: u16 = 100;
}

/// RDMA_DEVICE_TYPE_SMI.
const SMI: u8 = 1;

/// The kernel answers at once, from memory.
const TIMEOUT: Duration = Duration::from_secs(1);

/// More datagrams than the devices of a host fill.
const MAX_DATAGRAMS: usize = 64;

/// A device whose type is SMI, and the HCA that it belongs to (kernel: `ib_add_sub_device`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmiDevice {
    /// Its name, which the administrator chose.
    pub name: String,
    /// The NodeGUID, that of the HCA.
    pub guid: Guid,
    /// The name of the HCA's device.
    pub parent: String,
}

/// A socket for requests, in the network namespace that it was opened in.
#[derive(Debug)]
pub struct SmiDevices {
    socket: OwnedFd,
    /// The number of the latest request: its responses have the same one.
    sequence: u32,
}

impl SmiDevices {
    /// Opens a socket; a kernel without RDMA returns an error.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = rustix::net::socket_with(family, kind, flags, Some(protocol::RDMA))?;
        sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
        Ok(SmiDevices { socket, sequence: 0 })
    }

    /// The SMI devices at this moment. Waits for the kernel, one second at most for each datagram.
    pub fn list(&mut self) -> io::Result<Vec<SmiDevice>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = request(GET_DEVICES, DUMP, self.sequence);
        finish(&mut request);
        rustix::net::send(&self.socket, &request, SendFlags::empty())?;
        let (mut buffer, mut devices) = (vec![0; 32 * 1024], Vec::new());
        for _ in 0..MAX_DATAGRAMS {
            let (length, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            let datagram = buffer.get(..length).unwrap_or_default();
            if datagram.is_empty() {
                return Err(malformed("empty netlink response"));
            }
            if add_devices(datagram, self.sequence, &mut devices)? {
                return Ok(devices);
            }
        }
        Err(malformed("endless netlink response"))
    }
}

/// Adds the SMI devices of a datagram, and returns whether it is the last one.
fn add_devices(datagram: &[u8], sequence: u32, to: &mut Vec<SmiDevice>) -> io::Result<bool> {
    // Responses to a request that timed out may come first.
    for message in messages(datagram).filter(|message| message.sequence == sequence) {
        if let Some(error) = message.error() {
            return Err(error);
        }
        if message.kind == DONE {
            return Ok(true);
        }
        to.extend(smi_device(message.payload));
    }
    Ok(false)
}

fn smi_device(payload: &[u8]) -> Option<SmiDevice> {
    let get = |kind| attributes(payload).find(|(it, _)| *it == kind).map(|(_, value)| value);
    let text = |kind| {
        let text = get(kind)?.strip_suffix(&[0])?;
        std::str::from_utf8(text).ok().map(str::to_owned)
    };
    if get(attribute::DEV_TYPE)? != [SMI] {
        return None;
    }
    let guid = get(attribute::NODE_GUID)?.first_chunk().copied().map(u64::from_ne_bytes)?;
    let (name, parent) = (text(attribute::DEV_NAME)?, text(attribute::PARENT_NAME)?);
    Some(SmiDevice { name, guid: Guid(guid), parent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::add;
    use proptest::prelude::*;

    /// A message about a device.
    fn message(sequence: u32, name: &str, smi_of: Option<&str>) -> Vec<u8> {
        let mut message = request(GET_DEVICES, 0, sequence);
        add(&mut message, 1, &7_u32.to_ne_bytes());
        add(&mut message, attribute::DEV_NAME, &[name.as_bytes(), &[0]].concat());
        add(&mut message, attribute::NODE_GUID, &0xabc_u64.to_ne_bytes());
        if let Some(parent) = smi_of {
            add(&mut message, attribute::DEV_TYPE, &[SMI]);
            add(&mut message, attribute::PARENT_NAME, &[parent.as_bytes(), &[0]].concat());
        }
        finish(&mut message);
        message
    }

    fn done(sequence: u32) -> Vec<u8> {
        let mut message = request(DONE, 0, sequence);
        message.extend(0_u32.to_ne_bytes());
        finish(&mut message);
        message
    }

    #[test]
    fn smi_devices_are_found_with_their_parents() {
        let mut devices = Vec::new();
        let stale = [message(3, "old", Some("mlx5_9")), done(3)].concat();
        assert!(!add_devices(&stale, 4, &mut devices).unwrap(), "of another request");
        let first = [message(4, "mlx5_0", None), message(4, "planes", Some("mlx5_0"))].concat();
        assert!(!add_devices(&first, 4, &mut devices).unwrap());
        assert!(add_devices(&done(4), 4, &mut devices).unwrap());
        let expected =
            SmiDevice { name: "planes".into(), guid: Guid(0xabc), parent: "mlx5_0".into() };
        assert_eq!(devices, [expected]);
    }

    /// Also without RDMA in the kernel.
    #[test]
    fn this_kernel_is_asked_without_an_error() {
        match SmiDevices::open() {
            Ok(mut kernel) => assert_eq!(kernel.list().unwrap(), kernel.list().unwrap()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT)),
        }
    }

    proptest! {
        #[test]
        fn any_datagram_is_parsed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut devices = Vec::new();
            let _ = add_devices(&bytes, 0, &mut devices);
            prop_assert!(devices.len() <= bytes.len());
        }
    }
}
