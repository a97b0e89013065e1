//! Indexes of the nodes and ports of a fabric, and lists with one value per node or port.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// Index of a node in [`Fabric::nodes`](crate::Fabric::nodes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// Index of a port in [`Fabric::ports`](crate::Fabric::ports).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub u32);

impl From<NodeIndex> for usize {
    fn from(node: NodeIndex) -> usize {
        node.0 as usize
    }
}

impl From<PortIndex> for usize {
    fn from(port: PortIndex) -> usize {
        port.0 as usize
    }
}

/// A list that only indexes of this kind read, with one value for each. As a slice it has all values, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexList<I, T> {
    values: Vec<T>,
    index: PhantomData<I>,
}

/// A value for each node of a fabric.
pub type NodeMap<T> = IndexList<NodeIndex, T>;

/// A value for each port of a fabric.
pub type PortMap<T> = IndexList<PortIndex, T>;

impl<I: Into<usize>, T> IndexList<I, T> {
    /// The same value for each of so many nodes or ports.
    pub fn filled(count: usize, value: T) -> Self
    where
        T: Clone,
    {
        vec![value; count].into()
    }

    /// Adds the value of the next node or port.
    pub fn push(&mut self, value: T) {
        self.values.push(value);
    }

    /// The value of a node or port; `None` where the list is of a smaller fabric.
    pub fn get(&self, index: I) -> Option<&T> {
        self.values.get(index.into())
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.values.get_mut(index.into())
    }
}

impl<I, T> From<Vec<T>> for IndexList<I, T> {
    fn from(values: Vec<T>) -> Self {
        IndexList { values, index: PhantomData }
    }
}

impl<I, T> Default for IndexList<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T> FromIterator<T> for IndexList<I, T> {
    fn from_iter<V: IntoIterator<Item = T>>(values: V) -> Self {
        Vec::from_iter(values).into()
    }
}

impl<I, T> Extend<T> for IndexList<I, T> {
    fn extend<V: IntoIterator<Item = T>>(&mut self, values: V) {
        self.values.extend(values);
    }
}

impl<I, T> IntoIterator for IndexList<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a IndexList<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IndexList<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.iter_mut()
    }
}

impl<I: Into<usize>, T> Index<I> for IndexList<I, T> {
    type Output = T;

    fn index(&self, index: I) -> &T {
        &self.values[index.into()]
    }
}

impl<I: Into<usize>, T> IndexMut<I> for IndexList<I, T> {
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.values[index.into()]
    }
}

impl<I, T> Deref for IndexList<I, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<I, T> DerefMut for IndexList<I, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}
