//! Clearing counters of a port: the only Set that the program sends, and only if the operator enables it.
//! A [`Query`](crate::Query) can express no other Set than counters of one port to zero.

use crate::counter::{Attribute, Counter, CounterField, CounterKind};
use crate::fec::PortExtendedSpeedsCounters;
use crate::layout::{attribute, byte, bytes};
use crate::mad::Mad;

attribute! {
    /// The counters of PortCounters that a Set writes (IBTA 1.4, 16.1.3.5).
    pub struct CounterSelect = 0x0012 {
        first: u16 = bytes(2, 2), "CounterSelect.";
        second: u8 = byte(18), "CounterSelect2.";
    }
}

/// Counters by bit: 0 to 15 of CounterSelect, then the bits of CounterSelect2. perfquery and ibqueryerrors
/// have the last two at bits 16 and 17 of the mask that they pass to libibmad.
const BITS: [Counter; 18] = [
    Counter::SymbolErrors,
    Counter::LinkErrorRecoveries,
    Counter::LinkDowned,
    Counter::RcvErrors,
    Counter::RcvRemotePhysicalErrors,
    Counter::RcvSwitchRelayErrors,
    Counter::XmitDiscards,
    Counter::XmitConstraintErrors,
    Counter::RcvConstraintErrors,
    Counter::LocalLinkIntegrityErrors,
    Counter::ExcessiveBufferOverrunErrors,
    Counter::Vl15Dropped,
    Counter::XmitData,
    Counter::RcvData,
    Counter::XmitPkts,
    Counter::RcvPkts,
    Counter::XmitWait,
    Counter::Qp1Dropped,
];

impl CounterSelect {
    /// Selects these counters; those that PortCounters does not have are left out.
    pub fn new(counters: impl IntoIterator<Item = Counter>) -> Self {
        let bit = |counter| BITS.iter().position(|known| *known == counter);
        let mask = counters.into_iter().filter_map(bit).fold(0u32, |mask, bit| mask | 1 << bit);
        CounterSelect { first: mask as u16, second: (mask >> 16) as u8 }
    }

    /// The selected counters.
    pub fn counters(self) -> impl Iterator<Item = Counter> {
        let mask = u32::from(self.second) << 16 | u32::from(self.first);
        let selected = (0..BITS.len()).filter(move |bit| mask >> bit & 1 == 1);
        selected.map(|bit| BITS[bit])
    }
}

/// What a Set clears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clear {
    /// These counters of PortCounters.
    Counters(CounterSelect),
    /// All of PortExtendedSpeedsCounters. The meaning of its 64 CounterSelect bits differs with the layout; perfquery
    /// and ibdiagnet set all of them (rdma-core: `ext_speeds_reset_via` of infiniband-diags/perfquery.c).
    FecCounters,
}

impl Clear {
    /// Writes the selection into a request; all values stay zero.
    pub(super) fn encode(self, mad: &mut Mad) {
        match self {
            Clear::Counters(counters) => counters.encode(mad),
            Clear::FecCounters => {
                let counter_select = u64::MAX;
                PortExtendedSpeedsCounters { counter_select, ..Default::default() }.encode(mad);
            }
        }
    }
}

/// Whether a counter may be cleared in this field. Not traffic counters, which fill 32 bits in seconds, nor
/// error details, which are separate attributes.
pub fn is_clearable(counter: Counter, field: CounterField) -> bool {
    matches!(field.attribute, Attribute::PortCounters | Attribute::PortExtendedSpeedsCounters)
        && field.width < 64
        && counter.row().kind != CounterKind::Traffic
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::TABLE;
    use crate::mad::{DATA, method};
    use crate::pma;

    #[test]
    fn clear_selects_counters_and_writes_zeros() {
        let select = CounterSelect::new([
            Counter::LinkDowned,
            Counter::Vl15Dropped,
            Counter::XmitWait,
            Counter::RcvLoopingErrors,
        ]);
        let mad = pma::clear_counters(36, select).request(None, 7);
        assert_eq!(mad.0[..4], [1, 0x04, 1, method::SET]);
        assert_eq!((mad.attribute(), mad.port_select(), mad.transaction_id()), (0x12, 36, 7));
        assert_eq!(mad.data()[2..4], [0x08, 0x04]);
        assert_eq!(mad.u8(DATA + 18), 1);
        let zero = |at: &usize| ![1, 2, 3, 18].contains(at);
        assert!((0..192).filter(zero).all(|at| mad.data()[at] == 0));
        let selected: Vec<Counter> = CounterSelect::decode(&mad).counters().collect();
        assert_eq!(selected, [Counter::LinkDowned, Counter::Vl15Dropped, Counter::XmitWait]);
    }

    #[test]
    fn clear_of_fec_counters_selects_all() {
        let mad = pma::clear_fec_counters(36).request(None, 7);
        assert_eq!(mad.0[..4], [1, 0x04, 1, method::SET]);
        assert_eq!((mad.attribute(), mad.port_select(), mad.transaction_id()), (0x1f, 36, 7));
        assert_eq!(mad.be(DATA + 8, 8), u64::MAX);
        let zero = |at: &usize| *at != 1 && !(8..16).contains(at);
        assert!((0..192).filter(zero).all(|at| mad.data()[at] == 0));
    }

    #[test]
    fn counter_select_covers_exactly_port_counters() {
        for row in TABLE {
            let classic = row.fields.iter().any(|field| field.attribute == Attribute::PortCounters);
            assert_eq!(CounterSelect::new([row.counter]).counters().count(), usize::from(classic));
        }
        assert_eq!(CounterSelect::new(Counter::all()), CounterSelect { first: 0xffff, second: 3 });
        assert_eq!(CounterSelect::new([]), CounterSelect::default());
    }

    #[test]
    fn counter_query_is_a_get() {
        let query = pma::counters(Attribute::PortCounters, 3);
        assert_eq!(query.request(None, 1).method(), method::GET);
    }
}
