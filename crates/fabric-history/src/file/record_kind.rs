//! The numbers of the file's format: kinds of records, the parts that they are in, and the states of ports, links and
//! nodes. In a state 0 is unknown, and so is a number of a later version.

use std::fmt;

use rusqlite::ToSql;
use rusqlite::types::ToSqlOutput;

use crate::file::frame::{Entry, Frame};
use ib_health::{Reason, Verdict};
use ib_mad::counter::CounterKind;
use ib_mad::rate::{Speed, Width};
use ib_mad::{Counter, Guid};

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
    /// The totals of error counters, twice a day: what a moment weeks ago had is computed from the next ones. Earlier
    /// builds ignore it.
    ErrorTotals = 8,
}

/// Ports by their number in the file that are in one row of traffic, and of what is digested. With
/// 60,000 ports a link's traffic is then in a sixtieth of the data, in rows of 25 KB.
pub(crate) const PORTS_A_PART: u32 = 1_024;

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
        use RecordKind::{AllTotals, ErrorTotals, FirstTotals, TrafficDeltas};
        matches!(self, TrafficDeltas | FirstTotals | AllTotals | ErrorTotals)
    }
}

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

/// A GUID as the file stores it: its 64 bits.
pub(crate) fn guid_bits(guid: Guid) -> i64 {
    guid.0.cast_signed()
}

/// The number of a reason in the file is its place here and 1. A new one is added at the end: the order of the enum is
/// another one, and changes.
const REASONS: [Reason; Reason::ALL.len()] = [
    Reason::BitErrors,
    Reason::PreFec,
    Reason::Flapping,
    Reason::NodeFlapping,
    Reason::RepeatedFlaps,
    Reason::Recoveries,
    Reason::Width,
    Reason::Speed,
    Reason::Down,
    Reason::PlanesDown,
    Reason::PlanesSwapped,
    Reason::PlanesUnequal,
    Reason::RingBroken,
    Reason::ReceiveErrors,
    Reason::LinkIntegrity,
    Reason::ModuleTemperature,
    Reason::RxPower,
    Reason::UpstreamErrors,
    Reason::Congested,
    Reason::Victim,
    Reason::BelowCapability,
    Reason::Replaced,
    Reason::CounterSaturated,
    Reason::ImpossibleValue,
    Reason::InsufficientData,
    Reason::Unresponsive,
    Reason::Disabled,
    Reason::Internal,
    Reason::NvLink,
    Reason::Maintenance,
];

/// The number of a verdict without any reason.
const NO_REASON: u8 = 255;

/// The main reason of a verdict in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainReason {
    /// By an earlier build.
    NotRecorded,
    /// There is none: the verdict is held for some minutes, or is ok.
    None,
    /// This one.
    Some(Reason),
}

/// The state of a port and its link: up, width, speed, verdict and its main reason; of a node, whether it responds,
/// whether it is absent, and whether it is in maintenance. Files of earlier builds have neither reasons nor the
/// latter two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State([u8; 5]);

impl State {
    pub fn of_node(up: bool, is_absent: bool, in_maintenance: bool) -> Self {
        State([1 + u8::from(up), u8::from(is_absent), u8::from(in_maintenance), 0, 0])
    }

    pub fn of_port(
        up: Option<bool>,
        runs: Option<(Width, Speed)>,
        verdict: Option<(Verdict, Option<Reason>)>,
    ) -> Self {
        let (width, speed) = runs.unzip();
        let (verdict, reason) = verdict.unzip();
        let number = |reason| REASONS.iter().position(|known| *known == reason);
        let number = |reason| number(reason).and_then(|place| u8::try_from(place + 1).ok());
        let reason = reason.map(|reason| reason.and_then(number).unwrap_or(NO_REASON));
        // Speeds are in the order of their introduction, the newest last.
        State([
            up.map_or(0, |up| 1 + u8::from(up)),
            width.map_or(0, Width::lanes),
            speed.map_or(0, |speed| 1 + speed as u8),
            verdict.map_or(0, |verdict| 1 + verdict as u8),
            reason.unwrap_or(0),
        ])
    }

    /// Whether the node was not found by the latest discovery.
    pub fn is_absent(self) -> bool {
        self.0[1] == 1
    }

