#![doc = include_str!("../README.md")]

pub mod capture;
pub mod client;
pub mod query;
pub mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod umad;

use std::net::Ipv6Addr;
use std::time::Duration;

use ib_mad::class_port_info::Redirect;
use ib_mad::moment::Anchor;
use ib_mad::p_key::PKey;
use ib_mad::{Class, DirectedRoute, Guid, Lid, Mad, Moment, Query};
use thiserror::Error;

/// The management queue pairs. Each has its own window, because their packets meet different queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueuePair {
    /// Subnet management packets (SMPs): virtual lane 15, no flow control.
    Qp0,
    /// General management packets (GMPs).
    Qp1,
}

/// Destination of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// By a directed route, which needs no subnet manager.
    Directed(DirectedRoute),
    /// By LID.
    Lid(Lid),
    /// By GID, for GMPs only: SMPs do not leave their subnet.
    Global(GlobalRoute),
}

/// Route to a port by its GID: the fields of the global route header (IBTA 1.4, 8.3). MADs to other
/// subnets need it, and all MADs on RoCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GlobalRoute {
    /// LID of the first hop: of the router, or of the port. 0 on RoCE.
    pub lid: Lid,
    /// GID of the port, in the form of an IPv6 address, which it is on RoCE version 2.
    pub gid: Ipv6Addr,
    /// Index of the source GID in the GID table of the local port.
    pub gid_index: u8,
    /// HopLmt: maximum number of routers.
    pub hop_limit: u8,
    /// TClass.
    pub traffic_class: u8,
    /// FlowLabel, 20 bits.
    pub flow_label: u32,
}

/// A request to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Request {
    pub to: Address,
    pub query: Query,
}

impl Request {
    /// Management class.
    pub fn class(&self) -> Class {
        self.query.class(matches!(self.to, Address::Directed(_)))
    }

    /// Queue pair of sender and receiver.
    pub fn queue_pair(&self) -> QueuePair {
        if self.class().is_smp() { QueuePair::Qp0 } else { QueuePair::Qp1 }
    }
}

/// Why a request failed, and its retries with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RequestError {
    #[error("no response")]
    TimedOut,
    /// Not sent: the node did not respond to earlier requests.
    #[error("not sent: the node is unresponsive")]
    Unresponsive,
    #[error("busy")]
    Busy,
    #[error("refused with MAD status {0:#06x}")]
    Status(u16),
    /// The transport refused to send it.
    #[error("not sent")]
    Unsent,
}

impl RequestError {
    /// Whether the node did not respond at all.
    pub fn is_no_response(self) -> bool {
        matches!(self, RequestError::TimedOut | RequestError::Unresponsive | RequestError::Unsent)
    }
}

/// Q_Key of QP1 (IBTA 1.4, 3.5.3).
const QP1_QKEY: u32 = 0x8001_0000;

/// A MAD to send, with its destination.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct OutgoingMad {
    /// The class, which selects the local queue pair.
    pub class: Class,
    /// LID of the destination; the permissive LID for a directed route.
    pub lid: Lid,
    pub route: Option<GlobalRoute>,
    pub qp: u32,
    /// Q_Key; 0 on QP0.
    pub qkey: u32,
    pub sl: u8,
    /// P_Key of a redirect; `None` for the transport's own.
    pub p_key: Option<PKey>,
    /// Time-out of the request in the kernel.
    pub timeout: Duration,
    pub mad: Mad,
}

impl OutgoingMad {
    fn new(
        request: &Request,
        redirect: Option<Redirect>,
        transaction_id: u32,
        timeout: Duration,
    ) -> Self {
        let class = request.class();
        let (directed, lid, route) = match &request.to {
            Address::Directed(route) => (Some(route), Lid::PERMISSIVE, None),
            Address::Lid(lid) => (None, *lid, None),
            Address::Global(route) => (None, route.lid, Some(*route)),
        };
        let (qp, qkey) = if class.is_smp() { (0, 0) } else { (1, QP1_QKEY) };
        let agent = Redirect { lid, qp, qkey, sl: 0, p_key: None };
        let Redirect { lid, qp, qkey, sl, p_key } = redirect.unwrap_or(agent);
        let mad = request.query.request(directed, transaction_id);
        OutgoingMad { class, lid, route, qp, qkey, sl, p_key, timeout, mad }
    }
}

/// What a transport received.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names of the fields say it")]
#[expect(clippy::large_enum_variant, reason = "nearly all are MADs, and none is kept")]
pub enum Received {
    /// A MAD from the fabric.
    Mad { from: Lid, mad: Mad },
    /// The kernel's time-out of a request.
    Expired { transaction_id: u32 },
    /// A packet that is not a complete MAD.
    Malformed { bytes: usize },
}

/// Why a transport is no longer usable.
#[derive(Debug, Error)]
#[error("{device}: {problem}")]
#[expect(missing_docs, reason = "the other names say it")]
pub struct TransportError {
    pub device: String,
    pub problem: String,
}

/// Why one MAD could not be sent.
#[derive(Debug, Error)]
pub enum SendError {
    /// This MAD was refused; others may be accepted.
    #[error("refused: {0}")]
    Refused(std::io::Error),
    /// The send queue is full; the same MAD may be accepted later.
    #[error("send queue full")]
    Full,
    /// The device was removed.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Sends and receives single MADs, and provides the clock.
pub trait MadTransport {
    /// The current moment.
    fn now(&self) -> Moment;

    /// The current moment, with wall-clock time.
    fn anchor(&self) -> Anchor;

    /// Refreshes what is cached of the local port; called at each discovery.
    fn refresh(&mut self) {}

    /// GUID of the local port, if it is known without a query.
    fn port_guid(&self) -> Option<Guid> {
        None
    }

    /// Whether the local port has the P_Key for GMPs. Without it GMPs are not sent.
    fn has_p_key(&self) -> bool {
        true
    }

    /// Sends a MAD without waiting.
    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError>;

    /// Receives, waiting at most until `until`.
    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError>;
}
