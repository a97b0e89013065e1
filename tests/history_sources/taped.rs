//! One story in virtual time, recorded in a file and scraped into a Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_exporter::history_sources::prometheus::Prometheus;
use fabric_exporter::remote::Access;
use fabric_history::settings::HistorySettings;
use fabric_history::{Reader, Recorder};
use fabric_observation::{Observation, RecorderStats};

use test_rig::Simulated;
use test_rig::metrics::Sample;
use test_rig::prometheus::Prometheus as Server;

/// From one sweep to the next, and from one scrape to the next.
pub const SWEEP: Duration = Duration::from_secs(15);

/// When after a sweep began it is scraped.
const LATE: Duration = Duration::from_secs(5);

/// What is of no use to the source, and much of all.
const DROPPED: [&str; 3] =
    ["_bit_error_", "infiniband_link_outage_seconds", "infiniband_port_unicast"];

/// What was recorded, and who has it.
pub struct Taped {
    pub began: SystemTime,
    /// The last sweep that both have.
    pub ended: SystemTime,
    pub reader: Reader,
    pub prometheus: Prometheus,
    /// The fabric as it was at a moment that was asked for.
    pub then: BTreeMap<Duration, Arc<Observation>>,
    _folder: tempfile::TempDir,
    _server: Server,
}

impl Taped {
    /// Lives through a story. The Prometheus misses the scrapes that `misses` says; `looks` are the
    /// times after which the fabric is wanted as it was.
    pub fn new(
        story: &str,
        length: Duration,
        misses: impl Fn(Duration) -> bool,
        looks: &[Duration],
    ) -> Self {
        // Names are looked for up to the present.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let began = SystemTime::UNIX_EPOCH + Duration::from_secs(now) - length;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.clone()) };
        let mut recorder = Recorder::new(settings, Arc::new(RecorderStats::default()));
        let simulated = Simulated::text_at(story, began);
        let mut then = BTreeMap::new();
        let mut at = LATE;
        let server = Server::stored(|samples| {
            let mut out = BufWriter::new(std::fs::File::create(samples).unwrap());
            while at < length {
                simulated.run_to(at);
                let seen = simulated.observation();
                recorder.take(&seen, began + at);
                if !misses(at) {
                    scrape(&simulated.metrics().samples, began, began + at, &mut out);
                }
                if let Some(look) = looks.iter().find(|look| (at..at + SWEEP).contains(*look)) {
                    then.insert(*look, seen);
                }
                at += SWEEP;
            }
            writeln!(out, "# EOF").unwrap();
            out.flush().unwrap();
        });
        let reader = Reader::open(Path::new(&file)).unwrap();
        let prometheus = Prometheus::new(&server.url(), &Access::default()).unwrap();
        let ended = began + at - SWEEP;
        Taped { began, ended, reader, prometheus, then, _folder: folder, _server: server }
    }
}

/// Writes what two Prometheis scrape from the same exporter, one a little later.
fn scrape(samples: &[Sample], began: SystemTime, at: SystemTime, out: &mut impl Write) {
    let seconds = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    for (replica, late) in [("a", 0.0), ("b", 4.0)] {
        for sample in samples {
            if DROPPED.iter().any(|part| sample.name.contains(part)) {
                continue;
            }
            let mut labels = format!("replica=\"{replica}\",job=\"fabric\",instance=\"x:10315\"");
            for (label, value) in &sample.labels {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                write!(labels, ",{label}=\"{value}\"").unwrap();
            }
            // The process is this test's.
            let is_start = sample.name == "process_start_time_seconds";
            let raw = if is_start { seconds(began).to_string() } else { sample.raw.clone() };
            writeln!(out, "{}{{{labels}}} {raw} {:.3}", sample.name, seconds(at) + late).unwrap();
        }
    }
}
