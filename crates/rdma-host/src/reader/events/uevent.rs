//! Kernel uevents: RDMA devices, uverbs nodes and network interfaces that are added and removed.
//!
//! A datagram is `ACTION@DEVPATH`, a NUL, then `KEY=VALUE` pairs with a NUL after each (kernel:
//! lib/kobject_uevent.c, `kobject_uevent_env`). Anything else is ignored.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

/// What a uevent means to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A uverbs node was added or renamed, or udev was triggered to process it again.
    Node(String),
    /// A uverbs node is being removed: a process that holds it open blocks the kernel.
    NodeGone(String),
    /// An RDMA device is being removed.
    DeviceGone(String),
    /// An RDMA device was added or renamed.
    Device,
    /// A network interface was added, removed or renamed.
    Netdev,
}

/// What a datagram means to us, if anything.
pub fn parse(datagram: &[u8]) -> Option<Change> {
    let mut words = datagram.split(|&byte| byte == 0);
    let (action, path) = str::from_utf8(words.next()?).ok()?.split_once('@')?;
    let subsystem = words.find_map(|word| word.strip_prefix(b"SUBSYSTEM="))?;
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?.to_owned();
    match (subsystem, action) {
        (b"infiniband_verbs", "remove") => Some(Change::NodeGone(name)),
        (b"infiniband_verbs", _) => Some(Change::Node(name)),
        (b"infiniband", "remove") => Some(Change::DeviceGone(name)),
        // Other actions on a device do not concern its ports; its events do.
        (b"infiniband", "add" | "move") => Some(Change::Device),
        (b"net", "add" | "remove" | "move") => Some(Change::Netdev),
        _ => None,
    }
}

/// The kernel's multicast group; udev sends its own datagrams to group 2.
const KERNEL_GROUP: u32 = 1;
/// A datagram has at most `UEVENT_BUFFER_SIZE` (2048) bytes of pairs and a path before them.
const MAX_BYTES: usize = 8192;
/// Datagrams read before other descriptors are served: a flood of them (a thousand containers that start)
/// must not keep a device from being closed.
const MAX_AT_ONCE: usize = 256;

/// The netlink socket of uevents, which needs no privileges.
pub(super) struct UeventSocket(pub OwnedFd);

impl UeventSocket {
    pub fn open() -> io::Result<UeventSocket> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::KOBJECT_UEVENT),
        )?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
        Ok(UeventSocket(socket))
    }

    /// Reads the waiting datagrams. Returns whether the kernel dropped some: anything may have happened.
    pub fn read(&self, mut each: impl FnMut(Change)) -> io::Result<bool> {
        let mut datagram = [0; MAX_BYTES];
        let mut dropped = false;
        for _ in 0..MAX_AT_ONCE {
            match rustix::net::recvfrom(&self.0, &mut datagram, RecvFlags::DONTWAIT) {
                Ok((length, _, sender)) => {
                    // Any root process may send to the group; only the kernel has port 0.
                    let is_from_kernel = sender
                        .and_then(|sender| SocketAddrNetlink::try_from(sender).ok())
                        .is_some_and(|sender| sender.pid() == 0);
                    if is_from_kernel && let Some(change) = datagram.get(..length).and_then(parse) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PCI: &str = "/devices/pci0000:00/0000:00:01.0/0000:01:00.0";

    fn datagram(action: &str, path: &str, subsystem: &str) -> Vec<u8> {
        format!(
            "{action}@{path}\0ACTION={action}\0DEVPATH={path}\0SUBSYSTEM={subsystem}\0\
             MAJOR=231\0MINOR=192\0DEVNAME=infiniband/uverbs0\0SEQNUM=1234\0"
        )
        .into_bytes()
    }

    #[test]
    fn kernel_datagrams_parse() {
        let name = |name: &str| name.to_owned();
        for (action, path, subsystem, expected) in [
            (
                "add",
                "infiniband_verbs/uverbs0",
                "infiniband_verbs",
                Some(Change::Node(name("uverbs0"))),
            ),
            (
                "change",
                "infiniband_verbs/uverbs1",
                "infiniband_verbs",
                Some(Change::Node(name("uverbs1"))),
            ),
            (
                "remove",
                "infiniband_verbs/uverbs0",
                "infiniband_verbs",
                Some(Change::NodeGone(name("uverbs0"))),
            ),
            ("remove", "infiniband/mlx5_0", "infiniband", Some(Change::DeviceGone(name("mlx5_0")))),
            ("add", "infiniband/mlx5_0", "infiniband", Some(Change::Device)),
            ("move", "infiniband/mlx5_ib0", "infiniband", Some(Change::Device)),
            ("change", "infiniband/mlx5_0", "infiniband", None),
            ("add", "net/ib0", "net", Some(Change::Netdev)),
            ("remove", "net/ib0", "net", Some(Change::Netdev)),
            ("change", "net/ib0", "net", None),
            ("add", "net/ib0/queues/rx-0", "queues", None),
            ("add", "infiniband_mad/umad0", "infiniband_mad", None),
            ("add", "block/sda", "block", None),
        ] {
            let path = format!("{PCI}/{path}");
            assert_eq!(parse(&datagram(action, &path, subsystem)), expected, "{action} {path}");
        }
    }

    #[test]
    fn other_datagrams_are_ignored() {
        for bytes in [
            &b""[..],
            b"\0",
            b"add",
            b"add@",
            b"add@/devices/x",
            b"add@/devices/\0SUBSYSTEM=infiniband_verbs\0",
            b"add@\0SUBSYSTEM=infiniband_verbs\0",
            b"add@/x\xff\0SUBSYSTEM=infiniband_verbs\0",
            b"add@/x/uverbs0\0SUBSYSTEM=",
            b"libudev\0\xfe\xed\xca\xfe\0SUBSYSTEM=infiniband_verbs\0",
        ] {
            assert_eq!(parse(bytes), None, "{}", bytes.escape_ascii());
        }
        // The last NUL may be missing.
        assert_eq!(parse(b"add@/x/eth0\0SUBSYSTEM=net"), Some(Change::Netdev));
    }

    proptest! {
        #[test]
        fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn mutated_datagrams_do_not_panic(
            cut in 0usize..200,
            flip in 0usize..200,
            with in any::<u8>(),
        ) {
            let mut bytes = datagram("remove", "/devices/x/uverbs0", "infiniband_verbs");
            if let Some(byte) = bytes.get_mut(flip) {
                *byte = with;
            }
            bytes.truncate(cut);
            let _ = parse(&bytes);
        }
    }
}
