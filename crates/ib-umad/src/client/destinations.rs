//! All destinations of a client.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use super::destination::Destination;
use super::in_flight::Key;
use crate::request::{Address, QueuePair};

/// What distinguishes destinations. A route has 64 bytes: it is hashed once for each request, and what follows finds
/// the destination by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    queue_pair: QueuePair,
    to: Address,
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        #[cfg(test)]
        tests::HASHED.set(tests::HASHED.get() + 1);
        (self.queue_pair, self.to).hash(state);
    }
}

#[derive(Debug)]
pub(super) struct Destinations {
    /// Windows of new destinations, by queue pair.
    windows: [u16; 2],
    indexes: HashMap<Name, u32>,
    all: Vec<Destination>,
}

impl Destinations {
    pub fn new(windows: [u16; 2]) -> Self {
        Destinations { windows, indexes: HashMap::new(), all: Vec::new() }
    }

    /// The key of a destination, which is created if there is none. It is valid until routes are forgotten.
    pub fn key(&mut self, queue_pair: QueuePair, to: Address) -> Key {
        let index = *self.indexes.entry(Name { queue_pair, to }).or_insert_with(|| {
            self.all.push(Destination::new(self.windows[queue_pair as usize]));
            self.all.len() as u32 - 1
        });
        Key { queue_pair, index }
    }

    pub fn get_mut(&mut self, key: Key) -> &mut Destination {
        &mut self.all[key.index as usize]
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Destination> {
        self.all.iter_mut()
    }

    /// Forgets directed routes: one may lead to another node in another run; a LID rarely does. No key may be in use.
    pub fn forget_routes(&mut self) {
        let mut all: Vec<Option<Destination>> =
            std::mem::take(&mut self.all).into_iter().map(Some).collect();
        self.indexes.retain(|name, index| {
            let kept = all.get_mut(*index as usize).and_then(Option::take);
            let kept = kept.filter(|_| !matches!(name.to, Address::Directed(_)));
            let is_kept = kept.is_some();
            *index = self.all.len() as u32;
            self.all.extend(kept);
            is_kept
        });
        self.indexes.shrink_to(2 * self.indexes.len());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::Cell;

    use ib_mad::{DirectedRoute, Lid};

    thread_local! {
        /// How often a destination was hashed.
        pub(in crate::client) static HASHED: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn routes_are_forgotten_and_lids_keep_their_state() {
        let mut destinations = Destinations::new([2, 4]);
        let route = Address::Directed(DirectedRoute::LOCAL);
        let mut all = vec![(QueuePair::Qp0, route)];
        for lid in 1..50 {
            let to = Address::Lid(Lid(lid));
            all.extend([(QueuePair::Qp0, to), (QueuePair::Qp1, to)]);
        }
        for (number, &(queue_pair, to)) in all.iter().enumerate() {
            let key = destinations.key(queue_pair, to);
            assert_eq!(key.index as usize, number);
            destinations.get_mut(key).not_before = ib_mad::Moment(number as u64);
        }
        destinations.forget_routes();
        assert_eq!(destinations.iter_mut().count(), all.len() - 1);
        for (number, &(queue_pair, to)) in all.iter().enumerate().skip(1) {
            let key = destinations.key(queue_pair, to);
            assert_eq!(destinations.get_mut(key).not_before.0, number as u64);
        }
        let key = destinations.key(QueuePair::Qp0, route);
        assert_eq!(destinations.get_mut(key).not_before.0, 0, "a new one");
    }
}
