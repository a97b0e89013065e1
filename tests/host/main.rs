//! The exporter and its doctor on hosts: trees of sysfs files, and what is missing on them.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod doctor;
mod host_trees;
