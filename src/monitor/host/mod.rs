//! The loop that watches the host's own devices: look, publish, rest; and look again at once when
//! something is heard.

mod tally;

pub use tally::{PortTally, Tally};

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::watch;

use crate::collect::host::Host;
use crate::config::HostSettings;
use crate::fabric::Moment;
use crate::fabric::host::HostSnapshot;
use crate::fabric::host::event::Event;
use crate::fabric::host::rails::Rails;
use crate::transport::clock::Clock;

use super::Board;

/// However much is heard, there is so much rest between two looks: a flapping cable must not have the
/// firmware asked for all counters all the time. What was heard is counted all the same.
const LEAST_REST: Duration = Duration::from_secs(1);

/// What the watch is told from outside.
#[derive(Debug)]
pub enum News {
    /// A device told of a port.
    Event(Event),
    /// Devices or network interfaces came or went.
    Changed,
    /// It is to end.
    End,
}

/// The state of the host's own devices, as it was last seen.
#[derive(Clone, Debug, Default)]
pub struct HostObservation {
    /// The latest look; `None` before the first.
    pub snapshot: Option<HostSnapshot>,
    /// How many looks there were.
    pub looks: u64,
    /// What the ports went through.
    pub tally: Tally,
    /// Which port is in which fabric.
    pub rails: Rails,
}

impl HostObservation {
    /// Whether the latest look found a device that could be read.
    pub fn success(&self) -> bool {
        self.snapshot
            .as_ref()
            .is_some_and(|snapshot| snapshot.devices.iter().any(|device| device.answers))
    }
}

/// Watches the host's own devices; see the module.
pub struct HostMonitor {
    interval: Duration,
    host: Host,
    clock: Clock,
    board: Arc<watch::Sender<Board>>,
    news: Receiver<News>,
    seen: HostObservation,
}

impl HostMonitor {
    /// One that publishes to a board and listens to news.
    pub fn new(
        settings: &HostSettings,
        clock: Clock,
        board: Arc<watch::Sender<Board>>,
        news: Receiver<News>,
    ) -> Self {
        let selection = settings.selection.clone();
        HostMonitor {
            interval: settings.interval,
            host: Host::new(settings.sysfs.clone(), selection, settings.retry_refused, clock),
            clock,
            board,
            news,
            seen: HostObservation { rails: settings.rails.clone(), ..HostObservation::default() },
        }
    }

    /// Watches until it is told to end, or nobody is left who could.
    pub fn run(mut self) {
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
        let snapshot = self.host.look();
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
                Ok(News::Event(event)) => {
                    let (device, port, kind) = (&event.device, event.port, event.kind.label());
                    tracing::info!(device, port, event = kind, "a device told");
                    self.seen.tally.hear(&event);
                }
                Ok(News::Changed) => self.host.look_closely(),
                Ok(News::End) | Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => return true,
            }
            due = due.min(soon);
        }
    }
}
