//! The sweeps and events next to a moment, to step through time.

use std::time::SystemTime;

use rusqlite::Result;

use crate::file::sql::Sql;
use crate::model::Span;
use crate::time_of;

/// When the sweeps and events next to a moment ended or happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// The end of the sweep that is shown.
    pub swept: Option<SystemTime>,
    /// That of the sweep before it, and of the one after it.
    pub sweeps: [Option<SystemTime>; 2],
    /// The latest event before the moment, and the earliest after it.
    pub events: [Option<SystemTime>; 2],
    /// What is recorded.
    pub span: Span,
}

/// Reads them for a moment, by the last microsecond of its millisecond, without the sweeps of a fabric that is not shown.
pub(super) fn read(sql: Sql<'_>, at: i64, hidden: Option<i64>) -> Result<Neighbors> {
    let until = sql.latest_ends(at, 2, hidden)?;
    let time = |micros: Option<i64>| micros.map(time_of);
    // Before the first sweep has ended there is nothing to show.
    let event = sql.event_before(at)?;
    let swept = event.map(|event| sql.latest_ends(event, 1, hidden)).transpose()?;
    let before = event.filter(|_| swept.is_some_and(|ends| !ends.is_empty()));
    Ok(Neighbors {
        swept: time(until.first().copied()),
        sweeps: [time(until.get(1).copied()), time(sql.end_after(at, hidden)?)],
        events: [time(before), time(sql.event_after(at)?)],
        span: Span { first: time(sql.first_began()?), last: time(sql.last_ended()?) },
    })
}
