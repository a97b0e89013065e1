//! The wire: management datagrams as bytes and as values.
//!
//! A MAD is 256 bytes, big-endian (IBTA 1.4, chapter 13.4). Everything here is pure; whatever
//! comes in is decoded by offset from a buffer of that size, so no answer can make a decoder fail.

pub mod class_port_info;
pub mod clear;
pub mod clock;
pub mod counter;
pub mod device;
pub mod extended_speeds;
pub mod fec;
pub mod ids;
pub mod label;
pub mod layout;
pub mod m_key;
pub mod moment;
pub mod node;
pub mod p_key;
pub mod pma;
pub mod port_event;
pub mod port_info;
pub mod port_state;
pub mod rate;
pub mod reading;
pub mod smp;

pub use counter::Counter;
pub use ids::{Guid, Lid, PortNumber};
pub use moment::Moment;
pub use node::{NodeIdentity, NodeKind, PortRole};
pub use reading::Reading;

use std::fmt;

use clear::Clear;
use m_key::MKey;

/// The size of every MAD.
pub const LEN: usize = 256;

/// Where the attribute's data begins in the classes spoken here.
pub const DATA: usize = 64;

/// How long the data of a subnet management attribute is; directed routes keep their path behind.
const SMP_DATA_LEN: usize = 64;

/// Where InitialPath begins, with a byte that no hop uses.
const PATH: usize = DATA + SMP_DATA_LEN;

/// Where M_Key stands in an SMP (IBTA 1.4, 14.2.1).
const M_KEY: usize = 24;

/// Where PortSelect stands in each performance management attribute of a port.
const PORT_SELECT: usize = DATA + 1;

/// The methods that matter to a reader of the fabric.
pub mod method {
    /// Asks for an attribute.
    pub const GET: u8 = 0x01;
    /// Sets an attribute: here only ever counters, to zero, see [`clear`](super::clear).
    pub const SET: u8 = 0x02;
    /// Answers Get, and Set.
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
    /// Bits 2 to 4, code 1: a base or class version that the agent does not speak.
    pub const UNSUPPORTED_VERSION: u16 = 1 << 2;
    /// Code 2: a method that it does not know.
    pub const UNSUPPORTED_METHOD: u16 = 2 << 2;
    /// Code 3: a method that it knows, but not for this attribute.
    pub const UNSUPPORTED_ATTRIBUTE: u16 = 3 << 2;
    /// Code 7: a field, or the attribute's modifier, with a value that cannot be.
    pub const INVALID_FIELD: u16 = 7 << 2;

    /// Bits 2 to 4.
    const CODE: u16 = 7 << 2;

