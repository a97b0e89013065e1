//! The exposition: all metrics.
//!
//! The large part, the `fabric`s, is rendered once a sweep and kept compressed; this host's own ports
//! (`host`) are put between them, family by family. The small part that must be current, the exporter's own
//! metrics (`self_metrics`) and the counts of each fabric (`fabric::summary`), is rendered at each scrape
//! and put first. Plain text is not kept: of 25,000 ports it is 102 MB, and its gzip 6 MB. For clients that
//! do not accept gzip it is unpacked while it is sent.

pub mod fabric;
pub mod host;
mod modules;
pub mod process;
pub mod self_metrics;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, SystemTime};

pub use exposition::Format;
use exposition::{Block, Document, Family, Part};
use fabric_observation::SharedState;

use fabric::summary::{self, Summary};
use process::Process;

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

/// Everything that was rendered of one state snapshot.
#[derive(Debug)]
pub struct Exposition {
    board: SharedState,
    fabrics: Arc<[Part<Block>]>,
    host: Arc<[Part<Vec<u8>>]>,
    summaries: Arc<[Summary]>,
    /// Fabrics and host together, for each requested format.
    packed: [OnceLock<Vec<Block>>; 2],
    took: Duration,
}

/// The families of fabrics by name, in the order in which they are exposed.
static POSITIONS: LazyLock<HashMap<String, usize>> =
    LazyLock::new(|| fabric::all_families().map(|it| it.name.into_owned()).zip(0..).collect());

/// The position of a family among others; families that only the host has are last.
fn position(family: &Family) -> usize {
    POSITIONS.get(&*family.name).copied().unwrap_or(usize::MAX)
}

impl Exposition {
    /// Renders a state snapshot.
    pub fn render(board: SharedState) -> Self {
        Self::after(None, board)
    }

    /// Renders what has changed: fabrics of many ports are not rendered again when only the host was read.
    pub fn after(before: Option<&Exposition>, board: SharedState) -> Self {
        let began = std::time::Instant::now();
        let same = before.filter(|before| {
            let (old, new) = (&before.board.fabrics, &board.fabrics);
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| Arc::ptr_eq(old, new))
        });
        let summaries = match same {
            Some(before) => Arc::clone(&before.summaries),
            None => board.fabrics.iter().filter_map(|it| Summary::new(it)).collect(),
        };
        let fabrics = if let Some(before) = same {
            Arc::clone(&before.fabrics)
        } else if board.fabrics.is_empty() {
            // A compressor takes 1 MiB, which a host without a fabric does not need.
            Arc::default()
        } else {
            fabric::render(&board.fabrics).into()
        };
        let host = board.host.as_ref().map(|host| host::render(host)).unwrap_or_default().into();
        let took = match same {
            Some(before) if !before.fabrics.is_empty() => before.took,
            _ => began.elapsed(),
        };
        Exposition { board, fabrics, host, summaries, packed: Default::default(), took }
    }

    /// The response to a scrape now.
    pub fn document(&self, format: Format, process: &Process) -> Document {
        self.document_at(SystemTime::now(), format, process)
    }

    /// The response to a scrape at a time of day, by which the latest sweep is recent or not.
    pub fn document_at(&self, now: SystemTime, format: Format, process: &Process) -> Document {
        let mut fresh = Vec::new();
        for part in self_metrics::render(&self.board, self.took, process) {
            part.write(&mut fresh, format);
        }
        for part in summary::render(&self.summaries, now) {
            part.write(&mut fresh, format);
        }
        let mut document = Document::default();
        document.push(&Block::deflate(&fresh));
        let packed = self.packed[format as usize]
            .get_or_init(|| exposition::join(&self.fabrics, &self.host, position, format));
        for block in packed {
            document.push(block);
        }
        if format == Format::OpenMetrics {
            document.push(&Block::stored(b"# EOF\n"));
        }
        document
    }

    /// Why it is not ready: a fabric was not swept yet, or the host not read, or its devices cannot be listed.
    pub fn unready(&self) -> Option<String> {
        let host = self.board.host.as_ref();
        if self.board.fabrics.iter().any(|observation| observation.stats.sweeps == 0) {
            return Some("the first sweep has not completed".to_owned());
        }
        if host.is_some_and(|host| host.reads == 0) {
            return Some("the devices of this host have not been read".to_owned());
        }
        host.and_then(|host| host.problem().map(str::to_owned))
    }

    /// The state snapshot that was rendered.
    pub fn board(&self) -> &SharedState {
        &self.board
    }
}

/// The latest exposition, shared with the handlers that serve it.
pub type Latest = tokio::sync::watch::Receiver<Arc<Exposition>>;

#[cfg(test)]
mod tests;
