#![doc = include_str!("../README.md")]

pub mod contents;
pub mod counters;
mod db_csv;
pub mod dump;
mod format;
mod front;
mod iblinkinfo;
mod ibnetdiscover;
mod ibqueryerrors;
mod identity;
mod lines;
mod lst;
mod modules;
mod net;
mod net_dump;
mod perfquery;
mod pm;
mod port_list;
mod problem;
mod readings;
mod remark;
pub mod response;
mod scan;
mod snapshot;
mod source;
mod telemetry;
pub mod text;
mod tool_output;

pub use contents::Contents;
pub use dump::{Dump, Dumps, from_files, from_texts, read};
pub use format::Format;
pub use problem::Problem;
pub use remark::Remark;
pub use source::{DumpError, UNKNOWN_FILE, formats};
