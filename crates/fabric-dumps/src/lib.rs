#![doc = include_str!("../README.md")]

pub mod contents;
pub mod counters;
mod db_csv;
pub mod dump;
mod format;
mod ibdiagnet;
mod iblinkinfo;
mod ibnetdiscover;
mod ibqueryerrors;
mod modules;
mod net;
mod perfquery;
mod problem;
mod snapshot;
pub mod text;

pub use contents::Contents;
pub use dump::{Dump, DumpError, from_texts, read};
pub use format::Format;
pub use problem::Problem;
