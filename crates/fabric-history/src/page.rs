//! Events page by page: how much a page holds, and where the next page begins.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::model::Told;

/// How many events a page has that does not say so: about 0.5 MB of JSON.
pub const USUAL: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// How many a page may have: about 5 MB of JSON, which is all that an answer holds in memory.
pub const MOST: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Which page is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many events it has at most.
    pub limit: NonZeroUsize,
    /// The `next` of the page before; nothing for the first one.
    pub after: Option<Cursor>,
}

impl Page {
    /// The largest page after another one.
    pub fn largest(after: Option<Cursor>) -> Self {
        Page { limit: MOST, after }
    }
}

impl Default for Page {
    fn default() -> Self {
        Page { limit: USUAL, after: None }
    }
}

/// A page of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Events {
    /// The events, the earliest first.
    pub events: Vec<Told>,
    /// What `after` is set to for the next page; null on the last one.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub next: Option<Cursor>,
}

/// The place of an event among all of a file: events are in the order of their times, and at one time in
/// the order in which they were recorded. It stays what it is while events are recorded and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cursor {
    /// In microseconds since 1970.
    pub(super) at: i64,
    /// Its number in the file.
    pub(super) id: i64,
}

/// What was given as a cursor is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the \"next\" of the page before")]
pub struct NoCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.at, self.id)
    }
}

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (at, id) = text.split_once('-').ok_or(NoCursor)?;
        // 15 digits are the year 37,000; a sign is no digit.
        let number = |text: &str| {
            let is_one = text.len() < 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            i64::from_str_radix(text, 16).ok().filter(|_| is_one)
        };
        let place = number(at).zip(number(id)).map(|(at, id)| Cursor { at, id });
        place.ok_or(NoCursor)
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

impl TryFrom<String> for Cursor {
    type Error = NoCursor;

    fn try_from(text: String) -> Result<Self, NoCursor> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor = Cursor { at: 1_700_000_000_123_456, id: 42 };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in
            ["", "-", "1", "1-", "-1-1", "1--1", "x-1", "1-1-1", "+1-1", "1-fffffffffffffffff"]
        {
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
        }
    }
}
