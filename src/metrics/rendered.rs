//! All metrics, rendered.
//!
//! Of the large part, the `fabric`s, what has changed is rendered once a sweep and kept compressed; this host's own ports
//! (`host`) are put between them, family by family. The small part that must be current, the exporter's own
//! metrics (`self_metrics`), the counts of each fabric (`fabric::summary`) and the jobs at bad links (`fabric::at_risk`),
//! is rendered at each scrape and put first. A scrape may select groups of families, and a shard of the nodes (`selection`). Plain text is not
//! kept: of 25,000 ports it is 102 MB, and its gzip 6 MB. For clients that
//! do not accept gzip it is unpacked while it is sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use exposition::{Block, Chunk, Document, Format, Part, Rendered, deflate_lines};
use fabric_api::impact::LinkCounts;
use fabric_observation::SharedState;

use super::fabric::Slice;
use super::fabric::at_risk;
use super::fabric::summary::{self, Summary};
use super::family_order::{group, position};
use super::own::OwnMetrics;
use super::requested::RequestedShards;
use super::selection::{Group, MAX_SHARDS, Selection, Shard};
use super::{fabric, host, self_metrics};

/// The families of the fabrics, in slices of nodes: shard `k` of `n` is every `n`th slice from the `k`th on.
type Slices = Arc<[Slice]>;

/// The fabrics of one state snapshot.
#[derive(Debug)]
struct RenderedFabrics {
    slices: Slices,
    /// More slices, rendered when somebody requests more shards than were requested before: by the logarithm of
    /// their number.
    finer: [OnceLock<Slices>; MAX_SHARDS.ilog2() as usize + 1],
    duration: Duration,
    rendered: Rendered,
}

/// The metrics of one state, rendered.
#[derive(Debug)]
pub struct RenderedMetrics {
    state: SharedState,
    fabrics: Arc<RenderedFabrics>,
    host: Arc<[Part<Vec<u8>>]>,
    summaries: Arc<[Summary]>,
    at_risk: Arc<[LinkCounts]>,
    duration: Duration,
    /// Fabrics and host together, for the selections that were requested.
    joined: Mutex<HashMap<(Selection, Format), Joined>>,
    /// The numbers of shards that were requested lately.
    shards: Arc<RequestedShards>,
}

type Joined = Arc<Document>;

/// The number of selections that are kept joined: those of some scrape jobs with eight shards. A client may send any
/// number of others.
const MAX_JOINED: usize = 32;

impl RenderedMetrics {
    /// Renders a state.
    pub fn first(state: SharedState) -> Self {
        Self::render(Instant::now(), None, state)
    }

    /// Renders what has changed in the next state: fabrics of many ports are not rendered again when only the host was
    /// read.
    #[must_use]
    pub fn next(&self, state: SharedState) -> Self {
        Self::render(Instant::now(), Some(self), state)
    }

    fn render(began: Instant, previous: Option<&RenderedMetrics>, state: SharedState) -> Self {
        let shards = previous.map(|previous| Arc::clone(&previous.shards)).unwrap_or_default();
        let unchanged = previous.filter(|previous| previous.state.has_same_fabrics(&state));
        let (summaries, fabrics) = if let Some(previous) = unchanged {
            (Arc::clone(&previous.summaries), Arc::clone(&previous.fabrics))
        } else {
            let summaries =
                state.fabrics.iter().filter_map(|fabric| Summary::new(fabric)).collect();
            let last = previous.map(|it| &*it.fabrics.slices).unwrap_or_default();
            let (slices, rendered) = slices(&state, shards.most(began), last);
            let (finer, duration) = (Default::default(), began.elapsed());
            (summaries, Arc::new(RenderedFabrics { slices, finer, duration, rendered }))
        };
        let has_same_jobs = |previous: &&RenderedMetrics| previous.state.has_same_jobs(&state);
        let at_risk = match unchanged.filter(has_same_jobs) {
            Some(previous) => Arc::clone(&previous.at_risk),
            None => at_risk::count(&state).into(),
        };
        let host = state.host.as_ref().map(|host| host::render(host)).unwrap_or_default().into();
        // Without a fabric, the host is all that is rendered.
        let duration = if state.fabrics.is_empty() { began.elapsed() } else { fabrics.duration };
        let joined = Mutex::default();
        RenderedMetrics { state, fabrics, host, summaries, at_risk, duration, joined, shards }
    }