    /// Whether the agent does not know the method, or not for this attribute.
    pub fn is_unsupported(status: u16) -> bool {
        matches!(status & CODE, UNSUPPORTED_METHOD | UNSUPPORTED_ATTRIBUTE)
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

/// What one request asks for, apart from whom.
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
    /// The counters to set to zero, instead of asking for anything. This is the only Set of the
    /// program: nothing makes one without `--fabric.clear-saturated`, and no other can be said.
    pub clear: Option<Clear>,
    /// The M_Key that a subnet management attribute is asked with.
    pub m_key: MKey,
}

/// A MAD's bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Mad(pub [u8; LEN]);

impl Mad {
    /// The request that a query makes: a [`Mad::get`], but for the one that clears counters.
    pub fn request(query: &Query, path: Option<&Path>, transaction: u32) -> Mad {
        let mut mad = Mad::get(query, path, transaction);
        if let Some(clear) = query.clear {
            mad.0[3] = method::SET;
            clear.encode(&mut mad);
        }
        mad
    }

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
            bytes[PATH..PATH + path.ports.len()].copy_from_slice(&path.ports);
        }
        if query.subnet {
            bytes[M_KEY..M_KEY + 8].copy_from_slice(&query.m_key.0.to_be_bytes());
        } else {
            bytes[PORT_SELECT] = query.port_select;
        }
        mad
    }

    /// The answer to this request as its sender will see it, with no data yet: it went well, and
    /// apart from that it is the request's own header.
    ///
    /// A directed route has the direction bit then, and its hop pointer has counted back to 0, with
    /// which the sender's own port takes it (IBTA 1.4, 14.2.2.4; kernel: `smi_handle_dr_smp_recv`
    /// of drivers/infiniband/core/smi.c). A performance management agent
    /// says again which port it speaks of.
    #[must_use]
    pub fn answer(&self) -> Mad {
        let mut answer = self.clone();
        answer.0[3] = method::GET_RESPONSE;
        let data = if self.is_smp() { SMP_DATA_LEN } else { LEN - DATA };
        answer.0[DATA..DATA + data].fill(0);
        answer.put_be(4, 2, if self.is_directed() { status::DIRECTION.into() } else { 0 });
        if self.is_directed() {
            answer.0[6] = 0;
        } else if !self.is_smp() {
            answer.0[PORT_SELECT] = self.port_select();
        }
        answer
    }

    /// Sets the status, but not the direction bit that directed routes keep there.
    pub fn set_status(&mut self, status: u16) {
        let direction = self.u16(4) & status::DIRECTION;
        self.put_be(4, 2, (direction | status & !status::DIRECTION).into());
    }

    /// The byte at an offset.
    pub fn u8(&self, offset: usize) -> u8 {
        self.0[offset]
    }

    /// The 16-bit value at an offset.
    pub fn u16(&self, offset: usize) -> u16 {
        self.be(offset, 2) as u16
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
    #[inline]
    fn be(&self, offset: usize, bytes: usize) -> u64 {
        self.0[offset..offset + bytes].iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// Writes the low bytes of a value from an offset on, the highest first.
    pub fn put_be(&mut self, offset: usize, bytes: usize, value: u64) {
        for (below, byte) in self.0[offset..offset + bytes].iter_mut().rev().enumerate() {
            *byte = (value >> (8 * below)) as u8;
        }
    }

    /// The management class, as the wire says it.
    pub fn class(&self) -> u8 {
        self.u8(1)
    }

    /// Whether its class is subnet management, by either way.
    pub fn is_smp(&self) -> bool {
        self.is_directed() || self.class() == Class::SubnetLid as u8
    }

    /// Whether it travels by a directed route.
    pub fn is_directed(&self) -> bool {
        self.class() == Class::SubnetDirected as u8
    }

    /// The version of the base and of the class; a 1 each in all classes that are spoken here.
    pub fn versions(&self) -> [u8; 2] {
        [self.u8(0), self.u8(2)]
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

    /// The directed route that it took or is to take: the port to leave by at each hop. A route
    /// that says to be longer than one can be has as many as there is room for.
    pub fn path_ports(&self) -> &[PortNumber] {
        let hops = usize::from(self.u8(7)).min(Path::MAX_HOPS);
        &self.0[PATH + 1..=PATH + hops]
    }

    /// M_Key of a subnet management MAD; none in other classes.
    pub fn m_key(&self) -> MKey {
        if self.is_smp() { MKey(self.u64(M_KEY)) } else { MKey::NONE }
    }

    /// The same without its M_Key, and without the one that PortInfo tells to who knows it: to be
    /// shown to others.
    #[must_use]
    pub fn without_m_key(&self) -> Mad {
        let mut mad = self.clone();
        if self.is_smp() {
            mad.put_be(M_KEY, 8, 0);
            if self.attribute() == port_info::PortInfo::ID {
                mad.put_be(DATA, 8, 0);
            }
        }
        mad
    }

    /// PortSelect of a performance management attribute.
    pub fn port_select(&self) -> PortNumber {
        self.u8(PORT_SELECT)
    }

    /// The attribute's data.
    pub fn data(&self) -> &[u8] {
        &self.0[DATA..]
    }

    /// The attribute's data, to be written.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.0[DATA..]
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
    /// The same, asked with a key.
    #[must_use]
    pub fn with_m_key(self, m_key: MKey) -> Self {
        Query { m_key, ..self }
    }

    /// The class it travels in.
    pub fn class(&self, directed: bool) -> Class {
        match (self.subnet, directed) {
            (true, true) => Class::SubnetDirected,
            (true, false) => Class::SubnetLid,
            (false, _) => Class::Performance,
        }
    }

    /// Whether it is about something that an agent need not have, and is asked in passing. Agents are
    /// to refuse what they do not have, but not all do (ibsim says nothing): their silence to this
    /// says nothing of the node, and it is not worth a second try.
    pub fn may_go_unanswered(&self) -> bool {
        let passing: &[u16] = if self.subnet {
            &[extended_speeds::PortInfoExtended::ID, port_info::MellanoxExtendedPortInfo::ID]
        } else {
            &[pma::PortSamplesControl::ID]
        };
        passing.contains(&self.attribute)
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
    fn an_m_key_stands_in_subnet_management_alone_and_is_left_out_of_what_is_shown() {
        let key = MKey(0x0102_0304_0506_0708);
        for path in [None, Some(Path::HERE)] {
            let mut mad = Mad::get(&smp::port_info(1).with_m_key(key), path.as_ref(), 1);
            assert_eq!(mad.0[24..32], [1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!(mad.m_key(), key);
            // PortInfo begins with the key.
            mad.put_be(DATA, 8, key.0);
            mad.put_be(DATA + 8, 8, 0xfe80 << 48);
            let shown = mad.without_m_key();
            assert_eq!((shown.m_key(), shown.u64(DATA)), (MKey::NONE, 0));
            assert_eq!(shown.0[DATA + 8..], mad.0[DATA + 8..]);
            assert_eq!(shown.0[..24], mad.0[..24]);
        }
        let mad = Mad::get(&pma::class_port_info().with_m_key(key), None, 1);
        assert_eq!((mad.0[24..32].to_vec(), mad.m_key()), (vec![0; 8], MKey::NONE));
        let node = Mad::get(&smp::node_info().with_m_key(key), None, 1);
        assert_eq!(node.without_m_key().0[..], Mad::get(&smp::node_info(), None, 1).0[..]);
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
        let query = pma::counters(crate::counter::Attribute::PortCountersExtended, 36);
        let mad = Mad::get(&query, None, 1);
        assert_eq!((mad.attribute(), mad.u8(65)), (0x1d, 36));
    }

    #[test]
    fn an_answer_by_directed_route_has_come_back() {
        let path = Path::HERE.then(1).unwrap().then(7).unwrap();
        let mut request = Mad::get(&smp::port_info(3), Some(&path), 0xdead_beef);
        request.0[6] = 2;
        request.0[100] = 0x55;
        let mut answer = request.answer();
        assert_eq!(answer.0[..8], [1, 0x81, 1, 0x81, 0x80, 0, 0, 2]);
        assert_eq!((answer.transaction(), answer.status()), (0xdead_beef, 0));
        assert_eq!(answer.data()[..64], [0; 64], "what the sender left there");
        assert_eq!(answer.path_ports(), [1, 7]);
        assert!(smp::port_info(3).is_answered_by(&answer, true));
        answer.set_status(status::UNSUPPORTED_ATTRIBUTE);
        assert_eq!(answer.0[4..6], [0x80, 0x0c]);
        answer.set_status(0xffff);
        answer.set_status(0);
        assert_eq!(answer.0[4..6], [0x80, 0], "it stays on its way back");
    }

    #[test]
    fn an_answer_by_lid_has_no_direction() {
        let answer = Mad::get(&smp::port_info(3), None, 1).answer();
        assert_eq!(answer.0[..8], [1, 0x01, 1, 0x81, 0, 0, 0, 0]);
        let mut request = Mad::get(&pma::class_port_info(), None, 1);
        request.0[DATA..].fill(0x99);
        let mut answer = request.answer();
        assert_eq!(answer.port_select(), 0x99);
        assert!(answer.data().iter().enumerate().all(|(at, byte)| at == 1 || *byte == 0));
        answer.set_status(status::INVALID_FIELD | status::DIRECTION);
        assert_eq!(answer.u16(4), 0x001c, "nothing has a direction here");
        assert_eq!((answer.versions(), answer.is_smp()), ([1, 1], false));
    }

    #[test]
    fn a_path_that_says_to_be_too_long_is_cut() {
        let mut mad = Mad::get(&smp::node_info(), Some(&Path::HERE), 1);
        assert_eq!(mad.path_ports(), [0; 0]);
        for (hops, length) in [(1, 1), (63, 63), (64, 63), (255, 63)] {
            mad.0[7] = hops;
            assert_eq!(mad.path_ports().len(), length, "{hops}");
        }
    }

    #[test]
    fn statuses_are_those_of_the_specification() {
        for (status, value, unsupported) in [
            (status::UNSUPPORTED_VERSION, 0x04, false),
            (status::UNSUPPORTED_METHOD, 0x08, true),
            (status::UNSUPPORTED_ATTRIBUTE, 0x0c, true),
            (status::INVALID_FIELD, 0x1c, false),
            (status::BUSY, 0x01, false),
        ] {
            assert_eq!((status, status::is_unsupported(status)), (value, unsupported));
        }
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
