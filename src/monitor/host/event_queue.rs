//! The events that wait while the host's monitor reads devices. Their number is bounded, for one device that hangs
//! takes 2 s of each reading, and another one may report thousands of events in that time.
//!
//! Only port events are kept one by one; of all others the latest suffices.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ib_mad::port_event::{PortEvent, PortEventKind};
use rdma_host::reader::events::HostEvent;

pub(super) const MAX_EVENTS: usize = 2048;
/// Beyond this number only events of links are accepted, so that changes of GID tables, of which there may be
/// many per second, do not displace them.
const MAX_OTHERS: usize = MAX_EVENTS / 2;

/// The events that were not taken yet.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PendingEvents {
    pub events: VecDeque<PortEvent>,
    /// RDMA devices came or went, or an event was dropped: read the devices now.
    pub devices_changed: bool,
    pub netdevs_changed: bool,
    /// The devices whose events are received, if they changed.
    pub monitored: Option<BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Queue {
    pending: PendingEvents,
    dropped: u64,
    ended: bool,
}

/// The queue, for its senders and its only receiver.
#[derive(Clone, Debug, Default)]
pub struct HostEventQueue(Arc<(Mutex<Queue>, Condvar)>);

impl HostEventQueue {
    /// Takes what is pending, or waits for the first event; nothing if none comes within the limit. `None` if the
    /// monitor must end.
    pub(super) fn take(&self, limit: Duration) -> Option<PendingEvents> {
        let (queue, arrived) = &*self.0;
        let is_empty = |it: &mut Queue| !it.ended && it.pending == PendingEvents::default();
        let waited = arrived.wait_timeout_while(locked(queue), limit, is_empty);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!queue.ended).then(|| std::mem::take(&mut queue.pending))
    }

    pub(super) fn dropped(&self) -> u64 {
        locked(&self.0.0).dropped
    }

    /// Sends an event without blocking. Returns false if the monitor must end.
    pub fn send(&self, event: HostEvent) -> bool {
        let mut queue = locked(&self.0.0);
        match event {
            HostEvent::Port(event) => queue.push(event),
            HostEvent::DevicesChanged => queue.pending.devices_changed = true,
            HostEvent::NetdevsChanged => queue.pending.netdevs_changed = true,
            HostEvent::Monitored(devices) => queue.pending.monitored = Some(devices),
        }
        self.0.1.notify_one();
        !queue.ended
    }

    /// Ends the monitor.
    pub fn end(&self) {
        locked(&self.0.0).ended = true;
        self.0.1.notify_one();
    }
}

impl Queue {
    /// Adds an event. One that does not fit is dropped, and the devices are read at once: that reads the states of
    /// all ports, so each is known, and a link that is still down counts as lost. Not counted is only a link
    /// that was lost and came back before that reading, after more than a thousand other events of links.
    fn push(&mut self, event: PortEvent) {
        let is_of_link = matches!(
            event.kind,
            PortEventKind::PortError | PortEventKind::PortActive | PortEventKind::DeviceFatal
        );
        let most = if is_of_link { MAX_EVENTS } else { MAX_OTHERS };
        if self.pending.events.len() < most {
            self.pending.events.push_back(event);
        } else {
            self.dropped += 1;
            self.pending.devices_changed = true;
        }
    }
}

fn locked(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use ib_mad::Moment;
    use ib_mad::moment::Anchor;

    fn event(kind: PortEventKind) -> HostEvent {
        let at = Anchor { moment: Moment::default(), wall: SystemTime::UNIX_EPOCH };
        let device = "mlx5_0".into();
        HostEvent::Port(PortEvent { at, device, guid: None, port: Some(1), kind })
    }

    #[test]
    fn event_flood_is_bounded_and_keeps_link_events() {
        let queue = HostEventQueue::default();
        let sender = queue.clone();
        for _ in 0..100_000 {
            assert!(sender.send(event(PortEventKind::GidChange)));
        }
        let link = [PortEventKind::PortError, PortEventKind::PortActive];
        for kind in link {
            assert!(sender.send(event(kind)));
        }
        let taken = queue.take(Duration::ZERO).unwrap();
        assert_eq!(taken.events.len(), MAX_OTHERS + 2);
        let last: Vec<_> = taken.events.range(MAX_OTHERS..).map(|event| event.kind).collect();
        assert_eq!(last, link);
        assert!(taken.devices_changed, "a reading finds what was dropped");
        assert_eq!(queue.dropped(), 100_000 - MAX_OTHERS as u64);
        assert_eq!(queue.take(Duration::ZERO), Some(PendingEvents::default()));
        for _ in 0..100_000 {
            sender.send(event(PortEventKind::PortError));
        }
        assert_eq!(queue.take(Duration::ZERO).unwrap().events.len(), MAX_EVENTS);
    }

    #[test]
    fn other_events_keep_only_the_latest() {
        let queue = HostEventQueue::default();
        let sender = queue.clone();
        let devices = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        sender.send(HostEvent::Monitored(devices(&["mlx5_0"])));
        sender.send(HostEvent::Monitored(devices(&["mlx5_0", "mlx5_1"])));
        sender.send(HostEvent::NetdevsChanged);
        let taken = queue.take(Duration::from_secs(60)).unwrap();
        assert_eq!(taken.monitored, Some(devices(&["mlx5_0", "mlx5_1"])));
        assert!(taken.netdevs_changed && !taken.devices_changed);
        sender.end();
        assert!(!sender.send(HostEvent::DevicesChanged), "the monitor ends");
        assert!(queue.take(Duration::from_secs(60)).is_none());
        assert!(queue.take(Duration::from_secs(60)).is_none(), "it lasts");
    }

    #[test]
    fn waiting_receiver_is_woken() {
        let queue = HostEventQueue::default();
        let sender = queue.clone();
        let other = std::thread::spawn(move || sender.send(HostEvent::DevicesChanged));
        assert!(queue.take(Duration::from_secs(60)).unwrap().devices_changed);
        assert!(other.join().unwrap());
    }
}
