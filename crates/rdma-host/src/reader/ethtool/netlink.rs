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
use rdma_netlink::message::{NESTED, add, attributes, finish, malformed, messages, request};

// include/uapi/linux/genetlink.h, ethtool_netlink.h.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const ATTRIBUTE_FAMILY_ID: u16 = 1;
const ATTRIBUTE_FAMILY_NAME: u16 = 2;
const MODULE_EEPROM_GET: u8 = 31;

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

/// The length of the header of generic netlink: command, version and two bytes of padding.
const GENERIC_HEADER: usize = 4;

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
        let mut request = message(CONTROLLER, GET_FAMILY, 0);
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
        let mut request = message(self.family, MODULE_EEPROM_GET, self.sequence);
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

/// The headers of a message.
fn message(family: u16, command: u8, sequence: u32) -> Vec<u8> {
    let mut message = request(family, 0, sequence);
    message.extend([command, 1, 0, 0]);
    message
}

/// Sends a request and returns the attributes of its response.
fn transact(socket: &OwnedFd, mut request: Vec<u8>, sequence: u32) -> io::Result<Vec<u8>> {
    finish(&mut request);
    rustix::net::send(socket, &request, SendFlags::empty())?;
    let mut buffer = [0; 4096];
    // The response to a request that timed out may come first.
    for _ in 0..8 {
        let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
        let datagram = buffer.get(..length).unwrap_or_default();
        let Some(message) = messages(datagram).find(|message| message.sequence == sequence) else {
            continue;
        };
        if let Some(error) = message.error() {
            return Err(error);
        }
        let attributes = message.payload.get(GENERIC_HEADER..).map(<[u8]>::to_vec);
        return attributes.ok_or_else(|| malformed("short netlink response"));
    }
    Err(malformed("responses to other requests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loopback interface has no module.
    #[test]
    fn interface_without_a_module_is_an_error() {
        let mut netlink = EthtoolNetlink::open().unwrap();
        let error = netlink.module_page("lo", crate::model::eeprom::FIRST).unwrap_err();
        let code = error.raw_os_error();
        assert!(matches!(code, Some(libc::EPERM | libc::EOPNOTSUPP)), "{error}");
    }
}
