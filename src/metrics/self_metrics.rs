//! Families of the exporter itself, rendered at each scrape.

use std::sync::Arc;
use std::time::Duration;

use exporter_web::ReloadStatus;
use exposition::{Family, MetricType, Part, Parts, Samples};
use fabric_observation::SiteFileKind;
use fabric_observation::host::HostObservation;
use fabric_observation::{
    Collector, Observation, RecorderErrorKind, RecorderMetrics, RecorderStats, SharedState,
};
use ib_fabric::change;
use ib_mad::Class;
use ib_umad::stats::{MadOutcome, ROUND_TRIP_BOUNDS};
use rdma_host::model::HostSnapshot;

use super::fabric::names;
use super::process::{Numbers, Process};
use super::{families, family};

struct SelfState<'a> {
    fabrics: &'a [Arc<Observation>],
    host: Option<&'a HostObservation>,
    recording: Option<&'a RecorderMetrics>,
    render: Duration,
    process: Option<Numbers>,
    web_config: Option<&'a ReloadStatus>,
    external_url: &'a str,
}

/// Writes a histogram; the counts of buckets are of each, and in the text of all up to it.
fn histogram(
    out: &mut Samples<'_>,
    labels: &[(&str, &str)],
    sum: f64,
    count: u64,
    buckets: &[(f64, u64)],
) {
    out.suffix("_sum").float_sample(labels, sum);
    out.suffix("_count").sample(labels, count);
    let mut up_to = 0;
    for (bound, count) in buckets {
        up_to += count;
        let bound = if bound.is_infinite() { "+Inf".to_owned() } else { bound.to_string() };
        out.suffix("_bucket").sample(&[labels, &[("le", &bound)]].concat(), up_to);
    }
}

