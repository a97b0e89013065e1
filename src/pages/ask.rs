//! What an address says after its path, which fabric it means, and who writes the page.

use std::sync::Arc;

use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;

use crate::api::archive::Said;
use crate::api::detail;
use fabric_observation::Observation;

use super::page::problem;
use super::words;

/// What an address says, key by key; what is empty is not said.
#[derive(Clone, Debug, Default)]
pub struct Asked(Vec<(String, String)>);

impl From<Said> for Asked {
    /// An address that cannot be read says nothing: a page for people is written all the same.
    fn from(said: Said) -> Self {
        Asked(said.map(|Query(pairs)| pairs).unwrap_or_default())
    }
}

impl Asked {
    /// What it says for a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        let values = self.0.iter().filter(|(has, _)| has == key).map(|(_, value)| value.trim());
        values.into_iter().find(|value| !value.is_empty())
    }

    /// What it says for a key, read; the error names the key and the value.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let problem = |value: &str, error: String| format!("{key}: {value:?}: {error}.");
        self.value(key).map(|value| read(value).map_err(|error| problem(value, error))).transpose()
    }

    /// The fabric that it names.
    pub fn fabric(&self) -> Option<&str> {
        self.value("fabric")
    }
}

/// The fabrics that are meant: all, or the one of this name.
pub fn meant<'a>(
    fabrics: &'a [Arc<Observation>],
    name: Option<&str>,
) -> impl Iterator<Item = &'a Arc<Observation>> {
    fabrics.iter().filter(move |observation| name.is_none_or(|name| name == observation.fabric))
}

/// Says that no fabric has the name that is asked for, if none has.
pub fn unknown_fabric(fabrics: &[Arc<Observation>], name: Option<&str>) -> Option<Response> {
    let what = detail::unknown_fabric(fabrics, name)?;
    Some(problem(StatusCode::NOT_FOUND, "No such fabric", &words::sentence(&what)))
}

/// Where no fabric is asked.
const NONE: &str = "No fabric is swept here: this exporter watches its host’s own devices.";

/// Before the first sweep of a fabric.
pub const NOT_YET: &str =
    "Not swept yet: nodes and cables are told when the first sweep is at its end.";

/// Why nothing can be told of the fabrics that are meant, if nothing can.
pub fn not_swept(fabrics: &[Arc<Observation>], name: Option<&str>) -> Option<&'static str> {
    if fabrics.is_empty() {
        return Some(NONE);
    }
    meant(fabrics, name).all(|observation| observation.snapshot.is_none()).then_some(NOT_YET)
}

/// Writes a page away from the threads that serve others: a large fabric's takes a while.
pub async fn written(write: impl FnOnce() -> Response + Send + 'static) -> Response {
    tokio::task::spawn_blocking(write).await.unwrap_or_else(|_| {
        let what = "This page cannot be written. The exporter's log may say why.";
        problem(StatusCode::INTERNAL_SERVER_ERROR, "No page", what)
    })
}
