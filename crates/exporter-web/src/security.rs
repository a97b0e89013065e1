//! The web config file in force: TLS, logins, rate limit and response headers.
//!
//! The file and those that it names are checked for changes each second and at SIGHUP. A new
//! configuration is in force from the next connection and the next request on; one with diagnostics is
//! logged once, and the previous configuration stays in force.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rustls::ServerConfig;
use tokio::signal::unix::Signal;
use yaml_config::ConfigError;

use super::allowed_hosts::AllowedHosts;
use super::error_response::{error_response, unavailable};
use super::locked::locked;
use super::login::{Login, Logins};
use super::own_thread::Lane;
use super::refusals::{Refusal, Refusals};
use super::reload_status::ReloadStatus;
use super::web_config::{self, Sources, WebConfig};

/// How often the files are checked for changes: a few calls of stat.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Access to the server, as the web config file currently sets it.
#[derive(Debug)]
pub struct Security {
    file: Option<WatchedFile>,
    config: ArcSwap<WebConfig>,
    logins: Arc<Logins>,
    refusals: Arc<Refusals>,
    allowed_hosts: Option<AllowedHosts>,
    /// Reads the files: a disk may not respond, and the pool of threads may be busy with responses.
    reader: Lane,
}

/// The web config file, and what was read for it.
#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    sources: Mutex<Sources>,
    status: Arc<ReloadStatus>,
}

impl Security {
    /// Reads a web config file; without one, plain HTTP without logins.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let logins = Logins::new().map(Arc::new).map_err(|_| {
            let path = file.unwrap_or(Path::new("none"));
            web_config::error(path, ["the operating system provides no random numbers"])
        })?;
        let mut security = Security {
            file: None,
            config: ArcSwap::default(),
            logins,
            refusals: Arc::default(),
            allowed_hosts: None,
            reader: Lane::new("web-config"),
        };
        let Some(path) = file else { return Ok(security) };
        let (sources, config) = WebConfig::load(path);
        let config = config?;
        config.log_warnings(path);
        let (tls, users) = (config.tls.is_some(), config.users.count());
        tracing::info!(file = %path.display(), tls, users, "web config loaded");
        security.config.store(Arc::new(config));
        let status = ReloadStatus::default();
        status.record(true);
        let (path, sources, status) = (path.to_owned(), sources.into(), status.into());
        security.file = Some(WatchedFile { path, sources, status });
        Ok(security)
    }

    /// Answers only requests for these hosts.
    #[must_use]
    pub fn only_for(self, hosts: AllowedHosts) -> Self {
        Security { allowed_hosts: Some(hosts), ..self }
    }

    /// The paths of the file and of those that it names.
    pub fn files(&self) -> Vec<PathBuf> {
        let Some(file) = &self.file else { return Vec::new() };
        locked(&file.sources).paths().map(Path::to_owned).collect()
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
        self.file.as_ref().map(|file| Arc::clone(&file.status))
    }

    /// Reads the file again, if that is forced or a file has changed.
    fn reload(&self, forced: bool) {
        let Some(WatchedFile { path, sources, status }) = &self.file else { return };
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
                if let (Some(limiter), Some(previous)) = (&mut config.limiter, &before.limiter)
                    && limiter.rate == previous.rate
                {
                    *limiter = Arc::clone(previous);
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
}
