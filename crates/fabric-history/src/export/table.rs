//! Tables: columns of a few types, and a row at a time.

use std::borrow::Cow;
use std::time::SystemTime;

use super::ExportError;

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Moments, to the millisecond.
    Time,
    /// Texts.
    Text,
    /// Numbers from nought on.
    Number,
    /// JSON.
    Json,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What stands in it.
    pub of: Type,
    /// Whether each row has something in it.
    pub is_full: bool,
}

impl Column {
    /// One in which each row has something.
    pub const fn full(name: &'static str, of: Type) -> Self {
        Column { name, of, is_full: true }
    }

    /// One in which not every row has.
    pub const fn some(name: &'static str, of: Type) -> Self {
        Column { name, of, is_full: false }
    }
}

/// What a row has in a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Nothing,
    /// A moment.
    Time(SystemTime),
    /// A text.
    Text(Cow<'a, str>),
    /// A number.
    Number(u64),
    /// JSON.
    Json(&'a serde_json::Value),
}

/// Whoever writes rows.
pub trait Table {
    /// Writes a row; as many cells as there are columns.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError>;

    /// Writes what has to stand at the end.
    fn finish(&mut self) -> Result<(), ExportError>;
}
