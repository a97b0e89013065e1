//! ETHTOOL_MSG_MODULE_EEPROM_GET, which `ethtool -m` sends, over generic netlink (Linux 5.13 and later).
//!
//! No library has this message (`ethtool` 0.2 has no modules, and needs an async runtime), and one request of 76 bytes
//! needs none. The kernel requires CAP_NET_ADMIN in the user namespace of the network namespace.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink as protocol,
};

use crate::model::eeprom::{HALF, Page};

// include/uapi/linux/netlink.h, genetlink.h, ethtool_netlink.h.
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const ATTRIBUTE_FAMILY_ID: u16 = 1;
const ATTRIBUTE_FAMILY_NAME: u16 = 2;
const MODULE_EEPROM_GET: u8 = 31;
const NESTED: u16 = 1 << 15;
/// Without the flags.
const TYPE_MASK: u16 = 0x3fff;

/// The attributes of the message.
mod attribute {
    pub const HEADER: u16 = 1;
    /// In the header.
    pub const DEV_NAME: u16 = 2;
    pub const OFFSET: u16 = 2;
    pub const LENGTH: u16 = 3;
    pub const PAGE: u16 = 4;
    pub const BANK: u16 = 5;
    pub const I2C_ADDRESS: u16 = 6;
    pub const DATA: u16 = 7;
}

/// netlink and generic netlink headers.
const NETLINK: usize = 16;
const HEADERS: usize = NETLINK + 4;

/// The module's bus is slow, and its firmware may hang: the kernel itself gives up after seconds.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A socket for requests to ethtool, in the network namespace that it was opened in.
#[derive(Debug)]
pub(crate) struct EthtoolNetlink {
    socket: OwnedFd,
    family: u16,
    /// The number of the latest request: its response has the same one.
    sequence: u32,
}

impl EthtoolNetlink {
    /// Opens a socket. The error of an older kernel, or of one without ethtool's netlink, is ENOENT.
    pub fn open() -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(protocol::GENERIC),
        )?;
        sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
        let mut request = message(CONTROLLER, GET_FAMILY);
        add(&mut request, ATTRIBUTE_FAMILY_NAME, b"ethtool\0");
        let response = transact(&socket, request, 0)?;
        let family = attributes(&response).find(|(kind, _)| *kind == ATTRIBUTE_FAMILY_ID);
        let family = family.and_then(|(_, value)| value.first_chunk().copied());
        let family = family.ok_or_else(|| malformed("no family id"))?;
        Ok(EthtoolNetlink { socket, family: u16::from_ne_bytes(family), sequence: 0 })
    }

    /// Reads half a page of the module of an interface.
    pub fn module_page(&mut self, netdev: &str, page: Page) -> io::Result<[u8; HALF]> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = message(self.family, MODULE_EEPROM_GET);
        let mut header = Vec::new();
        add(&mut header, attribute::DEV_NAME, &[netdev.as_bytes(), &[0]].concat());
        add(&mut request, attribute::HEADER | NESTED, &header);
        add(&mut request, attribute::OFFSET, &u32::from(page.offset).to_ne_bytes());
        add(&mut request, attribute::LENGTH, &(HALF as u32).to_ne_bytes());
        add(&mut request, attribute::PAGE, &[page.number]);
        add(&mut request, attribute::BANK, &[0]);
        add(&mut request, attribute::I2C_ADDRESS, &[page.address]);
        let response = transact(&self.socket, request, self.sequence)?;
        let data = attributes(&response).find(|(kind, _)| *kind == attribute::DATA);
        let data = data.and_then(|(_, data)| data.first_chunk().copied());
        data.ok_or_else(|| malformed("no data of the module"))
    }
}

fn malformed(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// The headers of a message, whose length and sequence number [`transact`] sets.
fn message(family: u16, command: u8) -> Vec<u8> {
    let mut message = vec![0; HEADERS];
    message[4..6].copy_from_slice(&family.to_ne_bytes());
    message[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    message[NETLINK] = command;
    message[NETLINK + 1] = 1;
    message
}

/// Adds an attribute: length, type and value, padded to four bytes.
fn add(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((4 + value.len() as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Sends a request and returns the response behind its headers.
fn transact(socket: &OwnedFd, mut request: Vec<u8>, sequence: u32) -> io::Result<Vec<u8>> {
    let length = request.len() as u32;
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[8..12].copy_from_slice(&sequence.to_ne_bytes());
    rustix::net::send(socket, &request, SendFlags::empty())?;
    let mut buffer = [0; 4096];
    // The response to a request that timed out may come first.
    for _ in 0..8 {
        let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
        let datagram = buffer.get(..length).unwrap_or_default();
        if datagram.get(8..12) == Some(&sequence.to_ne_bytes()) {
            return response(datagram);
        }
    }
    Err(malformed("responses to other requests"))
}

/// The attributes of a datagram with one response.
fn response(datagram: &[u8]) -> io::Result<Vec<u8>> {
    let kind = datagram.get(4..6).and_then(|kind| kind.first_chunk().copied());
    if kind.map(u16::from_ne_bytes) == Some(NLMSG_ERROR) {
        let error = datagram.get(NETLINK..).and_then(|error| error.first_chunk().copied());
        let error = error.map_or(0, i32::from_ne_bytes);
        return Err(io::Error::from_raw_os_error(error.saturating_neg()));
    }
    let length = datagram.first_chunk().map_or(0, |length| u32::from_ne_bytes(*length)) as usize;
    let attributes = datagram.get(HEADERS..length.min(datagram.len()));
    attributes.map(<[u8]>::to_vec).ok_or_else(|| malformed("short netlink response"))
}

/// The types and values of attributes; it ends where they are malformed.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (head, _) = rest.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]) & TYPE_MASK;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_parsed() {
        let mut bytes = Vec::new();
        add(&mut bytes, 3, &[7]);
        add(&mut bytes, 7 | NESTED, &[1, 2, 3, 4, 5]);
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found, [(3, &[7][..]), (7, &[1, 2, 3, 4, 5])]);
        assert_eq!(attributes(&bytes[..10]).count(), 1);
    }

    #[test]
    fn error_of_the_kernel_is_returned() {
        let mut datagram = vec![0; 36];
        datagram[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        datagram[NETLINK..NETLINK + 4].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        assert_eq!(response(&datagram).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    /// The loopback interface has no module.
    #[test]
    fn interface_without_a_module_is_an_error() {
        let mut netlink = EthtoolNetlink::open().unwrap();
        let error = netlink.module_page("lo", crate::model::eeprom::FIRST).unwrap_err();
        let code = error.raw_os_error();
        assert!(matches!(code, Some(libc::EPERM | libc::EOPNOTSUPP)), "{error}");
    }

    proptest! {
        #[test]
        fn any_datagram_is_parsed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(response) = response(&bytes) {
                prop_assert!(attributes(&response).count() <= bytes.len());
            }
        }
    }
}
