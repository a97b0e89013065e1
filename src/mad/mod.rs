//! The wire: management datagrams as bytes and as values.
//!
//! A MAD is 256 bytes, big-endian (IBTA 1.4, chapter 13.4). Everything here is pure; whatever
//! comes in is decoded by offset from a buffer of that size, so no answer can make a decoder fail.

pub mod class_port_info;
pub mod pma;
pub mod port_info;
pub mod smp;

use std::fmt;

use crate::fabric::PortNumber;

/// The size of every MAD.
pub const LEN: usize = 256;

/// Where the attribute's data begins in the classes spoken here.
pub const DATA: usize = 64;

/// The methods that matter to a reader of the fabric.
pub mod method {
    /// Asks for an attribute.
    pub const GET: u8 = 0x01;
    /// Answers Get.
    pub const GET_RESPONSE: u8 = 0x81;
}

/// The bits of a MAD's status (IBTA 1.4, table 113).
pub mod status {
    /// The direction bit that a directed-route SMP carries in its status.
    pub const DIRECTION: u16 = 0x8000;
    /// Bit 0: too busy, ask again later.
    pub const BUSY: u16 = 0x0001;
    /// Bit 1: ask elsewhere.
    pub const REDIRECT: u16 = 0x0002;

    /// Bits 2 to 4: whether the agent does not know the method (2), or not for this attribute (3).
    pub fn is_unsupported(status: u16) -> bool {
        matches!(status >> 2 & 7, 2 | 3)
    }
}

/// A management class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Subnet management, routed by LID.
    SubnetLid = 0x01,
    /// Subnet management, by a directed route.
    SubnetDirected = 0x81,
    /// Performance management.
    Performance = 0x04,
}

impl Class {
    /// All classes that are spoken.
    pub const ALL: [Class; 3] = [Class::SubnetDirected, Class::SubnetLid, Class::Performance];

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Class::SubnetLid => "smp_lid",
            Class::SubnetDirected => "smp_directed",
            Class::Performance => "perfmgt",
        }
    }

    /// Its place in [`Class::ALL`].
    pub fn index(self) -> usize {
        match self {
            Class::SubnetDirected => 0,
            Class::SubnetLid => 1,
            Class::Performance => 2,
        }
    }

    /// Whether it travels on QP0, virtual lane 15.
    pub fn is_smp(self) -> bool {
        self != Class::Performance
    }
}

/// A directed route: the port to leave by at each hop, from our own port on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    hops: u8,
    ports: [PortNumber; Path::MAX_HOPS + 1],
}

impl Path {
    /// The longest route that fits: byte 0 of its 64 is unused.
    pub const MAX_HOPS: usize = 63;

    /// The route to ourselves.
    pub const HERE: Path = Path { hops: 0, ports: [0; Path::MAX_HOPS + 1] };

    /// This route and one hop more; `None` when it is full.
    pub fn then(mut self, port: PortNumber) -> Option<Path> {
        let hop = usize::from(self.hops) + 1;
        *self.ports.get_mut(hop)? = port;
        self.hops += 1;
        Some(self)
    }

    /// The number of hops.
    pub fn hops(&self) -> u8 {
        self.hops
    }
}

impl fmt::Debug for Path {
    /// As infiniband-diags write it: `0,1,5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.ports[1..=usize::from(self.hops)].iter().try_for_each(|port| write!(f, ",{port}"))
    }
}

/// What one Get asks for, apart from whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// A subnet management attribute; otherwise a performance management one.
    pub subnet: bool,
    /// AttributeID.
    pub attribute: u16,
    /// AttributeModifier.
    pub modifier: u32,
    /// PortSelect of a performance management attribute.
    pub port_select: PortNumber,
}

/// A MAD's bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Mad(pub [u8; LEN]);

impl Mad {
    /// The Get for a query, with the low 32 bits of its transaction id; the kernel sets the high
    /// ones. With a path it travels as a directed-route SMP.
    pub fn get(query: &Query, path: Option<&Path>, transaction: u32) -> Mad {
        let mut mad = Mad([0; LEN]);
        let bytes = &mut mad.0;
        let class = query.class(path.is_some());
        bytes[0] = 1; // BaseVersion
        bytes[1] = class as u8;
        bytes[2] = 1; // ClassVersion
        bytes[3] = method::GET;
        bytes[12..16].copy_from_slice(&transaction.to_be_bytes());
        bytes[16..18].copy_from_slice(&query.attribute.to_be_bytes());
        bytes[20..24].copy_from_slice(&query.modifier.to_be_bytes());
        if let Some(path) = path {
            bytes[7] = path.hops;
            bytes[32..36].fill(0xff); // DrSLID and DrDLID: directed all the way
            bytes[128..192].copy_from_slice(&path.ports);
        }
        if !query.subnet {
            bytes[DATA + 1] = query.port_select;
        }
        mad
    }

    /// The byte at an offset.
    pub fn u8(&self, offset: usize) -> u8 {
        self.0[offset]
    }

