//! Enforces the limits of requests: which may begin, how many are built at a time, how long a response may take, and
//! how much memory it may occupy. The numbers are in [`Limits`].

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body::Body;

use super::blocking::{Applicant, Pass, Permit};
use super::deadlines::{Deadlines, Responding};
use super::error_response::unavailable;
use super::limits::Limits;
use super::permit_queue::{PermitQueue, QueueLimits};
use super::refusals::{Refusal, Refusals};
use super::request_class::RequestClass;

/// How much memory a response takes until it is written, if that is not the size of its body: an extension of the
/// response.
#[derive(Clone, Copy, Debug)]
pub struct Held(pub usize);

/// The permits of a server, and what it refuses without one.
#[derive(Debug)]
pub(super) struct RequestPermits {
    limits: Limits,
    pages: Arc<PermitQueue>,
    api: Arc<PermitQueue>,
    /// For responses that are usually ready.
    late: Arc<PermitQueue>,
    refusals: Arc<Refusals>,
}

impl RequestPermits {
    pub fn new(limits: Limits, refusals: Arc<Refusals>) -> Self {
        let Limits { concurrent_builds, concurrent_late_builds, .. } = limits;
        let turns = |permits| {
            let Limits { waiting_per_client, waiting, .. } = limits;
            PermitQueue::new(QueueLimits { permits, waiting_per_client, waiting })
        };
        RequestPermits {
            pages: turns(concurrent_builds),
            api: turns(concurrent_builds),
            late: turns(concurrent_late_builds),
            limits,
            refusals,
        }
    }

    /// Begins the deadline of the response, until what is returned is dropped.
    pub fn begin(
        &self,
        class: RequestClass,
        deadlines: &Arc<Deadlines>,
        now: Instant,
    ) -> Responding {
        let timeout = match class {
            RequestClass::Download => Duration::MAX,
            RequestClass::Ready | RequestClass::Page | RequestClass::Api => {
                self.limits.response_timeout
            }
        };
        deadlines.begin_response(now, timeout)
    }

    /// The refusal of a request with a body, or of one beyond [`Limits::concurrent_requests`].
    pub fn refusal<B: Body>(
        &self,
        request: &Request<B>,
        peer: IpAddr,
        deadlines: &Deadlines,
    ) -> Option<Response> {
        let max = self.limits.body_bytes;
        if request.body().size_hint().upper().is_none_or(|bytes| bytes > max) {
            // The next bytes of this connection would be that body.
            let close = [(header::CONNECTION, "close")];
            let refused = (StatusCode::PAYLOAD_TOO_LARGE, close, "a request body is not allowed\n");
            return Some(refused.into_response());
        }
        match deadlines.slot.admit_request(&self.limits) {
            Ok(None) => None,
            Ok(Some(network)) => {
                self.refusals.record(Refusal::ResponseDisplaced, network);
                None
            }
            Err(()) => Some(self.refuse(peer, "too many concurrent requests: try again")),
        }
    }

    /// Runs a handler once the request has the permit of its class, which goes on to the builds of the handler.
    pub async fn with_permit(
        &self,
        class: RequestClass,
        peer: IpAddr,
        deadlines: &Arc<Deadlines>,
        handler: impl Future<Output = Response>,
    ) -> Response {
        let (deadlines, wait) = (Arc::clone(deadlines), self.limits.build_wait);
        let applicant = Applicant { peer, deadlines, wait };
        let turns = match class {
            RequestClass::Ready => None,
            RequestClass::Page => Some(&self.pages),
            RequestClass::Api | RequestClass::Download => Some(&self.api),
        };
        let permit = match turns {
            None => Permit::default(),
            Some(turns) => match applicant.acquire(turns).await {
                Some(permit) => permit,
                None => return self.refuse(peer, "too many requests wait: try again"),
            },
        };
        let pass = Pass { permit, applicant, late: Arc::clone(&self.late) };
        pass.scope(handler).await
    }

    /// Ends a response that does not begin in time.
    pub async fn in_time(
        &self,
        class: RequestClass,
        peer: IpAddr,
        response: impl Future<Output = Response>,
    ) -> Response {
        let timeout = match class {
            RequestClass::Download => self.limits.download_handler_timeout,
            RequestClass::Ready | RequestClass::Page | RequestClass::Api => {
                self.limits.handler_timeout
            }
        };
        tokio::time::timeout(timeout, response).await.unwrap_or_else(|_| {
            self.refusals.record(Refusal::ResponseTimeout, peer);
            unavailable("the request timed out: try again")
        })
    }

    /// Counts what a response occupies from now on.
    pub fn hold(&self, response: &Response, class: RequestClass, deadlines: &Deadlines) {
        if class == RequestClass::Download {
            deadlines.begin_download();
        }
        let bytes = match response.extensions().get() {
            Some(Held(bytes)) => *bytes,
            None => usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX),
        };
        for network in deadlines.slot.hold_memory(bytes, &self.limits) {
            self.refusals.record(Refusal::ResponseDisplaced, network);
        }
    }

    fn refuse(&self, peer: IpAddr, problem: &str) -> Response {
        self.refusals.record(Refusal::RequestLimit, peer);
        unavailable(problem)
    }
}
