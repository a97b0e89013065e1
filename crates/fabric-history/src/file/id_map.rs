//! A map by row id, for tens of thousands of ids without gaps: faster than a hash table, and in order.

use std::collections::BTreeMap;
use std::iter::repeat;

/// Ids per page. A file with absurd ids costs a page for each.
const PAGE: u32 = 1 << 10;

/// A map by row id.
#[derive(Clone, Debug)]
pub struct IdMap<T> {
    pages: BTreeMap<u32, Vec<Option<T>>>,
}

impl<T> Default for IdMap<T> {
    fn default() -> Self {
        IdMap { pages: BTreeMap::new() }
    }
}

impl<T> IdMap<T> {
    /// The value of an id.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.pages.get(&(id / PAGE))?.get((id % PAGE) as usize)?.as_ref()
    }

    /// The value of an id.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.pages.get_mut(&(id / PAGE))?.get_mut((id % PAGE) as usize)?.as_mut()
    }

    /// The value of an id, set to another one first if it has none.
    pub fn get_or_insert_with(&mut self, id: u32, new: impl FnOnce() -> T) -> &mut T {
        self.slot(id).get_or_insert_with(new)
    }

    /// Sets a value. Returns the one before.
    pub fn insert(&mut self, id: u32, value: T) -> Option<T> {
        self.slot(id).replace(value)
    }

    /// Removes a value.
    pub fn remove(&mut self, id: u32) -> Option<T> {
        self.pages.get_mut(&(id / PAGE))?.get_mut((id % PAGE) as usize)?.take()
    }

    /// All ids and values, in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots =
            self.pages.iter().flat_map(|(page, slots)| slots.iter().enumerate().zip(repeat(*page)));
        slots.filter_map(|((slot, value), page)| Some((page * PAGE + slot as u32, value.as_ref()?)))
    }

    /// All ids and values, in the order of the ids.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let slots = self
            .pages
            .iter_mut()
            .flat_map(|(page, slots)| slots.iter_mut().enumerate().zip(repeat(*page)));
        slots.filter_map(|((slot, value), page)| Some((page * PAGE + slot as u32, value.as_mut()?)))
    }

    fn slot(&mut self, id: u32) -> &mut Option<T> {
        let page = self.pages.entry(id / PAGE).or_default();
        let index = (id % PAGE) as usize;
        if page.len() <= index {
            page.resize_with(index + 1, || None);
        }
        &mut page[index]
    }
}

impl<T> FromIterator<(u32, T)> for IdMap<T> {
    fn from_iter<I: IntoIterator<Item = (u32, T)>>(values: I) -> Self {
        let mut map = IdMap::default();
        for (id, value) in values {
            map.insert(id, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_their_values_in_order() {
        let mut map: IdMap<u32> =
            [7, 0, u32::MAX, PAGE, PAGE - 1].map(|id| (id, id)).into_iter().collect();
        let ids = |map: &IdMap<u32>| map.iter().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(ids(&map), [0, 7, PAGE - 1, PAGE, u32::MAX]);
        assert!(map.iter().all(|(id, value)| id == *value && map.get(id) == Some(&id)));
        assert_eq!((map.get(1), map.get(8), map.get(2 * PAGE)), (None, None, None));
        assert_eq!((map.remove(7), map.remove(7), map.insert(0, 1)), (Some(7), None, Some(0)));
        assert_eq!(*map.get_or_insert_with(0, || 2), 1);
        assert_eq!(*map.get_or_insert_with(3, || 2), 2);
        map.iter_mut().for_each(|(_, value)| *value = 9);
        assert_eq!(map.get_mut(5), None);
        assert_eq!((ids(&map).len(), map.get(3)), (5, Some(&9)));
    }
}
