//! What UFM Telemetry publishes over HTTP: a row per port, as CSV (`/csv/xcset/low_freq_debug`) or in the text format of
//! Prometheus (`/metrics`).
//!
//! Which fields there are depends on the counter set that the URL names, so they are found by their names
//! ([`fields`]): fields without a known name are ignored, and what no field says is unknown.

mod csv;
mod fields;
mod prometheus;
mod row;

use crate::contents::Contents;
use row::MAX_ROWS;

/// How telemetry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// A header, and a row per port.
    Csv,
    /// A sample per value, in the text format of Prometheus.
    Prometheus,
}

/// The beginning of a text that decides whether it is telemetry: a header has at most some 200 names.
const HEAD: usize = 64 << 10;

/// How a text is written, if it is telemetry.
pub fn recognize(text: &str) -> Option<Writing> {
    let mut end = text.len().min(HEAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let lines = text[..end].lines().map(str::trim);
    let line = lines.clone().find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if csv::is_header(line) {
        Some(Writing::Csv)
    } else if prometheus::is_sample(line) {
        Some(Writing::Prometheus)
    } else {
        None
    }
}

/// Reads a text that is written so: one reading after the other. Fails if it has too many rows.
pub fn parse(writing: Writing, text: &str) -> Result<Vec<Contents>, String> {
    let found = match writing {
        Writing::Csv => csv::parse(text),
        Writing::Prometheus => prometheus::parse(text).map(|found| vec![found]),
    };
    found.ok_or_else(|| format!("it has more than {MAX_ROWS} rows of ports"))
}
