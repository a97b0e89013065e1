//! The kernel's own socket for uevents.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

use super::uevent::{self, Change};

/// The multicast group of the kernel; what udev makes of its datagrams is group 2.
const KERNEL: u32 = 1;
/// A datagram has at most `UEVENT_BUFFER_SIZE` (2048) bytes of pairs and a path before them.
const MOST_BYTES: usize = 8192;
/// Datagrams read before the others in the poll set have their turn: a flood of them (a thousand
/// containers that start) must not keep a device from being let go.
const MOST_AT_ONCE: usize = 256;

/// The socket. Nobody needs privileges for it.
pub(super) struct Uevents {
    socket: OwnedFd,
}

impl Uevents {
    pub fn open() -> io::Result<Uevents> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::KOBJECT_UEVENT),
        )?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, KERNEL))?;
        Ok(Uevents { socket })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads what is there. `Ok(true)` when the kernel had to drop some, so that anything may have
    /// happened.
    pub fn read(&self, mut each: impl FnMut(Change)) -> io::Result<bool> {
        let mut datagram = [0; MOST_BYTES];
        let mut dropped = false;
        for _ in 0..MOST_AT_ONCE {
            match rustix::net::recvfrom(&self.socket, &mut datagram, RecvFlags::DONTWAIT) {
                Ok((length, _, sender)) => {
                    // Any root process may send to the group; only the kernel has port 0.
                    let of_kernel = sender
                        .and_then(|sender| SocketAddrNetlink::try_from(sender).ok())
                        .is_some_and(|sender| sender.pid() == 0);
                    if of_kernel
                        && let Some(change) = datagram.get(..length).and_then(uevent::change)
                    {
                        each(change);
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => dropped = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(dropped)
    }
}
