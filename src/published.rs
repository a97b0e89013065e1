//! What is served: one value on a watch channel, made from each state that the monitors publish. Scrapes take the rendered
//! metrics from it; API and pages the live state.

use std::sync::Arc;
use std::time::Instant;

use fabric_api::LiveState;
use fabric_observation::SharedState;
use tokio::sync::watch;

use crate::metrics::{OwnMetrics, RenderedMetrics};
use crate::readiness::Progress;

/// A state of the monitors, and all that is made from it once for all requests.
#[derive(Debug)]
pub struct Published {
    /// The state, conditions, trends and the previous reading of the host.
    pub live: Arc<LiveState>,
    /// The metrics.
    pub metrics: RenderedMetrics,
    progress: Progress,
}

/// The latest of these, shared with the handlers of requests.
pub type Latest = watch::Receiver<Arc<Published>>;

impl Published {
    /// The first.
    pub fn first(state: SharedState) -> Self {
        Self::first_at(Instant::now(), state)
    }

    /// The one that follows. What did not change is not made again.
    #[must_use]
    pub fn next(&self, state: SharedState) -> Self {
        self.next_at(Instant::now(), state)
    }

    fn first_at(now: Instant, state: SharedState) -> Self {
        Published {
            progress: Progress::after(None, &state, now),
            metrics: RenderedMetrics::first(state.clone()),
            live: Arc::new(LiveState::first(state)),
        }
    }

    fn next_at(&self, now: Instant, state: SharedState) -> Self {
        Published {
            progress: Progress::after(Some((&self.progress, &self.live.state)), &state, now),
            metrics: self.metrics.next(state.clone()),
            live: Arc::new(self.live.next(state)),
        }
    }

    /// Why the exporter is not ready; `None` if it is.
    pub fn unready(&self) -> Option<String> {
        self.unready_at(Instant::now())
    }

    fn unready_at(&self, now: Instant) -> Option<String> {
        self.progress.unready(&self.live.state, now)
    }
}

/// Publishes what is made from each state, until the last monitor ends. It runs on a thread of its own: the threads of the
/// server, and those that build its responses, may be busy. The newest state is always next; one that is replaced while
/// another is rendered is skipped.
pub async fn publish_each(
    mut states: watch::Receiver<SharedState>,
    published: watch::Sender<Arc<Published>>,
    own: Arc<OwnMetrics>,
) {
    while states.changed().await.is_ok() {
        let state = states.borrow_and_update().clone();
        let previous = Arc::clone(&published.borrow());
        let is_rendered = !previous.live.state.has_same_fabrics(&state);
        let next = previous.next(state);
        if is_rendered {
            own.count_rendering(next.metrics.duration());
        }
        published.send_replace(Arc::new(next));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use fabric_observation::host::HostObservation;
    use fabric_observation::{DataSource, Observation};
    use ib_health::testing::{fine, snapshot};
    use ib_mad::Moment;
    use ib_mad::moment::Anchor;

    /// An observation of a fabric whose only sweep ended in 1970.
    fn swept(interval: Duration) -> Observation {
        let mut snapshot = snapshot();
        (snapshot.began, snapshot.ended) = (Moment(0), Moment(0));
        snapshot.anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
        let assessment = fine(&snapshot);
        let (fabric, snapshot) = ("ib0".into(), Some(snapshot.into()));
        Observation { fabric, interval, snapshot, assessment, ..Observation::default() }
    }

    #[test]
    fn state_without_a_sweep_is_not_ready() {
        let published = Published::first(vec![Arc::new(Observation::default())].into());
        assert_eq!(published.unready().unwrap(), "the first sweep has not completed");
    }

    /// A state after a number of sweeps and of reads, with intervals of 15 s.
    fn counted(sweeps: u64, reads: u64) -> SharedState {
        let interval = Duration::from_secs(15);
        let mut observation = swept(interval);
        observation.stats.sweeps = sweeps;
        let host = HostObservation { interval, reads, ..HostObservation::default() };
        SharedState { host: Some(Arc::new(host)), ..vec![Arc::new(observation)].into() }
    }

    #[test]
    fn standstill_of_sweeps_or_reads_is_not_ready_and_says_since_when() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let first = Published::first_at(began, counted(1, 1));
        assert_eq!(first.unready_at(after(120)), None, "four intervals and a minute");
        let problem = first.unready_at(after(121)).unwrap();
        assert_eq!(
            problem,
            "fabric ib0: no sweep since 1970-01-01T00:00:00Z (2m 1s ago; the interval is 15s): look for a missing or \
             hung device in the log; the runbook is that of the alert FabricExporterStale"
        );
        // What is published without a sweep, such as an event, is no progress.
        let event = first.next_at(after(100), counted(1, 8));
        assert!(event.unready_at(after(121)).unwrap().starts_with("fabric ib0: no sweep "));
        let host = first.next_at(after(100), counted(2, 1));
        let problem = host.unready_at(after(121)).unwrap();
        assert!(problem.starts_with("the devices of this host were not read "), "{problem}");
        let next = host.next_at(after(130), counted(2, 2));
        assert_eq!(next.unready_at(after(131)), None);
    }

    #[test]
    fn standstill_of_a_source_names_it_and_its_problem() {
        let began = Instant::now();
        let state = |sweeps, problem: Option<&str>| {
            let mut state = counted(sweeps, 1);
            state.host = None;
            let (name, problem) = ("http://ufm:9002/csv".into(), problem.map(str::to_owned));
            let source = DataSource { name, problem, ..DataSource::default() };
            Arc::make_mut(&mut state.fabrics[0]).source = Some(Arc::new(source));
            Published::first_at(began, state)
        };
        let problem =
            |published: Published| published.unready_at(began + Duration::from_secs(121)).unwrap();
        assert_eq!(
            problem(state(1, Some("HTTP status 503"))),
            "fabric ib0: no new data since 1970-01-01T00:00:00Z (2m 1s ago; the interval is 15s) from \
             http://ufm:9002/csv: HTTP status 503"
        );
        assert!(problem(state(1, None)).ends_with("see whether the program that collects it runs"));
        assert_eq!(
            problem(state(0, Some("HTTP status 503"))),
            "fabric ib0: no data yet from http://ufm:9002/csv: HTTP status 503"
        );
    }

    #[test]
    fn fabric_whose_sweeps_take_longer_than_the_interval_stays_ready() {
        let began = Instant::now();
        let mut state = counted(1, 1);
        let observation = Arc::make_mut(&mut state.fabrics[0]);
        let snapshot = Arc::make_mut(observation.snapshot.as_mut().unwrap());
        snapshot.ended = snapshot.began + Duration::from_secs(150);
        state.host = None;
        let published = Published::first_at(began, state);
        assert_eq!(published.unready_at(began + Duration::from_secs(660)), None);
        assert!(published.unready_at(began + Duration::from_secs(661)).is_some());
    }
}
