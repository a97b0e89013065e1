//! Where the host's watch takes what is heard while it reads devices: of a bounded size, for one device
//! that hangs takes 2 s of each look, and another one may tell thousands of changes in that time.
//!
//! Only events are kept one by one. Of all else the latest says everything, so that it cannot be too much.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ib_mad::port_event::{PortEvent, PortEventKind};
use rdma_host::reader::events::Heard;

/// How many events wait at most.
pub(super) const MOST_EVENTS: usize = 2048;

/// Beyond so many only events that tell of a link are taken, so that changes of GID tables, of which there
/// may be many a second, do not crowd them out.
const MOST_OTHERS: usize = MOST_EVENTS / 2;

/// What has come in and was not taken yet.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// In the order in which they came.
    pub events: VecDeque<Event>,
    /// RDMA devices came or went, or an event was dropped: look now.
    pub devices_changed: bool,
    /// Network interfaces came or went.
    pub netdevs_changed: bool,
    /// The devices that are heard, if these are not the same as before.
    pub listening: Option<BTreeSet<String>>,
    /// The watch is to end.
    pub ended: bool,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.events.is_empty()
            && !self.devices_changed
            && !self.netdevs_changed
            && self.listening.is_none()
            && !self.ended
    }
}

#[derive(Debug, Default)]
struct Kept {
    waiting: Waiting,
    dropped: u64,
}

/// The reader's end.
#[derive(Debug, Default)]
pub(super) struct Inbox(Arc<(Mutex<Kept>, Condvar)>);

/// The end of those who tell it something.
#[derive(Clone, Debug)]
pub struct Teller(Arc<(Mutex<Kept>, Condvar)>);

impl Inbox {
    pub(super) fn teller(&self) -> Teller {
        Teller(Arc::clone(&self.0))
    }

    /// Takes what is there, or what comes first; nothing, if nothing comes within the limit.
    pub(super) fn take(&self, limit: Duration) -> Waiting {
        let (kept, came) = &*self.0;
        let until = Instant::now().checked_add(limit);
        let mut kept = locked(kept);
        while kept.waiting.is_empty() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.unwrap_or(limit);
            if left.is_zero() {
                break;
            }
            let woken = came.wait_timeout(kept, left);
            (kept, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        // An end stays one.
        let ended = kept.waiting.ended;
        std::mem::replace(&mut kept.waiting, Waiting { ended, ..Waiting::default() })
    }

    /// How many events there was no room for.
    pub(super) fn dropped(&self) -> u64 {
        locked(&self.0.0).dropped
    }
}

impl Teller {
    /// Tells what was heard, and never waits. False if nobody wants to know any more.
    pub fn heard(&self, heard: Heard) -> bool {
        let mut kept = locked(&self.0.0);
        match heard {
            Heard::Event(event) => kept.put(event),
            Heard::DevicesChanged => kept.waiting.devices_changed = true,
            Heard::NetdevsChanged => kept.waiting.netdevs_changed = true,
            Heard::Listening(devices) => kept.waiting.listening = Some(devices),
        }
        self.0.1.notify_one();
        !kept.waiting.ended
    }

    /// Tells the watch to end.
    pub fn end(&self) {
        locked(&self.0.0).waiting.ended = true;
        self.0.1.notify_one();
    }
}

impl Kept {
    /// What there is no room for is dropped and makes for a look at once. That look reads the states of all
    /// ports, so that no port stays other than it is, and a link that is still down counts as lost. Not
    /// counted is only a link that was lost and came back before that look, after more than a thousand
    /// other events of links since the look before.
    fn put(&mut self, event: Event) {
        let is_of_link = matches!(
            event.kind,
            PortEventKind::PortError | PortEventKind::PortActive | PortEventKind::DeviceFatal
        );
        let most = if is_of_link { MOST_EVENTS } else { MOST_OTHERS };
        if self.waiting.events.len() < most {
            self.waiting.events.push_back(event);
        } else {
            self.dropped += 1;
            self.waiting.devices_changed = true;
        }
    }
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use ib_mad::Moment;
    use ib_mad::moment::Anchor;

    fn event(kind: PortEventKind) -> Heard {
        let at = Anchor { moment: Moment::default(), wall: SystemTime::UNIX_EPOCH };
        Heard::Event(Event { at, device: "mlx5_0".to_owned(), port: Some(1), kind })
    }

    #[test]
    fn a_flood_of_changes_is_bounded_and_no_loss_of_a_link_drowns_in_it() {
        let inbox = Inbox::default();
        let teller = inbox.teller();
        for _ in 0..100_000 {
            assert!(teller.heard(event(PortEventKind::GidChange)));
        }
        let link = [PortEventKind::PortError, PortEventKind::PortActive];
        for kind in link {
            assert!(teller.heard(event(kind)));
        }
        let taken = inbox.take(Duration::ZERO);
        assert_eq!(taken.events.len(), MOST_OTHERS + 2);
        let last: Vec<_> = taken.events.range(MOST_OTHERS..).map(|event| event.kind).collect();
        assert_eq!(last, link);
        assert!(taken.devices_changed, "a look finds what was dropped");
        assert_eq!(inbox.dropped(), 100_000 - MOST_OTHERS as u64);
        assert!(inbox.take(Duration::ZERO).is_empty());
        for _ in 0..100_000 {
            teller.heard(event(PortEventKind::PortError));
        }
        assert_eq!(inbox.take(Duration::ZERO).events.len(), MOST_EVENTS);
    }

    #[test]
    fn of_what_is_no_event_the_latest_is_taken_once() {
        let inbox = Inbox::default();
        let teller = inbox.teller();
        let devices = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        teller.heard(Heard::Listening(devices(&["mlx5_0"])));
        teller.heard(Heard::Listening(devices(&["mlx5_0", "mlx5_1"])));
        teller.heard(Heard::NetdevsChanged);
        let taken = inbox.take(Duration::from_secs(60));
        assert_eq!(taken.listening, Some(devices(&["mlx5_0", "mlx5_1"])));
        assert!(taken.netdevs_changed && !taken.devices_changed && !taken.ended);
        teller.end();
        assert!(!teller.heard(Heard::DevicesChanged), "nobody wants to know");
        assert!(inbox.take(Duration::from_secs(60)).ended);
        assert!(inbox.take(Duration::from_secs(60)).ended, "it stays so");
    }

    #[test]
    fn who_waits_is_woken() {
        let inbox = Inbox::default();
        let teller = inbox.teller();
        let other = std::thread::spawn(move || teller.heard(Heard::DevicesChanged));
        assert!(inbox.take(Duration::from_secs(60)).devices_changed);
        assert!(other.join().unwrap());
    }
}
