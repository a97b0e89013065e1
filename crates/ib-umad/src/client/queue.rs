//! What is sent on one queue pair.

use std::collections::VecDeque;

use super::adaptive_window::AdaptiveWindow;
use super::in_flight::Key;

#[derive(Debug)]
pub(super) struct QueueState {
    /// Destinations that may have room, in round-robin order.
    pub ready: VecDeque<Key>,
    /// Requests in flight, with the slow ones.
    pub in_flight: u16,
    pub slow: u16,
    /// Virtual lane 15, of SMPs, drops packets when full: a time-out may be caused by this client, and halves that
    /// window. GMPs are flow-controlled; their window is constant.
    pub window: AdaptiveWindow,
}

impl QueueState {
    pub fn new(window: u16) -> Self {
        QueueState {
            ready: VecDeque::new(),
            in_flight: 0,
            slow: 0,
            window: AdaptiveWindow::new(window),
        }
    }

    /// Whether the window has room. Slow requests do not count, up to one more window: 16 SMPs and 256 GMPs in total
    /// by default. A switch's SMA responds slowly while its CPU is busy, which must not cause ever more requests.
    pub fn has_room(&self) -> bool {
        self.in_flight - self.slow.min(self.window.limit) < self.window.size
    }
}
