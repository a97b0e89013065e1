//! The listening thread.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::Heard;
use super::ear::{Open, Told};
use super::kernel::Uevents;
use super::roll::Roll;
use super::uevent::Change;
use super::verbs::Opener;
use crate::model::event::{Event, EventKind};
use ib_mad::Moment;
use ib_mad::clock::Clock;

/// How long a device may be held after it went, if the kernel does not tell us: a container in a
/// user namespace of its own gets no uevents. Each look is a wakeup on a node that may be running
/// a job, but two in four seconds are few, and they are made only while a device is held.
pub(super) const LOOK: Duration = Duration::from_secs(2);
/// The same where the kernel tells: for the uevent that is lost all the same.
const LOOK_TOLD: Duration = Duration::from_secs(30);
/// How long a node that goes is waited for to say so itself. The kernel tells first that it goes, and
/// then its holders (`ib_uverbs_remove_one`: DEVICE_FATAL, of drivers that can let go of a device that
/// is held); of the others nothing comes, and their removal waits for so long.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// Events of one device read before the others have their turn.
const MOST_AT_ONCE: usize = 64;

/// Listens until it is told to stop.
pub(super) fn listen(
    sysfs: &Path,
    wanted: impl Fn(&str) -> bool,
    clock: Clock,
    heard: impl FnMut(Heard) -> bool,
    stop: &OwnedFd,
) {
    let uevents = Uevents::open()
        .inspect_err(|error| tracing::warn!(%error, "the kernel's uevents are not heard"))
        .ok();
    let told = uevents.is_some() && in_first_user_namespace();
    let roll = Roll::new(sysfs, wanted, Opener);
    let mut listening = Listening {
        uevents,
        told,
        roll,
        clock,
        heard,
        stop,
        looked: clock.now(),
        held: BTreeSet::new(),
        goes_on: true,
    };
    // The caller begins with a look of its own: what is there at the start is no change.
    listening.roll.look(clock.now());
    while listening.goes_on {
        listening.turn();
    }
}

/// The kernel sends uevents only to network namespaces that belong to the first user namespace
/// (kernel: lib/kobject_uevent.c, `uevent_net_broadcast_untagged`). A thread in that one may still
/// be in a network namespace that belongs to another; the first node that goes unannounced shows.
fn in_first_user_namespace() -> bool {
    // `PROC_USER_INIT_INO` (kernel: include/linux/proc_ns.h), 0xEFFFFFFD.
    std::fs::read_link("/proc/self/ns/user").is_ok_and(|to| to.as_os_str() == "user:[4026531837]")
}

struct Listening<'a, O: Open, W, H> {
    uevents: Option<Uevents>,
    /// Uevents are known to come.
    told: bool,
    roll: Roll<O, W>,
    clock: Clock,
    heard: H,
    stop: &'a OwnedFd,
    looked: Moment,
    /// The devices that were told to be heard.
    held: BTreeSet<String>,
    goes_on: bool,
}

