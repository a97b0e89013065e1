//! What the server counts of its requests.

use std::time::Duration;

use axum::http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::request_class::RequestClass;

/// Upper bounds in seconds. A scrape takes a millisecond, the list of 30,000 links half a second.
const BOUNDS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

fn durations() -> Histogram {
    Histogram::new(BOUNDS)
}

/// Requests by class and status code, and how long their responses took. Clones count together.
#[derive(Clone, Debug)]
pub struct WebMetrics {
    /// Number of requests: the labels `class` and `code`.
    pub requests: Family<[(&'static str, String); 2], Counter>,
    /// Seconds from a request to the begin of its response: the label `class`.
    pub durations: Family<[(&'static str, &'static str); 1], Histogram>,
}

impl Default for WebMetrics {
    fn default() -> Self {
        let requests = Family::default();
        WebMetrics { requests, durations: Family::new_with_constructor(durations) }
    }
}

impl WebMetrics {
    /// Counts a request.
    pub(super) fn count(&self, class: RequestClass, code: StatusCode, duration: Duration) {
        let label = class.label();
        let labels = [("class", label.to_owned()), ("code", code.as_str().to_owned())];
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&[("class", label)]).observe(duration.as_secs_f64());
    }
}
