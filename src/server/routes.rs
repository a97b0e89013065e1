//! The routes of the JSON API that ask the monitor of a fabric: `/api/v1/route`, `/api/v1/links/{id}/hosts` and
//! `/api/v1/crossed`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

use super::history::JSON;
use crate::published::Latest;
use exporter_web::error_response::{bad_request, error_response, internal_error, unavailable};
use fabric_api::route_desk::{RouteDesk, Unanswered};
use fabric_api::{CROSSED, LINK_HOSTS, ROUTE};
use fabric_history::parameters::Parameters;
use fabric_observation::SharedState;
use fabric_pages::QueryResult;
use ib_fabric::topology::LinkId;

/// The paths, each with the query parameters that it accepts.
pub(super) const ASKED: [(&str, &[&str]); 3] =
    [(ROUTE, &["from", "to", "fabric"]), (LINK_HOSTS, &["fabric"]), (CROSSED, &["host", "fabric"])];

/// What the handlers share.
#[derive(Clone)]
struct Asking {
    latest: Latest,
    desk: RouteDesk,
}

impl Asking {
    fn state(&self) -> SharedState {
        Arc::clone(&self.latest.borrow()).live.state.clone()
    }
}

pub(super) fn router(latest: Latest, desk: RouteDesk) -> Router {
    Router::new()
        .route(ROUTE, get(route))
        .route(LINK_HOSTS, get(hosts))
        .route(CROSSED, get(crossed))
        .with_state(Asking { latest, desk })
}

/// A response, or that to a request that cannot be answered.
type Answer = Result<Response, Response>;

/// The values of query parameters of a path, and the fabric; of `required` ones, each.
#[expect(clippy::result_large_err, reason = "a response, once a request")]
fn values(
    query: QueryResult,
    path: &str,
    required: &[&'static str],
) -> Result<(Vec<String>, Option<String>), Response> {
    let Query(pairs) = query.map_err(|rejection| bad_request(&rejection.body_text()))?;
    let accepted = ASKED.iter().find(|(known, _)| *known == path).map_or(&[][..], |(_, keys)| keys);
    let read = || -> Result<_, String> {
        let parameters = Parameters::new(&pairs, accepted)?;
        let value = |key: &&'static str| parameters.required(key).map(str::to_owned);
        let values = required.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        Ok((values, parameters.optional("fabric")?.map(str::to_owned)))
    };
    read().map_err(|problem| bad_request(&problem))
}

/// What does not exist is a mistake in the query, or in the path.
fn unanswered(why: &Unanswered, not_found: StatusCode) -> Response {
    match why {
        Unanswered::NotFound(_) => error_response(not_found, &why.to_string()),
        Unanswered::TooMany(_) => bad_request(&why.to_string()),
        Unanswered::NotSwept(_)
        | Unanswered::Busy(_)
        | Unanswered::Late(_)
        | Unanswered::Gone(_) => unavailable(&why.to_string()),
        // To try again does not help.
        Unanswered::Disabled(_) | Unanswered::NotCollected(_) | Unanswered::NoFabric => {
            error_response(StatusCode::SERVICE_UNAVAILABLE, &why.to_string())
        }
    }
}

#[expect(clippy::result_large_err, reason = "a response, once a request")]
fn answer(found: Result<impl Serialize, Unanswered>, not_found: StatusCode) -> Answer {
    let model = found.map_err(|why| unanswered(&why, not_found))?;
    let json = serde_json::to_vec(&model).map_err(|_| internal_error())?;
    Ok(([(header::CONTENT_TYPE, JSON)], json).into_response())
}

async fn route(State(asking): State<Asking>, query: QueryResult) -> Answer {
    let (values, fabric) = values(query, ROUTE, &["from", "to"])?;
    let state = asking.state();
    let ends = [&*values[0], &*values[1]];
    let found = asking.desk.routes(&state.fabrics, fabric.as_deref(), ends).await;
    answer(found, StatusCode::BAD_REQUEST)
}

async fn hosts(State(asking): State<Asking>, Path(id): Path<String>, query: QueryResult) -> Answer {
    let (_, fabric) = values(query, LINK_HOSTS, &[])?;
    let link = id
        .parse::<LinkId>()
        .map_err(|error| error_response(StatusCode::NOT_FOUND, &format!("{id:?} is {error}")))?;
    let state = asking.state();
    let found = asking.desk.hosts(&state.fabrics, fabric.as_deref(), link).await;
    answer(found, StatusCode::NOT_FOUND)
}

async fn crossed(State(asking): State<Asking>, query: QueryResult) -> Answer {
    let (values, fabric) = values(query, CROSSED, &["host"])?;
    let state = asking.state();
    let found = asking.desk.crossed(&state.fabrics, fabric.as_deref(), &values[0]).await;
    answer(found, StatusCode::BAD_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    #[tokio::test]
    async fn what_cannot_be_answered_has_a_status_and_says_what_to_do() {
        let fabric = || "ib0".to_owned();
        for (why, status, says) in [
            (Unanswered::NotFound("\"x\": no".into()), 404, "\"x\": no"),
            (Unanswered::TooMany("name one adapter".into()), 400, "name one adapter"),
            (Unanswered::Disabled(fabric()), 503, "set it to 1 or more"),
            (Unanswered::NotCollected(fabric()), 503, "not available from this source"),
            (Unanswered::NotSwept(fabric()), 503, "try again in a few seconds"),
            (Unanswered::Busy(fabric()), 503, "try again in a minute"),
            (Unanswered::Late(fabric()), 503, "try again, and look at"),
            (Unanswered::Gone(fabric()), 503, "see its log"),
            (Unanswered::NoFabric, 503, "ask one that does"),
        ] {
            let response = unanswered(&why, StatusCode::NOT_FOUND);
            assert_eq!(response.status().as_u16(), status, "{why:?}");
            let body = to_bytes(response.into_body(), 1_000).await.unwrap();
            assert!(String::from_utf8_lossy(&body).contains(says), "{why:?}");
        }
    }
}
