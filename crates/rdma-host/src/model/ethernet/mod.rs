//! The statistics of the Ethernet drivers below RoCE (`ethtool -S`, ETHTOOL_GSTATS), in families that
//! several drivers share.
//!
//! To add one, add a row to `ethernet.tsv`, or a driver's string to a row. Others are not exported.

use std::sync::LazyLock;

use super::tsv;

const TEXT: &str = include_str!("ethernet.tsv");

/// A row of the table: a family of metrics.
#[derive(Clone, Debug)]
pub struct EthernetRow {
    /// Its metric, between `infiniband_netdev_` and `_total`.
    pub metric: &'static str,
    /// The label that the number in a string fills, 0 to 7: the `priority` of IEEE 802.1p, the `lane` of the physical
    /// link, or the device's own `class` of service or of traffic, to which priorities are mapped. `None` where there
    /// is no number.
    pub index: Option<&'static str>,
    /// Whether the driver counts microseconds, of which the metric makes seconds.
    pub micros: bool,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// Drivers, and the string of each with `{}` for the number; a driver has one of its strings at most.
    pub strings: Vec<(&'static str, &'static str)>,
}

impl EthernetRow {
    fn parse([metric, index, unit, strings, help]: [&'static str; 5]) -> Option<Self> {
        let index = Some(index).filter(|label| *label != "none");
        let strings = strings.split('|').map(|string| string.split_once('='));
        let strings = strings.collect::<Option<_>>()?;
        Some(EthernetRow { metric, index, micros: unit == "us", help, strings })
    }
}

/// The table, in the order of the exposition.
pub static TABLE: LazyLock<Vec<EthernetRow>> =
    LazyLock::new(|| tsv::rows(TEXT).filter_map(EthernetRow::parse).collect());

/// Which statistic a string names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatId {
    /// The index of the row in the table.
    pub row: usize,
    /// The number, if the row has an index.
    pub index: Option<u8>,
}

/// Whether any row has a string of the driver.
pub fn is_known(driver: &str) -> bool {
    let driver = canonical(driver);
    TABLE.iter().any(|row| row.strings.iter().any(|(name, _)| *name == driver))
}

/// The name of a driver in the table. A port's PCI function is mlx4_core's, and its network device's driver
/// calls itself mlx4_en (mlx4/en_ethtool.c, mlx4_en_get_drvinfo). A subfunction's is mlx5_core.sf's
/// (mlx5/core/sf/dev/driver.c).
fn canonical(driver: &str) -> &str {
    match driver {
        "mlx4_core" => "mlx4_en",
        "mlx5_core.sf" => "mlx5_core",
        driver => driver,
    }
}

/// The statistic that a string of a driver names.
pub fn find(driver: &str, string: &str) -> Option<StatId> {
    let driver = canonical(driver);
    TABLE.iter().enumerate().find_map(|(row, of)| {
        let patterns = of.strings.iter().filter(|(name, _)| *name == driver);
        patterns.map(|(_, pattern)| pattern).find_map(|pattern| matched(row, pattern, string))
    })
}

/// The statistic of a string, if the pattern matches it.
fn matched(row: usize, pattern: &str, string: &str) -> Option<StatId> {
    let Some((before, after)) = pattern.split_once("{}") else {
        return (pattern == string).then_some(StatId { row, index: None });
    };
    match string.strip_prefix(before)?.strip_suffix(after)?.as_bytes() {
        [digit @ b'0'..=b'7'] => Some(StatId { row, index: Some(digit - b'0') }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
