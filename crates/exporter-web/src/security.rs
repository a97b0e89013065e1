//! The web config file in force: TLS, logins, rate limit and response headers.
//!
//! The file and those that it names are checked for changes each second and at SIGHUP. A new
//! configuration is in force from the next connection and the next request on; one with diagnostics is
//! logged once, and the previous configuration stays in force.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rustls::ServerConfig;
use tokio::signal::unix::Signal;
use yaml_config::ConfigError;

use super::allowed_hosts::AllowedHosts;
use super::error_response::{error_response, unavailable};
use super::lane::Lane;
use super::limits::locked;
use super::login::{Login, Logins};
use super::refusals::{Refusal, Refusals};
use super::web_config::{self, Rate, Sources, WebConfig};

/// How often the files are checked for changes: a few calls of stat.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Access to the server, as the web config file currently sets it.
#[derive(Debug)]
pub struct Security {
    /// The file, if there is one, and what was read of it.
    file: Option<(PathBuf, Mutex<Sources>, Arc<ReloadStatus>)>,
    config: ArcSwap<WebConfig>,
    logins: Arc<Logins>,
    refusals: Arc<Refusals>,
    allowed_hosts: Option<AllowedHosts>,
    /// Reads the files: a disk may not respond, and the pool of threads may be busy with responses.
    reader: Lane,
}

impl Security {
    /// Reads a web config file; without one, plain HTTP without logins.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let logins = Logins::new().map(Arc::new).map_err(|_| {
            let path = file.unwrap_or(Path::new("none"));
            web_config::error(path, ["the operating system provides no random numbers"])
        })?;
        let (refusals, reader) = (Arc::default(), Lane::new("web-config"));
        let Some(path) = file else {
            let config = ArcSwap::default();
            return Ok(Security {
                file: None,
                config,
                logins,
                refusals,
                allowed_hosts: None,
                reader,
            });
        };
        let (sources, config) = WebConfig::load(path);
        let config = config?;
        config.log_warnings(path);
        let (tls, users) = (config.tls.is_some(), config.users.count());
        tracing::info!(file = %path.display(), tls, users, "web config loaded");
        let status = ReloadStatus::default();
        status.record(true);
        let file = Some((path.to_owned(), sources.into(), status.into()));
        let config = ArcSwap::from_pointee(config);
        Ok(Security { file, config, logins, refusals, allowed_hosts: None, reader })
    }

    /// Answers only requests for these hosts.
    #[must_use]
    pub fn only_for(self, hosts: AllowedHosts) -> Self {
        Security { allowed_hosts: Some(hosts), ..self }
    }

    /// The paths of the file and of those that it names.
    pub fn files(&self) -> Vec<PathBuf> {
        let Some((_, sources, _)) = &self.file else { return Vec::new() };
        locked(sources).paths().map(Path::to_owned).collect()
    }

    /// TLS for the next connection.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        Some(Arc::clone(&self.config.load().tls.as_ref()?.server))
    }

    /// Checks for changes as long as it is polled, and reads the file at each SIGHUP. Without a file a
    /// SIGHUP is logged.
    pub async fn watch(self: Arc<Self>, mut hangup: Signal) {
        while self.file.is_none() && hangup.recv().await.is_some() {
            tracing::info!("SIGHUP received: no web config file to reload");
        }
        while self.file.is_some() {
            let forced = tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => false,
                _ = hangup.recv() => true,
            };
            let security = Arc::clone(&self);
            if self.reader.run(move || security.reload(forced)).await.is_none() {
                tracing::error!(
                    "web config watcher failed: restart the exporter to load changes to the file"
                );
                return;
            }
        }
    }

    /// What was refused to clients.
    pub fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.refusals)
    }

    /// The result of the latest read of the file, if there is one.
    pub fn reload_status(&self) -> Option<Arc<ReloadStatus>> {
        self.file.as_ref().map(|(.., status)| Arc::clone(status))
    }

    /// Reads the file again, if that is forced or a file has changed.
    fn reload(&self, forced: bool) {
        let Some((path, sources, status)) = &self.file else { return };
        let mut sources = locked(sources);
        if !forced && !sources.have_changed() {
            return;
        }
        let (read, config) = WebConfig::load(path);
        *sources = read;
        let before = self.config.load();
        let config = config.map(|config| (before.lost(&config), config));
        let success = match config {
            Ok((Some(lost), _)) => {
                tracing::error!(
                    file = %path.display(),
                    "{lost} without a restart; keeping the previous web config: restore the file, or restart \
                     the exporter if that is intended"
                );
                false
            }
            Ok((None, mut config)) => {
                config.log_warnings(path);
                // An empty bucket does not become full because a certificate was renewed.
                if let (Some(limiter), Some(kept)) = (&mut config.limiter, &before.limiter)
                    && limiter.rate == kept.rate
                {
                    *limiter = Arc::clone(kept);
                }
                let users = config.users.count();
                tracing::info!(file = %path.display(), users, "web config reloaded");
                self.config.store(Arc::new(config));
                true
            }
            Err(error) => {
                for line in error.lines() {
                    tracing::error!("{line}; keeping the previous web config");
                }
                false
            }
        };
        status.record(success);
    }

    /// Whether TLS is enabled; only a restart changes that.
    pub fn speaks_tls(&self) -> bool {
        self.config.load().tls.is_some()
    }

    /// Responds to a request from this client address with `handler`, if rate limit and login allow it. The client does
    /// not wait for the check of its login once it `left`.
    pub async fn answer<B, F, A>(
        &self,
        request: Request<B>,
        peer: IpAddr,
        left: impl Future<Output = ()>,
        handler: F,
    ) -> Response
    where
        F: FnOnce(Request<B>) -> A,
        A: Future<Output = Response>,
    {
        let config = self.config.load_full();
        // As the exporter toolkit does: before everything else, and without its headers.
        if config.limiter.as_ref().is_some_and(|limiter| !limiter.try_acquire(Instant::now())) {
            self.refusals.record(Refusal::RateLimit, peer);
            return (StatusCode::TOO_MANY_REQUESTS, "too many requests\n").into_response();
        }
        if self.allowed_hosts.as_ref().is_some_and(|hosts| !hosts.allows(&request)) {
            self.refusals.record(Refusal::Host, peer);
            let problem = "this name is not allowed: add it to --web.allowed-hosts";
            return error_response(StatusCode::MISDIRECTED_REQUEST, problem);
        }
        let authorization = request.headers().get(header::AUTHORIZATION);
        let login = self.logins.check(&config.users, authorization, peer, left).await;
        let refusal = match login {
            Login::Accepted => None,
            Login::Missing => Some(Refusal::LoginMissing),
            Login::Rejected => Some(Refusal::LoginWrong),
            Login::Busy => Some(Refusal::LoginBusy),
        };
        if let Some(refusal) = refusal {
            self.refusals.record(refusal, peer);
        }
        let mut response = match login {
            Login::Accepted => handler(request).await,
            Login::Missing | Login::Rejected => {
                let challenge = [(header::WWW_AUTHENTICATE, "Basic")];
                (StatusCode::UNAUTHORIZED, challenge, "unauthorized\n").into_response()
            }
            Login::Busy => unavailable("too many logins in progress: try again"),
        };
        for (name, value) in &config.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    }
}

