//! What devices tell of themselves: a thread that listens.
//!
//! Two sources. The kernel's uevents say that an RDMA device, its uverbs node or a netdev came or
//! went. With the feature `verbs`, each device is held open for its asynchronous events: a port
//! that lost its link says so at once and not at the next reading.
//!
//! **Holding a device open has a price**: drivers that cannot disassociate (rxe, siw and other soft
//! ones) make whoever removes the device wait in the kernel until the last holder lets go. So this
//! thread lets go when the kernel says that the node goes, and it looks now and then in case it
//! was not told.

mod ear;
mod kernel;
mod roll;
pub mod uevent;
#[cfg(not(feature = "verbs"))]
#[path = "unheard.rs"]
mod verbs;
#[cfg(feature = "verbs")]
mod verbs;

mod listen;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::EventfdFlags;

use crate::model::event::Event;
use ib_mad::clock::Clock;

/// What the listener heard.
#[derive(Clone, Debug)]
pub enum Heard {
    /// A device told of a port or of itself.
    Event(Event),
    /// An RDMA device or a uverbs node came, went or changed its name: look again now. One of these
    /// may stand for many.
    DevicesChanged,
    /// A network interface did. It may be anybody's, and where containers come and go they do so all
    /// the time: look closely the next time.
    NetdevsChanged,
    /// These are the devices that are heard now: what another does, nobody tells.
    Listening(BTreeSet<String>),
}

/// How long dropping a [`Listener`] waits for its thread. It ends within a millisecond unless a
/// sick device keeps it in a call; then it is left behind, and ends after that call.
const MOST_FAREWELL: Duration = Duration::from_secs(1);

/// `SYSFS_MAGIC` (kernel: include/uapi/linux/magic.h).
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// A thread that listens, for as long as this lives.
#[derive(Debug)]
pub struct Listener {
    stop: Arc<OwnedFd>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Begins to listen.
    ///
    /// `sysfs` is where sysfs is mounted; below anything else (a tree for a test) no device is
    /// opened, because libibverbs would open this host's. `wanted` says for a device's name
    /// whether it may be opened. `heard` is called on the listener's thread and should return at
    /// once; the thread ends when it returns false.
    ///
    /// That uevents or devices are not to be had is logged and not an error.
    pub fn start(
        sysfs: &Path,
        wanted: impl Fn(&str) -> bool + Send + 'static,
        clock: Clock,
        heard: impl FnMut(Heard) -> bool + Send + 'static,
    ) -> io::Result<Listener> {
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stop = Arc::new(stop);
        let (end, ended) = channel();
        let stopped = Arc::clone(&stop);
        let sysfs = sysfs.to_owned();
        let thread = std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            let _end = end;
            let below = sysfs.clone();
            let wanted = move |device: &str| is_here(&below, device) && wanted(device);
            listen::listen(&sysfs, wanted, clock, heard, &stopped);
        })?;
        Ok(Listener { stop, ended, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // An eventfd's counter takes this unless it is full, and then it is readable anyway.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        match self.ended.recv_timeout(MOST_FAREWELL) {
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(limit = ?MOST_FAREWELL, "a device does not answer: its listener is left behind");
            }
            _ => {
                if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
                    tracing::error!("the listener for events ended by a panic");
                }
            }
        }
    }
}

/// Whether this tree is the running kernel's and has this device.
fn is_here(sysfs: &Path, device: &str) -> bool {
    let class: PathBuf = sysfs.join("class/infiniband");
    rustix::fs::statfs(&class).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(SYSFS_MAGIC))
        && !device.is_empty()
        && !device.contains('/')
        && class.join(device).exists()
}

#[cfg(test)]
mod tests;
