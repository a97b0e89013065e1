//! Writing the history: what a monitor publishes is taken in by a thread of its own ([`recorder`]),
//! which nobody waits for: neither the next sweep nor a scrape.
//!
//! A sweep is one transaction ([`store`]): what happened, as events that [`story`] tells from one
//! observation to the next, and what each counter has grown by. `ledger` knows what totals were, so that
//! they go on when the exporter is started again; `clock` sees when the time of day is set; `retention`
//! keeps the file within its budget. The devices of the exporter's own host become a fabric without
//! cables (`host`), so that they take the same way.

mod catalog;
mod clock;
mod host;
mod ledger;
pub mod recorder;
mod retention;
pub mod store;
pub mod story;

pub use recorder::Recorder;
