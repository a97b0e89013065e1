//! The loop that watches the host's own devices: look, publish, rest; and look again at once when
//! something is heard.

mod ids;
mod inbox;
mod totals;

pub use inbox::Teller;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use tokio::sync::watch;

use crate::config::HostSettings;
use ib_health::totals::Memory;
use ib_mad::Moment;
use ib_mad::clock::Clock;
use rdma_host::model::HostSnapshot;
use ib_mad::port_event::{PortEvent, PortEventKind};
use rdma_host::reader::events::Listener;
use rdma_host::reader::selection::Selection;
use rdma_host::reader::{Host, Manner};

use super::PortNews;
use fabric_observation::SharedState;
use fabric_observation::host::{Absences, Dropped, HostObservation};
use ids::Ids;
use inbox::{Inbox, Waiting};
use totals::{Fared, HostTotals};

/// However much is heard, there is so much rest between two looks: a flapping cable must not have the
/// firmware asked for all counters all the time. What was heard is counted all the same.
const LEAST_REST: Duration = Duration::from_secs(1);

/// How often it is logged at most that events are dropped.
const DROPS_LOGGED: Duration = Duration::from_secs(60);

/// Watches the host's own devices; see the module.
pub struct HostMonitor {
    interval: Duration,
    /// What to listen to devices by, if they are to be heard.
    listen: Option<(PathBuf, Selection)>,
    host: Host,
    clock: Clock,
    board: Arc<watch::Sender<SharedState>>,
    inbox: Inbox,
    /// The judges of the fabrics, who are told what happens to links that end here.
    judges: Vec<SyncSender<PortNews>>,
    /// How many events they did not take.
    untaken: u64,
    /// What was dropped when that was last logged, and when.
    drops_logged: Option<(Dropped, Moment)>,
    ids: Ids,
    totals: HostTotals,
    absences: Absences,
    seen: HostObservation,
}

impl HostMonitor {
    /// One that publishes to a board.
    pub fn new(settings: &HostSettings, clock: Clock, board: Arc<watch::Sender<SharedState>>) -> Self {
        let (sysfs, selection) = (settings.sysfs.clone(), settings.selection.clone());
        let manner = Manner {
            rest: settings.retry_refused,
            ethtool: settings.ethtool,
            cm: settings.cm_counters,
        };
        HostMonitor {
            interval: settings.interval,
            listen: settings.events.then(|| (sysfs.clone(), selection.clone())),
            host: Host::new(sysfs, selection, manner, clock),
            clock,
            board,
            inbox: Inbox::default(),
            judges: Vec::new(),
            untaken: 0,
            drops_logged: None,
            ids: Ids::default(),
            totals: HostTotals::default(),
            absences: Absences::new(settings.forget_after),
            seen: HostObservation {
                interval: settings.interval,
                rails: settings.rails.clone(),
                ..HostObservation::default()
            },
        }
    }

    /// Where it takes news.
    pub fn teller(&self) -> Teller {
        self.inbox.teller()
    }

    /// Has the judge of a fabric told what ports tell of their links, too.
    pub fn tell(&mut self, judge: SyncSender<PortNews>) {
        self.judges.push(judge);
    }

    /// Has totals go on where an earlier watch ended.
    pub fn remember(&mut self, memory: Memory) {
        self.totals.remember(memory);
    }

    /// Watches until it is told to end.
    pub fn run(mut self) {
        // Before the first look, so that nothing happens between the two that neither tells.
        let _listener = self.listen.take().and_then(|(sysfs, selection)| {
            let teller = self.teller();
            let wanted = move |device: &str| selection.has(device);
            let heard = move |heard| teller.heard(heard);
            Listener::start(&sysfs, wanted, self.clock, heard)
                .inspect_err(|error| tracing::warn!(%error, "no events are heard"))
                .ok()
        });
        let mut due = self.clock.now();
        loop {
            let began = self.clock.now();
            self.look();
            while due <= began {
                due = due + self.interval;
            }
            if !self.rest(due, began + LEAST_REST) {
                return;
            }
        }
    }

