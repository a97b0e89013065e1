//! Collectors: what is counted elsewhere, read at each scrape.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use exporter_web::{Refusal, Refusals, ReloadStatus};
use exposition::{Family, MetricType};
use fabric_observation::{Observation, RecorderErrorKind, RecorderMetrics, SharedState};
use ib_mad::Class;
use ib_umad::stats::{MadOutcome, MadStats, ROUND_TRIP_BOUNDS};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics;

use super::families as family;
use super::process::{Numbers, Process};
use crate::log;
use crate::notify::Queue;
use crate::notify::queue::DropReason;

/// Begins a family.
fn begin<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    family: &'a Family,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    let kind = match family.kind {
        MetricType::Counter => metrics::MetricType::Counter,
        MetricType::Gauge => metrics::MetricType::Gauge,
        MetricType::Histogram => metrics::MetricType::Histogram,
    };
    encoder.encode_descriptor(&family.name, &family.help, None, kind)
}

/// A family with one sample; without one if the value is not known.
fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    family: &Family,
    value: Option<impl EncodeGaugeValue>,
) -> fmt::Result {
    let Some(value) = value else { return Ok(()) };
    begin(encoder, family)?.encode_gauge(&value)
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    family: &Family,
    value: Option<impl EncodeCounterValue>,
) -> fmt::Result {
    let Some(value) = value else { return Ok(()) };
    begin(encoder, family)?.encode_counter::<NoLabelSet, _, f64>(&value, None)
}

/// What monitors and recorder counted until a state was published.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub state: SharedState,
    /// How long the latest rendering took.
    pub rendering: Duration,
}

/// MADs, rendering and recorder, of the state that is scraped.
#[derive(Clone, Debug, Default)]
pub(super) struct StateCollector(pub Arc<Mutex<Published>>);

impl Collector for StateCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &published.state;
        mads(&mut encoder, &state.fabrics)?;
        let rendering = published.rendering.as_secs_f64();
        gauge(&mut encoder, &family::RENDER_DURATION_SECONDS, Some(rendering))?;
        state.recording.as_ref().map_or(Ok(()), |recorder| recording(&mut encoder, recorder))
    }
}

