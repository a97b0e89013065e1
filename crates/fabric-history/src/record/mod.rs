//! Writing the history: what a monitor publishes is taken in by a thread of its own ([`recorder`]),
//! which nobody waits for: neither the next sweep nor a scrape.
//!
//! A sweep is one transaction ([`store`]): what happened, as events that [`story`] tells from one
//! observation to the next, what each counter has `grown` by, and what is `standing` otherwise than before.
//! The ledger knows what totals were, so that they go on when the exporter is started again; `digesting`
//! brings what was counted in an hour together port by port; `clock` sees when the time of day is set;
//! `retention` keeps the file within its budget, and `log` SQLite's log beside it. The devices of the
//! exporter's own host become a fabric without cables (`host`), so that they take the same way.

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
