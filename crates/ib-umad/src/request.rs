//! Requests to nodes, and why they fail.

use std::net::Ipv6Addr;

use ib_mad::{Class, DirectedRoute, Lid, Query};
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
    /// Not sent: the node responds so slowly that it used up its time in this run.
    #[error("not sent: the node responds too slowly")]
    Slow,
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
