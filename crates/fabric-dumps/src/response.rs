//! Responses of the endpoints of a fabric's telemetry, joined to a dump.

use std::path::PathBuf;
use std::time::SystemTime;

use crate::contents::Contents;
use crate::dump::Dump;
use crate::format::Format;
use crate::front;
use crate::source::Source;
use crate::telemetry::{parse, recognize};

/// What one response of an endpoint says.
#[derive(Clone, Debug)]
pub struct Response {
    /// How it was written.
    pub format: Format,
    contents: Contents,
}

impl Response {
    /// Reads the body of a response of this time; several readings in it are one, of which the last one counts. Times of
    /// single rows that are a day ahead are ignored. An error says in one line why it is none.
    pub fn read(body: Vec<u8>, now: SystemTime) -> Result<Response, String> {
        let bytes = front::unpack(body)?;
        let decoded = front::decode(&bytes);
        let text = &*decoded.text;
        let writing = recognize(text).ok_or_else(|| not_telemetry(text))?;
        let format = Format::of_telemetry(writing);
        let contents = parse(writing, text)?.pop().filter(|contents| !contents.ports.is_empty());
        let mut contents = contents.ok_or("it has no ports")?;
        contents.ignore_times_ahead(now);
        Ok(Response { format, contents })
    }

    /// When its newest values were read, if it says so.
    pub fn taken_at(&self) -> Option<SystemTime> {
        self.contents.taken_at
    }

    /// The number of ports.
    pub fn ports(&self) -> usize {
        self.contents.ports.len()
    }

    /// Whether it says what is at the other ends of cables.
    pub fn has_links(&self) -> bool {
        !self.contents.links.is_empty()
    }

    /// Whether it has values of counters.
    pub fn has_counters(&self) -> bool {
        self.contents.has_counters()
    }
}

/// What a body is that is no telemetry.
fn not_telemetry(text: &str) -> String {
    let start = text.trim_start();
    let is = |prefix: &str| {
        start.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
    };
    let what = match () {
        () if start.is_empty() => "an empty body",
        () if is("<!doctype") || is("<html") || is("<?xml") => "a web page",
        () if start.starts_with(['{', '[']) => "JSON",
        () => "something else",
    };
    format!(
        "expected UFM Telemetry as CSV or in the text format of Prometheus, with the GUID of the node and the number of \
         the port, found {what}"
    )
}

/// The state of a fabric from the responses of its endpoints. Counters are those of the first one; the others add states,
/// cables, modules and names. Mixed, counters of two times would look like errors in bursts.
pub fn join(responses: &[(String, &Response)], now: SystemTime) -> Dump {
    let source = |(index, (name, response)): (usize, &(String, &Response))| Source {
        path: PathBuf::from(name),
        folder: PathBuf::new(),
        format: response.format,
        contents: if index == 0 {
            response.contents.clone()
        } else {
            response.contents.without_counters()
        },
        modified: now,
    };
    Dump::of(responses.iter().enumerate().map(source).collect(), &[])
}

#[cfg(test)]
mod tests;
