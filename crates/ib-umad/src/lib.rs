//! Who carries a MAD: the wire as a trait, and the transactor that keeps many requests on it.
//!
//! A [`Wire`] sends and receives single MADs. A [`walk::Walk`] knows what to ask. The
//! [`transactor::Transactor`] stands between them: windows, deadlines, retries, back-off,
//! redirects. Neither walk nor transactor does I/O or reads a clock, so a device, a capture, a
//! test's script and the simulated fabric can all be the wire.

pub mod capture;
pub mod pace;
pub mod pulse;
pub mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transactor;
pub mod umad;
pub mod walk;

use std::net::Ipv6Addr;
use std::time::Duration;

use thiserror::Error;

use ib_mad::class_port_info::Redirect;
use ib_mad::moment::Anchor;
use ib_mad::p_key::PKey;
use ib_mad::{Class, Mad, Path, Query};
use ib_mad::{Guid, Lid, Moment};

/// A lane: SMPs and GMPs have windows of their own, for they meet different queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Subnet management: QP0, virtual lane 15, no flow control.
    Smp,
    /// General management: QP1.
    Gmp,
}

/// Whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// By a directed route, which needs no subnet manager.
    Directed(Path),
    /// By LID.
    Lid(Lid),
    /// By GID, for general management alone: an SMP never leaves its subnet.
    Global(GlobalRoute),
}

/// The way to a port by its GID: what the global route header says (IBTA 1.4, 8.3). It is how MADs
/// reach other subnets, and on RoCE the only way there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalRoute {
    /// Where it begins: the LID of the router, or of the port. RoCE has none: 0.
    pub lid: Lid,
    /// The port's GID. It has an IPv6 address' form, on RoCE version 2 it is one.
    pub gid: Ipv6Addr,
    /// Our own GID, by its place in our port's table of them.
    pub gid_index: u8,
    /// How many routers may stand between.
    pub hop_limit: u8,
    /// TClass.
    pub traffic_class: u8,
    /// FlowLabel, 20 bits.
    pub flow_label: u32,
}

/// A question to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whom.
    pub to: Address,
    /// What.
    pub query: Query,
}

impl Request {
    /// The class it travels in.
    pub fn class(&self) -> Class {
        self.query.class(matches!(self.to, Address::Directed(_)))
    }
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// No answer to it and to any of its retries.
    #[error("no answer")]
    TimedOut,
    /// Not asked: the node had just failed to answer anything.
    #[error("not asked, the node is silent")]
    Silent,
    /// Busy, each time.
    #[error("busy")]
    Busy,
    /// The device answered with this status instead.
    #[error("refused with MAD status {0:#06x}")]
    Status(u16),
    /// Our own side would not send it.
    #[error("could not be sent")]
    Unsent,
}

impl Failure {
    /// Whether the node gave no sign of life.
    pub fn is_silence(self) -> bool {
        matches!(self, Failure::TimedOut | Failure::Silent | Failure::Unsent)
    }
}

/// The queue pair and key that every performance management agent has (IBTA 1.4, 3.5.3).
const GSI: (u32, u32) = (1, 0x8001_0000);

/// A MAD on its way out, and where to.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The class, which picks the queue pair on our own side.
    pub class: Class,
    /// The destination's LID; the permissive one for a directed route.
    pub lid: Lid,
    /// The global route header, if there is to be one.
    pub route: Option<GlobalRoute>,
    /// The destination's queue pair.
    pub qp: u32,
    /// Its key; 0 on QP0.
    pub qkey: u32,
    /// The service level.
    pub sl: u8,
    /// The partition that a redirect names; `None` for the carrier's own.
    pub p_key: Option<PKey>,
    /// How long the carrier itself should wait before it gives the request up.
    pub timeout: Duration,
    /// The bytes.
    pub mad: Mad,
}

impl Parcel {
    fn new(
        request: &Request,
        redirect: Option<&Redirect>,
        transaction: u32,
        timeout: Duration,
    ) -> Self {
        let class = request.class();
        let (path, lid, route) = match &request.to {
            Address::Directed(path) => (Some(path), Lid::PERMISSIVE, None),
            Address::Lid(lid) => (None, *lid, None),
            Address::Global(route) => (None, route.lid, Some(*route)),
        };
        let (qp, qkey) = if class.is_smp() { (0, 0) } else { GSI };
        let plain = Parcel {
            class,
            lid,
            route,
            qp,
            qkey,
            sl: 0,
            p_key: None,
            timeout,
            mad: Mad::request(&request.query, path, transaction),
        };
        match redirect {
            Some(to) => Parcel {
                lid: to.lid,
                qp: to.qp,
                qkey: to.qkey,
                sl: to.sl,
                p_key: to.p_key,
                ..plain
            },
            None => plain,
        }
    }
}

/// What came in.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are MADs, and none is kept")]
pub enum Received {
    /// A MAD from the fabric.
    Mad {
        /// The LID that it says it comes from.
        from: Lid,
        /// Its bytes.
        mad: Mad,
    },
    /// The carrier gave up waiting for the answer to the request with this transaction id.
    Expired {
        /// The low 32 bits of the id.
        transaction: u32,
    },
    /// Something that is not a whole MAD.
    Malformed {
        /// How many bytes it had.
        bytes: usize,
    },
}

/// Why the wire cannot be used any more.
#[derive(Debug, Error)]
#[error("{device}: {problem}")]
pub struct WireError {
    /// Which device and port.
    pub device: String,
    /// What happened, and what it usually means.
    pub problem: String,
}

/// Why one MAD could not be sent.
#[derive(Debug, Error)]
pub enum SendError {
    /// This MAD was refused; others may do.
    #[error("refused: {0}")]
    Refused(std::io::Error),
    /// No room just now; the same MAD may do later.
    #[error("no room to send")]
    Full,
    /// The device is gone.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Something that carries single MADs to a fabric and back, and the clock that runs along with it.
pub trait Wire {
    /// The time now.
    fn now(&self) -> Moment;

    /// The time now, on this clock and on the wall.
    fn anchor(&self) -> Anchor;

    /// A discovery begins: what the carrier knows of its own port may have changed.
    fn look_again(&mut self) {}

    /// Our own port's GUID, if the carrier knows it before it is asked.
    fn port_guid(&self) -> Option<Guid> {
        None
    }

    /// Whether our own port has the P_Key to ask general management with. Without it such requests are
    /// not sent.
    fn in_partition(&self) -> bool {
        true
    }

    /// Sends a MAD, without waiting.
    fn send(&mut self, parcel: &Parcel) -> Result<(), SendError>;

    /// The next thing that came in, waiting for it until `until` at the most.
    fn receive(&mut self, until: Moment) -> Result<Option<Received>, WireError>;
}
