//! The flight recorder: every sweep in a file on the exporter's own disk, and what can be told from it
//! after an incident.
//!
//! [`record`] takes in what a monitor publishes and writes it, on a thread of its own, into one SQLite
//! [`mod@file`]: a transaction a sweep. The file answers while it is written, and says what totals were when
//! the exporter ended, so that they go on when it is started again.

pub mod clock;
pub mod columns;
pub mod course;
pub mod diff;
pub mod event;
pub mod export;
pub mod file;
pub mod model;
pub mod page;
pub mod plot;
pub mod query;
pub mod question;
pub mod record;
pub mod report;
pub mod settings;
pub mod source;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use thiserror::Error;

use fabric_observation::RecorderErrorKind;

pub use event::{Event, Kind};
pub use file::ensure_place;
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
    /// It is a FIFO, a directory, a device or a socket.
    #[error(
        "{path}: is {what}, where a history needs a regular file: move it away, or give another path"
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// It is no history.
    #[error("{path}: is not a history file of fabric-exporter: left as it is")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of the program made it.
    #[error(
        "{path}: has version {version}, which this fabric-exporter does not know: use a newer one, \
         or another file"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// It is a history that this program cannot write as it is.
    #[error("{path}: {what}: left as it is, use another file")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// SQLite has found it corrupt.
    #[error("{path}: damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite found.
        what: String,
    },
    /// It is damaged, and so many were before that it is not set aside.
    #[error(
        "{path}: damaged ({what}), and {count} damaged files were set aside before: look at them and \
         move them elsewhere, so that recording goes on"
    )]
    Crowded {
        /// The file.
        path: PathBuf,
        /// What SQLite found.
        what: String,
        /// How many files were set aside.
        count: usize,
    },
    /// All numbers are given.
    #[error("{path}: {what}: begin a new file")]
    Numbers {
        /// The file.
        path: PathBuf,
        /// Of what.
        what: OutOfNumbers,
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

/// Which numbers a file has run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OutOfNumbers {
    /// Those of nodes and ports.
    #[error("number {0} of a node or port is beyond the {most} that a history can have", most = MOST_PORTS)]
    Ports(i64),
    /// Those of counters.
    #[error("number {0} of a counter is beyond the {most} that a history can have", most = MOST_COUNTERS)]
    Counters(i64),
}

/// More ports, and nodes, than a file has had by the time that it is too large. A number that is beyond
/// that was not given by us, and what is kept by it would take all memory.
const MOST_PORTS: u32 = 1 << 22;

/// One bit a counter says in a frame which values there are.
const MOST_COUNTERS: u8 = 64;

impl OutOfNumbers {
    /// As an error of SQLite, until the file's path is known and added.
    fn in_sql(self) -> rusqlite::Error {
        rusqlite::Error::ToSqlConversionFailure(Box::new(self))
    }
}

impl HistoryError {
    /// What failed in SQLite while something was tried.
    fn database(path: &Path, doing: &'static str, error: rusqlite::Error) -> Self {
        let path = path.into();
        if let rusqlite::Error::ToSqlConversionFailure(source) = &error
            && let Some(what) = source.downcast_ref::<OutOfNumbers>()
        {
            return HistoryError::Numbers { path, what: *what };
        }
        HistoryError::Database { path, doing, error }
    }

    /// Whether SQLite says that the file is not what it wrote. Nothing else makes a file damaged: not
    /// what an operator added to it, nor an error of this program.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            HistoryError::Damaged { .. } | HistoryError::Crowded { .. } => true,
            HistoryError::Database { error, .. } => match error.sqlite_error_code() {
                Some(NotADatabase) => true,
                Some(DatabaseCorrupt) => !file::schema::is_about_additions(error),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the cause may be damage that SQLite has not noticed: what we ask is always the same, and
    /// rows that we wrote have the types and the order that we gave them. An operator's trigger or
    /// table may be the cause as well, so SQLite has to check the file before it is called damaged.
    fn is_suspicious(&self) -> bool {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType,
            QueryReturnedNoRows, Utf8Error,
        };
        use rusqlite::ErrorCode::{ConstraintViolation, DatabaseCorrupt, TypeMismatch, Unknown};
        let error = match self {
            HistoryError::Database { error, .. } => error,
            // No history has grown that large: a number that was damaged is as likely, and a check finds
            // that it is not in order, or not what an index has.
            HistoryError::Numbers { .. } => return true,
            _ => return false,
        };
        let is_odd = matches!(
            error,
            InvalidColumnType(..)
                | FromSqlConversionFailure(..)
                | IntegralValueOutOfRange(..)
                | QueryReturnedNoRows
                | Utf8Error(..)
        );
        let codes = [ConstraintViolation, DatabaseCorrupt, TypeMismatch, Unknown];
        is_odd || error.sqlite_error_code().is_some_and(|code| codes.contains(&code))
    }

    /// What kind of trouble it is, as it is counted.
    pub fn trouble(&self) -> RecorderErrorKind {
        match self {
            _ if self.is_damage() => RecorderErrorKind::Damaged,
            HistoryError::Taken { .. } => RecorderErrorKind::Taken,
            HistoryError::Full { .. } => RecorderErrorKind::Full,
            HistoryError::Io { .. } => RecorderErrorKind::Io,
            HistoryError::Numbers { .. } => RecorderErrorKind::Numbers,
            HistoryError::Database { .. } => RecorderErrorKind::Database,
            HistoryError::NotAFile { .. }
            | HistoryError::Foreign { .. }
            | HistoryError::Newer { .. }
            | HistoryError::Unusable { .. }
            | HistoryError::Damaged { .. }
            | HistoryError::TooMuch { .. }
            | HistoryError::Crowded { .. } => RecorderErrorKind::Unusable,
        }
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
