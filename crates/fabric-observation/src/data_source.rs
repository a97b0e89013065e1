//! Where a fabric's data is from that another program collects.

use std::time::Duration;

/// A source of data, and how it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataSource {
    /// Its addresses without passwords, or its directory.
    pub name: String,
    /// The formats of what it has: `ufm_csv`, or `db_csv, pm`. Empty before the first data.
    pub format: String,
    /// The time between the latest two changes of its data, as the data says it; `None` before the second.
    pub interval: Option<Duration>,
    /// Why the latest poll had no data, and what to do.
    pub problem: Option<String>,
    /// What its data is too rare or too poor for, a sentence each.
    pub limits: Vec<String>,
}
