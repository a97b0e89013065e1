//! Writing the history file.
//!
//! A thread of its own ([`recorder`]) takes the observations that the monitors publish. Nothing waits for
//! it: neither the next sweep nor a scrape.
//!
//! A sweep is one transaction ([`store`]): the events between two observations ([`events`]), the increase of
//! each counter (`counter_deltas`), and changed states (`state_deltas`). The store keeps the totals of all
//! counters, so that they continue after a restart of the exporter. `hourly_digest` rewrites an hour's
//! readings port by port; `clock_monitor` detects that the time of day was set; `retention` and
//! `unreferenced` keep the file within its budget, and `write_ahead_log` bounds SQLite's log. `host`
//! represents the devices of the exporter's own host as a fabric without links, so that they are recorded
//! the same way.

mod catalog;
mod clock_monitor;
mod counter_deltas;
pub mod events;
mod host;
mod hourly_digest;
pub mod recorder;
mod retention;
mod state_deltas;
pub mod store;
mod unreferenced;
mod write_ahead_log;

pub use recorder::Recorder;
