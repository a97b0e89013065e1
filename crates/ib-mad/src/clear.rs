//! Setting counters of a port to zero: the one thing that is ever set, and only if the operator has
//! asked for it. A [`Query`] can say nothing else than which counters of one port are to be zero.

use crate::counter::{Attribute, Kind, Place};
use crate::{Counter, PortNumber};

use super::layout::{attribute, byte, bytes};
use super::m_key::MKey;
use super::{Mad, Query};
use crate::extended_speeds::PortExtendedSpeedsCounters;

attribute! {
    /// Which of the counters of PortCounters a Set is about (IBTA 1.4, 16.1.3.5). PortSelect is the
    /// request's.
    pub struct CounterSelect = 0x0012 {
        /// CounterSelect.
        first: u16 = bytes(2, 2),
        /// CounterSelect2.
        second: u8 = byte(18),
    }
}

/// The counters' bits: of CounterSelect, and from the 17th on of CounterSelect2. perfquery and
/// ibqueryerrors have the last two at bits 16 and 17 of the mask that they give to libibmad.
const BITS: [(Counter, u8); 18] = [
    (Counter::SymbolErrors, 0),
    (Counter::LinkErrorRecoveries, 1),
    (Counter::LinkDowned, 2),
    (Counter::RcvErrors, 3),
    (Counter::RcvRemotePhysicalErrors, 4),
    (Counter::RcvSwitchRelayErrors, 5),
    (Counter::XmitDiscards, 6),
    (Counter::XmitConstraintErrors, 7),
    (Counter::RcvConstraintErrors, 8),
    (Counter::LocalLinkIntegrityErrors, 9),
    (Counter::ExcessiveBufferOverrunErrors, 10),
    (Counter::Vl15Dropped, 11),
    (Counter::XmitData, 12),
    (Counter::RcvData, 13),
    (Counter::XmitPkts, 14),
    (Counter::RcvPkts, 15),
    (Counter::XmitWait, 16),
    (Counter::Qp1Dropped, 17),
];

impl CounterSelect {
    /// These counters; those that PortCounters does not have are left out.
    pub fn of(counters: impl IntoIterator<Item = Counter>) -> Self {
        let mut mask = 0u32;
        for counter in counters {
            let bit = BITS.iter().find(|(of, _)| *of == counter).map(|(_, bit)| *bit);
            mask |= bit.map_or(0, |bit| 1 << bit);
        }
        CounterSelect { first: mask as u16, second: (mask >> 16) as u8 }
    }

    /// The counters that are selected.
    pub fn counters(self) -> impl Iterator<Item = Counter> {
        let mask = u32::from(self.second) << 16 | u32::from(self.first);
        BITS.iter().filter(move |(_, bit)| mask >> bit & 1 == 1).map(|(counter, _)| *counter)
    }
}

/// What a Set is to set to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clear {
    /// These of PortCounters.
    Counters(CounterSelect),
    /// All of PortExtendedSpeedsCounters. Its CounterSelect has 64 bits; which bit is whose differs with
    /// the layout, and all of them are what perfquery and ibdiagnet set (rdma-core:
    /// `ext_speeds_reset_via` of infiniband-diags/perfquery.c).
    Corrections,
}

impl Clear {
    /// Writes the selection into a request, with all values zero.
    pub(super) fn encode(self, mad: &mut Mad) {
        match self {
            Clear::Counters(counters) => counters.encode(mad),
            Clear::Corrections => {
                let counter_select = u64::MAX;
                PortExtendedSpeedsCounters { counter_select, ..Default::default() }.encode(mad);
            }
        }
    }
}

fn set(attribute: Attribute, port: PortNumber, clear: Clear) -> Query {
    Query {
        subnet: false,
        attribute: attribute as u16,
        modifier: 0,
        port_select: port,
        clear: Some(clear),
        m_key: MKey::NONE,
    }
}

/// Sets counters of one port to zero, and leaves all others as they are.
pub fn clear(port: PortNumber, counters: CounterSelect) -> Query {
    set(Attribute::PortCounters, port, Clear::Counters(counters))
}

/// Sets all of one port to zero that error correction counts.
pub fn clear_corrections(port: PortNumber) -> Query {
    set(Attribute::PortExtendedSpeedsCounters, port, Clear::Corrections)
}

/// Whether a counter may be cleared where it stands. Traffic fills 32 bits in seconds, and whoever
/// reads only those reads them as they are; the causes of errors have attributes of their own, which
/// are left alone.
pub fn may_be_cleared(counter: Counter, place: Place) -> bool {
    matches!(place.attribute, Attribute::PortCounters | Attribute::PortExtendedSpeedsCounters)
        && place.width < 64
        && counter.row().kind != Kind::Traffic
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::TABLE;
    use crate::{DATA, Mad, method, pma};

    #[test]
    fn a_set_selects_its_counters_and_all_of_its_values_are_zero() {
        let select = CounterSelect::of([
            Counter::LinkDowned,
            Counter::Vl15Dropped,
            Counter::XmitWait,
            Counter::RcvLoopingErrors,
        ]);
        let mad = Mad::request(&clear(36, select), None, 7);
        assert_eq!(mad.0[..4], [1, 0x04, 1, method::SET]);
        assert_eq!((mad.attribute(), mad.port_select(), mad.transaction()), (0x12, 36, 7));
        assert_eq!(mad.data()[2..4], [0x08, 0x04]);
        assert_eq!(mad.u8(DATA + 18), 1);
        let zero = |at: &usize| ![1, 2, 3, 18].contains(at);
        assert!((0..192).filter(zero).all(|at| mad.data()[at] == 0));
        let told: Vec<Counter> = CounterSelect::decode(&mad).counters().collect();
        assert_eq!(told, [Counter::LinkDowned, Counter::Vl15Dropped, Counter::XmitWait]);
    }

    #[test]
    fn a_set_of_what_error_correction_counts_selects_all_of_it() {
        let mad = Mad::request(&clear_corrections(36), None, 7);
        assert_eq!(mad.0[..4], [1, 0x04, 1, method::SET]);
        assert_eq!((mad.attribute(), mad.port_select(), mad.transaction()), (0x1f, 36, 7));
        assert_eq!(mad.u64(DATA + 8), u64::MAX);
        let zero = |at: &usize| *at != 1 && !(8..16).contains(at);
        assert!((0..192).filter(zero).all(|at| mad.data()[at] == 0));
    }

    #[test]
    fn each_counter_of_the_attribute_has_a_bit_and_no_other_has_one() {
        for row in TABLE {
            let classic = row.places.iter().any(|place| place.attribute == Attribute::PortCounters);
            assert_eq!(CounterSelect::of([row.counter]).counters().count(), usize::from(classic));
        }
        assert_eq!(CounterSelect::of(Counter::all()), CounterSelect { first: 0xffff, second: 3 });
        assert_eq!(CounterSelect::of([]), CounterSelect::default());
    }

    #[test]
    fn whoever_asks_sets_nothing() {
        let query = pma::counters(Attribute::PortCounters, 3);
        assert_eq!(Mad::request(&query, None, 1), Mad::get(&query, None, 1));
        assert_eq!(Mad::request(&query, None, 1).method(), method::GET);
    }
}
