//! Turns at work that one may do at a time, shared out fairly among client addresses.
//!
//! Addresses take turns, whoever asks more often. So one that guesses passwords without end delays the
//! first login of another by two checks at most, the one that runs and its next one, and not by all that
//! it asked for before.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How many requests of one address wait: a browser opens some six connections.
pub const WAITING_OF_ONE: usize = 8;

/// How many requests wait in all. With the usual cost of bcrypt, 60 ms, that is four seconds.
const WAITING: usize = 64;

/// Whose share is counted: an IPv4 address, or a /64 of IPv6, of which each host has all addresses to
/// choose from (RFC 4291, 2.5.4).
fn share_of(peer: IpAddr) -> IpAddr {
    // A client of IPv4 comes as ::ffff:192.0.2.1 to a socket of both.
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

type Waiter = oneshot::Sender<Turn>;

#[derive(Debug, Default)]
struct State {
    taken: bool,
    /// Who waits, by address; the first is next. No queue is empty.
    queues: VecDeque<(IpAddr, VecDeque<Waiter>)>,
}

impl State {
    /// One more that waits. `None` if its address has its share of places, or if all places are taken
    /// and no address has more of them than this one would have.
    fn wait(&mut self, share: IpAddr) -> Option<oneshot::Receiver<Turn>> {
        // Clients that went away have no use for their places.
        for (_, queue) in &mut self.queues {
            queue.retain(|waiter| !waiter.is_closed());
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
        let of_this = self.queues.iter().position(|(address, _)| *address == share);
        let own =
            of_this.and_then(|index| self.queues.get(index)).map_or(0, |(_, queue)| queue.len());
        if own >= WAITING_OF_ONE {
            return None;
        }
        if self.queues.iter().map(|(_, queue)| queue.len()).sum::<usize>() >= WAITING {
            let (_, longest) = self.queues.iter_mut().max_by_key(|(_, queue)| queue.len())?;
            if longest.len() <= own + 1 {
                return None;
            }
            // The latest of that address is answered that it is too many.
            longest.pop_back();
        }
        let (sender, receiver) = oneshot::channel();
        match of_this.and_then(|index| self.queues.get_mut(index)) {
            Some((_, queue)) => queue.push_back(sender),
            None => self.queues.push_back((share, [sender].into())),
        }
        Some(receiver)
    }

    /// The one whose turn it is; its address is the last one after that.
    fn next(&mut self) -> Option<Waiter> {
        let (share, mut queue) = self.queues.pop_front()?;
        let waiter = queue.pop_front();
        if !queue.is_empty() {
            self.queues.push_back((share, queue));
        }
        waiter
    }
}

/// Turns, one at a time.
#[derive(Debug, Default)]
pub struct Turns {
    state: Mutex<State>,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn for a client of this address, once it is its turn; `None` if too many wait. Who drops the
    /// future waits no more.
    pub async fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Turn> {
        let waiting = {
            let mut state = self.state();
            if !state.taken {
                state.taken = true;
                return Some(Turn { turns: Arc::clone(self) });
            }
            state.wait(share_of(peer))?
        };
        waiting.await.ok()
    }
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Turns>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = self.turns.state();
            let next = state.next();
            state.taken = next.is_some();
            next
        };
        if let Some(next) = next {
            // If that client has gone away meanwhile, this turn is dropped here, and so handed on.
            let _ = next.send(Turn { turns: Arc::clone(&self.turns) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Taking = Pin<Box<dyn Future<Output = Option<Turn>>>>;

    fn poll(taking: &mut Taking) -> Poll<Option<Turn>> {
        taking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// One that asks for a turn and waits.
    fn waits(turns: &Arc<Turns>, peer: &str) -> Taking {
        let (turns, peer) = (Arc::clone(turns), peer.parse().unwrap());
        let mut taking: Taking = Box::pin(async move { turns.take(peer).await });
        assert!(poll(&mut taking).is_pending(), "{peer} has to wait");
        taking
    }

    fn is_refused(turns: &Arc<Turns>, peer: &str) -> bool {
        let (turns, peer) = (Arc::clone(turns), peer.parse().unwrap());
        let mut taking: Taking = Box::pin(async move { turns.take(peer).await });
        matches!(poll(&mut taking), Poll::Ready(None))
    }

    fn first(turns: &Arc<Turns>) -> Turn {
        let taken = Arc::clone(turns);
        let mut taking: Taking = Box::pin(async move { taken.take([192, 0, 2, 9].into()).await });
        let Poll::Ready(Some(turn)) = poll(&mut taking) else { panic!("nobody has the turn") };
        turn
    }

    /// The places in the list of those whose turn it is, one after the other.
    fn served(turn: Turn, mut all: Vec<Taking>) -> Vec<usize> {
        let mut order = Vec::new();
        drop(turn);
        // A turn that was handed over is dropped here: the next one gets it.
        while let Some((index, turn)) = all.iter_mut().enumerate().find_map(|(index, taking)| {
            if order.contains(&index) {
                return None;
            }
            match poll(taking) {
                Poll::Ready(Some(turn)) => Some((index, turn)),
                _ => None,
            }
        }) {
            order.push(index);
            drop(turn);
        }
        order
    }

    #[test]
    fn addresses_take_turns_however_often_one_asks() {
        let turns = Arc::new(Turns::default());
        let turn = first(&turns);
        let mut all: Vec<_> = (0..4).map(|_| waits(&turns, "192.0.2.1")).collect();
        all.push(waits(&turns, "192.0.2.2"));
        all.push(waits(&turns, "192.0.2.2"));
        all.push(waits(&turns, "192.0.2.3"));
        assert_eq!(served(turn, all), [0, 4, 6, 1, 5, 2, 3]);
        drop(first(&turns));
    }

    #[test]
    fn one_address_has_its_share_of_places() {
        let turns = Arc::new(Turns::default());
        let _turn = first(&turns);
        for (one, same, another) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.2.2"),
            ("2001:db8::1", "2001:db8:0:0:ffff::9", "2001:db8:0:1::1"),
        ] {
            let all: Vec<_> = (0..WAITING_OF_ONE).map(|_| waits(&turns, one)).collect();
            assert!(is_refused(&turns, one) && is_refused(&turns, same), "{one}");
            drop(waits(&turns, another));
            drop(all);
            drop(waits(&turns, one));
        }
    }

    #[test]
    fn who_goes_away_is_passed_over_and_leaves_the_place_to_others() {
        let turns = Arc::new(Turns::default());
        let turn = first(&turns);
        let mut all: Vec<_> = (0..WAITING_OF_ONE).map(|_| waits(&turns, "192.0.2.1")).collect();
        assert!(is_refused(&turns, "192.0.2.1"));
        drop(all.drain(..WAITING_OF_ONE - 1));
        all.push(waits(&turns, "192.0.2.1"));
        assert_eq!(served(turn, all), [0, 1]);
        // Nor is a turn lost that was handed to somebody who did not wait for it.
        let turn = first(&turns);
        let all = [waits(&turns, "192.0.2.1"), waits(&turns, "192.0.2.2")];
        drop(turn);
        drop(all);
        drop(first(&turns));
    }

    #[test]
    fn when_all_places_are_taken_the_address_with_the_most_gives_one() {
        let turns = Arc::new(Turns::default());
        let turn = first(&turns);
        let mut all = Vec::new();
        for address in 0..WAITING / WAITING_OF_ONE {
            let peer = format!("192.0.2.{address}");
            all.extend((0..WAITING_OF_ONE).map(|_| waits(&turns, &peer)));
        }
        all.push(waits(&turns, "198.51.100.1"));
        let before = all.len();
        all.retain_mut(|taking| poll(taking).is_pending());
        assert_eq!(before - all.len(), 1, "one is refused in the newcomer's favor");
        let (newcomer, order) = (all.len() - 1, served(turn, all));
        let place = order.iter().position(|index| *index == newcomer);
        assert_eq!(place, Some(WAITING / WAITING_OF_ONE), "after one of each address");
    }
}
