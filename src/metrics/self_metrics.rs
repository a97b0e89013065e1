//! Families of the exporter itself, rendered at each scrape.

use std::sync::Arc;
use std::time::Duration;

use exporter_web::ReloadStatus;
use exposition::{Family, MetricType, Part, Parts, Samples};
use fabric_observation::SiteFileKind;
use fabric_observation::host::HostObservation;
use fabric_observation::{Collector, Observation, RecorderErrorKind, RecorderMetrics, SharedState};
use ib_fabric::change;
use ib_mad::Class;
use ib_umad::stats::{MadOutcome, ROUND_TRIP_BOUNDS};

use super::fabric::names;
use super::process::{Numbers, Process};
use super::{families, family};

#[derive(Debug)]
struct SelfState {
    board: SharedState,
    render: Duration,
    process: Option<Numbers>,
    web_config: Option<Arc<ReloadStatus>>,
    external_url: Arc<str>,
}

/// Writes a histogram; the counts of buckets are of each, and in the text of all up to it.
fn histogram(
    out: &mut Samples<'_>,
    labels: &[(&str, &str)],
    sum: f64,
    count: u64,
    buckets: &[(f64, u64)],
) {
    out.suffix("_sum").sample(labels, sum);
    out.suffix("_count").sample(labels, count);
    let mut up_to = 0;
    for (bound, count) in buckets {
        up_to += count;
        let bound = if bound.is_infinite() { "+Inf".to_owned() } else { bound.to_string() };
        out.suffix("_bucket").sample(&[labels, &[("le", &bound)]].concat(), up_to);
    }
}

