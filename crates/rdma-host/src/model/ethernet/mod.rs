//! What the statistics of a RoCE device's Ethernet driver mean (`ethtool -S`, ETHTOOL_GSTATS), in
//! families that several drivers share.
//!
//! A string has a meaning if its driver and it stand in a row; all others have none, among them
//! each driver's statistics of single queues. Of drivers without a row nothing is told.
//!
//! Drivers go by the name that ETHTOOL_GDRVINFO gives. Strings are those of Linux 6.12
//! (`drivers/net/ethernet/*`), the meaning of mlx5's from
//! Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst.

mod table;

pub use table::TABLE;

/// The label that the number in a string fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// There is no number.
    None,
    /// The priority of IEEE 802.1p, 0 to 7.
    Priority,
    /// The lane of the physical link, 0 to 7.
    Lane,
    /// The device's own class of service or traffic class, 0 to 7, to which priorities are mapped.
    Class,
}

impl Index {
    /// The label's name.
    pub fn label(self) -> Option<&'static str> {
        match self {
            Index::None => None,
            Index::Priority => Some("priority"),
            Index::Lane => Some("lane"),
            Index::Class => Some("class"),
        }
    }
}

/// A row of the table: a family of metrics.
#[derive(Debug)]
pub struct EthernetRow {
    /// Its metric, between `infiniband_netdev_` and `_total`.
    pub metric: &'static str,
    /// The label that the number fills.
    pub index: Index,
    /// Whether the driver counts microseconds, of which the metric's seconds are to be made.
    pub micros: bool,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// Drivers, and the string of each with `{}` for the number; a driver tells one of its strings
    /// at most.
    pub strings: &'static [(&'static str, &'static str)],
}

/// What a string means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The row's place in the table.
    pub row: usize,
    /// The number, if the row has an index.
    pub index: Option<u8>,
}

/// Whether any of a driver's strings has a meaning.
pub fn knows(driver: &str) -> bool {
    let driver = canonical(driver);
    TABLE.iter().any(|row| row.strings.iter().any(|(name, _)| *name == driver))
}

/// A port's PCI function is mlx4_core's, its network device's driver calls itself mlx4_en
/// (mlx4/en_ethtool.c, mlx4_en_get_drvinfo).
/// A subfunction's is mlx5_core.sf's (mlx5/core/sf/dev/driver.c).
fn canonical(driver: &str) -> &str {
    match driver {
        "mlx4_core" => "mlx4_en",
        "mlx5_core.sf" => "mlx5_core",
        driver => driver,
    }
}

/// The meaning of a driver's string.
pub fn meaning(driver: &str, string: &str) -> Option<Meaning> {
    let driver = canonical(driver);
    TABLE.iter().enumerate().find_map(|(row, of)| {
        (of.strings.iter())
            .filter(|(name, _)| *name == driver)
            .find_map(|(_, pattern)| meaning_in(row, pattern, string))
    })
}

/// The meaning of a string in a row of which this is a pattern.
fn meaning_in(row: usize, pattern: &str, string: &str) -> Option<Meaning> {
    let Some((before, after)) = pattern.split_once("{}") else {
        return (pattern == string).then_some(Meaning { row, index: None });
    };
    match string.strip_prefix(before)?.strip_suffix(after)?.as_bytes() {
        [digit @ b'0'..=b'7'] => Some(Meaning { row, index: Some(digit - b'0') }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
