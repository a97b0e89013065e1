//! Devices as libibverbs opens them, for the sake of their asynchronous events.

mod sys;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::OFlags;

use super::ear::{Deaf, Ear, Open, Told};

/// Opens devices by libibverbs.
///
/// All of its calls are made by the listening thread: a sick device may hang any of them.
pub(super) struct Opener;

impl Open for Opener {
    type Ear = Verbs;

    fn open(&mut self, node: &str) -> Result<Verbs, Deaf> {
        let context = match sys::List::new().map_err(Deaf::NoList)?.open(node) {
            Some(opened) => opened.map_err(Deaf::Refused)?,
            None => return Err(Deaf::Unlisted),
        };
        let flags = rustix::fs::fcntl_getfl(context.fd()).map_err(|e| Deaf::Refused(e.into()))?;
        rustix::fs::fcntl_setfl(context.fd(), flags | OFlags::NONBLOCK)
            .map_err(|error| Deaf::Refused(error.into()))?;
        Ok(Verbs(context))
    }
}

/// An open device.
pub(super) struct Verbs(sys::Context);

impl Ear for Verbs {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    fn next(&mut self) -> io::Result<Told> {
        self.0.next().map(|(code, port)| Told { code, port: u8::try_from(port).unwrap_or(0) })
    }
}
