//! Writing the history file.
//!
//! A thread of its own ([`recorder`]) takes the observations that the monitors publish. Nothing waits for
//! it: neither the next sweep nor a scrape.
//!
//! A sweep is one transaction ([`store`]): the events that [`story`] detects between two observations, the
//! increase of each counter (`grown`), and changed states (`standing`). The store keeps the totals of all
//! counters, so that they continue after a restart of the exporter. `digesting` rewrites an hour's readings
//! port by port; `clock` detects that the time of day was set; `retention` and `unused` keep the file
//! within its budget, and `log` bounds SQLite's write-ahead log. `host` represents the devices of the
//! exporter's own host as a fabric without links, so that they are recorded the same way.

mod catalog;
mod clock;
mod course;
mod digesting;
mod grown;
mod host;
mod log;
pub mod recorder;
mod remembered;
mod retention;
mod standing;
pub mod store;
pub mod story;
mod unused;

pub use recorder::Recorder;
