//! The families of what the process itself counts.

use exposition::{Family, MetricType};

/// Declares the families, and the list of all.
macro_rules! own_families {
    ($($constant:ident: $name:literal $kind:ident $labels:tt $help:literal;)+) => {
        $(pub(super) static $constant: Family =
            Family::new($name, MetricType::$kind, &$labels, $help);)+

        /// All of them.
        pub(super) static ALL: &[&Family] = &[$(&$constant),+];
    };
}

own_families! {
    MADS: "fabric_exporter_mads" Counter ["fabric", "class", "outcome"]
        "MADs sent, including retries, by class and outcome. The outcomes malformed and stray count received MADs (stray: matches no outstanding request).";
    MAD_ROUND_TRIP_SECONDS: "fabric_exporter_mad_round_trip_seconds" Histogram ["fabric", "class"]
        "Round-trip time of MADs, from request to response, by class.";
    SWEEP: "fabric_exporter_sweep_seconds" Histogram ["fabric"]
        "Duration of all sweeps, from the first request to the last response.";
    RENDER_DURATION_SECONDS: "fabric_exporter_render_duration_seconds" Gauge []
        "Time to render and compress the metrics of the latest sweep.";
    RENDER: "fabric_exporter_render_seconds" Histogram []
        "Time to render and compress the metrics, of all sweeps.";
    HISTORY_BYTES: "fabric_exporter_history_bytes" Gauge []
        "Size of the history file.";
    HISTORY_FREE_BYTES: "fabric_exporter_history_free_bytes" Gauge []
        "Free space on the file system of the history, as of the latest sweep.";
    HISTORY_FREE_FLOOR_BYTES: "fabric_exporter_history_free_floor_bytes" Gauge []
        "Free space that the recorder leaves on the file system. While less is free, nothing is recorded.";
    HISTORY_FRAMES: "fabric_exporter_history_frames" Counter []
        "Frames (compressed blocks of counters) written to the history, up to 4 per sweep.";
    HISTORY_EVENTS: "fabric_exporter_history_events" Counter []
        "Events written to the history.";
    HISTORY_ERRORS: "fabric_exporter_history_errors" Counter ["kind"]
        "Failed writes to the history, by kind. The log has the cause.";
    HISTORY_SET_ASIDE_FILES: "fabric_exporter_history_set_aside_files" Gauge []
        "Damaged history files that were renamed and are still in the history's directory. If there are three and a further file is damaged, recording stops until you move one of the three to another directory.";
    HISTORY_MISSED_SWEEPS: "fabric_exporter_history_missed_sweeps" Counter []
        "Sweeps missing from the history because an earlier write was slow or failed. Their counts are in the next recorded sweep.";
    HISTORY_WRITE_DURATION_SECONDS: "fabric_exporter_history_write_duration_seconds" Gauge []
        "Time to write the latest sweep to the history.";
    NOTIFY_EVENTS_SENT: "fabric_exporter_notify_events_sent" Counter []
        "Events that the receiver of --notify.webhook has accepted. The families of notifications are absent without that option.";
    NOTIFY_EVENTS_DROPPED: "fabric_exporter_notify_events_dropped" Counter ["reason"]
        "Events that were not sent to the receiver of --notify.webhook, by reason: queue_full (it was unreachable for long: the oldest were dropped) or rejected (it refused them; the log has its status).";
    NOTIFY_ATTEMPTS_FAILED: "fabric_exporter_notify_attempts_failed" Counter []
        "Requests to the receiver of --notify.webhook that failed and are repeated. The log has the first problem.";
    NOTIFY_QUEUE_LENGTH: "fabric_exporter_notify_queue_length" Gauge []
        "Events that are not sent yet.";
    NOTIFY_LAST_SUCCESS_TIMESTAMP_SECONDS: "fabric_exporter_notify_last_success_timestamp_seconds" Gauge []
        "Unix time when the receiver of --notify.webhook last accepted events. Absent before the first.";
    WEB_CONFIG_LAST_RELOAD_SUCCESSFUL: "fabric_exporter_web_config_last_reload_successful" Gauge []
        "1 if the latest reload of the web config file succeeded. If 0, the previous configuration and certificate stay in use.";
    WEB_CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS: "fabric_exporter_web_config_last_reload_success_timestamp_seconds" Gauge []
        "Unix time of the latest successful load of the web config file.";
    WEB_REQUESTS: "fabric_exporter_web_requests" Counter ["class", "code"]
        "HTTP requests by class and status code. Classes: ready (metrics, probes, style sheet), page, api, download (copies of the history). What was refused is also in fabric_exporter_web_refusals_total, with the reason.";
    WEB_REQUEST_DURATION: "fabric_exporter_web_request_duration_seconds" Histogram ["class"]
        "Time from an HTTP request to the start of its response, by class.";
    WEB_REFUSALS: "fabric_exporter_web_refusals" Counter ["reason"]
        "Requests, logins and connections that were refused or ended early, by reason. The log has the client's address, at most one line per minute and reason. Reasons: login_missing, login_wrong, login_busy, rate_limit, host (--web.allowed-hosts), request_limit, response_timeout, connection_limit, connection_displaced and response_displaced (closed in favor of a client with fewer), slow_client, handshake.";
    LOG_LINES_DROPPED: "fabric_exporter_log_lines_dropped" Counter []
        "Log lines that were dropped because the reader of standard error was slow or stopped, or because writing failed. Sweeps and scrapes do not wait for it.";
    CPU_SECONDS: "process_cpu_seconds" Counter []
        "Total user and system CPU time spent in seconds.";
    RESIDENT_MEMORY_BYTES: "process_resident_memory_bytes" Gauge []
        "Resident memory size in bytes.";
    VIRTUAL_MEMORY_BYTES: "process_virtual_memory_bytes" Gauge []
        "Virtual memory size in bytes.";
    THREADS: "process_threads" Gauge []
        "Number of OS threads in the process.";
    START_TIME_SECONDS: "process_start_time_seconds" Gauge []
        "Start time of the process since unix epoch in seconds.";
    OPEN_FDS: "process_open_fds" Gauge []
        "Number of open file descriptors.";
    MAX_FDS: "process_max_fds" Gauge []
        "Maximum number of open file descriptors.";
}
