//! A flight recorder for fabrics: every sweep and event in one SQLite file, and answers from it after an
//! incident.
//!
//! - [`Recorder`] writes what a monitor publishes into the [`mod@file`], in one transaction a sweep. When the
//!   exporter starts again, totals go on from what the file has.
//! - [`Reader`] answers queries from the file, also while it is written. It is a [`Source`]: the events,
//!   the states of fabrics and cables, what counters grew by, and what is not known.
//! - [`report`], [`diff`] and [`export`] are made from a source, or from a reader.
//! - [`history_query`] writes and reads queries as HTTP addresses.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use fabric_history::model::Window;
//! use fabric_history::settings::HistorySettings;
//! use fabric_history::source::EventFilter;
//! use fabric_history::{Reader, Recorder, Source};
//! use fabric_observation::Observation;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("history.db");
//! let mut recorder = Recorder::new(HistorySettings::new(file.clone()), Default::default());
//! // A monitor publishes one of these after each sweep; this one has not swept yet.
//! let observation = Observation { fabric: "ib0".into(), ..Observation::default() };
//! let now = SystemTime::now();
//! recorder.record(&observation, now);
//! recorder.finish(now + Duration::from_secs(15));
//!
//! let hour = Duration::from_secs(3600);
//! let reader = Reader::open(&file)?;
//! for event in reader.events(&EventFilter::all(Window { from: now - hour, to: now + hour }))? {
//!     println!("{} {}: {}", event.kind, event.place, event.text);
//! }
//! # Ok(())
//! # }
//! ```

pub mod local_clock;
pub mod columns;
pub mod link_timeline;
pub mod diff;
mod error;
pub mod event;
pub mod export;
pub mod file;
pub mod history_query;
pub mod model;
pub mod page;
pub mod plot;
pub mod query;
pub mod record;
pub mod report;
pub mod settings;
pub mod source;

use std::time::{Duration, SystemTime};

pub use error::{HistoryError, OutOfIds};
pub use event::{EventKind, NewEvent};
pub use file::ensure_place;
pub use file::reader::Reader;
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
