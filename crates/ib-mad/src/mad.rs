//! The bytes of a MAD: header and directed route.

use std::fmt;

use display_text::labeled_enum;

use crate::ids::PortNumber;
use crate::m_key::MKey;

/// The size of every MAD.
pub const LEN: usize = 256;

/// Offset of the attribute's data in the supported classes.
pub const DATA: usize = 64;

/// Length of the data of a subnet management attribute; InitialPath follows it.
pub(crate) const SMP_DATA_LEN: usize = 64;

/// Offset of InitialPath, whose first byte no hop uses.
const INITIAL_PATH: usize = DATA + SMP_DATA_LEN;

/// Offset of M_Key in an SMP (IBTA 1.4, 14.2.1).
pub(crate) const M_KEY: usize = 24;

/// Offset of VSKey in a MAD of the vendor class: the key of a device's agent, which subnet managers with a key manager
/// set; 0 is none.
pub const VENDOR_KEY: usize = 24;

/// Offset of an attribute's data in a MAD of the vendor class.
pub const VENDOR_DATA: usize = 32;

/// AttributeID of PortInfo, whose data begins with an M_Key.
const PORT_INFO: u16 = 0x0015;

/// AttributeID of SMInfo, whose data has an SM_Key after the GUID.
const SM_INFO: u16 = 0x0020;

/// Offset of PortSelect in the performance management attributes of a port.
pub(crate) const PORT_SELECT: usize = DATA + 1;

/// Methods.
pub mod method {
    /// Get.
    pub const GET: u8 = 0x01;
    /// Set; sent only to clear counters, see [`clear`](crate::clear).
    pub const SET: u8 = 0x02;
    /// Response to Get and to Set.
    pub const GET_RESPONSE: u8 = 0x81;
}

/// The bits of a MAD's status (IBTA 1.4, table 113).
pub mod status {
    /// The direction bit that a directed-route SMP carries in its status.
    pub const DIRECTION: u16 = 0x8000;
    /// Bit 0: busy, retry later.
    pub const BUSY: u16 = 0x0001;
    /// Bit 1: redirect required.
    pub const REDIRECT: u16 = 0x0002;
    /// Bits 2 to 4, code 1: unsupported base or class version.
    pub const UNSUPPORTED_VERSION: u16 = 1 << 2;
    /// Code 2: unsupported method.
    pub const UNSUPPORTED_METHOD: u16 = 2 << 2;
    /// Code 3: unsupported combination of method and attribute.
    pub const UNSUPPORTED_ATTRIBUTE: u16 = 3 << 2;
    /// Code 7: invalid value in a field or in the attribute modifier.
    pub const INVALID_FIELD: u16 = 7 << 2;

    /// Bits 2 to 4.
    const CODE: u16 = 7 << 2;

    /// Whether the agent does not support the method, or not for this attribute.
    pub fn is_unsupported(status: u16) -> bool {
        matches!(status & CODE, UNSUPPORTED_METHOD | UNSUPPORTED_ATTRIBUTE)
    }
}

labeled_enum! {
    /// A management class; the discriminants are the codes.
    #[repr(u8)]
    pub enum Class {
        SubnetDirected = 0x81, "smp_directed", "Subnet management, directed-route.";
        SubnetLid = 0x01, "smp_lid", "Subnet management, LID-routed.";
        Performance = 0x04, "perfmgt", "Performance management.";
        Vendor = 0x0a, "vendor", "Vendor-specific class of NVIDIA (Mellanox) devices: general information and registers.";
    }
}

impl Class {
    /// Index in [`Class::ALL`].
    pub fn index(self) -> usize {
        Self::ALL.iter().position(|class| *class == self).unwrap_or_default()
    }

    /// Whether the class uses QP0 and virtual lane 15.
    pub fn is_smp(self) -> bool {
        matches!(self, Class::SubnetDirected | Class::SubnetLid)
    }
}

/// A directed route: the egress port of each hop, from the local port on, and the plane that it starts from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirectedRoute {
    hops: u8,
    ports: [PortNumber; DirectedRoute::MAX_HOPS + 1],
    /// Last: routes are ordered by their hops first.
    plane: u8,
}

impl DirectedRoute {
    /// The longest route: byte 0 of the 64 is unused.
    pub const MAX_HOPS: usize = 63;

    /// The empty route, to the local node.
    pub const LOCAL: DirectedRoute =
        DirectedRoute { hops: 0, ports: [0; DirectedRoute::MAX_HOPS + 1], plane: 0 };

    /// The empty route of a plane of a multi-plane HCA, from 1 on. Plane 0 is any, and the only one of other HCAs.
    pub const fn of_plane(plane: u8) -> DirectedRoute {
        DirectedRoute { plane, ..DirectedRoute::LOCAL }
    }

    /// The plane that the route starts from; 0 is any.
    pub fn plane(&self) -> u8 {
        self.plane
    }

