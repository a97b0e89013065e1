//! Events of this host's devices, received by a thread.
//!
//! There are two sources. The kernel's uevents report that an RDMA device, its uverbs node or a network interface
//! came or went. With the feature `verbs`, each device is held open for its asynchronous events: a port reports
//! at once that it lost its link, and not at the next reading.
//!
//! **Holding a device open has a price**: drivers that cannot disassociate (rxe, siw and other software
//! devices) make the removal of the device wait in the kernel until its last holder closes it. So this thread
//! closes a device when a uevent says that its node goes, and scans periodically in case there is no uevent.

mod listener;
mod registry;
mod source;
pub mod uevent;
#[cfg(feature = "verbs")]
mod verbs;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::EventfdFlags;

use ib_mad::clock::Clock;
use ib_mad::port_event::PortEvent;

/// An event of this host's devices.
#[derive(Clone, Debug)]
pub enum HostEvent {
    /// A device reported an event of a port or of itself.
    Port(PortEvent),
    /// An RDMA device or a uverbs node came, went or was renamed: read the devices now. One of these may stand
    /// for many.
    DevicesChanged,
    /// A network interface came, went or was renamed. It may belong to no RDMA device, and where containers come
    /// and go it happens all the time: list the interfaces at the next reading.
    NetdevsChanged,
    /// The devices whose events are received from now on.
    Monitored(BTreeSet<String>),
}

/// How long dropping a [`Listener`] waits for its thread. The thread ends within a millisecond unless a device
/// that hangs blocks it in a call; then it is detached, and ends after that call.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// `SYSFS_MAGIC` (kernel: include/uapi/linux/magic.h).
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// The thread that receives events, for as long as this lives.
#[derive(Debug)]
pub struct Listener {
    stop: Arc<OwnedFd>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts the thread.
    ///
    /// `sysfs` is where sysfs is mounted; below anything else (a tree for a test) no device is opened, because
    /// libibverbs would open this host's. `wanted` returns whether a device may be opened, by its name.
    /// `handle` is called on the thread and should return at once; the thread ends when it returns false.
    ///
    /// Uevents or devices that cannot be opened are logged, and are no error.
    pub fn start(
        sysfs: &Path,
        wanted: impl Fn(&str) -> bool + Send + 'static,
        clock: Clock,
        handle: impl FnMut(HostEvent) -> bool + Send + 'static,
    ) -> io::Result<Listener> {
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stop = Arc::new(stop);
        let (end, ended) = channel();
        let stopped = Arc::clone(&stop);
        let sysfs = sysfs.to_owned();
        let thread = std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            let _end = end;
            let below = sysfs.clone();
            let wanted = move |device: &str| exists(&below, device) && wanted(device);
            listener::listen(&sysfs, wanted, clock, handle, &stopped);
        })?;
        Ok(Listener { stop, ended, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // This fails only if the eventfd's counter is full, and then it is readable anyway.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        match self.ended.recv_timeout(SHUTDOWN_TIMEOUT) {
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(limit = ?SHUTDOWN_TIMEOUT, "a device does not answer: its listener is left behind");
            }
            _ => {
                if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
                    tracing::error!("the listener for events ended by a panic");
                }
            }
        }
    }
}

/// Whether this tree is the running kernel's sysfs and has this device.
fn exists(sysfs: &Path, device: &str) -> bool {
    let class: PathBuf = sysfs.join("class/infiniband");
    rustix::fs::statfs(&class).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(SYSFS_MAGIC))
        && !device.is_empty()
        && !device.contains('/')
        && class.join(device).exists()
}

#[cfg(test)]
mod tests;
