//! Events of this host's devices, received by a thread.
//!
//! There are two sources. The kernel's uevents report that an RDMA device, its uverbs node or a network interface
//! came or went. With the feature `verbs`, each device is held open for its asynchronous events: a port reports
//! at once that it lost its link, and not at the next reading.
//!
//! **Holding a device open has a price**: drivers that cannot disassociate (rxe, siw and other software
//! devices) make the removal of the device wait in the kernel until its last holder closes it. So this thread
//! closes a device when a uevent says that its node goes, and scans periodically in case there is no uevent.

mod registry;
pub mod uevent;
#[cfg(feature = "verbs")]
mod verbs;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use ib_mad::Moment;
use ib_mad::port_event::{PortEvent, PortEventKind};
use process_clock::Clock;

use registry::DeviceRegistry;
use uevent::{Change, UeventSocket};

/// An event of this host's devices.
#[derive(Clone, Debug)]
pub enum HostEvent {
    /// A device reported an event of a port or of itself.
    Port(PortEvent),
    /// RDMA devices or uverbs nodes were added, removed or renamed: read the devices now.
    DevicesChanged,
    /// A network interface was added, removed or renamed. It may belong to no RDMA device, and where containers come
    /// and go it happens all the time: list the interfaces at the next reading.
    NetdevsChanged,
    /// The devices whose events are received from now on.
    Monitored(BTreeSet<String>),
}

/// How long dropping a [`Listener`] waits for its thread. The thread ends within a millisecond unless a device
/// that hangs blocks it in a call; then it is detached, and ends after that call.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a device may be held after it went, without uevents: a container in a user namespace of its own gets
/// none. Each scan is a wakeup on a node that may be running a job, but two in four seconds are few, and they
/// are made only while a device is held.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// The same where uevents are received: one may be lost all the same.
const SCAN_INTERVAL_WITH_UEVENTS: Duration = Duration::from_secs(30);
/// Events of one device read before the others are served.
const MAX_AT_ONCE: usize = 64;
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
            #[cfg(feature = "verbs")]
            let open = verbs::open;
            #[cfg(not(feature = "verbs"))]
            let open = |_: &str| Ok(None);
            let uevents = UeventSocket::open()
                .inspect_err(|error| {
                    tracing::warn!(%error, "kernel uevents not received: changes show at the next read");
                })
                .ok();
            let mut listener = EventLoop {
                uevents_arrive: uevents.is_some() && in_first_user_namespace(),
                uevents,
                registry: DeviceRegistry::new(&sysfs, Box::new(wanted), Box::new(open)),
                clock,
                handle: Box::new(handle),
                stop: &stopped,
                scanned: clock.now(),
                monitored: BTreeSet::new(),
                is_running: true,
            };
            // The caller reads the devices at its start: what exists then is no change.
            listener.registry.rescan(clock.now());
            while listener.is_running {
                listener.turn();
            }
        })?;
        Ok(Listener { stop, ended, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // This fails only if the eventfd's counter is full, and then it is readable anyway.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if self.ended.recv_timeout(SHUTDOWN_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(limit = ?SHUTDOWN_TIMEOUT, "event listener did not stop: a device does not respond");
        } else if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("event listener panicked");
        }
    }
}

/// Whether this tree is the running kernel's sysfs and has this device.
fn exists(sysfs: &Path, device: &str) -> bool {
    let class = sysfs.join("class/infiniband");
    rustix::fs::statfs(&class).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(SYSFS_MAGIC))
        && !device.is_empty()
        && !device.contains('/')
        && class.join(device).exists()
}

/// The kernel sends uevents only to network namespaces that belong to the first user namespace
/// (kernel: lib/kobject_uevent.c, `uevent_net_broadcast_untagged`). A thread in that one may still
/// be in a network namespace that belongs to another; then the first node that goes without a uevent shows it.
fn in_first_user_namespace() -> bool {
    // `PROC_USER_INIT_INO` (kernel: include/linux/proc_ns.h), 0xEFFFFFFD.
    std::fs::read_link("/proc/self/ns/user").is_ok_and(|to| to.as_os_str() == "user:[4026531837]")
}

struct EventLoop<'a> {
    uevents: Option<UeventSocket>,
    /// The kernel sends us uevents, as far as is known.
    uevents_arrive: bool,
    registry: DeviceRegistry,
    clock: Clock,
    handle: Box<dyn FnMut(HostEvent) -> bool>,
    stop: &'a OwnedFd,
    scanned: Moment,
    monitored: BTreeSet<String>,
    is_running: bool,
}

