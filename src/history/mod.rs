//! The flight recorder: every sweep in a file on the exporter's own disk, and what can be told from it
//! after an incident.
//!
//! [`record`] takes in what a monitor publishes and writes it, on a thread of its own, into one SQLite
//! [`mod@file`]: a transaction a sweep. The file answers while it is written, and says what totals were when
//! the exporter ended, so that they go on when it is started again.

pub mod api;
pub mod clock;
pub mod columns;
pub mod course;
pub mod diff;
pub mod event;
pub mod export;
pub mod file;
mod http;
pub mod model;
pub mod page;
pub mod plot;
pub mod prometheus;
pub mod question;
pub mod record;
pub mod report;
pub mod source;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use thiserror::Error;

pub use api::Api;
pub use event::{Event, Kind};
pub use file::reader::Reader;
pub use record::Recorder;
pub use source::Source;

/// Why a history cannot be written or read.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// Another exporter has it.
    #[error("{path}: another exporter records there: each needs a file of its own")]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// It is no history.
    #[error("{path}: not a history of fabric-exporter: left as it is")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of the program made it.
    #[error("{path}: of version {version}, which a newer fabric-exporter writes")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// It is one, and not as we make them.
    #[error("{path}: damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Its disk is nearly full.
    #[error("{path}: {free} bytes are free on its disk, and {least} are left alone")]
    Full {
        /// The file.
        path: PathBuf,
        /// How many are free.
        free: u64,
        /// How many have to stay so.
        least: u64,
    },
    /// The answer would be larger than is allowed.
    #[error("more than {most} readings in one answer: ask for fewer ports or a shorter time")]
    TooMuch {
        /// How many readings an answer may have.
        most: usize,
    },
    /// The system does not let us.
    #[error("{path}: cannot {doing}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why not.
        error: std::io::Error,
    },
    /// SQLite does not let us.
    #[error("{path}: cannot {doing}: {error}")]
    Database {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why not.
        error: rusqlite::Error,
    },
}

impl HistoryError {
    /// Whether the file is not what SQLite wrote for us.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{
            ConstraintViolation, DatabaseCorrupt, NotADatabase, TypeMismatch, Unknown,
        };
        let error = match self {
            HistoryError::Damaged { .. } => return true,
            HistoryError::Database { error, .. } => error,
            _ => return false,
        };
        // What is not of the type that its column has was not written by us.
        let is_odd = matches!(
            error,
            rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::QueryReturnedNoRows
                | rusqlite::Error::Utf8Error(..)
        );
        // What we ask is always the same, and a whole file never has anything against it: tables that
        // are not there, formats that are not known, numbers that are given already.
        let codes = [DatabaseCorrupt, NotADatabase, ConstraintViolation, TypeMismatch, Unknown];
        is_odd || error.sqlite_error_code().is_some_and(|code| codes.contains(&code))
    }
}

/// A time of day as the file has it: microseconds since 1970.
fn micros_of(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The same the other way round.
fn time_of(micros: i64) -> SystemTime {
    let since = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}
