//! The ports whose HierarchyInfo a discovery reads.
//!
//! It is read after everything else, because nothing depends on it, and of a limited number of ports: a large fabric
//! is known after some discoveries. One port of each device is asked first, and the others only if it responds.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use ib_mad::{DirectedRoute, PortNumber};

/// Maximum number of ports in a discovery: with a round trip of 50 µs and eight requests at once a tenth of a second.
/// 160,000 ports are then known after 50 minutes at the default interval.
const MAX_PER_DISCOVERY: usize = 16_384;

/// Missing responses of a device after which the rest of its ports is left to a later discovery.
const MAX_LOST: u32 = 3;

/// A port to ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct PanelRequest {
    /// Index of the node.
    pub(super) node: usize,
    pub(super) port: PortNumber,
    pub(super) route: DirectedRoute,
}

/// What a device has done so far.
#[derive(Debug, Default)]
struct Progress {
    /// Its other ports, until the first one has responded.
    waiting: Vec<PanelRequest>,
    lost: u32,
    is_given_up: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct PanelQueue {
    queue: VecDeque<PanelRequest>,
    progress: HashMap<usize, Progress>,
    sent: Vec<PanelRequest>,
}

impl PanelQueue {
    /// Of these ports, in their order.
    pub(super) fn new(requests: impl Iterator<Item = PanelRequest>) -> Self {
        let mut this = PanelQueue::default();
        for request in requests.take(MAX_PER_DISCOVERY) {
            match this.progress.entry(request.node) {
                Entry::Occupied(mut progress) => progress.get_mut().waiting.push(request),
                Entry::Vacant(first) => {
                    first.insert(Progress::default());
                    this.queue.push_back(request);
                }
            }
        }
        this
    }

    /// The next port to ask, and the number by which it is [found](Self::get).
    pub(super) fn pop(&mut self) -> Option<(PanelRequest, usize)> {
        loop {
            let request = self.queue.pop_front()?;
            if self.progress.get(&request.node).is_none_or(|progress| !progress.is_given_up) {
                self.sent.push(request);
                return Some((request, self.sent.len() - 1));
            }
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<PanelRequest> {
        self.sent.get(index).copied()
    }

    /// A device has responded: its other ports are asked, too.
    pub(super) fn on_response(&mut self, node: usize) {
        if let Some(progress) = self.progress.get_mut(&node) {
            self.queue.extend(progress.waiting.drain(..));
        }
    }

    /// A device did not respond. Returns whether it is given up by this.
    pub(super) fn on_silence(&mut self, node: usize) -> bool {
        let Some(progress) = self.progress.get_mut(&node) else { return false };
        progress.lost += 1;
        let is_first = !progress.waiting.is_empty();
        let gives_up = !progress.is_given_up && (is_first || progress.lost >= MAX_LOST);
        progress.is_given_up |= gives_up;
        gives_up
    }

    /// Asks nothing more of a device.
    pub(super) fn give_up(&mut self, node: usize) {
        if let Some(progress) = self.progress.get_mut(&node) {
            progress.is_given_up = true;
        }
    }

    /// Asks nothing more.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.progress.clear();
    }
}
