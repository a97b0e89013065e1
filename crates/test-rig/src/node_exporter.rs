//! Debian's node_exporter, for what it says of the same sysfs.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::child::{self, Running};
use super::exporter;
use super::sysfs::Tree;
use super::{Metrics, require, wait_until};

const LIMIT: Duration = Duration::from_secs(30);

/// A running node_exporter with no collector but the one for InfiniBand.
pub struct NodeExporter {
    running: Running,
    address: String,
    agent: ureq::Agent,
    log: PathBuf,
    _keeps: Arc<TempDir>,
}

impl NodeExporter {
    /// Starts it, and waits until it listens.
    pub fn start(tree: &Tree) -> Self {
        let (dir, keeps) = tree.dir_for("node_exporter");
        let log = dir.join("stderr");
        let mut command = Command::new(require("prometheus-node-exporter"));
        command
            .args(["--collector.disable-defaults", "--collector.infiniband"])
            .args(["--web.listen-address=127.0.0.1:0", &tree.flag()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(child::create(&log));
        let mut running = Running::spawn("node_exporter", &mut command);
        let address = wait_until(LIMIT, "node_exporter to listen", || {
            let text = child::read_lossy(&log);
            if let Some(status) = running.try_wait() {
                panic!("node_exporter: {status}\n{text}");
            }
            let (whole, _) = text.rsplit_once('\n')?;
            let line = whole.lines().find(|line| line.contains("\"Listening on\""))?;
            let (_, address) = line.split_once("address=")?;
            Some(address.split_whitespace().next()?.to_owned())
        });
        let agent = exporter::agent(LIMIT);
        NodeExporter { running, address, agent, log, _keeps: keeps }
    }

    /// What a scrape brings.
    pub fn metrics(&self) -> Metrics {
        let response = exporter::get(&self.agent, &self.address, "/metrics", &[])
            .unwrap_or_else(|e| panic!("node_exporter: {e}"));
        assert_eq!(response.status, 200, "node_exporter: {}", response.text());
        Metrics::parse(response.text())
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        child::read_lossy(&self.log)
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }
}
