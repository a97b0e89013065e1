#![doc = include_str!("../README.md")]

pub mod contents;
pub mod counters;
mod db_csv;
mod diags;
pub mod dump;
mod format;
mod ibdiagnet;
mod ibnetdiscover;
mod modules;
mod net;
mod problem;
mod snapshot;
pub mod text;

pub use contents::Contents;
pub use dump::{Dump, DumpError, from_texts, read};
pub use format::Format;
pub use problem::Problem;
