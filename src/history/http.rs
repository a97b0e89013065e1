//! How others are asked: an address, with a limit on how long they take and how much they say.

use std::time::Duration;

use super::source::AskError;

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
    base: String,
    headers: Vec<(String, String)>,
    agent: ureq::Agent,
}

impl Address {
    /// Reads an address such as `http://host:9090/prefix`; without TLS there is less to build.
    pub(super) fn new(url: &str, headers: Vec<(String, String)>) -> Result<Self, String> {
        let rest = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let is_plain = |rest: &&str| {
            !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', ' '])
        };
        let Some(rest) = rest.filter(is_plain) else {
            let tls = if url.starts_with("https://") { " (TLS is not spoken)" } else { "" };
            return Err(format!("{url:?} is no address such as http://127.0.0.1:9090{tls}"));
        };
        let base = format!("http://{rest}");
        if base.parse::<ureq::http::Uri>().is_err() {
            return Err(format!("{url:?} is no address such as http://127.0.0.1:9090"));
        }
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(LIMIT))
            // Who is asked is within; proxies lead outside.
            .proxy(None)
            .user_agent(concat!("fabric-exporter/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Ok(Address { base, headers, agent })
    }

    /// The address.
    pub(super) fn name(&self) -> String {
        // What stands before an @ is a secret.
        let rest = self.base.trim_start_matches("http://");
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        format!("http://{host}{path}")
    }

    /// Asks for a path below it.
    pub(super) fn get(
        &self,
        path: &str,
        pairs: &[(&str, String)],
    ) -> Result<(u16, Vec<u8>), AskError> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
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
        let mut request = self.agent.get(format!("{}{path}", self.base));
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
        let mut request = self.agent.post(format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
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
