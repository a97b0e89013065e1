//! The thread that sends events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::payload::Payload;
use super::queue::{Batch, Queue};
use super::webhook::{Failure, Outcome, Webhook};

/// A status that was logged is not logged again for this long.
const REPEAT_LOG_AFTER: Duration = Duration::from_secs(600);

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// From the first event of a batch until it is sent: a sweep has many at once.
    pub gather: Duration,
    /// The first wait after a failure, and the longest.
    pub waits: [Duration; 2],
    /// The limit of a request.
    pub request: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timing { gather: seconds(1), waits: [seconds(1), seconds(60)], request: seconds(10) }
    }
}

/// Sends what is in a queue.
#[derive(Debug)]
pub struct Sender {
    queue: Arc<Queue>,
    webhook: Webhook,
    external_url: Option<String>,
    timing: Timing,
    backoff: Backoff,
    /// Whether a failure was logged since the last success.
    is_failing: bool,
    /// Whether one was logged that needs a person.
    is_advised: bool,
    /// The status that was logged last, and when.
    rejected: Option<(u16, Instant)>,
}

impl Sender {
    pub(super) fn new(
        queue: Arc<Queue>,
        webhook: Webhook,
        external_url: Option<&str>,
        timing: Timing,
    ) -> Self {
        let [first, most] = timing.waits;
        let (backoff, external_url) = (Backoff::new(first, most), external_url.map(str::to_owned));
        Sender {
            queue,
            webhook,
            external_url,
            timing,
            backoff,
            is_failing: false,
            is_advised: false,
            rejected: None,
        }
    }

    /// Sends until the queue is closed and empty. After it is closed, nothing is repeated.
    pub fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        // Also after a panic: the end of the process does not wait for events that cannot be sent any more.
        let _end = EndGuard(Arc::clone(&queue));
        while let Some(batch) = queue.next(self.timing.gather) {
            let was_closed = queue.is_closed();
            if let Some(wait) = self.send(&batch) {
                if was_closed {
                    return;
                }
                queue.pause(wait);
            }
        }
    }

    /// Sends a batch. Returns how long to wait if it did not arrive.
    fn send(&mut self, batch: &Batch) -> Option<Duration> {
        let external_url = self.external_url.as_deref();
        let payload =
            Payload::new(self.queue.instance(), external_url, &batch.events, batch.dropped);
        let outcome = match serde_json::to_vec(&payload) {
            Ok(body) => self.webhook.post(&body),
            Err(error) => Outcome::Rejected(0, error.to_string()),
        };
        match outcome {
            Outcome::Sent => {
                self.queue.sent(batch);
                self.backoff.reset();
                self.rejected = None;
                self.is_advised = false;
                if std::mem::take(&mut self.is_failing) {
                    let webhook = self.webhook.name();
                    tracing::info!(webhook, "the receiver accepts notifications again");
                }
                None
            }
            Outcome::Rejected(status, answer) => {
                self.queue.rejected();
                self.backoff.reset();
                self.log_rejection(status, &answer, batch.events.len());
                None
            }
            Outcome::Failed(failure) => {
                self.queue.failed();
                self.log_failure(&failure);
                Some(self.backoff.wait(failure.demanded))
            }
        }
    }

    /// Logs the first failure since a success, and the first that needs a person: others may precede it.
    fn log_failure(&mut self, Failure { problem, advice, .. }: &Failure) {
        let is_first = !std::mem::replace(&mut self.is_failing, true);
        let needs_person = advice.is_some() && !std::mem::replace(&mut self.is_advised, true);
        if is_first || needs_person {
            let (webhook, error) = (self.webhook.name(), problem);
            tracing::warn!(
                webhook,
                error,
                advice,
                "notifications could not be sent: they are retried"
            );
        }
    }

    fn log_rejection(&mut self, status: u16, answer: &str, events: usize) {
        let is_known =
            |(known, at): (u16, Instant)| known == status && at.elapsed() < REPEAT_LOG_AFTER;
        if self.rejected.is_some_and(is_known) {
            return;
        }
        self.rejected = Some((status, Instant::now()));
        let advice = match status {
            300..=399 => "set --notify.webhook to the address that it redirects to",
            404 | 405 | 410 => "set --notify.webhook to an address that accepts POST",
            _ => {
                "the receiver has to accept the JSON of this exporter; others need an adapter in between"
            }
        };
        let webhook = self.webhook.name();
        tracing::error!(
            webhook,
            status,
            answer,
            events,
            "notifications are dropped because the receiver refuses them: {advice}"
        );
    }
}

/// Tells a queue that nothing is sent any more.
struct EndGuard(Arc<Queue>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}
