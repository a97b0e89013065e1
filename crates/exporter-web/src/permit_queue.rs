//! Permits that client networks take in turn: for password checks, and for responses that are built.
//!
//! A network with many requests gets no more turns: the first request of a network waits for at most one of each other
//! network.
//! The queue is bounded, for each network and in all.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::connections::client_network;
use super::locked::locked;

/// How many permits there are, and how many requests may wait for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimits {
    pub permits: usize,
    /// Requests of one client network.
    pub waiting_per_client: usize,
    /// Requests in all.
    pub waiting: usize,
}

type Waiter = oneshot::Sender<Turn>;

#[derive(Debug, Default)]
struct State {
    held: usize,
    /// In the order in which they are served, with their networks.
    waiters: VecDeque<(IpAddr, Waiter)>,
}

impl State {
    fn count(&self, network: IpAddr) -> usize {
        self.waiters.iter().filter(|(other, _)| *other == network).count()
    }

    /// Adds a waiter. `None` if its network has as many as one may have, or if there are as many as there
    /// may be and no other network has more of them than this one would have.
    fn enqueue(&mut self, network: IpAddr, limits: QueueLimits) -> Option<oneshot::Receiver<Turn>> {
        // Clients that disconnected wait no longer.
        self.waiters.retain(|(_, waiter)| !waiter.is_closed());
        let own = self.count(network);
        if own >= limits.waiting_per_client {
            return None;
        }
        if self.waiters.len() >= limits.waiting {
            let networks = self.waiters.iter().map(|(network, _)| *network);
            let longest = networks.max_by_key(|network| self.count(*network))?;
            if self.count(longest) <= own + 1 {
                return None;
            }
            // The latest of that network is refused.
            let latest = self.waiters.iter().rposition(|(network, _)| *network == longest)?;
            self.waiters.remove(latest);
        }
        // Behind all that have at most as many of their network before them.
        let mut counts = HashMap::new();
        let place = self.waiters.iter().position(|(network, _)| {
            let count = counts.entry(*network).or_insert(0);
            *count += 1;
            *count > own + 1
        });
        let (sender, receiver) = oneshot::channel();
        self.waiters.insert(place.unwrap_or(self.waiters.len()), (network, sender));
        Some(receiver)
    }
}

/// The permits, and who waits for one.
#[derive(Debug)]
pub(super) struct PermitQueue {
    limits: QueueLimits,
    state: Mutex<State>,
}

impl PermitQueue {
    pub fn new(limits: QueueLimits) -> Arc<Self> {
        Arc::new(PermitQueue { limits, state: Mutex::default() })
    }

    /// Waits for a permit for a client of this address; `None` if too many wait. Dropping the future ends the wait.
    pub async fn acquire(self: &Arc<Self>, peer: IpAddr) -> Option<Turn> {
        let waiting = {
            let mut state = locked(&self.state);
            if state.held < self.limits.permits {
                state.held += 1;
                return Some(Turn { turns: Arc::clone(self) });
            }
            state.enqueue(client_network(peer), self.limits)?
        };
        waiting.await.ok()
    }
}

