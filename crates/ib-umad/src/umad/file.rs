//! An open umad device, of the kernel or made up by a test.

use std::{fmt, io};

use super::header::HeaderFormat;

/// An open umad device.
pub(super) trait UmadFile: fmt::Debug + Send {
    /// Registers for a class. Returns the agent's id.
    fn register(&self, header: HeaderFormat, qpn: u8, class: u8) -> io::Result<u32>;

    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Without waiting.
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Its number, to wait for it.
    fn number(&self) -> libc::c_int;
}