impl<O: Open, W: Fn(&str) -> bool, H: FnMut(Heard) -> bool> Listening<'_, O, W, H> {
    /// One wait and what comes of it. What is to be let go comes before what is to be opened.
    fn turn(&mut self) {
        let Some(ready) = self.wait() else { return };
        if ready.uevents {
            self.hear_kernel();
        }
        for (node, broken) in ready.nodes {
            self.hear_node(&node, broken);
        }
        let now = self.clock.now();
        if now >= self.next_look() {
            self.look_unasked(now);
        }
        self.roll.open_one(now);
        self.tell_held();
    }

    /// Tells which devices are heard, when they are not the same as before.
    fn tell_held(&mut self) {
        let held: BTreeSet<String> = self.roll.held().map(str::to_owned).collect();
        if held != self.held {
            self.held.clone_from(&held);
            self.tell(Heard::Listening(held));
        }
    }

    fn next_look(&self) -> Moment {
        let held = self.roll.open().next().is_some();
        self.looked + if held && !self.told { LOOK } else { LOOK_TOLD }
    }

    fn wait(&mut self) -> Option<Ready> {
        let until = self.next_look().min(self.roll.due().unwrap_or(Moment::NEVER));
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
        for (name, fd) in self.roll.open() {
            names.push(name);
            polls.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        match rustix::event::poll(&mut polls, rest.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return None,
            Err(error) => {
                tracing::error!(%error, "events are no longer heard");
                self.goes_on = false;
                return None;
            }
        }
        let is_ready = |poll: &PollFd<'_>| !poll.revents().is_empty();
        if polls.first().is_some_and(is_ready) {
            self.goes_on = false;
            return None;
        }
        let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        let ready = names.into_iter().zip(polls.iter().skip(nodes)).filter(|(_, p)| is_ready(p));
        let nodes_ready =
            ready.map(|(name, p)| (name.to_owned(), p.revents().intersects(broken))).collect();
        let uevents = nodes > 1 && polls.get(1).is_some_and(is_ready);
        Some(Ready { uevents, nodes: nodes_ready })
    }

    fn hear_kernel(&mut self) {
        let Some(uevents) = &self.uevents else { return };
        let now = self.clock.now();
        let (mut changed, mut netdevs, mut anew) = (false, false, Vec::new());
        let (mut nodes_gone, mut devices_gone) = (Vec::new(), Vec::new());
        let read = uevents.read(|change| {
            changed |= change != Change::Netdev;
            match change {
                Change::NodeGone(node) => nodes_gone.push(node),
                Change::DeviceGone(device) => devices_gone.push(device),
                Change::Node(node) => anew.push(node),
                Change::Device => {}
                Change::Netdev => netdevs = true,
            }
        });
        match read {
            Ok(dropped) => changed |= dropped,
            Err(error) => {
                tracing::warn!(%error, "the kernel's uevents are no longer heard");
                (self.uevents, self.told) = (None, false);
                changed = true;
            }
        }
        for node in nodes_gone {
            self.hear_last(&node);
            self.roll.node_gone(&node);
        }
        for device in devices_gone {
            self.roll.device_gone(&device);
        }
        if changed {
            self.look(now);
            for node in anew {
                self.roll.try_anew(&node, now);
            }
            self.tell(Heard::DevicesChanged);
        } else if netdevs {
            self.tell(Heard::NetdevsChanged);
        }
    }

    /// Hears what a node that goes has still to say.
    fn hear_last(&mut self, node: &str) {
        let Some((_, fd)) = self.roll.open().find(|(name, _)| *name == node) else { return };
        let mut poll = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let rest = Timespec::try_from(LAST_WORDS).ok();
        if rustix::event::poll(&mut poll, rest.as_ref()).is_ok_and(|ready| ready > 0) {
            self.hear_node(node, false);
        }
    }

    fn hear_node(&mut self, node: &str, broken: bool) {
        for _ in 0..MOST_AT_ONCE {
            let now = self.clock.now();
            let Some((device, told)) = self.roll.next(node, now) else { break };
            let Some(event) = event(&self.clock, device, told) else { continue };
            let fatal = event.kind == EventKind::DeviceFatal;
            self.tell(Heard::Event(event));
            if fatal {
                self.roll.fell_silent(node, now);
            }
        }
        // What was still to be read has been read.
        if broken {
            self.roll.fell_silent(node, self.clock.now());
        }
    }

    /// A look that no uevent asked for. If it finds something, uevents do not come.
    fn look_unasked(&mut self, now: Moment) {
        if self.look(now) {
            if self.told {
                tracing::debug!("a device came or went, and no uevent told of it");
                self.told = false;
            }
            self.tell(Heard::DevicesChanged);
        }
    }

    fn look(&mut self, now: Moment) -> bool {
        self.looked = now;
        self.roll.look(now)
    }

    fn tell(&mut self, heard: Heard) {
        self.goes_on &= (self.heard)(heard);
    }
}

struct Ready {
    uevents: bool,
    /// The nodes with something to read, and whether they are broken.
    nodes: Vec<(String, bool)>,
}

fn event(clock: &Clock, device: &str, told: Told) -> Option<Event> {
    let kind = EventKind::from_code(told.code)?;
    let port = (kind != EventKind::DeviceFatal && told.port != 0).then_some(told.port);
    Some(Event { at: clock.anchor(), device: device.to_owned(), port, kind })
}
