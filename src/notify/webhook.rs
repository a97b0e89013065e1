//! A request to the receiver.

use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ureq::http::{HeaderMap, header};

use super::secrets;
use super::settings::NotifySettings;
use super::url::WebhookUrl;
use crate::remote::{self, Access, Remote, one_line};

/// How much of a response is read: its first line may say what is wrong.
const MAX_ANSWER: u64 = 4 << 10;

/// The longest token.
const MAX_TOKEN: u64 = 16 << 10;

/// What became of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The receiver has the events.
    Sent,
    /// It will never accept them: the status, and the beginning of the answer.
    Rejected(u16, String),
    /// It may accept them later.
    Failed(Failure),
}

/// Why a request has to be repeated.
#[derive(Debug, Default)]
pub(super) struct Failure {
    pub problem: String,
    /// How long the receiver wants no other request.
    pub demanded: Option<Duration>,
    /// What a person can do about it, if it does not end by itself.
    pub advice: Option<&'static str>,
}

impl Failure {
    fn new(problem: String) -> Self {
        Failure { problem, ..Failure::default() }
    }
}

/// The receiver.
#[derive(Debug)]
pub(super) struct Webhook {
    url: WebhookUrl,
    token_file: Option<PathBuf>,
    agent: ureq::Agent,
}

impl Webhook {
    /// Reads the certificates, and reads the token once to find a wrong file early. A request takes `limit` at most.
    pub fn new(settings: &NotifySettings, limit: Duration) -> Result<Self, String> {
        let NotifySettings { webhook: url, token_file, ca_file, .. } = settings;
        let access = Access { ca_file: ca_file.clone(), ..Access::default() };
        let config = remote::agent_config(url.is_secure(), &access, limit, limit)
            .map_err(|problem| problem.replace("--source.", "--notify."))?
            // A POST to another address is for the user to decide.
            .max_redirects(0)
            // The receiver may have closed a connection of the request before.
            .max_idle_connections(0);
        let (url, token_file) = (url.clone(), token_file.clone());
        let webhook = Webhook { url, token_file, agent: config.build().into() };
        webhook.token()?;
        Ok(webhook)
    }

    /// The name of the receiver for logs.
    pub fn name(&self) -> String {
        self.url.name()
    }

    /// The bearer token: what is in the file now, since tokens are replaced.
    fn token(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let flag = "--notify.token-file";
        let text = String::from_utf8_lossy(&remote::read(path, flag, MAX_TOKEN)?).into_owned();
        let token = text.trim();
        if token.is_empty() || token.contains(|char: char| !char.is_ascii_graphic()) {
            return Err(format!("{flag}: {}: it is not one token in one line", path.display()));
        }
        Ok(Some(token.to_owned()))
    }

    /// Sends a body.
    pub fn post(&self, body: &[u8]) -> Outcome {
        let token = match self.token() {
            Ok(token) => token,
            Err(problem) => return Outcome::Failed(Failure::new(problem)),
        };
        let [whole, path, query] = self.url.secrets();
        let secrets = [whole, path, query, token.as_deref().unwrap_or_default()];
        let for_log = |text: &str| secrets::mask(&one_line(text), &secrets);
        let mut request =
            self.agent.post(self.url.uri()).header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = &token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let mut response = match request.send(body) {
            Ok(response) => response,
            Err(error) => return Outcome::Failed(Failure::new(for_log(&Remote::reason(&error)))),
        };
        let status = response.status();
        if status.is_success() {
            // What it answers does not matter.
            return Outcome::Sent;
        }
        let demanded = retry_after(response.headers(), SystemTime::now());
        let mut answer = Vec::new();
        // Without it the status says enough.
        let _ = response.body_mut().as_reader().take(MAX_ANSWER).read_to_end(&mut answer);
        let answer = for_log(&String::from_utf8_lossy(&answer));
        let status = status.as_u16();
        let failed = |advice| {
            Outcome::Failed(Failure {
                problem: format!("HTTP status {status} {answer}"),
                demanded,
                advice,
            })
        };
        match status {
            // The token may be replaced meanwhile.
            401 | 403 => failed(Some(
                "set --notify.token-file to a file with a token that the receiver accepts",
            )),
            408 | 429 | 500.. => failed(None),
            _ => Outcome::Rejected(status, answer),
        }
    }
}

/// The value of `Retry-After`: seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let date = || httpdate::parse_http_date(text).ok()?.duration_since(now).ok();
    text.parse().ok().map(Duration::from_secs).or_else(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_demands_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 03:12:00 GMT").unwrap();
        for (text, seconds) in [
            ("120", Some(120)),
            ("0", Some(0)),
            ("Sat, 21 Nov 2026 03:12:30 GMT", Some(30)),
            ("Sat, 21 Nov 2026 03:11:00 GMT", None),
            ("-1", None),
            ("soon", None),
            ("99999999999999999999", None),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
