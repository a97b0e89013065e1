//! Devices held open for their asynchronous events, and the libibverbs implementation.

use std::io;
use std::os::fd::BorrowedFd;

/// An event as the kernel reports it: the code of `enum ibv_event_type`, and a port's number or 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawEvent {
    pub code: u32,
    pub port: u8,
}

/// A device held open for its events.
pub(super) trait AsyncEventSource {
    fn fd(&self) -> BorrowedFd<'_>;

    /// The next event; `WouldBlock` if there is none. Any other error: the device is gone.
    fn next_event(&mut self) -> io::Result<RawEvent>;
}

/// Opens devices.
pub(super) trait OpenDevice {
    type Source: AsyncEventSource;

    /// Opens the device behind this node. Not by the device's name: libibverbs keeps the name that a device
    /// had when it first saw it, so a renamed one would never be found.
    fn open(&mut self, node: &str) -> Result<Self::Source, OpenError>;
}

/// Why a device cannot be opened for its events.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    /// The program was built without libibverbs: no warning is logged.
    #[cfg_attr(feature = "verbs", expect(dead_code, reason = "the other build's"))]
    #[error("built without libibverbs")]
    NotBuilt,
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

/// Opens devices by libibverbs.
///
/// All of its calls are made by the listening thread: a device that hangs may block any of them.
pub(super) struct Verbs;

#[cfg(feature = "verbs")]
mod with_verbs {
    use rustix::fs::OFlags;

    use super::super::verbs::{Context, DeviceList};
    use super::{AsyncEventSource, BorrowedFd, OpenDevice, OpenError, RawEvent, Verbs, io};

    impl OpenDevice for Verbs {
        type Source = Context;

        fn open(&mut self, node: &str) -> Result<Context, OpenError> {
            let list = DeviceList::new().map_err(OpenError::NoList)?;
            let context =
                list.open(node).ok_or(OpenError::Unlisted)?.map_err(OpenError::Refused)?;
            let refused = |error: rustix::io::Errno| OpenError::Refused(error.into());
            let flags = rustix::fs::fcntl_getfl(context.fd()).map_err(refused)?;
            rustix::fs::fcntl_setfl(context.fd(), flags | OFlags::NONBLOCK).map_err(refused)?;
            Ok(context)
        }
    }

    impl AsyncEventSource for Context {
        fn fd(&self) -> BorrowedFd<'_> {
            self.fd()
        }

        fn next_event(&mut self) -> io::Result<RawEvent> {
            let (code, port) = self.next()?;
            Ok(RawEvent { code, port: u8::try_from(port).unwrap_or(0) })
        }
    }
}

/// Without libibverbs no device is opened.
#[cfg(not(feature = "verbs"))]
mod without_verbs {
    use std::convert::Infallible;

    use super::{AsyncEventSource, BorrowedFd, OpenDevice, OpenError, RawEvent, Verbs, io};

    impl OpenDevice for Verbs {
        type Source = Infallible;

        fn open(&mut self, _node: &str) -> Result<Infallible, OpenError> {
            Err(OpenError::NotBuilt)
        }
    }

    impl AsyncEventSource for Infallible {
        fn fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }

        fn next_event(&mut self) -> io::Result<RawEvent> {
            match *self {}
        }
    }
}
