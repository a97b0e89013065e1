//! Statistics of the history's recorder, which it writes and a scrape reads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why something could not be written to the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecorderErrorKind {
    /// Another exporter records there.
    Taken,
    /// The file is not a history, or not one that this version can write.
    Unusable,
    /// SQLite found the file corrupt.
    Damaged,
    /// The disk has too little free space.
    Full,
    /// A system call failed.
    Io,
    /// SQLite failed: the file is locked, or an added table or trigger forbids it.
    Database,
    /// A number exceeds the file's format.
    Numbers,
}

impl RecorderErrorKind {
    /// All of them.
    pub const ALL: [RecorderErrorKind; 7] = [
        RecorderErrorKind::Taken,
        RecorderErrorKind::Unusable,
        RecorderErrorKind::Damaged,
        RecorderErrorKind::Full,
        RecorderErrorKind::Io,
        RecorderErrorKind::Database,
        RecorderErrorKind::Numbers,
    ];

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            RecorderErrorKind::Taken => "taken",
            RecorderErrorKind::Unusable => "unusable",
            RecorderErrorKind::Damaged => "damaged",
            RecorderErrorKind::Full => "full",
            RecorderErrorKind::Io => "io",
            RecorderErrorKind::Database => "database",
            RecorderErrorKind::Numbers => "numbers",
        }
    }
}

/// The recorder's statistics. They are defined here so that the recorder and the exposition need not know each
/// other.
#[derive(Debug, Default)]
pub struct RecorderStats {
    bytes: AtomicU64,
    frames: AtomicU64,
    events: AtomicU64,
    errors: [AtomicU64; RecorderErrorKind::ALL.len()],
    missed: AtomicU64,
    took: AtomicU64,
    /// Unset until it is measured: it must not look like a full disk.
    free: OnceLock<AtomicU64>,
    floor: AtomicU64,
    /// Unset while the folder cannot be read.
    set_aside: OnceLock<AtomicU64>,
}

macro_rules! numbers {
    ($($get:ident $change:ident $method:ident $about:literal;)+) => {
        impl RecorderStats {
            $(
                #[doc = concat!($about, ".")]
                pub fn $get(&self) -> u64 {
                    self.$get.load(Ordering::Relaxed)
                }

                #[doc = concat!("Sets or adds to: ", $about, ".")]
                pub fn $change(&self, value: u64) {
                    self.$get.$method(value, Ordering::Relaxed);
                }
            )+
        }
    };
}

numbers! {
    frames add_frames fetch_add "Frames of counters written";
    events add_events fetch_add "Events written";
    missed add_missed fetch_add "Sweeps that arrived while an earlier one was still being written";
    bytes set_bytes store "The size of the file in bytes";
    floor set_floor store "The free bytes of the disk that the recorder leaves";
}

macro_rules! optional_numbers {
    ($($get:ident $set:ident $about:literal;)+) => {
        impl RecorderStats {
            $(
                #[doc = concat!($about, ", if that is known.")]
                pub fn $get(&self) -> Option<u64> {
                    self.$get.get().map(|value| value.load(Ordering::Relaxed))
                }

                #[doc = concat!("Sets: ", $about, ".")]
                pub fn $set(&self, value: u64) {
                    let known = self.$get.get_or_init(AtomicU64::default);
                    known.store(value, Ordering::Relaxed);
                }
            )+
        }
    };
}

optional_numbers! {
    free set_free "The free bytes of the disk";
    set_aside count_set_aside "The number of damaged files beside the file";
}

impl RecorderStats {
    /// Failed writes.
    pub fn errors(&self) -> u64 {
        RecorderErrorKind::ALL.into_iter().map(|kind| self.errors_by(kind)).sum()
    }

    /// Failed writes of one kind.
    pub fn errors_by(&self, kind: RecorderErrorKind) -> u64 {
        self.errors[kind as usize].load(Ordering::Relaxed)
    }

    /// Counts a failed write.
    pub fn add_error(&self, kind: RecorderErrorKind) {
        self.errors[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How long it took to write the latest sweep.
    pub fn took(&self) -> Duration {
        Duration::from_nanos(self.took.load(Ordering::Relaxed))
    }

    /// Sets how long it took to write the latest sweep.
    pub fn set_took(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.took.store(nanos, Ordering::Relaxed);
    }
}
