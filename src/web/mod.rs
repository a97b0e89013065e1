//! Who is told: HTTP.

pub mod address;
pub mod api;
pub mod archive;
pub mod body;
pub mod certificate;
pub mod config;
mod connections;
pub mod exposition;
mod host;
pub mod inspection;
pub mod limits;
pub mod listen;
pub mod login;
pub mod negotiate;
pub mod pages;
pub mod rate;
pub mod refusal;
pub mod reload;
pub mod security;
pub mod server;
pub mod serving;
mod throttle;
pub mod tls;
mod turns;
mod watched;
