//! Where requests come in: addresses that are bound, or sockets that systemd hands over.
//!
//! It is done before any thread is started: what binds low ports may be given up afterwards.

use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;
use thiserror::Error;

/// What cannot be listened on.
#[derive(Debug, Error)]
pub enum ListenError {
    /// An address that cannot be bound.
    #[error(
        "cannot listen on {address}: {error}: free the port, or name another with --web.listen-address"
    )]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// Nothing was handed over.
    #[error(
        "--web.systemd-socket: systemd has handed no socket over: enable the unit's .socket and start \
         that, or leave the flag away"
    )]
    NoSocket,
    /// A socket of another kind was handed over.
    #[error(
        "--web.systemd-socket: socket {number} is not a listening TCP socket ({error}): the .socket \
         unit is to have ListenStream= with a port or an address and port, and Accept=no"
    )]
    NotTcp {
        /// Its place among those handed over, from 1.
        number: usize,
        /// Why not.
        error: std::io::Error,
    },
}

/// Binds to an address, to serve there.
pub fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    try_bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| ListenError::Address { address, error })
}

/// Binds to an address. All addresses means IPv4 alone on a host without IPv6.
pub fn try_bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let mut bound = TcpListener::bind(address);
    if let Err(error) = &bound
        && address.ip().is_unspecified()
        && address.is_ipv6()
        && error.raw_os_error() == Some(libc::EAFNOSUPPORT)
    {
        bound = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], address.port())));
    }
    bound
}

/// Takes all sockets that systemd hands over: one at least, and TCP alone.
pub fn handed_over() -> Result<Vec<TcpListener>, ListenError> {
    let mut sockets = ListenFd::from_env();
    let count = sockets.len();
    let take = |index| {
        let number = index + 1;
        let gone = || std::io::Error::other("it is taken already");
        sockets
            .take_tcp_listener(index)
            .and_then(|listener| listener.ok_or_else(gone))
            .and_then(|listener| {
                // A TCP socket has an address and port; one of another family has none to tell.
                listener.local_addr()?;
                listener.set_nonblocking(true).map(|()| listener)
            })
            .map_err(|error| ListenError::NotTcp { number, error })
    };
    let listeners = (0..count).map(take).collect::<Result<Vec<_>, _>>()?;
    if listeners.is_empty() { Err(ListenError::NoSocket) } else { Ok(listeners) }
}