families! {
    FAMILIES: SelfState;
    "fabric_exporter_collector_success" Gauge ["fabric", "collector"]
        "Whether the collector's latest run ended and read something. The host's is 1, too, where there has never been a device to read."
        => |state, out| {
            state.each(|it| for collector in Collector::ALL {
                out.sample(&[("fabric", &it.fabric), ("collector", collector.label())], it.stats.success(collector));
            });
            state.host(|it| out.sample(&[("collector", "host")], it.success()));
        };
    "fabric_exporter_host_read_duration_seconds" Gauge []
        "How long the latest look at this host's own devices took."
        => |state, out| state.host(|it| if let Some(last) = &it.snapshot {
            out.sample(&[], last.ended.since(last.began).as_secs_f64());
        });
    "fabric_exporter_host_read_timestamp_seconds" Gauge []
        "When the latest look at this host's own devices ended, in seconds since 1970: the age of what is served."
        => |state, out| state.host(|it| if let Some(last) = &it.snapshot {
            out.sample(&[], last.anchor.unix_seconds_of(last.ended));
        });
    "fabric_exporter_host_read_interval_seconds" Gauge []
        "From one look at this host's own devices to the next, as it is set."
        => |state, out| state.host(|it| if it.snapshot.is_some() {
            out.sample(&[], it.interval.as_secs_f64());
        });
    "infiniband_host_reads" Counter []
        "Looks at this host's own devices."
        => |state, out| state.host(|it| out.sample(&[], it.reads));
    "infiniband_host_events_dropped" Counter ["consumer"]
        "Events of this host's devices that were dropped because too many waited: by the host collector while it read devices, or by the judges of fabrics while no sweep took them."
        => |state, out| state.host(|it| {
            out.sample(&[("consumer", "host")], it.dropped.by_host);
            out.sample(&[("consumer", "judge")], it.dropped.by_fabrics);
        });
    "fabric_exporter_sweep_duration_seconds" Gauge ["fabric"]
        "How long the latest sweep took, from its first question to its last answer."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.sample(&[("fabric", &it.fabric)], last.ended.since(last.began).as_secs_f64());
        });
    "fabric_exporter_sweep_timestamp_seconds" Gauge ["fabric"]
        "When the latest sweep ended, in seconds since 1970: the age of what is served."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.sample(&[("fabric", &it.fabric)], last.anchor.unix_seconds_of(last.ended));
        });
    "fabric_exporter_sweep_interval_seconds" Gauge ["fabric"]
        "From one sweep to the next, as it is set."
        => |state, out| state.each(|it| if it.snapshot.is_some() {
            out.sample(&[("fabric", &it.fabric)], it.interval.as_secs_f64());
        });
    "infiniband_sweeps" Counter ["fabric"]
        "Sweeps that came to their end."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.sweeps));
    "fabric_exporter_discovery_duration_seconds" Gauge ["fabric"]
        "How long the latest discovery took."
        => |state, out| state.each(|it| if let Some((anchor, ended)) = it.stats.discovery {
            out.sample(&[("fabric", &it.fabric)], ended.since(anchor.moment).as_secs_f64());
        });
    "fabric_exporter_discovery_timestamp_seconds" Gauge ["fabric"]
        "When the latest discovery ended, in seconds since 1970."
        => |state, out| state.each(|it| if let Some((anchor, ended)) = it.stats.discovery {
            out.sample(&[("fabric", &it.fabric)], anchor.unix_seconds_of(ended));
        });
    "infiniband_discoveries" Counter ["fabric"]
        "Discoveries that came to their end."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.discoveries));
    "fabric_exporter_discovery_gaps" Gauge ["fabric"]
        "Questions of the latest discovery that nobody answered: what is behind them is not known."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.discovery_gaps));
    "infiniband_duplicate_guids" Gauge ["fabric"]
        "Nodes that the latest discovery left out, because another node has the same NodeGUID."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.sample(&[("fabric", &it.fabric)], last.fabric.duplicates.len());
        });
    "fabric_exporter_discovery_unresponsive_ports" Gauge ["fabric"]
        "Ports with a link whose neighbor answered no subnet management when it was last asked: its agent hangs, or an M_Key protects it."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.unanswered_ports));
    "infiniband_mkey_suspected" Gauge ["fabric"]
        "Whether M_Key protection is the likely cause that neighbors answer no subnet management: nothing beyond our own port answers, not even our own port does, or our own port is protected and many neighbors do not answer."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.m_key_suspected));
    "infiniband_partition_suspected" Gauge ["fabric"]
        "Whether in the latest sweep switches answered performance management and at most one of ten channel adapters beside our own did (three silent ones at least), or our port lacks the P_Key of --fabric.pkey: it is likely in another partition, or a limited member."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.partition_suspected));
    "infiniband_fabric_changes" Counter ["fabric", "kind"]
        "Changes between one discovery and the next, by kind."
        => |state, out| state.each(|it| for (kind, count) in change::CHANGE_KINDS.iter().zip(it.stats.changes) {
            out.sample(&[("fabric", &it.fabric), ("kind", kind)], count);
        });
    "fabric_exporter_nodes_seen" Gauge ["fabric"]
        "Nodes that the latest discovery found."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.sample(&[("fabric", &it.fabric)], last.fabric.nodes.iter().filter(|node| node.present()).count());
        });
    "fabric_exporter_nodes_failed" Gauge ["fabric"]
        "Nodes that are gone, or gave no answer in the latest sweep."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            let failed = last.fabric.node_indexes().filter(|&node| !last.is_up(node)).count();
            out.sample(&[("fabric", &it.fabric)], failed);
        });
    "fabric_exporter_ports_seen" Gauge ["fabric"]
        "Ports whose counters the latest sweep read."
        => |state, out| state.each(|it| if let Some(last) = &it.snapshot {
            out.sample(&[("fabric", &it.fabric)], last.readings.iter().flatten().count());
        });
    "fabric_exporter_ports_failed" Gauge ["fabric"]
        "Ports of which the latest sweep did not get all that it asked for."
        => |state, out| state.each(|it| out.sample(&[("fabric", &it.fabric)], it.stats.failed_ports));
    "infiniband_mads" Counter ["fabric", "class", "outcome"]
        "MADs sent, retries included, by what became of them; malformed and stray ones came in unasked."
        => |state, out| state.each(|it| for class in Class::ALL {
            for outcome in MadOutcome::ALL {
                let labels = [("fabric", it.fabric.as_str()), ("class", class.label()), ("outcome", outcome.label())];
                out.sample(&labels, it.mads.count(class, outcome));
            }
        });
    "fabric_exporter_mad_round_trip_seconds" Histogram ["fabric", "class"]
        "From sending a MAD to its answer."
        => |state, out| state.each(|it| for class in Class::ALL {
            let trips = it.mads.round_trips(class);
            let bounds = ROUND_TRIP_BOUNDS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(trips.buckets).collect();
            let labels = [("fabric", it.fabric.as_str()), ("class", class.label())];
            histogram(out, &labels, trips.sum.as_secs_f64(), trips.count(), &buckets);
        });
    "fabric_exporter_render_duration_seconds" Gauge []
        "How long it took to render and compress the latest sweep."
        => |state, out| out.sample(&[], state.render.as_secs_f64());
    "fabric_exporter_history_bytes" Gauge []
        "Size of the history's file on disk."
        => |state, out| state.recording(|it| out.sample(&[], it.bytes()));
    "fabric_exporter_history_free_bytes" Gauge []
        "What is free on the disk of the history, as of the latest sweep."
        => |state, out| state.recording(|it| if let Some(free) = it.free() { out.sample(&[], free) });
    "fabric_exporter_history_free_floor_bytes" Gauge []
        "What is left alone of the disk of the history: while less is free, nothing is recorded."
        => |state, out| state.recording(|it| out.sample(&[], it.floor()));
    "fabric_exporter_history_frames" Counter []
        "Frames of counters that were written to the history, up to four a sweep."
        => |state, out| state.recording(|it| out.sample(&[], it.frames()));
    "fabric_exporter_history_events" Counter []
        "Events that were written to the history."
        => |state, out| state.recording(|it| out.sample(&[], it.events()));
    "fabric_exporter_history_errors" Counter ["kind"]
        "Times that something could not be written to the history, by kind; the log says what."
        => |state, out| state.recording(|it| for trouble in RecorderErrorKind::ALL {
            out.sample(&[("kind", trouble.label())], it.errors_by(trouble));
        });
    "fabric_exporter_history_set_aside_files" Gauge []
        "Damaged histories that were set aside and lie beside the history's file: after three, recording stops until one is moved elsewhere."
        => |state, out| state.recording(|it| if let Some(count) = it.set_aside() { out.sample(&[], count) });
    "fabric_exporter_history_missed_sweeps" Counter []
        "Sweeps that are not in the history, because writing an earlier one took too long or failed; what they counted is in the next one."
        => |state, out| state.recording(|it| out.sample(&[], it.missed()));
    "fabric_exporter_history_write_duration_seconds" Gauge []
        "How long it took to write the latest sweep to the history."
        => |state, out| state.recording(|it| out.sample(&[], it.write_duration().as_secs_f64()));
    "fabric_exporter_web_config_last_reload_successful" Gauge []
        "Whether the web config file could be read when it was read last. If not, what was before still counts, and an old certificate ends some day."
        => |state, out| state.web_config(|it| out.sample(&[], it.succeeded()));
    "fabric_exporter_web_config_last_reload_success_timestamp_seconds" Gauge []
        "When the web config file was read and taken for the last time, in seconds since 1970."
        => |state, out| state.web_config(|it| out.sample(&[], it.succeeded_at()));
    "fabric_exporter_web_info" Gauge ["external_url"]
        "Always 1. The label external_url is that of --web.external-url, empty if it is not set; recording rules derive the links in alerts from it."
        => |state, out| out.sample(&[("external_url", &state.external_url)], 1u64);
    "fabric_exporter_site_file_last_read_timestamp_seconds" Gauge ["fabric", "file"]
        "When a file of the site's was last looked at and could be used, in seconds since 1970: the maintenance file at each sweep, node-name-map and M_Key file at each discovery. If it is older, what was read then is still in use."
        => |state, out| state.each(|it| for (kind, read) in SiteFileKind::ALL.into_iter().zip(it.stats.site_files) {
            if let Some(read) = read {
                out.sample(&[("fabric", &it.fabric), ("file", kind.label())], read);
            }
        });
    "fabric_exporter_build_info" Gauge ["version", "revision"]
        "What this program was built from, as a series that is always 1."
        => |_, out| {
            let revision = option_env!("FABRIC_EXPORTER_REVISION").unwrap_or("unknown");
            out.sample(&[("version", env!("CARGO_PKG_VERSION")), ("revision", revision)], 1u64);
        };
    "process_cpu_seconds" Counter []
        "Time that the process spent on processors, in itself and in the kernel."
        => |state, out| state.process(|it| out.sample(&[], it.cpu_seconds));
    "process_resident_memory_bytes" Gauge []
        "Memory that the process has in RAM."
        => |state, out| state.process(|it| out.sample(&[], it.resident_bytes));
    "process_virtual_memory_bytes" Gauge []
        "Address space of the process."
        => |state, out| state.process(|it| out.sample(&[], it.virtual_bytes));
    "process_threads" Gauge []
        "Threads of the process."
        => |state, out| state.process(|it| out.sample(&[], it.threads));
    "process_start_time_seconds" Gauge []
        "When the process began, in seconds since 1970."
        => |state, out| state.process(|it| if let Some(start) = it.start_seconds { out.sample(&[], start) });
    "process_open_fds" Gauge []
        "File descriptors that the process has open."
        => |state, out| state.process(|it| if let Some(open) = it.open_files { out.sample(&[], open) });
    "process_max_fds" Gauge []
        "File descriptors that the process may have open."
        => |state, out| state.process(|it| if let Some(most) = it.most_files { out.sample(&[], most) });
}

