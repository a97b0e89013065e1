//! The listening thread.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::HostEvent;
use super::registry::DeviceRegistry;
use super::source::{OpenDevice, Verbs};
use super::uevent::{Change, UeventSocket};
use ib_mad::Moment;
use ib_mad::clock::Clock;
use ib_mad::port_event::PortEventKind;

/// How long a device may be held after it went, without uevents: a container in a user namespace of its own gets
/// none. Each scan is a wakeup on a node that may be running a job, but two in four seconds are few, and they
/// are made only while a device is held.
pub(super) const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// The same where uevents are received: one may be lost all the same.
const SCAN_INTERVAL_WITH_UEVENTS: Duration = Duration::from_secs(30);
/// How long the last events of a node that goes are waited for. The kernel first sends the uevent, and then
/// notifies its holders (`ib_uverbs_remove_one`: DEVICE_FATAL, of drivers that can disassociate from a device
/// that is held); from the others nothing comes, and their removal waits for this time.
const LAST_EVENTS: Duration = Duration::from_millis(50);
/// Events of one device read before the others are served.
const MAX_AT_ONCE: usize = 64;

/// Listens until `stop` is readable.
pub(super) fn listen(
    sysfs: &Path,
    wanted: impl Fn(&str) -> bool,
    clock: Clock,
    handle: impl FnMut(HostEvent) -> bool,
    stop: &OwnedFd,
) {
    let uevents = UeventSocket::open()
        .inspect_err(|error| tracing::warn!(%error, "the kernel's uevents are not heard"))
        .ok();
    let uevents_arrive = uevents.is_some() && in_first_user_namespace();
    let mut listener = EventLoop {
        uevents,
        uevents_arrive,
        registry: DeviceRegistry::new(sysfs, wanted, Verbs),
        clock,
        handle,
        stop,
        scanned: clock.now(),
        monitored: BTreeSet::new(),
        is_running: true,
    };
    // The caller reads the devices at its start: what exists then is no change.
    listener.registry.rescan(clock.now());
    while listener.is_running {
        listener.turn();
    }
}

/// The kernel sends uevents only to network namespaces that belong to the first user namespace
/// (kernel: lib/kobject_uevent.c, `uevent_net_broadcast_untagged`). A thread in that one may still
/// be in a network namespace that belongs to another; then the first node that goes without a uevent shows it.
fn in_first_user_namespace() -> bool {
    // `PROC_USER_INIT_INO` (kernel: include/linux/proc_ns.h), 0xEFFFFFFD.
    std::fs::read_link("/proc/self/ns/user").is_ok_and(|to| to.as_os_str() == "user:[4026531837]")
}

struct EventLoop<'a, O: OpenDevice, W, H> {
    uevents: Option<UeventSocket>,
    /// The kernel sends us uevents, as far as is known.
    uevents_arrive: bool,
    registry: DeviceRegistry<O, W>,
    clock: Clock,
    handle: H,
    stop: &'a OwnedFd,
    scanned: Moment,
    /// The devices that were last reported as monitored.
    monitored: BTreeSet<String>,
    is_running: bool,
}

