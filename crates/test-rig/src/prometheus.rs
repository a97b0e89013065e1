//! Prometheus: scrapes, keeps, evaluates rules, answers queries.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::child::{self, Running};
use super::exporter;
use super::{Metrics, free_port, require, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

/// The configuration of a Prometheus.
pub struct Setup<'a> {
    /// The names of jobs, with the addresses of their targets.
    pub jobs: Vec<(String, Vec<String>)>,
    /// From one scrape to the next, and from one evaluation of the rules to the next.
    pub interval: Duration,
    /// For how long a sample is the latest.
    pub lookback: Duration,
    /// Texts of rule files.
    pub rules: Vec<String>,
    /// Where alerts go.
    pub alertmanager: Option<&'a str>,
    /// Names of metrics, as a regular expression, that are kept; of a large fabric not all fit.
    pub keep: Option<String>,
}

/// A running Prometheus with a directory of its own.
pub struct Prometheus {
    running: Running,
    address: String,
    agent: ureq::Agent,
    dir: tempfile::TempDir,
}

impl Prometheus {
    /// Starts it, and waits until it responds.
    pub fn start(setup: &Setup<'_>) -> Self {
        Self::start_in(tempfile::Builder::new().prefix("prometheus-").tempdir().unwrap(), setup)
    }

    /// Starts one without targets, whose storage has the samples of an OpenMetrics file.
    pub fn stored(write: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::Builder::new().prefix("prometheus-").tempdir().unwrap();
        Self::with_samples(dir, write)
    }

    /// Restarts it with the samples of another file as well.
    #[must_use]
    pub fn stored_too(self, write: impl FnOnce(&Path)) -> Self {
        let Self { mut running, dir, .. } = self;
        running.stop();
        Self::with_samples(dir, write)
    }

    fn with_samples(dir: tempfile::TempDir, write: impl FnOnce(&Path)) -> Self {
        let file = dir.path().join("samples.txt");
        write(&file);
        let made = Command::new(require("promtool"))
            .args(["tsdb", "create-blocks-from", "openmetrics"])
            .args([&file, &dir.path().join("data")])
            .output()
            .unwrap();
        let said = [made.stdout, made.stderr].concat();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&said));
        std::fs::remove_file(file).unwrap();
        let setup = Setup {
            jobs: Vec::new(),
            interval: Duration::from_secs(15),
            lookback: Duration::from_secs(300),
            rules: Vec::new(),
            alertmanager: None,
            keep: None,
        };
        Self::start_in(dir, &setup)
    }

    /// Starts one with a config file of its own.
    pub fn configured(config: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("prometheus-").tempdir().unwrap();
        Self::start_with(dir, config, Duration::from_secs(300))
    }

    /// Starts VictoriaMetrics instead, which has the same queries, with a scrape configuration.
    pub fn victoria_metrics(config: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("victoria-metrics-").tempdir().unwrap();
        let file = dir.path().join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let (running, address) = listening("victoria-metrics", dir.path(), |address| {
            let mut command = Command::new(require("victoria-metrics"));
            command
                .arg(format!("-promscrape.config={}", file.display()))
                .arg(format!("-storageDataPath={}", dir.path().join("data").display()))
                .arg(format!("-httpListenAddr={address}"))
                // By default a query does not see the latest 30 s.
                .arg("-search.latencyOffset=1s");
            command
        });
        Self { running, address, agent: exporter::agent(Duration::from_secs(300)), dir }
    }

    /// Replaces its config file, and waits until it is used.
    pub fn reconfigure(&mut self, config: &str) {
        let name = "prometheus_config_last_reload_success_timestamp_seconds";
        let loaded = |it: &Self| it.own_metrics().get(name, &[]);
        let before = loaded(self);
        std::fs::write(self.dir.path().join("prometheus.yml"), config).unwrap();
        self.running.signal("HUP");
        let is_loaded = || (loaded(self) > before).then_some(());
        wait_until(LIMIT, "Prometheus to load its config", is_loaded);
    }

    fn start_in(dir: tempfile::TempDir, setup: &Setup<'_>) -> Self {
        let config = setup.config(dir.path());
        Self::start_with(dir, &config, setup.lookback)
    }

    fn start_with(dir: tempfile::TempDir, text: &str, lookback: Duration) -> Self {
        let config = dir.path().join("prometheus.yml");
        std::fs::write(&config, text).unwrap();
        let lookback = format!("--query.lookback-delta={}ms", lookback.as_millis());
        let (running, address) = listening("prometheus", dir.path(), |address| {
            let mut command = Command::new(require("prometheus"));
            command
                .arg(format!("--config.file={}", config.display()))
                .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
                .arg(format!("--web.listen-address={address}"))
                .arg(&lookback);
            command
        });
        Self { running, address, agent: exporter::agent(Duration::from_secs(300)), dir }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The result of a query now: a vector.
    pub fn query(&self, query: &str) -> Vec<Value> {
        self.ask("query", &[("query", query)])["result"].as_array().cloned().unwrap_or_default()
    }

    /// The result of a query at a moment in seconds since 1970: a vector.
    pub fn query_at(&self, query: &str, at: f64) -> Result<Vec<Value>, String> {
        let data = self.try_ask("query", &[("query", query), ("time", &format!("{at:.3}"))])?;
        Ok(data["result"].as_array().cloned().unwrap_or_default())
    }

    /// The present result of a query, if it is one number.
    pub fn number(&self, query: &str) -> Option<f64> {
        self.query(query).first()?["value"][1].as_str()?.parse().ok()
    }

    /// The result of a query over a time range: series. The error is Prometheus's own.
    pub fn query_range(
        &self,
        query: &str,
        from: f64,
        to: f64,
        step: Duration,
    ) -> Result<Vec<Value>, String> {
        let (from, to) = (format!("{from:.3}"), format!("{to:.3}"));
        let step = format!("{}", step.as_secs_f64());
        let parts = [("query", query), ("start", &from), ("end", &to), ("step", &step)];
        let data = self.try_ask("query_range", &parts)?;
        Ok(data["result"].as_array().cloned().unwrap_or_default())
    }

    /// The response of an endpoint of its API.
    pub fn ask(&self, endpoint: &str, parts: &[(&str, &str)]) -> Value {
        self.try_ask(endpoint, parts).unwrap_or_else(|error| panic!("Prometheus: {error}"))
    }

    fn try_ask(&self, endpoint: &str, parts: &[(&str, &str)]) -> Result<Value, String> {
        let url = format!("http://{}/api/v1/{endpoint}", self.address);
        let mut request = self.agent.get(url);
        for (key, value) in parts {
            request = request.query(*key, *value);
        }
        let answer = request.call().and_then(exporter::response).map_err(|e| e.to_string())?;
        let mut said: Value = serde_json::from_str(answer.text()).map_err(|e| e.to_string())?;
        if said["status"] == "success" { Ok(said["data"].take()) } else { Err(said.to_string()) }
    }

    /// Stops its scrapes and rule evaluations; its samples are kept.
    pub fn rest(&mut self) {
        std::fs::write(self.dir.path().join("prometheus.yml"), "{}").unwrap();
        self.running.signal("HUP");
        let rules = || self.ask("rules", &[])["groups"].as_array().unwrap().len();
        wait_until(LIMIT, "Prometheus to forget its rules", || (rules() == 0).then_some(()));
    }

    /// Its metrics about itself.
    pub fn own_metrics(&self) -> Metrics {
        let answer = exporter::get(&self.agent, &self.address, "/metrics", &[]);
        Metrics::parse(answer.unwrap_or_else(|error| panic!("Prometheus: {error}")).text())
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        child::read_lossy(&self.dir.path().join("prometheus.log"))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }
}