fn mads(encoder: &mut DescriptorEncoder<'_>, fabrics: &[Arc<Observation>]) -> fmt::Result {
    let mut metric = begin(encoder, &family::MADS)?;
    for fabric in fabrics {
        for class in MadStats::classes() {
            for outcome in MadOutcome::ALL {
                if !MadStats::is_counted(class, outcome) {
                    continue;
                }
                let labels = [
                    ("fabric", &*fabric.fabric),
                    ("class", class.map_or("unknown", Class::label)),
                    ("outcome", outcome.label()),
                ];
                let count = fabric.mads.count(class, outcome);
                let mut sample = metric.encode_family(&labels)?;
                sample.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
            }
        }
    }
    let mut metric = begin(encoder, &family::MAD_ROUND_TRIP_SECONDS)?;
    for fabric in fabrics {
        for class in Class::ALL {
            let trips = fabric.mads.round_trips(class);
            let bounds = ROUND_TRIP_BOUNDS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(trips.buckets).collect();
            let labels = [("fabric", &*fabric.fabric), ("class", class.label())];
            let (sum, count) = (trips.sum.as_secs_f64(), trips.count());
            let mut sample = metric.encode_family(&labels)?;
            sample.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
    }
    Ok(())
}

fn recording(encoder: &mut DescriptorEncoder<'_>, recorder: &RecorderMetrics) -> fmt::Result {
    let stats = recorder.get();
    gauge(encoder, &family::HISTORY_BYTES, Some(stats.bytes))?;
    gauge(encoder, &family::HISTORY_FREE_BYTES, stats.free)?;
    gauge(encoder, &family::HISTORY_FREE_FLOOR_BYTES, Some(stats.floor))?;
    counter(encoder, &family::HISTORY_FRAMES, Some(stats.frames))?;
    counter(encoder, &family::HISTORY_EVENTS, Some(stats.events))?;
    let mut metric = begin(encoder, &family::HISTORY_ERRORS)?;
    for (kind, count) in RecorderErrorKind::ALL.into_iter().zip(stats.errors) {
        let labels = [("kind", kind.label())];
        let mut sample = metric.encode_family(&labels)?;
        sample.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
    }
    gauge(encoder, &family::HISTORY_SET_ASIDE_FILES, stats.set_aside)?;
    counter(encoder, &family::HISTORY_MISSED_SWEEPS, Some(stats.missed))?;
    let written = stats.write_duration.as_secs_f64();
    gauge(encoder, &family::HISTORY_WRITE_DURATION_SECONDS, Some(written))
}

/// What became of events that are sent to a webhook.
#[derive(Debug)]
pub(super) struct NotifyCollector(pub Arc<Queue>);

impl Collector for NotifyCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stats = self.0.stats();
        counter(&mut encoder, &family::NOTIFY_EVENTS_SENT, Some(stats.sent))?;
        let mut metric = begin(&mut encoder, &family::NOTIFY_EVENTS_DROPPED)?;
        for (reason, count) in DropReason::ALL.into_iter().zip(stats.dropped) {
            let labels = [("reason", reason.label())];
            let mut sample = metric.encode_family(&labels)?;
            sample.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
        counter(&mut encoder, &family::NOTIFY_ATTEMPTS_FAILED, Some(stats.failed_attempts))?;
        gauge(&mut encoder, &family::NOTIFY_QUEUE_LENGTH, Some(stats.length as u64))?;
        let at = stats.last_success.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let at = at.map(|since| since.as_secs_f64());
        gauge(&mut encoder, &family::NOTIFY_LAST_SUCCESS_TIMESTAMP_SECONDS, at)
    }
}

/// How the web config file was read last, if there is one.
#[derive(Debug)]
pub(super) struct WebConfigCollector(pub Arc<ReloadStatus>);

impl Collector for WebConfigCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let succeeded = u64::from(self.0.succeeded());
        gauge(&mut encoder, &family::WEB_CONFIG_LAST_RELOAD_SUCCESSFUL, Some(succeeded))?;
        let at = self.0.succeeded_at();
        gauge(&mut encoder, &family::WEB_CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS, Some(at))
    }
}

/// What was refused to clients.
#[derive(Debug)]
pub(super) struct RefusalCollector(pub Arc<Refusals>);

impl Collector for RefusalCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metric = begin(&mut encoder, &family::WEB_REFUSALS)?;
        for refusal in Refusal::ALL {
            let labels = [("reason", refusal.label())];
            let mut sample = metric.encode_family(&labels)?;
            let count = self.0.count(refusal);
            sample.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
        Ok(())
    }
}

/// The process as procfs has it, and its log.
#[derive(Debug)]
pub(super) struct ProcessCollector(pub Process);

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        counter(&mut encoder, &family::LOG_LINES_DROPPED, Some(log::dropped_lines()))?;
        let Some(process) = Numbers::read(&self.0) else { return Ok(()) };
        counter(&mut encoder, &family::CPU_SECONDS, Some(process.cpu_seconds))?;
        gauge(&mut encoder, &family::RESIDENT_MEMORY_BYTES, Some(process.resident_bytes))?;
        gauge(&mut encoder, &family::VIRTUAL_MEMORY_BYTES, Some(process.virtual_bytes))?;
        gauge(&mut encoder, &family::THREADS, Some(process.threads))?;
        gauge(&mut encoder, &family::START_TIME_SECONDS, process.start_seconds)?;
        gauge(&mut encoder, &family::OPEN_FDS, process.open_files)?;
        gauge(&mut encoder, &family::MAX_FDS, process.most_files)
    }
}