/// A permit, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<PermitQueue>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = locked(&self.turns.state);
            let next = state.waiters.pop_front();
            if next.is_none() {
                state.held -= 1;
            }
            next
        };
        if let Some((_, next)) = next {
            // If that client has disconnected meanwhile, this permit is dropped here, and so handed on.
            let _ = next.send(Turn { turns: Arc::clone(&self.turns) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const WAITING_PER_CLIENT: usize = 8;
    const WAITING: usize = 64;

    fn turns(permits: usize) -> Arc<PermitQueue> {
        let (waiting_per_client, waiting) = (WAITING_PER_CLIENT, WAITING);
        PermitQueue::new(QueueLimits { permits, waiting_per_client, waiting })
    }

    type Acquiring = Pin<Box<dyn Future<Output = Option<Turn>>>>;

    fn poll(acquiring: &mut Acquiring) -> Poll<Option<Turn>> {
        acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// A client that waits.
    fn waits(lock: &Arc<PermitQueue>, peer: &str) -> Acquiring {
        let (lock, peer) = (Arc::clone(lock), peer.parse().unwrap());
        let mut acquiring: Acquiring = Box::pin(async move { lock.acquire(peer).await });
        assert!(poll(&mut acquiring).is_pending(), "{peer} has to wait");
        acquiring
    }

    fn is_refused(lock: &Arc<PermitQueue>, peer: &str) -> bool {
        let (lock, peer) = (Arc::clone(lock), peer.parse().unwrap());
        let mut acquiring: Acquiring = Box::pin(async move { lock.acquire(peer).await });
        matches!(poll(&mut acquiring), Poll::Ready(None))
    }

    fn first(lock: &Arc<PermitQueue>) -> Turn {
        let taken = Arc::clone(lock);
        let mut acquiring: Acquiring =
            Box::pin(async move { taken.acquire([192, 0, 2, 9].into()).await });
        let Poll::Ready(Some(guard)) = poll(&mut acquiring) else { panic!("the lock is held") };
        guard
    }

    /// The order in which these acquire the lock, as indexes.
    fn served(guard: Turn, mut all: Vec<Acquiring>) -> Vec<usize> {
        let mut order = Vec::new();
        drop(guard);
        // A guard that was handed over is dropped here, and so handed on.
        while let Some((index, guard)) =
            all.iter_mut().enumerate().find_map(|(index, acquiring)| {
                if order.contains(&index) {
                    return None;
                }
                match poll(acquiring) {
                    Poll::Ready(Some(guard)) => Some((index, guard)),
                    _ => None,
                }
            })
        {
            order.push(index);
            drop(guard);
        }
        order
    }

    #[test]
    fn client_networks_acquire_in_turn() {
        let lock = turns(1);
        let guard = first(&lock);
        let mut all: Vec<_> = (0..4).map(|_| waits(&lock, "192.0.2.1")).collect();
        all.push(waits(&lock, "192.0.2.2"));
        all.push(waits(&lock, "192.0.2.2"));
        all.push(waits(&lock, "192.0.2.3"));
        assert_eq!(served(guard, all), [0, 4, 6, 1, 5, 2, 3]);
        drop(first(&lock));
    }

    #[test]
    fn waiters_of_one_client_network_are_limited() {
        let lock = turns(1);
        let _guard = first(&lock);
        for (one, same, another) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.2.2"),
            ("2001:db8::1", "2001:db8:0:0:ffff::9", "2001:db8:0:1::1"),
        ] {
            let all: Vec<_> = (0..WAITING_PER_CLIENT).map(|_| waits(&lock, one)).collect();
            assert!(is_refused(&lock, one) && is_refused(&lock, same), "{one}");
            drop(waits(&lock, another));
            drop(all);
            drop(waits(&lock, one));
        }
    }

    #[test]
    fn waiter_that_disconnects_frees_its_place() {
        let lock = turns(1);
        let guard = first(&lock);
        let mut all: Vec<_> = (0..WAITING_PER_CLIENT).map(|_| waits(&lock, "192.0.2.1")).collect();
        assert!(is_refused(&lock, "192.0.2.1"));
        drop(all.drain(..WAITING_PER_CLIENT - 1));
        all.push(waits(&lock, "192.0.2.1"));
        assert_eq!(served(guard, all), [0, 1]);
        // A guard handed to a client that did not wait for it is not lost.
        let guard = first(&lock);
        let all = [waits(&lock, "192.0.2.1"), waits(&lock, "192.0.2.2")];
        drop(guard);
        drop(all);
        drop(first(&lock));
    }

    #[test]
    fn full_queue_drops_a_waiter_of_the_longest() {
        let lock = turns(1);
        let guard = first(&lock);
        let mut all = Vec::new();
        for address in 0..WAITING / WAITING_PER_CLIENT {
            let peer = format!("192.0.2.{address}");
            all.extend((0..WAITING_PER_CLIENT).map(|_| waits(&lock, &peer)));
        }
        all.push(waits(&lock, "198.51.100.1"));
        let before = all.len();
        all.retain_mut(|acquiring| poll(acquiring).is_pending());
        assert_eq!(before - all.len(), 1, "one is refused in favor of the newcomer");
        let (newcomer, order) = (all.len() - 1, served(guard, all));
        let place = order.iter().position(|index| *index == newcomer);
        assert_eq!(place, Some(WAITING / WAITING_PER_CLIENT), "after one of each address");
    }

    #[test]
    fn several_permits_are_held_at_the_same_time() {
        let lock = turns(2);
        let [one, _two] = [first(&lock), first(&lock)];
        let mut third = waits(&lock, "192.0.2.1");
        drop(one);
        let Poll::Ready(Some(third)) = poll(&mut third) else { panic!("it has a permit") };
        let mut fourth = waits(&lock, "192.0.2.1");
        drop(third);
        assert!(poll(&mut fourth).is_ready());
    }
}
