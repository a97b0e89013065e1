//! Tables in tab-separated text.

/// The rows of a tab-separated text: `N` columns each, without comments and the header. The tests check
/// that no row is malformed; one that is would be left out.
pub(super) fn rows<const N: usize>(text: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let columns = |line: &'static str| line.split('\t').collect::<Vec<_>>().try_into().ok();
    text.lines().filter(is_row).skip(1).filter_map(columns)
}