    fn look(&mut self) {
        let mut snapshot = self.host.look();
        let ids = self.ids.of(&snapshot);
        let Fared { counting, befores } = self.totals.take(&mut snapshot, &ids);
        (self.seen.ids, self.seen.counting, self.seen.befores) = (ids, counting, befores);
        self.seen.stats.see(&snapshot);
        self.seen.missing = self.absences.follow(&snapshot);
        self.seen.dropped = Dropped { by_host: self.inbox.dropped(), by_judges: self.untaken };
        self.log_look(&snapshot);
        self.log_drops();
        self.seen.looks += 1;
        self.seen.snapshot = Some(snapshot);
        let seen = Arc::new(self.seen.clone());
        self.board.send_modify(|board| board.host = Some(seen));
    }

    /// Says why there is nothing to read: when it begins, and when the reason is another one.
    fn log_look(&self, look: &HostSnapshot) {
        let before = self.seen.snapshot.as_ref();
        match (before.and_then(|before| before.problem.as_deref()), look.problem.as_deref()) {
            (before, Some(problem)) if before != Some(problem) => {
                tracing::warn!(problem, "the host's devices cannot be listed");
            }
            (Some(_), None) => tracing::info!("the host's devices can be listed again"),
            _ => {}
        }
        if before.is_some() || !look.devices.is_empty() || look.problem.is_some() {
            return;
        }
        if look.left_out > 0 {
            tracing::warn!(
                devices = look.left_out,
                "none of the devices of this host is read: --host.device-include or \
                 --host.device-exclude leaves all of them out"
            );
        } else {
            tracing::warn!(
                "no RDMA device on this host yet: load its driver, or name another --path.sysfs"
            );
        }
    }

    /// Says that events were dropped, now and then.
    fn log_drops(&mut self) {
        let (dropped, now) = (self.seen.dropped, self.clock.now());
        let is_logged = self.drops_logged.map_or(dropped == Dropped::default(), |(logged, at)| {
            logged == dropped || now.since(at) < DROPS_LOGGED
        });
        if !is_logged {
            let Dropped { by_host, by_judges } = dropped;
            tracing::warn!(
                by_host,
                by_judges,
                "devices tell of more than can be taken: events were dropped, and the states of ports are \
                 read instead"
            );
            self.drops_logged = Some((dropped, now));
        }
    }

    /// Waits until the next look is due, which what is heard makes `soon`; false if there is to be
    /// none.
    fn rest(&mut self, mut due: Moment, soon: Moment) -> bool {
        loop {
            let heard = self.inbox.take(due.since(self.clock.now()));
            if heard.ended {
                return false;
            }
            if self.hear(heard) {
                due = due.min(soon);
            }
            // However much comes in, there is a look when it is due.
            if self.clock.now() >= due {
                return true;
            }
        }
    }

    /// Takes down what was heard, and tells whether to look soon.
    fn hear(&mut self, heard: Waiting) -> bool {
        let look_soon =
            heard.devices_changed || heard.listening.is_some() || !heard.events.is_empty();
        if heard.devices_changed || heard.netdevs_changed {
            self.host.look_closely();
        }
        if let Some(devices) = heard.listening {
            self.seen.heard = devices;
        }
        for event in &heard.events {
            log(event);
            self.host.look_closely_at(&event.device);
            self.seen.stats.hear(event);
            self.tell_judges(event);
        }
        look_soon
    }
}

impl HostMonitor {
    fn tell_judges(&mut self, event: &Event) {
        let up = match event.kind {
            PortEventKind::PortError => false,
            PortEventKind::PortActive => true,
            _ => return,
        };
        let devices = self.seen.snapshot.iter().flat_map(|snapshot| &snapshot.devices);
        let device = devices.into_iter().find(|device| *device.name == *event.device);
        let guid = device.and_then(|device| device.about.guid);
        let Some(end) = guid.zip(event.port) else { return };
        let news = PortNews { end, up, at: event.at.moment };
        for judge in &self.judges {
            // One that has ended judges nothing any more.
            if let Err(TrySendError::Full(_)) = judge.try_send(news) {
                self.untaken += 1;
            }
        }
    }
}

