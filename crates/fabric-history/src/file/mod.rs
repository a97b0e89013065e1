//! The file of a history.

mod cables;
pub(crate) mod connection;
pub(crate) mod counter_ids;
mod coverage;
pub(crate) mod damaged;
pub mod dump;
pub(crate) mod flaps;
pub mod frame;
pub(crate) mod header;
pub(crate) mod id_map;
pub(crate) mod integrity;
pub(crate) mod link_errors;
pub(crate) mod lock;
pub mod packed;
pub(crate) mod paths;
pub mod reader;
mod readings;
pub mod record_kind;
pub(crate) mod schema;
pub(crate) mod sql;
pub(crate) mod tables;
pub(crate) mod timeline;
pub(crate) mod totals;
pub(crate) mod walk;

pub use damaged::files_of;
pub use header::Header;
pub use lock::ensure_place;
pub use paths::free;
