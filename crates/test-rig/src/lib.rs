//! The test rig: a simulated fabric, the external programs that run on it, and the exporter under
//! test, each started for one test and stopped when its value is dropped.
//!
//! Every piece keeps its files in a temporary directory of its own and its sockets under a name of its own, so
//! tests run side by side in threads and in processes. Hold the values in locals: a `static` is never dropped,
//! and its programs would end only with the process. (The guest is one, for its boot takes seconds.)
//!
//! A program or file that is missing is a failure, not a reason to skip: a test that silently does
//! not run proves nothing.

// The rig stops a test by panicking, with a message that says which program or file is at fault.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Panics are described once, above, not in a section of each function.
#![allow(clippy::missing_panics_doc)]

pub mod alertmanager;
pub mod browser;
pub mod capture;
pub mod certs;
pub mod child;
pub mod counters;
pub mod diags;
pub mod exporter;
pub mod ground;
pub mod guest;
pub mod hurried;
pub mod ibsim;
pub mod metrics;
pub mod node_exporter;
pub mod opensm;
pub mod paths;
pub mod process_time;
pub mod prometheus;
pub mod promql;
pub mod promtool;
pub mod proxy;
pub mod pty;
pub mod receiver;
pub mod reference;
pub mod replay;
pub mod rules;
pub mod seat;
pub mod simulated;
pub mod site;
pub mod slurm;
pub mod sysfs;
pub mod tools;
pub mod topology;

pub use alertmanager::{Alertmanager, Webhook};
pub use browser::Browser;
pub use exporter::{Exporter, Response, run_on_host_to_exit, run_to_exit};
pub use guest::{Guest, GuestExporter};
pub use ibsim::Ibsim;
pub use metrics::Metrics;
pub use node_exporter::NodeExporter;
pub use opensm::OpenSm;
pub use paths::{program, root};
pub use process_time::{cpu_time, thread_cpu_time};
pub use prometheus::Prometheus;
pub use proxy::Proxy;
pub use seat::Seat;
pub use simulated::Simulated;
pub use slurm::Slurm;

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The Debian package of each external program the tests use, to report what to install.
const PACKAGES: [(&str, &str); 34] = [
    ("ibsim", "ibsim-utils"),
    ("opensm", "opensm"),
    ("tshark", "tshark"),
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
    ("prometheus-alertmanager", "prometheus-alertmanager"),
    ("amtool", "prometheus-alertmanager"),
    ("prometheus-node-exporter", "prometheus-node-exporter"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("strip", "binutils"),
    ("openssl", "openssl"),
    ("curl", "curl"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("python3", "python3-venv"),
    ("systemd-analyze", "systemd"),
    ("systemd-socket-activate", "systemd"),
    ("rpmbuild", "rpm"),
    ("rpm", "rpm"),
    ("mke2fs", "e2fsprogs"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("munged", "munge"),
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("slurmdbd", "slurmdbd"),
    ("sinfo", "slurm-client"),
    ("scontrol", "slurm-client"),
    ("sbatch", "slurm-client"),
    ("scancel", "slurm-client"),
    ("squeue", "slurm-client"),
    ("sacct", "slurm-client"),
    ("mariadbd", "mariadb-server-core"),
    ("mariadb-install-db", "mariadb-server-core mariadb-client-core"),
];

/// The path of an external program, or a panic with the package to install.
///
/// Debian puts `OpenSM` and the diagnostics into `/usr/sbin`, which an ordinary user's `PATH` lacks.
pub fn require(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| {
            let package = PACKAGES
                .iter()
                .find(|(name, _)| *name == program)
                .map_or("infiniband-diags", |(_, package)| package);
            panic!("`{program}` is missing: apt-get install {package} (make test does it)")
        })
}

/// A currently free port of the loopback, for a program that cannot choose one itself.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Polls until `probe` returns a value, and panics with `what` when `limit` has passed.
///
/// It replaces every fixed sleep: it ends soon after the condition is met, and a
/// slow machine only makes it take longer.
pub fn wait_until<T>(limit: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        let asked = Instant::now();
        if let Some(found) = probe() {
            return found;
        }
        let waited = began.elapsed();
        assert!(waited < limit, "timed out after {limit:?} waiting for {what}");
        // A probe may be a scrape: the rest of the time belongs to what the test waits for.
        let rest = (3 * asked.elapsed()).min(Duration::from_millis(200));
        std::thread::sleep(pause(waited).max(rest));
    }
}

/// The time until the next poll: short at first, later a tenth of the time waited.
fn pause(waited: Duration) -> Duration {
    (waited / 10).clamp(Duration::from_millis(1), Duration::from_millis(50))
}
