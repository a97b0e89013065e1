//! Families of the exporter itself that follow from the state of its monitors, rendered at each scrape.

use std::time::UNIX_EPOCH;

use exposition::{Family, Labeled, MetricType, Part, Parts, Samples};
use fabric_observation::SiteFileKind;
use fabric_observation::host::HostObservation;
use fabric_observation::{Collector, JobsObservation, Observation, SharedState};
use ib_fabric::{Snapshot, change};
use rdma_host::model::HostSnapshot;

use super::family_table::{families, family, names};
use super::own;
use super::selection::Shard;

struct SelfState<'a> {
    fabrics: Labeled<&'a Observation>,
    host: Option<&'a HostObservation>,
    jobs: Option<&'a JobsObservation>,
    external_url: &'a str,
}

families! {
    FAMILIES: SelfState<'_>;
    "fabric_exporter_collector_success" Gauge ["fabric", "collector"]
        "1 if the latest run of the collector succeeded and read something, else 0. The host collector also succeeds on a host without RDMA devices."
        => |state, out| {
            state.each(out, |it, out| for collector in Collector::ALL {
                out.label("collector", collector.label()).value(it.stats.success(collector).into());
            });
            out.label("collector", "host").value_if_known(state.host.map(|it| it.success().into()));
        };
    "fabric_exporter_host_read_duration_seconds" Gauge []
        "Duration of the latest read of this host's devices."
        => |state, out| out.float_if_known(state.host_read().map(|it| it.ended.since(it.began).as_secs_f64()));
    "fabric_exporter_host_read_timestamp_seconds" Gauge []
        "Unix time when the latest read of this host's devices ended. time() minus this is the age of the host metrics."
        => |state, out| out.float_if_known(state.host_read().map(|it| it.anchor.unix_seconds_of(it.ended)));
    "fabric_exporter_host_read_interval_seconds" Gauge []
        "Configured interval between reads of this host's devices (--host.interval)."
        => |state, out| out.float_if_known(state.host_read().zip(state.host).map(|(_, it)| it.interval.as_secs_f64()));
    "fabric_exporter_host_reads" Counter []
        "Reads of this host's devices."
        => |state, out| out.value_if_known(state.host.map(|it| it.reads));
    "fabric_exporter_host_events_dropped" Counter ["consumer"]
        "Device events dropped because a queue was full, by consumer: host (the host collector was reading devices) or evaluator (no sweep processed them in time)."
        => |state, out| if let Some(it) = state.host {
            out.label("consumer", "host").value(it.dropped.by_host);
            out.label("consumer", "evaluator").value(it.dropped.by_fabrics);
        };
    "fabric_exporter_sweep_duration_seconds" Gauge ["fabric"]
        "Duration of the latest sweep, from its first request to its last response."
        => |state, out| state.each_sweep(out, |last, out| out.float(last.ended.since(last.began).as_secs_f64()));
    "fabric_exporter_sweep_timestamp_seconds" Gauge ["fabric"]
        "Unix time when the latest sweep ended. time() minus this is the age of the fabric metrics."
        => |state, out| state.each_sweep(out, |last, out| out.float(last.anchor.unix_seconds_of(last.ended)));
    "fabric_exporter_sweep_interval_seconds" Gauge ["fabric"]
        "Configured interval between sweeps (--fabric.interval). With --fabric.from: the time between two changes of the data, if that is longer; 300 s until it is known."
        => |state, out| state.each(out, |it, out| out.float_if_known(it.snapshot.as_ref().map(|_| it.interval.as_secs_f64())));
    "fabric_exporter_source_info" Gauge ["fabric", "source", "format"]
        "Where the data of a fabric is from that another program collects (--fabric.from), as labels, always 1: its URL or directory, and the format of its data. Absent for fabrics that are read by MADs."
        => |state, out| state.each(out, |it, out| if let Some(source) = &it.source {
            out.label("source", &source.name).label("format", &source.format).value(1);
        });
    "fabric_exporter_source_interval_seconds" Gauge ["fabric"]
        "Time between the latest two changes of the data of --fabric.from, as the data says it. Absent before the second."
        => |state, out| state.each(out, |it, out| {
            let source = it.source.as_deref();
            out.float_if_known(source.and_then(|it| it.interval).map(|it| it.as_secs_f64()));
        });
    "fabric_exporter_source_last_poll_successful" Gauge ["fabric"]
        "1 if the latest poll of --fabric.from had data that can be used and is not outdated, else 0; the log has the reason."
        => |state, out| state.each(out, |it, out| {
            out.value_if_known(it.source.as_deref().map(|it| it.problem.is_none().into()));
        });
    "fabric_exporter_sweeps" Counter ["fabric"]
        "Completed sweeps."
        => |state, out| state.each(out, |it, out| out.value(it.stats.sweeps));
    "fabric_exporter_discovery_duration_seconds" Gauge ["fabric"]
        "Duration of the latest discovery."
        => |state, out| state.each(out, |it, out| {
            out.float_if_known(it.stats.discovery.map(|(anchor, ended)| ended.since(anchor.moment).as_secs_f64()));
        });
    "fabric_exporter_discovery_timestamp_seconds" Gauge ["fabric"]
        "Unix time when the latest discovery ended."
        => |state, out| state.each(out, |it, out| {
            out.float_if_known(it.stats.discovery.map(|(anchor, ended)| anchor.unix_seconds_of(ended)));
        });
    "fabric_exporter_discoveries" Counter ["fabric"]
        "Completed discoveries."
        => |state, out| state.each(out, |it, out| out.value(it.stats.discoveries));
    "fabric_exporter_discovery_gaps" Gauge ["fabric"]
        "Requests of the latest discovery that timed out. Nodes behind them may be missing."
        => |state, out| state.each(out, |it, out| out.value(it.stats.discovery_gaps));
    "infiniband_duplicate_guids" Gauge ["fabric"]
        "Nodes that the latest discovery omitted because another node has the same NodeGUID."
        => |state, out| state.each_sweep(out, |last, out| out.value(last.fabric.duplicates.len() as u64));
    "fabric_exporter_discovery_unresponsive_ports" Gauge ["fabric"]
        "Ports with a link whose neighbor did not respond to subnet management requests: its SMA hangs, or an M_Key protects it."
        => |state, out| state.each(out, |it, out| out.value(it.stats.unanswered_ports as u64));
    "infiniband_mkey_suspected" Gauge ["fabric"]
        "1 if M_Key protection is the likely cause of unresponsive neighbors: no node beyond the local port responds, or the local port itself does not respond, or its driver refuses the requests, or the local port has M_Key protection level 2 or 3, no key is set, and many neighbors do not respond."
        => |state, out| state.each(out, |it, out| out.value(it.stats.m_key_suspected.into()));
    "infiniband_vskey_suspected" Gauge ["fabric"]
        "1 if a VSKey is the likely cause of unread registers: at least 32 devices do not respond to the vendor class, and fewer do."
        => |state, out| state.each(out, |it, out| out.value(it.stats.vs_key_suspected.into()));
    "infiniband_partition_suspected" Gauge ["fabric"]
        "1 if the local port lacks the P_Key of --fabric.pkey, or if switches respond to performance management but at least 90% of the channel adapters, and at least 3 of them, do not: wrong partition or limited member."
        => |state, out| state.each(out, |it, out| out.value(it.stats.partition_suspected.into()));
    "fabric_exporter_port_state_route_info" Gauge ["fabric", "route", "reason"]
        "How sweeps read port states, and why, as labels, always 1. Route lid: by LID (reason no_planes). Route directed: by directed route, which each sweep checks, because the fabric has planes: the local HCA is multi-plane (local_planes), a switch reports a plane of a port (front_panel), or a link has one XDR lane (xdr_lane). Route discovery: by discoveries only, because no switch responded in a sweep (no_response)."
        => |state, out| state.each(out, |it, out| if it.snapshot.is_some() {
            let reason = it.stats.route_reason;
            out.label("route", reason.route().label()).label("reason", reason.label()).value(1);
        });
    "fabric_exporter_switches_unconfirmed" Gauge ["fabric"]
        "Switches that did not respond to the latest sweep by any directed route: the states of their ports are unknown. 0 where port states are read by LID, or by discoveries only."
        => |state, out| state.each(out, |it, out| out.value(it.stats.unconfirmed_switches as u64));
    "fabric_exporter_fabric_changes" Counter ["fabric", "kind"]
        "Changes between successive discoveries, by kind: node_added, node_removed, link_added, link_removed, link_moved, lid_changed."
        => |state, out| state.each(out, |it, out| for (kind, count) in change::CHANGE_KINDS.iter().zip(it.stats.changes) {
            out.label("kind", kind).value(count);
        });
    "fabric_exporter_nodes_seen" Gauge ["fabric"]
        "Nodes that the latest discovery found."
        => |state, out| state.each_sweep(out, |last, out| {
            out.value(last.fabric.nodes.iter().filter(|node| node.present()).count() as u64);
        });
    "fabric_exporter_nodes_failed" Gauge ["fabric"]
        "Nodes that are missing or did not respond in the latest sweep."
        => |state, out| state.each_sweep(out, |last, out| {
            out.value(last.fabric.node_indexes().filter(|&node| !last.is_up(node)).count() as u64);
        });
    "fabric_exporter_ports_seen" Gauge ["fabric"]
        "Ports whose counters the latest sweep read."
        => |state, out| state.each_sweep(out, |last, out| out.value(last.readings.iter().flatten().count() as u64));
    "fabric_exporter_ports_failed" Gauge ["fabric"]
        "Ports with at least one failed request in the latest sweep."
        => |state, out| state.each(out, |it, out| out.value(it.stats.failed_ports as u64));
    "fabric_exporter_web_info" Gauge ["external_url"]
        "Always 1. The label external_url is the value of --web.external-url, empty if it is not set; recording rules derive the links in alerts from it."
        => |state, out| out.required_label("external_url", state.external_url).value(1);
    "fabric_exporter_site_file_last_read_timestamp_seconds" Gauge ["fabric", "file"]
        "Unix time of the latest successful read of a site file. Label file: maintenance or drained_hosts (read at each sweep; 0 while drained hosts were never read), node_name_map, m_key or vs_key (at each discovery). If a read fails, the previous content stays in use."
        => |state, out| state.each(out, |it, out| for (kind, read) in SiteFileKind::ALL.into_iter().zip(it.stats.site_files) {
            out.label("file", kind.label()).float_if_known(read);
        });
    "fabric_exporter_totals_timestamp_seconds" Gauge ["fabric"]
        "Unix time when totals of the other exporter (--fabric.totals-from) were last received. Absent without that option and before the first response."
        => |state, out| state.each(out, |it, out| out.float_if_known(it.stats.totals_received));
    "fabric_exporter_jobs_last_read_successful" Gauge ["source"]
        "1 if the latest read of running jobs succeeded, else 0; also 0 before the first. Label source: slurm or directory. Absent without --jobs.from."
        => |state, out| if let Some(jobs) = state.jobs {
            let is_read = jobs.read_at.is_some() && jobs.problem.is_none();
            out.label("source", jobs.source.label()).value(is_read.into());
        };
    "fabric_exporter_jobs_last_read_success_timestamp_seconds" Gauge ["source"]
        "Unix time of the latest read of running jobs that succeeded. time() minus this is the age of the jobs: after 5 intervals (--jobs.interval) they are forgotten."
        => |state, out| if let Some(jobs) = state.jobs {
            let read_at = jobs.read_at.map(|it| it.duration_since(UNIX_EPOCH).unwrap_or_default());
            out.label("source", jobs.source.label()).float_if_known(read_at.map(|it| it.as_secs_f64()));
        };
    "fabric_exporter_jobs_running" Gauge ["source"]
        "Running jobs of the latest read that succeeded."
        => |state, out| if let Some(jobs) = state.jobs {
            let running = jobs.read_at.map(|_| jobs.list.jobs.len() as u64);
            out.label("source", jobs.source.label()).value_if_known(running);
        };
    "fabric_exporter_build_info" Gauge ["version", "revision"]
        "Version and revision of the exporter as labels, always 1."
        => |_, out| {
            let revision = option_env!("FABRIC_EXPORTER_REVISION").unwrap_or("unknown");
            out.label("version", env!("CARGO_PKG_VERSION"));
            out.required_label("revision", revision).value(1);
        };
}

