//! Many datagrams by one system call, and waiting with the precision of nanoseconds.
//!
//! The standard library sends and receives one datagram a call and its sleeps overshoot by 50 µs;
//! at 100,000 MADs a second both would be what a test measures.
// The standard library does not have these four calls.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::ptr;
use std::time::Duration;

/// One MAD with ibsim's header, as it travels. Another length is not of this protocol.
pub const PACKET: usize = 288;

/// The packets of one call.
pub const BATCH: usize = 64;

/// A packet.
pub type Packet = [u8; PACKET];

/// Lets this thread wake up to the microsecond rather than within the usual 50 µs of slack.
pub fn wake_precisely() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
    }
}

/// Waits until one of the descriptors has one of its events (`libc::POLLIN` and the like) or the
/// time has passed, and returns the events of each.
pub fn wait<const N: usize>(
    fds: [(BorrowedFd<'_>, libc::c_short); N],
    timeout: Option<Duration>,
) -> io::Result<[libc::c_short; N]> {
    let mut polled =
        fds.map(|(fd, events)| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
    let timeout = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `polled` is an array of N pollfd, `timeout` null or a timespec; both live beyond the
    // call, and a null signal mask means the thread's own.
    let n = unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, timeout, ptr::null()) };
    if n < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        return Ok([0; N]);
    }
    Ok(polled.map(|p| p.revents))
}

/// Buffers for the packets of one call.
pub struct PacketBuffers(Box<[Packet]>);

impl PacketBuffers {
    /// Empty buffers.
    pub fn new() -> Self {
        Self(vec![[0; PACKET]; BATCH].into_boxed_slice())
    }

    /// Receives pending packets, at most a batch, and passes each one to `take`. Packets of another
    /// length are dropped, as ibsim's own client does. The socket must not block.
    pub fn receive(
        &mut self,
        socket: &UnixDatagram,
        mut take: impl FnMut(&Packet),
    ) -> io::Result<()> {
        let mut parts = [part(ptr::null_mut()); BATCH];
        for (slot, packet) in parts.iter_mut().zip(&mut self.0) {
            *slot = part(packet.as_mut_ptr());
        }
        let mut messages = parts.each_mut().map(message);
        // SAFETY: each of the BATCH headers points to one part and each part to PACKET writable bytes
        // of the inbox, which has BATCH packets; all live beyond the call. A null timeout means none.
        let n = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                0,
                ptr::null_mut(),
            )
        };
        for (packet, message) in self.0.iter().zip(&messages).take(count(n)?) {
            // The flag marks a datagram that was longer than its buffer.
            if message.msg_len as usize == PACKET
                && message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0
            {
                take(packet);
            }
        }
        Ok(())
    }
}

/// Sends packets in order, at most a batch, and returns how many were sent; 0 when the peer cannot take
/// more now. The socket must not block.
pub fn send<'a>(
    socket: &UnixDatagram,
    packets: impl Iterator<Item = &'a Packet>,
) -> io::Result<usize> {
    let mut parts = [part(ptr::null_mut()); BATCH];
    let mut wanted = 0;
    for (slot, packet) in parts.iter_mut().zip(packets) {
        *slot = part(packet.as_ptr().cast_mut());
        wanted += 1;
    }
    let mut messages = parts.each_mut().map(message);
    // SAFETY: each of the first `wanted` headers points to one part and each part to PACKET bytes
    // borrowed for 'a, which sendmmsg only reads; all live beyond the call.
    let n = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), wanted, libc::MSG_NOSIGNAL)
    };
    count(n)
}

fn part(packet: *mut u8) -> libc::iovec {
    libc::iovec { iov_base: packet.cast(), iov_len: PACKET }
}

fn message(part: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: mmsghdr is numbers and pointers, for which zero is a value: no address, no parts, no
    // control data. It has private padding on some systems, so it cannot be written out.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_iov = part;
    message.msg_hdr.msg_iovlen = 1;
    message
}

/// The result of a call on many messages: "not now" is none of them, not an error.
fn count(result: libc::c_int) -> io::Result<usize> {
    usize::try_from(result).or_else(|_| {
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
            _ => Err(error),
        }
    })
}
