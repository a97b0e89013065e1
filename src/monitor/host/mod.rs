//! The loop that watches the host's own devices: look, publish, rest; and look again at once when
//! something is heard.

mod ids;
mod tally;
mod totals;

pub use tally::{Place, PortTally, Tally};

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::watch;

use crate::collect::host::events::{Heard, Listener};
use crate::collect::host::selection::Selection;
use crate::collect::host::{Host, Manner};
use crate::config::HostSettings;
use crate::fabric::host::HostSnapshot;
use crate::fabric::host::event::{Event, EventKind};
use crate::fabric::host::rails::Rails;
use crate::fabric::{Guid, Moment};
use crate::health::findings::Counting;
use crate::health::totals::{Before, Memory};
use crate::transport::clock::Clock;

use super::{Board, PortNews};
use ids::Ids;
use totals::{Fared, HostTotals};

/// However much is heard, there is so much rest between two looks: a flapping cable must not have the
/// firmware asked for all counters all the time. What was heard is counted all the same.
const LEAST_REST: Duration = Duration::from_secs(1);

/// What the watch is told from outside.
#[derive(Debug)]
pub enum News {
    /// What devices and the kernel tell.
    Heard(Heard),
    /// It is to end.
    End,
}

/// The state of the host's own devices, as it was last seen.
#[derive(Clone, Debug, Default)]
pub struct HostObservation {
    /// From one look to the next, as it is meant to be.
    pub interval: Duration,
    /// The latest look; `None` before the first.
    pub snapshot: Option<HostSnapshot>,
    /// How the counters of its ports fared: device by device, port by port as they stand there.
    pub counting: Vec<Vec<Counting>>,
    /// What its counters had counted before they fell last, in the same order.
    pub befores: Vec<Vec<Option<Arc<Before>>>>,
    /// What its devices are known by, in the same order: their GUIDs, or what takes the place of one.
    pub ids: Vec<Guid>,
    /// How many looks there were.
    pub looks: u64,
    /// What the ports went through.
    pub tally: Tally,
    /// The devices whose events are heard.
    pub heard: BTreeSet<String>,
    /// Which port is in which fabric.
    pub rails: Rails,
}

impl HostObservation {
    /// Whether the latest look could read a device, if there are any. A host without one is none
    /// that something is wrong with.
    pub fn success(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| {
            let devices = &snapshot.devices;
            devices.is_empty() || devices.iter().any(|device| device.answers)
        })
    }
}

/// Watches the host's own devices; see the module.
pub struct HostMonitor {
    interval: Duration,
    /// What to listen to devices by, if they are to be heard.
    listen: Option<(PathBuf, Selection)>,
    host: Host,
    clock: Clock,
    board: Arc<watch::Sender<Board>>,
    tell: Sender<News>,
    news: Receiver<News>,
    /// The judges of the fabrics, who are told what happens to links that end here.
    judges: Vec<Sender<PortNews>>,
    ids: Ids,
    totals: HostTotals,
    seen: HostObservation,
}

impl HostMonitor {
    /// One that publishes to a board.
    pub fn new(settings: &HostSettings, clock: Clock, board: Arc<watch::Sender<Board>>) -> Self {
        let (sysfs, selection) = (settings.sysfs.clone(), settings.selection.clone());
        let manner = Manner { rest: settings.retry_refused, ethtool: settings.ethtool };
        let (tell, news) = mpsc::channel();
        HostMonitor {
            interval: settings.interval,
            listen: settings.events.then(|| (sysfs.clone(), selection.clone())),
            host: Host::new(sysfs, selection, manner, clock),
            clock,
            board,
            tell,
            news,
            judges: Vec::new(),
            ids: Ids::default(),
            totals: HostTotals::default(),
            seen: HostObservation {
                interval: settings.interval,
                rails: settings.rails.clone(),
                ..HostObservation::default()
            },
        }
    }

    /// Where it takes news.
    pub fn teller(&self) -> Sender<News> {
        self.tell.clone()
    }

