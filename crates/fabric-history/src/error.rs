//! The errors of a history, and which of them mean that its file is damaged.

use std::path::{Path, PathBuf};

use fabric_observation::RecorderErrorKind;
use thiserror::Error;

/// Why a history file cannot be written or read.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// Another exporter is recording to it.
    #[error(
        "{0}: another exporter is recording to this file: use a separate file for each exporter"
    )]
    Taken(PathBuf),
    /// It is a FIFO, a directory, a device or a socket.
    #[error("{0}: is {1}, not a regular file: remove it, or use another path")]
    NotAFile(PathBuf, &'static str),
    /// Its lock file is not ours: the path of the lock, and what is there.
    #[error(
        "{0}: is {1}, not a lock file of fabric-exporter, and was left unchanged: remove it if nothing else needs \
         it, or use another path for the history"
    )]
    ForeignLock(PathBuf, &'static str),
    /// It was taken away while it was recorded to: how.
    #[error("{0}: {1} by another program: recording continues in a new file")]
    Displaced(PathBuf, Displaced),
    /// It is a file of another program, or a history that this version cannot read or write.
    #[error("{0}: {1}")]
    Unusable(PathBuf, String),
    /// SQLite found it corrupt.
    #[error("{0}: damaged: {1}")]
    Damaged(PathBuf, String),
    /// It is damaged, and not set aside because this many damaged files were before.
    #[error(
        "{0}: damaged ({1}), and not set aside because its directory already has {2} damaged files: move \
         one of them elsewhere, and recording resumes"
    )]
    Crowded(PathBuf, String, usize),
    /// All ids are in use.
    #[error("{0}: {1}: use a new file")]
    OutOfIds(PathBuf, OutOfIds),
    /// Its disk is nearly full: the free bytes, and those that must stay free.
    #[error("{0}: disk nearly full: {1} bytes are free, and {2} are reserved")]
    Full(PathBuf, u64, u64),
    /// The response would be too large.
    #[error("more than {0} readings in one response: request fewer ports or a shorter period")]
    TooMuch(usize),
    /// A system call failed: the operation, and the error.
    #[error("{0}: cannot {1}: {2}")]
    Io(PathBuf, &'static str, std::io::Error),
    /// SQLite failed.
    #[error("{0}: cannot {1}: {2}")]
    Database(PathBuf, &'static str, rusqlite::Error),
}

/// What another program did to a file that is recorded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Displaced {
    /// No file has its name any more.
    #[error("was deleted or renamed")]
    Removed,
    /// Another file has its name.
    #[error("was replaced")]
    Replaced,
    /// It is shorter than it was.
    #[error("was truncated")]
    Truncated,
}

/// Which ids a file has run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OutOfIds {
    /// The ids of nodes and ports.
    #[error("node or port ID {0} exceeds the maximum of {most}", most = MOST_PORTS)]
    Ports(i64),
    /// The ids of counters.
    #[error("counter ID {0} exceeds the maximum of {most}", most = MOST_COUNTERS)]
    Counters(i64),
}

/// More ports, and nodes, than a file has had by the time that it is too large. No higher id was ever assigned,
/// and arrays by such an id would take all memory.
pub(crate) const MOST_PORTS: u32 = 1 << 22;

/// A frame has one bit a counter.
pub(crate) const MOST_COUNTERS: u8 = 64;

impl OutOfIds {
    /// As an error of SQLite, until [`HistoryError::database`] adds the file's path.
    pub(crate) fn in_sql(self) -> rusqlite::Error {
        rusqlite::Error::ToSqlConversionFailure(Box::new(self))
    }
}

impl HistoryError {
    /// The file is not a history.
    pub(crate) fn foreign(path: &Path) -> Self {
        let what = "is not a history file of fabric-exporter: use another file";
        HistoryError::Unusable(path.into(), what.into())
    }

    /// The error of a system call, for `map_err`.
    pub fn io(path: &Path, doing: &'static str) -> impl Fn(std::io::Error) -> Self + Copy {
        move |error| HistoryError::Io(path.into(), doing, error)
    }

    /// The error of an operation in SQLite, for `map_err`.
    pub(crate) fn database(
        path: &Path,
        doing: &'static str,
    ) -> impl Fn(rusqlite::Error) -> Self + Copy {
        move |error| {
            if let rusqlite::Error::ToSqlConversionFailure(source) = &error
                && let Some(what) = source.downcast_ref::<OutOfIds>()
            {
                return HistoryError::OutOfIds(path.into(), *what);
            }
            HistoryError::Database(path.into(), doing, error)
        }
    }

    /// Whether SQLite says that the file is corrupt. Nothing else makes a file damaged: not what an operator
    /// added to it, nor an error of this program.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            HistoryError::Damaged(..) | HistoryError::Crowded(..) => true,
            HistoryError::Database(_, _, error) => match error.sqlite_error_code() {
                Some(NotADatabase) => true,
                Some(DatabaseCorrupt) => !crate::file::tables::is_about_additions(error),
                _ => false,
            },
            HistoryError::Taken(_)
            | HistoryError::NotAFile(..)
            | HistoryError::ForeignLock(..)
            | HistoryError::Displaced(..)
            | HistoryError::Unusable(..)
            | HistoryError::OutOfIds(..)
            | HistoryError::Full(..)
            | HistoryError::TooMuch(_)
            | HistoryError::Io(..) => false,
        }
    }

    /// Whether the cause may be damage that SQLite has not noticed: our statements are always the same, and
    /// rows that we wrote have the types and the order that we gave them. An operator's trigger or
    /// table may be the cause as well, so SQLite has to check the file before it is called damaged.
    pub(crate) fn is_suspicious(&self) -> bool {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType,
            QueryReturnedNoRows, Utf8Error,
        };
        use rusqlite::ErrorCode::{ConstraintViolation, DatabaseCorrupt, TypeMismatch, Unknown};
        let error = match self {
            HistoryError::Database(_, _, error) => error,
            // No history has grown that large: a damaged id is as likely, and a check finds that it is not
            // in order, or not what an index has.
            HistoryError::OutOfIds(..) => return true,
            _ => return false,
        };
        let codes = [ConstraintViolation, DatabaseCorrupt, TypeMismatch, Unknown];
        match error {
            InvalidColumnType(..)
            | FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | QueryReturnedNoRows
            | Utf8Error(..) => true,
            other => other.sqlite_error_code().is_some_and(|code| codes.contains(&code)),
        }
    }

    /// The kind under which it is counted.
    pub fn metric_kind(&self) -> RecorderErrorKind {
        if self.is_damage() {
            return RecorderErrorKind::Damaged;
        }
        match self {
            HistoryError::Taken(_) => RecorderErrorKind::Taken,
            HistoryError::Displaced(..) => RecorderErrorKind::Displaced,
            HistoryError::Full(..) => RecorderErrorKind::Full,
            HistoryError::Io(..) => RecorderErrorKind::Io,
            HistoryError::OutOfIds(..) => RecorderErrorKind::Numbers,
            HistoryError::Database(..) => RecorderErrorKind::Database,
            HistoryError::NotAFile(..)
            | HistoryError::ForeignLock(..)
            | HistoryError::Unusable(..)
            | HistoryError::Damaged(..)
            | HistoryError::Crowded(..)
            | HistoryError::TooMuch(_) => RecorderErrorKind::Unusable,
        }
    }
}