const SHARDS: Family = family!(
    "fabric_exporter_shards" Gauge ["index"]
    "Number of shards N of a scrape with ?shard=K/N; label index is K. 1 without shards."
);

/// The families of the exporter itself.
pub fn families() -> impl Iterator<Item = Family> {
    [SHARDS].into_iter().chain(names(FAMILIES)).chain(own::families())
}

/// The number of shards, which each shard has with its own index: so a shard that is not scraped can be found.
pub fn shards(shard: Shard) -> Part<Vec<u8>> {
    let (family, mut samples) = (SHARDS, Vec::new());
    let mut writer = Samples::new(&mut samples, &family.name, b"");
    writer.label("index", &shard.index.to_string()).value(shard.count as u64);
    drop(writer);
    Part { family, samples }
}

impl SelfState<'_> {
    /// Writes the samples of each fabric.
    fn each(&self, out: &mut Samples<'_>, write: impl Fn(&Observation, &mut Samples<'_>)) {
        for (labels, fabric) in self.fabrics.iter() {
            write(fabric, &mut out.of(labels));
        }
    }

    /// Writes the samples of the latest sweep of each fabric.
    fn each_sweep(&self, out: &mut Samples<'_>, write: impl Fn(&Snapshot, &mut Samples<'_>)) {
        self.each(out, |it, out| it.snapshot.iter().for_each(|last| write(last, out)));
    }

    fn host_read(&self) -> Option<&HostSnapshot> {
        self.host?.snapshot.as_ref()
    }
}

/// Renders what a scrape gets of a state. Users reach the exporter under the external URL, if it is set.
pub fn render(state: &SharedState, external_url: &str) -> Vec<Part<Vec<u8>>> {
    let mut fabrics = Labeled::default();
    for fabric in &state.fabrics {
        fabrics.push(&**fabric, |labels| {
            labels.push("fabric", &fabric.fabric);
        });
    }
    let (host, jobs) = (state.host.as_deref(), state.jobs.as_deref());
    let state = SelfState { fabrics, host, jobs, external_url };
    let mut parts = Parts::default();
    for (family, write) in FAMILIES {
        parts.add(family.clone(), |family| write(&state, &mut family.samples(b"")));
    }
    parts.finish()
}
