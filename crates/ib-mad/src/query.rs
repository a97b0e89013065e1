//! The requests that are sent, apart from their destinations. Each attribute's module makes its own.

use crate::class_port_info::ClassPortInfo;
use crate::clear::Clear;
use crate::ids::PortNumber;
use crate::m_key::MKey;
use crate::mad::{Class, DirectedRoute, LEN, M_KEY, Mad, PORT_SELECT, VENDOR_KEY, method, status};
use crate::register::RegisterQuery;

/// A request apart from its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Query {
    pub management: Management,
    pub attribute: u16,
    pub modifier: u32,
    pub port_select: PortNumber,
    /// Counters to clear: the only Set of the program, sent only with `--fabric.clear-saturated`.
    pub clear: Option<Clear>,
    /// The M_Key of a query of subnet management, or the VSKey of one of the vendor class.
    pub m_key: MKey,
    /// The register that a query of the vendor class reads.
    pub register: Option<RegisterQuery>,
    /// The attribute is optional. Not all agents refuse what they do not support (ibsim sends no response): a timeout
    /// of such a query says nothing about the node and is not retried.
    pub is_optional: bool,
    /// It is sent also to a destination that did not respond to other requests. Its own timeouts never keep the others
    /// from being sent.
    pub is_always_sent: bool,
}

/// What a query manages. With the kind of its destination it decides the management class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the classes")]
pub enum Management {
    Subnet,
    Performance,
    Vendor,
}

impl Query {
    /// The Get of a subnet management attribute.
    pub(crate) const fn subnet(attribute: u16, modifier: u32) -> Self {
        Query {
            management: Management::Subnet,
            attribute,
            modifier,
            port_select: 0,
            clear: None,
            m_key: MKey::NONE,
            register: None,
            is_optional: false,
            is_always_sent: false,
        }
    }

    /// The Get of a performance management attribute.
    pub(crate) const fn performance(attribute: u16, port_select: PortNumber) -> Self {
        let management = Management::Performance;
        Query { management, port_select, ..Query::subnet(attribute, 0) }
    }

    /// The Get of an attribute of the vendor class.
    pub(crate) const fn vendor(attribute: u16, modifier: u32) -> Self {
        Query { management: Management::Vendor, ..Query::subnet(attribute, modifier) }.optional()
    }

    /// The same query with an M_Key or a VSKey.
    #[must_use]
    pub fn with_m_key(self, m_key: MKey) -> Self {
        Query { m_key, ..self }
    }

    /// The management class of the request.
    pub fn class(&self, directed: bool) -> Class {
        match (self.management, directed) {
            (Management::Subnet, true) => Class::SubnetDirected,
            (Management::Subnet, false) => Class::SubnetLid,
            (Management::Performance, _) => Class::Performance,
            (Management::Vendor, _) => Class::Vendor,
        }
    }

    /// Whether it is not sent again after a timeout, which says nothing about the node. A Set is not: if only the
    /// response was lost, a second one would clear the events since the first.
    pub fn is_sent_once(&self) -> bool {
        self.is_optional || self.clear.is_some()
    }

    /// The same query of an optional attribute.
    #[must_use]
    pub(crate) const fn optional(self) -> Self {
        Query { is_optional: true, ..self }
    }

    /// The same query, sent also to a destination that did not respond to others: it may be these that it drops, or
    /// only this one.
    #[must_use]
    pub fn always_sent(self) -> Self {
        Query { is_always_sent: true, ..self }
    }

    /// The request: a Get, or the Set that clears counters. `transaction_id` is the low 32 bits; the kernel sets the
    /// high ones. With a route it is a directed-route SMP.
    pub fn request(&self, route: Option<&DirectedRoute>, transaction_id: u32) -> Mad {
        let mut mad = Mad([0; LEN]);
        // BaseVersion and ClassVersion are 1.
        mad.0[..4].copy_from_slice(&[1, self.class(route.is_some()) as u8, 1, method::GET]);
        mad.put_be(12, 4, transaction_id.into());
        mad.put_be(16, 2, self.attribute.into());
        mad.put_be(20, 4, self.modifier.into());
        if let Some(route) = route {
            mad.set_route(route);
        }
        match self.management {
            Management::Subnet => mad.put_be(M_KEY, 8, self.m_key.0),
            Management::Performance => {
                mad.0[PORT_SELECT] = self.port_select;
                if let Some(clear) = self.clear {
                    mad.0[3] = method::SET;
                    clear.encode(&mut mad);
                }
            }
            Management::Vendor => {
                mad.put_be(VENDOR_KEY, 8, self.m_key.0);
                if let Some(register) = self.register {
                    register.encode(&mut mad);
                }
            }
        }
        mad
    }

    /// Whether a MAD is a response to this query, with any status. A redirect returns ClassPortInfo instead
    /// of the requested attribute (IBTA 1.4, 13.5.1.1).
    pub fn matches_response(&self, mad: &Mad, directed: bool) -> bool {
        let redirect = mad.status() & status::REDIRECT != 0 && mad.attribute() == ClassPortInfo::ID;
        mad.method() == method::GET_RESPONSE
            && mad.class() == self.class(directed) as u8
            && (redirect || (mad.attribute() == self.attribute && mad.modifier() == self.modifier))
            && self.matches_port_select(mad)
    }

    /// Whether counters are those of the port that was asked. A response that names port 0 names none: mlx5 leaves the
    /// byte at 0 where the driver answers instead of the firmware (kernel: `process_pma_cmd` of
    /// drivers/infiniband/hw/mlx5/mad.c). ClassPortInfo has ClassVersion there, and a refusal may have anything.
    fn matches_port_select(&self, mad: &Mad) -> bool {
        let names_port = self.management == Management::Performance
            && self.attribute != ClassPortInfo::ID
            && mad.status() == 0
            && mad.port_select() != 0;
        !names_port || mad.port_select() == self.port_select
    }
}

#[cfg(test)]
mod tests;
