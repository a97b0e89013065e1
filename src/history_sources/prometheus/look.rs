//! A window, as it is looked at: up to what time it is there, and how much is asked for at once.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use fabric_history::model::{Window, time};
use fabric_history::source::AskError;
use ib_fabric::topology::{End, LinkId};
use ib_mad::Guid;

use super::client::{Client, Labels, Run, Sample, range};
use super::matchers::{self, selector};

/// So long before a window is looked for what was before its first sample; a congestion that was
/// gone for no longer is the same one, too.
const MARGIN: Duration = Duration::from_secs(300);

/// How many samples an answer may have, about: some 50 MB.
const SAMPLES: usize = 2_000_000;

/// How many things are named in a question, at most.
const NAMED: usize = 300;

/// A window in which not every sample of every port is looked at.
const LONG: Duration = Duration::from_secs(2 * 3600);

/// More ports do not count the same error in any but a bad day.
const MANY: usize = 5000;

/// From one scrape to the next where nobody says.
const SCRAPE_MILLIS: u64 = 15_000;

/// See the module.
#[derive(Debug)]
pub(super) struct Look<'a> {
    pub client: &'a Client,
    /// What was asked for, as far as it is over.
    pub window: Window,
    /// The same with what is needed before it.
    wide: Window,
    /// How many series are asked for at once.
    pub at_once: usize,
}

impl<'a> Look<'a> {
    /// None if the window is still to come.
    pub(super) fn new(client: &'a Client, window: Window) -> Result<Option<Self>, AskError> {
        let to = window.to.min(client.now()?);
        if to < window.from {
            return Ok(None);
        }
        let window = Window { to, ..window };
        let from = window.from.checked_sub(MARGIN).unwrap_or(SystemTime::UNIX_EPOCH);
        let wide = Window { from, to };
        let mut look = Look { client, window, wide, at_once: 1 };
        // All who see a fabric have series of it.
        let counted = look.vector(&format!(
            "max(sum by (fabric) (count_over_time(infiniband_sweep_timestamp_seconds{0}))) or \
             max(count_over_time(infiniband_host_read_timestamp_seconds{0}))",
            look.range()
        ))?;
        #[expect(clippy::cast_sign_loss, reason = "a count is not negative")]
        let each = counted.first().map_or_else(
            || {
                usize::try_from(wide.length().as_millis() as u64 / SCRAPE_MILLIS)
                    .unwrap_or(usize::MAX)
            },
            |sample| sample.value as usize,
        );
        look.at_once = (SAMPLES / each.max(1)).clamp(1, NAMED);
        Ok(Some(look))
    }

    /// The window with what is needed before it, as PromQL has it.
    pub(super) fn range(&self) -> String {
        range(self.wide)
    }

    /// Whether a sample's time lies in the window itself.
    pub(super) fn has(&self, at: u64) -> bool {
        (time::millis(self.window.from)..=time::millis(self.window.to)).contains(&at)
    }

    /// What a query comes to at the window's end.
    pub(super) fn vector(&self, query: &str) -> Result<Vec<Sample>, AskError> {
        self.client.vector(query, self.window.to)
    }

    /// All samples of a metric, portion by portion.
    pub(super) fn runs(
        &self,
        metric: &str,
        portions: &[Vec<String>],
    ) -> Result<Vec<Run>, AskError> {
        let mut runs = Vec::new();
        for matchers in portions {
            runs.extend(self.client.runs(&selector(metric, matchers), self.wide)?);
        }
        Ok(runs)
    }

    /// The samples of those series of a metric that changed at all, of links.
    pub(super) fn changed_links(&self, metric: &str, only: &str) -> Result<Vec<Run>, AskError> {
        let of = selector(metric, &[only.to_owned()]);
        let query = format!("max by (link) (changes({of}{})) > 0", self.range());
        let changed = self.vector(&query)?;
        self.runs(metric, &self.links(&changed))
    }

