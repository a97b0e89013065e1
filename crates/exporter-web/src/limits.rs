//! Limits of the HTTP server: no client, and not all of them together, keep the exporter from its work.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The limits of a server. What a site has to scrape with is far below them, so they are no settings.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once. A site has a few Prometheuses and some browsers; each idle connection takes
    /// some 20 kB, with TLS 50.
    pub connections: usize,
    /// Connections at once of one client address, so that a client which opens many leaves some for
    /// others. A browser opens some six; behind a reverse proxy all clients have its address.
    pub connections_per_client: usize,
    /// Requests that are answered at once. One whose client does not read holds 128 kB of plain text
    /// and as much again on its way out, beside what all share.
    pub concurrent_requests: usize,
    /// Of these, such whose answer is made for the client: each may be all that is known as JSON, some
    /// 40 MB for 60,000 ports, until it is written.
    pub concurrent_api: usize,
    /// How long a handshake with the first request's head may take, and the head of each further one
    /// from its first byte. curl takes milliseconds; across the world it is a second.
    pub header_timeout: Duration,
    /// How long a connection may be idle between requests: two of the longest usual scrape intervals. While
    /// more than half of the connections are open it is [`Limits::header_timeout`], so that a full server
    /// soon accepts connections again.
    pub idle_timeout: Duration,
    /// Within this time a client has to read [`Limits::write_stall_bytes`] of an answer, or all of it.
    pub write_stall_timeout: Duration,
    /// 2 kB/s with 30 s: slower than any line a Prometheus scrapes by.
    pub write_stall_bytes: usize,
    /// Within this time a client has to read all of an answer, unless it is a download: until then, what
    /// was served is kept. A scrape has its interval at the most.
    pub response_timeout: Duration,
    /// How long a handler may take until an answer begins: as long as our own clients wait for one.
    pub handler_timeout: Duration,
    /// The same for a download, which may have to be made first.
    pub download_handler_timeout: Duration,
    /// Bytes of a request's head. Cookies of others on the same host come along; servers usually take 8
    /// to 64 kB. A connection buffers twice as much at the most.
    pub head_bytes: usize,
    /// Bytes of a request's body. Nothing that is served here takes any.
    pub body_bytes: u64,
    /// How often the deadlines of a connection are checked.
    pub check_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Limits {
            connections: 512,
            connections_per_client: 128,
            concurrent_requests: 256,
            concurrent_api: 4,
            header_timeout: seconds(10),
            idle_timeout: seconds(300),
            write_stall_timeout: seconds(30),
            write_stall_bytes: 64 << 10,
            response_timeout: seconds(300),
            handler_timeout: seconds(150),
            download_handler_timeout: seconds(1_800),
            head_bytes: 32 << 10,
            body_bytes: 16 << 10,
            check_interval: seconds(1),
        }
    }
}

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

    /// Whether more than half of all connections, or of this client's, are open.
    pub fn is_crowded(&self, peer: IpAddr, limits: &Limits) -> bool {
        let open = self.open();
        open.values().sum::<usize>() > limits.connections / 2
            || open
                .get(&client_network(peer))
                .is_some_and(|count| *count > limits.connections_per_client / 2)
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
        let (client, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        assert!(!connections.is_crowded(client, &limits));
        let _second = insert("::ffff:192.0.2.1").unwrap();
        let roomy = Limits { connections: 9, ..limits };
        assert!(connections.is_crowded(client, &roomy) && !connections.is_crowded(other, &roomy));
        assert!(connections.is_crowded(other, &limits));
        assert_eq!(insert("192.0.2.1").unwrap_err(), Full::Client);
        let _other = insert("2001:db8::1").unwrap();
        assert_eq!(insert("2001:db8:0:0:ffff::9").unwrap_err(), Full::Server);
        drop(first);
        let _third = insert("2001:db8:0:0:ffff::9").unwrap();
        assert_eq!(insert("2001:db8::1").unwrap_err(), Full::Client);
    }
}
