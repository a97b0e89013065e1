//! The small part of the exposition: the exporter's account of itself, fresh at each scrape.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use exporter_web::reload::Reload;
use fabric_observation::SiteFileKind;
use fabric_observation::host::HostObservation;
use fabric_observation::{Board, Collector, Observation, Recording, Trouble};
use ib_fabric::change;
use ib_mad::Class;
use ib_umad::stats::{MadOutcome, ROUND_TRIP_BOUNDS};

use super::Format;
use super::family::{Family, Head, Kind, push_label};
use super::process::{Numbers, Process};

/// What the families are told from.
#[derive(Debug)]
struct About {
    board: Board,
    render: Duration,
    process: Option<Numbers>,
    web_config: Option<Arc<Reload>>,
}

/// A value as it is written: whole numbers stay whole.
#[derive(Clone, Copy, Debug)]
enum Value {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Whole(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Value::Whole(value as u64)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Whole(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Real(value)
    }
}

/// Where a family's samples go. Its header stands before the first: a family without samples has none.
struct Samples<'a> {
    text: &'a mut Vec<u8>,
    family: Family,
    format: Format,
    has_begun: bool,
}

impl Samples<'_> {
    fn put(&mut self, labels: &[(&str, &str)], value: impl Into<Value>) {
        let suffix = if self.family.kind == Kind::Counter { "_total" } else { "" };
        self.sample(suffix, labels, value.into());
    }

    /// Buckets are counts of their own here, and sums of all up to them in the text.
    fn put_histogram(
        &mut self,
        labels: &[(&str, &str)],
        sum: f64,
        count: u64,
        buckets: &[(f64, u64)],
    ) {
        self.sample("_sum", labels, sum.into());
        self.sample("_count", labels, count.into());
        let mut up_to = 0;
        for (bound, count) in buckets {
            up_to += count;
            let bound = if bound.is_infinite() { "+Inf".to_owned() } else { bound.to_string() };
            self.sample("_bucket", &[labels, &[("le", &bound)]].concat(), up_to.into());
        }
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: Value) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let mut head = String::new();
            Head::from(self.family).write(&mut head, self.format);
            self.text.extend_from_slice(head.as_bytes());
        }
        self.text.extend_from_slice(self.family.name.as_bytes());
        self.text.extend_from_slice(suffix.as_bytes());
        for (at, (name, value)) in labels.iter().enumerate() {
            push_label(self.text, if at == 0 { b'{' } else { b',' }, name, value);
        }
        if !labels.is_empty() {
            self.text.push(b'}');
        }
        // Writing to a vector does not fail.
        let _ = match value {
            Value::Whole(value) => writeln!(self.text, " {value}"),
            Value::Real(value) => writeln!(self.text, " {value:?}"),
        };
    }
}

