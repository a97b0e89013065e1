//! The three ioctls of ethtool that read a driver's statistics.
//!
//! The caller gives no length that the kernel would keep to: it copies as many entries as the driver
//! has at that moment (net/ethtool/ioctl.c, `ethtool_get_strings`, `ethtool_get_stats`), and a driver
//! may have gained some since it was asked how many, as mlx5 does with channels. So there is always
//! room for twice what is ever accepted.
#![expect(unsafe_code, reason = "ethtool's statistics by ioctl")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

// Commands and structures: include/uapi/linux/ethtool.h.
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
/// `ETH_SS_STATS`, the set of strings that names the statistics.
const SET_STATS: u32 = 1;
/// `ETH_GSTRING_LEN`.
const STRING: usize = 32;
/// A value's size.
const VALUE: usize = size_of::<u64>();

/// How many entries a buffer has room for.
const ROOM: usize = 65_536;
/// How many a driver may say it has. An mlx5 was seen with 19,338
/// (safchain/ethtool, issue 45).
const MOST: usize = ROOM / 2;

/// `struct ethtool_sset_info` with room for one set, 20 bytes. The kernel copies all that lies
/// before `data`, and then one count for each set that was asked for and is there.
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

/// `struct ethtool_gstrings` and `struct ethtool_stats` without their data. The last four bytes of
/// both are the length.
const STRINGS_HEAD: usize = 12;
const STATISTICS_HEAD: usize = 8;

