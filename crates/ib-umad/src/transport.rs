//! What a transport of MADs does: the real one, simulated ones, and those that wrap another one.

use std::time::Duration;

use ib_mad::class_port_info::Redirect;
use ib_mad::moment::Anchor;
use ib_mad::p_key::PKey;
use ib_mad::{Class, DirectedRoute, Guid, Lid, Mad, Moment};
use thiserror::Error;

use crate::plane_set::PlaneSet;
use crate::request::{Address, GlobalRoute, Request};

/// Q_Key of QP1 (IBTA 1.4, 3.5.3).
pub(crate) const QP1_QKEY: u32 = 0x8001_0000;

/// A MAD to send, with its destination.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct OutgoingMad {
    /// The class, which selects the local queue pair.
    pub class: Class,
    /// The plane that a directed route starts from; 0 is any.
    pub plane: u8,
    /// LID of the destination; the permissive LID for a directed route.
    pub lid: Lid,
    pub route: Option<GlobalRoute>,
    pub qp: u32,
    /// Q_Key; 0 on QP0. The kernel sends with that of QP1 whatever it is.
    pub qkey: u32,
    /// Service level: that of the redirect, or the one that is set for GMPs; 0 for SMPs.
    pub sl: u8,
    /// P_Key of a redirect; `None` for the transport's own.
    pub p_key: Option<PKey>,
    /// Time-out of the request in the kernel.
    pub timeout: Duration,
    pub mad: Mad,
}

impl OutgoingMad {
    pub(crate) fn new(
        request: &Request,
        redirect: Option<Redirect>,
        transaction_id: u32,
        timeout: Duration,
        sl: u8,
    ) -> Self {
        let class = request.class();
        let (directed, lid, route) = match &request.to {
            Address::Directed(route) => (Some(route), Lid::PERMISSIVE, None),
            Address::Lid(lid) => (None, *lid, None),
            Address::Global(route) => (None, route.lid, Some(*route)),
        };
        // SMPs have virtual lane 15.
        let (qp, qkey, sl) = if class.is_smp() { (0, 0, 0) } else { (1, QP1_QKEY, sl) };
        let agent = Redirect { lid, qp, qkey, sl, p_key: None };
        let Redirect { lid, qp, qkey: _, sl, p_key } = redirect.unwrap_or(agent);
        let mad = request.query.request(directed, transaction_id);
        let plane = directed.map_or(0, DirectedRoute::plane);
        OutgoingMad { class, plane, lid, route, qp, qkey, sl, p_key, timeout, mad }
    }
}

/// What a transport received.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names of the fields say it")]
#[expect(clippy::large_enum_variant, reason = "nearly all are MADs, and none is kept")]
pub enum Received {
    /// A MAD from the fabric.
    Mad { from: Lid, mad: Mad },
    /// The kernel's time-out of a request; the class as in the MAD.
    Expired { class: u8, transaction_id: u32 },
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

/// What a transport knows of the local port.
#[derive(Clone, Copy, Debug)]
pub struct LocalPort {
    /// GUID of the port, if it is known.
    pub guid: Option<Guid>,
    /// Its present LID, if it is known.
    pub lid: Option<Lid>,
    /// Whether the port has the P_Key for GMPs. Without it GMPs are not sent.
    pub has_p_key: bool,
    /// Whether requests of the vendor class can be sent, which read registers.
    pub has_vendor_class: bool,
    /// Whether its device is still the one that was opened. If not, each send may be refused until it is opened again.
    pub is_present: bool,
    /// The planes whose ports are Active, as far as is known: directed routes can start from each. Empty with an HCA that
    /// is not multi-plane.
    pub planes: PlaneSet,
}

impl LocalPort {
    /// A port of which nothing is known, and that sends GMPs.
    pub const UNKNOWN: LocalPort = LocalPort {
        guid: None,
        lid: None,
        has_p_key: true,
        has_vendor_class: true,
        is_present: true,
        planes: PlaneSet::EMPTY,
    };
}

/// Sends and receives single MADs, and provides the clock. No method has a default: a transport that wraps another one
/// forwards all.
pub trait MadTransport {
    /// The current moment.
    fn now(&self) -> Moment;

    /// The current moment, with wall-clock time.
    fn anchor(&self) -> Anchor;

    /// What is known of the local port without a query.
    fn local_port(&self) -> LocalPort;

    /// Reads again what is cached of the local port; called before each discovery and each sweep.
    fn refresh(&mut self);

    /// Sends a MAD without waiting.
    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError>;

    /// Receives, waiting at most until `until`.
    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError>;
}
