#![doc = include_str!("../README.md")]

pub mod cable_life;
pub mod cursor;
pub mod diff;
mod error;
pub mod event;
pub mod export;
pub mod file;
pub mod history_query;
pub mod host_scope;
pub mod incidents;
pub mod local_clock;
pub mod model;
pub mod outcomes;
pub mod parameters;
pub mod past;
pub mod plot;
pub mod record;
pub mod report;
pub mod settings;
pub mod source;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::time::{Duration, SystemTime};

pub use error::{Displaced, HistoryError, OutOfIds};
pub use event::{EventKind, NewEvent};
pub use file::reader::Reader;
pub use file::{ensure_place, files_of};
pub use record::Recorder;
pub use source::Source;

pub(crate) use error::{MOST_COUNTERS, MOST_PORTS};

/// A time as the file has it: microseconds since 1970.
fn micros_of(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A time from the file's microseconds since 1970.
fn time_of(micros: i64) -> SystemTime {
    let since = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}
