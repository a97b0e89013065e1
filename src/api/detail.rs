//! The routes of what is told one by one, and of what is there: `/api/v1/links/{id}`, `/api/v1/nodes…` and
//! `/api/v1/topology`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

use crate::api::archive::Said;
use crate::metrics::Latest;
use exporter_web::refusal::{refused, wrong};
use fabric_history::query::Query;
use fabric_observation::Observation;
use ib_fabric::topology::LinkId;
use ib_mad::Guid;

use super::links::Of;
use super::{asked, nodes, ports, topology};

/// Where a cable is told.
pub const LINK: &str = "/api/v1/links/{id}";
/// Where the nodes are told.
pub const NODES: &str = "/api/v1/nodes";
/// Where a node is told.
pub const NODE: &str = "/api/v1/nodes/{guid}";
/// Where it is told how a fabric is wired.
pub const TOPOLOGY: &str = "/api/v1/topology";

/// Which fabric is asked for.
#[derive(Clone, Debug, Default)]
struct Ask {
    fabric: Option<String>,
}

impl Ask {
    fn read(pairs: &[(String, String)]) -> Result<Self, String> {
        let fabric = Query::new(pairs, &["fabric"])?.optional("fabric")?.map(str::to_owned);
        Ok(Ask { fabric })
    }
}

/// The routes.
pub(super) fn router(latest: Latest) -> Router {
    Router::new()
        .route(LINK, get(link))
        .route(NODES, get(all_nodes))
        .route(NODE, get(node))
        .route(TOPOLOGY, get(wiring))
        .with_state(latest)
}

/// Why a fabric that is asked for by name is none.
pub fn unknown_fabric(fabrics: &[Arc<Observation>], asked: Option<&str>) -> Option<String> {
    let asked = asked?;
    let names: Vec<&str> = fabrics.iter().map(|observation| &*observation.fabric).collect();
    let others = match &names[..] {
        [] => "none is swept here".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    (!names.contains(&asked)).then(|| format!("no fabric is called {asked:?}; {others}"))
}

async fn link(State(latest): State<Latest>, Path(id): Path<String>, said: Said) -> Response {
    let id: LinkId = match id.parse() {
        Ok(id) => id,
        Err(problem) => return refused(StatusCode::NOT_FOUND, &format!("{id:?}: {problem}")),
    };
    answer(
        latest,
        asked(said, Ask::read),
        |ask| ask.fabric.as_deref(),
        move |fabrics, ask| {
            let found = in_fabrics(fabrics, ask.fabric.as_deref(), |of| {
                ports::find(of, id).map(|cable| ports::link(of, cable))
            });
            found.ok_or_else(|| format!("no cable has the id {id}"))
        },
    )
    .await
}

async fn node(State(latest): State<Latest>, Path(text): Path<String>, said: Said) -> Response {
    let Ok(guid) = text.parse::<Guid>() else {
        let problem = format!("{text:?}: no GUID such as 0x00aa000000000001");
        return refused(StatusCode::NOT_FOUND, &problem);
    };
    answer(
        latest,
        asked(said, Ask::read),
        |ask| ask.fabric.as_deref(),
        move |fabrics, ask| {
            let found = in_fabrics(fabrics, ask.fabric.as_deref(), |of| nodes::node(of, guid));
            found.ok_or_else(|| format!("no node has the GUID {guid}"))
        },
    )
    .await
}

async fn all_nodes(State(latest): State<Latest>, said: Said) -> Response {
    let ask = asked(said, nodes::Ask::read);
    answer(latest, ask, |ask| ask.fabric.as_deref(), |fabrics, ask| Ok(nodes::nodes(fabrics, ask)))
        .await
}

async fn wiring(State(latest): State<Latest>, said: Said) -> Response {
    answer(
        latest,
        asked(said, Ask::read),
        |ask| ask.fabric.as_deref(),
        |fabrics, ask| Ok(topology::topologies(fabrics, ask.fabric.as_deref())),
    )
    .await
}

/// What the first fabric of this name, or of any, has to tell.
pub fn in_fabrics<T>(
    fabrics: &[Arc<Observation>],
    name: Option<&str>,
    tell: impl Fn(Of<'_>) -> Option<T>,
) -> Option<T> {
    let wanted = fabrics.iter().filter(|it| name.is_none_or(|name| name == it.fabric));
    wanted.filter_map(|observation| Of::new(observation)).find_map(tell)
}

/// Tells something as JSON, or why not. Not on a thread that serves others, too: some of it is large.
async fn answer<A, T>(
    latest: Latest,
    ask: Result<A, Response>,
    fabric: impl Fn(&A) -> Option<&str>,
    tell: impl FnOnce(&[Arc<Observation>], &A) -> Result<T, String> + Send + 'static,
) -> Response
where
    A: Send + 'static,
    T: Serialize,
{
    let ask = match ask {
        Ok(ask) => ask,
        Err(refusal) => return refusal,
    };
    let exposition = Arc::clone(&latest.borrow());
    if let Some(problem) = unknown_fabric(&exposition.board().fabrics, fabric(&ask)) {
        return wrong(&format!("fabric: {problem}"));
    }
    let written = move || {
        let told = tell(&exposition.board().fabrics, &ask);
        told.map(|told| serde_json::to_vec(&told))
    };
    match tokio::task::spawn_blocking(written).await {
        Ok(Ok(Ok(json))) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Ok(Err(problem)) => refused(StatusCode::NOT_FOUND, &problem),
        _ => refused(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}
