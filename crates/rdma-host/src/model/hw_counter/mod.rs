//! The counters in `hw_counters`: what each file of a driver counts, and its metric.
//!
//! To add a counter, add a row to `hw_counters.tsv`. A file without a row is exported by its own name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::tsv;

const TEXT: &str = include_str!("hw_counters.tsv");

/// A row of the table.
#[derive(Clone, Debug)]
pub struct HwRow {
    /// The names of its file in `hw_counters`, in all spellings; a device shows one of them at most.
    pub files: Vec<&'static str>,
    /// Its metric: between `infiniband_hw_` and `_total` for a counter, after `infiniband_hw_` for a gauge.
    pub metric: &'static str,
    /// Whether its value goes up and down. That of a counter only goes up, and its samples end in `_total`.
    pub is_gauge: bool,
    /// What one count is worth in the metric's unit: 4 or 8 for data counted in words or flits, else 1.
    pub scale: u64,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// The drivers that show it, separated by commas.
    pub drivers: &'static str,
}

impl HwRow {
    fn parse([kind, metric, files, scale, drivers, help]: [&'static str; 6]) -> Option<Self> {
        let (files, scale) = (files.split('|').collect(), scale.parse().ok()?);
        Some(HwRow { files, metric, is_gauge: kind == "gauge", scale, help, drivers })
    }
}

/// The table, in the order of the exposition.
pub static TABLE: LazyLock<Vec<HwRow>> =
    LazyLock::new(|| tsv::rows(TEXT).filter_map(HwRow::parse).collect());

static BY_FILE: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let rows = TABLE.iter().enumerate();
    rows.flat_map(|(index, row)| row.files.iter().map(move |&file| (file, index))).collect()
});

/// The index in the table of what a file counts.
pub fn find(file: &str) -> Option<usize> {
    // hfi1 appends ,32 to the name of a counter of 32 bits (hfi1/chip.c, init_cntrs).
    BY_FILE.get(file.strip_suffix(",32").unwrap_or(file)).copied()
}

#[cfg(test)]
mod tests;
