//! The uverbs nodes of this host: which exist, which are held open, and which will be retried.
//!
//! It does not wait and reads no clock: the listener queries when something is due.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_mad::port_event::{PortEvent, PortEventKind};

use crate::reader::sysfs::Directory;

/// The first pause before opening a device is retried; each one after is twice as long. udev sets the permissions
/// of a new node shortly after the kernel's uevent, and much later on a host that boots.
const FIRST_RETRY: Duration = Duration::from_millis(50);
/// How often opening a device is tried: the last time 51 s after the first.
const MAX_TRIES: u32 = 11;
/// How long the last events of a device that goes are waited for. The kernel first sends the uevent, and then
/// notifies its holders (`ib_uverbs_remove_one`: DEVICE_FATAL, of drivers that can disassociate from a device
/// that is held). Drivers of hardware can, nearly all: the event comes within milliseconds, or later on a busy
/// host, and ends the wait.
const LAST_EVENTS: Duration = Duration::from_secs(2);
/// The same of devices without hardware (rxe, siw): they send nothing, and their removal waits for this time.
const LAST_EVENTS_OF_SOFTWARE: Duration = Duration::from_millis(50);
/// The pause before a device whose events ended is opened again. One that is being removed is gone by then.
const REOPEN_DELAY: Duration = Duration::from_secs(1);
/// A device that was open for this long was healthy: that its events end then is the first failure, not another one.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// An event as the kernel reports it: the code of `enum ibv_event_type`, and a port's number or 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawEvent {
    pub code: u32,
    pub port: u8,
}

pub(super) trait EventSource {
    fn fd(&self) -> BorrowedFd<'_>;

    /// The next event; `WouldBlock` if there is none. Any other error: the device is gone.
    fn next_event(&mut self) -> io::Result<RawEvent>;
}

/// Opens the device behind a node; `None` if the program was built without libibverbs. Not by the device's name:
/// libibverbs keeps the name that a device had when it first saw it, so a renamed one would never be found.
pub(super) type OpenDevice = dyn FnMut(&str) -> io::Result<Option<Box<dyn EventSource>>>;

enum NodeState {
    Open(Box<dyn EventSource>),
    Due(Moment),
    /// It is not wanted, or was tried often enough.
    Abandoned,
}

struct Node {
    device: Arc<str>,
    is_hardware: bool,
    /// The device is being removed: its node is closed at its last event, or at this moment.
    closes: Option<Moment>,
    /// When it was opened last.
    opened: Moment,
    /// How often in sequence opening it failed, or its events ended.
    tries: u32,
    /// It was logged that its events are not received.
    warned: bool,
    state: NodeState,
}

impl Node {
    /// Waits for the last events, if there may be any. Returns whether to keep the node until then.
    fn close_soon(&mut self, now: Moment) -> bool {
        let wait = if self.is_hardware { LAST_EVENTS } else { LAST_EVENTS_OF_SOFTWARE };
        self.closes.get_or_insert(now + wait);
        matches!(self.state, NodeState::Open(_))
    }
}

/// The nodes below `class/infiniband_verbs`, by their names (`uverbs0`).
pub(super) struct DeviceRegistry {
    class: PathBuf,
    wanted: Box<dyn Fn(&str) -> bool>,
    open_device: Box<OpenDevice>,
    nodes: BTreeMap<String, Node>,
}

impl DeviceRegistry {
    pub fn new(
        sysfs: &Path,
        wanted: Box<dyn Fn(&str) -> bool>,
        open_device: Box<OpenDevice>,
    ) -> Self {
        let class = sysfs.join("class/infiniband_verbs");
        DeviceRegistry { class, wanted, open_device, nodes: BTreeMap::new() }
    }