    /// The same of ports' counters.
    pub(super) fn grown_ports(&self, metric: &str, only: &str) -> Result<Vec<Run>, AskError> {
        let of = selector(metric, &[only.to_owned()]);
        let differ = if self.wide.length() > LONG { self.differing(&of)? } else { None };
        let changed: BTreeSet<End> = if let Some(differ) = differ {
            differ
        } else {
            let query = format!("max by (guid, port) (changes({of}{})) > 0", self.range());
            self.vector(&query)?.iter().filter_map(|sample| end(&sample.labels)).collect()
        };
        let runs = self.runs(metric, &matchers::ports(&changed, self.at_once))?;
        let is_changed = |run: &Run| end(&run.labels).is_some_and(|end| changed.contains(&end));
        Ok(runs.into_iter().filter(is_changed).collect())
    }

    /// Ports whose counters are not the same at all quarters of the window: totals do not come back
    /// to what they were. To look at every sample of a long one takes a large fabric's server minutes.
    /// None if that is too many: where nobody was scraped at a quarter, all differ.
    fn differing(&self, of: &str) -> Result<Option<BTreeSet<End>>, AskError> {
        let step = (self.wide.length().as_secs() / 4).max(1);
        let since = Duration::from_secs(step * 3);
        let from = self.wide.to.checked_sub(since).unwrap_or(self.wide.from);
        let before = format!("{of} offset {step}s");
        let query = format!(
            "max by (guid, port) ({of} != {before} or {of} unless {before} or {before} unless {of})"
        );
        let runs = self.client.steps(&query, Window { from, ..self.wide }, step)?;
        let differ: BTreeSet<End> = runs.iter().filter_map(|run| end(&run.labels)).collect();
        Ok(Some(differ).filter(|differ| differ.len() <= MANY))
    }

    /// The links that samples name, as portions of a question.
    pub(super) fn links(&self, samples: &[Sample]) -> Vec<Vec<String>> {
        let named = samples.iter().filter_map(|sample| sample.labels.get("link"));
        matchers::one_of("link", named, self.at_once)
    }

    /// The samples at the window's end and, of what has none there, the latest before it.
    pub(super) fn latest(
        &self,
        metric: &str,
        matchers: &[String],
        label: &str,
    ) -> Result<Vec<Sample>, AskError> {
        let of = selector(metric, matchers);
        let mut samples = self.vector(&of)?;
        let gone = self.vector(&format!(
            "max by ({label}) (last_over_time({of}{0})) unless max by ({label}) ({of})",
            self.range()
        ))?;
        let gone: Vec<&String> =
            gone.iter().filter_map(|sample| sample.labels.get(label)).collect();
        let portions = matchers::one_of(label, gone, self.at_once);
        let portions: Vec<Vec<String>> =
            portions.into_iter().map(|more| [matchers.to_vec(), more].concat()).collect();
        let runs = self.runs(metric, &portions)?;
        let last_of = |name: Option<&String>| {
            let same = runs.iter().filter(|run| run.labels.get(label) == name);
            same.filter_map(|run| run.points.last()).map(|(at, _)| *at).max()
        };
        for run in &runs {
            if let Some((at, value)) = run.points.last()
                && Some(*at) == last_of(run.labels.get(label))
            {
                samples.push(Sample { labels: run.labels.clone(), value: *value });
            }
        }
        Ok(samples)
    }
}

/// The fabric that labels name.
pub(super) fn fabric(labels: &Labels) -> Option<String> {
    labels.get("fabric").cloned()
}

/// The node that labels name.
pub(super) fn guid(labels: &Labels) -> Option<Guid> {
    labels.get("guid")?.parse().ok()
}

/// The port that labels name.
pub(super) fn end(labels: &Labels) -> Option<End> {
    end_at(labels, "guid", "port")
}

/// The same by other labels.
pub(super) fn end_at(labels: &Labels, guid: &str, port: &str) -> Option<End> {
    Some((labels.get(guid)?.parse().ok()?, labels.get(port)?.parse().ok()?))
}

/// The fabric and the link.
pub(super) fn fabric_link(labels: &Labels) -> Option<(String, LinkId)> {
    Some((fabric(labels)?, labels.get("link")?.parse().ok()?))
}

/// The fabric and the port.
pub(super) fn fabric_end(labels: &Labels) -> Option<(String, End)> {
    Some((fabric(labels)?, end(labels)?))
}
