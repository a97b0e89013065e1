//! The open connections: what each of them does, and which is closed when there are too many.
//!
//! A server that is full does not refuse a newcomer: it closes the connection that waits longest, of the client network
//! that has the most. So a few clients cannot keep all others out, however often they connect again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Notify;

use super::activity::{Activity, CloseReason, Scarce};
use super::limits::Limits;
use super::locked::locked;

/// The network that a client is counted for: its IPv4 address, or its IPv6 /64, of which a host can choose any
/// address (RFC 4291, 2.5.4).
pub(super) fn client_network(peer: IpAddr) -> IpAddr {
    prefix(peer, 64)
}

/// An IPv4 address, or the beginning of an IPv6 address.
fn prefix(address: IpAddr, bits: u32) -> IpAddr {
    // On a dual-stack socket an IPv4 client has the address ::ffff:192.0.2.1.
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from(u128::from(address) >> (128 - bits) << (128 - bits)).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// A /48, which is what a site has (RFC 6177), is counted as one client if it connects from more /64 than this: it has
/// 65,536 of them.
const NETWORKS_OF_A_SITE: usize = 16;

#[derive(Debug)]
pub(super) struct Connection {
    pub activity: Mutex<Activity>,
    /// Notified when the connection is to be closed, and when the client sends no more.
    pub changed: Notify,
}

/// Who has reached the limit of connections, so that another one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    Client,
    Server,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, (IpAddr, Arc<Connection>)>,
}

/// A connection that may be closed; the one that waits longest is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    since: Instant,
    number: u64,
}

/// A client network, or all networks of a site, as one that shares what is scarce.
#[derive(Debug, Default)]
struct Party {
    has: usize,
    /// The one of its connections that is closed first, if one may be.
    candidate: Option<Candidate>,
}

impl Open {
    /// Each connection that is not being closed, with its network and its activity.
    fn each(&self, mut see: impl FnMut(u64, IpAddr, &Activity)) {
        for (number, (network, connection)) in &self.all {
            let activity = locked(&connection.activity);
            if activity.closing.is_none() {
                see(*number, *network, &activity);
            }
        }
    }

    /// How much there is of something, in all and of one network.
    fn count(&self, what: Scarce, network: IpAddr) -> (usize, usize) {
        let (mut all, mut own) = (0, 0);
        self.each(|_, other, activity| {
            all += what.of(activity);
            own += if other == network { what.of(activity) } else { 0 };
        });
        (all, own)
    }

    /// Closes the connection that waits longest, of the network that has the most and has one that may be closed.
    /// `newcomer` is the network that needs room, and would have `more` of it; among equals it is the first to give.
    /// Returns whether there was one, and its network.
    fn displace(
        &self,
        what: Scarce,
        (newcomer, more): (IpAddr, usize),
        only_own: bool,
    ) -> Option<IpAddr> {
        let mut sites: HashMap<IpAddr, HashSet<IpAddr>> = HashMap::new();
        sites.entry(prefix(newcomer, 48)).or_default().insert(newcomer);
        self.each(|_, network, _| {
            sites.entry(prefix(network, 48)).or_default().insert(network);
        });
        let party = |network: IpAddr| {
            let site = prefix(network, 48);
            let is_many = sites.get(&site).is_some_and(|all| all.len() > NETWORKS_OF_A_SITE);
            if is_many { site } else { network }
        };
        let own = party(newcomer);
        let mut parties = HashMap::from([(own, Party { has: more, candidate: None })]);
        self.each(|number, network, activity| {
            let Party { has, candidate } = parties.entry(party(network)).or_default();
            *has = has.saturating_add(what.of(activity));
            let this = Candidate { since: activity.since, number };
            if what.may_close(activity) && candidate.is_none_or(|oldest| this < oldest) {
                *candidate = Some(this);
            }
        });
        let least = parties.get(&own).map_or(0, |party| party.has);
        let may_give = |name, party: &Party| name == own || (!only_own && party.has >= least);
        let candidates = parties.iter().filter(|(name, party)| may_give(**name, party));
        // The party that has the most; of equal ones the newcomer's, and then the one that waits longest.
        let order = candidates.filter_map(|(name, party)| {
            Some((party.has, *name == own, std::cmp::Reverse(party.candidate?)))
        });
        let (.., std::cmp::Reverse(Candidate { number, .. })) = order.max()?;
        let (network, connection) = self.all.get(&number)?;
        locked(&connection.activity).closing = Some(CloseReason::Displaced(what));
        connection.changed.notify_waiters();
        Some(*network)
    }
}

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<Open>,
}