    /// The 16-bit value at an offset.
    pub fn u16(&self, offset: usize) -> u16 {
        self.be(offset, 2) as u16
    }

    /// The 24-bit value at an offset.
    pub fn u24(&self, offset: usize) -> u32 {
        self.be(offset, 3) as u32
    }

    /// The 32-bit value at an offset.
    pub fn u32(&self, offset: usize) -> u32 {
        self.be(offset, 4) as u32
    }

    /// The 64-bit value at an offset.
    pub fn u64(&self, offset: usize) -> u64 {
        self.be(offset, 8)
    }

    // Offsets are constants of this module's own, all of them below LEN.
    fn be(&self, offset: usize, bytes: usize) -> u64 {
        self.0[offset..offset + bytes].iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// The management class, as the wire says it.
    pub fn class(&self) -> u8 {
        self.u8(1)
    }

    /// The method.
    pub fn method(&self) -> u8 {
        self.u8(3)
    }

    /// The status, without the direction bit that directed routes keep there; 0 is success.
    pub fn status(&self) -> u16 {
        self.u16(4) & !status::DIRECTION
    }

    /// The low half of the transaction id, which is the part that comes back as it was sent.
    pub fn transaction(&self) -> u32 {
        self.u32(12)
    }

    /// The attribute's id.
    pub fn attribute(&self) -> u16 {
        self.u16(16)
    }

    /// The attribute's modifier.
    pub fn modifier(&self) -> u32 {
        self.u32(20)
    }

    /// The attribute's data.
    pub fn data(&self) -> &[u8] {
        &self.0[DATA..]
    }
}

impl fmt::Debug for Mad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mad")
            .field("class", &self.class())
            .field("method", &self.method())
            .field("status", &self.status())
            .field("transaction", &self.transaction())
            .field("attribute", &self.attribute())
            .field("modifier", &self.modifier())
            .finish_non_exhaustive()
    }
}

impl Query {
    /// The class it travels in.
    pub fn class(&self, directed: bool) -> Class {
        match (self.subnet, directed) {
            (true, true) => Class::SubnetDirected,
            (true, false) => Class::SubnetLid,
            (false, _) => Class::Performance,
        }
    }

    /// Whether a MAD is an answer to it, whatever its status says. A redirect answers with
    /// ClassPortInfo instead of what was asked (IBTA 1.4, 13.5.1.1).
    pub fn is_answered_by(&self, mad: &Mad, directed: bool) -> bool {
        let redirect =
            mad.status() & status::REDIRECT != 0 && mad.attribute() == class_port_info::ID;
        mad.method() == method::GET_RESPONSE
            && mad.class() == self.class(directed) as u8
            && (redirect || (mad.attribute() == self.attribute && mad.modifier() == self.modifier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directed_get_has_its_path_where_switches_look_for_it() {
        let path = Path::HERE.then(1).unwrap().then(7).unwrap();
        let mad = Mad::get(&smp::port_info(3), Some(&path), 0xdead_beef);
        assert_eq!(mad.0[..4], [1, 0x81, 1, 0x01]);
        assert_eq!((mad.u8(6), mad.u8(7)), (0, 2), "hop pointer and count");
        assert_eq!(mad.transaction(), 0xdead_beef);
        assert_eq!((mad.attribute(), mad.modifier()), (0x15, 3));
        assert_eq!(mad.u32(32), 0xffff_ffff);
        assert_eq!(mad.0[128..132], [0, 1, 7, 0]);
        assert_eq!(format!("{path:?}"), "0,1,7");
    }

    #[test]
    fn a_path_ends_at_63_hops() {
        let mut path = Path::HERE;
        for _ in 0..Path::MAX_HOPS {
            path = path.then(1).unwrap();
        }
        assert_eq!(path.hops(), 63);
        assert_eq!(path.then(1), None);
    }

    #[test]
    fn a_performance_get_selects_its_port() {
        let mad = Mad::get(&pma::class_port_info(), None, 1);
        assert_eq!(mad.0[..4], [1, 0x04, 1, 0x01]);
        let query = pma::counters(crate::fabric::counter::Attribute::PortCountersExtended, 36);
        let mad = Mad::get(&query, None, 1);
        assert_eq!((mad.attribute(), mad.u8(65)), (0x1d, 36));
    }

    #[test]
    fn only_a_response_to_the_same_question_is_an_answer() {
        let query = smp::port_info(3);
        let mut answer = Mad::get(&query, None, 1);
        assert!(!query.is_answered_by(&answer, false), "our own request");
        answer.0[3] = method::GET_RESPONSE;
        assert!(query.is_answered_by(&answer, false));
        assert!(!query.is_answered_by(&answer, true), "another class");
        assert!(!smp::port_info(4).is_answered_by(&answer, false), "another modifier");
        assert!(!smp::node_info().is_answered_by(&answer, false), "another attribute");
        answer.0[17] = class_port_info::ID as u8;
        assert!(!query.is_answered_by(&answer, false));
        answer.0[5] = status::REDIRECT as u8;
        assert!(query.is_answered_by(&answer, false), "a redirect");
    }
}