    /// Schedules the closing of nodes that were removed, and the opening of new ones. Returns whether any was added
    /// or removed.
    pub fn rescan(&mut self, now: Moment) -> bool {
        let there = match nodes_below(&self.class) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            // Without a list everything stays as it is.
            Err(error) => {
                tracing::debug!(class = %self.class.display(), %error, "cannot list uverbs nodes");
                return false;
            }
        };
        let mut changed = false;
        self.nodes.retain(|name, node| {
            let is_known = node.closes.is_some();
            let (keep, is_same) = match there.get(name) {
                None => (node.close_soon(now), is_known),
                Some(device) if **device == *node.device && !is_known => (true, true),
                // A node of the same name with another device is another node.
                Some(_) => (false, false),
            };
            changed |= !is_same;
            keep
        });
        for (name, device) in there {
            if self.nodes.contains_key(&name) {
                continue;
            }
            changed = true;
            let wanted = (self.wanted)(&device);
            let state = if wanted { NodeState::Due(now) } else { NodeState::Abandoned };
            let is_hardware = self.class.join(&name).join("device").exists();
            let device = device.into();
            let node = Node {
                device,
                is_hardware,
                closes: None,
                opened: now,
                tries: 0,
                warned: false,
                state,
            };
            self.nodes.insert(name, node);
        }
        changed
    }

    /// A node is being removed: closes it after its last events. The kernel may be waiting for that.
    pub fn close_soon(&mut self, name: &str, now: Moment) {
        if self.nodes.get_mut(name).is_some_and(|node| !node.close_soon(now)) {
            self.nodes.remove(name);
        }
    }

    /// Closes the nodes whose last events did not come in time.
    pub fn close_due(&mut self, now: Moment) {
        self.nodes.retain(|_, node| node.closes.is_none_or(|at| at > now));
    }

    /// Closes the nodes of a device that was removed.
    pub fn remove_device(&mut self, device: &str) {
        self.nodes.retain(|_, node| *node.device != *device);
    }

    /// There was a uevent of this node: whatever kept it from being opened may be gone.
    pub fn retry(&mut self, name: &str, now: Moment) {
        if let Some(node) = self.nodes.get_mut(name)
            && !matches!(node.state, NodeState::Open(_))
            && (self.wanted)(&node.device)
        {
            node.tries = 0;
            node.state = NodeState::Due(now);
        }
    }

    pub fn next_due(&self) -> Option<Moment> {
        let due = |node: &Node| match node.state {
            NodeState::Due(at) => Some(at),
            NodeState::Open(_) | NodeState::Abandoned => node.closes,
        };
        self.nodes.values().filter_map(due).min()
    }

    /// Opens one node that is due. Only one: each may take time, and others may have to be closed meanwhile.
    pub fn open_one(&mut self, now: Moment) {
        let due = |node: &Node| matches!(node.state, NodeState::Due(at) if at <= now);
        let Some((name, node)) = self.nodes.iter_mut().find(|(_, node)| due(node)) else { return };
        let device = &*node.device;
        node.state = match (self.open_device)(name) {
            Ok(Some(source)) => {
                tracing::debug!(device, "device events received");
                node.opened = now;
                NodeState::Open(source)
            }
            Ok(None) => NodeState::Abandoned,
            Err(error) => {
                node.tries += 1;
                if node.tries < MAX_TRIES {
                    tracing::debug!(device, tries = node.tries, %error, "device events not received yet");
                    NodeState::Due(now + FIRST_RETRY * (1 << (node.tries - 1)))
                } else {
                    if !std::mem::replace(&mut node.warned, true) {
                        tracing::warn!(
                            device, %error,
                            "device events not received: check access to its uverbsN, and LimitMEMLOCK"
                        );
                    }
                    NodeState::Abandoned
                }
            }
        };
    }

    /// The devices whose events are received, but for those that are being removed.
    pub fn monitored(&self) -> impl Iterator<Item = &str> {
        let is_open = |node: &&Node| matches!(node.state, NodeState::Open(_));
        self.nodes.values().filter(is_open).filter(|it| it.closes.is_none()).map(|it| &*it.device)
    }

    /// The open nodes with their devices and descriptors, which are to be polled.
    pub fn open(&self) -> impl Iterator<Item = (&str, &str, BorrowedFd<'_>)> {
        self.nodes.iter().filter_map(|(name, node)| match &node.state {
            NodeState::Open(source) => Some((name.as_str(), &*node.device, source.fd())),
            NodeState::Due(_) | NodeState::Abandoned => None,
        })
    }

    /// Reads one event of a node, but none of queues and QPs. The node is closed when no more will come.
    pub fn next_event(&mut self, name: &str, at: Anchor) -> Option<PortEvent> {
        let node = self.nodes.get_mut(name)?;
        loop {
            let NodeState::Open(source) = &mut node.state else { return None };
            match source.next_event() {
                Ok(raw) => {
                    if let Some(event) = port_event(&node.device, raw, at) {
                        return Some(event);
                    }
                }
                Err(error) if is_transient(&error) => return None,
                Err(error) => {
                    tracing::debug!(device = &*node.device, %error, "event source closed");
                    self.on_closed(name, at.moment);
                    return None;
                }
            }
        }
    }

    /// The events of a node have ended, although it may still exist.
    pub fn on_closed(&mut self, name: &str, now: Moment) {
        let Some(node) = self.nodes.get_mut(name) else { return };
        if node.closes.is_some() {
            self.nodes.remove(name);
        } else if matches!(node.state, NodeState::Open(_)) {
            if now.since(node.opened) >= HEALTHY_AFTER {
                (node.tries, node.warned) = (0, false);
            }
            // This counts as a try, so a device whose events keep ending is soon left closed.
            node.tries += 1;
            node.state = if node.tries < MAX_TRIES {
                NodeState::Due(now + REOPEN_DELAY)
            } else {
                if !std::mem::replace(&mut node.warned, true) {
                    let device = &*node.device;
                    tracing::warn!(
                        device,
                        "device events no longer received: they ended {MAX_TRIES} times in \
                         sequence; changes show at the next read"
                    );
                }
                NodeState::Abandoned
            };
        }
    }
}

/// The event of a port or device, unless it concerns something else.
fn port_event(device: &Arc<str>, raw: RawEvent, at: Anchor) -> Option<PortEvent> {
    let kind = PortEventKind::from_discriminant(raw.code)?;
    let port = (kind != PortEventKind::DeviceFatal && raw.port != 0).then_some(raw.port);
    Some(PortEvent { at, device: Arc::clone(device), guid: None, port, kind })
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The nodes and their devices. A node whose device cannot be read (ENODEV) is being removed.
fn nodes_below(class: &Path) -> io::Result<BTreeMap<String, String>> {
    let class = Directory::open(class)?;
    let node = |name: String| {
        let device = class.open_below(&name).ok()?.read("ibdev", str::to_owned).ok()?;
        Some((name, device))
    };
    Ok(class.names()?.into_iter().filter_map(node).collect())
}

#[cfg(test)]
mod tests;
