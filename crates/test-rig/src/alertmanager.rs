//! Alertmanager, and the receiver that its notifications go to.

use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path as UrlPath, State};
use axum::routing::post;
use serde::Deserialize;
use std::collections::BTreeMap;

use super::child::Running;
use super::prometheus::listening;
use super::require;

/// A running Alertmanager with a directory of its own.
pub struct Alertmanager {
    address: String,
    _running: Running,
    _dir: tempfile::TempDir,
}

impl Alertmanager {
    /// Starts it with a configuration, and waits until it answers.
    pub fn start(config: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("alertmanager-").tempdir().unwrap();
        let file = dir.path().join("alertmanager.yml");
        std::fs::write(&file, config).unwrap();
        let (running, address) = listening("prometheus-alertmanager", dir.path(), |address| {
            let mut command = Command::new(require("prometheus-alertmanager"));
            command
                .arg(format!("--config.file={}", file.display()))
                .arg(format!("--storage.path={}", dir.path().join("data").display()))
                .arg(format!("--web.listen-address={address}"))
                // One alone has no cluster to gossip with.
                .arg("--cluster.listen-address=");
            command
        });
        Self { address, _running: running, _dir: dir }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// An alert as a receiver is told of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Alert {
    /// `firing` or `resolved`.
    pub status: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Alert {
    /// A label; empty if it has none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// A notification as Alertmanager posts it to a webhook.
#[derive(Clone, Debug, Deserialize)]
pub struct Notification {
    /// `firing` while any of its alerts is.
    pub status: String,
    /// What is told together has the same key.
    #[serde(rename = "groupKey")]
    pub group: String,
    /// The alerts.
    pub alerts: Vec<Alert>,
}

/// A notification, when it came, and at which path.
#[derive(Clone, Debug)]
pub struct Received {
    /// When.
    pub at: Instant,
    /// Where: `page` or `ticket`.
    pub path: String,
    /// What.
    pub told: Notification,
}

type Inbox = Arc<Mutex<Vec<Received>>>;

/// A webhook receiver in this process, at a free port, for as long as the value lives.
pub struct Webhook {
    inbox: Inbox,
    address: String,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Webhook {
    /// Starts it.
    pub fn start() -> Self {
        let inbox = Inbox::default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = Router::new().route("/{path}", post(receive)).with_state(Arc::clone(&inbox));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Webhook { inbox, address, runtime: Some(runtime) }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until what was received fulfills a condition, or until the timeout; the caller asserts which.
    pub fn wait_for(&self, timeout: Duration, is_met: impl Fn(&[Received]) -> bool) {
        let deadline = Instant::now() + timeout;
        while !is_met(&self.received()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// All that came so far.
    pub fn received(&self) -> Vec<Received> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

async fn receive(State(inbox): State<Inbox>, UrlPath(path): UrlPath<String>, body: String) {
    let at = Instant::now();
    // What is no notification is kept as one that no test expects.
    let told = serde_json::from_str(&body).unwrap_or_else(|error| Notification {
        status: format!("{error}: {body}"),
        group: String::new(),
        alerts: Vec::new(),
    });
    inbox.lock().unwrap_or_else(PoisonError::into_inner).push(Received { at, path, told });
}
