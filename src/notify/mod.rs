//! Sends events to a webhook, for sites without Alertmanager.
//!
//! The thread that detects events puts them into a `queue`, and never waits; a thread of its own (`sender`) sends
//! them in batches (`payload`), and repeats what failed. So neither a sweep, a scrape nor the recorder waits for a
//! receiver. The queue is in memory: what a receiver did not get is lost when the exporter ends. Kept in a file it
//! would depend on the disk, whose failure is one of the things to tell.

mod backoff;
pub mod kinds;
mod payload;
pub mod queue;
mod secrets;
mod sender;
mod settings;
#[cfg(test)]
mod tests;
pub mod url;
mod webhook;

use std::sync::Arc;

use fabric_history::record::listener::EventListener;

pub use queue::Queue;
pub use sender::Sender;
pub use settings::NotifySettings;

use payload::{Pages, PayloadEvent};
use queue::{Limits, QueueInput};
use sender::Timing;
use webhook::Webhook;

/// What takes events, and sends them.
#[derive(Debug)]
pub struct Notifications {
    /// The events that are not sent yet, and what became of the others.
    pub queue: Arc<Queue>,
    /// Puts events into the queue, until it is dropped.
    pub listener: EventListener,
    /// Sends what is in the queue, on a thread of its own.
    pub sender: Sender,
}

impl Notifications {
    /// Reads the certificates. Events link to pages below this address of the exporter.
    pub fn new(settings: &NotifySettings, external_url: Option<&str>) -> Result<Self, String> {
        Notifications::with(settings, external_url, Limits::default(), Timing::default())
    }

    fn with(
        settings: &NotifySettings,
        external_url: Option<&str>,
        limits: Limits,
        timing: Timing,
    ) -> Result<Self, String> {
        let webhook = Webhook::new(settings, timing.request)?;
        let queue = Arc::new(Queue::new(limits));
        let (input, pages) = (QueueInput::new(&queue), Pages::new(external_url));
        let kinds = settings.kinds.clone();
        let listener = EventListener::new(move |fabric, event| {
            if kinds.contains(&event.kind) {
                let event = event.of(fabric);
                input.push(|id| PayloadEvent { id, url: pages.of(&event), event });
            }
        });
        let sender = Sender::new(Arc::clone(&queue), webhook, external_url, timing);
        Ok(Notifications { queue, listener, sender })
    }
}
