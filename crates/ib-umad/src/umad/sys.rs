//! System calls of umad. The only file of this crate with `unsafe`.
//!
//! They call libc on purpose: the preload library of ibsim replaces libc's `open`, `read`, `write`,
//! `ioctl`, `poll` and `close`, and returns made-up descriptor numbers, which the types of the standard
//! library and rustix do not accept (a debug build of the former aborts on close).
#![expect(unsafe_code, reason = "umad has no interface but system calls")]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::file::UmadFile;
use super::header::HeaderFormat;

/// `struct ib_user_mad_reg_req` (kernel: include/uapi/rdma/ib_user_mad.h), 28 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RegisterAgent {
    id: u32,
    method_mask: [u32; 4],
    qpn: u8,
    class: u8,
    class_version: u8,
    oui: [u8; 3],
    rmpp_version: u8,
}

/// `struct ib_user_mad_reg_req2`, 40 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RegisterAgent2 {
    id: u32,
    qpn: u32,
    class: u8,
    class_version: u8,
    reserved: u16,
    flags: u32,
    method_mask: [u64; 2],
    oui: u32,
    rmpp_version: u8,
    reserved2: [u8; 3],
}

const _: () = assert!(size_of::<RegisterAgent>() == 28 && size_of::<RegisterAgent2>() == 40);

/// `IB_USER_MAD_REGISTER_AGENT`: `_IOWR(0x1b, 1, struct ib_user_mad_reg_req)`.
const REGISTER_AGENT: libc::Ioctl = 0xc01c_1b01_u32 as libc::Ioctl;
/// `IB_USER_MAD_REGISTER_AGENT2`: `_IOWR(0x1b, 4, struct ib_user_mad_reg_req2)`.
const REGISTER_AGENT2: libc::Ioctl = 0xc028_1b04_u32 as libc::Ioctl;

#[derive(Debug)]
pub(super) struct Descriptor(libc::c_int);

fn check(result: isize) -> io::Result<usize> {
    match result {
        // The preload library of ibsim returns the negated error instead of -1 and errno.
        ..-1 => Err(io::Error::from_raw_os_error(-result as i32)),
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(result.unsigned_abs()),
    }
}

fn open(path: &Path, flags: libc::c_int) -> io::Result<libc::c_int> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a NUL-terminated string that outlives the call.
    let result = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
    check(result as isize).map(|_| result)
}

/// Reads a small text file, such as those of sysfs.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    // Without O_NONBLOCK a named pipe at this path would block.
    let fd = open(path, libc::O_RDONLY | libc::O_NONBLOCK)?;
    // SAFETY: `fd` was just opened, is a real file's, and has no other owner.
    let mut file = unsafe { File::from_raw_fd(fd) };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// The text of a file of sysfs without the newline; `None` if it is missing, cannot be read or is empty.
pub(super) fn attribute(path: &Path) -> Option<String> {
    read_text(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl Descriptor {
    pub fn open(path: &Path) -> io::Result<Self> {
        open(path, libc::O_RDWR | libc::O_NONBLOCK).map(Descriptor)
    }

    fn register_short(&self, qpn: u8, class: u8) -> io::Result<u32> {
        let mut request = RegisterAgent { qpn, class, class_version: 1, ..Default::default() };
        // SAFETY: the request is of the type and size that the ioctl's number names, and stays
        // borrowed for as long as the call lasts.
        let result = unsafe { libc::ioctl(self.0, REGISTER_AGENT, &raw mut request) };
        check(result as isize).map(|_| request.id)
    }

    /// The same for headers with a P_Key index.
    fn register_long(&self, qpn: u8, class: u8) -> io::Result<u32> {
        let qpn = qpn.into();
        let mut request = RegisterAgent2 { qpn, class, class_version: 1, ..Default::default() };
        // SAFETY: as above.
        let result = unsafe { libc::ioctl(self.0, REGISTER_AGENT2, &raw mut request) };
        check(result as isize).map(|_| request.id)
    }
}

impl UmadFile for Descriptor {
    fn register(&self, header: HeaderFormat, qpn: u8, class: u8) -> io::Result<u32> {
        match header {
            HeaderFormat::Long => self.register_long(qpn, class),
            HeaderFormat::Short => self.register_short(qpn, class),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: pointer and length are those of a live slice.
        check(unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) })
    }

    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        // SAFETY: pointer and length are those of a live slice without other writers.
        check(unsafe { libc::read(self.0, bytes.as_mut_ptr().cast(), bytes.len()) })
    }

    fn number(&self) -> libc::c_int {
        self.0
    }
}

/// The most descriptors that are waited for: those of a port and of its planes.
pub(super) const MAX_WAITED: usize = 1 + crate::plane_set::PlaneSet::MAX as usize;

/// What happened while descriptors were waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    TimedOut,
    Readable,
    /// The device of the descriptor with this index was removed.
    Gone(usize),
}

/// Waits until there is something to read from one of these descriptors.
pub(super) fn wait_readable(
    descriptors: impl IntoIterator<Item = libc::c_int>,
    limit: Duration,
) -> io::Result<Waited> {
    let mut polls = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; MAX_WAITED];
    let mut count = 0;
    for (poll, fd) in polls.iter_mut().zip(descriptors) {
        poll.fd = fd;
        count += 1;
    }
    let polls = &mut polls[..count];
    // Rounded up, to avoid busy-waiting in the last millisecond.
    let millis = i32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the number of a live slice, borrowed for as long as the call lasts.
    let result = unsafe { libc::poll(polls.as_mut_ptr(), count as libc::nfds_t, millis) };
    let ready = match check(result as isize) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        result => result?,
    };
    let is_gone =
        |poll: &libc::pollfd| poll.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
    if let Some(index) = polls.iter().position(is_gone) {
        return Ok(Waited::Gone(index));
    }
    let is_readable = ready > 0 && polls.iter().any(|poll| poll.revents & libc::POLLIN != 0);
    Ok(if is_readable { Waited::Readable } else { Waited::TimedOut })
}

impl From<OwnedFd> for Descriptor {
    fn from(opened: OwnedFd) -> Self {
        Descriptor(opened.into_raw_fd())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and is used no more.
        unsafe { libc::close(self.0) };
    }
}
