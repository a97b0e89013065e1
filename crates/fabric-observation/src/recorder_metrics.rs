//! The metrics of the history's recorder: written by the recorder, read by a scrape.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

ib_mad::labeled_enum! {
    /// Why something could not be written to the history.
    pub enum RecorderErrorKind {
        Taken, "taken", "Another exporter records there.";
        Unusable, "unusable", "The file is not a history, or not one that this version can write.";
        Damaged, "damaged", "SQLite found the file corrupt.";
        Full, "full", "Less than the reserved space of the disk is free.";
        Io, "io", "The system refused, or the disk failed.";
        Database, "database", "SQLite refused: the file is locked, or an added table or trigger forbids it.";
        Numbers, "numbers", "An id is beyond what the file's format has.";
    }
}

/// The metrics of the recorder. They are part of the published state, so that the recorder and the exposition
/// do not depend on each other.
#[derive(Debug, Default)]
pub struct RecorderMetrics {
    bytes: AtomicU64,
    frames: AtomicU64,
    events: AtomicU64,
    errors: [AtomicU64; RecorderErrorKind::ALL.len()],
    missed: AtomicU64,
    write_nanos: AtomicU64,
    /// Not set until it was measured.
    free: OnceLock<AtomicU64>,
    floor: AtomicU64,
    /// Not set while the folder cannot be read.
    set_aside: OnceLock<AtomicU64>,
}

macro_rules! accessors {
    ($($get:ident $verb:ident $update:ident $about:literal;)+) => {
        impl RecorderMetrics {
            $(
                #[doc = $about]
                pub fn $get(&self) -> u64 {
                    self.$get.load(Ordering::Relaxed)
                }

                #[doc = concat!("Updates: ", $about)]
                pub fn $update(&self, value: u64) {
                    self.$get.$verb(value, Ordering::Relaxed);
                }
            )+
        }
    };
}

accessors! {
    frames fetch_add add_frames "Frames of counters that were written.";
    events fetch_add add_events "Events that were written.";
    missed fetch_add add_missed "Sweeps that came while an earlier one was still being written.";
    bytes store set_bytes "The size of the file, in bytes.";
    floor store set_floor "The bytes of the disk that are left free.";
}

impl RecorderMetrics {
    /// How often something could not be written.
    pub fn errors(&self) -> u64 {
        RecorderErrorKind::ALL.into_iter().map(|kind| self.errors_by(kind)).sum()
    }

    /// How often something could not be written for a reason.
    pub fn errors_by(&self, kind: RecorderErrorKind) -> u64 {
        self.errors[kind as usize].load(Ordering::Relaxed)
    }

    /// Counts an error.
    pub fn add_error(&self, kind: RecorderErrorKind) {
        self.errors[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of damaged files beside the history, once that is known.
    pub fn set_aside(&self) -> Option<u64> {
        self.set_aside.get().map(|count| count.load(Ordering::Relaxed))
    }

    /// Sets the number of damaged files beside the history.
    pub fn count_set_aside(&self, count: u64) {
        self.set_aside.get_or_init(|| AtomicU64::new(count)).store(count, Ordering::Relaxed);
    }

    /// The free bytes of the disk, once that is known.
    pub fn free(&self) -> Option<u64> {
        self.free.get().map(|free| free.load(Ordering::Relaxed))
    }

    /// Sets the free bytes of the disk.
    pub fn set_free(&self, bytes: u64) {
        // Initialized with the value: a scrape in between must not see a full disk.
        self.free.get_or_init(|| AtomicU64::new(bytes)).store(bytes, Ordering::Relaxed);
    }

    /// How long it took to write the latest sweep.
    pub fn write_duration(&self) -> Duration {
        Duration::from_nanos(self.write_nanos.load(Ordering::Relaxed))
    }

    /// Sets how long it took to write the latest sweep.
    pub fn set_write_duration(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.write_nanos.store(nanos, Ordering::Relaxed);
    }
}
