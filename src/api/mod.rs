//! The JSON API below `/api/v1`: its routes and their query parameters.

pub mod address;
pub mod condition;
pub mod history_service;
pub mod learning;
pub mod links;
pub(crate) mod live_state;
pub mod model;
#[cfg(test)]
mod openapi_tests;
pub mod overview;
pub mod ports;
pub mod search;
pub(crate) mod spares;
pub mod topology;
pub mod totals;
pub mod traffic;

use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::extract::{Path, Query as UrlQuery, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;

use fabric_history::history_query::Query;
use fabric_observation::{Observation, SharedState};
use ib_health::{Reason, Verdict};
use ib_mad::node::NodeKind;
use ib_mad::rate::Speed;

use crate::api::history_service::{HistoryService, QueryResult};
use crate::metrics::Latest;
use crate::packed::PackedText;
use exporter_web::error_response::{bad_request, error_response, unavailable};
use exporter_web::work::{self, BuildError};

pub(crate) const LINKS: &str = "/api/v1/links";
pub(crate) const TRAFFIC: &str = "/api/v1/traffic";
pub(crate) const OPENAPI: &str = "/api/v1/openapi.json";
const JSON: &str = "application/json";
const INTERNAL_ERROR: &str = "internal error: see the log of the exporter";

/// What to list: the query parameters of a route, or of a list of links. An empty field selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only the fabric of this name.
    pub fabric: Option<String>,
    /// Only nodes with this name or GUID, or in the host of this name.
    pub node: Option<String>,
    /// Only suspect links.
    pub suspect: bool,
    /// Only nodes of this kind: the label of a [`NodeKind`].
    pub kind: Option<&'static str>,
    /// The text to search for.
    pub q: String,
    /// Only links with this text in the name of a node at an end, in any case.
    pub name: String,
    /// Only links with one of these verdicts.
    pub verdicts: Vec<Verdict>,
    /// Only links with this reason.
    pub reason: Option<Reason>,
    /// Only links that run at this speed.
    pub speed: Option<Speed>,
    /// Only nodes that are down.
    pub down: bool,
    /// How many to list.
    pub limit: Option<usize>,
}

/// The largest `limit`: some 3 MB of links.
pub(crate) const MAX_LIMIT: usize = 2_000;

impl Filter {
    /// Parses query parameters. One that the route does not accept is an error: if a mistyped parameter were
    /// ignored, the response would have more than was requested.
    fn parse(pairs: &[(String, String)], accepted: &[&str]) -> Result<Self, String> {
        let query = Query::new(pairs, accepted)?;
        let kinds = ports::KINDS.map(NodeKind::label);
        let kind = query.read("kind", |label| {
            let known = kinds.into_iter().find(|kind| *kind == label);
            known.ok_or_else(|| format!("must be one of: {}", kinds.join(", ")))
        })?;
        let q = if accepted.contains(&"q") { query.required("q")? } else { "" };
        Ok(Filter {
            fabric: query.optional("fabric")?.map(str::to_owned),
            node: query.optional("node")?.map(str::to_owned),
            suspect: query.flag("suspect")?,
            down: query.flag("down")?,
            kind,
            q: q.to_owned(),
            name: query.optional("name")?.unwrap_or_default().to_owned(),
            verdicts: query.read_all("verdict", parse_verdict)?,
            limit: query.read("limit", |text| {
                let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                limit.ok_or_else(|| format!("must be a number from 1 to {MAX_LIMIT}"))
            })?,
            ..Filter::default()
        })
    }

    /// Fails with the problem where a fabric or a node does not exist: otherwise a mistyped name would look like one
    /// without suspect links.
    pub fn check(&self, fabrics: &Fabrics) -> Result<(), String> {
        let fabric = self.fabric.as_deref();
        check_fabric(fabrics, fabric).map_err(|problem| format!("fabric: {problem}"))?;
        let Some(name) = &self.node else { return Ok(()) };
        // Before its first sweep a fabric may have any node.
        let has = |observation: &Arc<Observation>| {
            let snapshot = observation.snapshot.as_ref();
            snapshot.is_none_or(|it| it.fabric.nodes.iter().any(|node| node.is_called(name)))
        };
        if selected(fabrics, fabric).any(has) {
            return Ok(());
        }
        Err(format!("node: no node or host has the name {name:?}, and no node has it as GUID"))
    }
}

