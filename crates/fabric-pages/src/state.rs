//! What handlers of pages need.

use std::sync::Arc;

use fabric_api::LiveState;
use fabric_api::route_desk::RouteDesk;

use super::history_queries::HistoryQueries;

/// What a page is made of, at the time of its request.
#[derive(Clone, Debug)]
pub struct PageState {
    /// The latest state.
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