/// A socket to ask the kernel by, in the network namespace that it was opened in.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl Socket {
    pub fn open() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        Ok(Socket(socket_with(family, kind, SocketFlags::CLOEXEC, None)?))
    }

    /// The index of the interface that has this name here.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(netdevice::name_to_index(&self.0, name)?)
    }

    /// How many statistics an interface has.
    pub fn count(&self, name: &str) -> io::Result<usize> {
        let mask = (1u64 << SET_STATS).to_ne_bytes();
        let mut info = SetInfo { command: GSSET_INFO, reserved: 0, mask, count: 0 };
        // SAFETY: one set is asked for, so the kernel writes 16 bytes and one count, which is the
        // structure's size (`ethtool_get_sset_info`).
        unsafe { self.ask(name, (&raw mut info).cast()) }?;
        // A set that is not there has its bit taken away, which is no error by itself.
        if info.mask != mask {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let count = info.count as usize;
        let refused = || io::Error::new(io::ErrorKind::InvalidData, format!("{count} statistics"));
        if count > MOST { Err(refused()) } else { Ok(count) }
    }

    /// What they are called, in the driver's order, as the kernel writes them: [`each`] tells.
    pub fn strings(&self, name: &str) -> io::Result<Vec<u8>> {
        let count = self.count(name)?;
        // A driver without any makes the kernel warn in its log (WARN_ON_ONCE), and panic on those
        // machines that do so at a warning.
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut buffer = buffer(&[GSTRINGS, SET_STATS, count as u32], STRING);
        // SAFETY: the kernel writes 12 bytes and 32 for each string. It was just asked how many they
        // are, and there is room for twice the most that may be; the buffer outlives the call.
        unsafe { self.ask(name, buffer.as_mut_ptr()) }?;
        let strings = written(&buffer, STRINGS_HEAD, count)?;
        Ok(strings.get(..count * STRING).unwrap_or_default().to_vec())
    }

    /// What they are, in the same order.
    pub fn statistics(&self, name: &str, values: &mut Vec<u64>) -> io::Result<()> {
        values.clear();
        let count = self.count(name)?;
        // As above.
        if count == 0 {
            return Ok(());
        }
        let mut buffer = buffer(&[GSTATS, count as u32], VALUE);
        // SAFETY: the kernel writes 8 bytes and 8 for each value; the rest is as above.
        unsafe { self.ask(name, buffer.as_mut_ptr()) }?;
        let (all, _) = written(&buffer, STATISTICS_HEAD, count)?.as_chunks();
        values.extend(all.iter().take(count).map(|value| u64::from_ne_bytes(*value)));
        Ok(())
    }

    /// Hands a command to the kernel.
    ///
    /// # Safety
    ///
    /// At `command` there must be room for all that the kernel writes in answer to it.
    unsafe fn ask(&self, name: &str, command: *mut u8) -> io::Result<()> {
        let mut request = libc::ifreq {
            ifr_name: [0; libc::IFNAMSIZ],
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: command.cast() },
        };
        // One byte is left for the NUL at its end.
        if name.len() >= request.ifr_name.len() || name.contains('\0') {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        // SAFETY: the request is of the type that the ioctl takes and outlives the call, and what
        // its pointer names is the caller's word.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } {
            ..0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// A command's head, and room behind it for entries of this size.
///
/// Zeroed by the allocator, which gets this much fresh from the kernel and then need not write it: it
/// is address space, and memory only as far as the kernel writes. Once glibc has seen one freed it
/// takes the next from its heap, so it is let go again after each call: kept for each interface,
/// each would cost all of its half MiB.
fn buffer(head: &[u32], entry: usize) -> Vec<u8> {
    let mut buffer = vec![0; size_of_val(head) + ROOM * entry];
    for (field, value) in buffer.chunks_exact_mut(size_of::<u32>()).zip(head) {
        field.copy_from_slice(&value.to_ne_bytes());
    }
    buffer
}

/// What lies behind the head, if the kernel wrote as many entries as it said it would. Had they
/// changed in between, nobody could tell which they are.
fn written(buffer: &[u8], head: usize, count: usize) -> io::Result<&[u8]> {
    let (head, entries) = buffer.split_at_checked(head).unwrap_or_default();
    let length = head.last_chunk().map_or(0, |length| u32::from_ne_bytes(*length));
    if length as usize == count {
        return Ok(entries);
    }
    let what = format!("{count} statistics that became {length}");
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// A driver's strings, each of them.
pub fn each(strings: &[u8]) -> impl Iterator<Item = String> {
    strings.chunks_exact(STRING).map(decoded)
}

/// A string of the driver's: up to its NUL if it has one, which one of full length has not.
fn decoded(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_nul_or_at_its_32nd_byte_and_is_text_whatever_it_is() {
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
            assert_eq!(decoded(bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn an_answer_of_another_length_than_was_told_is_none() {
        for (length, is_taken) in [(3, true), (0, false), (2, false), (4, false), (u32::MAX, false)]
        {
            let buffer = buffer(&[GSTATS, length], VALUE);
            let entries = written(&buffer, STATISTICS_HEAD, 3);
            assert_eq!(entries.is_ok(), is_taken, "{length}");
            assert!(entries.is_err() || entries.is_ok_and(|entries| entries.len() == ROOM * VALUE));
        }
    }

    #[test]
    fn an_interface_without_statistics_and_a_name_that_is_none_are_errors() {
        let socket = Socket::open().unwrap();
        let mut values = Vec::new();
        for name in ["lo", "no-such-netdev", "longer-than-the-15-bytes-of-a-name", "l\0o", ""] {
            assert!(socket.count(name).is_err(), "{name:?}");
            assert!(socket.strings(name).is_err(), "{name:?}");
            assert!(socket.statistics(name, &mut values).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_interfaces_of_this_machine_have_as_many_strings_as_statistics() {
        let socket = Socket::open().unwrap();
        let mut values = Vec::new();
        let Ok(interfaces) = std::fs::read_dir("/sys/class/net") else { return };
        for interface in interfaces.flatten() {
            let name = interface.file_name().into_string().unwrap();
            let (Ok(count), Ok(strings)) = (socket.count(&name), socket.strings(&name)) else {
                continue;
            };
            assert_eq!(each(&strings).count(), count, "{name}");
            assert!(each(&strings).all(|string| !string.is_empty()), "{name}: {strings:?}");
            socket.statistics(&name, &mut values).unwrap();
            assert_eq!(values.len(), count, "{name}");
        }
    }
}