families! {
    FAMILIES: SelfState<'_>;
    "fabric_exporter_collector_success" Gauge ["fabric", "collector"]
        "1 if the latest run of the collector succeeded and read something, else 0. The host collector also succeeds on a host without RDMA devices."
        => |state, out| {
            state.each(|it| for collector in Collector::ALL {
                out.sample(&[("fabric", &it.fabric), ("collector", collector.label())], it.stats.success(collector).into());
            });
            if let Some(it) = state.host {
                out.sample(&[("collector", "host")], it.success().into());
            }
        };
    "fabric_exporter_host_read_duration_seconds" Gauge []
        "Duration of the latest read of this host's devices."
        => |state, out| if let Some(last) = state.host_read() {
            out.float_sample(&[], last.ended.since(last.began).as_secs_f64());
        };
    "fabric_exporter_host_read_timestamp_seconds" Gauge []
        "Unix time when the latest read of this host's devices ended. time() minus this is the age of the host metrics."
        => |state, out| if let Some(last) = state.host_read() {
            out.float_sample(&[], last.anchor.unix_seconds_of(last.ended));
        };
    "fabric_exporter_host_read_interval_seconds" Gauge []
        "Configured interval between reads of this host's devices (--host.interval)."
        => |state, out| if let Some(it) = state.host.filter(|it| it.snapshot.is_some()) {
            out.float_sample(&[], it.interval.as_secs_f64());
        };
    "fabric_exporter_host_reads" Counter []
        "Reads of this host's devices."
        => |state, out| if let Some(it) = state.host { out.sample(&[], it.reads) };
    "fabric_exporter_host_events_dropped" Counter ["consumer"]
        "Device events dropped because a queue was full, by consumer: host (the host collector was reading devices) or evaluator (no sweep processed them in time)."
        => |state, out| if let Some(it) = state.host {
            out.sample(&[("consumer", "host")], it.dropped.by_host);
            out.sample(&[("consumer", "evaluator")], it.dropped.by_fabrics);
        };
    "fabric_exporter_sweep_duration_seconds" Gauge ["fabric"]
        "Duration of the latest sweep, from its first request to its last response."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.float_sample(&[("fabric", &it.fabric)], last.ended.since(last.began).as_secs_f64());
        });
    "fabric_exporter_sweep_timestamp_seconds" Gauge ["fabric"]
        "Unix time when the latest sweep ended. time() minus this is the age of the fabric metrics."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.float_sample(&[("fabric", &it.fabric)], last.anchor.unix_seconds_of(last.ended));
        });
    "fabric_exporter_sweep_interval_seconds" Gauge ["fabric"]
        "Configured interval between sweeps (--fabric.interval)."
        => |state, out| state.each(|it| if it.snapshot.is_some() {
            out.float_sample(&[("fabric", &it.fabric)], it.interval.as_secs_f64());
        });
    "fabric_exporter_sweeps" Counter ["fabric"]
        "Completed sweeps."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.sweeps));
    "fabric_exporter_discovery_duration_seconds" Gauge ["fabric"]
        "Duration of the latest discovery."
        => |state, out| state.each(|it| if let Some((anchor, ended)) = it.stats.discovery {
            out.float_sample(&[("fabric", &it.fabric)], ended.since(anchor.moment).as_secs_f64());
        });
    "fabric_exporter_discovery_timestamp_seconds" Gauge ["fabric"]
        "Unix time when the latest discovery ended."
        => |state, out| state.each(|it| if let Some((anchor, ended)) = it.stats.discovery {
            out.float_sample(&[("fabric", &it.fabric)], anchor.unix_seconds_of(ended));
        });
    "fabric_exporter_discoveries" Counter ["fabric"]
        "Completed discoveries."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.discoveries));
    "fabric_exporter_discovery_gaps" Gauge ["fabric"]
        "Requests of the latest discovery that timed out. Nodes behind them may be missing."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.discovery_gaps));
    "infiniband_duplicate_guids" Gauge ["fabric"]
        "Nodes that the latest discovery omitted because another node has the same NodeGUID."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.sample(&[("fabric", &it.fabric)], last.fabric.duplicates.len() as u64);
        });
    "fabric_exporter_discovery_unresponsive_ports" Gauge ["fabric"]
        "Ports with a link whose neighbor did not respond to subnet management requests: its SMA hangs, or an M_Key protects it."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.unanswered_ports as u64));
    "infiniband_mkey_suspected" Gauge ["fabric"]
        "1 if M_Key protection is the likely cause of unresponsive neighbors: no node beyond the local port responds, the local port itself does not, or it is protected and many neighbors do not respond."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.m_key_suspected.into()));
    "infiniband_partition_suspected" Gauge ["fabric"]
        "1 if the local port lacks the P_Key of --fabric.pkey, or if switches respond to performance management but 9 of 10 channel adapters (at least 3) do not: wrong partition or limited member."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.partition_suspected.into()));
    "fabric_exporter_fabric_changes" Counter ["fabric", "kind"]
        "Changes between successive discoveries, by kind: node_added, node_removed, link_added, link_removed, link_moved, lid_changed."
        => |state, out| state.each(|it| for (kind, count) in change::CHANGE_KINDS.iter().zip(it.stats.changes) {
            out.sample(&[("fabric", &it.fabric), ("kind", kind)], count);
        });
    "fabric_exporter_nodes_seen" Gauge ["fabric"]
        "Nodes that the latest discovery found."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.sample(&[("fabric", &it.fabric)], last.fabric.nodes.iter().filter(|node| node.present()).count() as u64);
        });
    "fabric_exporter_nodes_failed" Gauge ["fabric"]
        "Nodes that are missing or did not respond in the latest sweep."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            let failed = last.fabric.node_indexes().filter(|&node| !last.is_up(node)).count();
            out.sample(&[("fabric", &it.fabric)], failed as u64);
        });
    "fabric_exporter_ports_seen" Gauge ["fabric"]
        "Ports whose counters the latest sweep read."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.sample(&[("fabric", &it.fabric)], last.readings.iter().flatten().count() as u64);
        });
    "fabric_exporter_ports_failed" Gauge ["fabric"]
        "Ports with at least one failed request in the latest sweep."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.failed_ports as u64));
    "fabric_exporter_mads" Counter ["fabric", "class", "outcome"]
        "MADs sent, including retries, by class and outcome. The outcomes malformed and stray count received MADs (stray: matches no outstanding request)."
        => |state, out| state.each(|it| for class in Class::ALL {
            for outcome in MadOutcome::ALL {
                let labels = [("fabric", it.fabric.as_str()), ("class", class.label()), ("outcome", outcome.label())];
                out.sample(&labels, it.mads.count(class, outcome));
            }
        });
    "fabric_exporter_mad_round_trip_seconds" Histogram ["fabric", "class"]
        "Round-trip time of MADs, from request to response, by class."
        => |state, out| state.each(|it| for class in Class::ALL {
            let trips = it.mads.round_trips(class);
            let bounds = ROUND_TRIP_BOUNDS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(trips.buckets).collect();
            let labels = [("fabric", it.fabric.as_str()), ("class", class.label())];
            histogram(out, &labels, trips.sum.as_secs_f64(), trips.count(), &buckets);
        });
    "fabric_exporter_render_duration_seconds" Gauge []
        "Time to render and compress the metrics of the latest sweep."
        => |state, out| out.float_sample(&[], state.render.as_secs_f64());
    "fabric_exporter_history_bytes" Gauge []
        "Size of the history file."
        => |state, out| if let Some(it) = state.recorded() { out.sample(&[], it.bytes) };
    "fabric_exporter_history_free_bytes" Gauge []
        "Free space on the file system of the history, as of the latest sweep."
        => |state, out| if let Some(free) = state.recorded().and_then(|it| it.free) { out.sample(&[], free) };
    "fabric_exporter_history_free_floor_bytes" Gauge []
        "Free space that the recorder leaves on the file system. While less is free, nothing is recorded."
        => |state, out| if let Some(it) = state.recorded() { out.sample(&[], it.floor) };
    "fabric_exporter_history_frames" Counter []
        "Frames (compressed blocks of counters) written to the history, up to 4 per sweep."
        => |state, out| if let Some(it) = state.recorded() { out.sample(&[], it.frames) };
    "fabric_exporter_history_events" Counter []
        "Events written to the history."
        => |state, out| if let Some(it) = state.recorded() { out.sample(&[], it.events) };
    "fabric_exporter_history_errors" Counter ["kind"]
        "Failed writes to the history, by kind. The log has the cause."
        => |state, out| if let Some(it) = state.recorded() { for (trouble, count) in RecorderErrorKind::ALL.into_iter().zip(it.errors) {
            out.sample(&[("kind", trouble.label())], count);
        } };
    "fabric_exporter_history_set_aside_files" Gauge []
        "Damaged history files that were renamed and are still in the history's directory. With three of them, recording stops when the next file is damaged, until one is moved to another directory."
        => |state, out| if let Some(count) = state.recorded().and_then(|it| it.set_aside) { out.sample(&[], count) };
    "fabric_exporter_history_missed_sweeps" Counter []
        "Sweeps missing from the history because an earlier write was slow or failed. Their counts are in the next recorded sweep."
        => |state, out| if let Some(it) = state.recorded() { out.sample(&[], it.missed) };
    "fabric_exporter_history_write_duration_seconds" Gauge []
        "Time to write the latest sweep to the history."
        => |state, out| if let Some(it) = state.recorded() { out.float_sample(&[], it.write_duration.as_secs_f64()) };
    "fabric_exporter_web_config_last_reload_successful" Gauge []
        "1 if the latest reload of the web config file succeeded. If 0, the previous configuration and certificate stay in use."
        => |state, out| if let Some(it) = state.web_config { out.sample(&[], it.succeeded().into()) };
    "fabric_exporter_web_config_last_reload_success_timestamp_seconds" Gauge []
        "Unix time of the latest successful load of the web config file."
        => |state, out| if let Some(it) = state.web_config { out.float_sample(&[], it.succeeded_at()) };
    "fabric_exporter_web_info" Gauge ["external_url"]
        "Always 1. The label external_url is that of --web.external-url, empty if it is not set; recording rules derive the links in alerts from it."
        => |state, out| out.sample(&[("external_url", state.external_url)], 1);
    "fabric_exporter_site_file_last_read_timestamp_seconds" Gauge ["fabric", "file"]
        "Unix time of the latest successful read of a site file: maintenance file at each sweep; node_name_map and m_key at each discovery. If a read fails, the previous content stays in use."
        => |state, out| state.each(|it| for (kind, read) in SiteFileKind::ALL.into_iter().zip(it.stats.site_files) {
            if let Some(read) = read {
                out.float_sample(&[("fabric", &it.fabric), ("file", kind.label())], read);
            }
        });
    "fabric_exporter_build_info" Gauge ["version", "revision"]
        "Version and revision of the exporter as labels, always 1."
        => |_, out| {
            let revision = option_env!("FABRIC_EXPORTER_REVISION").unwrap_or("unknown");
            out.sample(&[("version", env!("CARGO_PKG_VERSION")), ("revision", revision)], 1);
        };
    "process_cpu_seconds" Counter []
        "Total user and system CPU time spent in seconds."
        => |state, out| if let Some(it) = state.process { out.float_sample(&[], it.cpu_seconds) };
    "process_resident_memory_bytes" Gauge []
        "Resident memory size in bytes."
        => |state, out| if let Some(it) = state.process { out.sample(&[], it.resident_bytes) };
    "process_virtual_memory_bytes" Gauge []
        "Virtual memory size in bytes."
        => |state, out| if let Some(it) = state.process { out.sample(&[], it.virtual_bytes) };
    "process_threads" Gauge []
        "Number of OS threads in the process."
        => |state, out| if let Some(it) = state.process { out.sample(&[], it.threads) };
    "process_start_time_seconds" Gauge []
        "Start time of the process since unix epoch in seconds."
        => |state, out| if let Some(start) = state.process.and_then(|it| it.start_seconds) { out.float_sample(&[], start) };
    "process_open_fds" Gauge []
        "Number of open file descriptors."
        => |state, out| if let Some(open) = state.process.and_then(|it| it.open_files) { out.sample(&[], open) };
    "process_max_fds" Gauge []
        "Maximum number of open file descriptors."
        => |state, out| if let Some(most) = state.process.and_then(|it| it.most_files) { out.sample(&[], most) };
}

pub fn families() -> impl Iterator<Item = Family> {
    names(FAMILIES)
}

impl SelfState<'_> {
    fn each(&self, write: impl FnMut(&Arc<Observation>)) {
        self.fabrics.iter().for_each(write);
    }

    fn recorded(&self) -> Option<RecorderStats> {
        self.recording.map(RecorderMetrics::get)
    }

    fn host_read(&self) -> Option<&HostSnapshot> {
        self.host?.snapshot.as_ref()
    }
}

pub fn render(board: &SharedState, render: Duration, process: &Process) -> Vec<Part<Vec<u8>>> {
    let state = SelfState {
        fabrics: &board.fabrics,
        host: board.host.as_deref(),
        recording: board.recording.as_deref(),
        render,
        process: Numbers::read(process),
        web_config: process.web_config.as_deref(),
        external_url: process.external_url.as_deref().unwrap_or_default(),
    };
    let mut parts = Parts::<Vec<u8>>::default();
    for (family, write) in FAMILIES {
        parts.add(family.clone(), |family| write(&state, &mut family.samples(b"")));
    }
    parts.finish()
}
