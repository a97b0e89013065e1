//! What a Prometheus answers, and everybody who answers like one. Nothing of it is believed: what
//! is not as it should be is left out, or is an error of one line.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::history_sources::http::{Address, line};
use fabric_history::model::{Window, time};
use fabric_history::source::AskError;

/// The labels of a series.
pub(super) type Labels = BTreeMap<String, String>;

/// A number at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub labels: Labels,
    pub value: f64,
}

/// The samples of a series, the earliest first, with their times in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub labels: Labels,
    pub points: Vec<(u64, f64)>,
}

/// An answer of the API.
#[derive(Debug, Deserialize)]
struct Answer<R> {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<Data<R>>,
}

#[derive(Debug, Deserialize)]
struct Data<R> {
    #[serde(bound(deserialize = "R: Deserialize<'de>"))]
    result: Vec<R>,
}

/// A time in seconds and a number as text.
type Point = (f64, String);

#[derive(Debug, Deserialize)]
struct VectorRow {
    #[serde(default)]
    metric: Labels,
    value: Point,
}

#[derive(Debug, Deserialize)]
struct MatrixRow {
    #[serde(default)]
    metric: Labels,
    #[serde(default)]
    values: Vec<Point>,
}

/// Asks.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub address: Address,
}

impl Client {
    /// What time it is there.
    pub(super) fn now(&self) -> Result<SystemTime, AskError> {
        let rows: Vec<VectorRow> = self.ask(QUERY, &[("query", "vector(time())".into())])?;
        let said = rows.iter().find_map(|row| number(&row.value));
        let now = said.map(|(_, seconds)| seconds).filter(|seconds| *seconds > 0.0);
        let now = now.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        now.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since))
            .ok_or_else(|| self.address.problem("does not say what time it is"))
    }

    /// What a query comes to at a moment.
    pub(super) fn vector(&self, query: &str, at: SystemTime) -> Result<Vec<Sample>, AskError> {
        let rows: Vec<VectorRow> =
            self.ask(QUERY, &[("query", query.to_owned()), ("time", seconds(at))])?;
        let samples = rows.into_iter().filter_map(|row| {
            let (_, value) = number(&row.value)?;
            Some(Sample { labels: row.metric, value })
        });
        Ok(samples.collect())
    }

    /// All samples of the series that a selector names, as they are stored.
    pub(super) fn runs(&self, selector: &str, window: Window) -> Result<Vec<Run>, AskError> {
        let query = format!("{selector}{}", range(window));
        let pairs = [("query", query), ("time", seconds(window.to))];
        Ok(runs_of(self.ask(QUERY, &pairs)?))
    }

    /// What a query comes to at the window's beginning, and then each so many seconds.
    pub(super) fn steps(
        &self,
        query: &str,
        window: Window,
        step: u64,
    ) -> Result<Vec<Run>, AskError> {
        let pairs = [
            ("query", query.to_owned()),
            ("start", seconds(window.from)),
            ("end", seconds(window.to)),
            ("step", step.to_string()),
        ];
        Ok(runs_of(self.ask("/api/v1/query_range", &pairs)?))
    }

    fn ask<R: DeserializeOwned>(
        &self,
        path: &str,
        pairs: &[(&str, String)],
    ) -> Result<Vec<R>, AskError> {
        let (status, body) = self.address.post(path, pairs)?;
        read(status, &body).map_err(|problem| self.address.problem(problem))
    }
}

/// Where most is asked.
const QUERY: &str = "/api/v1/query";

fn runs_of(rows: Vec<MatrixRow>) -> Vec<Run> {
    let runs = rows.into_iter().map(|row| {
        let mut points: Vec<(u64, f64)> = row.values.iter().filter_map(number).collect();
        points.sort_by_key(|(at, _)| *at);
        points.dedup_by_key(|(at, _)| *at);
        Run { labels: row.metric, points }
    });
    runs.filter(|run| !run.points.is_empty()).collect()
}

/// Reads an answer; the error is one line.
fn read<R: DeserializeOwned>(status: u16, body: &[u8]) -> Result<Vec<R>, String> {
    let advice = "name the address of a Prometheus such as http://127.0.0.1:9090";
    let answer: Answer<R> = match serde_json::from_slice(body) {
        Ok(answer) => answer,
        Err(error) if status == 200 => {
            return Err(format!(
                "what it answers is nothing that a Prometheus says ({error}): {advice}"
            ));
        }
        // A proxy, or a limit of the server's, in its own words.
        Err(_) => {
            let said = line(&String::from_utf8_lossy(body));
            let said = if said.starts_with('<') { String::new() } else { said };
            return Err(format!(
                "answers {status}: {}",
                if said.is_empty() { advice } else { &said }
            ));
        }
    };
    match answer.data {
        Some(data) if answer.status == "success" => Ok(data.result),
        _ if answer.error.is_empty() => Err(format!("answers {status}: {advice}")),
        _ => Err(format!("refuses: {}", line(&answer.error))),
    }
}

/// A point's time and number. NaN and infinities count nothing.
fn number((at, text): &Point) -> Option<(u64, f64)> {
    let value: f64 = text.parse().ok()?;
    let millis = (at * 1000.0).round();
    let is_there = value.is_finite() && millis >= 0.0;
    #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
    is_there.then_some((millis as u64, value))
}

/// A time as the API reads it.
fn seconds(at: SystemTime) -> String {
    let millis = time::millis(at);
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// A window's length as PromQL has it.
pub(super) fn range(window: Window) -> String {
    format!("[{}ms]", window.length().as_millis().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let body = br#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"link":"a"},"values":[[1.5,"3"],[3,"NaN"],[4,"+Inf"],[5,"x"],[-1,"2"]]},
            {"values":[]}]},"warnings":["partial"]}"#;
        let rows: Vec<MatrixRow> = read(200, body).unwrap();
        assert_eq!(rows[0].values.iter().filter_map(number).collect::<Vec<_>>(), [(1500, 3.0)]);
        assert!(rows[1].metric.is_empty());
    }

    #[test]
    fn what_is_no_answer_is_said_in_one_line() {
        for (status, body, says) in [
            (200, "", "nothing that a Prometheus says"),
            (200, "<html>", "nothing that a Prometheus says"),
            (200, "[1,2]", "nothing that a Prometheus says"),
            (200, r#"{"status":"success","data":{"result":{"a":1}}}"#, "nothing that"),
            (200, r#"{"status":"success","data":{"result":[{"value":[1,2]}]}}"#, "nothing that"),
            (200, r#"{"status":"success"}"#, "name the address"),
            (422, r#"{"status":"error","error":"query processing\nwould"}"#, "refuses: query proc"),
            (503, r#"{"status":"error"}"#, "answers 503: name the address"),
            (404, "404 page not found", "answers 404: 404 page not found"),
            (401, "no org id\n", "answers 401: no org id"),
            (502, "<html>\nBad Gateway", "answers 502: name the address"),
        ] {
            let said = read::<VectorRow>(status, body.as_bytes()).unwrap_err();
            assert!(said.contains(says) && said.lines().count() == 1, "{body}: {said}");
        }
    }

    #[test]
    fn times_and_windows_are_written() {
        let at = time::of_millis(1_700_000_000_005);
        assert_eq!(seconds(at), "1700000000.005");
        let window = Window { from: at, to: at + Duration::from_millis(1500) };
        assert_eq!(
            (range(window).as_str(), range(Window { to: at, ..window }).as_str()),
            ("[1500ms]", "[1ms]")
        );
    }
}
