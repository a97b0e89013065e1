//! What handlers of pages need.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use fabric_api::LiveState;
use fabric_api::route_desk::RouteDesk;

use super::history_queries::HistoryQueries;
use super::recent_moments::ShownMoment;

/// What a page is made of, at the time of its request or at the moment that it names.
#[derive(Clone, Debug)]
pub struct PageState {
    /// The latest state, or that at the moment.
    pub live: Arc<LiveState>,
    /// The history.
    pub history: HistoryQueries,
    /// The path of the metrics.
    pub telemetry_path: Arc<str>,
    /// The address of Grafana, without a slash at the end.
    pub grafana: Option<Arc<str>>,
    /// Where questions about routes are asked.
    pub routes: RouteDesk,
}

impl PageState {
    /// Where the windows of a page end, if not now.
    pub(crate) fn end(&self) -> Option<SystemTime> {
        self.live.state.as_of
    }
}

/// [`frame`](crate::frame) has found the moment.
impl<S: Sync> FromRequestParts<S> for PageState
where
    PageState: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let app = PageState::from_ref(state);
        Ok(match parts.extensions.get::<Arc<ShownMoment>>() {
            Some(moment) => PageState { live: Arc::clone(&moment.live), ..app },
            None => app,
        })
    }
}
