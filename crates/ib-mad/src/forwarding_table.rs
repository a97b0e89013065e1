//! The linear forwarding table of a switch: the port by which packets to each unicast LID leave (IBTA 1.4,
//! 14.2.5.10).

use crate::ids::{Lid, PortNumber};
use crate::layout::{attribute, bytes};
use crate::query::Query;

attribute! {
    /// One block of LinearForwardingTable: the ports of 64 LIDs, of which the first is 64 times the AttributeModifier.
    pub struct LinearForwardingTable = 0x0019 {
        words: [u64; 8] = bytes(0, 8), "The ports of eight LIDs each.";
    }
}

/// What a switch does with packets to a LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingEntry {
    /// It sends them by this port; 0 is its own management port, at which they have arrived.
    Port(PortNumber),
    /// It discards them: the entry is 255, or the LID is none that can be routed.
    NoRoute,
}

impl LinearForwardingTable {
    /// LIDs per block.
    pub const PER_BLOCK: u16 = 64;
    /// What an entry has where there is no route. It is no number of a port (IBTA 1.4, 14.2.5.10).
    pub const NO_ROUTE: PortNumber = 255;
    /// A block without routes, as devices return it beyond the LIDs that are in use.
    pub const EMPTY: LinearForwardingTable = LinearForwardingTable { words: [u64::MAX; 8] };

    /// The block that has a LID.
    pub fn block_of(lid: Lid) -> u16 {
        lid.0 / Self::PER_BLOCK
    }

    /// Reads a [block](Self::block_of) of a switch's table.
    pub fn query(block: u16) -> Query {
        Query::subnet(Self::ID, block.into())
    }

    /// The entry of a LID of its block.
    pub fn entry(&self, lid: Lid) -> ForwardingEntry {
        let (word, shift) = Self::place(lid);
        match (self.words[word] >> shift & 0xff) as u8 {
            Self::NO_ROUTE => ForwardingEntry::NoRoute,
            port => ForwardingEntry::Port(port),
        }
    }

    /// The same block with the port of a LID; 255 for none.
    #[must_use]
    pub fn with_port(mut self, lid: Lid, port: PortNumber) -> Self {
        let (word, shift) = Self::place(lid);
        self.words[word] = self.words[word] & !(0xff << shift) | u64::from(port) << shift;
        self
    }

    /// The word that has a LID's port, and how many bits are below it.
    fn place(lid: Lid) -> (usize, u32) {
        let at = lid.0 % Self::PER_BLOCK;
        (usize::from(at / 8), 56 - 8 * u32::from(at % 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::Mad;
    use crate::testing::response;

    #[test]
    fn entries_are_bytes_in_the_order_of_lids() {
        let mad = response(&[(0, &[0, 17, 255]), (8, &[36]), (62, &[1, 254]), (64, &[9])]);
        let table = LinearForwardingTable::decode(&mad);
        for (lid, expected) in [
            // Port 0 is the switch itself, not a missing route.
            (0, ForwardingEntry::Port(0)),
            (1, ForwardingEntry::Port(17)),
            (2, ForwardingEntry::NoRoute),
            (8, ForwardingEntry::Port(36)),
            (62, ForwardingEntry::Port(1)),
            (63, ForwardingEntry::Port(254)),
            // LIDs of other blocks have the same places.
            (64 + 1, ForwardingEntry::Port(17)),
            (0xbfff, ForwardingEntry::Port(254)),
        ] {
            assert_eq!(table.entry(Lid(lid)), expected, "LID {lid}");
        }
    }

    #[test]
    fn encoded_block_has_the_ports_that_were_set() {
        let table = LinearForwardingTable::EMPTY
            .with_port(Lid(64), 1)
            .with_port(Lid(65), 0)
            .with_port(Lid(127), 254)
            .with_port(Lid(64), 7);
        let mut mad: Mad = response(&[(63, &[0, 0xee])]);
        table.encode(&mut mad);
        assert_eq!(mad.data()[..3], [7, 0, 255]);
        assert_eq!(mad.data()[62..65], [255, 254, 0xee], "the path behind it is not touched");
    }

    #[test]
    fn block_of_a_lid_is_the_modifier() {
        for (lid, block) in [(0, 0), (1, 0), (63, 0), (64, 1), (5_000, 78), (0xbfff, 767)] {
            assert_eq!(LinearForwardingTable::block_of(Lid(lid)), block, "LID {lid}");
        }
        let query = LinearForwardingTable::query(767);
        assert_eq!((query.attribute, query.modifier), (0x0019, 767));
        assert!(!query.is_sent_once(), "every switch has the attribute, so that it is retried");
    }
}
