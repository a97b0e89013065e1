//! The places and groups of families: the order in which a scrape has them, and which profile has which.

use std::collections::HashMap;
use std::sync::LazyLock;

use exposition::Family;

use super::fabric;
use super::selection::Group;

/// The families of fabrics by name: their places in the exposition, and their groups.
static FAMILIES: LazyLock<HashMap<String, (usize, Group)>> = LazyLock::new(|| {
    let places = fabric::all_families().zip(0..);
    places.map(|((family, group), place)| (family.name.into_owned(), (place, group))).collect()
});

/// The position of a family among others; families that only the host has are last.
pub(super) fn position(family: &Family) -> usize {
    FAMILIES.get(&*family.name).map_or(usize::MAX, |(place, _)| *place)
}

/// The group of a family of fabrics.
pub fn group(family: &Family) -> Option<Group> {
    FAMILIES.get(&*family.name).map(|(_, group)| *group)
}
