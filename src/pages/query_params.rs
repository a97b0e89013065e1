//! Query parameters of pages, the fabric that a page shows, and rendering on a blocking thread.

use std::sync::Arc;

use axum::extract::Query;
use axum::response::{IntoResponse, Response};

use crate::api;
use crate::api::history_service::QueryResult;
use fabric_history::history_query::Pairs;
use fabric_observation::Observation;

use super::components;
use super::page::Problem;

/// The query parameters of a page. An empty value counts as missing.
#[derive(Clone, Debug, Default)]
pub struct QueryParams(Pairs);

impl From<QueryResult> for QueryParams {
    /// A query that cannot be decoded has no parameters: the page is shown nevertheless.
    fn from(query: QueryResult) -> Self {
        QueryParams(query.map(|Query(pairs)| pairs).unwrap_or_default())
    }
}

impl QueryParams {
    /// The value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        let values = self.0.iter().filter(|(has, _)| has == key).map(|(_, value)| value.trim());
        values.into_iter().find(|value| !value.is_empty())
    }

    /// The value of a parameter, or an empty text.
    pub fn text(&self, key: &str) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }

    /// The value of a parameter, parsed. The error names the parameter and the value.
    pub fn parse<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let problem = |value: &str, error: String| format!("{key}: {value:?}: {error}.");
        self.get(key).map(|value| parse(value).map_err(|error| problem(value, error))).transpose()
    }

    /// The name of the fabric to show.
    pub fn fabric(&self) -> Option<&str> {
        self.get("fabric")
    }
}

/// Fails where no fabric has the requested name.
pub fn check_fabric(fabrics: &[Arc<Observation>], name: Option<&str>) -> Result<(), Problem> {
    match api::unknown_fabric(fabrics, name) {
        None => Ok(()),
        Some(problem) => Err(Problem::not_found("No such fabric", components::sentence(&problem))),
    }
}

const NO_FABRIC: &str = "No fabric is swept here: this exporter watches its host’s own devices.";

/// Text before the first sweep of a fabric.
pub const NOT_YET: &str =
    "Not swept yet: nodes and cables are told when the first sweep is at its end.";

/// Why there is nothing to show of the selected fabrics; `None` if there is.
pub fn not_swept(fabrics: &[Arc<Observation>], name: Option<&str>) -> Option<&'static str> {
    if fabrics.is_empty() {
        return Some(NO_FABRIC);
    }
    let mut selected = api::selected(fabrics, name);
    selected.all(|observation| observation.snapshot.is_none()).then_some(NOT_YET)
}

/// Renders a page on a blocking thread: that of a large fabric takes a while.
pub async fn render(page: impl FnOnce() -> Response + Send + 'static) -> Response {
    tokio::task::spawn_blocking(page).await.unwrap_or_else(|_| {
        let text = "This page cannot be written. The exporter's log may say why.";
        Problem::internal("No page", text.into()).into_response()
    })
}
