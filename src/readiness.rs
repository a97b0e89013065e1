//! When the exporter is ready: `/-/ready`. Whether sweeps and reads of the host go on is measured by the monotonic clock:
//! neither a clock that is set nor a simulated one changes it.

use std::time::{Duration, Instant};

use fabric_api::rfc3339;
use fabric_observation::{Observation, SharedState};

/// When the number of sweeps of each fabric, and that of reads of the host, last changed.
#[derive(Debug)]
pub struct Progress {
    sweeps: Vec<Instant>,
    reads: Instant,
}

impl Progress {
    /// The progress of a state that follows another one, or is the first.
    pub fn after(
        before: Option<(&Progress, &SharedState)>,
        state: &SharedState,
        now: Instant,
    ) -> Self {
        let sweeps = state.fabrics.iter().enumerate().map(|(index, fabric)| {
            let known = before.and_then(|(progress, state)| {
                Some((*progress.sweeps.get(index)?, state.fabrics.get(index)?.stats.sweeps))
            });
            known.filter(|(_, sweeps)| *sweeps == fabric.stats.sweeps).map_or(now, |(at, _)| at)
        });
        let reads = |state: &SharedState| state.host.as_ref().map(|host| host.reads);
        let same = before.filter(|(_, before)| reads(before) == reads(state));
        let sweeps = sweeps.collect();
        Progress { sweeps, reads: same.map_or(now, |(progress, _)| progress.reads) }
    }

    /// Why the exporter is not ready: a fabric was not swept yet, or the host not read, its devices cannot be listed, or
    /// sweeps or reads stand still.
    pub fn unready(&self, state: &SharedState, now: Instant) -> Option<String> {
        let host = state.host.as_ref();
        if let Some(fabric) = state.fabrics.iter().find(|fabric| fabric.stats.sweeps == 0) {
            let of_source = source_problem(fabric)
                .map(|problem| format!("fabric {}: no data yet from {problem}", fabric.fabric));
            return of_source.or_else(|| Some("the first sweep has not completed".to_owned()));
        }
        if host.is_some_and(|host| host.reads == 0) {
            return Some("the devices of this host have not been read".to_owned());
        }
        let problem = host.and_then(|host| host.problem().map(str::to_owned));
        problem.or_else(|| self.standstill(state, now))
    }

    /// What stands still: since when, and what to look at.
    fn standstill(&self, state: &SharedState, now: Instant) -> Option<String> {
        const ADVICE: &str = "look for a missing or hung device in the log; the runbook is that of the alert \
                              FabricExporterStale";
        let age = |at: &Instant| now.saturating_duration_since(*at);
        let swept = state.fabrics.iter().zip(self.sweeps.iter().map(age));
        let mut late = swept.filter(|(fabric, age)| *age > fabric.stale_after());
        if let Some((fabric, age)) = late.next() {
            let last = fabric.snapshot.as_ref().and_then(|last| rfc3339(&last.anchor, last.ended));
            let (name, since) = (&fabric.fabric, since(last, age, fabric.interval));
            return Some(match source_problem(fabric) {
                Some(problem) => format!("fabric {name}: no new data {since} from {problem}"),
                None => format!("fabric {name}: no sweep {since}: {ADVICE}"),
            });
        }
        let (host, age) = (state.host.as_ref()?, age(&self.reads));
        if age <= host.stale_after() {
            return None;
        }
        let last = host.snapshot.as_ref().and_then(|last| rfc3339(&last.anchor, last.ended));
        let since = since(last, age, host.interval);
        Some(format!("the devices of this host were not read {since}: {ADVICE}"))
    }
}

/// The source of a fabric's data and what is wrong with it, as the log says it: no device of ours is the cause.
fn source_problem(fabric: &Observation) -> Option<String> {
    let source = fabric.source.as_ref()?;
    let usual = "see whether the program that collects it runs";
    Some(format!("{}: {}", source.name, source.problem.as_deref().unwrap_or(usual)))
}

fn since(last: Option<String>, age: Duration, interval: Duration) -> String {
    let last = last.map(|last| format!("since {last} ")).unwrap_or_default();
    let seconds = humantime::format_duration(Duration::from_secs(age.as_secs()));
    format!("{last}({seconds} ago; the interval is {})", humantime::format_duration(interval))
}
