//! The loops that monitor the fabrics and the host, and publish what they find.

mod collected;
mod discovery_scheduler;
mod drained;
mod fabric;
pub mod host;
mod judge;
mod maintenance;
pub mod replica;
mod report;
mod route_desk;
#[cfg(test)]
mod route_tests;
mod site_file;
mod site_files;

pub use collected::{CollectedMonitor, inspect_source};
pub use fabric::Monitor;
pub use maintenance::{drained_hosts_in, maintenance_in};
pub use site_files::{KeyFile, inspect_site_file, keys_in, names_in};