    /// Whether the node was in maintenance.
    pub fn in_maintenance(self) -> bool {
        self.0[2] == 1
    }

    /// Whether the link carries traffic, or the node responds.
    pub fn up(self) -> Option<bool> {
        match self.0[0] {
            1 => Some(false),
            2 => Some(true),
            _ => None,
        }
    }

    /// The width and the speed that it runs at.
    pub fn runs(self) -> Option<(Width, Speed)> {
        let [_, width, speed, ..] = self.0;
        Some((Width::from_discriminant(width)?, Speed::from_discriminant(speed.checked_sub(1)?)?))
    }

    /// Width and speed as text: `4x NDR`.
    pub fn rate(self) -> Option<String> {
        self.runs().map(|(width, speed)| format!("{} {}", width.label(), speed.label()))
    }

    pub fn verdict(self) -> Verdict {
        self.0[3].checked_sub(1).and_then(Verdict::from_discriminant).unwrap_or(Verdict::Unknown)
    }

    /// Whether the link was judged: it has a verdict, which may be unknown.
    pub fn is_judged(self) -> bool {
        self.0[3] != 0
    }

    /// The main reason of the verdict.
    pub fn reason(self) -> MainReason {
        match self.0[4] {
            0 => MainReason::NotRecorded,
            number => {
                let known = REASONS.get(usize::from(number) - 1);
                known.map_or(MainReason::None, |reason| MainReason::Some(*reason))
            }
        }
    }

    /// The fields that differ from an earlier state.
    pub fn changes_since(self, before: State) -> impl Iterator<Item = (u8, u64)> {
        let fields = (0..).zip(self.0).zip(before.0);
        fields.filter(|((_, now), was)| now != was).map(|((field, now), _)| (field, now.into()))
    }

    /// Sets the fields of an entry.
    pub fn apply(&mut self, frame: &Frame, entry: &Entry) {
        for (field, value) in frame.values(entry) {
            if let Some(known) = self.0.get_mut(usize::from(field)) {
                *known = u8::try_from(value).unwrap_or(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_states_are_fixed() {
        let bad = Some((Verdict::Bad, Some(Reason::Flapping)));
        let state = State::of_port(Some(true), Some((Width::X2, Speed::Ndr)), bad);
        assert_eq!(state.0, [2, 2, 8, 4, 3]);
        assert_eq!((state.up(), state.verdict()), (Some(true), Verdict::Bad));
        assert_eq!(state.rate().as_deref(), Some("2x NDR"));
        assert_eq!(state.reason(), MainReason::Some(Reason::Flapping));
        let ok = State::of_port(Some(true), None, Some((Verdict::Ok, None)));
        assert_eq!(ok.reason(), MainReason::None);
        assert_eq!(State::default().reason(), MainReason::NotRecorded);
        let node = State::of_node(false, true, false);
        assert_eq!(
            (node.up(), node.is_absent(), node.in_maintenance()),
            (Some(false), true, false)
        );
        for reason in Reason::ALL {
            assert!(REASONS.contains(&reason), "{} has no number", reason.label());
        }
        assert_eq!(REASONS.map(Reason::label)[29], "maintenance", "numbers never change");
    }

    #[test]
    fn unknown_numbers_are_unknown_states() {
        let blank = State::default();
        assert_eq!((blank.up(), blank.rate(), blank.verdict()), (None, None, Verdict::Unknown));
        // Numbers of a later version.
        let later = State([3, 5, 77, 9, 99]);
        assert_eq!((later.up(), later.rate(), later.verdict()), (None, None, Verdict::Unknown));
    }

    #[test]
    fn applied_changes_give_the_new_state() {
        let ok = Some((Verdict::Ok, None));
        let was = State::of_port(Some(true), Some((Width::X4, Speed::Ndr)), ok);
        let is = State::of_port(None, None, ok);
        let mut frame = Frame::default();
        frame.push(7, 0, is.changes_since(was));
        let mut after = was;
        after.apply(&frame, &frame.entries()[0]);
        assert_eq!(after, is);
        assert_eq!(is.changes_since(is).count(), 0);
    }
}