impl Setup<'_> {
    fn config(&self, dir: &Path) -> String {
        let interval = format!("{}ms", self.interval.as_millis());
        let mut files = Vec::new();
        for (index, rules) in self.rules.iter().enumerate() {
            let file = dir.join(format!("{index}.rules.yml"));
            std::fs::write(&file, rules).unwrap();
            files.push(file.display().to_string());
        }
        let jobs: Vec<Value> = self
            .jobs
            .iter()
            .map(|(job, targets)| {
                let mut said = serde_json::json!({
                    "job_name": job, "static_configs": [{"targets": targets}],
                });
                if let Some(keep) = &self.keep {
                    said["metric_relabel_configs"] = serde_json::json!([
                        {"source_labels": ["__name__"], "regex": keep, "action": "keep"}
                    ]);
                }
                said
            })
            .collect();
        let mut config = serde_json::json!({
            "global": {
                "scrape_interval": interval, "scrape_timeout": interval,
                "evaluation_interval": interval,
            },
            "rule_files": files,
            "scrape_configs": jobs,
        });
        if let Some(address) = self.alertmanager {
            config["alerting"] = serde_json::json!({"alertmanagers": [{"static_configs": [{"targets": [address]}]}]});
        }
        // JSON is YAML.
        config.to_string()
    }
}

/// Starts a server of Prometheus's family at a free port, and waits until it is ready. Between finding
/// a free port and listening there another process may take it: then another one is tried.
pub(super) fn listening(
    program: &str,
    dir: &Path,
    command: impl Fn(&str) -> Command,
) -> (Running, String) {
    let log: PathBuf = dir.join(format!("{program}.log"));
    for _ in 0..5 {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = command(&address);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(child::create(&log));
        let mut running = Running::spawn(program, &mut command);
        let agent = exporter::agent(Duration::from_secs(5));
        let is_up = wait_until(LIMIT, "a server to be ready", || {
            if running.try_wait().is_some() {
                return Some(false);
            }
            let answer = exporter::get(&agent, &address, "/-/ready", &[]).ok()?;
            (answer.status == 200).then_some(true)
        });
        if is_up {
            return (running, address);
        }
        let said = child::read_lossy(&log);
        assert!(said.contains("address already in use"), "{program}: {said}");
    }
    panic!("{program}: five free ports were taken before it could listen");
}
