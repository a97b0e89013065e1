//! Limits of requests that may have no response: to nodes that refuse, hang, or are gone.

use std::collections::VecDeque;

/// A queue with a maximum number of unanswered requests, including those in flight.
#[derive(Debug)]
pub(super) struct ThrottledQueue<T> {
    pub queue: VecDeque<T>,
    open: usize,
    allowed: usize,
}

impl<T> ThrottledQueue<T> {
    pub fn new(queue: VecDeque<T>, allowed: usize) -> Self {
        ThrottledQueue { queue, open: 0, allowed }
    }

    pub fn pop(&mut self) -> Option<T> {
        let next = if self.open < self.allowed { self.queue.pop_front() } else { None };
        self.open += usize::from(next.is_some());
        next
    }

    pub fn on_response(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// The requests without a response, including those in flight.
    pub fn unanswered(&self) -> usize {
        self.open
    }

    /// Whether none is left, or none may be sent until there is a response.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() || self.is_exhausted()
    }

    /// Whether none may be sent until there is a response.
    pub fn is_exhausted(&self) -> bool {
        self.open >= self.allowed
    }

    /// After a response: one more may be unanswered, so that all have their turn once they respond.
    pub fn permit_more(&mut self) {
        self.on_response();
        self.allowed += 1;
    }
}

/// Orders what is sorted by `key` so that it begins behind the `last` one, which had its turn.
pub(super) fn take_turns_after<T, K: Ord>(
    sorted: &mut [T],
    last: Option<K>,
    key: impl Fn(&T) -> K,
) {
    let Some(last) = last else { return };
    sorted.rotate_left(sorted.partition_point(|it| key(it) <= last));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_open_a_throttled_queue() {
        let mut queue = ThrottledQueue::new((0..100).collect(), 3);
        assert_eq!((0..10).filter_map(|_| queue.pop()).count(), 3);
        queue.on_response();
        assert_eq!((0..10).filter_map(|_| queue.pop()).count(), 1);
        queue.permit_more();
        assert_eq!((0..10).filter_map(|_| queue.pop()).count(), 2);
    }

    #[test]
    fn turns_begin_behind_the_last_one() {
        for (last, first) in [(None, 1), (Some(1), 3), (Some(2), 3), (Some(5), 1), (Some(9), 1)] {
            let mut sorted = [1, 3, 5];
            take_turns_after(&mut sorted, last, |it| *it);
            assert_eq!(sorted[0], first, "{last:?}");
        }
    }
}
