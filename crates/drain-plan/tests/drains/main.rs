//! Assessments and plans of small fabrics, compared with slow and independent computations, and of situations that
//! operators know.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

mod capacity;
mod fabric_text;
mod last_path;
mod oracle;
mod plans;
mod random;
mod situations;
