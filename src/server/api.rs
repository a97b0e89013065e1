//! The JSON API below `/api/v1`: its routes and their query parameters.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Path, Query as UrlQuery, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use serde::Serialize;

use fabric_observation::SharedState;

use super::history::{self, JSON};
use crate::published::Latest;
use exporter_web::PackedText;
use exporter_web::blocking;
use exporter_web::error_response::{INTERNAL_ERROR, bad_request, error_response, unbuilt};
use fabric_api::impact::{IMPACT, impact};
use fabric_api::{
    Filter, LINKS, LiveState, OPENAPI, TRAFFIC, links, model, modules, nodes, overview, ports,
    search, selected, topology, totals, traffic,
};
use fabric_pages::{HistoryQueries, QueryResult, ShownMoment};

/// The JSON of a route, or the status and the problem.
type Built = Result<PackedText, (StatusCode, String)>;

fn json(model: &impl Serialize) -> Built {
    let mut text = PackedText::default();
    serde_json::to_writer(&mut text, model).map_err(unwritable)?;
    Ok(text)
}

fn unwritable(_: serde_json::Error) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR.to_owned())
}

/// A route whose JSON is built from the latest snapshot: its path, the query parameters that it accepts, and the function
/// that builds the JSON from these and the id in the path, which is empty if there is none.
pub(super) type Route =
    (&'static str, &'static [&'static str], fn(&SharedState, &Filter, &str) -> Built);

pub(super) static ROUTES: [Route; 11] = [
    ("/api/v1/overview", &["at"], |state, _, _| json(&overview::overview(state))),
    ("/api/v1/search", &["q", "at"], |state, filter, _| json(&search::search(state, &filter.q))),
    (IMPACT, &["fabric"], |state, filter, _| json(&impact(state, filter, SystemTime::now()))),
    (
        LINKS,
        &["fabric", "node", "suspect", "verdict", "name", "limit", "at"],
        |state, filter, _| json(&links::rows(&state.fabrics, filter)),
    ),
    ("/api/v1/links/{id}", &["fabric", "at"], link),
    ("/api/v1/modules", &["fabric", "node"], |state, filter, _| {
        json(&modules::modules(&state.fabrics, filter))
    }),
    ("/api/v1/nodes", &["fabric", "node", "kind", "down", "at"], |state, filter, _| {
        json(&nodes::nodes(&state.fabrics, filter))
    }),
    ("/api/v1/nodes/{guid}", &["fabric", "at"], node),
    (totals::TOTALS, &["fabric"], |state, filter, _| {
        json(&totals::totals(&state.fabrics, filter, SystemTime::now()))
    }),
    ("/api/v1/topology", &["fabric", "at"], |state, filter, _| {
        let fabrics = selected(&state.fabrics, filter.fabric.as_deref());
        json(&model::Topologies { fabrics: fabrics.map(|it| topology::topology(it)).collect() })
    }),
    (TRAFFIC, &["fabric", "name", "limit", "at"], |state, filter, _| {
        json(&traffic::traffics(&state.fabrics, filter))
    }),
];

/// The router of the whole API.
pub(super) fn router(latest: Latest, history: HistoryQueries) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        let handler = move |State(latest): State<Latest>,
                            moment: Option<Extension<Arc<ShownMoment>>>,
                            id: Option<Path<String>>,
                            query| {
            let live = match moment {
                Some(Extension(moment)) => Arc::clone(&moment.live),
                None => Arc::clone(&latest.borrow().live),
            };
            respond(live, route, id.map(|Path(id)| id).unwrap_or_default(), query)
        };
        router = router.route(route.0, get(handler));
    }
    let openapi = async || {
        ([(header::CONTENT_TYPE, JSON)], include_str!("../../crates/fabric-api/openapi.json"))
    };
    router.with_state(latest).route(OPENAPI, get(openapi)).merge(history::router(history))
}

/// The response of a route, of the present or of the moment that the address names.
async fn respond(
    live: Arc<LiveState>,
    route: &'static Route,
    id: String,
    query: QueryResult,
) -> Response {
    let (_, accepts, build) = route;
    let pairs = query.map_err(|rejection| rejection.body_text());
    let filter = match pairs.and_then(|UrlQuery(pairs)| Filter::parse(&pairs, accepts)) {
        Ok(filter) => filter,
        Err(problem) => return bad_request(&problem),
    };
    if let Err(problem) = filter.check(&live.state.fabrics) {
        return bad_request(&problem);
    }
    // 60,000 ports take half a second: too long for a thread that serves other requests.
    let build = move || build(&live.state, &filter, &id);
    match blocking::run(build).await {
        Ok(Ok(json)) => json.respond(JSON),
        Ok(Err((status, problem))) => error_response(status, &problem),
        Err(error) => unbuilt(error),
    }
}

fn link(state: &SharedState, filter: &Filter, id: &str) -> Built {
    let parsed = id.parse().map_err(|error| not_found(format!("{id:?} is {error}")))?;
    let link = ports::link_by_id(&state.fabrics, filter.fabric.as_deref(), parsed);
    json(&link.ok_or_else(|| not_found(format!("no link has the ID {parsed}")))?)
}

fn node(state: &SharedState, filter: &Filter, id: &str) -> Built {
    let guid = id.parse();
    let guid =
        guid.map_err(|_| not_found(format!("{id:?} is not a GUID such as 0x00aa000000000001")))?;
    let node = nodes::node_by_guid(&state.fabrics, filter.fabric.as_deref(), guid);
    json(&node.ok_or_else(|| not_found(format!("no node has the GUID {guid}")))?)
}

fn not_found(problem: String) -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, problem)
}
