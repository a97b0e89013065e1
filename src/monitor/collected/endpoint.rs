//! Endpoints of UFM Telemetry, which have the latest sample of each port.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::time::{Duration, SystemTime};

use fabric_dumps::Format;
use fabric_dumps::response::{Response, join};
use fabric_observation::stale_after;
use ib_mad::Moment;
use ib_mad::moment::Anchor;

use super::polled::{PollError, Polled, USUAL_INTERVAL, stands_still};
use super::wait::Waiting;
use crate::config::EndpointUrl;
use crate::remote::{Access, Remote};

/// A connection takes at most this long, and a response: UFM needs seconds for tens of megabytes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(60);

/// The largest response: 60,000 ports with 120 fields of 10 bytes have 72 MB.
const MAX_BODY: u64 = 256 << 20;

/// The longest time between two attempts while an endpoint does not answer.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// The endpoints of a fabric. Counters are from the first.
pub(super) struct Endpoints {
    all: Vec<Endpoint>,
    /// The first one has a new sample, which waits for the first response of another one.
    is_pending: bool,
}

struct Endpoint {
    name: String,
    remote: Remote,
    path: String,
    interval: Duration,
    latest: Option<Latest>,
    /// When it is asked again.
    due: Moment,
    /// When it last answered.
    answered: Moment,
    /// When its answer was last another one.
    changed: Moment,
    /// The time between its latest two samples, as far as it is known.
    passed: Duration,
    /// How often it did not answer since it last did.
    failures: u32,
    problem: Option<String>,
}

/// The latest response that was another one.
struct Latest {
    response: Response,
    /// Of the whole body: a response without times is new if it differs.
    digest: u64,
    taken: Option<SystemTime>,
}

impl Endpoints {
    pub(super) fn new(
        urls: &[EndpointUrl],
        access: &Access,
        interval: Duration,
    ) -> Result<Self, String> {
        let endpoint = |url: &EndpointUrl| {
            let remote = Remote::new(&url.server, access, CONNECT_TIMEOUT, TIMEOUT)
                .map_err(|problem| problem.replace("--source.", "--fabric.from-"))?;
            Ok(Endpoint {
                name: format!("{}{}", remote.name(), url.path),
                remote,
                path: url.path.clone(),
                interval,
                latest: None,
                due: Moment::default(),
                answered: Moment::default(),
                changed: Moment::default(),
                passed: Duration::ZERO,
                failures: 0,
                problem: None,
            })
        };
        let all = urls.iter().map(endpoint).collect::<Result<_, String>>()?;
        Ok(Endpoints { all, is_pending: false })
    }

    /// Whether one of them is to be asked.
    #[cfg(test)]
    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.all.iter().any(|endpoint| now >= endpoint.due)
    }

    /// Asks those that are due. There is something new if the first one has a new sample.
    pub(super) fn poll(&mut self, now: Anchor, waiting: &Waiting<'_>) -> Result<Polled, PollError> {
        let mut was_asked = false;
        for (index, endpoint) in self.all.iter_mut().enumerate() {
            if now.moment >= endpoint.due {
                let before = endpoint.problem.clone();
                let changed = endpoint.poll(now, waiting)?;
                if index == 0 {
                    was_asked = true;
                    self.is_pending |= changed;
                    continue;
                }
                // The problem of the first one is that of the source; with others, their last data is used on.
                match (before, &endpoint.problem) {
                    (Some(_), None) => tracing::info!("{}: data received again", endpoint.name),
                    (before, Some(problem)) if before.as_ref() != Some(problem) => {
                        tracing::warn!("{problem}");
                    }
                    _ => {}
                }
            }
        }
        let decides =
            |(index, endpoint): &(usize, &Endpoint)| *index == 0 || endpoint.latest.is_none();
        let mut deciding = self.all.iter().enumerate().filter(decides);
        let problem = deciding.find_map(|(_, endpoint)| endpoint.problem.clone());
        let responses = self.all.iter().map(|endpoint| {
            let latest = endpoint.latest.as_ref()?;
            Some((endpoint.name.clone(), &latest.response))
        });
        // A fabric without its cables would be another one: all have to have answered.
        let responses: Option<Vec<_>> = responses.collect();
        if let Some(responses) = responses.filter(|_| self.is_pending) {
            self.is_pending = false;
            return Ok(Polled::New(vec![join(&responses, now.wall)]));
        }
        match problem {
            Some(problem) => Err(PollError::Problem(problem)),
            None if was_asked => Ok(Polled::Unchanged),
            None => Ok(Polled::NotDue),
        }
    }

    /// What is wrong with the data of the others, a sentence each: their last cables and states stay in use while they
    /// do not answer, and after four intervals and a minute a link may have been down for long.
    pub(super) fn outdated(&self, now: Moment, interval: Duration) -> Vec<String> {
        let others = self.all.iter().skip(1);
        let problems = others.filter_map(|endpoint| endpoint.outdated(now, interval));
        problems.map(|problem| format!("its cables and states are old: {problem}")).collect()
    }
}