/// The verdict with this label, or which labels there are.
pub(crate) fn parse_verdict(label: &str) -> Result<Verdict, String> {
    let labels = Verdict::labels;
    Verdict::from_label(label).ok_or_else(|| format!("must be one of: {}", labels()))
}

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
type Route = (&'static str, &'static [&'static str], fn(&SharedState, &Filter, &str) -> Built);

static ROUTES: [Route; 10] = [
    ("/api/v1/overview", &[], |board, _, _| json(&overview::overview(board))),
    ("/api/v1/search", &["q"], |board, filter, _| json(&search::search(board, &filter.q))),
    (LINKS, &["fabric", "node", "suspect", "verdict", "name", "limit"], |board, filter, _| {
        json(&links::rows(&board.fabrics, filter))
    }),
    ("/api/v1/links/{id}", &["fabric"], link),
    ("/api/v1/modules", &["fabric", "node"], |board, filter, _| {
        json(&ports::modules(&board.fabrics, filter))
    }),
    ("/api/v1/nodes", &["fabric", "node", "kind", "down"], |board, filter, _| {
        json(&ports::nodes(&board.fabrics, filter))
    }),
    ("/api/v1/nodes/{guid}", &["fabric"], node),
    (totals::TOTALS, &["fabric"], |board, filter, _| {
        json(&totals::totals(&board.fabrics, filter, SystemTime::now()))
    }),
    ("/api/v1/topology", &["fabric"], |board, filter, _| {
        let fabrics = selected(&board.fabrics, filter.fabric.as_deref());
        json(&model::Topologies { fabrics: fabrics.map(|it| topology::topology(it)).collect() })
    }),
    (TRAFFIC, &["fabric", "name", "limit"], |board, filter, _| {
        json(&traffic::traffics(&board.fabrics, filter))
    }),
];

/// The router of the whole API.
pub fn router(latest: Latest, history: HistoryService) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        let handler = move |State(latest): State<Latest>, id: Option<Path<String>>, query| {
            respond(latest, route, id.map(|Path(id)| id).unwrap_or_default(), query)
        };
        router = router.route(route.0, get(handler));
    }
    let openapi = async || ([(header::CONTENT_TYPE, JSON)], include_str!("openapi.json"));
    router.with_state(latest).route(OPENAPI, get(openapi)).merge(history_service::router(history))
}

async fn respond(seen: Latest, route: &'static Route, id: String, query: QueryResult) -> Response {
    let (_, accepts, build) = route;
    let pairs = query.map_err(|rejection| rejection.body_text());
    let filter = match pairs.and_then(|UrlQuery(pairs)| Filter::parse(&pairs, accepts)) {
        Ok(filter) => filter,
        Err(problem) => return bad_request(&problem),
    };
    let exposition = Arc::clone(&seen.borrow());
    if let Err(problem) = filter.check(&exposition.board().fabrics) {
        return bad_request(&problem);
    }
    // 60,000 ports take half a second: too long for a thread that serves other requests.
    let build = move || build(exposition.board(), &filter, &id);
    match work::run(build).await {
        Ok(Ok(json)) => json.respond(JSON),
        Ok(Err((status, problem))) => error_response(status, &problem),
        Err(error) => unbuilt(error),
    }
}

/// The response where one could not be built.
pub(crate) fn unbuilt(error: BuildError) -> Response {
    match error {
        BuildError::Busy => unavailable("too many concurrent requests: try again"),
        BuildError::Panicked => error_response(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR),
    }
}

fn link(board: &SharedState, filter: &Filter, id: &str) -> Built {
    let parsed = id.parse().map_err(|error| not_found(format!("{id:?} is {error}")))?;
    let link = ports::link_by_id(&board.fabrics, filter.fabric.as_deref(), parsed);
    json(&link.ok_or_else(|| not_found(format!("no link has the ID {parsed}")))?)
}

fn node(board: &SharedState, filter: &Filter, id: &str) -> Built {
    let guid = id.parse();
    let guid =
        guid.map_err(|_| not_found(format!("{id:?} is not a GUID such as 0x00aa000000000001")))?;
    let node = ports::node_by_guid(&board.fabrics, filter.fabric.as_deref(), guid);
    json(&node.ok_or_else(|| not_found(format!("no node has the GUID {guid}")))?)
}

fn not_found(problem: String) -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, problem)
}

/// The latest observation of each fabric.
pub type Fabrics = [Arc<Observation>];

/// The fabric of this name, or all fabrics without a name.
pub fn selected<'a>(
    fabrics: &'a Fabrics,
    name: Option<&str>,
) -> impl Iterator<Item = &'a Arc<Observation>> {
    fabrics.iter().filter(move |observation| name.is_none_or(|name| name == observation.fabric))
}

/// Fails with the problem where no fabric has the requested name.
pub fn check_fabric(fabrics: &Fabrics, name: Option<&str>) -> Result<(), String> {
    let names: Vec<&str> = fabrics.iter().map(|observation| &*observation.fabric).collect();
    let Some(name) = name.filter(|name| !names.contains(name)) else { return Ok(()) };
    Err(match &names[..] {
        [] => format!("unknown fabric {name:?}; this exporter monitors no fabric"),
        names => format!("unknown fabric {name:?}; known: {}", names.join(", ")),
    })
}
