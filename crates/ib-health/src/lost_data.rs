//! Which counters count the data that a port lost.

use ib_mad::Counter;

/// The counters of lost data.
pub(crate) const LOST_DATA: [Counter; 2] = [Counter::SymbolErrors, Counter::FecUncorrectableBlocks];

/// The errors that a port counted, from the increases of SymbolErrorCounter and of uncorrectable FEC blocks. With error
/// correction, lost data counts as symbols, as uncorrectable blocks or, mostly, as both.
pub fn lost_data(by: impl Fn(Counter) -> Option<u64>) -> Option<u64> {
    LOST_DATA.into_iter().filter_map(by).max()
}