    /// This route extended by one hop; `None` if it is full.
    pub fn then(mut self, port: PortNumber) -> Option<DirectedRoute> {
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

impl fmt::Debug for DirectedRoute {
    /// As infiniband-diags print it: `0,1,5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.ports[1..=usize::from(self.hops)].iter().try_for_each(|port| write!(f, ",{port}"))?;
        if self.plane == 0 { Ok(()) } else { write!(f, " of plane {}", self.plane) }
    }
}

/// The bytes of a MAD.
#[derive(Clone, PartialEq, Eq)]
pub struct Mad(pub [u8; LEN]);

impl Mad {
    /// The successful response to this request as its sender receives it, without data: the header of the
    /// request with the response's method and status.
    ///
    /// With a directed route the direction bit is set and the hop pointer is back at 0, with which the
    /// sender's own port accepts it (IBTA 1.4, 14.2.2.4; kernel: `smi_handle_dr_smp_recv` of
    /// drivers/infiniband/core/smi.c). A performance management agent repeats PortSelect.
    #[must_use]
    pub fn response(&self) -> Mad {
        let mut response = self.clone();
        response.0[3] = method::GET_RESPONSE;
        response.put_be(4, 2, 0);
        if self.is_directed() {
            response.put_be(4, 2, status::DIRECTION.into());
            response.0[6] = 0;
        }
        if self.is_smp() {
            response.0[DATA..INITIAL_PATH].fill(0);
        } else if self.class() == Class::Vendor as u8 {
            response.0[VENDOR_DATA..].fill(0);
        } else {
            response.0[DATA..].fill(0);
            response.0[PORT_SELECT] = self.port_select();
        }
        response
    }

    /// Makes it a directed-route SMP: its path from the local port on.
    pub(crate) fn set_route(&mut self, route: &DirectedRoute) {
        self.0[7] = route.hops;
        self.0[32..36].fill(0xff); // DrSLID and DrDLID: directed all the way
        self.0[INITIAL_PATH..INITIAL_PATH + route.ports.len()].copy_from_slice(&route.ports);
    }

    /// Sets the status; the direction bit of directed routes keeps its value.
    pub fn set_status(&mut self, status: u16) {
        let direction = self.be(4, 2) as u16 & status::DIRECTION;
        self.put_be(4, 2, (direction | status & !status::DIRECTION).into());
    }

    /// The byte at an offset.
    pub fn u8(&self, offset: usize) -> u8 {
        self.0[offset]
    }

    /// The value of `bytes` bytes at an offset, big-endian.
    ///
    /// # Panics
    /// Past the end. The offsets are constants, all of them below [`LEN`].
    #[inline]
    pub fn be(&self, offset: usize, bytes: usize) -> u64 {
        self.0[offset..offset + bytes].iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// Writes the low `bytes` bytes of a value at an offset, big-endian.
    #[inline]
    pub fn put_be(&mut self, offset: usize, bytes: usize, value: u64) {
        for (below, byte) in self.0[offset..offset + bytes].iter_mut().rev().enumerate() {
            *byte = (value >> (8 * below)) as u8;
        }
    }

    /// MgmtClass.
    pub fn class(&self) -> u8 {
        self.u8(1)
    }

    /// Whether the class is subnet management, LID-routed or directed-route.
    pub fn is_smp(&self) -> bool {
        self.is_directed() || self.class() == Class::SubnetLid as u8
    }

    /// Whether it is a directed-route SMP.
    pub fn is_directed(&self) -> bool {
        self.class() == Class::SubnetDirected as u8
    }

    /// BaseVersion and ClassVersion; both are 1 in all supported classes.
    pub fn versions(&self) -> [u8; 2] {
        [self.u8(0), self.u8(2)]
    }

    /// The method.
    pub fn method(&self) -> u8 {
        self.u8(3)
    }

    /// The status without the direction bit of directed routes; 0 is success.
    pub fn status(&self) -> u16 {
        self.be(4, 2) as u16 & !status::DIRECTION
    }

    /// The low 32 bits of the transaction id, which a response returns unchanged.
    pub fn transaction_id(&self) -> u32 {
        self.be(12, 4) as u32
    }

    /// AttributeID.
    pub fn attribute(&self) -> u16 {
        self.be(16, 2) as u16
    }

    /// AttributeModifier.
    pub fn modifier(&self) -> u32 {
        self.be(20, 4) as u32
    }

    /// The egress port of each hop of the directed route. A hop count above the maximum is truncated.
    pub fn route_ports(&self) -> &[PortNumber] {
        let hops = usize::from(self.u8(7)).min(DirectedRoute::MAX_HOPS);
        &self.0[INITIAL_PATH + 1..=INITIAL_PATH + hops]
    }

    /// M_Key of a subnet management MAD; none in other classes.
    pub fn m_key(&self) -> MKey {
        if self.is_smp() { MKey(self.be(M_KEY, 8)) } else { MKey::NONE }
    }

    /// The same without its M_Key or VSKey and without the M_Key in PortInfo and the SM_Key in SMInfo, for output to
    /// files.
    #[must_use]
    pub fn without_m_key(&self) -> Mad {
        let mut mad = self.clone();
        if self.is_smp() {
            mad.put_be(M_KEY, 8, 0);
            match self.attribute() {
                PORT_INFO => mad.put_be(DATA, 8, 0),
                SM_INFO => mad.put_be(DATA + 8, 8, 0),
                _ => {}
            }
        } else if self.class() == Class::Vendor as u8 {
            mad.put_be(VENDOR_KEY, 8, 0);
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

    /// The attribute's data, mutable.
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
            .field("transaction", &self.transaction_id())
            .field("attribute", &self.attribute())
            .field("modifier", &self.modifier())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directed_route_is_limited_to_63_hops() {
        let mut route = DirectedRoute::LOCAL;
        for _ in 0..DirectedRoute::MAX_HOPS {
            route = route.then(1).unwrap();
        }
        assert_eq!(route.hops(), 63);
        assert_eq!(route.then(1), None);
    }

    #[test]
    fn mad_status_codes_match_specification() {
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
}
