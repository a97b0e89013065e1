//! Everything that happened is in the history with its time, and nothing else is, whatever becomes of the exporter,
//! of its disk and of the file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agreement;
mod asked;
mod budget;
mod cables;
mod congested;
mod damaged;
mod digested;
mod displaced;
mod dumped;
mod exported;
mod flipped;
mod followed;
mod frames;
mod full;
mod herd;
mod host;
mod incidents;
mod jobs;
mod jumps;
mod kept;
mod killed;
mod named;
mod notified;
mod operated;
mod past;
mod reported;
mod restarted;
mod safety;
mod scraped;
mod served;
mod shot;
mod states;
mod steady;
mod told;

use test_rig as rig;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_history::model::{Event, Window};
use fabric_history::settings::HistorySettings;
use fabric_history::source::EventFilter;
use fabric_history::{Reader, Recorder, Source};
use fabric_observation::RecorderMetrics;

use rig::simulated::BEGAN;
use rig::{Metrics, Simulated};

/// From one sweep to the next.
const SWEEP: Duration = Duration::from_secs(15);

/// A simulated fabric whose sweeps are recorded, in virtual time.
struct RecordedSimulation {
    simulated: Simulated,
    recorder: Recorder,
    metrics: Arc<RecorderMetrics>,
    at: Duration,
}

impl RecordedSimulation {
    fn new(story: &str, file: &Path) -> Self {
        Self::of(Simulated::text(story), file)
    }

    fn with(story: &str, settings: HistorySettings) -> Self {
        Self::watching(Simulated::text(story), settings)
    }

    fn of(simulated: Simulated, file: &Path) -> Self {
        let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.into()) };
        Self::watching(simulated, settings)
    }

    fn watching(simulated: Simulated, settings: HistorySettings) -> Self {
        let metrics = Arc::new(RecorderMetrics::default());
        let recorder = Recorder::new(settings, Arc::clone(&metrics));
        let at = Duration::from_secs(5);
        Self { simulated, recorder, metrics, at }
    }

    /// Runs and records until this long after the beginning.
    fn run_to(&mut self, end: Duration) {
        while self.at <= end {
            self.simulated.run_to(self.at);
            self.recorder.record(&self.simulated.observation(), wall(self.at));
            self.at += SWEEP;
        }
    }
}

/// The number of errors of the recorder, of one kind or of all.
fn errors(metrics: &Metrics, kind: Option<&str>) -> u32 {
    let of = metrics.all("fabric_exporter_history_errors_total");
    let of = of.filter(|(labels, _)| kind.is_none_or(|kind| labels["kind"] == kind));
    let counts: Vec<f64> = of.map(|(_, count)| count).collect();
    assert!(!counts.is_empty());
    #[expect(clippy::cast_sign_loss, reason = "a counter is never below 0")]
    let count = counts.iter().sum::<f64>() as u32;
    count
}

/// The time of day this long after the beginning.
fn wall(at: Duration) -> SystemTime {
    SystemTime::UNIX_EPOCH + BEGAN + at
}

/// A window that contains all times.
fn always() -> Window {
    Window { from: SystemTime::UNIX_EPOCH, to: wall(Duration::from_secs(1 << 30)) }
}

fn events(file: &Path) -> Vec<Event> {
    Reader::open(file).unwrap().events(&EventFilter::all(always())).unwrap()
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}
