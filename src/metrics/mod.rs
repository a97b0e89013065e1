//! The exposition: all metrics.
//!
//! The large part, the `fabric`s, is rendered once a sweep and kept compressed; this host's own ports
//! (`host`) are put between them, family by family. The small part that must be current, the exporter's own
//! metrics (`self_metrics`) and the counts of each fabric (`fabric::summary`), is rendered at each scrape
//! and put first. A scrape may select groups of families, and a shard of the nodes (`selection`). Plain text is not
//! kept: of 25,000 ports it is 102 MB, and its gzip 6 MB. For clients that
//! do not accept gzip it is unpacked while it is sent.

pub mod fabric;
pub mod host;
mod modules;
pub mod process;
mod progress;
mod requested;
pub mod selection;
pub mod self_metrics;
pub mod throughput;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

pub use exposition::Format;
use exposition::{Block, Document, Family, Part};
use fabric_observation::SharedState;
use fabric_observation::host::HostObservation;

use crate::api::condition;
use crate::api::model::Condition;
use fabric::summary::{self, Summary};
use process::Process;
use progress::Progress;
use requested::RequestedShards;
use selection::{Group, MAX_SHARDS, Selection, Shard};
use throughput::Trends;

/// A family: its name, type, labels and help, or a constant.
macro_rules! family {
    ($name:literal $kind:ident $labels:tt $help:literal) => {
        Family::new($name, MetricType::$kind, &$labels, $help)
    };
    ($family:ident) => {
        $family
    };
}

