//! The three ioctls of ethtool that read a driver's statistics.
//!
//! The kernel does not observe the caller's length: it copies as many entries as the driver has at that moment
//! (net/ethtool/ioctl.c, `ethtool_get_strings`, `ethtool_get_stats`), and a driver may have gained some since it was
//! queried for their number, as mlx5 does with channels. So a buffer has room for twice the most that is accepted.
#![expect(unsafe_code, reason = "ethtool's statistics by ioctl")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socketpair};

// Commands and structures: include/uapi/linux/ethtool.h.
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
/// `ETH_SS_STATS`, the set of strings that names the statistics.
const SET_STATS: u32 = 1;
/// `ETH_GSTRING_LEN`.
const STRING: usize = 32;
const VALUE: usize = size_of::<u64>();

const CAPACITY: usize = 65_536;
/// Maximum number of entries of a driver. An mlx5 was seen with 19,338 (safchain/ethtool, issue 45).
const MAX_ENTRIES: usize = CAPACITY / 2;

/// `struct ethtool_sset_info` with room for one set, 20 bytes. The kernel copies everything
/// before `data`, and then one count for each requested set that exists.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct SetInfo {
    command: u32,
    reserved: u32,
    /// In bytes, for a u64 would round the size up to 24.
    mask: [u8; 8],
    count: u32,
}

const _: () = assert!(size_of::<SetInfo>() == 20);

