//! Where events are sent, and which.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fabric_history::EventKind;

use super::url::WebhookUrl;

/// Where events are sent, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifySettings {
    /// The address of the receiver.
    pub webhook: WebhookUrl,
    /// The kinds of events that are sent.
    pub kinds: BTreeSet<EventKind>,
    /// The file with the bearer token, which is read for each request.
    pub token_file: Option<PathBuf>,
    /// The CA certificates; `None` for those of the system.
    pub ca_file: Option<PathBuf>,
}
