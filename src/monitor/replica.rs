//! The totals of a replica, another exporter of the same fabric: requested on a thread of its own, every 15 s or once per
//! sweep interval. The thread that sweeps takes the latest response and never waits for one, except before its first sweep:
//! so that totals do not start lower than those of the replica.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use crate::remote::Remote;
use fabric_api::model::Totals;
use fabric_api::totals::{TOTALS, replica_totals};
use ib_health::replica::ReplicaTotals;
use ib_mad::Moment;

/// The time limit of a request.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the first sweep waits for the first response.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time between two requests: the sooner after a reset both know of it, the better.
const INTERVAL: Duration = Duration::from_secs(15);

/// The largest response: 160,000 ports that were all reset, with 30 counters each, take 150 MB.
const MAX_BODY: u64 = 256 << 20;

/// A response, and when it was requested and received; the latter also as time of day.
struct Fetched {
    totals: Totals,
    at: [Instant; 2],
    received: SystemTime,
}

#[derive(Default)]
struct Latest {
    fetched: Option<Fetched>,
    /// Whether the first request has ended.
    tried: bool,
}

/// The totals of one fabric's replica.
pub(super) struct Replica {
    fabric: String,
    latest: Arc<Mutex<Latest>>,
    /// Until the thread is started, which is after the process was sandboxed.
    start: Option<(Remote, Duration)>,
}

impl Replica {
    pub(super) fn new(remote: Remote, fabric: String, interval: Duration) -> Self {
        Replica { fabric, latest: Arc::default(), start: Some((remote, interval.min(INTERVAL))) }
    }

    /// Starts the thread. It ends when this is dropped.
    pub(super) fn start(&mut self) {
        let Some((remote, interval)) = self.start.take() else { return };
        let (latest, fabric) = (Arc::downgrade(&self.latest), self.fabric.clone());
        let span = tracing::Span::current();
        let run = move || span.in_scope(|| poll(&remote, &fabric, interval, &latest));
        if let Err(error) = std::thread::Builder::new().name("totals".into()).spawn(run) {
            tracing::warn!(%error, "cannot start the thread that requests totals");
            self.latest.lock().unwrap_or_else(PoisonError::into_inner).tried = true;
        }
    }

    /// Whether the first request has ended.
    pub(super) fn was_tried(&self) -> bool {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).tried
    }

    /// The latest response, once, and when it was received; `now` is the time of our own clock.
    pub(super) fn take(&self, now: Moment) -> Option<(ReplicaTotals, SystemTime)> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).fetched.take();
        let Fetched { totals, at, received } = latest?;
        let at = at.map(|at| now.before(at.elapsed()));
        Some((replica_totals(&totals, &self.fabric, at), received))
    }
}

/// Requests the totals until their reader is gone.
fn poll(remote: &Remote, fabric: &str, interval: Duration, latest: &Weak<Mutex<Latest>>) {
    let mut problem: Option<String> = None;
    loop {
        let began = Instant::now();
        let found = request(remote, fabric);
        let (at, received) = ([began, Instant::now()], SystemTime::now());
        let name = remote.name();
        match &found {
            Ok(_) if problem.take().is_some() => {
                tracing::info!("{name}: totals received again");
            }
            Err(error) if problem.as_ref() != Some(error) => {
                tracing::warn!(
                    "{name}{TOTALS}: {error}; totals continue without those of the other exporter"
                );
                problem = Some(error.clone());
            }
            _ => {}
        }
        let Some(latest) = latest.upgrade() else { return };
        let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.tried = true;
        if let Ok(totals) = found {
            latest.fetched = Some(Fetched { totals, at, received });
        }
        drop(latest);
        std::thread::sleep(interval.saturating_sub(began.elapsed()).max(Duration::from_secs(1)));
    }
}

fn request(remote: &Remote, fabric: &str) -> Result<Totals, String> {
    let read = remote.read(TOTALS, &[("fabric", fabric.to_owned())], MAX_BODY);
    let (status, body) = read.map_err(|error| Remote::reason(&error))?;
    match status {
        200 => serde_json::from_slice(&body)
            .map_err(|error| format!("the response has no totals ({error})")),
        401 => {
            Err("login required: use https://USER@HOST and --fabric.totals-password-file".into())
        }
        400 => Err(crate::remote::one_line(&String::from_utf8_lossy(&body))),
        status => Err(format!("HTTP status {status}")),
    }
}
