//! Positions among the events of a file, from which paging goes on.

use std::fmt;
use std::str::FromStr;

/// The position of an event among all of a file: events are in the order of their times, and at one time in the order
/// in which they were recorded. It stays what it is while events are recorded and dropped. In the order in which they
/// were recorded, its number alone is the position, and its time shows whether the file is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// In microseconds since 1970.
    pub(crate) at: i64,
    /// Its number in the file.
    pub(crate) id: i64,
}

impl Cursor {
    /// Before the first event.
    pub(crate) const BEGIN: Cursor = Cursor { at: 0, id: 0 };
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.at, self.id)
    }
}

impl FromStr for Cursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // 15 digits are the year 37,000; a sign is no digit.
        let number = |text: &str| {
            let is_one = text.len() < 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            i64::from_str_radix(text, 16).ok().filter(|_| is_one)
        };
        let parts = text.split_once('-').and_then(|(at, id)| Some((number(at)?, number(id)?)));
        let (at, id) = parts.ok_or("must be the value of \"next\" of the previous page")?;
        Ok(Cursor { at, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_and_bad_ones_are_errors() {
        let cursor = Cursor { at: 1_700_000_000_123_456, id: 42 };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in
            ["", "-", "1", "1-", "-1-1", "1--1", "x-1", "1-1-1", "+1-1", "1-fffffffffffffffff"]
        {
            let says = "must be the value of \"next\" of the previous page";
            assert_eq!(text.parse::<Cursor>(), Err(says), "{text}");
        }
    }
}