impl EventLoop<'_> {
    /// Waits once, and handles what is ready. Devices are closed before others are opened.
    fn turn(&mut self) {
        let Some((uevents, nodes)) = self.wait() else { return };
        if uevents {
            self.read_uevents();
        }
        for (node, is_broken) in nodes {
            self.read_node(&node, is_broken);
        }
        let now = self.clock.now();
        self.registry.close_due(now);
        // A scan without a uevent. If it finds a change, uevents do not arrive.
        if now >= self.next_scan() && self.rescan(now) {
            if self.uevents_arrive {
                tracing::debug!("device added or removed without a uevent");
                self.uevents_arrive = false;
            }
            self.send(HostEvent::DevicesChanged);
        }
        self.registry.open_one(now);
        let monitored: BTreeSet<String> = self.registry.monitored().map(str::to_owned).collect();
        if monitored != self.monitored {
            self.monitored.clone_from(&monitored);
            self.send(HostEvent::Monitored(monitored));
        }
    }

    fn next_scan(&self) -> Moment {
        let holds_any = self.registry.open().next().is_some();
        let often = holds_any && !self.uevents_arrive;
        self.scanned + if often { SCAN_INTERVAL } else { SCAN_INTERVAL_WITH_UEVENTS }
    }

    /// Waits. Returns whether there are uevents, and the nodes with events, each with whether it is broken.
    fn wait(&mut self) -> Option<(bool, Vec<(String, bool)>)> {
        let until = self.next_scan().min(self.registry.next_due().unwrap_or(Moment::NEVER));
        let rest = Timespec::try_from(until.since(self.clock.now())).ok();
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut polls = vec![readable(self.stop.as_fd())];
        polls.extend(self.uevents.iter().map(|uevents| readable(uevents.0.as_fd())));
        let first_node = polls.len();
        let (names, fds): (Vec<_>, Vec<_>) =
            self.registry.open().map(|(name, _, fd)| (name.to_owned(), readable(fd))).unzip();
        polls.extend(fds);
        match rustix::event::poll(&mut polls, rest.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return None,
            Err(error) => {
                tracing::error!(%error, "event listener stopped");
                self.is_running = false;
                return None;
            }
        }
        let is_ready = |poll: &PollFd<'_>| !poll.revents().is_empty();
        if polls.first().is_some_and(is_ready) {
            self.is_running = false;
            return None;
        }
        let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        let uevents = first_node > 1 && polls.get(1).is_some_and(is_ready);
        let nodes = names.into_iter().zip(polls.iter().skip(first_node));
        let ready = nodes.filter(|(_, poll)| is_ready(poll));
        Some((uevents, ready.map(|(name, p)| (name, p.revents().intersects(broken))).collect()))
    }

    fn read_uevents(&mut self) {
        let Some(uevents) = &self.uevents else { return };
        let now = self.clock.now();
        let mut changes = Vec::new();
        let dropped = uevents.read(|change| changes.push(change)).unwrap_or_else(|error| {
            tracing::warn!(%error, "kernel uevents no longer received: changes show at the next read");
            (self.uevents, self.uevents_arrive) = (None, false);
            true
        });
        for change in &changes {
            match change {
                Change::NodeGone(node) => self.registry.close_soon(node, now),
                Change::DeviceGone(device) => self.remove_device(device),
                Change::Node(_) | Change::Device | Change::Netdev => {}
            }
        }
        if dropped || changes.iter().any(|change| *change != Change::Netdev) {
            self.rescan(now);
            for change in &changes {
                if let Change::Node(node) = change {
                    self.registry.retry(node, now);
                }
            }
            self.send(HostEvent::DevicesChanged);
        } else if !changes.is_empty() {
            self.send(HostEvent::NetdevsChanged);
        }
    }

    /// A device was removed, after its nodes: their last events have come.
    fn remove_device(&mut self, device: &str) {
        let nodes = self.registry.open().filter(|(_, of, _)| *of == device);
        let nodes: Vec<String> = nodes.map(|(name, ..)| name.to_owned()).collect();
        for node in nodes {
            self.read_node(&node, false);
        }
        self.registry.remove_device(device);
    }

    fn read_node(&mut self, node: &str, is_broken: bool) {
        for _ in 0..MAX_AT_ONCE {
            let Some(event) = self.registry.next_event(node, self.clock.anchor()) else { break };
            let (kind, at) = (event.kind, event.at.moment);
            self.send(HostEvent::Port(event));
            if kind == PortEventKind::DeviceFatal {
                self.registry.on_closed(node, at);
            }
        }
        // All waiting events have been read.
        if is_broken {
            self.registry.on_closed(node, self.clock.now());
        }
    }

    fn rescan(&mut self, now: Moment) -> bool {
        self.scanned = now;
        self.registry.rescan(now)
    }

    fn send(&mut self, event: HostEvent) {
        self.is_running &= (self.handle)(event);
    }
}

#[cfg(test)]
mod tests;
