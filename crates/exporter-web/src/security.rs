//! Who comes in: what the web config file says, for as long as it says so.
//!
//! The file and those that it names are looked at while we run. What is new counts for the next
//! connection and the next request; what is broken is told once, and what was before stays.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::http::{HeaderName, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rustls::ServerConfig;
use tokio::signal::unix::Signal;

use super::config::{Sources, Users, WebConfig, WebConfigError};
use super::login::{Login, Logins};
use super::rate::Limiter;
use super::refusal::busy;
use super::reload::Reload;
use super::tls;

/// How often the files are looked at: a few calls of stat.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What counts at present.
#[derive(Debug, Default)]
struct Armed {
    tls: Option<Arc<ServerConfig>>,
    headers: Vec<(HeaderName, HeaderValue)>,
    users: Users,
    limiter: Option<Arc<Limiter>>,
    warnings: Vec<String>,
}

/// Who comes in.
#[derive(Debug)]
pub struct Security {
    file: Option<(PathBuf, Arc<Reload>)>,
    current: ArcSwap<Armed>,
    logins: Arc<Logins>,
    tls: bool,
}

impl Security {
    /// Everybody comes in, without TLS, if there is no web config file; else as that says.
    pub fn load(file: Option<&Path>) -> Result<(Self, Option<Sources>), WebConfigError> {
        let logins = |path: &Path| {
            Logins::new().map_err(|error| WebConfigError::new(path, error.to_string()))
        };
        let Some(path) = file else {
            let (current, logins) = (ArcSwap::default(), Arc::new(logins(Path::new("none"))?));
            return Ok((Security { file: None, current, logins, tls: false }, None));
        };
        let (sources, config) = WebConfig::load(path);
        let armed = Armed::new(path, config?, None)?;
        for warning in &armed.warnings {
            tracing::warn!(file = %path.display(), "{warning}");
        }
        let (tls, logins) = (armed.tls.is_some(), Arc::new(logins(path)?));
        tracing::info!(file = %path.display(), tls, users = armed.users.len(), "web config");
        let current = ArcSwap::from_pointee(armed);
        let file = Some((path.to_owned(), Arc::new(Reload::now())));
        Ok((Security { file, current, logins, tls }, Some(sources)))
    }

    /// TLS as the next connection speaks it.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.current.load().tls.clone()
    }

    /// Looks for changes for as long as it is polled, and at once when `hangup` tells. Without a file
    /// there is nothing to look for; that somebody asked is told all the same.
    pub async fn watch(self: Arc<Self>, sources: Option<Sources>, mut hangup: Signal) {
        let Some(mut sources) = sources else {
            while hangup.recv().await.is_some() {
                tracing::info!("SIGHUP: there is no web config file to read anew");
            }
            return;
        };
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => false,
                _ = hangup.recv() => true,
            };
            let security = Arc::clone(&self);
            // A file may be on a disk that does not answer.
            let looked = tokio::task::spawn_blocking(move || {
                if asked || sources.have_changed() { security.read_anew(sources) } else { sources }
            });
            match looked.await {
                Ok(seen) => sources = seen,
                Err(error) => {
                    tracing::error!(%error, "the web config file is not looked at any more");
                    return;
                }
            }
        }
    }

    /// How the file was read last, if there is one.
    pub fn reload(&self) -> Option<Arc<Reload>> {
        self.file.as_ref().map(|(_, reload)| Arc::clone(reload))
    }

    fn read_anew(&self, before: Sources) -> Sources {
        let Some((path, reload)) = &self.file else { return before };
        let (sources, config) = WebConfig::load(path);
        let armed = config.and_then(|config| Armed::new(path, config, Some(&self.current.load())));
        let well = match armed {
            Ok(armed) if armed.tls.is_some() != self.tls => {
                let what = if self.tls { "off" } else { "on" };
                let problem = format!("TLS is switched {what} by a restart only: as before");
                tracing::error!(file = %path.display(), "{problem}");
                false
            }
            Ok(armed) => {
                for warning in &armed.warnings {
                    tracing::warn!(file = %path.display(), "{warning}");
                }
                tracing::info!(file = %path.display(), users = armed.users.len(), "web config read anew");
                self.current.store(Arc::new(armed));
                true
            }
            Err(error) => {
                for line in error.lines() {
                    tracing::error!("{line}; what was before stays");
                }
                false
            }
        };
        reload.went(well);
        sources
    }

    /// Whether TLS is spoken; a restart alone changes that.
    pub fn speaks_tls(&self) -> bool {
        self.tls
    }

    /// Answers a request of a client of this address, or lets it be answered.
    pub async fn answer<B, F, A>(&self, request: Request<B>, peer: IpAddr, answer: F) -> Response
    where
        F: FnOnce(Request<B>) -> A,
        A: Future<Output = Response>,
    {
        let armed = self.current.load_full();
        // As the toolkit does: before all else, and without its headers.
        if armed.limiter.as_ref().is_some_and(|limiter| !limiter.admits(Instant::now())) {
            return (StatusCode::TOO_MANY_REQUESTS, "too many requests\n").into_response();
        }
        let said = request.headers().get(header::AUTHORIZATION);
        let mut response = match self.logins.check(&armed.users, said, peer).await {
            Login::Welcome => answer(request).await,
            Login::Unknown => {
                let ask = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic"))];
                (StatusCode::UNAUTHORIZED, ask, "unauthorized\n").into_response()
            }
            Login::Busy => busy("too many logins are waiting to be checked: try again"),
        };
        for (name, value) in &armed.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    }
}

impl Armed {
    fn new(path: &Path, config: WebConfig, before: Option<&Armed>) -> Result<Self, WebConfigError> {
        let tls = config.tls.map(|tls| tls::server_config(&tls, config.http2).map(Arc::new));
        let tls = tls.transpose().map_err(|error| WebConfigError::new(path, error.to_string()))?;
        // A bucket that was emptied is not full again because a certificate was renewed.
        let kept = before.and_then(|before| before.limiter.clone());
        let limiter = config.rate.map(|rate| match kept {
            Some(kept) if kept.rate() == rate => kept,
            _ => Arc::new(Limiter::new(rate, Instant::now())),
        });
        Ok(Armed {
            tls,
            headers: config.headers,
            users: config.users,
            limiter,
            warnings: config.warnings,
        })
    }
}
