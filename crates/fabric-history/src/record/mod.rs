//! Writing the history file.
//!
//! A thread of its own ([`recorder`]) takes the observations that the monitors publish. Nothing waits for
//! it: neither the next sweep nor a scrape.
//!
//! A sweep is one transaction ([`store`]): the events between two observations ([`events`]), the increase of
//! each counter and changed states (`deltas`). The store keeps the totals of all counters, so that they
//! continue after a restart of the exporter. `hourly_digest` rewrites an hour's readings port by port;
//! `retention` and `unreferenced` keep the file within its budget. `host` represents the devices of the
//! exporter's own host as a fabric without links, so that they are recorded the same way.
//!
//! Who wants to hear of events at once is a [`listener`] of the recorder. Where nothing is recorded, [`event_watch`]
//! detects the same events.

mod catalog;
mod clock;
mod deltas;
mod detected;
mod displaced;
pub mod event_watch;
pub mod events;
mod host;
mod hourly_digest;
pub mod listener;
mod module_places;
mod published;
pub mod recorder;
mod retention;
pub mod store;
mod unreferenced;

pub use recorder::Recorder;
