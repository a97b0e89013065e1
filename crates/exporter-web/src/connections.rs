//! How many connections there are, in all and of each client address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limits::Limits;

/// Whose share of a limit a client has: an IPv4 address, or a /64 of IPv6, of which each host has all
/// addresses to choose from (RFC 4291, 2.5.4).
pub(super) fn client_network(peer: IpAddr) -> IpAddr {
    // A client of IPv4 comes as ::ffff:192.0.2.1 to a socket of both.
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// There are as many as there may be.
    Server,
    /// This client has as many as one may have.
    Client,
}

/// The open connections by client network.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more connection until its slot is dropped.
    pub fn insert(self: &Arc<Self>, peer: IpAddr, limits: &Limits) -> Result<Slot, Full> {
        let client = client_network(peer);
        let mut open = self.open();
        if open.get(&client).is_some_and(|count| *count >= limits.connections_per_client) {
            return Err(Full::Client);
        }
        if open.values().sum::<usize>() >= limits.connections {
            return Err(Full::Server);
        }
        *open.entry(client).or_default() += 1;
        Ok(Slot { client, connections: Arc::clone(self) })
    }
}

/// An open connection among all, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    client: IpAddr,
    connections: Arc<Connections>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_in_all_and_per_client() {
        let limits = Limits { connections: 3, connections_per_client: 2, ..Limits::default() };
        let connections = Arc::new(Connections::default());
        let insert = |peer: &str| connections.insert(peer.parse().unwrap(), &limits);
        let first = insert("192.0.2.1").unwrap();
        let _second = insert("::ffff:192.0.2.1").unwrap();
        assert_eq!(insert("192.0.2.1").unwrap_err(), Full::Client);
        let _other = insert("2001:db8::1").unwrap();
        assert_eq!(insert("2001:db8:0:0:ffff::9").unwrap_err(), Full::Server);
        drop(first);
        let _third = insert("2001:db8:0:0:ffff::9").unwrap();
        assert_eq!(insert("2001:db8::1").unwrap_err(), Full::Client);
    }
}