impl Endpoint {
    /// Why its data is old, if it is.
    fn outdated(&self, now: Moment, interval: Duration) -> Option<String> {
        let limit = stale_after(self.passed.max(interval), Duration::ZERO);
        if now.since(self.answered) > limit {
            return self.problem.clone();
        }
        // Cables without times may stay as they are.
        let has_times = self.latest.as_ref()?.taken.is_some();
        let unchanged = now.since(self.changed);
        let is_old = unchanged > limit.max(stale_after(USUAL_INTERVAL, Duration::ZERO));
        (has_times && is_old).then(|| format!("{}: {}", self.name, stands_still(unchanged)))
    }

    /// Asks it. Returns whether it has something new.
    fn poll(&mut self, now: Anchor, waiting: &Waiting<'_>) -> Result<bool, PollError> {
        let (remote, path) = (self.remote.clone(), self.path.clone());
        let found = waiting.run(move || request(&remote, &path, now.wall))?;
        let (response, digest) = match found {
            Ok(found) => found,
            Err(problem) => {
                let wait = self.interval.saturating_mul(1 << self.failures.min(8));
                self.failures = self.failures.saturating_add(1);
                self.due = now.moment + wait.min(MAX_BACKOFF.max(self.interval));
                self.problem = Some(format!("{}: {problem}", self.name));
                return Ok(false);
            }
        };
        (self.failures, self.problem, self.due) = (0, None, now.moment);
        self.answered = now.moment;
        let taken = response.taken_at();
        let before = self.latest.as_ref();
        let is_new = before.is_none_or(|before| match (taken, before.taken) {
            (Some(taken), Some(before)) => taken != before,
            _ => digest != before.digest,
        });
        if is_new {
            self.changed = now.moment;
            // The next sample comes when as much time has passed as between these two.
            let passed = before.and_then(|it| taken?.duration_since(it.taken?).ok());
            self.passed = passed.unwrap_or_default().min(MAX_BACKOFF);
            self.due = now.moment + self.passed.mul_f64(0.8);
            self.latest = Some(Latest { response, digest, taken });
        }
        Ok(is_new)
    }
}

fn request(remote: &Remote, path: &str, now: SystemTime) -> Result<(Response, u64), String> {
    let advice =
        "see whether UFM Telemetry runs, and whether this URL is one of its endpoints (curl)";
    let read = remote.read(path, &[], MAX_BODY);
    let (status, body) = read.map_err(|error| format!("{}; {advice}", Remote::reason(&error)))?;
    match status {
        200 => {}
        401 | 403 => {
            return Err(format!(
                "HTTP status {status}: login required: use http://USER@HOST and --fabric.from-password-file"
            ));
        }
        status => return Err(format!("HTTP status {status}; {advice}")),
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(&body);
    let response = Response::read(body, now).map_err(|problem| format!("{problem}; {advice}"))?;
    if !response.has_counters() && !response.has_links() {
        let format: Format = response.format;
        return Err(format!(
            "it has neither counters nor cables ({}): use another counter set, such as low_freq_debug",
            format.label()
        ));
    }
    Ok((response, hasher.finish()))
}
