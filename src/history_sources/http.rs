//! How others are asked: an address, with a limit on how long they take and how much they say.

use std::time::Duration;

use crate::remote::{Access, Remote};

use fabric_history::source::AskError;

/// How long it may take until somebody is there at all.
const CONNECT: Duration = Duration::from_secs(10);

/// How long an answer may take: a Prometheus gives up after two minutes by itself, and says why.
const LIMIT: Duration = Duration::from_secs(150);

/// How long it may take until a copy is made: one of 1 GB takes some ten seconds.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// The largest answer that is taken.
const MOST: u64 = 256 << 20;

/// Somebody at an address.
#[derive(Clone, Debug)]
pub(super) struct Address {
    remote: Remote,
}

impl Address {
    /// Reads an address such as `http://host:9090/prefix`.
    pub(super) fn new(url: &str, access: &Access) -> Result<Self, String> {
        Ok(Address { remote: Remote::new(url, access, CONNECT, LIMIT)? })
    }

    /// The address.
    pub(super) fn name(&self) -> String {
        self.remote.name().to_owned()
    }

    /// Asks for a path below it.
    pub(super) fn get(
        &self,
        path: &str,
        pairs: &[(&str, String)],
    ) -> Result<(u16, Vec<u8>), AskError> {
        let mut request = self.remote.get(path);
        for (key, value) in pairs {
            request = request.query(*key, value);
        }
        self.taken(request.call())
    }

    /// The same with what is large: it is written as it comes, for as long as it comes. What is no
    /// answer is told with its status.
    pub(super) fn save(
        &self,
        path: &str,
        pairs: &[(&str, String)],
        out: &mut dyn std::io::Write,
    ) -> Result<Result<(), (u16, Vec<u8>)>, AskError> {
        let mut request = self.remote.get(path);
        for (key, value) in pairs {
            request = request.query(*key, value);
        }
        let request =
            request.config().timeout_global(None).timeout_recv_response(Some(PATIENCE)).build();
        let answer = request.call();
        let mut answer = match answer {
            Ok(answer) if answer.status().as_u16() == 200 => answer,
            other => return self.taken(other).map(Err),
        };
        let length = answer.body().content_length();
        let copied = std::io::copy(&mut answer.body_mut().as_reader(), out)
            .map_err(|error| self.problem(format!("cannot be fetched: {error}")))?;
        match length {
            Some(length) if length != copied => {
                Err(self.problem(format!("ends after {copied} of {length} bytes")))
            }
            _ => Ok(Ok(())),
        }
    }

    /// The same with the pairs in a form: they may be long.
    pub(super) fn post(
        &self,
        path: &str,
        pairs: &[(&str, String)],
    ) -> Result<(u16, Vec<u8>), AskError> {
        let request = self.remote.post(path);
        self.taken(request.send_form(pairs.iter().map(|(key, value)| (*key, value.as_str()))))
    }

    fn taken(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<(u16, Vec<u8>), AskError> {
        let read = |mut answer: ureq::http::Response<ureq::Body>| {
            let body = answer.body_mut().with_config().limit(MOST).read_to_vec()?;
            Ok((answer.status().as_u16(), body))
        };
        answer.and_then(read).map_err(|error: ureq::Error| match error {
            ureq::Error::BodyExceedsLimit(_) => {
                self.problem(format!("says more than {} MiB: ask for less", MOST >> 20))
            }
            error => self.problem(format!("does not answer: {}", line(&error.to_string()))),
        })
    }

    /// An error that has to do with it.
    pub(super) fn problem(&self, problem: impl Into<String>) -> AskError {
        AskError::Address { address: self.name(), problem: problem.into() }
    }
}

/// As much of a text from outside as fits in a message, without what would move a terminal's cursor.
pub(super) fn line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|char| !char.is_control()).take(300).collect()
}