impl Connections {
    /// Adds a connection, until its slot is dropped. Another one may be closed for it: then with the network of that. Fails
    /// if all that could be closed have a response in progress.
    pub fn insert(
        self: &Arc<Self>,
        peer: IpAddr,
        limits: &Limits,
        now: Instant,
    ) -> Result<(Slot, Option<IpAddr>), Full> {
        let network = client_network(peer);
        let mut open = locked(&self.open);
        let (all, own) = open.count(Scarce::Connections, network);
        let full = if own >= limits.connections_per_client {
            Some(Full::Client)
        } else {
            (all >= limits.connections).then_some(Full::Server)
        };
        let displaced = match full {
            None => None,
            Some(full) => {
                let only_own = full == Full::Client;
                let closed = open.displace(Scarce::Connections, (network, 1), only_own);
                Some(closed.ok_or(full)?)
            }
        };
        let connection =
            Arc::new(Connection { activity: Activity::new(now).into(), changed: Notify::new() });
        let number = open.next;
        open.next += 1;
        open.all.insert(number, (network, Arc::clone(&connection)));
        drop(open);
        let slot = Slot { number, network, connection, connections: Arc::clone(self) };
        Ok((slot, displaced))
    }

    /// Whether more than half of all connections, or of this network's, are open.
    fn is_crowded(&self, network: IpAddr, limits: &Limits) -> bool {
        let (all, own) = locked(&self.open).count(Scarce::Connections, network);
        all > limits.connections / 2 || own > limits.connections_per_client / 2
    }
}