/// A table of families, each with what writes its samples of an item.
macro_rules! families {
    ($(#[$doc:meta])* $vis:vis $table:ident: $item:ty;
     $($name:tt $($kind:ident $labels:tt $help:literal)? => $write:expr;)+) => {
        $(#[$doc])*
        $vis const $table: &[(Family, fn(&$item, &mut Samples<'_>))] =
            &[$((family!($name $($kind $labels $help)?), $write)),+];
    };
}
use {families, family};

/// The families of the fabrics, in slices of nodes: shard `k` of `n` is every `n`th slice from the `k`th on.
type Slices = Arc<[Vec<Part<Block>>]>;

/// The fabrics of one state snapshot.
#[derive(Debug)]
struct RenderedFabrics {
    slices: Slices,
    /// More slices, rendered when somebody requests more shards than were requested before: by the logarithm of
    /// their number.
    finer: [OnceLock<Slices>; MAX_SHARDS.ilog2() as usize + 1],
    took: Duration,
}

/// Everything that was rendered of one state snapshot.
#[derive(Debug)]
pub struct Exposition {
    board: SharedState,
    fabrics: Arc<RenderedFabrics>,
    host: Arc<[Part<Vec<u8>>]>,
    summaries: Arc<[Summary]>,
    /// As the latest sweeps found them.
    conditions: Arc<[Condition]>,
    took: Duration,
    /// Fabrics and host together, for the selections that were requested.
    joined: Mutex<HashMap<(Selection, Format), Joined>>,
    /// The numbers of shards that were requested lately.
    shards: Arc<RequestedShards>,
    progress: Progress,
    /// What the hosts of each fabric sent in the latest sweeps.
    pub trends: Trends,
    /// The reading of the host before the latest one.
    pub previous_host: Option<Arc<HostObservation>>,
}

type Joined = Arc<[Block]>;

/// The number of selections that are kept joined: those of some scrape jobs with eight shards. A client may send any
/// number of others.
const KEPT: usize = 32;

/// The families of fabrics by name: their places in the exposition, and their groups.
static FAMILIES: LazyLock<HashMap<String, (usize, Group)>> = LazyLock::new(|| {
    let places = fabric::all_families().zip(0..);
    places.map(|((family, group), place)| (family.name.into_owned(), (place, group))).collect()
});

/// The position of a family among others; families that only the host has are last.
fn position(family: &Family) -> usize {
    FAMILIES.get(&*family.name).map_or(usize::MAX, |(place, _)| *place)
}

/// The group of a family of fabrics.
pub fn group(family: &Family) -> Option<Group> {
    FAMILIES.get(&*family.name).map(|(_, group)| *group)
}

impl Exposition {
    /// Renders a state snapshot.
    pub fn render(board: SharedState) -> Self {
        Self::after(None, board)
    }

    /// Renders what has changed: fabrics of many ports are not rendered again when only the host was read.
    pub fn after(before: Option<&Exposition>, board: SharedState) -> Self {
        Self::after_at(Instant::now(), before, board)
    }

    fn after_at(began: Instant, before: Option<&Exposition>, board: SharedState) -> Self {
        let shards = before.map(|it| Arc::clone(&it.shards)).unwrap_or_default();
        let progress = Progress::after(before.map(|it| (&it.progress, &it.board)), &board, began);
        let same = before.filter(|before| {
            let (old, new) = (&before.board.fabrics, &board.fabrics);
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| Arc::ptr_eq(old, new))
        });
        let summaries = match same {
            Some(before) => Arc::clone(&before.summaries),
            None => board.fabrics.iter().filter_map(|it| Summary::new(it)).collect(),
        };
        let conditions = match same {
            Some(before) => Arc::clone(&before.conditions),
            None => board.fabrics.iter().map(|it| condition::latest(it)).collect(),
        };
        let fabrics = if let Some(before) = same {
            Arc::clone(&before.fabrics)
        } else {
            let slices = slices(&board, shards.most(began));
            Arc::new(RenderedFabrics { slices, finer: Default::default(), took: began.elapsed() })
        };
        let host = board.host.as_ref().map(|host| host::render(host)).unwrap_or_default().into();
        let trends = match same {
            Some(before) => before.trends.clone(),
            None => before.map_or_else(Trends::default, |it| it.trends.clone()).with(&board),
        };
        let is_same_host = |before: &Exposition| match (&before.board.host, &board.host) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            _ => false,
        };
        let previous_host = before.and_then(|before| {
            let earlier =
                if is_same_host(before) { &before.previous_host } else { &before.board.host };
            earlier.clone()
        });
        // Without a fabric, the host is all that is rendered.
        let took = if board.fabrics.is_empty() { began.elapsed() } else { fabrics.took };
        let joined = Mutex::default();
        Exposition {
            board,
            fabrics,
            host,
            summaries,
            conditions,
            took,
            joined,
            shards,
            progress,
            trends,
            previous_host,
        }
    }

    /// Whether a selection can be served without rendering the fabrics again, in as many slices as it has shards.
    pub fn is_ready(&self, selection: &Selection) -> bool {
        let count = selection.shard.count;
        self.fabrics.slices.len() >= count
            || self.board.fabrics.is_empty()
            || self.fabrics.finer[count.ilog2() as usize].get().is_some()
    }

    /// The response to a scrape now.
    pub fn document(&self, selection: &Selection, format: Format, process: &Process) -> Document {
        self.document_at(SystemTime::now(), selection, format, process)
    }

    /// The response to a scrape at a time of day, by which the latest sweep is recent or not.
    pub fn document_at(
        &self,
        now: SystemTime,
        selection: &Selection,
        format: Format,
        process: &Process,
    ) -> Document {
        let mut fresh = Vec::new();
        if selection.has(Group::Exporter) {
            self_metrics::shards(selection.shard).write(&mut fresh, format);
            if selection.is_first() {
                for part in self_metrics::render(&self.board, self.took, process) {
                    part.write(&mut fresh, format);
                }
            }
        }
        if selection.has(Group::Fabric) && selection.is_first() {
            for part in summary::render(&self.summaries, now) {
                part.write(&mut fresh, format);
            }
        }
        let mut document = Document::default();
        document.push(&Block::deflate(&fresh));
        for block in &*self.joined(selection, format) {
            document.push(block);
        }
        if format == Format::OpenMetrics {
            document.push(&Block::stored(b"# EOF\n"));
        }
        document
    }

    /// The selected families of fabrics and host.
    fn joined(&self, selection: &Selection, format: Format) -> Joined {
        let Shard { index, count } = selection.shard;
        self.shards.note(count, Instant::now());
        let kept = || self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (selection.clone(), format);
        if let Some(joined) = kept().get(&key) {
            return Arc::clone(joined);
        }
        let fabrics = &self.fabrics;
        let slices = if fabrics.slices.len() >= count {
            &fabrics.slices
        } else {
            fabrics.finer[count.ilog2() as usize].get_or_init(|| slices(&self.board, count))
        };
        let is_selected =
            |part: &&Part<Block>| group(&part.family).is_some_and(|group| selection.has(group));
        let selected = slices.iter().skip(index).step_by(count);
        let selected = selected.map(|slice| slice.iter().filter(is_selected)).collect();
        let has_host = selection.has(Group::Host) && selection.is_first();
        let host = self.host.iter().filter(|_| has_host);
        let joined: Joined = exposition::join(selected, host, position, format).into();
        let mut kept = kept();
        if kept.len() < KEPT {
            kept.insert(key, Arc::clone(&joined));
        }
        joined
    }

    /// Why it is not ready: a fabric was not swept yet, or the host not read, its devices cannot be listed, or sweeps or
    /// reads stand still.
    pub fn unready(&self) -> Option<String> {
        self.unready_at(Instant::now())
    }

    fn unready_at(&self, now: Instant) -> Option<String> {
        let host = self.board.host.as_ref();
        if self.board.fabrics.iter().any(|observation| observation.stats.sweeps == 0) {
            return Some("the first sweep has not completed".to_owned());
        }
        if host.is_some_and(|host| host.reads == 0) {
            return Some("the devices of this host have not been read".to_owned());
        }
        let problem = host.and_then(|host| host.problem().map(str::to_owned));
        problem.or_else(|| self.progress.standstill(&self.board, now))
    }

    /// The conditions of the fabrics at a time, by which the latest sweep is recent or not.
    pub fn conditions(&self, now: SystemTime) -> impl Iterator<Item = Condition> + '_ {
        let fabrics = self.board.fabrics.iter().zip(&*self.conditions);
        fabrics.map(move |(observation, latest)| latest.clone().aged(observation, now))
    }

    /// The state snapshot that was rendered.
    pub fn board(&self) -> &SharedState {
        &self.board
    }
}

/// Renders the fabrics of a state snapshot.
fn slices(board: &SharedState, count: usize) -> Slices {
    // A compressor takes 1 MiB, which a host without a fabric does not need.
    if board.fabrics.is_empty() {
        return Slices::default();
    }
    fabric::render(&board.fabrics, count).into()
}

/// The latest exposition, shared with the handlers that serve it.
pub type Latest = tokio::sync::watch::Receiver<Arc<Exposition>>;

#[cfg(test)]
mod tests;