    /// Has the judge of a fabric told what ports tell of their links, too.
    pub fn tell(&mut self, judge: Sender<PortNews>) {
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
            let tell = self.tell.clone();
            let wanted = move |device: &str| selection.has(device);
            let heard = move |heard| tell.send(News::Heard(heard)).is_ok();
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
        self.seen.tally.see(&snapshot);
        if self.seen.looks == 0 && snapshot.devices.is_empty() {
            tracing::warn!(
                "no RDMA device on this host yet: load its driver, or name another --path.sysfs"
            );
        }
        self.seen.looks += 1;
        self.seen.snapshot = Some(snapshot);
        let seen = Arc::new(self.seen.clone());
        self.board.send_modify(|board| board.host = Some(seen));
    }

    /// Waits until the next look is due, which what is heard makes `soon`; false if there is to be
    /// none.
    fn rest(&mut self, mut due: Moment, soon: Moment) -> bool {
        loop {
            match self.news.recv_timeout(due.since(self.clock.now())) {
                Ok(News::Heard(heard)) => {
                    if self.hear(heard) {
                        due = due.min(soon);
                    }
                }
                Ok(News::End) | Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => return true,
            }
        }
    }

    /// Takes down what was heard, and tells whether to look soon.
    fn hear(&mut self, heard: Heard) -> bool {
        match heard {
            Heard::Event(event) => {
                log(&event);
                self.host.look_closely_at(&event.device);
                self.seen.tally.hear(&event);
                self.tell_judges(&event);
            }
            Heard::DevicesChanged => self.host.look_closely(),
            Heard::NetdevsChanged => {
                self.host.look_closely();
                return false;
            }
            Heard::Listening(devices) => self.seen.heard = devices,
        }
        true
    }
}

impl HostMonitor {
    fn tell_judges(&self, event: &Event) {
        let up = match event.kind {
            EventKind::PortError => false,
            EventKind::PortActive => true,
            _ => return,
        };
        let devices = self.seen.snapshot.iter().flat_map(|snapshot| &snapshot.devices);
        let device = devices.into_iter().find(|device| *device.name == *event.device);
        let Some((device, port)) = device.zip(event.port) else { return };
        let news = PortNews { end: (device.about.guid, port), up, at: event.at.moment };
        for judge in &self.judges {
            // One that has ended judges nothing any more.
            let _ = judge.send(news);
        }
    }
}

/// A link that is lost or comes back is worth a line; tables of GIDs may change many times a second.
fn log(event: &Event) {
    let (device, port, kind) = (&event.device, event.port, event.kind.label());
    match event.kind {
        EventKind::PortError | EventKind::PortActive | EventKind::DeviceFatal => {
            tracing::info!(device, port, event = kind, "a device told");
        }
        _ => tracing::debug!(device, port, event = kind, "a device told"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::config::Settings;
    use crate::config::options::Options;
    use crate::fabric::Guid;
    use crate::fabric::host::tests::{port, snapshot};
    use crate::fabric::moment::Anchor;

    #[test]
    fn what_a_port_tells_of_its_link_reaches_the_judges_of_fabrics() {
        let settings = Settings::load(Options::default(), None).unwrap().host.unwrap();
        let (board, _seen) = watch::channel(Board::default());
        let mut monitor = HostMonitor::new(&settings, Clock::start(), Arc::new(board));
        let (tell, judge) = mpsc::channel();
        monitor.tell(tell);
        monitor.seen.snapshot = Some(snapshot("mlx5_0", vec![port(1)]));
        let at = |millis| Anchor {
            moment: Moment::default() + Duration::from_millis(millis),
            wall: SystemTime::UNIX_EPOCH,
        };
        for (millis, device, kind) in [
            (1, "mlx5_0", EventKind::PortError),
            (2, "mlx5_0", EventKind::GidChange),
            (3, "nobody", EventKind::PortError),
            (4, "mlx5_0", EventKind::PortActive),
        ] {
            let event = Event { at: at(millis), device: device.into(), port: Some(1), kind };
            monitor.hear(Heard::Event(event));
        }
        let told: Vec<_> = judge.try_iter().map(|news| (news.end, news.up, news.at)).collect();
        let end = (Guid(0xabc), 1);
        assert_eq!(told, [(end, false, at(1).moment), (end, true, at(4).moment)]);
    }
}
