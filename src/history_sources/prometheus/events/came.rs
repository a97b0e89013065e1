//! What was not there when a window began.

use std::collections::BTreeMap;

use crate::history_sources::prometheus::client::Sample;
use crate::history_sources::prometheus::look::Look;
use crate::history_sources::prometheus::matchers::{is, selector};
use fabric_history::model::time;
use fabric_history::source::AskError;

/// What has series in the window and had none when it began, or when its fabric was first scraped
/// in it.
pub(super) fn came(
    look: &Look<'_>,
    metric: &str,
    only: &str,
    by: &[&str],
    begun: &BTreeMap<String, u64>,
) -> Result<Vec<Sample>, AskError> {
    let mut came = Vec::new();
    for (fabric, begun) in begun {
        let since = time::millis(look.window.to).saturating_sub(*begun);
        if since == 0 {
            continue;
        }
        let of = selector(metric, &[is("fabric", fabric), only.to_owned()]);
        let by = by.join(", ");
        came.extend(look.vector(&format!(
            "max by ({by}) (last_over_time({of}[{since}ms])) unless max by ({by}) ({of} offset {since}ms)"
        ))?);
    }
    Ok(came)
}