/// A socket for the ioctls, in the network namespace that it was opened in.
///
/// The kernel takes these ioctls on a socket of any family (net/socket.c, `sock_do_ioctl`). One of a pair can reach
/// nothing else, and the sandbox permits pairs after the start, when interfaces appear.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl Socket {
    pub fn open() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        Ok(Socket(socketpair(family, kind, SocketFlags::CLOEXEC, None)?.0))
    }

    /// The index of the interface that has this name here.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(netdevice::name_to_index(&self.0, name)?)
    }

    pub fn count(&self, name: &str) -> io::Result<usize> {
        let mask = (1u64 << SET_STATS).to_ne_bytes();
        let mut info = SetInfo { command: GSSET_INFO, reserved: 0, mask, count: 0 };
        // SAFETY: one set is requested, so the kernel writes 16 bytes and one count, which is the
        // structure's size (`ethtool_get_sset_info`).
        unsafe { self.ioctl(name, (&raw mut info).cast()) }?;
        // The kernel clears the bit of a set that does not exist, and returns no error.
        if info.mask != mask {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        match info.count as usize {
            count @ ..=MAX_ENTRIES => Ok(count),
            count => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{count} statistics"))),
        }
    }

    /// The names of the statistics, in the driver's order, as the kernel writes them: see [`split_strings`].
    pub fn strings(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(self.entries::<STRING>(name, &[GSTRINGS, SET_STATS])?.into_flattened())
    }

    /// The values of the statistics, in the same order.
    pub fn statistics(&self, name: &str) -> io::Result<Vec<u64>> {
        let values = self.entries::<VALUE>(name, &[GSTATS])?;
        Ok(values.into_iter().map(u64::from_ne_bytes).collect())
    }

    /// Runs a command that returns `SIZE` bytes for each statistic, behind the command's head and their number.
    fn entries<const SIZE: usize>(&self, name: &str, head: &[u32]) -> io::Result<Vec<[u8; SIZE]>> {
        let count = self.count(name)?;
        // A driver without any makes the kernel warn in its log (WARN_ON_ONCE), and panic on those
        // machines that do so at a warning.
        if count == 0 {
            return Ok(Vec::new());
        }
        let head = [head, &[count as u32]].concat();
        let mut buffer = buffer(&head, SIZE);
        // SAFETY: the kernel writes the head (`struct ethtool_gstrings` or `ethtool_stats`) and `SIZE` bytes
        // for each string or value. Their number was just queried, and the buffer holds twice the accepted
        // maximum; it outlives the call.
        unsafe { self.ioctl(name, buffer.as_mut_ptr()) }?;
        let (entries, _) = written(&buffer, size_of_val(&*head), count)?.as_chunks();
        Ok(entries.iter().take(count).copied().collect())
    }

    /// Runs a command of ethtool.
    ///
    /// # Safety
    ///
    /// The memory at `command` must hold all that the kernel writes in response.
    unsafe fn ioctl(&self, name: &str, command: *mut u8) -> io::Result<()> {
        let mut request = libc::ifreq {
            ifr_name: [0; libc::IFNAMSIZ],
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: command.cast() },
        };
        // One byte is left for the NUL at its end.
        if name.len() >= request.ifr_name.len() || name.contains('\0') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        // SAFETY: the request is of the type that the ioctl takes and outlives the call, and what
        // its pointer names is the caller's word.
        match unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request)
        } {
            ..0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// A command's head, and room behind it for entries of this size.
///
/// Zeroed by the allocator, which gets this much fresh from the kernel and need not write it: it is address space,
/// and memory only as far as the kernel writes. It is freed after each call, because glibc takes the next one from
/// its heap once it has seen one freed: kept for each interface, each would cost all of its half MiB.
fn buffer(head: &[u32], entry: usize) -> Vec<u8> {
    let mut buffer = vec![0; size_of_val(head) + CAPACITY * entry];
    for (field, value) in buffer.chunks_exact_mut(size_of::<u32>()).zip(head) {
        field.copy_from_slice(&value.to_ne_bytes());
    }
    buffer
}

/// The bytes after the head, whose last four are the number of entries, if the kernel wrote as many as expected. Had
/// it changed in between, values could not be matched to names.
fn written(buffer: &[u8], head: usize, count: usize) -> io::Result<&[u8]> {
    let (head, entries) = buffer.split_at_checked(head).unwrap_or_default();
    let length = head.last_chunk().map_or(0, |length| u32::from_ne_bytes(*length));
    if length as usize == count {
        return Ok(entries);
    }
    let what = format!("number of statistics changed from {count} to {length}");
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// Splits what `Socket::strings` returns.
pub fn split_strings(strings: &[u8]) -> impl Iterator<Item = String> {
    strings.chunks_exact(STRING).map(decode)
}

/// A string of the driver's: up to its NUL, which a string of full length does not have.
fn decode(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_at_nul_or_32_bytes_and_are_utf8() {
        let full = [b'x'; STRING];
        for (bytes, text) in [
            (&b"rx_prio3_pause\0\0\0"[..], "rx_prio3_pause"),
            (b"rx_packets\0left over", "rx_packets"),
            (&full, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
            (b"rx_\xff\xfe\0", "rx_\u{fffd}\u{fffd}"),
            (b"cut \xc3\0\xa9", "cut \u{fffd}"),
            (b"\0", ""),
            (b"", ""),
        ] {
            assert_eq!(decode(bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn reply_of_unexpected_length_is_an_error() {
        for (length, is_accepted) in
            [(3, true), (0, false), (2, false), (4, false), (u32::MAX, false)]
        {
            let buffer = buffer(&[GSTATS, length], VALUE);
            let entries = written(&buffer, size_of::<[u32; 2]>(), 3);
            assert_eq!(entries.is_ok(), is_accepted, "{length}");
            assert!(
                entries.is_err() || entries.is_ok_and(|entries| entries.len() == CAPACITY * VALUE)
            );
        }
    }

    #[test]
    fn missing_statistics_and_invalid_names_are_errors() {
        let socket = Socket::open().unwrap();
        for name in ["lo", "no-such-netdev", "longer-than-the-15-bytes-of-a-name", "l\0o", ""] {
            assert!(socket.count(name).is_err(), "{name:?}");
            assert!(socket.strings(name).is_err(), "{name:?}");
            assert!(socket.statistics(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn this_machine_has_a_value_for_each_string() {
        let socket = Socket::open().unwrap();
        let Ok(interfaces) = std::fs::read_dir("/sys/class/net") else { return };
        for interface in interfaces.flatten() {
            let name = interface.file_name().into_string().unwrap();
            let (Ok(count), Ok(strings)) = (socket.count(&name), socket.strings(&name)) else {
                continue;
            };
            assert_eq!(split_strings(&strings).count(), count, "{name}");
            assert!(
                split_strings(&strings).all(|string| !string.is_empty()),
                "{name}: {strings:?}"
            );
            assert_eq!(socket.statistics(&name).unwrap().len(), count, "{name}");
        }
    }
}
