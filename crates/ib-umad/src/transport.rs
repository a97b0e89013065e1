//! What a transport of MADs does: the real one, simulated ones, and those that wrap another one.

use std::time::Duration;

use ib_mad::class_port_info::Redirect;
use ib_mad::moment::Anchor;
use ib_mad::p_key::PKey;
use ib_mad::{Class, Guid, Lid, Mad, Moment};
use thiserror::Error;

use crate::request::{Address, GlobalRoute, Request};

/// Q_Key of QP1 (IBTA 1.4, 3.5.3).
pub(crate) const QP1_QKEY: u32 = 0x8001_0000;

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
    pub(crate) fn new(
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

/// What a transport knows of the local port.
#[derive(Clone, Copy, Debug)]
pub struct LocalPort {
    /// GUID of the port, if it is known.
    pub guid: Option<Guid>,
    /// Whether the port has the P_Key for GMPs. Without it GMPs are not sent.
    pub has_p_key: bool,
}

impl LocalPort {
    /// A port of which nothing is known, and that sends GMPs.
    pub const UNKNOWN: LocalPort = LocalPort { guid: None, has_p_key: true };
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

    /// Reads again what is cached of the local port; called at each discovery.
    fn refresh(&mut self);

    /// Sends a MAD without waiting.
    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError>;

    /// Receives, waiting at most until `until`.
    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError>;
}
