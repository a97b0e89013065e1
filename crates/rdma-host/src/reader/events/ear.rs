//! What it takes to hear a device: the seam between the listener and libibverbs.

use std::io;
use std::os::fd::BorrowedFd;

/// What a device told: the code of `enum ibv_event_type` as it came, and a port's number, 0 if it
/// is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub code: u32,
    pub port: u8,
}

/// A device held open for its events.
pub(super) trait Ear {
    fn fd(&self) -> BorrowedFd<'_>;

    /// The next event; `WouldBlock` if there is none. Any other error: the device is gone.
    fn next(&mut self) -> io::Result<Told>;
}

/// Opens devices.
pub(super) trait Open {
    type Ear: Ear;

    /// Opens the device behind this node. Not by the device's name: libibverbs keeps the name a
    /// device had when it first saw it, so that a renamed one would never be found.
    fn open(&mut self, node: &str) -> Result<Self::Ear, Deaf>;
}

/// Why a device is not heard.
#[derive(Debug, thiserror::Error)]
pub(super) enum Deaf {
    /// The program was built without libibverbs, which is no news.
    #[cfg_attr(feature = "verbs", expect(dead_code, reason = "the other build's"))]
    #[error("built without libibverbs")]
    Built,
    #[cfg_attr(not(feature = "verbs"), expect(dead_code, reason = "the other build's"))]
    #[error("libibverbs has no list of devices: {0}")]
    NoList(#[source] io::Error),
    #[cfg_attr(not(feature = "verbs"), expect(dead_code, reason = "the other build's"))]
    #[error("libibverbs does not know it: is its provider (ibverbs-providers) installed?")]
    Unlisted,
    #[cfg_attr(not(any(feature = "verbs", test)), expect(dead_code, reason = "the other build's"))]
    #[error("it cannot be opened: {0}")]
    Refused(#[source] io::Error),
}