    /// How long the fabrics took to render, or the host without fabrics.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// How much of the fabrics was rendered again when they last changed.
    pub fn rendered(&self) -> Rendered {
        self.fabrics.rendered
    }

    /// Whether a selection can be served without rendering the fabrics again, in as many slices as it has shards.
    pub fn is_ready(&self, selection: &Selection) -> bool {
        let count = selection.shard.count;
        self.fabrics.slices.len() >= count
            || self.state.fabrics.is_empty()
            || self.fabrics.finer[count.ilog2() as usize].get().is_some()
    }

    /// The response to a scrape now.
    pub fn document(&self, selection: &Selection, format: Format, own: &OwnMetrics) -> Document {
        self.document_at(SystemTime::now(), selection, format, own)
    }

    /// The response to a scrape at a time of day, by which the latest sweep is recent or not.
    pub fn document_at(
        &self,
        now: SystemTime,
        selection: &Selection,
        format: Format,
        own: &OwnMetrics,
    ) -> Document {
        let mut fresh = Vec::new();
        if selection.has(Group::Exporter) {
            self_metrics::shards(selection.shard).write(&mut fresh, format);
            if selection.is_first() {
                for part in self_metrics::render(&self.state, &own.external_url) {
                    part.write(&mut fresh, format);
                }
                own.write(&self.state, self.duration, &mut fresh, format);
            }
        }
        if selection.has(Group::Fabric) && selection.is_first() {
            for part in summary::render(&self.summaries, now) {
                part.write(&mut fresh, format);
            }
        }
        if selection.has(Group::Links) && selection.is_first() {
            for part in at_risk::render(&self.state, &self.at_risk, now) {
                part.write(&mut fresh, format);
            }
        }
        let mut document = Document::default();
        document.push(&deflate_lines(&fresh));
        document.append(&self.joined(selection, format));
        if format == Format::OpenMetrics {
            document.push(&Block::stored(b"# EOF\n"));
        }
        document
    }

    /// The selected families of fabrics and host.
    fn joined(&self, selection: &Selection, format: Format) -> Joined {
        let Shard { index, count } = selection.shard;
        self.shards.note(count, Instant::now());
        let joined_before = || self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (selection.clone(), format);
        if let Some(joined) = joined_before().get(&key) {
            return Arc::clone(joined);
        }
        let fabrics = &self.fabrics;
        let slices = if fabrics.slices.len() >= count {
            &fabrics.slices
        } else {
            let finer = &fabrics.finer[count.ilog2() as usize];
            finer.get_or_init(|| slices(&self.state, count, &[]).0)
        };
        let is_selected = |part: &&Part<Vec<Chunk>>| {
            group(&part.family).is_some_and(|group| selection.has(group))
        };
        let selected = slices.iter().skip(index).step_by(count);
        let selected =
            selected.map(|slice| slice.parts(position).into_iter().filter(is_selected)).collect();
        let has_host = selection.has(Group::Host) && selection.is_first();
        let host = self.host.iter().filter(|_| has_host);
        let joined: Joined = exposition::join(selected, host, position, format).into();
        let mut cache = joined_before();
        if cache.len() < MAX_JOINED {
            cache.insert(key, Arc::clone(&joined));
        }
        joined
    }
}

/// Renders the fabrics of a state snapshot, after those of another one.
fn slices(state: &SharedState, count: usize, last: &[Slice]) -> (Slices, Rendered) {
    if state.fabrics.is_empty() {
        return Default::default();
    }
    let (slices, rendered) = fabric::render(&state.fabrics, count, last);
    (slices.into(), rendered)
}

#[cfg(test)]
mod incremental_tests;
#[cfg(test)]
pub(super) mod tests;
