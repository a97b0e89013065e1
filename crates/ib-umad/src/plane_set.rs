//! Planes of a multi-plane HCA.

/// The planes of a multi-plane HCA from which directed routes can start, each with a port and a tree of routes of its
/// own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaneSet(u16);

impl PlaneSet {
    /// No plane.
    pub const EMPTY: PlaneSet = PlaneSet(0);

    /// The largest number of a plane. HCAs have up to four.
    pub const MAX: u8 = 15;

    /// These planes and another one; 0 and what is above [`MAX`](Self::MAX) are none.
    #[must_use]
    pub fn with(self, plane: u8) -> Self {
        PlaneSet(if (1..=Self::MAX).contains(&plane) { self.0 | 1 << plane } else { self.0 })
    }

    /// Whether there is no plane.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The planes, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (1..=Self::MAX).filter(move |plane| self.0 & 1 << plane != 0)
    }
}
