//! A lock that client addresses acquire in turn.
//!
//! Addresses take turns, regardless of how often each one requests. So an address that guesses passwords
//! continuously delays the first login of another by two checks at most: the running one and its next one,
//! and not by all its earlier requests.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::limits::client_network;

/// How many requests of one client network wait: a browser opens some six connections.
const WAITING_PER_CLIENT: usize = 8;

/// How many requests wait in all. With the usual cost of bcrypt, 60 ms, that is four seconds.
const WAITING: usize = 64;

type Waiter = oneshot::Sender<FairGuard>;

#[derive(Debug, Default)]
struct LockState {
    is_held: bool,
    /// Waiters by client network; the first queue is next. No queue is empty.
    queues: VecDeque<(IpAddr, VecDeque<Waiter>)>,
}

impl LockState {
    /// Adds a waiter. `None` if its network has as many as one may have, or if there are as many as there
    /// may be and no other network has more of them than this one would have.
    fn enqueue(&mut self, network: IpAddr) -> Option<oneshot::Receiver<FairGuard>> {
        // Clients that disconnected wait no longer.
        for (_, queue) in &mut self.queues {
            queue.retain(|waiter| !waiter.is_closed());
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
        let of_this = self.queues.iter().position(|(other, _)| *other == network);
        let own =
            of_this.and_then(|index| self.queues.get(index)).map_or(0, |(_, queue)| queue.len());
        if own >= WAITING_PER_CLIENT {
            return None;
        }
        if self.queues.iter().map(|(_, queue)| queue.len()).sum::<usize>() >= WAITING {
            let (_, longest) = self.queues.iter_mut().max_by_key(|(_, queue)| queue.len())?;
            if longest.len() <= own + 1 {
                return None;
            }
            // The latest of that network is refused.
            longest.pop_back();
        }
        let (sender, receiver) = oneshot::channel();
        match of_this.and_then(|index| self.queues.get_mut(index)) {
            Some((_, queue)) => queue.push_back(sender),
            None => self.queues.push_back((network, [sender].into())),
        }
        Some(receiver)
    }

    /// Removes the next waiter; its network is the last one after that.
    fn dequeue(&mut self) -> Option<Waiter> {
        let (network, mut queue) = self.queues.pop_front()?;
        let waiter = queue.pop_front();
        if !queue.is_empty() {
            self.queues.push_back((network, queue));
        }
        waiter
    }
}

/// A lock that client networks acquire in turn.
#[derive(Debug, Default)]
pub struct FairLock {
    state: Mutex<LockState>,
}

impl FairLock {
    fn state(&self) -> MutexGuard<'_, LockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires the lock for a client of this address; `None` if too many wait. Dropping the future ends
    /// the wait.
    pub async fn acquire(self: &Arc<Self>, peer: IpAddr) -> Option<FairGuard> {
        let waiting = {
            let mut state = self.state();
            if !state.is_held {
                state.is_held = true;
                return Some(FairGuard { lock: Arc::clone(self) });
            }
            state.enqueue(client_network(peer))?
        };
        waiting.await.ok()
    }
}

/// The lock, held until this is dropped.
#[derive(Debug)]
pub struct FairGuard {
    lock: Arc<FairLock>,
}

impl Drop for FairGuard {
    fn drop(&mut self) {
        let next = {
            let mut state = self.lock.state();
            let next = state.dequeue();
            state.is_held = next.is_some();
            next
        };
        if let Some(next) = next {
            // If that client has disconnected meanwhile, this guard is dropped here, and so handed on.
            let _ = next.send(FairGuard { lock: Arc::clone(&self.lock) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Acquiring = Pin<Box<dyn Future<Output = Option<FairGuard>>>>;

    fn poll(acquiring: &mut Acquiring) -> Poll<Option<FairGuard>> {
        acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// A client that waits.
    fn waits(lock: &Arc<FairLock>, peer: &str) -> Acquiring {
        let (lock, peer) = (Arc::clone(lock), peer.parse().unwrap());
        let mut acquiring: Acquiring = Box::pin(async move { lock.acquire(peer).await });
        assert!(poll(&mut acquiring).is_pending(), "{peer} has to wait");
        acquiring
    }

    fn is_refused(lock: &Arc<FairLock>, peer: &str) -> bool {
        let (lock, peer) = (Arc::clone(lock), peer.parse().unwrap());
        let mut acquiring: Acquiring = Box::pin(async move { lock.acquire(peer).await });
        matches!(poll(&mut acquiring), Poll::Ready(None))
    }

    fn first(lock: &Arc<FairLock>) -> FairGuard {
        let taken = Arc::clone(lock);
        let mut acquiring: Acquiring =
            Box::pin(async move { taken.acquire([192, 0, 2, 9].into()).await });
        let Poll::Ready(Some(guard)) = poll(&mut acquiring) else { panic!("the lock is held") };
        guard
    }

    /// The order in which these acquire the lock, as indexes.
    fn served(guard: FairGuard, mut all: Vec<Acquiring>) -> Vec<usize> {
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
        let lock = Arc::new(FairLock::default());
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
        let lock = Arc::new(FairLock::default());
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
        let lock = Arc::new(FairLock::default());
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
        let lock = Arc::new(FairLock::default());
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
}