pub fn families() -> impl Iterator<Item = Family> {
    names(FAMILIES)
}

impl SelfState {
    fn each(&self, mut write: impl FnMut(&Observation)) {
        self.board.fabrics.iter().for_each(|observation| write(observation));
    }

    fn host(&self, write: impl FnOnce(&HostObservation)) {
        if let Some(host) = &self.board.host {
            write(host);
        }
    }

    fn recording(&self, write: impl FnOnce(&RecorderMetrics)) {
        if let Some(recording) = &self.board.recording {
            write(recording);
        }
    }

    fn web_config(&self, write: impl FnOnce(&ReloadStatus)) {
        if let Some(reload) = &self.web_config {
            write(reload);
        }
    }

    fn process(&self, write: impl FnOnce(Numbers)) {
        if let Some(process) = self.process {
            write(process);
        }
    }
}

pub fn render(board: &SharedState, render: Duration, process: &Process) -> Vec<Part<Vec<u8>>> {
    let state = SelfState {
        board: board.clone(),
        render,
        process: Numbers::read(process),
        web_config: process.web_config.clone(),
        external_url: process.external_url.clone(),
    };
    let mut parts = Parts::<Vec<u8>>::default();
    for (family, write) in FAMILIES {
        parts.add(*family, |family| write(&state, &mut family.samples(b"")));
    }
    parts.finish()
}
