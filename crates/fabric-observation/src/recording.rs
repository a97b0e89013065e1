//! How the recorder of the history fares: numbers that it writes and a scrape reads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why something could not be written to the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another exporter records there.
    Taken,
    /// What is there is no history, or none that this version can write.
    Unusable,
    /// SQLite found the file corrupt.
    Damaged,
    /// So little is free on the disk that it is left alone.
    Full,
    /// The system refused, or the disk failed.
    Io,
    /// SQLite refused: the file is locked, or a table or trigger that somebody added forbids it.
    Database,
    /// A number is beyond what the file's format has.
    Numbers,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Trouble; 7] = [
        Trouble::Taken,
        Trouble::Unusable,
        Trouble::Damaged,
        Trouble::Full,
        Trouble::Io,
        Trouble::Database,
        Trouble::Numbers,
    ];

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Trouble::Taken => "taken",
            Trouble::Unusable => "unusable",
            Trouble::Damaged => "damaged",
            Trouble::Full => "full",
            Trouble::Io => "io",
            Trouble::Database => "database",
            Trouble::Numbers => "numbers",
        }
    }
}

/// The recorder's account of its own work. It stands here, with the board, for those who record and
/// those who tell do not know of each other.
#[derive(Debug, Default)]
pub struct Recording {
    bytes: AtomicU64,
    frames: AtomicU64,
    events: AtomicU64,
    errors: [AtomicU64; Trouble::ALL.len()],
    missed: AtomicU64,
    took: AtomicU64,
    /// Nothing until it was measured: a disk of which nothing is known is not a full one.
    free: OnceLock<AtomicU64>,
    floor: AtomicU64,
    /// Nothing while the folder cannot be read.
    set_aside: OnceLock<AtomicU64>,
}

macro_rules! numbers {
    ($($get:ident $add:ident $about:literal;)+) => {
        impl Recording {
            $(
                #[doc = $about]
                pub fn $get(&self) -> u64 {
                    self.$get.load(Ordering::Relaxed)
                }

                #[doc = concat!("Adds to: ", $about)]
                pub fn $add(&self, more: u64) {
                    self.$get.fetch_add(more, Ordering::Relaxed);
                }
            )+
        }
    };
}

numbers! {
    frames add_frames "Frames of counters that were written.";
    events add_events "Events that were written.";
    missed add_missed "Sweeps that came while an earlier one was still being written.";
}

impl Recording {
    /// Times that something could not be written, for whatever reason.
    pub fn errors(&self) -> u64 {
        Trouble::ALL.into_iter().map(|trouble| self.errors_by(trouble)).sum()
    }

    /// Times that something could not be written for this reason.
    pub fn errors_by(&self, trouble: Trouble) -> u64 {
        self.errors[trouble as usize].load(Ordering::Relaxed)
    }

    /// Counts one more of them.
    pub fn add_error(&self, trouble: Trouble) {
        self.errors[trouble as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many damaged files lie beside the file, once that is known.
    pub fn set_aside(&self) -> Option<u64> {
        self.set_aside.get().map(|count| count.load(Ordering::Relaxed))
    }

    /// Takes down how many damaged files lie beside the file.
    pub fn count_set_aside(&self, count: u64) {
        self.set_aside.get_or_init(|| AtomicU64::new(count)).store(count, Ordering::Relaxed);
    }

    /// How large the file is, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes down how large the file is.
    pub fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// How many bytes of its disk are free, once that is known.
    pub fn free(&self) -> Option<u64> {
        self.free.get().map(|free| free.load(Ordering::Relaxed))
    }

    /// Takes down how many bytes of its disk are free.
    pub fn set_free(&self, bytes: u64) {
        self.free.get_or_init(|| AtomicU64::new(bytes)).store(bytes, Ordering::Relaxed);
    }

    /// How many free bytes are left alone.
    pub fn floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    /// Takes down how many free bytes are left alone.
    pub fn set_floor(&self, bytes: u64) {
        self.floor.store(bytes, Ordering::Relaxed);
    }

    /// How long it took to write the latest sweep.
    pub fn took(&self) -> Duration {
        Duration::from_nanos(self.took.load(Ordering::Relaxed))
    }

    /// Takes down how long it took to write the latest sweep.
    pub fn set_took(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.took.store(nanos, Ordering::Relaxed);
    }
}