/// A link that is lost or comes back is worth a line; tables of GIDs may change many times a second.
fn log(event: &Event) {
    let (device, port, kind) = (&event.device, event.port, event.kind.label());
    match event.kind {
        PortEventKind::PortError | PortEventKind::PortActive | PortEventKind::DeviceFatal => {
            tracing::info!(device, port, event = kind, "a device told");
        }
        _ => tracing::debug!(device, port, event = kind, "a device told"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::SystemTime;

    use super::*;
    use crate::config::Settings;
    use crate::config::options::Options;
    use ib_mad::Guid;
    use ib_mad::moment::Anchor;
    use rdma_host::reader::events::Heard;
    use rdma_host::testing::{port, snapshot};

    #[test]
    fn what_a_port_tells_of_its_link_reaches_the_judges_of_fabrics() {
        let settings = Settings::load(Options::default(), None).unwrap().host.unwrap();
        let (board, _seen) = watch::channel(SharedState::default());
        let mut monitor = HostMonitor::new(&settings, Clock::start(), Arc::new(board));
        let (tell, judge) = mpsc::sync_channel(2);
        monitor.tell(tell);
        monitor.seen.snapshot = Some(snapshot("mlx5_0", vec![port(1)]));
        let at = |millis| Anchor {
            moment: Moment::default() + Duration::from_millis(millis),
            wall: SystemTime::UNIX_EPOCH,
        };
        for (millis, device, kind) in [
            (1, "mlx5_0", PortEventKind::PortError),
            (2, "mlx5_0", PortEventKind::GidChange),
            (3, "nobody", PortEventKind::PortError),
            (4, "mlx5_0", PortEventKind::PortActive),
        ] {
            let event = Event { at: at(millis), device: device.into(), port: Some(1), kind };
            monitor.hear(Waiting { events: [event].into(), ..Waiting::default() });
        }
        assert_eq!(monitor.untaken, 0);
        let event =
            Event { at: at(5), device: "mlx5_0".into(), port: Some(1), kind: PortEventKind::PortError };
        monitor.hear(Waiting { events: [event].into(), ..Waiting::default() });
        assert_eq!(monitor.untaken, 1, "a judge that takes nothing holds nobody up");
        let told: Vec<_> = judge.try_iter().map(|news| (news.end, news.up, news.at)).collect();
        let end = (Guid(0xabc), 1);
        assert_eq!(told, [(end, false, at(1).moment), (end, true, at(4).moment)]);
    }

    #[test]
    fn a_flood_of_events_is_bounded_and_what_was_dropped_is_told() {
        let sysfs = tempfile::tempdir().unwrap();
        let mut settings = Settings::load(Options::default(), None).unwrap().host.unwrap();
        settings.sysfs = sysfs.path().to_owned();
        let (board, seen) = watch::channel(SharedState::default());
        let mut monitor = HostMonitor::new(&settings, Clock::start(), Arc::new(board));
        let teller = monitor.teller();
        let at = Anchor { moment: Moment::default(), wall: SystemTime::UNIX_EPOCH };
        let event =
            Event { at, device: "mlx5_0".into(), port: Some(1), kind: PortEventKind::PortError };
        for _ in 0..inbox::MOST_EVENTS + 5 {
            assert!(teller.heard(Heard::Event(event.clone())), "it never waits");
        }
        monitor.look();
        let dropped = Dropped { by_host: 5, by_judges: 0 };
        assert_eq!(seen.borrow().host.as_ref().unwrap().dropped, dropped);
        assert_eq!(monitor.drops_logged.map(|(logged, _)| logged), Some(dropped));
        teller.end();
        assert!(!monitor.rest(Moment::NEVER, Moment::NEVER));
    }
}
