//! `/api/v1/changes`: what changed between two moments.

use axum::Router;
use axum::extract::{FromRef, Query};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use exporter_web::error_response::{bad_request, error_response, internal_error};
use fabric_api::changes::CHANGES;
use fabric_history::parameters::Parameters;
use fabric_pages::changes::{DIFF, find};
use fabric_pages::{PageState, Problem, QueryResult};

use super::history::JSON;

/// The query parameters that it accepts.
pub(super) const ACCEPTED: [&str; 3] = [DIFF, "at", "fabric"];

/// The route, whose handler gets the moment as pages do.
pub(super) fn router<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    PageState: FromRef<S>,
{
    Router::new().route(CHANGES, get(changes))
}

/// The changes as JSON, or why there are none.
async fn changes(app: PageState, query: QueryResult) -> Response {
    let parse = || -> Result<(String, Option<String>), String> {
        let Query(pairs) = query.map_err(|rejection| rejection.body_text())?;
        let parameters = Parameters::new(&pairs, &ACCEPTED)?;
        let fabric = parameters.optional("fabric")?.map(str::to_owned);
        fabric_api::check_fabric(&app.live.state.fabrics, fabric.as_deref())
            .map_err(|problem| format!("fabric: {problem}"))?;
        Ok((parameters.required(DIFF)?.to_owned(), fabric))
    };
    let (diff, fabric) = match parse() {
        Ok(parsed) => parsed,
        Err(problem) => return bad_request(&problem),
    };
    match find(&app, &diff, fabric).await {
        Ok(changes) => match serde_json::to_vec(&changes) {
            Ok(json) => ([(header::CONTENT_TYPE, JSON)], json).into_response(),
            Err(_) => internal_error(),
        },
        Err(Problem(status, _, text)) => error_response(status, &text),
    }
}
