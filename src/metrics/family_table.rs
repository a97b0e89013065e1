//! Tables of metric families: a row is a family, and what writes its samples.

use exposition::Family;

use super::selection::Group;

/// A family: its name, type, labels and help, or a constant.
macro_rules! family {
    ($name:literal $kind:ident $labels:tt $help:literal) => {
        Family::new($name, MetricType::$kind, &$labels, $help)
    };
    ($family:ident) => {
        $family
    };
}

/// A table of families, each with what writes its samples of an item.
macro_rules! families {
    ($(#[$doc:meta])* $vis:vis $table:ident: $item:ty;
     $($name:tt $($kind:ident $labels:tt $help:literal)? => $write:expr;)+) => {
        $(#[$doc])*
        $vis const $table: &[(Family, fn(&$item, &mut Samples<'_>))] =
            &[$((family!($name $($kind $labels $help)?), $write)),+];
    };
}
pub(super) use {families, family};

/// The families of a table.
pub(super) fn names<T>(table: &[(Family, T)]) -> impl Iterator<Item = Family> {
    table.iter().map(|(family, _)| family.clone())
}

/// The families of a table, which are in one group.
pub(super) fn grouped<T>(
    table: &[(Family, T)],
    group: Group,
) -> impl Iterator<Item = (Family, Group)> {
    names(table).map(move |family| (family, group))
}