/// A token bucket: each request takes a token.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    pub(crate) rate: Rate,
    /// The tokens that there were, and when.
    bucket: Mutex<(f64, Instant)>,
}

impl RateLimiter {
    pub(crate) fn new(rate: Rate, now: Instant) -> Self {
        RateLimiter { rate, bucket: Mutex::new((rate.burst.into(), now)) }
    }

    /// Takes a token; whether there was one.
    fn try_acquire(&self, now: Instant) -> bool {
        let mut bucket = locked(&self.bucket);
        let (tokens, then) = *bucket;
        let more = now.saturating_duration_since(then).div_duration_f64(self.rate.interval);
        let tokens = (tokens + more).min(self.rate.burst.into());
        let acquired = tokens >= 1.0;
        *bucket = (if acquired { tokens - 1.0 } else { tokens }, now.max(then));
        acquired
    }
}

/// The result of the latest read of the web config file, for a metric.
#[derive(Debug, Default)]
pub struct ReloadStatus {
    /// Whether it failed, and when a read last succeeded.
    latest: Mutex<(bool, Duration)>,
}

impl ReloadStatus {
    /// Records a read.
    pub fn record(&self, success: bool) {
        let mut latest = locked(&self.latest);
        latest.0 = !success;
        if success {
            latest.1 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        }
    }

    /// Whether the latest read succeeded. If not, the previous configuration is in force.
    pub fn succeeded(&self) -> bool {
        !locked(&self.latest).0
    }

    /// When a read last succeeded, in seconds since 1970.
    pub fn succeeded_at(&self) -> f64 {
        locked(&self.latest).1.as_millis() as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_file_does_not_switch_logins_off() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("web.yml");
        let hash = bcrypt::hash("b", 4).unwrap();
        let whole = format!("basic_auth_users:\n  a: {hash}\n");
        std::fs::write(&file, &whole).unwrap();
        let security = Security::load(Some(&file)).unwrap();
        let status = security.reload_status().unwrap();
        let users_after = |text: &str| {
            std::fs::write(&file, text).unwrap();
            security.reload(true);
            (security.config.load().users.count(), status.succeeded())
        };
        assert_eq!(users_after(""), (1, false), "an empty file");
        assert_eq!(users_after(" \n\n"), (1, false), "white space");
        assert_eq!(users_after("rate_limit: {interval: 1s, burst: 3}\n"), (1, false), "cut");
        assert_eq!(users_after(&whole), (1, true));
    }

    #[test]
    fn bucket_allows_a_burst_and_then_one_per_interval() {
        let began = Instant::now();
        let limiter = RateLimiter::new(Rate { interval: Duration::from_secs(1), burst: 3 }, began);
        let at = |millis| limiter.try_acquire(began + Duration::from_millis(millis));
        assert_eq!(
            [0, 0, 0, 0, 999, 1_001, 1_002].map(at),
            [true, true, true, false, false, true, false]
        );
        // The bucket holds no more than the burst.
        assert_eq!([60_000, 60_000, 60_000, 60_000].map(at), [true, true, true, false]);
        // A moment that another thread took earlier.
        assert!(!at(59_000));
    }
}
