//! Who is told: HTTP.

pub mod address;
pub mod api;
pub mod archive;
pub mod body;
pub mod exposition;
pub mod negotiate;
pub mod pages;
pub mod server;
