//! The kernel's umad interface as documented, independent of the exporter's own code.
// Neither the standard library nor rustix has these calls.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// `_IOWR(0x1b, 4, struct ib_user_mad_reg_req2)`.
pub const REGISTER_AGENT2: u32 = 0xc028_1b04;

/// Registers for a management class and the requests with these methods; returns the agent's number.
pub fn register(umad: &File, qpn: u32, class: u8, methods: u64) -> io::Result<u32> {
    let mut request = [0u8; 40];
    request[4..8].copy_from_slice(&qpn.to_ne_bytes());
    request[8] = class;
    request[9] = 1; // its version
    request[16..24].copy_from_slice(&methods.to_ne_bytes());
    // SAFETY: the kernel reads and writes the 40 bytes that the call's number names.
    let result =
        unsafe { libc::ioctl(umad.as_raw_fd(), REGISTER_AGENT2.into(), request.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::from_ne_bytes([request[0], request[1], request[2], request[3]]))
}

/// Waits until there is something to read, or for this time; without limit if there is none.
pub fn wait(umad: &File, limit: Option<Duration>) {
    let mut poll = libc::pollfd { fd: umad.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = limit.map_or(-1, |limit| limit.as_micros().div_ceil(1000).try_into().unwrap());
    // SAFETY: one pollfd, which outlives the call.
    unsafe { libc::poll(&raw mut poll, 1, millis) };
}

/// For this process, makes the kernel one without REGISTER_AGENT2: those before 3.18 return EINVAL for it.
pub fn forget_register_agent2() {
    // Instructions of the classic BPF: load a word of struct seccomp_data, jump if equal, return.
    let (load, jump_if_equal, ret) = (0x20, 0x15, 0x06);
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let equals = |k, jf| libc::sock_filter { code: jump_if_equal, jt: 0, jf, k };
    let mut filter = [
        statement(load, 0), // nr
        equals(libc::SYS_ioctl as u32, 3),
        statement(load, 24), // the lower half of args[1], on little-endian machines
        equals(REGISTER_AGENT2, 1),
        statement(ret, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32),
        statement(ret, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the first call takes numbers alone; the second reads the program and its filter, which outlive it.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(result, 0, "seccomp: {}", io::Error::last_os_error());
}
