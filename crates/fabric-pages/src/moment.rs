//! Pages of the past: each page and each model of the API takes `at=`, a moment. What it shows is made of the same
//! state as in the present, which the history gives back.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::Query;
use axum::http::{StatusCode, Uri};
use fabric_api::LiveState;
use fabric_history::Reader;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::time;
use fabric_history::parameters::Pairs;
use fabric_history::past::Past;

use crate::components;
use crate::history_queries::{self, NoHistory};
use crate::page::Problem;
use crate::recent_moments::ShownMoment;
use crate::state::PageState;

/// The parameter of all pages that names a moment.
pub const AT: &str = "at";

/// The value of a parameter of an address, if it has one.
fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let Query(pairs) = Query::<Pairs>::try_from_uri(uri).ok()?;
    let values = pairs.into_iter().filter(|(key, _)| key == name).map(|(_, value)| value);
    values.map(|value| value.trim().to_owned()).rfind(|value| !value.is_empty())
}

/// The moment that an address names; `None` if it names none.
pub async fn of_address(app: &PageState, uri: &Uri) -> Result<Option<Arc<ShownMoment>>, Problem> {
    match parameter(uri, AT) {
        Some(text) => read(app, AT, &text).await.map(Some),
        None => Ok(None),
    }
}

/// A moment by its text, or the earliest that is recorded if it is before that.
pub async fn read_or_first(
    app: &PageState,
    parameter: &str,
    text: &str,
) -> Result<Arc<ShownMoment>, Problem> {
    let mut found = find(app, time_of(app, parameter, text)?).await?;
    // The end of the first sweep is the one after the moment.
    if let Found::Nothing(past) = &found
        && let Some(first) = past.neighbors.sweeps[1]
    {
        found = find(app, time::of_millis(time::millis(first))).await?;
    }
    found.shown()
}

/// A moment by its text, such as `2026-11-27 03:12` or `2h`: so long before the moment of the page.
/// The error names the parameter.
async fn read(app: &PageState, parameter: &str, text: &str) -> Result<Arc<ShownMoment>, Problem> {
    find(app, time_of(app, parameter, text)?).await?.shown()
}

/// In the precision of addresses, so that a link leads to the moment that is shown.
pub(crate) fn time_of(app: &PageState, parameter: &str, text: &str) -> Result<SystemTime, Problem> {
    let refused = |text: String| Problem(StatusCode::BAD_REQUEST, "Invalid time", text);
    let parsed = components::clock(&app.live.state).parse(text);
    let at = parsed.map_err(|error| refused(format!("{parameter}: {error}.")))?;
    Ok(time::of_millis(time::millis(at)))
}

/// What the history has of a moment.
enum Found {
    Moment(Arc<ShownMoment>),
    /// Nothing but the sweeps around it.
    Nothing(Box<Past>),
}

impl Found {
    fn shown(self) -> Result<Arc<ShownMoment>, Problem> {
        match self {
            Found::Moment(moment) => Ok(moment),
            Found::Nothing(past) => Err(not_recorded(&past)),
        }
    }
}

async fn find(app: &PageState, at: SystemTime) -> Result<Found, Problem> {
    if let Some(known) = app.history.recent.find(at) {
        return Ok(Found::Moment(known));
    }
    let present = app.live.state.fabrics.clone();
    let read = move |reader: &Reader| Ok(reader.past(at, &present)?);
    let past = history_queries::run(&app.history, read).await.map_err(unavailable)?;
    if past.fabrics.is_empty() {
        return Ok(Found::Nothing(Box::new(past)));
    }
    let live = Arc::new(LiveState::past(&past));
    let moment = Arc::new(ShownMoment { past, live });
    app.history.recent.keep(&moment);
    Ok(Found::Moment(moment))
}

/// Why a page of the past cannot be shown.
pub(crate) fn unavailable(why: NoHistory) -> Problem {
    match why {
        NoHistory::NotRecorded => {
            let text = "No history is recorded, so the past cannot be shown. Start the exporter with \
                        --history.file=FILE to record one.";
            Problem(StatusCode::NOT_FOUND, "No history", text.into())
        }
        NoHistory::Unavailable(why) => {
            Problem(StatusCode::SERVICE_UNAVAILABLE, "History not available", why)
        }
    }
}

fn not_recorded(past: &Past) -> Problem {
    let clock = LocalClock::now();
    let begins = match past.neighbors.span.first {
        Some(first) => format!("The history begins at {}.", clock.format(first)),
        None => "Nothing is recorded yet.".into(),
    };
    let text = format!("Nothing is recorded for {}. {begins}", clock.format(past.at));
    Problem(StatusCode::NOT_FOUND, "Not recorded", text)
}
