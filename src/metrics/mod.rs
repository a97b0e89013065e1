//! The exposition: a snapshot as metrics.
//!
//! What is large, the ports of fabrics ([`fabrics`]) and what they come to ([`findings`]), is rendered
//! once a snapshot and kept compressed; this host's own ports ([`host`]) are put between them, family by family
//! ([`part`]). What is small and is to be fresh, the exporter's account of itself ([`about`]) and the counts
//! of each fabric ([`summary`]), is rendered at each scrape and put before it. Plain text is not kept: on 25,000 ports it is 102 MB, and its
//! gzip 6 MB. Whoever cannot take gzip gets it unpacked on the way out.

pub mod about;
pub mod body;
pub mod deflated;
pub mod fabrics;
pub mod findings;
pub mod host;
mod line;
pub mod negotiate;
pub mod part;
pub mod process;
pub mod reference;
pub mod subnet;
pub mod summary;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use fabric_observation::SharedState;

use deflated::{Block, Trailer};
pub use exposition::{Format, family};
use part::Part;
use summary::Summary;

/// Everything that was rendered of one board.
#[derive(Debug)]
pub struct Exposition {
    board: SharedState,
    fabrics: Arc<[Part<Block>]>,
    host: Arc<[Part<String>]>,
    summaries: Arc<[Summary]>,
    /// Both together, for each format that somebody asked for.
    packed: [OnceLock<Vec<Block>>; 2],
    took: Duration,
}

/// A whole answer to a scrape, in compressed pieces.
#[derive(Debug)]
pub struct Document {
    /// Deflated pieces; one after the other they are one stream.
    pub pieces: VecDeque<Bytes>,
    /// Ends the stream as gzip wants it.
    pub trailer: Trailer,
}

impl Exposition {
    /// Renders a board, and takes down how long that took.
    pub fn render(board: SharedState) -> Self {
        Self::after(None, board)
    }

    /// Renders what is not as it was: fabrics of many ports are not rendered anew for a look at the
    /// host.
    pub fn after(before: Option<&Exposition>, board: SharedState) -> Self {
        let began = std::time::Instant::now();
        let same = before.filter(|before| {
            let (old, new) = (&before.board.fabrics, &board.fabrics);
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| Arc::ptr_eq(old, new))
        });
        let summaries = match same {
            Some(before) => Arc::clone(&before.summaries),
            None => board.fabrics.iter().filter_map(|it| Summary::of(it)).collect(),
        };
        let fabrics = if let Some(before) = same {
            Arc::clone(&before.fabrics)
        } else if board.fabrics.is_empty() {
            // What compresses takes 1 MiB, which a host's own devices do without.
            Arc::default()
        } else {
            let mut parts = fabrics::render(&board.fabrics);
            parts.extend(findings::render(&board.fabrics));
            parts.extend(subnet::render(&board.fabrics));
            parts.into()
        };
        let host = board.host.as_ref().map(|host| host::render(host)).unwrap_or_default().into();
        let took = match same {
            Some(before) if !before.fabrics.is_empty() => before.took,
            _ => began.elapsed(),
        };
        Exposition { board, fabrics, host, summaries, packed: Default::default(), took }
    }

    /// The answer to a scrape now.
    pub fn document(&self, format: Format, process: &process::Process) -> Document {
        self.document_at(SystemTime::now(), format, process)
    }

    /// The answer to a scrape at a time of day, by which the latest sweep is recent or not.
    pub fn document_at(
        &self,
        now: SystemTime,
        format: Format,
        process: &process::Process,
    ) -> Document {
        let mut about = about::render(&self.board, self.took, process, format);
        about.extend(summary::render(&self.summaries, now, format).into_bytes());
        let mut document = Document { pieces: VecDeque::new(), trailer: Trailer::default() };
        document.push(&Block::deflate(&about));
        let packed = &self.packed[format as usize];
        for block in packed.get_or_init(|| part::join(&self.fabrics, &self.host, format)) {
            document.push(block);
        }
        if format == Format::OpenMetrics {
            document.push(&Block::stored(b"# EOF\n"));
        }
        document
    }

    /// Why it is not ready: a fabric was not swept yet, or the host not looked at, or its devices cannot be
    /// listed.
    pub fn unready(&self) -> Option<String> {
        let host = self.board.host.as_ref();
        if self.board.fabrics.iter().any(|observation| observation.stats.sweeps == 0) {
            return Some("the first sweep is not at its end yet".to_owned());
        }
        if host.is_some_and(|host| host.reads == 0) {
            return Some("this host's devices were not read yet".to_owned());
        }
        host.and_then(|host| host.problem().map(str::to_owned))
    }

    /// The board that was rendered.
    pub fn board(&self) -> &SharedState {
        &self.board
    }
}

impl Document {
    fn push(&mut self, block: &Block) {
        self.pieces.push_back(block.bytes.clone());
        self.trailer.add(block);
    }

    /// How many bytes the plain text has.
    pub fn plain_len(&self) -> u64 {
        self.trailer.plain_len()
    }
}

/// The latest exposition, shared with those who serve it.
pub type Latest = tokio::sync::watch::Receiver<Arc<Exposition>>;

#[cfg(test)]
mod tests;
