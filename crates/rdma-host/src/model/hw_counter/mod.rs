//! THE table of `hw_counters`: what each file that a driver shows there counts, and its metric.
//!
//! A file is found by its name alone, below the port and below the device. To add a counter is to
//! add a row to its driver's module; a file that no row names is told by its own name elsewhere.
//! A counter that several drivers keep stands with the driver whose name for it leads.
//!
//! Names and meanings: the drivers of Linux 6.12 (`drivers/infiniband/{hw,sw}/*`), and what came
//! or was renamed later where a row says so. ocrdma, qedr, vmw_pvrdma, usnic, mthca, qib and siw
//! have no `hw_counters`; ionic takes its names from the device's firmware.

mod bnxt;
mod cloud;
mod common;
mod hfi1;
mod irdma;
mod mlx4;
mod mlx5;
mod small;

use std::sync::LazyLock;

/// How a value behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up; its samples end in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct HwRow {
    /// Its file's name in `hw_counters`, in every spelling; a device shows one of them at most.
    pub files: &'static [&'static str],
    /// Its metric: between `infiniband_hw_` and `_total` for a counter, after `infiniband_hw_` for
    /// a gauge.
    pub metric: &'static str,
    /// How its value behaves.
    pub kind: Kind,
    /// What one count is worth in the metric's unit: 4 or 8 for data counted in words or flits,
    /// else 1.
    pub scale: u64,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// The drivers that show it.
    pub drivers: &'static str,
}

/// Rows: the kind, the metric, what one count is worth if it is not 1, the files if their name is
/// not the metric's, the drivers, the help.
macro_rules! rows {
    (@files $metric:literal) => { &[$metric] };
    (@files $metric:literal [$($file:literal),+]) => { &[$($file),+] };
    (@scale) => { 1 };
    (@scale $scale:literal) => { $scale };
    ($($kind:ident $metric:literal $(x $scale:literal)? $(= [$($file:literal),+])?
       ($drivers:literal) $help:literal;)+) => {
        pub(super) const ROWS: &[super::HwRow] = &[$(super::HwRow {
            files: super::rows!(@files $metric $([$($file),+])?),
            metric: $metric,
            kind: super::Kind::$kind,
            scale: super::rows!(@scale $($scale)?),
            help: $help,
            drivers: $drivers,
        }),+];
    };
}
use rows;

const PARTS: &[&[HwRow]] = &[
    common::ROWS,
    mlx5::ROWS,
    mlx5::vport::ROWS,
    mlx4::ROWS,
    irdma::ROWS,
    bnxt::ROWS,
    cloud::ROWS,
    hfi1::ROWS,
    small::ROWS,
];

const LEN: usize = {
    let (mut len, mut part) = (0, 0);
    while part < PARTS.len() {
        len += PARTS[part].len();
        part += 1;
    }
    len
};

static ROWS: [HwRow; LEN] = {
    let mut rows = [PARTS[0][0]; LEN];
    let (mut row, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut of_part = 0;
        while of_part < PARTS[part].len() {
            rows[row] = PARTS[part][of_part];
            row += 1;
            of_part += 1;
        }
        part += 1;
    }
    rows
};

/// The table, in the order in which metrics are told.
pub const TABLE: &[HwRow] = &ROWS;

static BY_FILE: LazyLock<Vec<(&str, usize)>> = LazyLock::new(|| {
    let mut by_file: Vec<_> = (TABLE.iter().enumerate())
        .flat_map(|(index, row)| row.files.iter().map(move |&file| (file, index)))
        .collect();
    by_file.sort_unstable();
    by_file
});

/// The place in the table of what a file counts.
pub fn find(file: &str) -> Option<usize> {
    // hfi1 says of a counter of 32 bits that it has 32 bits (hfi1/chip.c, init_cntrs).
    let file = file.strip_suffix(",32").unwrap_or(file);
    let found = BY_FILE.binary_search_by_key(&file, |&(file, _)| file).ok()?;
    Some(BY_FILE[found].1)
}

#[cfg(test)]
mod tests;
