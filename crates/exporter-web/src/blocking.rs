//! Building responses on the pool of threads that may block, with the permit of the request.
//!
//! A build cannot be aborted once it has begun. So the permit is the build's, not the client's: a client that
//! disconnects does not free it for another request. A build that has not begun when its client leaves does not begin.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::deadlines::Deadlines;
use super::permit_queue::{PermitQueue, Turn};

tokio::task_local! {
    /// What the request that this task handles may use.
    static PASS: Pass;
}

/// A request that may wait for a permit.
#[derive(Clone, Debug)]
pub(super) struct Applicant {
    pub peer: IpAddr,
    pub deadlines: Arc<Deadlines>,
    pub wait: Duration,
}

impl Applicant {
    /// Waits for a permit, but not long. A client that closed its side meanwhile may have left: then nothing begins.
    pub async fn acquire(&self, turns: &Arc<PermitQueue>) -> Option<Permit> {
        let turn = tokio::select! {
            biased;
            turn = turns.acquire(self.peer) => turn,
            () = self.deadlines.half_closed() => None,
            () = tokio::time::sleep(self.wait) => None,
        };
        turn.map(|turn| Permit(Some(Arc::new(turn))))
    }
}

/// The permit of a request, or where it gets one.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    pub permit: Permit,
    pub applicant: Applicant,
    /// For responses that are usually ready.
    pub late: Arc<PermitQueue>,
}

impl Pass {
    /// Runs a handler with this.
    pub async fn scope<T>(self, handler: impl Future<Output = T>) -> T {
        PASS.scope(self, handler).await
    }
}

/// The permit of a request, until the last copy is dropped.
#[derive(Clone, Debug, Default)]
pub struct Permit(Option<Arc<Turn>>);

impl Permit {
    fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

/// The permit of the request that this task handles, to be held by work that goes on when the client has left.
pub fn permit() -> Permit {
    PASS.try_with(|pass| pass.permit.clone()).unwrap_or_default()
}

/// Why there is no result of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// Too many requests wait for one of few permits.
    Busy,
    /// The build panicked.
    Panicked,
}

/// Runs a build on a thread that may block, which holds the permit of the request until the build ends. A request
/// without one, because its response is usually ready, waits for one here.
pub async fn run<T: Send + 'static>(
    build: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BuildError> {
    let mut permit = permit();
    if !permit.is_some()
        && let Ok(pass) = PASS.try_with(Pass::clone)
    {
        permit = pass.applicant.acquire(&pass.late).await.ok_or(BuildError::Busy)?;
    }
    // Aborts when it is dropped: what has not begun will not begin.
    let mut thread = JoinSet::new();
    let span = tracing::Span::current();
    thread.spawn_blocking(move || {
        let _permit = permit;
        span.in_scope(build)
    });
    match thread.join_next().await {
        Some(Ok(response)) => Ok(response),
        _ => Err(BuildError::Panicked),
    }
}
