//! The roll of uverbs nodes: which there are, which are held open, and which are to be tried again.
//!
//! No waiting and no clock here: the listener asks when something is due and comes back then.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ear::{Deaf, Ear, Open, Told};
use ib_mad::Moment;

/// The first pause before a device that could not be opened is tried again; each one after is twice
/// as long. udev sets a new node's permissions shortly after the kernel told of it, and on a host
/// that boots much later.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// How often a device is tried: the last time 51 s after the first.
const MOST_TRIES: u32 = 11;
/// The pause before a device is opened again that fell silent, while it is still there. One that
/// is on its way out is to be gone by then.
const AFTER_SILENCE: Duration = Duration::from_secs(1);

/// How it stands with a node.
enum Standing<E> {
    Open(E),
    Due(Moment),
    /// It is not wanted, or was tried often enough.
    Left,
}

struct Node<E> {
    device: String,
    tries: u32,
    /// The user was told that this one is not heard.
    warned: bool,
    standing: Standing<E>,
}

impl<E> Node<E> {
    fn new(device: String, wanted: bool, now: Moment) -> Self {
        let standing = if wanted { Standing::Due(now) } else { Standing::Left };
        Node { device, tries: 0, warned: false, standing }
    }
}

/// The nodes below `class/infiniband_verbs`, by their names (`uverbs0`).
pub(super) struct Roll<O: Open, W> {
    class: PathBuf,
    wanted: W,
    opener: O,
    nodes: BTreeMap<String, Node<O::Ear>>,
}

impl<O: Open, W: Fn(&str) -> bool> Roll<O, W> {
    pub fn new(sysfs: &Path, wanted: W, opener: O) -> Self {
        let class = sysfs.join("class/infiniband_verbs");
        Roll { class, wanted, opener, nodes: BTreeMap::new() }
    }

    /// Looks which nodes there are. Those that went are let go, those that came are to be opened.
    /// True if any came or went.
    pub fn look(&mut self, now: Moment) -> bool {
        let there = match nodes_below(&self.class) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            // Not to know is no reason to let go of anything.
            Err(error) => {
                tracing::debug!(class = %self.class.display(), %error, "no list of uverbs nodes");
                return false;
            }
        };
        let before = self.nodes.len();
        // A node of the same name with another device is another node.
        self.nodes.retain(|name, node| there.get(name) == Some(&node.device));
        let mut changed = self.nodes.len() != before;
        for (name, device) in there {
            if self.nodes.contains_key(&name) {
                continue;
            }
            changed = true;
            let wanted = (self.wanted)(&device);
            self.nodes.insert(name, Node::new(device, wanted, now));
        }
        changed
    }

    /// A node goes: lets go of it at once. The kernel waits for that.
    pub fn node_gone(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// As `node_gone`, by the device's name.
    pub fn device_gone(&mut self, device: &str) {
        self.nodes.retain(|_, node| node.device != device);
    }

    /// The kernel or udev told of this node: whatever was in the way may be gone.
    pub fn try_anew(&mut self, name: &str, now: Moment) {
        if let Some(node) = self.nodes.get_mut(name)
            && !matches!(node.standing, Standing::Open(_))
            && (self.wanted)(&node.device)
        {
            node.tries = 0;
            node.standing = Standing::Due(now);
        }
    }

    /// When a node is to be tried.
    pub fn due(&self) -> Option<Moment> {
        let due = |node: &Node<_>| match node.standing {
            Standing::Due(at) => Some(at),
            _ => None,
        };
        self.nodes.values().filter_map(due).min()
    }

    /// Tries one node that is due, if any is. One, because each may take its time, and others may
    /// have to be let go meanwhile.
    pub fn open_one(&mut self, now: Moment) {
        let due = |node: &Node<_>| matches!(node.standing, Standing::Due(at) if at <= now);
        let Some((name, node)) = self.nodes.iter_mut().find(|(_, node)| due(node)) else { return };
        let device = node.device.as_str();
        node.standing = match self.opener.open(name) {
            Ok(ear) => {
                tracing::debug!(device, "its events are heard");
                Standing::Open(ear)
            }
            Err(Deaf::Built) => Standing::Left,
            Err(deaf) => {
                node.tries += 1;
                if node.tries < MOST_TRIES {
                    tracing::debug!(device, tries = node.tries, %deaf, "not heard yet");
                    Standing::Due(now + FIRST_PAUSE * (1 << (node.tries - 1)))
                } else {
                    if !node.warned {
                        tracing::warn!(device, %deaf, "the events of this device are not heard");
                        node.warned = true;
                    }
                    Standing::Left
                }
            }
        };
    }

    /// What is to be polled: the nodes held open.
    pub fn open(&self) -> impl Iterator<Item = (&str, BorrowedFd<'_>)> {
        self.nodes.iter().filter_map(|(name, node)| match &node.standing {
            Standing::Open(ear) => Some((name.as_str(), ear.fd())),
            _ => None,
        })
    }

    /// The devices of the nodes held open.
    pub fn held(&self) -> impl Iterator<Item = &str> {
        self.nodes.values().filter_map(|node| match &node.standing {
            Standing::Open(_) => Some(node.device.as_str()),
            _ => None,
        })
    }

    /// Reads one event of a node; `None` when there is none, or no more to come, in which case it
    /// was let go.
    pub fn next(&mut self, name: &str, now: Moment) -> Option<(&str, Told)> {
        let node = self.nodes.get_mut(name)?;
        let Standing::Open(ear) = &mut node.standing else { return None };
        match ear.next() {
            Ok(told) => Some((node.device.as_str(), told)),
            Err(error) if is_nothing(&error) => None,
            Err(error) => {
                tracing::debug!(device = node.device, %error, "it says no more");
                node.fall_silent(now);
                None
            }
        }
    }

    /// Lets go of a node that has no more to say, although it may still be there.
    pub fn fell_silent(&mut self, name: &str, now: Moment) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.fall_silent(now);
        }
    }
}

impl<E> Node<E> {
    /// A device that falls silent again and again is not opened for ever: these are tries, too.
    fn fall_silent(&mut self, now: Moment) {
        if matches!(self.standing, Standing::Open(_)) {
            self.tries += 1;
            let again = self.tries < MOST_TRIES;
            self.standing = if again { Standing::Due(now + AFTER_SILENCE) } else { Standing::Left };
        }
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The nodes and their devices. A node whose device cannot be read is on its way out: the kernel
/// answers ENODEV as soon as the device has gone from below it.
fn nodes_below(class: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut nodes = BTreeMap::new();
    for entry in std::fs::read_dir(class)? {
        let entry = entry?;
        if let (Ok(name), Ok(device)) =
            (entry.file_name().into_string(), std::fs::read_to_string(entry.path().join("ibdev")))
        {
            nodes.insert(name, device.trim().to_owned());
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests;
