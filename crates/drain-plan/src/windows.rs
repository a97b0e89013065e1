//! Grouping of repairs into as few windows as possible. A window is safe only if each part of it is safe.

/// Up to this number of repairs, a plan has the smallest number of windows. All sets of 10 repairs are 1,024, and all
/// sets with all of their parts 59,049.
pub const EXACT_REPAIRS: usize = 10;

/// Returns the smallest number of safe windows with all items below `count`, at most [`EXACT_REPAIRS`].
///
/// `is_safe` gets items in ascending order, and is called at most once for each set. Each item alone must be safe.
/// Windows and their items are in ascending order.
pub(crate) fn smallest_number(
    count: usize,
    is_safe: impl FnMut(&[usize]) -> bool,
) -> Vec<Vec<usize>> {
    let all = (1 << count) - 1;
    let mut safe = vec![None; all + 1];
    for item in 0..count {
        safe[1 << item] = Some(true);
    }
    let mut search = Search { is_safe, count, safe, too_few: vec![0; all + 1] };
    // One window for each item is always found.
    let found = (0..=count).find_map(|windows| search.cover(all, windows)).unwrap_or_default();
    // The last window was added first.
    found.into_iter().rev().map(|set| items(set, count)).collect()
}

/// Returns safe windows with all items: each item is added to the first window that stays safe. `order` has the items,
/// each of which must be safe alone.
///
/// `is_safe` gets items in ascending order, and is called at most once for each item and window.
pub(crate) fn first_fit(
    order: impl IntoIterator<Item = usize>,
    mut is_safe: impl FnMut(&[usize]) -> bool,
) -> Vec<Vec<usize>> {
    let mut windows: Vec<Vec<usize>> = Vec::new();
    for item in order {
        let fits = windows.iter_mut().any(|window| {
            let position = window.partition_point(|&other| other < item);
            window.insert(position, item);
            let fits = is_safe(window);
            if !fits {
                window.remove(position);
            }
            fits
        });
        if !fits {
            windows.push(vec![item]);
        }
    }
    windows.sort_unstable();
    windows
}

/// Sets of items are masks: bit 0 is item 0.
struct Search<F> {
    is_safe: F,
    count: usize,
    /// By set, as far as it is known.
    safe: Vec<Option<bool>>,
    /// By set: a number of windows that is known not to suffice.
    too_few: Vec<usize>,
}

impl<F: FnMut(&[usize]) -> bool> Search<F> {
    /// Finds at most `windows` safe sets that have each item of `set` once. The set with the first item is the last.
    fn cover(&mut self, set: usize, windows: usize) -> Option<Vec<usize>> {
        if set == 0 {
            return Some(Vec::new());
        }
        if windows <= self.too_few[set] {
            return None;
        }
        if windows == 1 {
            return self.is_safe(set).then(|| vec![set]);
        }
        let first = set & set.wrapping_neg();
        let others = set ^ first;
        let mut part = others;
        loop {
            let window = part | first;
            if let Some(mut cover) = self.split(window, set ^ window, windows) {
                cover.push(window);
                return Some(cover);
            }
            if part == 0 {
                self.too_few[set] = windows;
                return None;
            }
            part = (part - 1) & others;
        }
    }

    /// The cover of `rest` by one window less, if `window` is safe. The larger of both is tried first: it is less likely
    /// to be safe, and a set that is not safe is recognized sooner.
    fn split(&mut self, window: usize, rest: usize, windows: usize) -> Option<Vec<usize>> {
        if self.safe[window] == Some(false) {
            return None;
        }
        if window.count_ones() >= rest.count_ones() {
            if self.is_safe(window) { self.cover(rest, windows - 1) } else { None }
        } else {
            self.cover(rest, windows - 1).filter(|_| self.is_safe(window))
        }
    }

    fn is_safe(&mut self, set: usize) -> bool {
        if let Some(known) = self.safe[set] {
            return known;
        }
        let safe = (self.is_safe)(&items(set, self.count));
        for (other, known) in self.safe.iter_mut().enumerate() {
            let follows = if safe { other & set == other } else { other & set == set };
            if follows {
                *known = Some(safe);
            }
        }
        safe
    }
}

fn items(set: usize, count: usize) -> Vec<usize> {
    (0..count).filter(|item| set & (1 << item) != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::{first_fit, smallest_number};

    /// Items of which each window may hold a sum of 10.
    fn fits(sizes: &[u32], window: &[usize]) -> bool {
        window.iter().map(|&item| sizes[item]).sum::<u32>() <= 10
    }

    #[test]
    fn nothing_needs_no_window() {
        assert!(smallest_number(0, |_| true).is_empty());
        assert!(first_fit([], |_| true).is_empty());
    }

    #[test]
    fn what_is_safe_together_is_one_window_and_asked_once() {
        let mut asked = 0;
        let windows = smallest_number(10, |_| {
            asked += 1;
            true
        });
        assert_eq!(windows, [(0..10).collect::<Vec<_>>()]);
        assert_eq!(asked, 1);
    }

    #[test]
    fn smallest_number_is_found_where_first_fit_needs_more() {
        let sizes = [6, 5, 5, 4];
        let order = [3, 2, 1, 0];
        assert_eq!(smallest_number(4, |window| fits(&sizes, window)), [[0, 3], [1, 2]]);
        assert_eq!(first_fit(order, |window| fits(&sizes, window)), [vec![0], vec![1], vec![2, 3]]);
    }

    #[test]
    fn no_set_is_asked_twice_and_none_that_follows_from_another() {
        let sizes = [4, 4, 4, 3, 3, 3, 3, 2, 2, 2];
        let mut asked = Vec::new();
        let windows = smallest_number(10, |window| {
            let safe = fits(&sizes, window);
            asked.push((window.to_vec(), safe));
            safe
        });
        assert_eq!(windows.len(), 3);
        for (index, (later, _)) in asked.iter().enumerate() {
            for (earlier, safe) in &asked[..index] {
                let (small, large) = if *safe { (later, earlier) } else { (earlier, later) };
                assert!(
                    !small.iter().all(|item| large.contains(item)),
                    "{later:?} after {earlier:?}"
                );
            }
        }
    }
}
