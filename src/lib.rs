//! fabric-exporter: a fabric health monitor for InfiniBand and RoCE.

pub mod api;
pub mod cli;
pub mod config;
pub mod doctor;
pub mod history_sources;
pub mod metrics;
pub mod monitor;
pub mod pages;
pub mod remote;
pub mod sandbox;
pub mod server;
