//! Counters by the names that tools have for them, and the choice between narrow and wide fields.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use ib_mad::counter::{COUNT, TABLE};
use ib_mad::reading::Raw;
use ib_mad::{Counter, Reading};

use crate::text;

/// The values of a port's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<Counter, Field>);

/// What PortCounters and what PortCountersExtended shows of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Field {
    narrow: Option<u64>,
    wide: Option<u64>,
}

/// What two readings of a port have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// They have a field in common.
    pub any: bool,
    /// A field has two values.
    pub differs: bool,
    /// They have the same fields with the same values.
    pub is_same: bool,
}

/// Names that differ from those of the MAD's fields in more than case and underscores.
const OTHER_NAMES: [(&str, Counter); 20] = [
    // ibdiagnet, *.pm
    ("linkdowncounter", Counter::LinkDowned),
    ("portxmitdiscard", Counter::XmitDiscards),
    ("excessivebuffererrors", Counter::ExcessiveBufferOverrunErrors),
    // perfquery -E, and old versions of perfquery and ibqueryerrors
    ("portmalformedpkterrors", Counter::RcvMalformedPacketErrors),
    ("symbolerrors", Counter::SymbolErrors),
    ("linkrecovers", Counter::LinkErrorRecoveries),
    ("linkdowned", Counter::LinkDowned),
    ("rcverrors", Counter::RcvErrors),
    ("rcvremotephyserrors", Counter::RcvRemotePhysicalErrors),
    ("rcvswrelayerrors", Counter::RcvSwitchRelayErrors),
    ("xmtdiscards", Counter::XmitDiscards),
    ("xmtconstrainterrors", Counter::XmitConstraintErrors),
    ("rcvconstrainterrors", Counter::RcvConstraintErrors),
    ("linkintegrityerrors", Counter::LocalLinkIntegrityErrors),
    ("excbufoverrunerrors", Counter::ExcessiveBufferOverrunErrors),
    ("xmtdata", Counter::XmitData),
    ("rcvdata", Counter::RcvData),
    ("xmtpkts", Counter::XmitPkts),
    ("rcvpkts", Counter::RcvPkts),
    ("xmtwait", Counter::XmitWait),
];

static NAMES: LazyLock<HashMap<String, Counter>> = LazyLock::new(|| {
    let fields = Counter::all().take(COUNT).map(|it| (plain(TABLE[it as usize].ibta), it));
    fields.chain(OTHER_NAMES.map(|(name, counter)| (name.to_owned(), counter))).collect()
});

/// In lower case, without underscores.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|it| *it != '_').map(|it| it.to_ascii_lowercase()).collect()
}

/// The counter of a name, and whether the name is that of a field of 64 bits.
pub fn by_name(name: &str) -> Option<(Counter, bool)> {
    let name = plain(name.trim());
    if let Some(counter) = NAMES.get(&name) {
        return Some((*counter, false));
    }
    let narrow = name.strip_suffix("extended").or_else(|| name.strip_suffix("ext"))?;
    Some((*NAMES.get(narrow)?, true))
}

/// A value as tools write it; `None` for what a device does not support: NA, N/A, -1, and two below 2^64.
pub fn value(text: &str) -> Option<u64> {
    text::number(text).filter(|value| *value < u64::MAX - 1)
}

impl Counters {
    /// Adds a value by the name of its field; a name that is not known is ignored.
    pub fn set_by_name(&mut self, name: &str, is_wide: bool, text: &str) {
        if let Some(((counter, is_wide_name), value)) = by_name(name).zip(value(text)) {
            self.set(counter, is_wide || is_wide_name, value);
        }
    }

    /// Sets a value of a counter, in a field of 64 bits or in a narrow one.
    pub fn set(&mut self, counter: Counter, is_wide: bool, value: u64) {
        let field = self.0.entry(counter).or_default();
        *(if is_wide { &mut field.wide } else { &mut field.narrow }) = Some(value);
    }

    /// Whether one of these counters, by the names of their fields, has another value here.
    pub fn differs(&self, counts: &[(&str, &str)]) -> bool {
        counts.iter().any(|(name, text)| {
            let Some(((counter, is_wide), value)) = by_name(name).zip(value(text)) else {
                return false;
            };
            let field = self.0.get(&counter).copied().unwrap_or_default();
            let known = if is_wide { field.wide } else { field.narrow };
            known.is_some_and(|known| known != value)
        })
    }

