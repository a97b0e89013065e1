//! What the kernel says of devices that come and go: one datagram, taken apart.
//!
//! `ACTION@DEVPATH`, a NUL, then `KEY=VALUE` pairs with a NUL after each (kernel:
//! lib/kobject_uevent.c, `kobject_uevent_env`). Anything else is nothing.

/// What a uevent means to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A uverbs node came, was renamed, or udev was told to look at it again.
    Node(String),
    /// A uverbs node goes: whoever holds it open holds up the kernel.
    NodeGone(String),
    /// An RDMA device goes.
    DeviceGone(String),
    /// An RDMA device came or changed its name.
    Device,
    /// A network interface came, went or changed its name.
    Netdev,
}

/// What this datagram means to us, if anything.
pub fn change(datagram: &[u8]) -> Option<Change> {
    let mut words = datagram.split(|&byte| byte == 0);
    let (action, path) = str::from_utf8(words.next()?).ok()?.split_once('@')?;
    let subsystem = words.find_map(|word| word.strip_prefix(b"SUBSYSTEM="))?;
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?.to_owned();
    match (subsystem, action) {
        (b"infiniband_verbs", "remove") => Some(Change::NodeGone(name)),
        (b"infiniband_verbs", _) => Some(Change::Node(name)),
        (b"infiniband", "remove") => Some(Change::DeviceGone(name)),
        // A device that stays tells nothing of a port this way; its events do.
        (b"infiniband", "add" | "move") => Some(Change::Device),
        (b"net", "add" | "remove" | "move") => Some(Change::Netdev),
        _ => None,
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
    fn the_kernels_datagrams() {
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
            assert_eq!(change(&datagram(action, &path, subsystem)), expected, "{action} {path}");
        }
    }

    #[test]
    fn what_is_no_uevent_means_nothing() {
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
            assert_eq!(change(bytes), None, "{}", bytes.escape_ascii());
        }
        // The last NUL may be missing.
        assert_eq!(change(b"add@/x/eth0\0SUBSYSTEM=net"), Some(Change::Netdev));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_it(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = change(&bytes);
        }

        #[test]
        fn nor_do_nearly_right_ones(
            cut in 0usize..200,
            flip in 0usize..200,
            with in any::<u8>(),
        ) {
            let mut bytes = datagram("remove", "/devices/x/uverbs0", "infiniband_verbs");
            if let Some(byte) = bytes.get_mut(flip) {
                *byte = with;
            }
            bytes.truncate(cut);
            let _ = change(&bytes);
        }
    }
}