impl<O: OpenDevice, W: Fn(&str) -> bool, H: FnMut(HostEvent) -> bool> EventLoop<'_, O, W, H> {
    /// Waits once, and handles what is ready. Devices are closed before others are opened.
    fn turn(&mut self) {
        let Some(ready) = self.wait() else { return };
        if ready.uevents {
            self.read_uevents();
        }
        for (node, broken) in ready.nodes {
            self.read_node(&node, broken);
        }
        let now = self.clock.now();
        if now >= self.next_scan() {
            self.scan_periodically(now);
        }
        self.registry.open_one(now);
        self.report_monitored();
    }

    /// Reports which devices are monitored, if they changed.
    fn report_monitored(&mut self) {
        let open: BTreeSet<String> = self.registry.open_devices().map(str::to_owned).collect();
        if open != self.monitored {
            self.monitored.clone_from(&open);
            self.send(HostEvent::Monitored(open));
        }
    }

    fn next_scan(&self) -> Moment {
        let holds_any = self.registry.open().next().is_some();
        let often = holds_any && !self.uevents_arrive;
        self.scanned + if often { SCAN_INTERVAL } else { SCAN_INTERVAL_WITH_UEVENTS }
    }

    fn wait(&mut self) -> Option<Ready> {
        let until = self.next_scan().min(self.registry.next_due().unwrap_or(Moment::NEVER));
        let rest = until.since(self.clock.now());
        let rest = Timespec::try_from(rest).ok();
        let mut polls = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        polls.extend(
            self.uevents
                .iter()
                .map(|uevents| PollFd::from_borrowed_fd(uevents.fd(), PollFlags::IN)),
        );
        let nodes = polls.len();
        let mut names = Vec::new();
        for (name, fd) in self.registry.open() {
            names.push(name);
            polls.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        match rustix::event::poll(&mut polls, rest.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return None,
            Err(error) => {
                tracing::error!(%error, "events are no longer heard");
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
        let ready = names.into_iter().zip(polls.iter().skip(nodes)).filter(|(_, p)| is_ready(p));
        let nodes_ready =
            ready.map(|(name, p)| (name.to_owned(), p.revents().intersects(broken))).collect();
        let uevents = nodes > 1 && polls.get(1).is_some_and(is_ready);
        Some(Ready { uevents, nodes: nodes_ready })
    }

    fn read_uevents(&mut self) {
        let Some(uevents) = &self.uevents else { return };
        let now = self.clock.now();
        let (mut changed, mut netdevs, mut retried) = (false, false, Vec::new());
        let (mut nodes_gone, mut devices_gone) = (Vec::new(), Vec::new());
        let read = uevents.read(|change| {
            changed |= change != Change::Netdev;
            match change {
                Change::NodeGone(node) => nodes_gone.push(node),
                Change::DeviceGone(device) => devices_gone.push(device),
                Change::Node(node) => retried.push(node),
                Change::Device => {}
                Change::Netdev => netdevs = true,
            }
        });
        match read {
            Ok(dropped) => changed |= dropped,
            Err(error) => {
                tracing::warn!(%error, "the kernel's uevents are no longer heard");
                (self.uevents, self.uevents_arrive) = (None, false);
                changed = true;
            }
        }
        for node in nodes_gone {
            self.read_last_events(&node);
            self.registry.remove_node(&node);
        }
        for device in devices_gone {
            self.registry.remove_device(&device);
        }
        if changed {
            self.rescan(now);
            for node in retried {
                self.registry.retry(&node, now);
            }
            self.send(HostEvent::DevicesChanged);
        } else if netdevs {
            self.send(HostEvent::NetdevsChanged);
        }
    }

    /// Reads the last events of a node that goes.
    fn read_last_events(&mut self, node: &str) {
        let Some((_, fd)) = self.registry.open().find(|(name, _)| *name == node) else { return };
        let mut poll = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let rest = Timespec::try_from(LAST_EVENTS).ok();
        if rustix::event::poll(&mut poll, rest.as_ref()).is_ok_and(|ready| ready > 0) {
            self.read_node(node, false);
        }
    }

    fn read_node(&mut self, node: &str, broken: bool) {
        for _ in 0..MAX_AT_ONCE {
            let Some(event) = self.registry.next_event(node, self.clock.anchor()) else { break };
            let (kind, at) = (event.kind, event.at.moment);
            self.send(HostEvent::Port(event));
            if kind == PortEventKind::DeviceFatal {
                self.registry.on_closed(node, at);
            }
        }
        // All waiting events have been read.
        if broken {
            self.registry.on_closed(node, self.clock.now());
        }
    }

    /// A scan without a uevent. If it finds a change, uevents do not arrive.
    fn scan_periodically(&mut self, now: Moment) {
        if self.rescan(now) {
            if self.uevents_arrive {
                tracing::debug!("a device came or went, and no uevent told of it");
                self.uevents_arrive = false;
            }
            self.send(HostEvent::DevicesChanged);
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

struct Ready {
    uevents: bool,
    /// The nodes with something to read, and whether they are broken.
    nodes: Vec<(String, bool)>,
}