/// An open connection among all, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    number: u64,
    network: IpAddr,
    pub connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Slot {
    /// Whether there are so many connections that idle ones have to end soon.
    pub fn is_crowded(&self, limits: &Limits) -> bool {
        self.connections.is_crowded(self.network, limits)
    }

    /// Makes room for the response of this connection, which is counted already, among those that are in progress.
    /// `Err` if there are too many, and none is being written that could be given up; otherwise the network of one
    /// that was.
    pub fn admit_request(&self, limits: &Limits) -> Result<Option<IpAddr>, ()> {
        let open = locked(&self.connections.open);
        if open.count(Scarce::Requests, self.network).0 <= limits.concurrent_requests {
            return Ok(None);
        }
        open.displace(Scarce::Requests, (self.network, 0), false).map(Some).ok_or(())
    }

    /// Counts the memory of a response that is going to be written. Responses of those who have the most of it are
    /// given up until there is room: their networks.
    pub fn hold_memory(&self, bytes: usize, limits: &Limits) -> Vec<IpAddr> {
        let open = locked(&self.connections.open);
        let mut displaced = Vec::new();
        // This connection has none yet, so it is not among those that are closed.
        while open.count(Scarce::Memory, self.network).0.saturating_add(bytes) > limits.unsent_bytes
        {
            match open.displace(Scarce::Memory, (self.network, bytes), false) {
                Some(network) => displaced.push(network),
                None => break,
            }
        }
        locked(&self.connection.activity).unsent = Some(bytes);
        displaced
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        locked(&self.connections.open).all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::activity::Phase;

    /// The open connections of a test, each idle since the second of its number.
    struct Site {
        connections: Arc<Connections>,
        limits: Limits,
        began: Instant,
        slots: Vec<Slot>,
    }

    impl Site {
        fn new(limits: Limits) -> Self {
            let connections = Arc::default();
            Site { connections, limits, began: Instant::now(), slots: Vec::new() }
        }

        /// Opens one: which other one was closed for it, by its number.
        fn open(&mut self, peer: &str) -> Result<Option<usize>, Full> {
            let open = |site: &Site| {
                let is_open = |slot: &Slot| locked(&slot.connection.activity).closing.is_none();
                site.slots.iter().map(is_open).collect::<Vec<_>>()
            };
            let before = open(self);
            let now = self.began + Duration::from_secs(self.slots.len() as u64);
            let (slot, displaced) =
                self.connections.insert(peer.parse().unwrap(), &self.limits, now)?;
            let after = open(self);
            let closed = (0..before.len()).find(|index| before[*index] != after[*index]);
            assert_eq!(closed.is_some(), displaced.is_some());
            self.slots.push(slot);
            Ok(closed)
        }

        /// Makes a connection respond, with this much in memory.
        fn respond(&self, number: usize, unsent: Option<usize>) {
            let mut activity = locked(&self.slots[number].connection.activity);
            (activity.phase, activity.unsent) = (Phase::Responding(Duration::MAX), unsent);
        }
    }

    #[test]
    fn newcomer_displaces_the_oldest_of_the_network_with_the_most() {
        let limits = Limits { connections: 6, connections_per_client: 3, ..Limits::default() };
        let mut site = Site::new(limits);
        for peer in ["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.1", "192.0.2.2", "192.0.2.3"] {
            assert_eq!(site.open(peer), Ok(None), "{peer}");
        }
        // The one that has the most gives first; a client that responds keeps its connection.
        site.respond(1, None);
        assert_eq!(site.open("192.0.2.4"), Ok(Some(2)));
        // Of equal ones, who wants more gives its own.
        assert_eq!(site.open("::ffff:192.0.2.1"), Ok(Some(0)));
        // Who has reached its own limit displaces its own.
        let mut site = Site::new(Limits { connections: 9, ..limits });
        for peer in ["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.2"] {
            assert_eq!(site.open(peer), Ok(None), "{peer}");
        }
        assert_eq!(site.open("192.0.2.2"), Ok(Some(1)));
        for number in 2..=4 {
            site.respond(number, None);
        }
        assert_eq!(site.open("192.0.2.2"), Err(Full::Client));
        assert_eq!(site.open("192.0.2.1"), Ok(None));
    }

    #[test]
    fn server_that_only_responds_refuses_the_newcomer() {
        let limits = Limits { connections: 2, ..Limits::default() };
        let mut site = Site::new(limits);
        for number in 0..2 {
            site.open("192.0.2.1").unwrap();
            site.respond(number, None);
        }
        assert_eq!(site.open("192.0.2.2"), Err(Full::Server));
    }

    /// An IPv6 /62 has four /64, and a /48 has 65,536.
    #[test]
    fn neither_a_small_nor_a_large_ipv6_prefix_locks_others_out() {
        for networks in [4, 512] {
            let limits = Limits::default();
            let mut site = Site::new(limits);
            let attacker = |nth: usize| format!("2001:db8:1:{:x}::{nth:x}", nth % networks);
            let _friend = site.open("2001:db8:2::1").unwrap();
            for nth in 1..limits.connections {
                assert_eq!(site.open(&attacker(nth)), Ok(None));
            }
            // However often the attacker connects, it displaces its own connections.
            for nth in 0..600 {
                let closed = site.open(&attacker(nth)).unwrap();
                assert!(closed.is_some_and(|number| number > 0), "{networks}: {closed:?}");
            }
            for peer in ["2001:db8:2::2", "2001:db8:3::1", "192.0.2.1"] {
                let closed = site.open(peer).unwrap();
                assert!(closed.is_some_and(|number| number > 0), "{networks}: {peer}: {closed:?}");
            }
            assert!(locked(&site.slots[0].connection.activity).closing.is_none());
        }
    }

    #[test]
    fn responses_that_are_not_read_make_room_for_others() {
        let limits = Limits { concurrent_requests: 3, unsent_bytes: 100, ..Limits::default() };
        let mut site = Site::new(limits);
        for peer in ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"] {
            site.open(peer).unwrap();
        }
        for number in 0..3 {
            site.respond(number, None);
        }
        site.respond(3, None);
        assert_eq!(site.slots[3].admit_request(&limits), Err(()), "all are being built");
        site.respond(1, Some(10));
        let first = site.slots[0].network;
        assert_eq!(site.slots[3].admit_request(&limits), Ok(Some(first)));
        assert_eq!(site.slots[3].admit_request(&limits), Ok(None));
        // The same for the memory of responses.
        site.respond(0, Some(60));
        site.respond(2, Some(30));
        assert_eq!(site.slots[3].hold_memory(20, &limits), [first]);
        assert!(locked(&site.slots[0].connection.activity).closing.is_some());
        assert!(locked(&site.slots[2].connection.activity).closing.is_none());
        assert!(site.slots[3].hold_memory(40, &limits).is_empty());
    }

    #[test]
    fn crowded_is_more_than_half_of_all_or_of_a_client() {
        let mut site =
            Site::new(Limits { connections: 8, connections_per_client: 4, ..Limits::default() });
        for peer in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1"] {
            site.open(peer).unwrap();
        }
        let crowded =
            |site: &Site| [0, 2].map(|number| site.slots[number].is_crowded(&site.limits));
        assert_eq!(crowded(&site), [false, false]);
        site.open("192.0.2.1").unwrap();
        assert_eq!(crowded(&site), [true, false]);
        site.open("2001:db8:0:0:ffff::9").unwrap();
        assert_eq!(crowded(&site), [true, true]);
        site.slots.truncate(3);
        assert_eq!(crowded(&site), [false, false]);
    }
}
