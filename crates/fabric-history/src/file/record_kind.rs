//! The kinds of records, and the parts that they are in.

use std::fmt;

use rusqlite::ToSql;
use rusqlite::types::ToSqlOutput;

use ib_mad::Counter;
use ib_mad::counter::CounterKind;

/// The kind of a record's content; the column `tier` has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Counters that seldom grow: errors, and events of links.
    ErrorDeltas = 0,
    /// Counters that grow all the time: traffic, waits, and corrected errors.
    TrafficDeltas = 1,
    /// The totals of counters that were never recorded before.
    FirstTotals = 2,
    /// The totals of all counters: nothing before it is needed for totals.
    AllTotals = 3,
    /// The states of ports and their links that changed since the sweep before.
    PortChanges = 4,
    /// The states of all ports and their links.
    PortStates = 5,
    /// Nodes that started or stopped responding.
    NodeChanges = 6,
    /// Whether each node responded.
    NodeStates = 7,
}

/// Ports by their number in the file that are in one row of traffic, and of what is digested. With
/// 60,000 ports a link's traffic is then in a sixtieth of the data, in rows of 25 KB.
pub(crate) const PORTS_A_PART: u32 = 1_024;

/// The part that a port is in.
pub(crate) fn part_of(port: u32) -> u32 {
    port / PORTS_A_PART
}

impl RecordKind {
    /// The kind of a counter's growth.
    pub fn of(counter: Counter) -> RecordKind {
        use Counter::{FecCorrectedBlocks, FecCorrectedSymbols, XmitWait};
        match (counter.row().kind, counter) {
            (CounterKind::Traffic, _)
            | (_, XmitWait | FecCorrectedBlocks | FecCorrectedSymbols) => RecordKind::TrafficDeltas,
            _ => RecordKind::ErrorDeltas,
        }
    }

    /// Whether a sweep's frames of it are in parts by the ports' ids.
    pub fn is_in_parts(self) -> bool {
        use RecordKind::{AllTotals, FirstTotals, TrafficDeltas};
        matches!(self, TrafficDeltas | FirstTotals | AllTotals)
    }
}

/// Its value in SQL.
impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self as u8).fmt(f)
    }
}

impl ToSql for RecordKind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok((*self as u8).into())
    }
}