    /// How these counters compare with those of another reading of the port.
    pub fn overlap(&self, other: &Counters) -> Overlap {
        let mut overlap = Overlap { is_same: self.0.len() == other.0.len(), ..Overlap::default() };
        for (counter, field) in &self.0 {
            let Some(known) = other.0.get(counter) else {
                overlap.is_same = false;
                continue;
            };
            for (one, two) in [(field.narrow, known.narrow), (field.wide, known.wide)] {
                overlap.any |= one.is_some() && two.is_some();
                overlap.differs |= one.zip(two).is_some_and(|(one, two)| one != two);
                overlap.is_same &= one == two;
            }
        }
        overlap
    }

    /// Adds what is not known yet.
    pub fn merge(&mut self, other: Counters) {
        for (counter, field) in other.0 {
            let known = self.0.entry(counter).or_default();
            known.narrow = known.narrow.or(field.narrow);
            known.wide = known.wide.or(field.wide);
        }
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The counters with their values as a sweep would have read them: the wide field, but the narrow one if only that
    /// counts. ConnectX-7 shows 0 in the wide fields of SymbolErrorCounter and LinkDownedCounter (public dump).
    pub fn values(&self) -> impl Iterator<Item = (Counter, u64, bool)> {
        self.0.iter().filter_map(|(counter, field)| match (field.wide, field.narrow) {
            (Some(wide), narrow) if wide > 0 || narrow.unwrap_or(0) == 0 => {
                Some((*counter, wide, false))
            }
            (_, narrow) => {
                let narrow = narrow?;
                Some((*counter, narrow, counter.may_be_saturated(narrow)))
            }
        })
    }

    /// Copies them to a reading.
    pub fn copy_to(&self, reading: &mut Reading<Raw>) {
        for (counter, value, is_saturated) in self.values() {
            reading.set(counter, value);
            if is_saturated {
                reading.saturated.insert(counter);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_tools_are_known() {
        for (name, expected) in [
            ("SymbolErrorCounter", (Counter::SymbolErrors, false)),
            ("SymbolErrorCounterExt", (Counter::SymbolErrors, true)),
            ("symbol_error_counter_extended", (Counter::SymbolErrors, true)),
            ("PortXmitDataExtended", (Counter::XmitData, true)),
            ("link_down_counter", (Counter::LinkDowned, false)),
            ("link_downed_counter_extended", (Counter::LinkDowned, true)),
            ("port_xmit_discards_extended", (Counter::XmitDiscards, true)),
            ("PortUniCastRcvPkts", (Counter::UnicastRcvPkts, false)),
            ("VL15Dropped", (Counter::Vl15Dropped, false)),
            ("LinkRecovers", (Counter::LinkErrorRecoveries, false)),
            ("PortMalformedPktErrors", (Counter::RcvMalformedPacketErrors, false)),
            ("PortSwHOQLifetimeLimitDiscards", (Counter::XmitHoqLimitDiscards, false)),
        ] {
            assert_eq!(by_name(name), Some(expected), "{name}");
        }
        assert_eq!(by_name("retransmission_per_sec"), None);
        assert_eq!(by_name("ext"), None);
    }

    #[test]
    fn unsupported_is_not_zero() {
        for text in ["-1", "NA", "N/A", "0xfffffffffffffffe", "", "0x", "x"] {
            assert_eq!(value(text), None, "{text:?}");
        }
        assert_eq!((value("0x0010"), value(" 7 ")), (Some(16), Some(7)));
        // A wrapped counter of a ConnectX-7: the evaluator reports it as impossible.
        assert_eq!(value("18446744073709551576"), Some(u64::MAX - 39));
    }

    #[test]
    fn field_that_counts_is_used() {
        let values = |fields: &[(&str, &str)]| {
            let mut counters = Counters::default();
            for (name, value) in fields {
                counters.set_by_name(name, false, value);
            }
            counters.values().collect::<Vec<_>>()
        };
        let symbols = Counter::SymbolErrors;
        for (fields, expected) in [
            (
                &[("SymbolErrorCounter", "11160"), ("SymbolErrorCounterExt", "0")][..],
                (11_160, false),
            ),
            (&[("SymbolErrorCounter", "65535"), ("SymbolErrorCounterExt", "0")], (65_535, true)),
            (
                &[("SymbolErrorCounter", "65535"), ("SymbolErrorCounterExt", "70000")],
                (70_000, false),
            ),
            (&[("SymbolErrorCounterExt", "65535")], (65_535, false)),
            (&[("SymbolErrorCounter", "0"), ("SymbolErrorCounterExt", "0")], (0, false)),
        ] {
            assert_eq!(values(fields), [(symbols, expected.0, expected.1)], "{fields:?}");
        }
    }
}