/// A family and how its samples are told.
type Told = (Family, fn(&About, &mut Samples<'_>));

macro_rules! families {
    ($($name:literal $kind:ident [$($label:literal),*] $help:literal => $tell:expr;)+) => {
        const FAMILIES: &[Told] = &[$((
            Family { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help },
            $tell,
        )),+];
    };
}

families! {
    "infiniband_collector_success" Gauge ["fabric", "collector"]
        "Whether the collector's latest run ended and read something. The host's is 1, too, where there has never been a device to read."
        => |about, out| {
            about.each(|it| for collector in Collector::ALL {
                out.put(&[("fabric", &it.fabric), ("collector", collector.label())], it.tally.success(collector));
            });
            about.host(|it| out.put(&[("collector", "host")], it.success()));
        };
    "infiniband_host_read_duration_seconds" Gauge []
        "How long the latest look at this host's own devices took."
        => |about, out| about.host(|it| if let Some(last) = &it.snapshot {
            out.put(&[], last.ended.since(last.began).as_secs_f64());
        });
    "infiniband_host_read_timestamp_seconds" Gauge []
        "When the latest look at this host's own devices ended, in seconds since 1970: the age of what is served."
        => |about, out| about.host(|it| if let Some(last) = &it.snapshot {
            out.put(&[], last.anchor.unix_seconds_of(last.ended));
        });
    "infiniband_host_read_interval_seconds" Gauge []
        "From one look at this host's own devices to the next, as it is set."
        => |about, out| about.host(|it| if it.snapshot.is_some() {
            out.put(&[], it.interval.as_secs_f64());
        });
    "infiniband_host_reads" Counter []
        "Looks at this host's own devices."
        => |about, out| about.host(|it| out.put(&[], it.looks));
    "infiniband_host_events_dropped" Counter ["consumer"]
        "Events of this host's devices that were dropped because too many waited: by the host collector while it read devices, or by the judges of fabrics while no sweep took them."
        => |about, out| about.host(|it| {
            out.put(&[("consumer", "host")], it.dropped.by_host);
            out.put(&[("consumer", "judge")], it.dropped.by_judges);
        });
    "infiniband_sweep_duration_seconds" Gauge ["fabric"]
        "How long the latest sweep took, from its first question to its last answer."
        => |about, out| about.each(|it| if let Some(last) = &it.snapshot {
            out.put(&[("fabric", &it.fabric)], last.ended.since(last.began).as_secs_f64());
        });
    "infiniband_sweep_timestamp_seconds" Gauge ["fabric"]
        "When the latest sweep ended, in seconds since 1970: the age of what is served."
        => |about, out| about.each(|it| if let Some(last) = &it.snapshot {
            out.put(&[("fabric", &it.fabric)], last.anchor.unix_seconds_of(last.ended));
        });
    "infiniband_sweep_interval_seconds" Gauge ["fabric"]
        "From one sweep to the next, as it is set."
        => |about, out| about.each(|it| if it.snapshot.is_some() {
            out.put(&[("fabric", &it.fabric)], it.interval.as_secs_f64());
        });
    "infiniband_sweeps" Counter ["fabric"]
        "Sweeps that came to their end."
        => |about, out| about.each(|it| out.put(&[("fabric", &it.fabric)], it.tally.sweeps));
    "infiniband_discovery_duration_seconds" Gauge ["fabric"]
        "How long the latest discovery took."
        => |about, out| about.each(|it| if let Some((anchor, ended)) = it.tally.discovery {
            out.put(&[("fabric", &it.fabric)], ended.since(anchor.moment).as_secs_f64());
        });
    "infiniband_discovery_timestamp_seconds" Gauge ["fabric"]
        "When the latest discovery ended, in seconds since 1970."
        => |about, out| about.each(|it| if let Some((anchor, ended)) = it.tally.discovery {
            out.put(&[("fabric", &it.fabric)], anchor.unix_seconds_of(ended));
        });
    "infiniband_discoveries" Counter ["fabric"]
        "Discoveries that came to their end."
        => |about, out| about.each(|it| out.put(&[("fabric", &it.fabric)], it.tally.discoveries));
    "infiniband_discovery_gaps" Gauge ["fabric"]
        "Questions of the latest discovery that nobody answered: what is behind them is not known."
        => |about, out| about.each(|it| out.put(&[("fabric", &it.fabric)], it.tally.discovery_gaps));
    "infiniband_duplicate_guids" Gauge ["fabric"]
        "Nodes that the latest discovery left out, because another node has the same NodeGUID."
        => |about, out| about.each(|it| if let Some(last) = &it.snapshot {
            out.put(&[("fabric", &it.fabric)], last.fabric.duplicates.len());
        });
    "infiniband_discovery_unanswered_ports" Gauge ["fabric"]
        "Ports with a link whose neighbor answered no subnet management when it was last asked: its agent hangs, or an M_Key protects it."
        => |about, out| about.each(|it| out.put(&[("fabric", &it.fabric)], it.tally.unanswered_ports));
    "infiniband_mkey_suspected" Gauge ["fabric"]
        "Whether M_Key protection is the likely cause that neighbors answer no subnet management: nothing beyond our own port answers, not even our own port does, or our own port is protected and many neighbors do not answer."
        => |about, out| about.each(|it| out.put(&[("fabric", &it.fabric)], it.tally.m_key_suspected));
    "infiniband_partition_suspected" Gauge ["fabric"]
        "Whether in the latest sweep switches answered performance management and at most one of ten channel adapters beside our own did (three silent ones at least), or our port lacks the P_Key of --fabric.pkey: it is likely in another partition, or a limited member."
        => |about, out| about.each(|it| out.put(&[("fabric", &it.fabric)], it.tally.partition_suspected));
    "infiniband_fabric_changes" Counter ["fabric", "kind"]
        "Changes between one discovery and the next, by kind."
        => |about, out| about.each(|it| for (kind, count) in change::CHANGE_KINDS.iter().zip(it.tally.changes) {
            out.put(&[("fabric", &it.fabric), ("kind", kind)], count);
        });
    "infiniband_nodes_seen" Gauge ["fabric"]
        "Nodes that the latest discovery found."
        => |about, out| about.each(|it| if let Some(last) = &it.snapshot {
            out.put(&[("fabric", &it.fabric)], last.fabric.nodes.iter().filter(|node| node.present()).count());
        });
    "infiniband_nodes_failed" Gauge ["fabric"]
        "Nodes that are gone, or gave no answer in the latest sweep."
        => |about, out| about.each(|it| if let Some(last) = &it.snapshot {
            let failed = last.fabric.node_indexes().filter(|&node| !last.is_up(node)).count();
            out.put(&[("fabric", &it.fabric)], failed);
        });
    "infiniband_ports_seen" Gauge ["fabric"]
        "Ports whose counters the latest sweep read."
        => |about, out| about.each(|it| if let Some(last) = &it.snapshot {
            out.put(&[("fabric", &it.fabric)], last.readings.iter().flatten().count());
        });
    "infiniband_ports_failed" Gauge ["fabric"]
        "Ports of which the latest sweep did not get all that it asked for."
        => |about, out| about.each(|it| out.put(&[("fabric", &it.fabric)], it.tally.failed_ports));
    "infiniband_mads" Counter ["fabric", "class", "outcome"]
        "MADs sent, retries included, by what became of them; malformed and stray ones came in unasked."
        => |about, out| about.each(|it| for class in Class::ALL {
            for outcome in MadOutcome::ALL {
                let labels = [("fabric", it.fabric.as_str()), ("class", class.label()), ("outcome", outcome.label())];
                out.put(&labels, it.mads.count(class, outcome));
            }
        });
    "infiniband_mad_round_trip_seconds" Histogram ["fabric", "class"]
        "From sending a MAD to its answer."
        => |about, out| about.each(|it| for class in Class::ALL {
            let trips = it.mads.round_trips(class);
            let bounds = ROUND_TRIP_BOUNDS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(trips.buckets).collect();
            let labels = [("fabric", it.fabric.as_str()), ("class", class.label())];
            out.put_histogram(&labels, trips.sum.as_secs_f64(), trips.count(), &buckets);
        });
    "fabric_exporter_render_duration_seconds" Gauge []
        "How long it took to render and compress the latest sweep."
        => |about, out| out.put(&[], about.render.as_secs_f64());
    "fabric_exporter_history_bytes" Gauge []
        "Size of the history's file on disk."
        => |about, out| about.recording(|it| out.put(&[], it.bytes()));
    "fabric_exporter_history_free_bytes" Gauge []
        "What is free on the disk of the history, as of the latest sweep."
        => |about, out| about.recording(|it| if let Some(free) = it.free() { out.put(&[], free) });
    "fabric_exporter_history_free_floor_bytes" Gauge []
        "What is left alone of the disk of the history: while less is free, nothing is recorded."
        => |about, out| about.recording(|it| out.put(&[], it.floor()));
    "fabric_exporter_history_frames" Counter []
        "Frames of counters that were written to the history, up to four a sweep."
        => |about, out| about.recording(|it| out.put(&[], it.frames()));
    "fabric_exporter_history_events" Counter []
        "Events that were written to the history."
        => |about, out| about.recording(|it| out.put(&[], it.events()));
    "fabric_exporter_history_errors" Counter ["kind"]
        "Times that something could not be written to the history, by kind; the log says what."
        => |about, out| about.recording(|it| for trouble in Trouble::ALL {
            out.put(&[("kind", trouble.label())], it.errors_by(trouble));
        });
    "fabric_exporter_history_set_aside_files" Gauge []
        "Damaged histories that were set aside and lie beside the history's file: after three, recording stops until one is moved elsewhere."
        => |about, out| about.recording(|it| if let Some(count) = it.set_aside() { out.put(&[], count) });
    "fabric_exporter_history_missed_sweeps" Counter []
        "Sweeps that are not in the history, because writing an earlier one took too long or failed; what they counted is in the next one."
        => |about, out| about.recording(|it| out.put(&[], it.missed()));
    "fabric_exporter_history_write_duration_seconds" Gauge []
        "How long it took to write the latest sweep to the history."
        => |about, out| about.recording(|it| out.put(&[], it.took().as_secs_f64()));
    "fabric_exporter_web_config_last_reload_successful" Gauge []
        "Whether the web config file could be read when it was read last. If not, what was before still counts, and an old certificate ends some day."
        => |about, out| about.web_config(|it| out.put(&[], it.went_well()));
    "fabric_exporter_web_config_last_reload_success_timestamp_seconds" Gauge []
        "When the web config file was read and taken for the last time, in seconds since 1970."
        => |about, out| about.web_config(|it| out.put(&[], it.read_at()));
    "fabric_exporter_site_file_last_read_timestamp_seconds" Gauge ["fabric", "file"]
        "When a file of the site's was last looked at and could be used, in seconds since 1970: the maintenance file at each sweep, node-name-map and M_Key file at each discovery. If it is older, what was read then is still in use."
        => |about, out| about.each(|it| for (kind, read) in SiteFileKind::ALL.into_iter().zip(it.tally.site_files) {
            if let Some(read) = read {
                out.put(&[("fabric", &it.fabric), ("file", kind.label())], read);
            }
        });
    "fabric_exporter_build_info" Gauge ["version", "revision"]
        "What this program was built from, as a series that is always 1."
        => |_, out| {
            let revision = option_env!("FABRIC_EXPORTER_REVISION").unwrap_or("unknown");
            out.put(&[("version", env!("CARGO_PKG_VERSION")), ("revision", revision)], 1u64);
        };
    "process_cpu_seconds" Counter []
        "Time that the process spent on processors, in itself and in the kernel."
        => |about, out| about.process(|it| out.put(&[], it.cpu_seconds));
    "process_resident_memory_bytes" Gauge []
        "Memory that the process has in RAM."
        => |about, out| about.process(|it| out.put(&[], it.resident_bytes));
    "process_virtual_memory_bytes" Gauge []
        "Address space of the process."
        => |about, out| about.process(|it| out.put(&[], it.virtual_bytes));
    "process_threads" Gauge []
        "Threads of the process."
        => |about, out| about.process(|it| out.put(&[], it.threads));
    "process_start_time_seconds" Gauge []
        "When the process began, in seconds since 1970."
        => |about, out| about.process(|it| if let Some(start) = it.start_seconds { out.put(&[], start) });
    "process_open_fds" Gauge []
        "File descriptors that the process has open."
        => |about, out| about.process(|it| if let Some(open) = it.open_files { out.put(&[], open) });
    "process_max_fds" Gauge []
        "File descriptors that the process may have open."
        => |about, out| about.process(|it| if let Some(most) = it.most_files { out.put(&[], most) });
}

/// All families of this part.
pub fn families() -> impl Iterator<Item = Family> {
    FAMILIES.iter().map(|(family, _)| *family)
}

impl About {
    fn each(&self, mut tell: impl FnMut(&Observation)) {
        self.board.fabrics.iter().for_each(|observation| tell(observation));
    }

    fn host(&self, tell: impl FnOnce(&HostObservation)) {
        if let Some(host) = &self.board.host {
            tell(host);
        }
    }

    fn recording(&self, tell: impl FnOnce(&Recording)) {
        if let Some(recording) = &self.board.recording {
            tell(recording);
        }
    }

    fn web_config(&self, tell: impl FnOnce(&Reload)) {
        if let Some(reload) = &self.web_config {
            tell(reload);
        }
    }

    fn process(&self, tell: impl FnOnce(Numbers)) {
        if let Some(process) = self.process {
            tell(process);
        }
    }
}

/// Renders this part in a format.
pub fn render(board: &Board, took: Duration, process: &Process, format: Format) -> Vec<u8> {
    let about = About {
        board: board.clone(),
        render: took,
        process: Numbers::read(process),
        web_config: process.web_config().cloned(),
    };
    let mut text = Vec::new();
    for (family, tell) in FAMILIES {
        let mut samples = Samples { text: &mut text, family: *family, format, has_begun: false };
        tell(&about, &mut samples);
    }
    text
}
