//! Settings of the webhook that events are sent to.

use std::path::PathBuf;

use yaml_config::diagnostics::{Diagnostics, Report};

use super::options::NotifyOptions;
use crate::notify::url::WebhookUrl;
use crate::notify::{NotifySettings, kinds};

impl NotifyOptions {
    pub(super) fn validate(&self, report: Report<'_>) {
        if let Some(Err(problem)) = self.webhook.as_ref().map(|url| url.parse::<WebhookUrl>()) {
            report("webhook", problem);
        }
        if let Err(problem) = kinds::parse(self.kinds.as_deref()) {
            report("kinds", problem);
        }
    }

    /// The settings, if there is a webhook; other keys are of no use without it.
    pub(super) fn settings(
        self,
        flags: &NotifyOptions,
        diagnostics: &mut Diagnostics<'_>,
    ) -> Option<NotifySettings> {
        let NotifyOptions { webhook, kinds, token_file, ca_file } = self;
        let Some(webhook) = webhook.and_then(|url| url.parse().ok()) else {
            let is_file = |file: &Option<PathBuf>| file.is_some();
            for (key, is_set, is_flag) in [
                ("kinds", kinds.is_some(), flags.kinds.is_some()),
                ("token-file", is_file(&token_file), is_file(&flags.token_file)),
                ("ca-file", is_file(&ca_file), is_file(&flags.ca_file)),
            ] {
                if is_set {
                    let flag = is_flag.then(|| format!("--notify.{key}"));
                    let problem = "nothing is sent without --notify.webhook";
                    diagnostics.add(flag.as_deref(), &[&format!("notify.{key}")], problem);
                }
            }
            return None;
        };
        let kinds = kinds::parse(kinds.as_deref()).unwrap_or_default();
        Some(NotifySettings { webhook, kinds, token_file, ca_file })
    }
}
